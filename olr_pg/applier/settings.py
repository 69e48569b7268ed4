"""The settings of the applier; the commands build them from the configuration."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from enum import Enum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import structlog

from olr_pg.datatypes.choices import DEFAULT_CHOICES, Choices
from olr_pg.datatypes.convert import DEFAULT_FACTS, DatabaseFacts
from olr_pg.datatypes.policies import DEFAULT_POLICIES, NOTHING, Counters, Policies
from olr_pg.wire.frames import ByteOrder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from olr_pg.dictionary.evolution import DdlKind, Step
    from olr_pg.dictionary.model import Table

_log = structlog.get_logger(__name__)


class AlteredValues:
    """Counts of changed values, by table and column; thread-safe.

    If a batch is converted again, its values are counted again. A copy that is sent to another
    process starts with empty counts.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sums: dict[tuple[str, str], Counters] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return AlteredValues, ()

    def add(self, table: str, column: str, lost: Counters) -> None:
        """Count changed values of a column. Log a warning when the first value of each kind is
        changed.
        """
        if lost == NOTHING:
            return
        with self._lock:
            before = self._sums.get((table, column), NOTHING)
            self._sums[table, column] = before + lost
        known = asdict(before)
        news = {kind: count for kind, count in asdict(lost).items() if count and not known[kind]}
        if news:
            _log.warning(
                "values were changed to fit the target, as the configured policies allow",
                table=table,
                column=column,
                **news,
            )

    def of(self, table: str) -> int:
        """Return the number of changed values of a table."""
        with self._lock:
            sums = [lost for (name, _), lost in self._sums.items() if name == table]
        return sum(sum(asdict(lost).values()) for lost in sums)


START_SECONDS: Final = 180.0
"""Default for how many seconds an unreachable target is retried at the start."""


ANSWER_SECONDS: Final = 15.0
"""Default time limit in seconds for a statement whose answer is lost."""


class ConflictPolicy(Enum):
    """What to do with a change if its row is missing in the target, or with an insert if its row
    already exists there.

    Facts: architecture, “Applying”.
    """

    ERROR = "error"
    SKIP = "skip"
    OVERWRITE = "overwrite"


class DdlPolicy(Enum):
    """What to do in the target with one kind of DDL of the source.

    Attributes:
        FOLLOW: make the same change in the target.
        STOP: stop the table.
        IGNORE: do not change the target, and continue.
        REPORT: like IGNORE, but record the SQL for the target in `olr_pg.structure`.
    """

    FOLLOW = "follow"
    REPORT = "report"
    STOP = "stop"
    IGNORE = "ignore"


class TriggerHandling(Enum):
    """How to prevent ordinary triggers and foreign keys from firing.

    Attributes:
        REPLICA: set ``session_replication_role = replica``, which needs a privilege.
        DISABLE: disable triggers and drop foreign keys until the cut-over (`target.set_aside`).
    """

    REPLICA = "replica"
    DISABLE = "disable"


class UnloggedPolicy(Enum):
    """What to do with UNLOGGED target tables, which a crash of PostgreSQL empties.

    Attributes:
        REFUSE: stop the table before anything is written.
        ACCEPT: replicate the table, and stop it after a crash (`target.crash_watch`).
    """

    REFUSE = "refuse"
    ACCEPT = "accept"


class Consistency(Enum):
    """The unit that is applied atomically: a transaction's changes of one table (TABLE), or of all
    tables (TRANSACTION).
    """

    TABLE = "table"
    TRANSACTION = "transaction"


class IncompletePolicy(Enum):
    """What to do with a change whose LOB value is missing."""

    NULL = "null"
    STOP = "stop"
    FETCH = "fetch"


class TargetSql(NamedTuple):
    """Statements that create or change an object in the target. After a crash, the statements may
    be executed again.

    Attributes:
        name: the name of the object.
        statements: each must be committed in its own transaction. Empty if there is a `reason`.
        present: a query that returns one boolean: whether the target already has the result of
            `statements`; empty if there is no such query.
        reason: why there is no SQL for the change; empty if there is.
    """

    name: str
    statements: tuple[str, ...] = ()
    present: str = ""
    reason: str = ""


TranslateStep = Callable[["ApplierSettings", "Table", "Step"], TargetSql]
"""A function that returns the SQL for an index, a constraint, or a virtual column that a step of
DDL makes.
"""


def not_translated(_: ApplierSettings, __: Table, step: Step) -> TargetSql:
    """Return no SQL. This function is the default; the appliance uses `schema.followed_steps`
    instead.
    """
    return TargetSql("", reason=f"{step}, which this program cannot translate")


class KnownLedger(NamedTuple):
    """The data in a dictionary about the way back to one container: its accounts, and whether the
    dictionary contains the ledger.

    Attributes:
        accounts: as returned by `target.way_back_lives.account_text`; more than one if the account
            was dropped and created again.
        scn: the SCN of the dictionary. The decoder follows DDL after this SCN.
        has_ledger: whether the dictionary contains the ledger's table.
    """

    container: str
    accounts: frozenset[str]
    scn: int
    has_ledger: bool


