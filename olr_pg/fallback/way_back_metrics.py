"""Prometheus metrics of the fallback; ``olr-pg fallback run`` serves them.

The most important metric is the WAL that the slot retains: if the fallback stops, this WAL fills
the disk of the database that applications use. Another metric shows whether PostgreSQL and Oracle
answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from olr_pg.fallback.way_back_status import MIB, is_lost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prometheus_client import Metric

    from olr_pg.fallback.fallback_run import Status

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
