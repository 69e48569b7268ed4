"""Reads the inventory of a live database: all objects in some schemas (`dictionary.inventory`).

The inventory comes from dictionary views (Oracle Database Reference). Each view has a form with the
prefix ``DBA_`` that covers every schema. Most views also have a form with the prefix ``ALL_`` that
covers the objects that the account can access.

The views show the current state; they cannot be read as of an SCN. Columns of type LONG
(DATA_DEFAULT, SEARCH_CONDITION, HIGH_VALUE, TEXT, TRIGGER_BODY) are read without conversion.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import oracledb
import sqlalchemy.exc
from sqlalchemy import Column, Connection, Integer, MetaData, String, Table, func, select
from sqlalchemy.sql.elements import quoted_name

from olr_pg.dictionary.inventory import (
    Constraint,
    ConstraintKind,
    DatabaseLink,
    Grant,
    IndexPart,
    Inventory,
    InventoryColumn,
    InventoryIndex,
    InventoryTable,
    InventoryView,
    LogDay,
    MaterializedView,
    NamedObject,
    OtherSchema,
    Partition,
    Partitioning,
    SchedulerJob,
    SchemaObject,
    Synonym,
    Trigger,
    UnitSource,
    UserType,
)
from olr_pg.dictionary.oracle_schemas import is_oracle_schema
from olr_pg.dictionary.structure import INT64_MAX, INT64_MIN, Sequence
from olr_pg.oracle import tables
from olr_pg.oracle.driver.bounded_calls import PRIVILEGE, oracle_error
from olr_pg.oracle.tables import LOG_VOLUME, among, batches

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from collections.abc import Sequence as Sequential

    from olr_pg.oracle.oracle_connection import OracleDatabase

    Columns = Mapping[tuple[str, ...], tuple[InventoryColumn, ...]]


class DictionaryView(NamedTuple):
    """A view of the dictionary.

    Attributes:
        name: the view's name without the prefix.
        owner: name of the column with the owner.
        numbers, texts: names of the other columns to read, by type, separated by blanks.
        newer: names of the columns that releases before 12.1 lack.
        since: the release that introduced the view.
        only_dba: whether there is no ``ALL_`` form.
        whole_name: whether `name` is the full name, to which no prefix is added.
        all_owner: name of the column with the owner in the ``ALL_`` form, if it differs.
    """

    name: str
    owner: str
    numbers: str
    texts: str
    newer: str = ""
    since: int = 11
    only_dba: bool = False
    all_owner: str = ""
    whole_name: bool = False

    @property
    def full_name(self) -> str:
        """Return the name of the view's form that covers every schema."""
        return self.name if self.whole_name else f"DBA_{self.name}"


