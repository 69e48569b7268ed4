"""The settings of the applier; the commands build them from the configuration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.applier.altered_values import AlteredValues
from olr_pg.datatypes.choices import DEFAULT_CHOICES, Choices
from olr_pg.datatypes.convert import DEFAULT_FACTS, DatabaseFacts
from olr_pg.datatypes.policies import DEFAULT_POLICIES, Policies
from olr_pg.wire.frames import ByteOrder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from olr_pg.dictionary.evolution import DdlKind, Step
    from olr_pg.dictionary.model import Table

START_SECONDS: Final = 180.0
"""Default for how long an unreachable target is retried at the start."""


ANSWER_SECONDS: Final = 15.0
"""Default time limit for a statement whose answer is lost."""


class ConflictPolicy(Enum):
    """What to do with a change whose row is missing, or an insert whose row already exists.

    Facts: architecture, “Applying”.
    """

    ERROR = "error"
    SKIP = "skip"
    OVERWRITE = "overwrite"


class DdlPolicy(Enum):
    """What to do in the target with one kind of DDL of the source.

    Attributes:
        FOLLOW: the target goes along with it.
        STOP: the table stops with it.
        IGNORE: the target stays unchanged, and the table continues.
        REPORT: so does it, and the SQL for the target is noted in `olr_pg.structure`.
    """

    FOLLOW = "follow"
    REPORT = "report"
    STOP = "stop"
    IGNORE = "ignore"


class TriggerHandling(Enum):
    """How to prevent ordinary triggers and foreign keys from firing.

    Attributes:
        REPLICA: ``session_replication_role = replica``, which needs a privilege.
        DISABLE: they are disabled until the cut-over (`target.set_aside`).
    """

    REPLICA = "replica"
    DISABLE = "disable"


class UnloggedPolicy(Enum):
    """What to do with UNLOGGED target tables, which a crash of PostgreSQL empties.

    Attributes:
        REFUSE: stop the table before anything is written.
        ACCEPT: replicate it; stop it after a crash (`target.crash_watch`).
    """

    REFUSE = "refuse"
    ACCEPT = "accept"


class Consistency(Enum):
    """The unit that is applied atomically: a transaction's changes of each table, or of all
    tables.
    """

    TABLE = "table"
    TRANSACTION = "transaction"


class IncompletePolicy(Enum):
    """What to do with a change whose LOB value is missing."""

    NULL = "null"
    STOP = "stop"
    FETCH = "fetch"


class TargetSql(NamedTuple):
    """Statements that make something in the target, which may be run again after a crash.

    Attributes:
        name: of what they make.
        statements: each is to be committed by itself; empty if there is a `reason`.
        present: a query that returns one boolean: whether the target already has the result of
            `statements`; empty if there is no such query.
        reason: why it cannot be made; empty if it can.
    """

    name: str
    statements: tuple[str, ...] = ()
    present: str = ""
    reason: str = ""


TranslateStep = Callable[["ApplierSettings", "Table", "Step"], TargetSql]
"""Translates what a step makes: an index, a constraint, or a virtual column of the table."""


def not_translated(_: ApplierSettings, __: Table, step: Step) -> TargetSql:
    """Translate nothing; the default in place of `schema.followed_steps`."""
    return TargetSql("", reason=f"{step}, and this program does not translate it")


class KnownLedger(NamedTuple):
    """What a dictionary has of the way back to one container.

    Attributes:
        accounts: as `target.way_back_lives.account_text`; more than one if it was
            dropped and created again.
        scn: of the dictionary; it follows later DDL.
        has_ledger: the dictionary contains the ledger's table.
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
        table_query: the TableList query, two columns: owner, table.
        start_scn: for StartSCN if the server has no saved SCN.
        subscription: names this stream in the ledger.
        workers: number of connections that apply, 1 or more; each table belongs to one of them.
        consistency: see `Consistency`; with whole transactions one connection applies.
        batch_changes: number of changes after which the target transaction commits, at the end of a
            source transaction; a batch with half of them starts without waiting for more.
        batch_milliseconds: maximum time that a change waits for others before its batch is applied.
        batch_bytes: like `batch_changes`, in bytes of values; a fourth of `queue_bytes`, so that
            there is room for four batches: waiting for the disk, being applied, ready, and being
            collected.
        queue_bytes: maximum unconfirmed bytes, as the server counts them, before nothing more is
            requested; well below the limit of the server's queue, because more data and
            confirmations are in flight.
        spool_bytes: bytes of an open source transaction above which it is moved to the spool.
        spool_directory: of the spool; None for the system's directory of temporary files.
        applied_file: the file that records what the target has on disk (`target.applied_file`);
            None to keep it in memory.
        spool_max: maximum bytes of all spooled transactions together; None for no limit.
        held_max: maximum bytes of a table's held changes; exceeding it ends the run (5023). None
            for no limit.
        copy_rows: number of inserts from which COPY is used instead of an array parameter.
        create_tables: whether to create missing target schemas and tables.
        schema_names: Oracle owner → PostgreSQL schema, if it differs from the default.
        table_names: ``OWNER.NAME`` → ``schema.name`` (exact names, not folded).
        containers: the names of the source's containers, if several; owners can begin with them.
        conflict: see `ConflictPolicy`.
        ddl: see `DdlPolicy`; the default is `FOLLOW`.
        triggers: see `TriggerHandling`.
        unlogged: see `UnloggedPolicy`.
        incomplete: `IncompletePolicy` by shell patterns of ``OWNER.NAME.COLUMN``; the first match
            counts; the default is `NULL`.
        retry_seconds: how long one failing target transaction is retried before the session
            restarts from the last confirmed position; `rewinds` such restarts in a row without
            progress end the run.
        outage_seconds: how long a target that becomes unreachable is retried; None for no limit
            (then `start_seconds` applies to a run with `once`).
        start_seconds: how long a target that is unreachable at the start is retried.
        answer_seconds: time limit for a statement whose answer is lost (`statement_watch`).
        poll_milliseconds: pause after NoMore.
        window: maximum number of requests in flight.
        byte_order: of the protocol (`target.byte-order`).
        facts, policies: for the conversion of values.
        choices: the chosen types and names (`datatypes.choices`).
        dbid: of the source's container; None if unknown.
        known_ledgers: what the dictionary has of the way back (`target.way_back_lives`).
        translate: see `TranslateStep`.
        losses: counts what the policies change.
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
        """Return what to do if a value of a column (of ``OWNER.NAME``) is missing."""
        name = f"{table}.{column}"
        fitting = (
            policy
            for pattern, policy in self.incomplete.items()
            if fnmatchcase(name, pattern) or fnmatchcase(name, pattern.upper())
        )
        return next(fitting, IncompletePolicy.NULL)
