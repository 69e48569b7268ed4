"""The status of a running appliance, as values: what the page, the metrics and the command show.

Times are seconds of Unix time, ages and lags seconds, SCNs plain integers with 0 for none.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from olr_pg.monitor.lag import Lag

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


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


@dataclass(frozen=True, slots=True)
class ThreadStatus:
    """A redo thread.

    Attributes:
        archived_sequence, archived_scn: the last log that is there, and its exclusive end.
        archived_at: when that log was written.
        decoded_sequence: the last log that was read to its end; 0 for none.
        decoded_scn: up to which the thread has been read.
    """

    thread: int
    archived_sequence: int
    archived_scn: int
    archived_at: float
    decoded_sequence: int
    decoded_scn: int


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

    decoded_scn: int = 0
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
    oldest_open_scn: int = 0
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
    saved_scn: int = 0
    taken_scn: int = 0
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
            it; 0 for none. A stopped table's is just below `held_scn`.
        waiting: changes that it has received and not applied.
        inserted, updated, deleted, conflicts, transactions: in this run.
        stopped: the error that stopped it.
        lag: by causes.
        lag_seconds: their sum.
        altered: values of this run that PostgreSQL cannot hold as they are, changed by a policy.
        held_scn: of a stopped table the commit SCN of its first held change: it lacks everything
            from there on. 0 where nothing is held.
        held_since: when that was held; None where nothing is.
        incomplete: LOB values that it lacks, as olr_pg.incomplete lists them.
    """

    name: str
    applied_scn: int = 0
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
    held_scn: int = 0
    held_since: float | None = None
    incomplete: int = 0


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
        at: the moment.
        archive_seconds: since the last archived log was written: so much more may be missing that
            Oracle has not archived yet. None before the first log.
        confirmed_scn: the highest that the bundled applier has confirmed, in this run or before it.
        problems: what needs somebody, in words.
        events: the latest warnings and errors, the newest last.
        data_free_bytes: room left where `context.data` is; None where nobody knows.
        target: which of several targets it is about; empty where there is only one.
        targets: the names of all of them then.
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
    confirmed_scn: int = 0
    problems: tuple[str, ...] = ()
    events: tuple[Mapping[str, object], ...] = ()
    data_free_bytes: int | None = None
    target: str = ""
    targets: tuple[str, ...] = ()

    @property
    def health(self) -> str:
        """``failed`` where nothing goes on without somebody, ``degraded`` where some does not."""
        if self.state.name == "STOPPED":
            return "failed"
        return "degraded" if self.problems else "ok"

    def as_record(self) -> dict[str, Any]:
        """Return the status for JSON."""
        record = asdict(self)
        if not self.targets:
            del record["target"], record["targets"]
        for table, status in zip(record["tables"], self.tables, strict=True):
            table["lag"] = status.lag._asdict()
        return {"health": self.health, **record}


def overall_health(statuses: Sequence[Status]) -> str:
    """Sum up all targets: ``failed`` where none goes on, ``degraded`` where one is not ok."""
    found = {status.health for status in statuses}
    return found.pop() if len(found) == 1 else "degraded"