OBJECTS: Final = DictionaryView(
    "OBJECTS", "OWNER", "", "OBJECT_NAME SUBOBJECT_NAME OBJECT_TYPE STATUS"
)
TABLES: Final = DictionaryView(
    "TABLES", "OWNER", "NUM_ROWS", "TABLE_NAME IOT_TYPE TEMPORARY NESTED CLUSTER_NAME"
)
EXTERNAL_TABLES: Final = DictionaryView("EXTERNAL_TABLES", "OWNER", "", "TABLE_NAME")
TAB_COLS: Final = DictionaryView(
    "TAB_COLS",
    "OWNER",
    "DATA_LENGTH CHAR_LENGTH DATA_PRECISION DATA_SCALE COLUMN_ID INTERNAL_COLUMN_ID",
    "TABLE_NAME COLUMN_NAME DATA_TYPE DATA_TYPE_OWNER NULLABLE DATA_DEFAULT VIRTUAL_COLUMN"
    " HIDDEN_COLUMN DEFAULT_ON_NULL USER_GENERATED",
    newer="DEFAULT_ON_NULL USER_GENERATED",
)
IDENTITY_COLS: Final = DictionaryView(
    "TAB_IDENTITY_COLS",
    "OWNER",
    "",
    "TABLE_NAME COLUMN_NAME GENERATION_TYPE SEQUENCE_NAME",
    since=12,
)
TAB_COMMENTS: Final = DictionaryView("TAB_COMMENTS", "OWNER", "", "TABLE_NAME COMMENTS")
COL_COMMENTS: Final = DictionaryView("COL_COMMENTS", "OWNER", "", "TABLE_NAME COLUMN_NAME COMMENTS")
PART_TABLES: Final = DictionaryView(
    "PART_TABLES", "OWNER", "", "TABLE_NAME PARTITIONING_TYPE SUBPARTITIONING_TYPE INTERVAL"
)
PART_KEYS: Final = DictionaryView(
    "PART_KEY_COLUMNS", "OWNER", "COLUMN_POSITION", "NAME OBJECT_TYPE COLUMN_NAME"
)
SUBPART_KEYS: Final = DictionaryView(
    "SUBPART_KEY_COLUMNS", "OWNER", "COLUMN_POSITION", "NAME OBJECT_TYPE COLUMN_NAME"
)
TAB_PARTITIONS: Final = DictionaryView(
    "TAB_PARTITIONS", "TABLE_OWNER", "PARTITION_POSITION", "TABLE_NAME PARTITION_NAME HIGH_VALUE"
)
TAB_SUBPARTITIONS: Final = DictionaryView(
    "TAB_SUBPARTITIONS",
    "TABLE_OWNER",
    "SUBPARTITION_POSITION",
    "TABLE_NAME PARTITION_NAME SUBPARTITION_NAME HIGH_VALUE",
)
SEGMENTS: Final = DictionaryView(
    "SEGMENTS", "OWNER", "BYTES", "SEGMENT_NAME SEGMENT_TYPE", only_dba=True
)
LOBS: Final = DictionaryView("LOBS", "OWNER", "", "TABLE_NAME COLUMN_NAME SEGMENT_NAME")
LOG_GROUPS: Final = DictionaryView("LOG_GROUPS", "OWNER", "", "TABLE_NAME LOG_GROUP_TYPE")
CONSTRAINTS: Final = DictionaryView(
    "CONSTRAINTS",
    "OWNER",
    "",
    "CONSTRAINT_NAME CONSTRAINT_TYPE TABLE_NAME SEARCH_CONDITION R_OWNER R_CONSTRAINT_NAME"
    " DELETE_RULE STATUS DEFERRABLE DEFERRED VALIDATED GENERATED INDEX_NAME",
)
CONS_COLUMNS: Final = DictionaryView(
    "CONS_COLUMNS", "OWNER", "POSITION", "CONSTRAINT_NAME COLUMN_NAME"
)
INDEXES: Final = DictionaryView(
    "INDEXES", "TABLE_OWNER", "", "OWNER INDEX_NAME INDEX_TYPE TABLE_NAME UNIQUENESS STATUS"
)
IND_COLUMNS: Final = DictionaryView(
    "IND_COLUMNS", "TABLE_OWNER", "COLUMN_POSITION", "INDEX_OWNER INDEX_NAME COLUMN_NAME DESCEND"
)
IND_EXPRESSIONS: Final = DictionaryView(
    "IND_EXPRESSIONS", "TABLE_OWNER", "COLUMN_POSITION", "INDEX_OWNER INDEX_NAME COLUMN_EXPRESSION"
)
VIEWS: Final = DictionaryView("VIEWS", "OWNER", "", "VIEW_NAME TEXT")
MVIEWS: Final = DictionaryView("MVIEWS", "OWNER", "", "MVIEW_NAME QUERY REFRESH_MODE")
MVIEW_LOGS: Final = DictionaryView("MVIEW_LOGS", "LOG_OWNER", "", "LOG_TABLE")
SEQUENCES: Final = DictionaryView(
    "SEQUENCES",
    "SEQUENCE_OWNER",
    "MIN_VALUE MAX_VALUE INCREMENT_BY CACHE_SIZE LAST_NUMBER",
    "SEQUENCE_NAME CYCLE_FLAG",
)
SYNONYMS: Final = DictionaryView(
    "SYNONYMS", "OWNER", "", "SYNONYM_NAME TABLE_OWNER TABLE_NAME DB_LINK"
)
PUBLIC_SYNONYMS: Final = DictionaryView(
    "SYNONYMS", "TABLE_OWNER", "", "OWNER SYNONYM_NAME TABLE_NAME DB_LINK"
)
TRIGGERS: Final = DictionaryView(
    "TRIGGERS",
    "OWNER",
    "",
    "TRIGGER_NAME TRIGGER_TYPE TRIGGERING_EVENT BASE_OBJECT_TYPE TABLE_OWNER TABLE_NAME"
    " WHEN_CLAUSE STATUS TRIGGER_BODY",
)
SOURCE: Final = DictionaryView("SOURCE", "OWNER", "LINE", "NAME TYPE TEXT")
TYPES: Final = DictionaryView("TYPES", "OWNER", "ATTRIBUTES", "TYPE_NAME TYPECODE")
SCHEDULER_JOBS: Final = DictionaryView(
    "SCHEDULER_JOBS", "OWNER", "", "JOB_NAME JOB_TYPE JOB_ACTION REPEAT_INTERVAL ENABLED"
)
JOBS: Final = DictionaryView("JOBS", "SCHEMA_USER", "JOB", "WHAT INTERVAL BROKEN")
DB_LINKS: Final = DictionaryView("DB_LINKS", "OWNER", "", "DB_LINK USERNAME HOST")
TAB_PRIVS: Final = DictionaryView(
    "TAB_PRIVS",
    "OWNER",
    "",
    "GRANTEE TABLE_NAME PRIVILEGE GRANTABLE TYPE",
    newer="TYPE",
    all_owner="TABLE_SCHEMA",
)
NAMED_VIEWS: Final = {
    "COLUMN PRIVILEGE": DictionaryView(
        "COL_PRIVS", "OWNER", "", "TABLE_NAME COLUMN_NAME PRIVILEGE GRANTEE",
        all_owner="TABLE_SCHEMA",
    ),
    "VPD POLICY": DictionaryView(
        "POLICIES", "OBJECT_OWNER", "", "OBJECT_NAME POLICY_NAME PF_OWNER PACKAGE FUNCTION"
    ),
    "REDACTION POLICY": DictionaryView(
        "REDACTION_POLICIES", "OBJECT_OWNER", "", "OBJECT_NAME POLICY_NAME EXPRESSION",
        since=12, only_dba=True, whole_name=True,
    ),
    "APPLICATION CONTEXT": DictionaryView(
        "CONTEXT", "SCHEMA", "", "NAMESPACE PACKAGE", only_dba=True
    ),
    "AUDIT POLICY": DictionaryView(
        "AUDIT_POLICIES", "OBJECT_SCHEMA", "", "OBJECT_NAME POLICY_NAME"
    ),
}  # fmt: skip
"""The view for each kind of `inventory.NamedObject`; its first column is the object's name."""

