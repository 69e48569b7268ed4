"""Reads the inventory of a live database: all objects in some schemas (`dictionary.inventory`).

The views show the current state; they cannot be read as of an SCN. Columns of type LONG
(DATA_DEFAULT, SEARCH_CONDITION, HIGH_VALUE, TEXT, TRIGGER_BODY) are read without conversion.

It also reads the tables of an inventory: columns, partitions, sizes.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import oracledb
import sqlalchemy.exc
from sqlalchemy import func, select

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
from olr_pg.oracle.driver.driver_failures import PRIVILEGE, oracle_error
from olr_pg.oracle.inventory import dictionary_views as views
from olr_pg.oracle.inventory.dictionary_views import OWNER, ViewReader, grouped
from olr_pg.oracle.tables import LOG_VOLUME

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from sqlalchemy import Connection

    from olr_pg.oracle.inventory.dictionary_views import DictionaryView, Row
    from olr_pg.oracle.oracle_connection import OracleDatabase

    Columns = Mapping[tuple[str, ...], tuple[InventoryColumn, ...]]

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
        for row in reader.rows(views.COL_COMMENTS)
    }
    identities = {
        (row[OWNER], row["TABLE_NAME"], row["COLUMN_NAME"]): row
        for row in reader.rows(views.IDENTITY_COLS)
    }
    found = {}
    for table, rows in grouped(reader.rows(views.TAB_COLS), "TABLE_NAME").items():
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

    DBA_TABLES contains only relational tables. The other tables of DBA_OBJECTS are object tables,
    which includes tables of XMLTYPE.
    """
    rows = reader.rows(views.TABLES)
    external = {(row[OWNER], row["TABLE_NAME"]) for row in reader.rows(views.EXTERNAL_TABLES)}
    containers = {(row[OWNER], row["MVIEW_NAME"]) for row in reader.rows(views.MVIEWS)}
    logs = {(row[OWNER], row["LOG_TABLE"]) for row in reader.rows(views.MVIEW_LOGS)}
    comments = {
        (row[OWNER], row["TABLE_NAME"]): row["COMMENTS"] for row in reader.rows(views.TAB_COMMENTS)
    }
    groups = grouped(reader.rows(views.LOG_GROUPS), "TABLE_NAME")
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
            temporary_duration=row["DURATION"],
        )
    relational = {(row[OWNER], row["TABLE_NAME"]) for row in rows}
    for row in reader.rows(views.OBJECTS):
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
        for row in reader.rows(views.LOBS)
    }
    for row in reader.rows(views.SEGMENTS):
        name = row[OWNER], row["SEGMENT_NAME"]
        size = int(row["BYTES"] or 0)
        if _LOB_SEGMENT.fullmatch(row["SEGMENT_TYPE"]) and name in tables:
            lobs[tables[name]] += size
        elif row["SEGMENT_TYPE"].startswith("TABLE"):
            sizes[name] += size
    return sizes, lobs


