"""The status of a running appliance, as values: what the page, the metrics and the command show.

Times are seconds of Unix time, ages and lags seconds, SCNs plain integers. A position that nobody
knows yet, or that there is not, is None, and null as JSON (`Status.as_record`): nobody takes it for
one.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

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
    "TARGET_BEHIND": "All decoded, the target is behind",
    "WAITING_FOR_REDO": "Waiting for a log that is missing",
    "WAITING_FOR_SOURCE": "Waiting for the source",
    "WAITING_FOR_TARGET": "Waiting for the target",
    "WAITING_FOR_DISK": "Waiting for room on the disk",
    "PAUSED": "Paused",
    "STOPPING": "Stopping",
    "STOPPED": "Stopped",
}
"""Each state in words, for people; scripts and alarms read the names."""

_NOTHING_ASKED: Final = frozenset(("LOADING", "STARTING", "WAITING_FOR_CLIENT"))
"""States in which nobody has said where to start."""


@dataclass(frozen=True, slots=True)
class StageState:
    """Says what the appliance does, or why it waits.

    Attributes:
        name: such as WAITING_FOR_REDO.
        since: when that began.
        reason: the error that says why, as printed; None where the name says it all.
    """

    name: str
    since: float
    reason: str | None = None

    @property
    def words(self) -> str:
        """The name in words."""
        return STATE_WORDS.get(self.name, self.name)


@dataclass(frozen=True, slots=True)
class Identity:
    """Says who replicates, from where and to where; each is empty where that is not known.

    There is no user and no password in it.

    Attributes:
        instance: how the appliance calls itself.
        config: the path of its configuration file.
        source, container: the database and its container.
        source_place: how its redo is come by.
        target: host and database that the bundled applier writes to.
        subscription: its name in the target's ledger.
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
    """The initial load of a table, which is not in yet.

    Attributes:
        scn: as of which its rows are.
        parts, parts_done: partitions in all, and those that are in.
        rows, bytes: that are in.
        began: in seconds of Unix time.
        rows_expected: as far as the source tells.
    """

    table: str
    scn: int
    parts: int
    parts_done: int
    rows: int
    bytes: int
    began: float
    rows_expected: int | None = None


