"""The registry of metrics; the same definitions serve Prometheus and the PostgreSQL exporter.

Every value comes from the `Status` at the time of the request. An unknown value has no sample,
because an alert could not distinguish a 0 for "unknown" from a real position or lag.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from prometheus_client import CollectorRegistry, Metric, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from olr_pg.monitor.status_values import STATE_WORDS, Status, TableStatus, ThreadStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


_PREFIX = "olr_pg_"
STATES = tuple(STATE_WORDS)


class _Gauge(NamedTuple):
    """A metric of the appliance as a whole."""

    name: str
    help: str
    value: Callable[[Status], float | None]
    is_counter: bool = False


class _TableValue(NamedTuple):
    """A metric of each table."""

    name: str
    help: str
    value: Callable[[TableStatus], float | None]
    is_counter: bool = False


class _ThreadValue(NamedTuple):
    """A metric of each redo thread at a given time."""

    name: str
    help: str
    value: Callable[[ThreadStatus, float], float | None]


_VALUES = (
    _Gauge(
        "healthy",
        "0 if replication has failed and needs an operator, else 1",
        lambda s: s.health != "failed",
    ),
    _Gauge("problems", "Number of problems that need an operator", lambda s: len(s.problems)),
    _Gauge(
        "uptime_seconds", "Seconds since the start of the appliance", lambda s: s.at - s.started_at
    ),
    _Gauge(
        "archive_seconds", "Seconds since the newest redo was written", lambda s: s.archive_seconds
    ),
    _Gauge(
        "decoded_scn",
        "SCN up to which commits are decoded, exclusive",
        lambda s: s.source.decoded_scn,
    ),
    _Gauge(
        "taken_scn",
        "SCN up to which commits are sent to the client, exclusive",
        lambda s: s.port.taken_scn,
    ),
    _Gauge(
        "confirmed_scn",
        "Highest commit SCN that the bundled applier has confirmed",
        lambda s: s.confirmed_scn,
    ),
    _Gauge("saved_scn", "SCN that GetSavedSCN returns", lambda s: s.port.saved_scn),
    _Gauge("logs", "Archived logs decoded", lambda s: s.source.logs, is_counter=True),
    _Gauge("redo_bytes", "Bytes of redo decoded", lambda s: s.source.redo_bytes, is_counter=True),
    _Gauge("transactions", "Decoded", lambda s: s.source.transactions, is_counter=True),
    _Gauge("rows", "Row changes decoded", lambda s: s.source.rows, is_counter=True),
    _Gauge(
        "rows_filtered",
        "Row changes that the filter excludes",
        lambda s: s.source.rows_filtered,
        is_counter=True,
    ),
    _Gauge(
        "transactions_filtered",
        "Transactions that the filter excludes completely",
        lambda s: s.source.transactions_filtered,
        is_counter=True,
    ),
    _Gauge(
        "lob_unavailable",
        "LOB values that are not delivered because the redo does not contain them completely",
        lambda s: s.source.lob_unavailable,
        is_counter=True,
    ),
    _Gauge(
        "lob_unclaimed",
        "LOB values that changed without a row change in the redo",
        lambda s: s.source.lob_unclaimed,
        is_counter=True,
    ),
    _Gauge(
        "unaccounted", "Change vectors and row changes lost in decoding", lambda s: s.source.losses
    ),
    _Gauge("gaps", "Missing archived logs", lambda s: len(s.source.gaps)),
    _Gauge(
        "open_transactions", "Number of open transactions", lambda s: s.source.open_transactions
    ),
    _Gauge(
        "oldest_open_transaction_seconds",
        "Age of the oldest open transaction",
        lambda s: s.source.oldest_open_seconds,
    ),
    _Gauge(
        "waiting_transactions",
        "Finished transactions that wait for redo of other threads",
        lambda s: s.source.waiting_transactions,
    ),
    _Gauge(
        "spilled_bytes",
        "Bytes of open transactions that are spilled to disk",
        lambda s: s.source.spilled_bytes,
    ),
    _Gauge(
        "data_free_bytes",
        "Free bytes of the file system of context.data",
        lambda s: s.data_free_bytes,
    ),
    _Gauge(
        "data_free_ratio",
        "Free share (0 to 1) of the file system of context.data",
        lambda s: s.data_free_ratio,
    ),
    _Gauge("connections", "Clients connected to the port", lambda s: s.port.connections),
    _Gauge("replicating", "1 while a client replicates", lambda s: s.port.client is not None),
    _Gauge(
        "queue_ready",
        "Ready transactions that are not sent to the client yet",
        lambda s: s.port.ready,
    ),
    _Gauge(
        "queue_transmitted",
        "Transactions that were sent and are not confirmed yet",
        lambda s: s.port.transmitted,
    ),
    _Gauge(
        "queue_bytes",
        "Bytes of queued transactions (ready or not confirmed)",
        lambda s: s.port.queued_bytes,
    ),
    _Gauge(
        "queue_bytes_max",
        "Limit of queue_bytes; decoding waits when it is reached",
        lambda s: s.port.bytes_max,
    ),
    _Gauge(
        "queue_spilled_bytes",
        "Bytes of ready transactions on disk, for a slow target",
        lambda s: s.port.spilled_bytes,
    ),
    _Gauge("queue_full", "1 while decoding waits for the client", lambda s: s.port.full),
)

_TABLE_VALUES = (
    _TableValue(
        "table_applied_scn",
        "SCN of the last commit that is durable in the table",
        lambda t: t.applied_scn,
    ),
    _TableValue(
        "table_waiting", "Changes that were received and are not applied yet", lambda t: t.waiting
    ),
    _TableValue(
        "table_stopped",
        "1 if an error has stopped the table, else 0",
        lambda t: t.stopped is not None,
    ),
    _TableValue("table_paused", "1 if the table is paused, else 0", lambda t: t.paused),
    _TableValue(
        "table_blocked",
        "1 if another session or a standby in PostgreSQL blocks the table, else 0",
        lambda t: t.blocked is not None,
    ),
    _TableValue(
        "table_held_scn",
        "Commit SCN of the first held change of a stopped or paused table",
        lambda t: t.held_scn,
    ),
    _TableValue("table_inserted", "Rows inserted", lambda t: t.inserted, is_counter=True),
    _TableValue("table_updated", "Rows updated", lambda t: t.updated, is_counter=True),
    _TableValue("table_deleted", "Rows deleted", lambda t: t.deleted, is_counter=True),
    _TableValue("table_conflicts", "Conflicts", lambda t: t.conflicts, is_counter=True),
    _TableValue(
        "table_altered_values",
        "Values that a policy changed because PostgreSQL cannot store them as they are",
        lambda t: t.altered,
        is_counter=True,
    ),
    _TableValue(
        "table_incomplete_values",
        "LOB values that the table lacks because the redo did not contain them completely",
        lambda t: t.incomplete,
    ),
    _TableValue(
        "table_verified_scn",
        "SCN of the table's last comparison with the source (olr-pg verify --continuous)",
        lambda t: t.verified_scn,
    ),
    _TableValue(
        "table_verified_time_seconds",
        "Unix time of the table's last comparison with the source",
        lambda t: t.verified_at,
    ),
    _TableValue(
        "table_differences",
        "Rows that differed in the table's last comparison with the source",
        lambda t: None if t.verified_at is None else t.differences,
    ),
)

_THREAD_VALUES = (
    _ThreadValue(
        "thread_archived_scn",
        "SCN at which the thread's last available log ends, exclusive",
        lambda t, _: t.archived_scn,
    ),
    _ThreadValue(
        "thread_decoded_scn",
        "SCN up to which the redo thread was read",
        lambda t, _: t.decoded_scn,
    ),
    _ThreadValue(
        "thread_archived_sequence",
        "Sequence number of the thread's last available log",
        lambda t, _: t.archived_sequence,
    ),
    _ThreadValue(
        "thread_redo_seconds",
        "Seconds since the newest redo of the thread was written",
        lambda t, now: max(0.0, now - t.archived_at),
    ),
    _ThreadValue(
        "thread_holds_back",
        "1 if finished transactions of other threads wait for redo of this thread, else 0",
        lambda t, _: t.holds_back,
    ),
)


TABLES_MAX: Final = 1000
"""If a target has more tables and `metrics.tables` is "auto", only the changed ones have metrics of
their own: the metrics of 20,000 tables have 17 MB.
"""


class _StatusCollector(Collector):
    """Makes all metrics from one status of each target.

    Args:
        only_changed: leave out the metrics of tables that are `TableStatus.is_unchanged`, except
            the table with the largest lag. Otherwise an alert would not notice the lag of a run in
            which no table has changed yet. None: do so for more than `TABLES_MAX` tables.
    """

    def __init__(
        self, targets: Mapping[str, Callable[[], Status]], *, only_changed: bool | None
    ) -> None:
        self._targets = targets
        self._only_changed = only_changed

    def collect(self) -> Iterator[Metric]:
        """See `Collector`."""
        statuses = {name: self._shown(status()) for name, status in self._targets.items()}
        # A single target has no name.
        labels = ("target",) if any(statuses) else ()
        marked = [((name,) if labels else (), status) for name, status in statuses.items()]
        for one in _VALUES:
            family = _family(one.name, one.help, labels, is_counter=one.is_counter)
            for mark, status in marked:
                _add(family, mark, one.value(status))
            if family.samples:
                yield family
        for kind in _TABLE_VALUES:
            family = _family(kind.name, kind.help, (*labels, "table"), is_counter=kind.is_counter)
            for mark, status in marked:
                for table in status.tables:
                    _add(family, (*mark, table.name), kind.value(table))
            yield family
        yield from _labelled(labels, marked)

    def _shown(self, status: Status) -> Status:
        is_short = len(status.tables) <= TABLES_MAX
        if self._only_changed is False or (self._only_changed is None and is_short):
            return status
        last = max(status.tables, key=lambda one: one.lag_seconds, default=None)
        shown = (one for one in status.tables if one is last or not one.is_unchanged)
        return replace(status, tables=tuple(shown))


def _family(
    name: str, text: str, labels: Sequence[str], *, is_counter: bool = False
) -> CounterMetricFamily | GaugeMetricFamily:
    make = CounterMetricFamily if is_counter else GaugeMetricFamily
    return make(_PREFIX + name, text, labels=labels)


def _add(
    family: CounterMetricFamily | GaugeMetricFamily, labels: Sequence[str], value: float | None
) -> None:
    """Add a sample if the value is known."""
    if value is not None:
        family.add_metric(labels, float(value))


def _lags(
    labels: tuple[str, ...], marked: Sequence[tuple[tuple[str, ...], Status]]
) -> Iterator[Metric]:
    """Yield the lag of each table, in total and by cause, if it is known."""
    total = _family(
        "table_lag_seconds",
        "Age of the oldest change that the table may lack; missing while unknown",
        (*labels, "table"),
    )
    causes = _family(
        "table_lag_cause_seconds",
        "Part of a table's lag that each cause contributes",
        (*labels, "table", "cause"),
    )
    for mark, status in marked:
        for table in status.tables:
            lag = status.lag_of(table)
            if lag is None:
                continue
            total.add_metric((*mark, table.name), table.lag_seconds)
            for cause, seconds in lag._asdict().items():
                causes.add_metric((*mark, table.name, cause), seconds)
    yield from (total, causes)


def _labelled(
    labels: tuple[str, ...], marked: Sequence[tuple[tuple[str, ...], Status]]
) -> Iterator[Metric]:
    state = _family(
        "state",
        "1 for the current state of the appliance, 0 for the other states",
        (*labels, "state"),
    )
    refused = _family(
        "refused", "Connections refused or dropped", (*labels, "code"), is_counter=True
    )
    slowing = _family(
        "target_problems",
        "Number of problems that make the target slow or full, by error code",
        (*labels, "code"),
    )
    for mark, status in marked:
        for name in dict.fromkeys((*STATES, status.state.name)):
            state.add_metric((*mark, name), float(name == status.state.name))
        for code, count in status.port.refused.items():
            refused.add_metric((*mark, code), count)
        for code, count in status.target_problems.items():
            slowing.add_metric((*mark, code), count)
    passed = _family(
        "vectors_not_interpreted",
        "Change vectors of unknown kinds, counted up to the last completely decoded log",
        (*labels, "opcode"),
        is_counter=True,
    )
    for mark, status in marked:
        for opcode, count in status.source.not_interpreted.items():
            passed.add_metric((*mark, opcode), count)
    yield from (state, refused, slowing, passed)
    yield from _lags(labels, marked)
    for one in _THREAD_VALUES:
        family = _family(one.name, one.help, (*labels, "thread"))
        for mark, status in marked:
            for thread in status.source.threads:
                _add(family, (*mark, str(thread.thread)), one.value(thread, status.at))
        yield family


def make_registry(
    status: Callable[[], Status],
    targets: Mapping[str, Callable[[], Status]] | None = None,
    *,
    only_changed: bool | None = None,
) -> CollectorRegistry:
    """Return the registry of an appliance: its own metrics, and the metrics of its process.

    Args:
        targets: the status of each target by name, if there are several.
        only_changed: leave out the metrics of most tables that are `TableStatus.is_unchanged`. None
            does so if there are more than `TABLES_MAX` tables.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_StatusCollector(targets or {"": status}, only_changed=only_changed))
    ProcessCollector(registry=registry)
    return registry
