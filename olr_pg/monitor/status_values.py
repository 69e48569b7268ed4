"""The status of a running appliance as values. The page, the metrics and `olr-pg status` show these
values.

Times are Unix times in seconds. Ages and lags are in seconds. SCNs are integers. An unknown or
missing position is None, and null in JSON (`Status.as_record`), so it cannot be mistaken for a real
position.
"""

from __future__ import annotations

import heapq
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from olr_pg.monitor.lag import Lag

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


STATE_WORDS: Final = {
    "LOADING": "Initial load",
    "STARTING": "Starting",
    "WAITING_FOR_CLIENT": "Waiting for a client",
    "DECODING": "Catching up",
    "SPILLING": "Catching up, large transactions wait on disk",
    "PAUSED_FOR_FLOW_CONTROL": "Catching up, decoding waits for the client",
    "CAUGHT_UP": "Caught up",
    "TARGET_BEHIND": "Everything is decoded, the target is behind",
    "WAITING_FOR_REDO": "Waiting for a missing log",
    "WAITING_FOR_SOURCE": "Waiting for the source",
    "WAITING_FOR_TARGET": "Waiting for the target",
    "WAITING_FOR_DISK": "Waiting for disk space",
    "PAUSED": "Paused",
    "STOPPING": "Stopping",
    "STOPPED": "Stopped",
}
"""A text for each state, for people; scripts and alerts use the name of the state."""

TABLES_SHOWN: Final = 200
"""Maximum number of tables that the page receives; it can search for others."""

_NOTHING_ASKED: Final = frozenset(("LOADING", "STARTING", "WAITING_FOR_CLIENT"))
"""States before a client has requested a start position."""


