"""Defines the configuration as immutable values: the JSON file of OpenLogReplicator (OLR) with this
project's extensions.

The keys of the file are the field names with hyphens (`min_mb` is ``min-mb``). Validation is
strict: a string is never accepted instead of a number, and unknown keys are rejected.

The sections of the source, the ports, the mappings, the filters and the fallback have modules of
their own; all others are here.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    AliasChoices,
    Discriminator,
    Field,
    PrivateAttr,
    SecretStr,
    Tag,
    model_validator,
)

from olr_pg.config.address import LOOPBACK, Address
from olr_pg.config.changed_tables import FILE_NAME as CHANGES_FILE
from olr_pg.config.changed_tables import TableChanges, read_table_changes
from olr_pg.config.fields import (
    READS_VERSION,
    TABLES,
    ConfigAddress,
    ConfigNetworks,
    ConfigPath,
    ConfigTables,
    SchemaMapping,
    Secret,
    Section,
    Settings,
    SparkMaster,
    TableMapping,
    Version,
    is_secret_property,
    problem,
)
from olr_pg.config.port_sections import (
    ALLOW,
    Fallback,
    Limits,
    Metrics,
    PostgresConnection,
    Status,
    Tls,
)
from olr_pg.config.source_section import OracleSource, Prove, Source
from olr_pg.config.table_patterns import TableName, table_list_query
from olr_pg.config.table_sections import (
    ColumnSection,
    Filter,
    TypesSection,
    ValuePolicies,
    pairs_of,
)
from olr_pg.datatypes.choices import Choices
from olr_pg.datatypes.policies import Policies
from olr_pg.errors import Code, OlrPgError
from olr_pg.scalars import MAX_SCN

if TYPE_CHECKING:
    from collections.abc import Iterator


class Verify(Section):
    """`verify`: whether and how `run` also compares the target's rows with the source's rows."""

    continuous: Literal["off", "report", "repair"] = Field(
        default="off",
        description="compare the tables of the target with the source, one after the other,"
        " repeatedly. report: report differing rows; repair: also repair them",
    )
    share: float = Field(
        default=10.0, gt=0, le=100, description="maximum percentage of the time of one core"
    )
    rows_per_second: float | None = Field(
        default=None,
        ge=1,
        description="maximum number of rows per second that are read from the source; null: no"
        " limit",
    )
    lag_max: float = Field(
        default=60.0,
        ge=0,
        description="seconds; the more a table lags behind, the less is compared; from this lag on,"
        " nothing is compared",
    )
    repairs_per_hour: int = Field(
        default=100,
        ge=1,
        description="maximum number of rows that are repaired in an hour. If more rows differ,"
        " the repairs end, and the status page reports it",
    )


class Spark(Section):
    """`spark`: the Spark session in which the decode jobs run."""

    master: SparkMaster = Field(
        default="local[*,3]",
        description="the Spark master URL; `local[N,F]`: N cores (`*`: all cores), and each task is"
        " tried at most F times, so that the task of a killed worker is retried",
    )
    conf: Settings = Field(
        default_factory=dict, repr=False, description="an object: Spark properties"
    )
    results: ConfigPath | None = Field(
        default=None,
        description="a directory for the decoded changes, which the appliance and all workers of"
        " a Spark cluster share. Without such a directory, Spark's Java processes transfer the"
        " decoded changes",
    )


class Log(Section):
    """`log`: the level and the format of the log, which is written to stderr."""

    level: int = Field(
        default=3,
        ge=0,
        le=4,
        description="0: nothing; 1: only errors that end the appliance, or stop a table or a"
        " target; 2: errors and warnings; 3: also information; 4: also debugging detail",
    )
    format: Literal["human", "json"] = Field(default="human", description="the form of a log line")


MIB: Final = 1024 * 1024

DATA: Final = "olr_data"
"""The default of `context.data`, as in OLR."""

_PASSWORD_PART: Final = re.compile(
    r"""://[^\s:/@]*:([^\s/]+)@|password=('(?:[^'\\]|\\.)*'|[^\s&]+)""", re.IGNORECASE
)

