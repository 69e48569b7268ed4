"""The inventory: all objects of a schema, as described by the source's dictionary.

The assessment of a migration and the conversion of a schema use it; decoding redo does not need it.
The values are the unchanged values of the views DBA_* (Oracle Database Reference), so that reports
can show them. Texts are in Oracle's SQL and PL/SQL.

The file format ``olr-pg-inventory/1`` is `Inventory` as JSON (`snapshot_file`). The end of this
module converts the column types to the types of COL$, which the mapping to PostgreSQL's types
needs.
"""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field
from pydantic.dataclasses import dataclass

from olr_pg.datatypes.mapping import OracleType
from olr_pg.dictionary.structure import Sequence

Name = Annotated[str, Field(min_length=1)]
Names = Annotated[tuple[Name, ...], Field(strict=False)]

FORMAT: Final = "olr-pg-inventory/1"

UNKNOWN_TYPE: Final = 0
_DIGITS: Final = re.compile(r"\s*\(\d+\)")
_NATIONAL: Final = {"NVARCHAR2": "VARCHAR2", "NCHAR": "CHAR", "NCLOB": "CLOB"}
_BY_NAME: Final = {
    **{one.title: one for one in OracleType},
    "FLOAT": OracleType.NUMBER,
    "LONG RAW": OracleType.LONG_RAW,
    "XMLTYPE": OracleType.OPAQUE,
    "SDO_GEOMETRY": OracleType.OBJECT,
    "ANYDATA": OracleType.OPAQUE,
}

KNOWN_COMPATIBLE: Final = "11.2.0 to 23.x"
"""The values of COMPATIBLE whose logs can be read (`redo.format.file_fields`). In every update of
26ai, 23.6.0 is the default and the highest value (Oracle AI Database Reference 26ai, COMPATIBLE).
"""

_RELEASES: Final = {
    (11, 2): "11g Release 2",
    (12, 1): "12c Release 1",
    (12, 2): "12c Release 2",
    (18,): "18c",
    (19,): "19c",
    (21,): "21c",
}
_LAST: Final = 23
_FIRST_OF_26AI: Final = 26
"""Release updates of version 23 are called 26ai from 23.26 on (Oracle AI Database Upgrade Guide
26ai).
"""

ConstraintKind = Literal["primary key", "unique", "foreign key", "check", "other"]


_STRICT: Final = ConfigDict(extra="forbid", strict=True, defer_build=True)
"""The pydantic configuration of all classes here. Classes with many instances are dataclasses with
slots, because these need a quarter of a model's memory.
"""


class _Value(BaseModel):
    model_config = ConfigDict(**_STRICT, frozen=True)


@dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class Owned:
    """An object of a schema."""

    owner: Name
    name: Name

    @property
    def full_name(self) -> str:
        """``OWNER.NAME``."""
        return f"{self.owner}.{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class SchemaObject(Owned):
    """A row of DBA_OBJECTS.

    Attributes:
        kind: OBJECT_TYPE: ``TABLE``, ``PACKAGE BODY`` and so on.
        status: ``VALID`` or ``INVALID``.
    """

    kind: Name
    status: str = "VALID"


@dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class InventoryColumn:
    """A column of a table or view (DBA_TAB_COLS, DBA_COL_COMMENTS, DBA_TAB_IDENTITY_COLS).

    Attributes:
        data_type: DATA_TYPE, such as ``NUMBER`` or ``TIMESTAMP(6) WITH TIME ZONE``.
        type_owner: DATA_TYPE_OWNER, for object types and XMLTYPE; else empty.
        length: DATA_LENGTH, bytes.
        char_length: CHAR_LENGTH, characters; 0 for types that are not text.
        default: DATA_DEFAULT; for a virtual column, its expression.
        default_on_null: DEFAULT_ON_NULL: whether the default replaces an inserted NULL.
        identity: GENERATION_TYPE: ``ALWAYS``, ``BY DEFAULT``; empty for other columns.
        identity_sequence: the sequence that generates the identity column's values.
        hidden: HIDDEN_COLUMN: whether it is a system column or an invisible column.
        invisible: whether the column is a user's invisible column (hidden, and USER_GENERATED is
            YES).
    """

    name: Name
    data_type: Name
    type_owner: str = ""
    length: int = 0
    char_length: int = 0
    precision: int | None = None
    scale: int | None = None
    nullable: bool = True
    default: str = ""
    default_on_null: bool = False
    identity: str = ""
    identity_sequence: str = ""
    virtual: bool = False
    hidden: bool = False
    invisible: bool = False
    comment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class Partition:
    """A partition of a table.

    Attributes:
        high_value: HIGH_VALUE: the bound of a range, the values of a list; empty for hash.
        subpartitions: the sub-partitions, in their order.
    """

    name: Name
    high_value: str = ""
    subpartitions: Annotated[tuple[Partition, ...], Field(strict=False)] = ()


@dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class Partitioning:
    """The partitioning of a table (DBA_PART_TABLES).

    Attributes:
        method: PARTITIONING_TYPE: ``RANGE``, ``LIST``, ``HASH``, ``REFERENCE``, ``SYSTEM``.
        submethod: SUBPARTITIONING_TYPE; empty for ``NONE``.
        interval: INTERVAL of an interval-partitioned table.
        columns, subcolumns: the key columns of the partitions and of the sub-partitions.
    """

    method: Name
    columns: Names = ()
    submethod: str = ""
    subcolumns: Names = ()
    interval: str = ""
    partitions: Annotated[tuple[Partition, ...], Field(strict=False)] = ()


@dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class InventoryTable(Owned):
    """A table (DBA_TABLES, DBA_SEGMENTS).

    Attributes:
        kind: ``table``, ``index-organised table``, ``temporary table``, ``external table``,
            ``nested table``, ``object table``, ``clustered table``, ``materialized view`` (the
            table that stores its rows) or ``materialized view log``.
        rows: NUM_ROWS of the last statistics; None without statistics.
        bytes, lob_bytes: the size of its segments, and of the segments of its LOBs.
        logging: the supplemental log groups as text, such as ``ALL COLUMN LOGGING``.
    """

    kind: str = "table"
    columns: Annotated[tuple[InventoryColumn, ...], Field(strict=False)] = ()
    rows: int | None = None
    bytes: int = 0
    lob_bytes: int = 0
    comment: str = ""
    logging: Names = ()
    partitioning: Partitioning | None = None


@dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class Constraint(Owned):
    """A constraint (DBA_CONSTRAINTS, DBA_CONS_COLUMNS).

    Attributes:
        table: the constraint's table, which has the same owner.
        condition: SEARCH_CONDITION of a check.
        parent_owner, parent_table, parent_columns: the key that a foreign key references.
        delete_rule: ``NO ACTION``, ``CASCADE`` or ``SET NULL``.
        index: the index of a key.
        oracle_kind: CONSTRAINT_TYPE.
        not_null: whether the check is just ``"COLUMN" IS NOT NULL``.
    """

    table: Name
    kind: ConstraintKind
    oracle_kind: str = ""
    columns: Names = ()
    condition: str = ""
    enabled: bool = True
    validated: bool = True
    deferrable: bool = False
    deferred: bool = False
    generated_name: bool = False
    parent_owner: str = ""
    parent_table: str = ""
    parent_columns: Names = ()
    delete_rule: str = ""
    index: str = ""
    not_null: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class IndexPart:
    """A column of an index, or an expression."""

    text: Name
    expression: bool = False
    descending: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class InventoryIndex(Owned):
    """An index (DBA_INDEXES, DBA_IND_COLUMNS, DBA_IND_EXPRESSIONS).

    Attributes:
        kind: INDEX_TYPE: ``NORMAL``, ``FUNCTION-BASED NORMAL``, ``BITMAP``, ``DOMAIN``, …
        parts: the columns and expressions, in their order.
        constraint: the primary or unique key that it belongs to; empty for other indexes.
        usable: whether STATUS is not ``UNUSABLE``.
    """

    table_owner: Name
    table: Name
    kind: str = "NORMAL"
    unique: bool = False
    parts: Annotated[tuple[IndexPart, ...], Field(strict=False)] = ()
    constraint: str = ""
    usable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class InventoryView(Owned):
    """A view (DBA_VIEWS).

    Attributes:
        read_only: WITH READ ONLY; check_option: WITH CHECK OPTION.
    """

    text: str = ""
    columns: Annotated[tuple[InventoryColumn, ...], Field(strict=False)] = ()
    comment: str = ""
    read_only: bool = False
    check_option: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class MaterializedView(Owned):
    """A materialized view (DBA_MVIEWS).

    Attributes:
        refresh_mode: ``DEMAND``, ``COMMIT``, ``NEVER``.
    """

    query: str = ""
    refresh_mode: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class Synonym(Owned):
    """A synonym (DBA_SYNONYMS). Of the owner ``PUBLIC``, only synonyms of objects in the
    inventory's schemas are included.
    """

    target_owner: str = ""
    target: str = ""
    link: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class Trigger(Owned):
    """A trigger (DBA_TRIGGERS).

    Attributes:
        kind: TRIGGER_TYPE, such as ``BEFORE EACH ROW``; event: TRIGGERING_EVENT.
        base: BASE_OBJECT_TYPE: ``TABLE``, ``VIEW``, ``SCHEMA``, ``DATABASE``.
        when: WHEN_CLAUSE; body: TRIGGER_BODY.
        head: the text before the body (DBA_SOURCE); empty if unknown.
    """

    kind: str = ""
    event: str = ""
    base: str = "TABLE"
    table_owner: str = ""
    table: str = ""
    when: str = ""
    head: str = ""
    body: str = ""
    enabled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class UnitSource(Owned):
    """The text of a stored PL/SQL unit (DBA_SOURCE), with its lines joined.

    Attributes:
        kind: ``PROCEDURE``, ``FUNCTION``, ``PACKAGE``, ``PACKAGE BODY``, ``TYPE``, ``TYPE BODY``.
    """

    kind: Name
    text: str = ""

    @property
    def lines(self) -> int:
        """Return its number of lines."""
        return len(self.text.splitlines())


@dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class UserType(Owned):
    """A user-defined type (DBA_TYPES); `kind` is TYPECODE."""

    kind: str = "OBJECT"
    attributes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class SchedulerJob(Owned):
    """A job of the scheduler (DBA_SCHEDULER_JOBS) or of DBMS_JOB (DBA_JOBS)."""

    kind: str = ""
    action: str = ""
    schedule: str = ""
    enabled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class DatabaseLink(Owned):
    """A database link (DBA_DB_LINKS); `host` is its target."""

    user: str = ""
    host: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class Grant(Owned):
    """A privilege on an object (DBA_TAB_PRIVS): `name` is the object."""

    grantee: Name
    privilege: Name
    grantable: bool = False
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class NamedObject(Owned):
    """A property of an object that is reported, but not converted to SQL: `name` is the object.

    Attributes:
        kind: ``COLUMN PRIVILEGE``, ``VPD POLICY``, ``REDACTION POLICY``, ``APPLICATION CONTEXT`` or
            ``AUDIT POLICY``.
        detail: the name and a short description of the property.
    """

    kind: Name
    detail: str = ""


class OtherSchema(_Value):
    """A schema of a user that was not read into the inventory."""

    owner: Name
    objects: int


class LogDay(_Value):
    """The amount of archived redo on one day."""

    day: Name
    logs: int
    bytes: int