@dataclass(frozen=True, slots=True)
class StageState:
    """The current state of the appliance.

    Attributes:
        name: name of the state, such as WAITING_FOR_REDO.
        since: the time at which the state began.
        reason: the text of the error that explains the state; None if the name is enough.
    """

    name: str
    since: float
    reason: str | None = None

    @property
    def words(self) -> str:
        """The state as text for people."""
        return STATE_WORDS.get(self.name, self.name)


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of the appliance, its source and its target. An unknown part is empty.

    The identity contains no user name and no password.

    Attributes:
        instance: the name of the appliance.
        config: the path of its configuration file.
        source, container: names of the source database and of its container.
        source_place: the place from which the redo is read.
        target: host and database that the bundled applier writes to.
        subscription: name of the subscription in the target's ledger.
    """

    instance: str = ""
    config: str = ""
    source: str = ""
    container: str = ""
    source_place: str = ""
    target: str = ""
    subscription: str = ""


@dataclass(frozen=True, slots=True)
class LoadStatus:
    """The initial load of a table that is not completely loaded yet.

    Attributes:
        scn: the SCN of the loaded rows.
        parts, parts_done: into how many parts the load is divided, and how many of them are loaded.
            `parts` is 0 if another tool copies the rows.
        rows, bytes: number of rows and bytes loaded so far.
        began: the start of the load, in seconds of Unix time.
        rows_expected: total number of rows, if the source knows it.
    """

    table: str
    scn: int
    parts: int
    parts_done: int
    rows: int
    bytes: int
    began: float
    rows_expected: int | None = None

    @property
    def is_begun(self) -> bool:
        """Whether rows are loaded."""
        return self.parts_done > 0 or self.rows > 0


@dataclass(frozen=True, slots=True)
class ThreadStatus:
    """A redo thread.

    Attributes:
        archived_sequence, archived_scn: sequence of the last available log, and its next SCN. For
            an online log, the SCN is the one up to which it is written.
        archived_at: the time when the newest available redo of the thread was written.
        decoded_sequence: sequence of the last log that was read to its end.
        decoded_scn: the SCN up to which the thread has been read.
        holds_back: whether finished transactions of other threads must wait until more redo of this
            thread is read.
    """

    thread: int
    archived_sequence: int
    archived_scn: int | None
    archived_at: float
    decoded_sequence: int | None
    decoded_scn: int | None
    holds_back: bool = False


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """The state of the source's logs and of decoding.

    Attributes:
        decoded_scn: every transaction that commits below this SCN has been decoded.
        logs, redo_bytes: number of logs, and bytes of redo, decoded so far.
        splits_here, splits_by_spark: number of splits decoded in this process, and by Spark's
            workers.
        transactions, rows: number of committed transactions decoded so far, and of their row
            changes.
        rows_filtered, transactions_filtered: number of row changes, and of whole transactions, that
            `filter` leaves out.
        lob_unavailable, lob_unclaimed: number of LOB values that are left out because the redo
            contains them only partly, and of LOBs that changed without a change of their row.
        gaps: the missing logs, as text.
        missing_since: the time since which redo is missing, by the clock of this host; None if no
            redo is missing.
        waiting_transactions: number of finished transactions that wait for other redo threads.
        open_transactions: number of open transactions.
        oldest_open_xid, oldest_open_scn: XID and begin SCN of the open transaction that began
            first; None if there is none.
        oldest_open_seconds: seconds since the log that contains the begin of this transaction was
            written.
        spilled_bytes: bytes of spilled transactions.
        losses: differences in the account of decoding. A value other than 0 means that changes were
            lost.
        not_interpreted: number of change vectors that decoding does not interpret, by kind.
    """

    decoded_scn: int | None = None
    logs: int = 0
    redo_bytes: int = 0
    splits_here: int = 0
    splits_by_spark: int = 0
    transactions: int = 0
    rows: int = 0
    rows_filtered: int = 0
    transactions_filtered: int = 0
    lob_unavailable: int = 0
    lob_unclaimed: int = 0
    threads: tuple[ThreadStatus, ...] = ()
    gaps: tuple[str, ...] = ()
    missing_since: float | None = None
    waiting_transactions: int = 0
    open_transactions: int = 0
    oldest_open_xid: str | None = None
    oldest_open_scn: int | None = None
    oldest_open_seconds: float = 0.0
    spilled_bytes: int = 0
    losses: int = 0
    not_interpreted: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PortStatus:
    """A port of the protocol, with its ready queue.

    Attributes:
        client: address of the connected client; None if there is none.
        refused: number of refused connections by error code.
        saved_scn: the SCN that the port returns for GetSavedSCN.
        taken_scn: the client has received every transaction that commits below this SCN.
        ready, transmitted: number of transactions that the client has not received yet, and of
            transactions that it has received but not confirmed.
        bytes_max, transactions_max: limits of the queue. If the queue exceeds these limits,
            decoding waits, or transactions are written to disk.
        spilled_bytes: bytes of ready transactions on disk; used only if there are several targets.
        silent_seconds: seconds since the client's last request. Until the next request, no
            transaction leaves the queue and `saved_scn` does not advance.
    """

    address: str
    connections: int = 0
    client: str | None = None
    refused: Mapping[str, int] = field(default_factory=dict)
    saved_scn: int | None = None
    taken_scn: int | None = None
    ready: int = 0
    transmitted: int = 0
    queued_bytes: int = 0
    bytes_max: int = 0
    transactions_max: int = 0
    full: bool = False
    held_back: bool = False
    spilled_bytes: int = 0
    silent_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class TableStatus:
    """A table of the bundled applier.

    Attributes:
        applied_scn: commit SCN of the last transaction that was applied to the table, in this run
            or an earlier one. For a stopped table, this SCN is just below `held_scn`.
        waiting: number of changes that were received but not applied.
        inserted, updated, deleted, conflicts, transactions: counts of this run.
        stopped: the error that stopped the table; None if it is not stopped.
        lag: the lag, divided by cause.
        lag_seconds: the total lag.
        altered: number of values in this run that a policy has changed, because PostgreSQL cannot
            store them.
        held_scn: for a stopped table, the commit SCN of its first held change. The table lacks the
            first held change and all later changes. None if no change is held.
        held_since: the time when this change was held; None if no change is held.
        incomplete: number of the table's missing LOB values in olr_pg.incomplete.
        paused: whether the table is paused; its changes are then held until it is resumed.
        error_id: for a stopped table, the number of its error in olr_pg.error.
        blocked: the session in PostgreSQL that blocks the table, and the recommended action; None
            if the table is not blocked.
        behind: another table of the same worker whose changes take most of the worker's time while
            this table waits; None if this table does not wait.
        verified_scn, verified_at: SCN and time of the table's last comparison with the source; None
            if there was none.
        differences: number of rows that differed in this comparison.
    """

    name: str
    applied_scn: int | None = None
    waiting: int = 0
    transactions: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    conflicts: int = 0
    stopped: str | None = None
    lag: Lag = field(default_factory=Lag)
    lag_seconds: float = 0.0
    altered: int = 0
    held_scn: int | None = None
    held_since: float | None = None
    incomplete: int = 0
    error_id: int | None = None
    paused: bool = False
    blocked: str | None = None
    behind: str | None = None
    verified_scn: int | None = None
    verified_at: float | None = None
    differences: int = 0

    @property
    def is_unchanged(self) -> bool:
        """Whether the table had no change in this run, and has no problem."""
        usual = TableStatus(
            self.name, self.applied_scn, lag=self.lag, lag_seconds=self.lag_seconds,
            verified_scn=self.verified_scn, verified_at=self.verified_at,
        )  # fmt: skip
        return self == usual

    @property
    def rank(self) -> tuple[bool, bool, float, int, str]:
        """The place of the table on the page: first stopped tables, then those with another
        problem, then by lag, by waiting changes, and by name.
        """
        troubled = self.paused or self.blocked or self.incomplete or self.differences
        return not self.stopped, not troubled, -self.lag_seconds, -self.waiting, self.name


_TABLE_FIELDS: Final = tuple(one.name for one in fields(TableStatus))


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates per second, over about the last ten seconds."""

    redo_bytes: float = 0.0
    decoded_rows: float = 0.0
    applied_changes: float = 0.0


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """The resources of this process; Java and PostgreSQL are separate processes.

    Attributes:
        resident_bytes, descriptors: None if the system does not report them.
    """

    pid: int
    resident_bytes: int | None
    descriptors: int | None
    threads: int
    memory_max_bytes: int