INVENTORY_VIEWS: Final = (
    *NAMED_VIEWS.values(),
    *(OBJECTS, TABLES, EXTERNAL_TABLES, TAB_COLS, IDENTITY_COLS, TAB_COMMENTS, COL_COMMENTS),
    *(PART_TABLES, PART_KEYS, SUBPART_KEYS, TAB_PARTITIONS, TAB_SUBPARTITIONS, SEGMENTS, LOBS),
    *(LOG_GROUPS, CONSTRAINTS, CONS_COLUMNS, INDEXES, IND_COLUMNS, IND_EXPRESSIONS, VIEWS),
    *(MVIEWS, MVIEW_LOGS, SEQUENCES, SYNONYMS, PUBLIC_SYNONYMS, TRIGGERS, SOURCE, TYPES),
    *(SCHEDULER_JOBS, JOBS, DB_LINKS, TAB_PRIVS),
)
"""All views from which the inventory is read."""

Row = dict[str, Any]

OWNER: Final = "OWNER_"
"""The key under which every row contains the owner, whatever the name of the column is."""


class ViewReader:
    """Reads the views that the account has access to.

    Args:
        owners: the schemas to read.
        release: Oracle's release, such as 19.

    Attributes:
        unread: names of the views that the account cannot read.
        tells_all: False after access to a ``DBA_`` view was denied, because the ``ALL_`` views do
            not show all objects.
    """

    def __init__(self, connection: Connection, owners: Sequential[str], release: int) -> None:
        self._connection = connection
        self._owners = owners
        self._release = release
        self.unread = list[str]()
        self.tells_all = True

    def rows(self, view: DictionaryView) -> list[Row]:
        """Read a view, in its ``DBA_`` form if the account may; a text that is NULL becomes an
        empty string.
        """
        if self._release < view.since:
            return []
        for prefix in ("DBA_",) if view.only_dba else ("DBA_", "ALL_"):
            prefix = "" if view.whole_name else prefix
            owner = view.all_owner if prefix == "ALL_" and view.all_owner else view.owner
            try:
                return self._read(prefix + view.name, owner, view)
            except (sqlalchemy.exc.DBAPIError, oracledb.Error) as error:
                if oracle_error(error, "").code != PRIVILEGE:
                    raise
                self.tells_all = False
        self.unread.append(view.full_name)
        return []

    def _read(self, name: str, owner: str, view: DictionaryView) -> list[Row]:
        newer = view.newer.split() if self._release < 12 else ()
        numbers = [column for column in view.numbers.split() if column not in newer]
        texts = [column for column in view.texts.split() if column not in newer]
        table = _view(name, [owner, *texts], numbers)
        columns = [table.c[column] for column in (*texts, *numbers)]
        found = list[Row]()
        for batch in batches(self._owners):
            wanted = among(batch)
            query = select(table.c[owner].label(OWNER), *columns).where(table.c[owner].in_(wanted))
            for row in self._connection.execute(query).mappings():
                read = dict(row)
                found.append(read | {text: _text(read[text]) for text in texts})
        return found


def _view(name: str, texts: Iterable[str], numbers: Iterable[str]) -> Table:
    columns: list[Column[Any]] = [
        *(Column(quoted_name(text, quote=True), String) for text in texts),
        *(Column(quoted_name(number, quote=True), Integer) for number in numbers),
    ]
    return Table(quoted_name(name, quote=True), MetaData(), *columns)


def _text(value: object) -> str:
    return "" if value is None else str(value)


def grouped(rows: Iterable[Row], *names: str) -> dict[tuple[str, ...], list[Row]]:
    """Group rows by their owner and these columns."""
    found = defaultdict[tuple[str, ...], list[Row]](list)
    for row in rows:
        found[row[OWNER], *(row[name] for name in names)].append(row)
    return found