ANSWER_SECONDS: Final = 15.0
SHUTDOWN_SECONDS: Final = 10.0

ONE_TARGET: Final = "[one]"
SEVERAL_TARGETS: Final = "[several]"
"""The mark in the location of a validation error that says that `target` is a list."""


class Memory(Section):
    """`context.memory`: limits on decoded data in memory."""

    min_mb: int = Field(
        default=16,
        ge=1,
        description="accepted for compatibility, without effect: memory is allocated as needed. A"
        " start with this key logs a warning",
    )
    max_mb: int = Field(
        default=512,
        ge=16,
        description="maximum MiB of decoded data in memory. A sixteenth is for open transactions"
        " (above that, the largest are spilled to context.data), a twelfth for ready"
        " transactions, and the rest for processing, for results from Spark and for the"
        " applier",
    )
    max_tx_msgs: int = Field(
        default=10_000,
        ge=1,
        validation_alias=AliasChoices("max-tx-msgs", "max-ts-msgs"),
        serialization_alias="max-tx-msgs",
        description="maximum number of ready transactions; decoding waits when it is reached;"
        " also spelled max-ts-msgs",
    )

    @model_validator(mode="before")
    @classmethod
    def _one_spelling(cls, data: object) -> object:
        if isinstance(data, dict) and {"max-tx-msgs", "max-ts-msgs"} <= data.keys():
            raise problem("only one of max-tx-msgs and max-ts-msgs", show="nothing")
        return data

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min_mb > self.max_mb:
            raise problem(
                f"min-mb ({self.min_mb}) not to be greater than max-mb ({self.max_mb})",
                show="nothing",
            )
        return self


class Context(Section):
    """`context`: the resources that the appliance uses."""

    memory: Memory = Field(default_factory=Memory, description="an object of memory limits")
    data: ConfigPath = Field(
        default=DATA,
        validate_default=True,
        description="the directory for the checkpoint, spilled transactions and the embedded"
        " database",
    )
    max_spill_mb: int | None = Field(
        default=None,
        ge=1,
        description="maximum MiB of open transactions on disk; each target has the same limit for"
        " received transactions on disk. null: no limit except the disk",
    )
    bounded_recovery_mb: int | None = Field(
        default=2048,
        ge=1,
        description="maximum MiB of redo that a restart reads again because of long open"
        " transactions. Transactions that are open for longer are stored on disk. null: a"
        " restart reads from the begin of the oldest open transaction",
    )
    encryption_key: Secret | None = Field(
        default=None,
        description="the key that encrypts files with rows (security.md): 32 bytes in base64; a"
        ' string, "${ENV_NAME}" or {"file": "PATH"}',
    )
    encryption_key_command: list[str] | None = Field(
        default=None,
        min_length=1,
        description="a list: a command and its arguments; the command prints the key."
        " Set only one of encryption-key and encryption-key-command",
    )

    @model_validator(mode="after")
    def _one_key(self) -> Self:
        if self.encryption_key is not None and self.encryption_key_command is not None:
            raise problem("only one of encryption-key and encryption-key-command", show="nothing")
        return self

    @property
    def is_encrypted(self) -> bool:
        """Whether files with rows are encrypted."""
        return self.encryption_key is not None or self.encryption_key_command is not None


class Target(Section):
    """`target`: the network port to which protocol clients connect."""

    address: ConfigAddress = Field(
        default=Address(LOOPBACK, 9700), description='the address to listen on, "host:port"'
    )
    byte_order: Literal["little", "big"] = Field(
        default="little", description="byte order of the protocol's integers"
    )
    chunk_size: int = Field(
        default=MIB, ge=1024, le=1024 * MIB, description="bytes of a LOB value in one Chunk element"
    )
    binary_xml: Literal["text", "raw"] = Field(
        default="text",
        description='form of XMLTYPE values that are stored as binary XML: "text" (ColumnType 112),'
        ' or "raw", as Oracle stores them (ColumnType 58). The bundled applier always'
        " receives text",
    )
    tls: Tls | None = Field(default=None, description="an object: TLS settings of the port")
    allow: ConfigNetworks | None = Field(default=None, description=ALLOW)
    limits: Limits = Field(default_factory=Limits, description="an object: limits of the port")


