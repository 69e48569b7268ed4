"""The status page and `/metrics` of ``olr-pg fallback run``.

The page, its files and its server are shared with the appliance (`monitor`). One thread queries
PostgreSQL and Oracle every few seconds, so requests for the page cause no load on Oracle.

The most important metric is the WAL that the slot retains: if the fallback stops, this WAL fills
the disk of the database that applications use. Another metric shows whether both databases answer.
"""

from __future__ import annotations

import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import oracledb
import psycopg
import structlog
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from olr_pg.appliance.open_source import server_place
from olr_pg.applier.target.outage import target_place
from olr_pg.config.port_sections import server_context
from olr_pg.errors import OlrPgError, plain_reason
from olr_pg.fallback import fallback_run
from olr_pg.fallback.way_back_status import MIB, Looked, Watched, WayBackStatus, is_lost, state_of
from olr_pg.monitor.status_values import Identity
from olr_pg.observability.periodic import Periodic, clock_shift, steady_time
from olr_pg.oracle.driver.bounded_calls import oracle_error
from olr_pg.postgres.sqlstates import target_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from olr_pg.config.model import Config
    from olr_pg.fallback.fallback_run import Status
    from olr_pg.fallback.way_back import WayBack
    from olr_pg.monitor.service import StatusService

LOOK_SECONDS: Final = 10.0
"""Interval at which PostgreSQL and Oracle are queried."""

_log = structlog.get_logger(__name__)


class WayBackWatch:
    """Keeps the last answers of PostgreSQL and Oracle; can be read from any thread.

    Args:
        ask: queries PostgreSQL and Oracle.
    """

    def __init__(self, watched: Watched, ask: Callable[[], Status]) -> None:
        self._watched = watched
        self._ask = ask
        self._shown: tuple[Looked, float] | None = None

    def look(self) -> None:
        """Query PostgreSQL and Oracle. If a database does not answer, store the error instead of
        the answers.
        """
        now = steady_time()
        try:
            looked = Looked(now, self._ask())
        except OlrPgError as error:
            looked = Looked(now, None, error)
        except psycopg.Error as error:
            looked = Looked(now, None, target_error(error))
        except oracledb.Error as error:
            looked = Looked(now, None, oracle_error(error, "reading the ledger"))
        if looked.error is not None:
            _log.warning("the status of the way back is unknown", reason=plain_reason(looked.error))
        before = self._shown
        is_same = before is not None and state_of(before[0]) == state_of(looked)
        self._shown = looked, before[1] if before is not None and is_same else now

    def found(self) -> Status | None:
        """Return the last answers; None if PostgreSQL or Oracle did not answer."""
        return self._looked()[0].found

    def status(self) -> WayBackStatus:
        """Return the status as of the last query."""
        looked, since = self._looked()
        shift = clock_shift()
        watched = self._watched._replace(started_at=self._watched.started_at + shift)
        moved = looked._replace(at=looked.at + shift)
        return watched.status(moved, since + shift, steady_time() + shift)

    def _looked(self) -> tuple[Looked, float]:
        if self._shown is None:
            self.look()
        assert self._shown is not None
        return self._shown


@contextmanager
def way_back_page(config: Config, ways: Sequence[WayBack]) -> Iterator[StatusService]:
    """Serve the page and `/metrics` at `fallback.metrics-address` while the context is active.

    Args:
        config: the configuration of this fallback's target only.
        ways: the fallback to each PDB.

    Raises:
        OlrPgError: 4009, 4010 or 4030 the page cannot be served.
    """
    # Import it here, because it imports a web server, which --once does not need.
    from olr_pg.monitor.service import ServiceSettings, StatusService

    section, settings = config.way_back, config.status
    watched = Watched(
        identity=_identity(config, ways[0]),
        tables=[table.full_name for way in ways for table in way.tables],
        max_wal_mb=section.max_wal_mb,
        target=config.name,
        started_at=steady_time(),
    )
    watch = WayBackWatch(watched, lambda: fallback_run.status_of_all(ways))
    watch.look()
    registry = CollectorRegistry()
    registry.register(WayBackCollector(watch.found, section.max_wal_mb))
    service = StatusService(
        {"": watch.status},
        registry,
        ServiceSettings(
            address=section.metrics_address,
            tls=server_context(settings.tls) if settings.tls else None,
            allow=settings.allow,
            hosts=settings.hosts,
        ),
    )
    looking = Periodic("olr-way-back-page", LOOK_SECONDS, watch.look)
    with service, looking:
        yield service


def _identity(config: Config, way: WayBack) -> Identity:
    return Identity(
        instance=config.status.name or socket.gethostname(),
        config=config.file,
        source=target_place(way.connect_string),
        target=server_place(way.source.server),
        subscription=way.subscription,
    )


_PREFIX: Final = "olr_pg_fallback_"


class WayBackCollector(Collector):
    """Makes metrics from the last answers of PostgreSQL and Oracle.

    Args:
        found: returns the last answers; None if PostgreSQL or Oracle did not answer.
        max_wal_mb: `fallback.max-wal-mb`, the limit for retained WAL.
    """

    def __init__(self, found: Callable[[], Status | None], max_wal_mb: int) -> None:
        self._found = found
        self._limit = max_wal_mb * MIB

    def collect(self) -> Iterator[Metric]:
        """Yield the current metrics. A metric whose value is unknown has no sample."""
        found = self._found()
        yield _gauge("up", "1 if PostgreSQL and Oracle answer", float(found is not None))
        if found is None:
            return
        slot, ledger = found.slot, found.ledger
        lost = float(is_lost(slot))
        yield _gauge(
            "slot_lost", "1 if PostgreSQL has lost changes that are not in Oracle yet", lost
        )
        if slot is not None and slot.wal_bytes is not None:
            kept = float(slot.wal_bytes)
            yield _gauge(
                "slot_retained_bytes",
                "Bytes of PostgreSQL's WAL that the replication slot keeps",
                kept,
            )
            yield _gauge(
                "slot_used_ratio",
                "slot_retained_bytes as a share of fallback.max-wal-mb",
                kept / self._limit,
            )
        if found.lag_bytes is not None:
            lag = float(found.lag_bytes)
            yield _gauge(
                "lag_bytes", "Bytes of PostgreSQL's WAL that are not applied to Oracle yet", lag
            )
        if ledger is None:
            return
        yield CounterMetricFamily(
            f"{_PREFIX}transactions",
            "Transactions of PostgreSQL that are applied to Oracle",
            ledger.transactions,
        )
        stopped = GaugeMetricFamily(
            f"{_PREFIX}table_stopped",
            "1 if an error has stopped the table, else 0",
            labels=["table"],
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


def _gauge(name: str, what: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{_PREFIX}{name}", what, value)