_STORAGE_OF_NESTED: Final = re.compile(r"SYS_NT.*==")
_LOB_SEGMENT: Final = re.compile(r"LOB|LOBSEGMENT|LOB PARTITION|LOB SUBPARTITION")
_NONE: Final = ("", "NONE")
_IS_YES: Final = "YES"


def read_columns(reader: ViewReader) -> dict[tuple[str, ...], tuple[InventoryColumn, ...]]:
    """Read the columns of tables and views by (owner, name), in the order in which users see the
    columns.
    """
    comments = {
        (row[OWNER], row["TABLE_NAME"], row["COLUMN_NAME"]): row["COMMENTS"]
        for row in reader.rows(COL_COMMENTS)
    }
    identities = {
        (row[OWNER], row["TABLE_NAME"], row["COLUMN_NAME"]): row
        for row in reader.rows(IDENTITY_COLS)
    }
    found = {}
    for table, rows in grouped(reader.rows(TAB_COLS), "TABLE_NAME").items():
        rows.sort(key=lambda row: (row["COLUMN_ID"] or 1 << 30, row["INTERNAL_COLUMN_ID"] or 0))
        found[table] = tuple(
            _column(
                row,
                identities.get((*table, row["COLUMN_NAME"])),
                comments.get((*table, row["COLUMN_NAME"]), ""),
            )
            for row in rows
        )
    return found


def _column(row: Row, identity: Row | None, comment: str) -> InventoryColumn:
    hidden = row["HIDDEN_COLUMN"] == _IS_YES
    default = row["DATA_DEFAULT"].strip()
    return InventoryColumn(
        name=row["COLUMN_NAME"],
        data_type=row["DATA_TYPE"] or "UNDEFINED",
        type_owner=row["DATA_TYPE_OWNER"],
        length=int(row["DATA_LENGTH"] or 0),
        char_length=int(row["CHAR_LENGTH"] or 0),
        precision=row["DATA_PRECISION"],
        scale=row["DATA_SCALE"],
        nullable=row["NULLABLE"] != "N",
        default="" if default.upper() == "NULL" else default,
        default_on_null=row.get("DEFAULT_ON_NULL") == _IS_YES,
        identity=identity["GENERATION_TYPE"] if identity else "",
        identity_sequence=identity["SEQUENCE_NAME"] if identity else "",
        virtual=row["VIRTUAL_COLUMN"] == _IS_YES,
        hidden=hidden,
        invisible=hidden and row.get("USER_GENERATED") == _IS_YES,
        comment=comment,
    )


def read_tables(reader: ViewReader, columns: Columns) -> Iterator[InventoryTable]:
    """Read the tables, with the columns from `read_columns`.

    DBA_TABLES contains only relational tables. A table that is only in DBA_OBJECTS is an object
    table; tables of XMLTYPE are also object tables.
    """
    rows = reader.rows(TABLES)
    external = {(row[OWNER], row["TABLE_NAME"]) for row in reader.rows(EXTERNAL_TABLES)}
    containers = {(row[OWNER], row["MVIEW_NAME"]) for row in reader.rows(MVIEWS)}
    logs = {(row[OWNER], row["LOG_TABLE"]) for row in reader.rows(MVIEW_LOGS)}
    comments = {
        (row[OWNER], row["TABLE_NAME"]): row["COMMENTS"] for row in reader.rows(TAB_COMMENTS)
    }
    groups = grouped(reader.rows(LOG_GROUPS), "TABLE_NAME")
    sizes, lob_sizes = _sizes(reader)
    partitions = _partitions(reader)
    for row in sorted(rows, key=lambda row: (row[OWNER], row["TABLE_NAME"])):
        name = row[OWNER], row["TABLE_NAME"]
        kind = _kind(row)
        if name in external:
            kind = "external table"
        elif name in containers:
            kind = "materialized view"
        elif name in logs:
            kind = "materialized view log"
        yield InventoryTable(
            owner=name[0],
            name=name[1],
            kind=kind,
            columns=columns.get(name, ()),
            rows=row["NUM_ROWS"],
            bytes=sizes[name],
            lob_bytes=lob_sizes[name],
            comment=comments.get(name, ""),
            logging=tuple(sorted({one["LOG_GROUP_TYPE"] for one in groups.get(name, ())})),
            partitioning=partitions.get(name),
        )
    relational = {(row[OWNER], row["TABLE_NAME"]) for row in rows}
    for row in reader.rows(OBJECTS):
        name = row[OWNER], row["OBJECT_NAME"]
        is_of_oracle = _STORAGE_OF_NESTED.fullmatch(name[1]) or name[1].startswith("BIN$")
        if row["OBJECT_TYPE"] == "TABLE" and name not in relational and not is_of_oracle:
            yield InventoryTable(
                owner=name[0],
                name=name[1],
                kind="object table",
                columns=columns.get(name, ()),
                bytes=sizes[name],
                lob_bytes=lob_sizes[name],
                comment=comments.get(name, ""),
            )


