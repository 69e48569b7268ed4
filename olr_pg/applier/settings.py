"""The settings of the applier: built by the command line from the configuration."""

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
"""How long a target that cannot be reached at the start is tried again, unless it is said."""


ANSWER_SECONDS: Final = 15.0
"""After so long a statement that is lost is given up, where no configuration says otherwise."""


class ConflictPolicy(Enum):
    """The treatment of a change that finds no row, or finds one where none may be.

    Facts: architecture, “Applying”.
    """

    ERROR = "error"
    SKIP = "skip"
    OVERWRITE = "overwrite"


class DdlPolicy(Enum):
    """The treatment of one kind of DDL of the source in the target.

    Attributes:
        FOLLOW: the target goes along with it.
        STOP: the table stops with it.
        IGNORE: the target stays as it is, and the table goes on.
        REPORT: so does it, and the SQL for the target is noted in `olr_pg.structure`.
    """

    FOLLOW = "follow"
    REPORT = "report"
    STOP = "stop"
    IGNORE = "ignore"


class TriggerHandling(Enum):
    """The way in which ordinary triggers and foreign keys are kept from firing.

    Attributes:
        REPLICA: ``session_replication_role = replica``, which the role must be allowed to set.
        DISABLE: they are set aside until the cut-over (`target.set_aside`).
    """

    REPLICA = "replica"
    DISABLE = "disable"


class UnloggedPolicy(Enum):
    """The treatment of UNLOGGED target tables, which a crash of PostgreSQL empties.

    Attributes:
        REFUSE: their tables stop before anything is written.
        ACCEPT: they are replicated; after a crash their tables stop (`target.crash_watch`).
    """

    REFUSE = "refuse"
    ACCEPT = "accept"


class Consistency(Enum):
    """The unit that is applied whole: a transaction's changes of each table, or all of them."""

    TABLE = "table"
    TRANSACTION = "transaction"


class IncompletePolicy(Enum):
    """The treatment of a change of which a LOB value is left out."""

    NULL = "null"
    STOP = "stop"
    FETCH = "fetch"


class TargetSql(NamedTuple):
    """Statements that make something in the target, which may be run again after a crash.

    Attributes:
        name: of what they make.
        statements: each is to be committed by itself; none where there is a `reason`.
        present: a query that tells whether the target has it: one boolean; empty where none does.
        reason: why it cannot be made; empty where it can.
    """

    name: str
    statements: tuple[str, ...] = ()
    present: str = ""
    reason: str = ""


TranslateStep = Callable[["ApplierSettings", "Table", "Step"], TargetSql]
"""Translates what a step makes: an index, a constraint, or a virtual column of the table."""


def not_translated(_: ApplierSettings, __: Table, step: Step) -> TargetSql:
    """Stand in where nobody translates (`schema.followed_steps` does)."""
    return TargetSql("", reason=f"{step}, and this program does not translate it")


@dataclass(frozen=True, slots=True)
class ApplierSettings:
    """The applier's settings.

    Attributes:
        connect_string: libpq connection string or URL of the target.
        table_query: the TableList query, two columns: owner, table.
        start_scn: for StartSCN where the server has no saved SCN.
        subscription: names this stream in the ledger.
        workers: connections that apply, 1 or more; each table belongs to one of them.
        consistency: see `Consistency`; whole transactions are applied by one connection.
        batch_changes: changes after which a target transaction is committed at the next end of a
            source transaction; half of them is not waited for any longer.
        batch_milliseconds: the longest that an applied-to-be change waits for more.
        batch_bytes: the same as `batch_changes` in bytes of values; a fourth of `queue_bytes`, so
            that one can wait for the disk, one be applied, one be ready and one be collected.
        queue_bytes: what may be unconfirmed, as the server counts it, before no more is taken: well
            below the bound of its queue, since more is on the way, and confirmations are, too.
        spool_bytes: values of an open source transaction past which it goes to the spool.
        spool_directory: of the spool; None the system's for temporary files.
        applied_file: keeps what the target has on disk (`target.applied_file`); None: memory does.
        spool_max: bytes of all spooled transactions at a time; None = what the disk has.
        held_max: bytes of a table's held changes; more end the run (5023). None = no limit.
        copy_rows: inserts from which on COPY is used instead of one array parameter.
        create_tables: create missing target schemas and tables.
        schema_names: Oracle owner → PostgreSQL schema, where the default folding is not wanted.
        table_names: ``OWNER.NAME`` → ``schema.name`` (exact names, not folded).
        containers: of the source, where it is several: owners may begin with their names.
        conflict: see `ConflictPolicy`.
        ddl: see `DdlPolicy`; `FOLLOW` where nothing is said.
        triggers: see `TriggerHandling`.
        unlogged: see `UnloggedPolicy`.
        incomplete: `IncompletePolicy` by shell patterns of ``OWNER.NAME.COLUMN``; the first that
            fits holds, `NULL` where none does.
        retry_seconds: how long one failing target transaction is tried again before the session
            is rewound; `rewinds` such rewinds in a row without progress end the run.
        outage_seconds: how long a target that goes away is tried again; None as long as it takes,
            and `start_seconds` for a run that is to end by itself.
        start_seconds: how long a target that cannot be reached at the start is tried again.
        answer_seconds: after which a statement that is lost is given up (`statement_watch`).
        poll_milliseconds: pause after NoMore.
        window: most requests in flight.
        byte_order: of the protocol (`target.byte-order`).
        facts, policies: for the conversion of values.
        choices: what is chosen of types and names (`datatypes.choices`).
        dbid: of the source's container; None where it is not known.
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
    translate: TranslateStep = field(default=not_translated, compare=False, repr=False)
    losses: AlteredValues = field(default_factory=AlteredValues, compare=False, repr=False)

    @property
    def is_replica(self) -> bool:
        """Tell whether connections that write set ``session_replication_role = replica``."""
        return self.triggers is TriggerHandling.REPLICA

    def incomplete_policy(self, table: str, column: str) -> IncompletePolicy:
        """Return what to do where a value of a column (of ``OWNER.NAME``) is left out."""
        name = f"{table}.{column}"
        fitting = (
            policy
            for pattern, policy in self.incomplete.items()
            if fnmatchcase(name, pattern) or fnmatchcase(name, pattern.upper())
        )
        return next(fitting, IncompletePolicy.NULL)
