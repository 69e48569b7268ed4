"""The metrics of a way back, for Prometheus: ``olr-pg fallback run`` serves them.

The first that matters is what the slot keeps of PostgreSQL's log: a way back that stands still
fills the disk of the database that applications use. Both sides are asked when somebody asks, at
most every few seconds; a side that does not answer is a metric too.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import oracledb
import psycopg
import structlog
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from olr_pg.errors import Code, OlrPgError, plain_reason, system_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prometheus_client import Metric

    from olr_pg.config.address import Address
    from olr_pg.fallback.fallback_run import Status

KEPT_SECONDS: Final = 10.0
"""So long an answer of both sides is given again."""

_PREFIX: Final = "olr_pg_fallback_"
_LOST: Final = "lost"
_MIB: Final = 1 << 20

_log = structlog.get_logger(__name__)


class WayBackCollector(Collector):
    """Makes metrics of what both sides say.

    Args:
        status: asks them.
        max_wal_mb: of `fallback`: more is too much.
    """

    def __init__(
        self,
        status: Callable[[], Status],
        max_wal_mb: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._status = status
        self._limit = max_wal_mb * _MIB
        self._clock = clock
        self._asked = -KEPT_SECONDS
        self._known: Status | None = None

    def describe(self) -> Iterator[Metric]:
        """Return nothing: so that registering asks nobody."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of now; what is not known has no sample."""
        found = self._current()
        yield _gauge("up", "1 if PostgreSQL and Oracle answer", float(found is not None))
        if found is None:
            return
        slot, ledger = found.slot, found.ledger
        is_lost = slot is None or slot.wal_status == _LOST
        yield _gauge("slot_lost", "1 if changes are gone that Oracle lacks", float(is_lost))
        if slot is not None and slot.wal_bytes is not None:
            kept = float(slot.wal_bytes)
            yield _gauge("slot_retained_bytes", "Of PostgreSQL's log, which the slot keeps", kept)
            yield _gauge("slot_used_ratio", "The same over fallback.max-wal-mb", kept / self._limit)
        if found.lag_bytes is not None:
            lag = float(found.lag_bytes)
            yield _gauge("lag_bytes", "Of PostgreSQL's log that Oracle does not have", lag)
        if ledger is None:
            return
        yield CounterMetricFamily(
            f"{_PREFIX}transactions", "Of PostgreSQL, applied in Oracle", ledger.transactions
        )
        stopped = GaugeMetricFamily(
            f"{_PREFIX}table_stopped", "1 if the table waits for somebody", labels=["table"]
        )
        for table, stop in sorted(ledger.stops.items()):
            stopped.add_metric([table], float(stop.is_stopped))
        yield stopped
        conflicts = sum(count for one, count in found.records.items() if one.is_conflict)
        yield CounterMetricFamily(
            f"{_PREFIX}conflicts", "Changes that were skipped or overwrote Oracle's row", conflicts
        )
        yield CounterMetricFamily(
            f"{_PREFIX}changed_values",
            "Values that a policy changed",
            sum(found.records.values()) - conflicts,
        )

    def _current(self) -> Status | None:
        now = self._clock()
        if now - self._asked >= KEPT_SECONDS:
            self._asked = now
            try:
                self._known = self._status()
            except (OlrPgError, psycopg.Error, oracledb.Error) as error:
                _log.warning("the way back has no metrics", reason=plain_reason(error))
                self._known = None
        return self._known


def _gauge(name: str, what: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{_PREFIX}{name}", what, value)


@contextmanager
def served_metrics(
    address: Address | None, status: Callable[[], Status], max_wal_mb: int
) -> Iterator[int | None]:
    """Serve ``/metrics`` within the context; yield the port, None where there is no address.

    Raises:
        OlrPgError: 4010, the address cannot be listened on.
    """
    if address is None:
        yield None
        return
    registry = CollectorRegistry()
    registry.register(WayBackCollector(status, max_wal_mb))
    try:
        server, thread = start_http_server(address.port, address.host, registry)
    except OSError as error:
        raise OlrPgError(
            Code.ADDRESS_UNUSABLE, system_reason(error), address=str(address)
        ) from error
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