def _kind(row: Row) -> str:
    if row["NESTED"] == _IS_YES:
        return "nested table"
    if row["TEMPORARY"] == "Y":
        return "temporary table"
    if row["CLUSTER_NAME"]:
        return "clustered table"
    return "index-organised table" if row["IOT_TYPE"] else "table"


def _sizes(reader: ViewReader) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]:
    """Return two sums for each table: the bytes of its segments, and the bytes of its LOB
    segments.
    """
    sizes, lobs = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    tables = {
        (row[OWNER], row["SEGMENT_NAME"]): (row[OWNER], row["TABLE_NAME"])
        for row in reader.rows(LOBS)
    }
    for row in reader.rows(SEGMENTS):
        name = row[OWNER], row["SEGMENT_NAME"]
        size = int(row["BYTES"] or 0)
        if _LOB_SEGMENT.fullmatch(row["SEGMENT_TYPE"]) and name in tables:
            lobs[tables[name]] += size
        elif row["SEGMENT_TYPE"].startswith("TABLE"):
            sizes[name] += size
    return sizes, lobs


def _partitions(reader: ViewReader) -> dict[tuple[str, str], Partitioning]:
    keys = grouped(reader.rows(PART_KEYS), "NAME")
    subkeys = grouped(reader.rows(SUBPART_KEYS), "NAME")
    parts = grouped(reader.rows(TAB_PARTITIONS), "TABLE_NAME")
    subparts = grouped(reader.rows(TAB_SUBPARTITIONS), "TABLE_NAME", "PARTITION_NAME")
    found = {}
    for row in reader.rows(PART_TABLES):
        name = row[OWNER], row["TABLE_NAME"]
        own = sorted(parts.get(name, ()), key=lambda one: one["PARTITION_POSITION"])
        submethod = row["SUBPARTITIONING_TYPE"]
        found[name] = Partitioning(
            method=row["PARTITIONING_TYPE"],
            columns=_key(keys.get(name, ())),
            submethod="" if submethod in _NONE else submethod,
            subcolumns=_key(subkeys.get(name, ())),
            interval=row["INTERVAL"].strip(),
            partitions=tuple(
                Partition(
                    name=one["PARTITION_NAME"],
                    high_value=one["HIGH_VALUE"].strip(),
                    subpartitions=_subpartitions(subparts.get((*name, one["PARTITION_NAME"]), ())),
                )
                for one in own
            ),
        )
    return found


def _key(rows: list[Row] | tuple[()]) -> tuple[str, ...]:
    tables = [row for row in rows if row["OBJECT_TYPE"].strip() == "TABLE"]
    ordered = sorted(tables, key=lambda row: int(row["COLUMN_POSITION"]))
    return tuple(row["COLUMN_NAME"] for row in ordered)


def _subpartitions(rows: list[Row] | tuple[()]) -> tuple[Partition, ...]:
    ordered = sorted(rows, key=lambda row: int(row["SUBPARTITION_POSITION"]))
    return tuple(
        Partition(name=row["SUBPARTITION_NAME"], high_value=row["HIGH_VALUE"].strip())
        for row in ordered
    )


_RELEASE: Final = re.compile(r"\d+")

_FIRST_WITH_FULL: Final = (18,)
"""The first release with the column VERSION_FULL, which contains the number of the release
update.
"""
_QUOTED: Final = re.compile(r'"([^"]+)"')
_PUBLIC: Final = "PUBLIC"
_BODY: Final = re.compile(r"\b(?:DECLARE|BEGIN|CALL|COMPOUND)\b", re.IGNORECASE)
_ON, _YES = "ENABLED", "YES"


def read_inventory(oracle: OracleDatabase, owners: Collection[str], scn: int) -> Inventory:
    """Read the objects in the schemas of `owners`.

    Args:
        scn: the current SCN; it is recorded in the inventory.

    Raises:
        OlrPgError: 7001 to 7009. A view that the account cannot read is recorded and causes no
            error.
    """
    return oracle.read(
        "reading the objects of the schemas",
        lambda connection: _Reader(connection, sorted(owners)).inventory(scn),
    )