class DdlSection(Section):
    """`apply.ddl`: what to do in the target when the source's tables are altered."""

    add_column: Literal["follow", "stop"] = Field(
        default="follow",
        description="ADD column: the target gets the column, with the default value for existing"
        " rows",
    )
    drop_column: Literal["follow", "ignore", "stop"] = Field(
        default="follow",
        description="DROP COLUMN and SET UNUSED; ignore: the target keeps the column",
    )
    rename_column: Literal["follow", "stop"] = Field(default="follow", description="RENAME COLUMN")
    modify_column: Literal["follow", "ignore", "stop"] = Field(
        default="follow",
        description="a new length, precision or scale of a column, and DATE changed to TIMESTAMP,"
        " if the target's column needs another type; ignore: the target's column"
        " keeps its type",
    )
    not_null: Literal["follow", "ignore", "stop"] = Field(
        default="follow",
        description="NOT NULL added to a column or removed from it, also because of a primary key",
    )
    truncate: Literal["follow", "ignore", "stop"] = Field(
        default="follow", description="TRUNCATE TABLE; ignore: the target keeps the rows"
    )
    truncate_partition: Literal["follow", "ignore", "stop"] = Field(
        default="follow",
        description="TRUNCATE PARTITION, if the target has the partition; ignore: the target"
        " keeps the rows",
    )
    drop_partition: Literal["follow", "ignore", "stop"] = Field(
        default="follow",
        description="DROP PARTITION: olr_pg empties the partition in the target; ignore: the target"
        " keeps the rows",
    )
    add_partition: Literal["follow", "ignore"] = Field(
        default="follow",
        description="ADD PARTITION of a table that has ranges or lists of one column. olr_pg"
        " adds the partition to the target, if the target is also partitioned by ranges or lists",
    )
    drop_table: Literal["follow", "ignore", "stop"] = Field(
        default="stop",
        description="DROP TABLE: olr_pg empties the target table. If a table of that name is"
        " created again, olr_pg changes the target table to its columns and key."
        " ignore: the target keeps the rows",
    )
    exchange_partition: Literal["follow", "stop"] = Field(
        default="follow",
        description="EXCHANGE PARTITION of two replicated tables: olr_pg exchanges the partition"
        " and the table in the target, if the target has both",
    )
    rename_table: Literal["follow", "stop"] = Field(
        default="follow",
        description="RENAME of a table: the target table is renamed too, if `apply.tables` also"
        " contains the new name",
    )
    virtual_column: Literal["follow", "ignore", "stop"] = Field(
        default="follow",
        description="a virtual column added, changed or dropped. olr_pg does the same with a"
        " generated column in the target, if it can translate the expression. Otherwise olr_pg"
        " reports the column and does not create it",
    )
    identity_column: Literal["follow", "ignore", "stop"] = Field(
        default="follow",
        description="an identity column added, or changed to an ordinary column; ignore: an added"
        " column is an ordinary column in the target, and an existing one stays as it is",
    )
    comment: Literal["follow", "ignore", "stop"] = Field(
        default="follow", description="COMMENT ON TABLE and COMMENT ON COLUMN"
    )
    index: Literal["report", "follow", "ignore"] = Field(
        default="report",
        description="an index created, dropped or made unusable; report: olr_pg reports the SQL for"
        " the target; follow: olr_pg runs it",
    )
    constraint: Literal["report", "follow", "ignore"] = Field(
        default="report",
        description="a primary, unique or foreign key or a check constraint added, dropped, enabled"
        " or disabled; report: olr_pg reports the SQL for the target; follow: olr_pg"
        " runs it",
    )
    new_table: Literal["follow", "load", "ignore"] = Field(
        default="follow",
        description="a new table that matches a pattern of `apply.tables`: olr_pg replicates it"
        " from its creation on; load: also if it is created with rows (CREATE TABLE … AS SELECT),"
        " which olr_pg then loads from a live source; ignore: olr_pg only reports it",
    )

    def by_kind(self) -> Iterator[tuple[str, str]]:
        """Yield (key, policy) for each kind of DDL on a table that is already replicated."""
        for name in type(self).model_fields.keys() - {"new_table"}:
            yield name.replace("_", "-"), getattr(self, name)