def _partitions(reader: ViewReader) -> dict[tuple[str, str], Partitioning]:
    keys = grouped(reader.rows(views.PART_KEYS), "NAME")
    subkeys = grouped(reader.rows(views.SUBPART_KEYS), "NAME")
    parts = grouped(reader.rows(views.TAB_PARTITIONS), "TABLE_NAME")
    subparts = grouped(reader.rows(views.TAB_SUBPARTITIONS), "TABLE_NAME", "PARTITION_NAME")
    found = {}
    for row in reader.rows(views.PART_TABLES):
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
        looked_at = [view.full_name for view in views.NAMED_VIEWS.values()]
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
        for row in self._sorted(views.OBJECTS, "OBJECT_TYPE", "OBJECT_NAME", "SUBOBJECT_NAME"):
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
        columns = grouped(self._views.rows(views.IND_COLUMNS), "INDEX_OWNER", "INDEX_NAME")
        expressions = {
            (row["INDEX_OWNER"], row["INDEX_NAME"], row["COLUMN_POSITION"]): row[
                "COLUMN_EXPRESSION"
            ].strip()
            for row in self._views.rows(views.IND_EXPRESSIONS)
        }
        for row in self._sorted(views.INDEXES, "OWNER", "INDEX_NAME"):
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
                partitioned=row["PARTITIONED"] == _YES,
            )

    def _all_views(
        self, columns: Columns, constraints: tuple[Constraint, ...]
    ) -> Iterator[InventoryView]:
        comments = {
            (row[OWNER], row["TABLE_NAME"]): row["COMMENTS"]
            for row in self._views.rows(views.TAB_COMMENTS)
        }
        kinds = {(one.owner, one.table, one.oracle_kind) for one in constraints}
        for row in self._sorted(views.VIEWS, "VIEW_NAME"):
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
        for row in self._sorted(views.MVIEWS, "MVIEW_NAME"):
            yield MaterializedView(
                owner=row[OWNER],
                name=row["MVIEW_NAME"],
                query=row["QUERY"].strip(),
                refresh_mode=row["REFRESH_MODE"],
                refresh_method=row["REFRESH_METHOD"],
                build_mode=row["BUILD_MODE"],
            )

    def _sequences(self) -> Iterator[Sequence]:
        for row in self._sorted(views.SEQUENCES, "SEQUENCE_NAME"):
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
            for row in self._views.rows(views.PUBLIC_SYNONYMS)
            if row["OWNER"] == _PUBLIC
        ]
        own = self._views.rows(views.SYNONYMS)
        for row in sorted((*own, *public), key=lambda row: (row[OWNER], row["SYNONYM_NAME"])):
            yield Synonym(
                owner=row[OWNER],
                name=row["SYNONYM_NAME"],
                target_owner=row["TABLE_OWNER"],
                target=row["TABLE_NAME"],
                link=row["DB_LINK"],
            )

    def _named(self) -> Iterator[NamedObject]:
        for kind, view in views.NAMED_VIEWS.items():
            first, *rest = view.texts.split()
            for row in self._sorted(view, *view.texts.split()):
                detail = " ".join(row[column] for column in rest if row[column])
                yield NamedObject(owner=row[OWNER], name=row[first], kind=kind, detail=detail)

    def _triggers(self) -> Iterator[Trigger]:
        heads = self._trigger_heads()
        for row in self._sorted(views.TRIGGERS, "TRIGGER_NAME"):
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
        return grouped(self._views.rows(views.SOURCE), "TYPE", "NAME")

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
        for row in self._sorted(views.TYPES, "TYPE_NAME"):
            yield UserType(
                owner=row[OWNER],
                name=row["TYPE_NAME"],
                kind=row["TYPECODE"],
                attributes=int(row["ATTRIBUTES"] or 0),
            )

    def _jobs(self) -> Iterator[SchedulerJob]:
        for row in self._sorted(views.SCHEDULER_JOBS, "JOB_NAME"):
            yield SchedulerJob(
                owner=row[OWNER],
                name=row["JOB_NAME"],
                kind=row["JOB_TYPE"],
                action=row["JOB_ACTION"],
                schedule=row["REPEAT_INTERVAL"],
                enabled=row["ENABLED"] == "TRUE",
            )
        for row in self._sorted(views.JOBS, "JOB"):
            yield SchedulerJob(
                owner=row[OWNER],
                name=f"DBMS_JOB {row['JOB']}",
                kind="DBMS_JOB",
                action=row["WHAT"],
                schedule=row["INTERVAL"],
                enabled=row["BROKEN"] != "Y",
            )

    def _links(self) -> Iterator[DatabaseLink]:
        for row in self._sorted(views.DB_LINKS, "DB_LINK"):
            yield DatabaseLink(
                owner=row[OWNER], name=row["DB_LINK"], user=row["USERNAME"], host=row["HOST"]
            )

    def _grants(self) -> Iterator[Grant]:
        for row in self._sorted(views.TAB_PRIVS, "TABLE_NAME", "GRANTEE", "PRIVILEGE"):
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
        for name, rows in grouped(reader.rows(views.CONS_COLUMNS), "CONSTRAINT_NAME").items()
    }
    rows = {(row[OWNER], row["CONSTRAINT_NAME"]): row for row in reader.rows(views.CONSTRAINTS)}
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