class _Reader:
    def __init__(self, connection: Connection, owners: list[str]) -> None:
        self._connection = connection
        self._owners = owners
        self._version = self._read_version()
        release = _RELEASE.search(self._version)
        self._views = ViewReader(connection, owners, int(release.group()) if release else 19)

    def _read_version(self) -> str:
        columns = tables.PRODUCT.c
        release = (self._connection.dialect.server_version_info or ())[:1]
        told = columns.VERSION_FULL if release >= _FIRST_WITH_FULL else columns.VERSION
        found = self._connection.execute(select(told)).scalars().first()
        return str(found or "")

    def inventory(self, scn: int) -> Inventory:
        columns = read_columns(self._views)
        constraints = tuple(read_constraints(self._views))
        parts: dict[str, Any] = {
            "objects": tuple(self._objects()),
            "tables": tuple(read_tables(self._views, columns)),
            "constraints": constraints,
            "indexes": tuple(self._indexes(constraints)),
            "views": tuple(self._all_views(columns, constraints)),
            "materialized_views": tuple(self._materialized_views()),
            "sequences": tuple(self._sequences()),
            "synonyms": tuple(self._synonyms()),
            "triggers": tuple(self._triggers()),
            "sources": tuple(self._sources()),
            "types": tuple(self._types()),
            "jobs": tuple(self._jobs()),
            "links": tuple(self._links()),
            "grants": tuple(self._grants()),
            "named": tuple(self._named()),
        }
        looked_at = [view.full_name for view in NAMED_VIEWS.values()]
        database = self._connection.execute(select(tables.DATABASE.c.NAME)).scalars().first()
        return Inventory(
            scn=scn,
            database=str(database or ""),
            version=self._version,
            owners=tuple(self._owners),
            others=tuple(self._others()),
            redo=read_redo_volume(self._connection, self._views.unread),
            **parts,
            looked_at=tuple(one for one in looked_at if one not in self._views.unread),
            unread=tuple(dict.fromkeys(self._views.unread)),
        )

    def _sorted(self, view: DictionaryView, *names: str) -> list[Row]:
        return sorted(self._views.rows(view), key=itemgetter(OWNER, *names))

    def _objects(self) -> Iterator[SchemaObject]:
        for row in self._sorted(OBJECTS, "OBJECT_TYPE", "OBJECT_NAME", "SUBOBJECT_NAME"):
            yield SchemaObject(
                owner=row[OWNER],
                name=_whole(row),
                kind=row["OBJECT_TYPE"],
                status=row["STATUS"] or "VALID",
            )

    def _others(self) -> Iterator[OtherSchema]:
        """Count the objects in the schemas of other users."""
        if not self._views.tells_all:
            return
        objects = tables.OBJECTS
        query = select(objects.c.OWNER, func.count().label("N")).group_by(objects.c.OWNER)
        for owner, count in sorted(map(tuple, self._connection.execute(query).all())):
            if owner not in self._owners and not is_oracle_schema(owner):
                yield OtherSchema(owner=owner, objects=int(count))

    def _indexes(self, constraints: tuple[Constraint, ...]) -> Iterator[InventoryIndex]:
        keys = {
            (one.owner, one.table, one.index): one.name
            for one in constraints
            if one.index and one.kind in ("primary key", "unique")
        }
        columns = grouped(self._views.rows(IND_COLUMNS), "INDEX_OWNER", "INDEX_NAME")
        expressions = {
            (row["INDEX_OWNER"], row["INDEX_NAME"], row["COLUMN_POSITION"]): row[
                "COLUMN_EXPRESSION"
            ].strip()
            for row in self._views.rows(IND_EXPRESSIONS)
        }
        for row in self._sorted(INDEXES, "OWNER", "INDEX_NAME"):
            own = columns[row[OWNER], row["OWNER"], row["INDEX_NAME"]]
            parts = [
                _index_part(
                    one, expressions.get((row["OWNER"], row["INDEX_NAME"], one["COLUMN_POSITION"]))
                )
                for one in sorted(own, key=lambda one: one["COLUMN_POSITION"])
            ]
            yield InventoryIndex(
                owner=row["OWNER"],
                name=row["INDEX_NAME"],
                table_owner=row[OWNER],
                table=row["TABLE_NAME"],
                kind=row["INDEX_TYPE"],
                unique=row["UNIQUENESS"] == "UNIQUE",
                parts=tuple(parts),
                constraint=keys.get((row[OWNER], row["TABLE_NAME"], row["INDEX_NAME"]), ""),
                usable=row["STATUS"] != "UNUSABLE",
            )

    def _all_views(
        self, columns: Columns, constraints: tuple[Constraint, ...]
    ) -> Iterator[InventoryView]:
        comments = {
            (row[OWNER], row["TABLE_NAME"]): row["COMMENTS"]
            for row in self._views.rows(TAB_COMMENTS)
        }
        kinds = {(one.owner, one.table, one.oracle_kind) for one in constraints}
        for row in self._sorted(VIEWS, "VIEW_NAME"):
            name = row[OWNER], row["VIEW_NAME"]
            yield InventoryView(
                owner=name[0],
                name=name[1],
                text=row["TEXT"].strip(),
                columns=columns.get(name, ()),
                comment=comments.get(name, ""),
                read_only=(*name, "O") in kinds,
                check_option=(*name, "V") in kinds,
            )

    def _materialized_views(self) -> Iterator[MaterializedView]:
        for row in self._sorted(MVIEWS, "MVIEW_NAME"):
            yield MaterializedView(
                owner=row[OWNER],
                name=row["MVIEW_NAME"],
                query=row["QUERY"].strip(),
                refresh_mode=row["REFRESH_MODE"],
            )

    def _sequences(self) -> Iterator[Sequence]:
        for row in self._sorted(SEQUENCES, "SEQUENCE_NAME"):
            yield Sequence(
                owner=row[OWNER],
                name=row["SEQUENCE_NAME"],
                minimum=_int64(row["MIN_VALUE"]),
                maximum=_int64(row["MAX_VALUE"]),
                increment=_int64(row["INCREMENT_BY"]),
                cycle=row["CYCLE_FLAG"] == "Y",
                cache=_int64(row["CACHE_SIZE"]),
                next=_int64(row["LAST_NUMBER"]),
            )

    def _synonyms(self) -> Iterator[Synonym]:
        public = [
            row | {"TABLE_OWNER": row[OWNER], OWNER: _PUBLIC}
            for row in self._views.rows(PUBLIC_SYNONYMS)
            if row["OWNER"] == _PUBLIC
        ]
        own = self._views.rows(SYNONYMS)
        for row in sorted((*own, *public), key=lambda row: (row[OWNER], row["SYNONYM_NAME"])):
            yield Synonym(
                owner=row[OWNER],
                name=row["SYNONYM_NAME"],
                target_owner=row["TABLE_OWNER"],
                target=row["TABLE_NAME"],
                link=row["DB_LINK"],
            )

    def _named(self) -> Iterator[NamedObject]:
        for kind, view in NAMED_VIEWS.items():
            first, *rest = view.texts.split()
            for row in self._sorted(view, *view.texts.split()):
                detail = " ".join(row[column] for column in rest if row[column])
                yield NamedObject(owner=row[OWNER], name=row[first], kind=kind, detail=detail)

    def _triggers(self) -> Iterator[Trigger]:
        heads = self._trigger_heads()
        for row in self._sorted(TRIGGERS, "TRIGGER_NAME"):
            yield Trigger(
                owner=row[OWNER],
                name=row["TRIGGER_NAME"],
                kind=row["TRIGGER_TYPE"],
                event=row["TRIGGERING_EVENT"].strip(),
                base=row["BASE_OBJECT_TYPE"].strip(),
                table_owner=row["TABLE_OWNER"],
                table=row["TABLE_NAME"],
                when=row["WHEN_CLAUSE"],
                head=heads.get((row[OWNER], row["TRIGGER_NAME"]), ""),
                body=row["TRIGGER_BODY"],
                enabled=row["STATUS"] == _ON,
            )

    @cached_property
    def _units(self) -> dict[tuple[str, ...], list[Row]]:
        return grouped(self._views.rows(SOURCE), "TYPE", "NAME")

    def _trigger_heads(self) -> dict[tuple[str, str], str]:
        """Return the text before the body of each trigger; only this text contains the columns of
        UPDATE OF.
        """
        return {
            (owner, name): _BODY.split(
                "".join(row["TEXT"] for row in sorted(lines, key=itemgetter("LINE"))), maxsplit=1
            )[0]
            for (owner, kind, name), lines in self._units.items()
            if kind == "TRIGGER"
        }

    def _sources(self) -> Iterator[UnitSource]:
        """Join the source lines of each PL/SQL unit. Triggers are skipped, because their text is
        read from another view.
        """
        for (owner, kind, name), lines in sorted(self._units.items()):
            if kind != "TRIGGER":
                ordered = sorted(lines, key=lambda row: row["LINE"])
                text = "".join(
                    row["TEXT"] if row["TEXT"].endswith("\n") else row["TEXT"] + "\n"
                    for row in ordered
                )
                yield UnitSource(owner=owner, name=name, kind=kind, text=text)

    def _types(self) -> Iterator[UserType]:
        for row in self._sorted(TYPES, "TYPE_NAME"):
            yield UserType(
                owner=row[OWNER],
                name=row["TYPE_NAME"],
                kind=row["TYPECODE"],
                attributes=int(row["ATTRIBUTES"] or 0),
            )

    def _jobs(self) -> Iterator[SchedulerJob]:
        for row in self._sorted(SCHEDULER_JOBS, "JOB_NAME"):
            yield SchedulerJob(
                owner=row[OWNER],
                name=row["JOB_NAME"],
                kind=row["JOB_TYPE"],
                action=row["JOB_ACTION"],
                schedule=row["REPEAT_INTERVAL"],
                enabled=row["ENABLED"] == "TRUE",
            )
        for row in self._sorted(JOBS, "JOB"):
            yield SchedulerJob(
                owner=row[OWNER],
                name=f"DBMS_JOB {row['JOB']}",
                kind="DBMS_JOB",
                action=row["WHAT"],
                schedule=row["INTERVAL"],
                enabled=row["BROKEN"] != "Y",
            )

    def _links(self) -> Iterator[DatabaseLink]:
        for row in self._sorted(DB_LINKS, "DB_LINK"):
            yield DatabaseLink(
                owner=row[OWNER], name=row["DB_LINK"], user=row["USERNAME"], host=row["HOST"]
            )

    def _grants(self) -> Iterator[Grant]:
        for row in self._sorted(TAB_PRIVS, "TABLE_NAME", "GRANTEE", "PRIVILEGE"):
            yield Grant(
                owner=row[OWNER],
                name=row["TABLE_NAME"],
                grantee=row["GRANTEE"],
                privilege=row["PRIVILEGE"],
                grantable=row["GRANTABLE"] == _YES,
                kind=row.get("TYPE", ""),
            )