class Apply(Section):
    """`apply`: settings of the bundled applier."""

    connect_string: PostgresConnection = Field(
        description='the target database: "embedded", a PostgreSQL URL or parameters'
    )
    tables: ConfigTables = Field(description=TABLES)
    subscription: str = Field(
        default="olr_pg",
        min_length=1,
        description="the name of this stream in the target's ledger; each stream into the same"
        " database needs its own name. Do not change this name later: a new name begins a new"
        " stream, which applies all available changes again",
    )
    start_scn: int = Field(
        default=0,
        ge=0,
        le=MAX_SCN,
        description="the SCN to start at if the port has no saved SCN; 0: the oldest log",
    )
    workers: int = Field(
        default=4, ge=1, le=256, description="number of connections that apply changes in parallel"
    )
    consistency: Literal["table", "transaction"] = Field(
        default="table",
        description="which changes of a source transaction always stay together in one target"
        ' transaction. "table": its changes of one table; "transaction": all its'
        " changes",
    )
    create_tables: bool = Field(default=False, description="create missing target tables")
    schema_mapping: SchemaMapping = Field(
        default_factory=dict,
        description=("an object that maps Oracle owners to PostgreSQL schemas"),
    )
    table_mapping: TableMapping = Field(
        default_factory=dict,
        description=(
            "an object that maps Oracle tables (OWNER.NAME) to PostgreSQL tables (schema.table)"
        ),
    )
    names: Literal["folded", "kept"] = Field(
        default="folded",
        description="the names of schemas, tables, columns and other objects that no mapping names:"
        " lower case, as PostgreSQL writes unquoted names, or exactly as in the Oracle"
        " dictionary",
    )
    contexts: dict[str, Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_]*$")]] = Field(
        default_factory=dict,
        description=(
            "an object that maps application contexts of Oracle to prefixes of PostgreSQL"
            " settings. With {\"APP_CTX\": \"app\"}, SYS_CONTEXT('APP_CTX', 'X') becomes"
            " current_setting('app.x')"
        ),
    )
    types: TypesSection = Field(
        default_factory=TypesSection,
        description="an object: the PostgreSQL types of columns in new tables, by Oracle type",
    )
    columns: dict[str, ColumnSection] = Field(
        default_factory=dict,
        description=(
            "an object that maps patterns of OWNER.NAME.COLUMN to objects with the keys"
            " `type` (type of a new target column), `name` (name of the target column) or"
            " `boolean-values`. For each of these keys, the first matching pattern that contains"
            " it applies"
        ),
    )
    on_conflict: Literal["error", "skip", "overwrite"] = Field(
        default="error",
        description="what to do with a change that matches no row, or more than one",
    )
    ddl: DdlSection = Field(
        default_factory=DdlSection,
        description="an object: what the target does about DDL of the source (ddl.md)",
    )
    triggers: Literal["replica", "disable"] = Field(
        default="replica",
        description="how olr_pg prevents that triggers and foreign keys of the target fire."
        ' "replica": it sets session_replication_role. "disable": it disables triggers and'
        " foreign keys until the cut-over; use this for a role that is not allowed to set"
        " session_replication_role (managed-targets.md)",
    )
    unlogged_tables: Literal["refuse", "accept"] = Field(
        default="refuse",
        description="whether to replicate into UNLOGGED target tables (target-tables.md)",
    )
    incomplete_lobs: dict[str, Literal["null", "stop", "fetch"]] = Field(
        default_factory=dict,
        description=(
            "an object that maps patterns of OWNER.NAME.COLUMN to actions: what olr_pg"
            " does if the redo does not contain a complete LOB value (lobs.md). The first matching"
            ' pattern applies; default: "null"'
        ),
    )
    batch_changes: int = Field(
        default=40_000,
        ge=1,
        le=1_000_000,
        description="maximum number of changes of one target transaction",
    )
    batch_ms: int = Field(
        default=200,
        ge=0,
        le=60_000,
        description="maximum milliseconds for which a target transaction collects changes",
    )
    max_held_mb: int | None = Field(
        default=None,
        ge=1,
        description="maximum MiB of held changes of a stopped table; above that, `olr-pg run` ends"
        " with an error; null: no limit except the target's disk",
    )
    retry_seconds: float | None = Field(
        default=None,
        ge=0,
        description="seconds for which `olr-pg run` waits for a target that does not answer or is"
        " full, before it ends with an error; null: no limit. At the start of a run, and in a"
        " run with --once, the limit is at most three minutes",
    )
    drain_seconds: float = Field(
        default=8.0,
        ge=0,
        le=3_600,
        description="seconds after SIGTERM during which olr_pg still applies and confirms the"
        " received changes",
    )
    shutdown_seconds: float | None = Field(
        default=None,
        ge=1,
        le=3_600,
        description="seconds after SIGTERM or SIGINT within which the process ends, even if the"
        " target does not answer; null: 10, or `drain-seconds` + 2 if that is longer",
    )
    answer_seconds: float = Field(
        default=ANSWER_SECONDS,
        ge=1,
        le=3_600,
        description="seconds after which a statement fails if the connection is lost or"
        " PostgreSQL does not respond. A statement that PostgreSQL is executing has no limit",
    )
    policies: ValuePolicies = Field(
        default_factory=ValuePolicies,
        description="an object: policies for values that PostgreSQL cannot store as they are",
    )
    _changes: TableChanges = PrivateAttr(default=TableChanges())

    @property
    def changes(self) -> TableChanges:
        """The changes that `olr-pg tables` has made to `tables`."""
        return self._changes

    def with_changes(self, changes: TableChanges) -> Self:
        """Return a copy in which these are the only changes."""
        copy = self.model_copy()
        copy._changes = changes
        return copy

    @property
    def embedded(self) -> bool:
        """Whether the target is the embedded PostgreSQL."""
        return self.connect_string.get_secret_value() == "embedded"

    @property
    def ending_seconds(self) -> float:
        """Maximum number of seconds from a signal to end until the process has ended."""
        if self.shutdown_seconds is not None:
            return self.shutdown_seconds
        return max(SHUTDOWN_SECONDS, self.drain_seconds + 2)

    @property
    def value_policies(self) -> Policies:
        """The section `policies` in the form that `olr_pg.datatypes` uses."""
        pairs = pairs_of(self.types.boolean_values)
        return Policies(**self.policies.model_dump(), boolean_pairs=pairs)

    @property
    def choices(self) -> Choices:
        """The keys `names`, `types`, `columns` and `contexts` in the form that `olr_pg.datatypes`
        uses.
        """
        types = self.types
        return Choices(
            integers=types.integers,
            number=types.number,
            flags=types.boolean,
            date=types.date,
            raw_16=types.raw_16,
            clob=types.clob,
            blob=types.blob,
            keep_names=self.names == "kept",
            columns={pattern: one.choice for pattern, one in self.columns.items()},
            contexts={name.upper(): setting for name, setting in self.contexts.items()},
        )

    @property
    def table_query(self) -> str:
        """The TableList query of the tables, also if the file lists names, with the changes of
        `olr-pg tables`.
        """
        names, tables = self.table_names, self.tables
        if names is None:
            query = tables if isinstance(tables, str) else table_list_query(tables)
            return self._changes.query(query)
        return table_list_query(names)

    @property
    def table_names(self) -> tuple[TableName, ...] | None:
        """The listed tables with the changes of `olr-pg tables`; None if the file has a query or
        patterns.
        """
        named = () if isinstance(self.tables, str) else self.tables
        listed = tuple(one for one in named if isinstance(one, TableName))
        return self._changes.names(listed) if listed and listed == named else None