class Inventory(_Value):
    """All objects in some schemas.

    Attributes:
        scn: the current SCN when the inventory was read.
        version: Oracle's version, from PRODUCT_COMPONENT_VERSION.
        objects: all objects of all kinds; the other attributes contain their details.
        named: further properties of objects, which are not converted to SQL.
        looked_at: the views from which `named` was read.
        unread: views that the account cannot read, with the consequences.
        redo: the amount of archived redo by day, for the days in V$ARCHIVED_LOG.
    """

    format: Literal["olr-pg-inventory/1"] = FORMAT
    scn: int = 0
    database: str = ""
    version: str = ""
    owners: Names = ()
    others: Annotated[tuple[OtherSchema, ...], Field(strict=False)] = ()
    objects: Annotated[tuple[SchemaObject, ...], Field(strict=False)] = ()
    tables: Annotated[tuple[InventoryTable, ...], Field(strict=False)] = ()
    constraints: Annotated[tuple[Constraint, ...], Field(strict=False)] = ()
    indexes: Annotated[tuple[InventoryIndex, ...], Field(strict=False)] = ()
    views: Annotated[tuple[InventoryView, ...], Field(strict=False)] = ()
    materialized_views: Annotated[tuple[MaterializedView, ...], Field(strict=False)] = ()
    sequences: Annotated[tuple[Sequence, ...], Field(strict=False)] = ()
    synonyms: Annotated[tuple[Synonym, ...], Field(strict=False)] = ()
    triggers: Annotated[tuple[Trigger, ...], Field(strict=False)] = ()
    sources: Annotated[tuple[UnitSource, ...], Field(strict=False)] = ()
    types: Annotated[tuple[UserType, ...], Field(strict=False)] = ()
    jobs: Annotated[tuple[SchedulerJob, ...], Field(strict=False)] = ()
    links: Annotated[tuple[DatabaseLink, ...], Field(strict=False)] = ()
    grants: Annotated[tuple[Grant, ...], Field(strict=False)] = ()
    named: Annotated[tuple[NamedObject, ...], Field(strict=False)] = ()
    looked_at: Names = ()
    unread: Names = ()
    redo: Annotated[tuple[LogDay, ...], Field(strict=False)] = ()


class MappedColumn(NamedTuple):
    """A column in the form that `datatypes.mapping` needs; implements `OracleColumn`."""

    name: str
    type_code: int
    length: int
    precision: int | None
    scale: int | None
    charset_id: int | None
    charset_form: int | None
    char_length: int | None
    xml: bool


def typed_column(column: InventoryColumn) -> MappedColumn:
    """Return the column in the form for the type mapping; its type code is `UNKNOWN_TYPE` if the
    type is unknown.
    """
    name = _DIGITS.sub("", column.data_type)
    national = name in _NATIONAL
    name = _NATIONAL.get(name, name)
    code = int(_BY_NAME.get(name, UNKNOWN_TYPE))
    if column.type_owner and name != "XMLTYPE":
        code = int(OracleType.OBJECT)
    xml = name == "XMLTYPE"
    if xml:
        code = int(OracleType.CLOB)
    is_text = column.char_length > 0
    return MappedColumn(
        name=column.name,
        type_code=code,
        length=column.length,
        precision=column.precision,
        scale=column.scale,
        charset_id=None,
        charset_form=(2 if national else 1) if is_text or code == OracleType.CLOB else None,
        char_length=column.char_length if is_text else None,
        xml=xml,
    )


def oracle_type_text(column: InventoryColumn) -> str:
    """Return the type as in its declaration: ``NUMBER(10,2)``, ``VARCHAR2(40 CHAR)``."""
    name = column.data_type
    if name == "NUMBER" and column.precision is not None:
        return f"NUMBER({column.precision},{column.scale or 0})"
    if name == "NUMBER" and column.scale is not None:
        return f"NUMBER(*,{column.scale})"
    if column.char_length:
        return f"{name}({column.char_length} CHAR)"
    return f"{name}({column.length})" if name == "RAW" else name


def release_name(version: str) -> str | None:
    """Return Oracle's name of a release, such as ``19c``; None for an unsupported release.

    Args:
        version: from V$INSTANCE.VERSION_FULL. V$INSTANCE.VERSION cannot be used, because it is
            23.0.0.0.0 for both 23ai and 26ai.
    """
    numbers = [int(part) for part in version.split(".") if part.isdigit()]
    major, minor = (*numbers, 0, 0)[:2]
    if major == _LAST:
        if minor == 0:
            return "23ai or 26ai"
        return "26ai" if minor >= _FIRST_OF_26AI else "23ai"
    return _RELEASES.get((major, minor)) or _RELEASES.get((major,))


def named_version(version: str) -> str:
    """Return a version with the name of its release, such as ``26ai (23.26.1.0.0)``; empty for an
    empty version.
    """
    name = release_name(version)
    return f"{name} ({version})" if name else version