def _whole(row: dict[str, Any]) -> str:
    """Return the full name of an object; for a partition, with the name of its parent."""
    part = row["SUBOBJECT_NAME"]
    return f"{row['OBJECT_NAME']}.{part}" if part else str(row["OBJECT_NAME"])


def _index_part(row: dict[str, Any], expression: str | None) -> IndexPart:
    """Return a part of an index. Oracle stores a descending column as an expression that contains
    only the quoted column; it is converted back to the column's name.
    """
    descending = row["DESCEND"] == "DESC"
    if expression is None:
        return IndexPart(text=row["COLUMN_NAME"], descending=descending)
    column = _QUOTED.fullmatch(expression)
    if column is not None:
        return IndexPart(text=column[1], descending=descending)
    return IndexPart(text=expression, expression=True, descending=descending)


def _int64(value: int) -> int:
    return min(max(int(value), INT64_MIN), INT64_MAX)


_KINDS: Final[dict[str, ConstraintKind]] = {
    "P": "primary key",
    "U": "unique",
    "R": "foreign key",
    "C": "check",
}
_NOT_NULL: Final = re.compile(r'\s*"[^"]+"\s+IS\s+NOT\s+NULL\s*', re.IGNORECASE)


def read_constraints(reader: ViewReader) -> Iterator[Constraint]:
    """Read the constraints with their columns; for a foreign key also the referenced columns."""
    columns = {
        name: tuple(row["COLUMN_NAME"] for row in sorted(rows, key=lambda row: _position(row)))
        for name, rows in grouped(reader.rows(CONS_COLUMNS), "CONSTRAINT_NAME").items()
    }
    rows = {(row[OWNER], row["CONSTRAINT_NAME"]): row for row in reader.rows(CONSTRAINTS)}
    for name, row in sorted(rows.items(), key=lambda item: (item[1]["TABLE_NAME"], item[0])):
        parent_name = row["R_OWNER"], row["R_CONSTRAINT_NAME"]
        parent = rows.get(parent_name)
        condition = row["SEARCH_CONDITION"].strip()
        yield Constraint(
            owner=name[0],
            name=name[1],
            table=row["TABLE_NAME"],
            kind=_KINDS.get(row["CONSTRAINT_TYPE"], "other"),
            oracle_kind=row["CONSTRAINT_TYPE"],
            columns=columns.get(name, ()),
            condition=condition,
            enabled=row["STATUS"] == "ENABLED",
            validated=row["VALIDATED"] == "VALIDATED",
            deferrable=row["DEFERRABLE"] == "DEFERRABLE",
            deferred=row["DEFERRED"] == "DEFERRED",
            generated_name=row["GENERATED"] == "GENERATED NAME",
            parent_owner=row["R_OWNER"],
            parent_table=parent["TABLE_NAME"] if parent else "",
            parent_columns=columns.get(parent_name, ()) if parent else (),
            delete_rule=row["DELETE_RULE"],
            index=row["INDEX_NAME"],
            not_null=_NOT_NULL.fullmatch(condition) is not None,
        )