class NamedTarget(Target):
    """An entry of `target`, if `target` is a list."""

    name: str = Field(
        pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$",
        description="the target's name, in commands, files, pages and metrics; lower-case"
        " letters, digits, _ and -",
    )
    address: ConfigAddress = Field(
        default=Address(LOOPBACK, 0),
        description='the address to listen on, "host:port"; default: any free port of this machine',
    )
    apply: Apply | None = Field(
        default=None,
        description="an object: the bundled applier of this target; without it, olr_pg only serves"
        " the port",
    )
    filter: Filter = Field(
        default_factory=Filter,
        description="an object: what this target does not receive, in addition to what `filter`"
        " excludes",
    )
    max_spill_mb: int = Field(
        default=1024,
        ge=1,
        description="maximum MiB of ready transactions on disk if this target is slower than the"
        " others. Above that, olr_pg decodes separately for this target",
    )


def _several(targets: tuple[NamedTarget, ...]) -> tuple[NamedTarget, ...]:
    applied = [one.apply for one in targets if one.apply is not None and not one.apply.embedded]
    ledgers = [f"{one.subscription}@{one.connect_string.get_secret_value()}" for one in applied]
    for what, values in (
        ("names", [one.name for one in targets]),
        ("addresses", [str(one.address) for one in targets if one.address.port]),
        ("subscriptions in one database (`apply.subscription`)", ledgers),
    ):
        if len(set(values)) < len(values):
            raise problem(f"targets with different {what}", show="nothing")
    return targets