@dataclass(frozen=True, slots=True)
class ApplierSettings:
    """The applier's settings.

    Attributes:
        connect_string: libpq connection string or URL of the target.
        table_query: the query of the request TableList, with two columns: owner and table.
        start_scn: the SCN of the request StartSCN if the server has no saved SCN.
        subscription: the name under which the ledger records this stream of changes.
        workers: the number of workers, at least 1. Each worker has one connection, and each table
            belongs to one worker.
        consistency: see `Consistency`. With TRANSACTION there is one worker.
        batch_changes: a batch ends at the end of the source transaction with which it reaches this
            number of changes. If nothing is being applied, a batch starts with half of this number.
        batch_milliseconds: maximum time that a change waits for others before its batch is applied.
        batch_bytes: like `batch_changes`, in bytes of values. The limit is a fourth of
            `queue_bytes`, so that there is space for four batches: one that waits for the disk, one
            that is applied, one that is ready, and one that is collected.
        queue_bytes: if more bytes are unconfirmed, nothing more is requested. This limit must be
            well below the limit of the server's queue, because more data and confirmations are in
            flight.
        spool_bytes: if more bytes of a source transaction arrive before its Commit, it is moved to
            the spool.
        spool_directory: the directory of the spool; None for the system's directory of temporary
            files.
        applied_file: the file that records what the target has on disk (`target.applied_file`);
            None to keep it in memory.
        spool_max: maximum bytes of all spooled transactions together; None for no limit.
        held_max: maximum bytes of the held changes of one table. If a table's held changes exceed
            this limit, the run ends with error 5023. None for no limit.
        copy_rows: if a statement has at least this many inserts, COPY is used instead of an array.
        create_tables: whether to create missing target schemas and tables.
        schema_names: the PostgreSQL schema of each Oracle owner, if it differs from the default.
        table_names: ``schema.name`` of the target table by ``OWNER.NAME``. Letter case matters.
        containers: the names of the source's containers, if there are several; owners can
            then begin with the name of a container.
        conflict: see `ConflictPolicy`.
        ddl: the `DdlPolicy` by kind of DDL. For a kind that is missing here, it is FOLLOW, but
            REPORT for indexes and constraints.
        triggers: see `TriggerHandling`.
        unlogged: see `UnloggedPolicy`.
        incomplete: the `IncompletePolicy` by shell patterns of ``OWNER.NAME.COLUMN``. The first
            pattern that matches counts; without a match, it is NULL.
        retry_seconds: how long a failing target transaction is retried before the session restarts
            from the last confirmed position. If more than `rewinds` such restarts in a row make no
            progress, the run ends.
        outage_seconds: how long the target is retried if it becomes unreachable. None for no limit,
            except that a run with `once` then uses `start_seconds`.
        start_seconds: how long the target is retried if it is unreachable at the start.
        answer_seconds: time limit for a statement whose answer is lost (`statement_watch`).
        poll_milliseconds: how long to wait before the next request if the server answered NoMore.
        window: maximum number of requests in flight.
        byte_order: the byte order of the protocol (`target.byte-order`).
        facts, policies: the properties of the source database and the policies with which values
            are converted.
        choices: the configured types and names (`datatypes.choices`).
        dbid: the DBID of the source's container; None if unknown.
        known_ledgers: what the dictionary contains of the way back (`target.way_back_lives`).
        translate: see `TranslateStep`.
        losses: counts the values that the policies change.
    """

    connect_string: str
    host: str
    port: int
    table_query: str
    start_scn: int = 0
    subscription: str = "olr_pg"
    workers: int = 1
    consistency: Consistency = Consistency.TABLE
    batch_changes: int = 40_000
    batch_milliseconds: int = 200
    batch_bytes: int = 18 << 20
    queue_bytes: int = 72 << 20
    spool_bytes: int = 16 << 20
    spool_directory: Path | None = None
    applied_file: Path | None = None
    spool_max: int | None = None
    held_max: int | None = None
    copy_rows: int = 2_000
    create_tables: bool = False
    schema_names: Mapping[str, str] = field(default_factory=dict)
    table_names: Mapping[str, str] = field(default_factory=dict)
    containers: tuple[str, ...] = ()
    conflict: ConflictPolicy = ConflictPolicy.ERROR
    ddl: Mapping[DdlKind, DdlPolicy] = field(default_factory=dict)
    triggers: TriggerHandling = TriggerHandling.REPLICA
    unlogged: UnloggedPolicy = UnloggedPolicy.REFUSE
    incomplete: Mapping[str, IncompletePolicy] = field(default_factory=dict)
    retry_seconds: float = 30.0
    rewinds: int = 5
    outage_seconds: float | None = None
    start_seconds: float = START_SECONDS
    answer_seconds: float = ANSWER_SECONDS
    poll_milliseconds: int = 100
    window: int = 16_384
    byte_order: ByteOrder = ByteOrder.LITTLE
    facts: DatabaseFacts = DEFAULT_FACTS
    policies: Policies = DEFAULT_POLICIES
    choices: Choices = DEFAULT_CHOICES
    dbid: int | None = None
    known_ledgers: tuple[KnownLedger, ...] = ()
    translate: TranslateStep = field(default=not_translated, compare=False, repr=False)
    losses: AlteredValues = field(default_factory=AlteredValues, compare=False, repr=False)

    @property
    def is_replica(self) -> bool:
        """Return whether connections that write set ``session_replication_role = replica``."""
        return self.triggers is TriggerHandling.REPLICA

    def incomplete_policy(self, table: str, column: str) -> IncompletePolicy:
        """Return what to do if a LOB value of a column of ``OWNER.NAME`` is missing."""
        name = f"{table}.{column}"
        fitting = (
            policy
            for pattern, policy in self.incomplete.items()
            if fnmatchcase(name, pattern) or fnmatchcase(name, pattern.upper())
        )
        return next(fitting, IncompletePolicy.NULL)