@dataclass(frozen=True, slots=True)
class Status:
    """The complete status of an appliance at one time.

    Attributes:
        archive_seconds: seconds since the newest available redo was written; newer redo may exist
            that has not arrived yet. None before the first log.
        confirmed_scn: the highest SCN that the bundled applier has confirmed, in this run or an
            earlier one.
        problems: problems that an operator must solve, as text.
        commands: for each problem, the complete commands that solve it.
        events: the latest warnings and errors; the newest is the last.
        data_free_bytes: free bytes on the disk of `context.data`; None if unknown.
        data_free_ratio: the free share of this disk, from 0 to 1; None if unknown.
        target: name of the target of this status; empty if there is only one target.
        targets: the names of all targets, if there are several.
        identity: the identity of the appliance.
        loads: initial loads in progress.
        target_problems: number of problems that make the target slow or full, by error code
            (`applier.target_health`).
    """

    version: str
    at: float
    started_at: float
    state: StageState
    source: SourceStatus
    port: PortStatus
    process: ProcessStatus
    tables: tuple[TableStatus, ...] = ()
    rates: Rates = field(default_factory=Rates)
    archive_seconds: float | None = None
    confirmed_scn: int | None = None
    problems: tuple[str, ...] = ()
    commands: tuple[tuple[str, ...], ...] = ()
    events: tuple[Mapping[str, object], ...] = ()
    data_free_bytes: int | None = None
    data_free_ratio: float | None = None
    target: str = ""
    targets: tuple[str, ...] = ()
    identity: Identity = field(default_factory=Identity)
    loads: tuple[LoadStatus, ...] = ()
    target_problems: Mapping[str, int] = field(default_factory=dict)

    @property
    def health(self) -> str:
        """Return ``failed`` if replication has failed and needs an operator, ``degraded`` if there
        are other problems, and otherwise ``ok``.
        """
        if self.state.name == "STOPPED":
            return "failed"
        return "degraded" if self.problems else "ok"

    def moved(self, seconds: float) -> Status:
        """Return the status with its times adjusted to the machine's current clock.

        Args:
            seconds: number of seconds by which the clock was changed since the times were recorded.
        """
        if not seconds:
            return self
        missing = self.source.missing_since
        threads = (
            replace(one, archived_at=one.archived_at + seconds) for one in self.source.threads
        )
        tables = (
            one if one.held_since is None else replace(one, held_since=one.held_since + seconds)
            for one in self.tables
        )
        return replace(
            self,
            at=self.at + seconds,
            started_at=self.started_at + seconds,
            state=replace(self.state, since=self.state.since + seconds),
            source=replace(
                self.source,
                threads=tuple(threads),
                missing_since=None if missing is None else missing + seconds,
            ),
            tables=tuple(tables),
            loads=tuple(replace(one, began=one.began + seconds) for one in self.loads),
        )

    def lag_of(self, table: TableStatus) -> Lag | None:
        """Return the lag of a table; None if it is unknown which changes the table lacks.

        The lag is unknown before redo is read, and before a client has requested a start position.
        """
        is_seen = self.archive_seconds is not None or self.source.threads
        is_known = is_seen and self.state.name not in _NOTHING_ASKED
        return table.lag if is_known or table.lag_seconds or table.stopped else None

    def as_record(self) -> dict[str, Any]:
        """Return the status as JSON; an unknown position or lag is null."""
        return self._record(self.tables)

    def as_shown(self, wanted: str) -> dict[str, Any]:
        """Return the status as JSON for the page: with the first tables by `TableStatus.rank`, and
        in `shown` the numbers of all tables, of those that match, and of loads, and the largest
        lag.

        Args:
            wanted: a text that the names of the tables contain, in upper or lower case.
        """
        found = matching(self.tables, wanted)
        chosen = heapq.nsmallest(TABLES_SHOWN, found, key=lambda one: one.rank)
        known = (one.lag_seconds for one in self.tables if self.lag_of(one) is not None)
        loads = sorted(self.loads, key=lambda one: not one.is_begun)[:TABLES_SHOWN]
        return {
            **replace(self, loads=tuple(loads))._record(chosen),
            "shown": {
                **shown_counts(self.tables, found),
                "lag_seconds": max(known, default=None),
                "loads": len(self.loads),
            },
        }

    def _record(self, tables: Sequence[TableStatus]) -> dict[str, Any]:
        # `asdict` takes long for many tables.
        record: dict[str, Any] = asdict(replace(self, tables=()))
        if not self.targets:
            del record["target"], record["targets"]
        record["state"]["words"] = self.state.words
        if self.source.oldest_open_xid is None:
            record["source"]["oldest_open_seconds"] = None
        record["tables"] = [self._table_record(table) for table in tables]
        return {"health": self.health, **record}

    def _table_record(self, table: TableStatus) -> dict[str, Any]:
        record: dict[str, Any] = {name: getattr(table, name) for name in _TABLE_FIELDS}
        lag = self.lag_of(table)
        record["lag"] = None if lag is None else lag._asdict()
        record["lag_seconds"] = None if lag is None else table.lag_seconds
        return record


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_Table = TypeVar("_Table", bound=_Named)