def _target_kind(value: object) -> str:
    return SEVERAL_TARGETS if isinstance(value, list | tuple) else ONE_TARGET


TargetSetting = Annotated[
    Annotated[Target, Tag(ONE_TARGET)]
    | Annotated[
        tuple[NamedTarget, ...],
        Field(min_length=1, strict=False),
        AfterValidator(_several),
        Tag(SEVERAL_TARGETS),
    ],
    Discriminator(_target_kind),
]


class Config(Section):
    """The whole configuration file."""

    version: Version | None = Field(
        default=None,
        description="the version of olr_pg for which the file was written. This program reads major"
        f" version {READS_VERSION} and rejects a file of a newer major version. The program"
        " accepts a file without a version",
    )
    # Validate the default too, so that the default `context.data` is also relative to the
    # configuration file.
    context: Context = Field(
        default={},
        validate_default=True,
        description="an object: the appliance's use of memory and disk, and the encryption of its"
        " files",
    )
    metrics: Metrics | None = Field(
        default=None, description="an object: where metrics are exported to"
    )
    source: Source = Field(description="an object: the source of the redo and the dictionary")
    filter: Filter = Field(
        default_factory=Filter,
        description="an object: which tables, columns, rows and transactions are delivered",
    )
    target: TargetSetting = Field(
        default_factory=Target,
        description="an object with the settings of the protocol port, or a list of targets",
    )
    apply: Apply | None = Field(
        default=None,
        description="an object: the bundled applier; without it, olr_pg only serves the port",
    )
    prove: Prove | None = Field(
        default=None, description="an object: the scratch schema for `olr-pg prove`"
    )
    fallback: Fallback | None = Field(
        default=None,
        description="an object: the replication back to Oracle after the cut-over (fallback.md)",
    )
    verify: Verify = Field(
        default_factory=Verify,
        description="an object: the comparison of the target with the source while `run` replicates"
        " (initial-load.md)",
    )
    spark: Spark = Field(default_factory=Spark, description="an object: the Spark session")
    status: Status = Field(default_factory=Status, description="an object: the status page")
    log: Log = Field(default_factory=Log, description="an object: logging")
    _file: str = PrivateAttr(default="")
    _other_queries: tuple[str, ...] = PrivateAttr(default=())

    @property
    def file(self) -> str:
        """The absolute path of the configuration file; empty if the configuration was not read from
        a file.
        """
        return self._file

    def of_file(self, path: str) -> Self:
        """Return a copy that records the path of the file from which the configuration was read."""
        copy = self.model_copy()
        copy._file = path
        return copy

    @model_validator(mode="after")
    def _one_place_for_apply(self) -> Self:
        if self.apply is not None and isinstance(self.target, tuple):
            raise problem(
                "`apply` inside each entry of the list `target`, not next to the list",
                show="nothing",
            )
        return self

    @model_validator(mode="after")
    def _one_target_for_fallback(self) -> Self:
        if self.fallback is not None and isinstance(self.target, tuple) and len(self.target) > 1:
            raise problem(
                "only one target with a `fallback` section, because other targets would"
                " not receive the changes that the way back writes to Oracle. Replicate"
                " to them with another configuration, without `fallback`, and another"
                " `context.data`",
                show="nothing",
            )
        return self

    @property
    def way_back(self) -> Fallback:
        """The section `fallback`.

        Raises:
            OlrPgError: 1135, the section is missing.
        """
        if self.fallback is None:
            raise OlrPgError(Code.NO_WAY_BACK, "there is no `fallback` section", key="fallback")
        return self.fallback

    @property
    def fallback_source(self) -> OracleSource:
        """The source section, with the account of the fallback instead of the source's account.

        Raises:
            OlrPgError: 1135, `fallback` is missing, or has no address of Oracle.
        """
        way, source = self.way_back, self.source
        account: dict[str, Any] = {"user": way.user, "password": way.password}
        if isinstance(source, OracleSource):
            own = {"server": way.server} if way.server is not None else {}
            return source.model_copy(update={**account, **own, "redo": "archived"})
        if way.server is None:
            raise OlrPgError(
                Code.NO_WAY_BACK, "an offline source does not contain the address of Oracle",
                key="fallback.server",
            )  # fmt: skip
        return OracleSource.model_construct(**account, server=way.server)

    def changes_file(self) -> Path:
        """Return the path of the file with the changes of `apply.tables`. The configuration must
        have one target.
        """
        data = Path(self.context.data)
        return (data / "targets" / self.name if self.name else data) / CHANGES_FILE

    def with_table_changes(self) -> Self:
        """Return a copy with the changes that `olr-pg tables` has made to its tables.

        Raises:
            OlrPgError: 8015, the changes cannot be read.
        """
        applied = [
            part.apply and part.apply.with_changes(read_table_changes(part.changes_file()))
            for part in self.targets
        ]
        if isinstance(self.target, Target):
            return self.model_copy(update={"apply": applied[0]})
        targets = tuple(
            one.model_copy(update={"apply": apply})
            for one, apply in zip(self.target, applied, strict=True)
        )
        return self.model_copy(update={"target": targets})

    @property
    def targets(self) -> tuple[Config, ...]:
        """For each target, a configuration that has only this target."""
        if isinstance(self.target, Target):
            return (self,)
        queries = [one.apply.table_query if one.apply else "" for one in self.target]
        found = list[Config]()
        for number, one in enumerate(self.target):
            part = self.model_copy(update={"target": one, "apply": one.apply})
            others = queries[:number] + queries[number + 1 :]
            part._other_queries = tuple(query for query in others if query)
            found.append(part)
        return tuple(found)

    @property
    def other_queries(self) -> tuple[str, ...]:
        """The TableList queries of the other targets, if this configuration is an element of
        `targets`. All targets share one dictionary.
        """
        return self._other_queries

    @property
    def port(self) -> Target:
        """The section `target`. The configuration must have one target."""
        assert isinstance(self.target, Target)
        return self.target

    @property
    def name(self) -> str:
        """The name of the target, which is empty if it has none. The configuration must have one
        target.
        """
        return self.target.name if isinstance(self.target, NamedTarget) else ""


def secret_texts(config: Config) -> tuple[str, ...]:
    """Return all secrets in `config`, including passwords inside connect strings, so that log texts
    can be redacted.
    """
    texts = list[str]()
    _collect(config, texts)
    inner = [match for text in texts for match in _PASSWORD_PART.findall(text)]
    texts += [part.strip("'\"") for pair in inner for part in pair]
    return tuple(sorted({text for text in texts if text and text != "embedded"}))


def _collect(section: Section, texts: list[str]) -> None:
    for name in type(section).model_fields:
        value = getattr(section, name)
        for inner in value if isinstance(value, tuple) else (value,):
            if isinstance(inner, Section):
                _collect(inner, texts)
        secrets = value.values() if isinstance(value, dict) else ()
        texts += [one.get_secret_value() for one in secrets if isinstance(one, SecretStr)]
        if isinstance(value, SecretStr):
            texts.append(value.get_secret_value())
    if isinstance(section, Spark):
        texts += [text for key, text in section.conf.items() if is_secret_property(key)]