def _position(row: Row) -> int:
    """Return a column's position in the constraint; columns of a check constraint have no
    position.
    """
    return int(row["POSITION"] or 0)


def read_redo_volume(connection: Connection, unread: list[str]) -> tuple[LogDay, ...]:
    """Add up the sizes of the archived logs for each day. A log counts once, on the day of its
    first change.

    Args:
        unread: receives the view's name if the account cannot read it.
    """
    columns = [LOG_VOLUME.c[name] for name in ("THREAD#", "SEQUENCE#", "RESETLOGS_ID")]
    sizes = [LOG_VOLUME.c[name] for name in ("FIRST_TIME", "BLOCKS", "BLOCK_SIZE")]
    try:
        rows = connection.execute(select(*columns, *sizes)).all()
    except (sqlalchemy.exc.DBAPIError, oracledb.Error) as error:
        if oracle_error(error, "").code != PRIVILEGE:
            raise
        unread.append("V$ARCHIVED_LOG")
        return ()
    logs, size, seen = Counter[str](), Counter[str](), set[tuple[int, ...]]()
    for thread, sequence, resetlogs, began, blocks, block_size in rows:
        if began is None or (thread, sequence, resetlogs) in seen:
            continue
        seen.add((thread, sequence, resetlogs))
        day = str(began)[:10]
        logs[day] += 1
        size[day] += int(blocks) * int(block_size)
    return tuple(LogDay(day=day, logs=logs[day], bytes=size[day]) for day in sorted(logs))