def matching(tables: Sequence[_Table], wanted: str) -> list[_Table]:
    """Return the tables whose names contain a text, in upper or lower case."""
    text = wanted.lower()
    return [one for one in tables if text in one.name.lower()]


def shown_counts(tables: Sequence[object], found: Sequence[object]) -> dict[str, Any]:
    """Return the number of all tables, and of those that match, for the page."""
    return {"tables": len(tables), "matching": len(found)}


class ServedStatus(Protocol):
    """A status that the page can show: the status of an appliance (`Status`) or of a fallback."""

    @property
    def at(self) -> float:
        """The time of the status."""

    @property
    def state(self) -> StageState:
        """The current state."""

    @property
    def problems(self) -> tuple[str, ...]:
        """Problems that an operator must solve, as text."""

    @property
    def health(self) -> str:
        """``ok``, ``degraded`` or ``failed``."""

    def as_record(self) -> dict[str, Any]:
        """Return the status as JSON."""

    def as_shown(self, wanted: str) -> dict[str, Any]:
        """Return the status as JSON for the page, with at most `TABLES_SHOWN` of the tables whose
        names contain `wanted`.
        """


def overall_health(statuses: Sequence[ServedStatus]) -> str:
    """Return the health of all targets: ``failed`` if all have failed, ``degraded`` if at least one
    is not ok.
    """
    found = {status.health for status in statuses}
    return found.pop() if len(found) == 1 else "degraded"