@dataclass(frozen=True, slots=True)
class ThreadStatus:
    """A redo thread.

    Attributes:
        archived_sequence, archived_scn: the last log that is there, and its exclusive end; of an
            online log, how far it is written.
        archived_at: when the newest redo of it was written.
        decoded_sequence: the last log that was read to its end.
        decoded_scn: up to which the thread has been read.
        holds_back: whether finished transactions of other threads wait for redo of this one.
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
    """Logs and decoding.

    Attributes:
        decoded_scn: every transaction that commits below it has been decoded.
        logs, redo_bytes: decoded so far.
        splits_here, splits_by_spark: parts of logs decoded in this process, and by Spark's workers.
        transactions, rows: committed ones decoded so far, and their row changes.
        rows_filtered, transactions_filtered: row changes, and transactions with all of theirs, that
            `filter` leaves out.
        lob_unavailable, lob_unclaimed: LOB values left out because they are not whole in the redo,
            and LOBs changed without a change of their row.
        gaps: missing logs, in words.
        missing_since: since when redo is missing, by our clock; None where none is.
        waiting_transactions: finished ones that wait for other redo threads.
        open_transactions: how many are not finished.
        oldest_open_xid, oldest_open_scn: the one that began first, and where; None without one.
        oldest_open_seconds: since the log with its begin was written.
        spilled_bytes: of transactions that wait on disk.
        losses: of the account of decoding; not 0 means that something is unaccounted for.
        not_interpreted: vectors that nothing interprets, by their kind.
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
    """A port of the protocol, and the ready queue behind it.

    Attributes:
        client: who replicates.
        refused: connections by the code of the error.
        saved_scn: what GetSavedSCN answers.
        taken_scn: the client has taken every transaction that commits below it.
        ready, transmitted: transactions to be taken, and to be confirmed.
        bytes_max, transactions_max: past which decoding waits, or more goes to disk.
        spilled_bytes: of ready transactions on disk, where there are several targets.
        silent_seconds: since the client asked for something; the queue and `saved_scn` wait for it.
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
        applied_scn: commit SCN of the last transaction that is in the table, in this run or before
            it. A stopped table's is just below `held_scn`.
        waiting: changes that it has received and not applied.
        inserted, updated, deleted, conflicts, transactions: in this run.
        stopped: the error that stopped it.
        lag: by causes.
        lag_seconds: their sum.
        altered: values of this run that PostgreSQL cannot hold as they are, changed by a policy.
        held_scn: of a stopped table the commit SCN of its first held change: it lacks everything
            from there on. None where nothing is held.
        held_since: when that was held; None where nothing is.
        incomplete: LOB values that it lacks, as olr_pg.incomplete lists them.
        paused: somebody has paused it: its changes are held until it is resumed.
        error_id: of a stopped table the number of its error in olr_pg.error.
        blocked: who holds it up in PostgreSQL, with what to do; None where nobody does.
        behind: the table that it waits behind: both are one worker's, and that one's changes take
            most of the worker's time. None where it waits behind none.
        verified_scn, verified_at: as of which SCN it was compared with the source's, and when; None
            where it never was.
        differences: rows that differed then.
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


@dataclass(frozen=True, slots=True)
class Rates:
    """Per second, over the last ten or so."""

    redo_bytes: float = 0.0
    decoded_rows: float = 0.0
    applied_changes: float = 0.0


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """This process; Java and PostgreSQL are others."""

    pid: int
    resident_bytes: int
    descriptors: int
    threads: int
    memory_max_bytes: int


@dataclass(frozen=True, slots=True)
class Status:
    """Is the status of everything, at a moment.

    Attributes:
        archive_seconds: since the newest redo that is here was written: so much more may be missing
            that is not here yet. None before the first log.
        confirmed_scn: the highest that the bundled applier has confirmed, in this run or before it.
        problems: what needs somebody, in words.
        commands: for each problem the commands that help, complete, to be copied.
        events: the latest warnings and errors, the newest last.
        data_free_bytes: room left where `context.data` is; None where nobody knows.
        data_free_ratio: the same as a part of all that is there, 0 to 1.
        target: which of several targets it is about; empty where there is only one.
        targets: the names of all of them then.
        identity: who this is.
        loads: initial loads that are under way.
        target_problems: what makes the target slow or full, how many of each code
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
        """``failed`` where nothing goes on without somebody, ``degraded`` where some does not."""
        if self.state.name == "STOPPED":
            return "failed"
        return "degraded" if self.problems else "ok"

    def moved(self, seconds: float) -> Status:
        """Return the status with its moments as the machine's clock has them now.

        Args:
            seconds: by how much that was moved since they were taken.
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
        """Return the lag of a table; None where nobody knows what it may lack.

        So it is before any redo was seen, and while nobody has said where to start.
        """
        is_seen = self.archive_seconds is not None or self.source.threads
        is_known = is_seen and self.state.name not in _NOTHING_ASKED
        return table.lag if is_known or table.lag_seconds or table.stopped else None

    def as_record(self) -> dict[str, Any]:
        """Return the status for JSON: null where a position or a lag is not known."""
        record: dict[str, Any] = asdict(self)
        if not self.targets:
            del record["target"], record["targets"]
        record["state"]["words"] = self.state.words
        if self.source.oldest_open_xid is None:
            record["source"]["oldest_open_seconds"] = None
        for table, status in zip(record["tables"], self.tables, strict=True):
            lag = self.lag_of(status)
            table["lag"] = None if lag is None else lag._asdict()
            table["lag_seconds"] = None if lag is None else status.lag_seconds
        return {"health": self.health, **record}


class ServedStatus(Protocol):
    """A status that the page takes: of an appliance (`Status`), or of a way back."""

    @property
    def at(self) -> float:
        """When it was so."""

    @property
    def state(self) -> StageState:
        """What goes on."""

    @property
    def problems(self) -> tuple[str, ...]:
        """What needs an operator, in words."""

    @property
    def health(self) -> str:
        """``ok``, ``degraded`` or ``failed``."""

    def as_record(self) -> dict[str, Any]:
        """Return the status for JSON."""


def overall_health(statuses: Sequence[ServedStatus]) -> str:
    """Sum up all targets: ``failed`` where none goes on, ``degraded`` where one is not ok."""
    found = {status.health for status in statuses}
    return found.pop() if len(found) == 1 else "degraded"
