"""Maps a relation of PostgreSQL to its table in Oracle, and its columns to the table's columns.

`unpublished` and `PartitionWatch` detect changes that PostgreSQL does not send. PostgreSQL sends no
DDL, and it sends nothing that would show that changes are missing:

- A publication contains tables by their OID. A table that was dropped and created again, or removed
  from the publication, is not in it any more, and a renamed table has another name in the stream.
  A table that is not published any more, or has another name, must stop, because its changes would
  be lost.
- The tables are published as a whole (``publish_via_partition_root``). With this option, PostgreSQL
  does not send the TRUNCATE of one partition (CREATE PUBLICATION). PostgreSQL never sends DROP and
  DETACH. The rows stay in Oracle. Partitions are often removed on purpose, so a removed partition
  is only reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from olr_pg.applier.statements.target_plan import target_columns, target_name
from olr_pg.applier.target.catalogue import column_of_type, read_table
from olr_pg.datatypes.mapping import OracleType
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from psycopg import Connection

    from olr_pg.dictionary.model import Column, Table
    from olr_pg.fallback.pgoutput import Relation
    from olr_pg.fallback.way_back import ValueColumn, WayBack

OWN_TABLES: Final = (("olr_pg", "ledger"), ("olr_pg", "load_part"))
"""Tables that only the replication from Oracle changes. If a transaction changes one of them, its
changes came from Oracle and must not be sent back.
"""

NOT_SENT: Final = "PostgreSQL computes the column (GENERATED), and does not send its values"
"""The error of a column that is generated in PostgreSQL and stored in Oracle."""

GENERATED_ACTION: Final = (
    "run `ALTER TABLE … ALTER … DROP EXPRESSION` in PostgreSQL before applications write, or make"
    " the column virtual in Oracle; with an offline source, also export the dictionary again"
)

_OIDS: Final = """
SELECT n.nspname::text, c.relname::text, c.oid::int8
FROM unnest(%s::text[], %s::text[]) AS w (schema, name)
JOIN pg_namespace n ON n.nspname = w.schema
JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = w.name
"""


_PLACES: Final = """
SELECT attnum, CASE WHEN NOT attisdropped THEN attname::text END
FROM pg_attribute WHERE attrelid = %s AND attnum > 0 ORDER BY 1
"""


class PlannedColumn(NamedTuple):
    """A column of Oracle's table, and the conversion of its values.

    Attributes:
        name: the column's name in Oracle.
        values: the conversion of its values; None if `fallback.omit-columns` lists the column.
        empty: the SQL expression of an empty LOB, because Oracle treats an empty bind value as
            NULL; None for other types.
    """

    name: str
    values: ValueColumn | None
    empty: str | None = None


class RelationPlan(NamedTuple):
    """Describes how rows of one relation are written to Oracle's table.

    Attributes:
        columns: the columns of the relation's row, in order.
        key: numbers of the key's columns in `columns`.
        is_partial: whether Oracle's table has rows that a filter keeps out of PostgreSQL.
        is_key_logged: whether PostgreSQL sends the old key of each row whose key changes, because
            the replica identity contains the key.
    """

    table: Table
    columns: tuple[PlannedColumn, ...]
    key: tuple[int, ...]
    is_partial: bool = False
    is_key_logged: bool = True

    @property
    def name(self) -> str:
        """``OWNER.NAME``."""
        return self.table.full_name

    @property
    def place(self) -> str:
        """The table's quoted name for Oracle's SQL."""
        return f"{quoted(self.table.source_owner)}.{quoted(self.table.name)}"


def quoted(name: str) -> str:
    """Quote an identifier for Oracle."""
    return f'"{name}"'


def key_names(table: Table) -> list[str]:
    """Return the columns that identify a row in Oracle, in key order.

    Raises:
        OlrPgError: 7310, the table has no key.
    """
    names = {column.intcol: column.name for column in table.columns}
    if not table.key:
        raise OlrPgError(
            Code.FALLBACK_TABLE_UNFIT,
            "the table has no primary or unique key in Oracle",
            table=table.full_name,
        )
    return [names[number] for number in table.key]


def target_tables(way: WayBack) -> dict[tuple[str, str], Table]:
    """Return the tables by their (schema, name) in PostgreSQL."""
    return {target_name(way.settings, one.owner, one.name): one for one in way.tables}


class RelationPlans:
    """The plans of a run.

    Args:
        connection: a connection to PostgreSQL in autocommit mode.
    """

    def __init__(self, way: WayBack, connection: Connection[Any]) -> None:
        self._way = way
        self._connection = connection
        self._tables = target_tables(way)
        self._relations: dict[int, Relation] = {}
        self._plans: dict[int, RelationPlan | OlrPgError | None] = {}
        # Read the OIDs from the catalog, because PostgreSQL sends the description of a relation
        # only before its first change, and with the name that the relation had then: somebody may
        # have renamed the table since, or may rename it later.
        oids = _oids(connection, [*OWN_TABLES, *self._tables])
        self._own = {oids[place] for place in OWN_TABLES if place in oids}
        self._places = {oids[place]: place for place in self._tables if place in oids}

    def describe(self, relation: Relation) -> bool:
        """Store the description of a relation; return whether its columns differ from those of the
        previous description.
        """
        before = self._relations.get(relation.oid)
        if before == relation:
            return False
        self._relations[relation.oid] = relation
        if (relation.schema, relation.name) in OWN_TABLES:
            self._own.add(relation.oid)
        try:
            self._plans[relation.oid] = self._plan(relation)
        except OlrPgError as error:
            self._plans[relation.oid] = error
        return before is not None and before.columns != relation.columns

    def replaced(self) -> dict[tuple[str, str], str]:
        """Return the tables whose name belongs to another table since this object was created, with
        the reason: (schema, name) in PostgreSQL → the reason.
        """
        now = _oids(self._connection, list(self._places.values()))
        return {
            place: f"another table has the name {place[0]}.{place[1]} now"
            for oid, place in self._places.items()
            if now.get(place, oid) != oid
        }

    def known(self) -> tuple[dict[int, Any], dict[int, Any]]:
        """Return the current descriptions, for `restore`."""
        return dict(self._relations), dict(self._plans)

    def restore(self, known: tuple[dict[int, Any], dict[int, Any]]) -> None:
        """Set the descriptions back to `known`; PostgreSQL will send later descriptions again."""
        self._relations, self._plans = dict(known[0]), dict(known[1])

    def is_own(self, oid: int) -> bool:
        """Return whether a relation is a bookkeeping table of the replication from Oracle."""
        return oid in self._own

    def table_name(self, oid: int) -> str | None:
        """Return ``OWNER.NAME`` of a relation; None if it is not replicated to Oracle."""
        found = self._relations.get(oid)
        table = None if found is None else self._tables.get(self._place(found))
        return None if table is None else table.full_name

    def _place(self, relation: Relation) -> tuple[str, str]:
        """Return the current schema and name of a relation, which can have had another name when
        its row was written. The table of a relation that was dropped is found by its name.
        """
        return self._places.get(relation.oid, (relation.schema, relation.name))

    def plan(self, oid: int) -> RelationPlan | None:
        """Return the plan of a relation; None if it is not replicated to Oracle.

        Raises:
            OlrPgError: 7300 the relation's description is missing, 7310 and 7313 changes of the
                relation cannot be written to Oracle.
        """
        if oid not in self._relations:
            raise OlrPgError(Code.PGOUTPUT_MALFORMED, f"relation {oid} was not described")
        found = self._plans[oid]
        if isinstance(found, OlrPgError):
            raise found
        return found

    def _plan(self, relation: Relation) -> RelationPlan | None:
        place = self._place(relation)
        table = self._tables.get(place)
        if table is None:
            return None
        columns = self._columns(relation, table, place)
        numbers = {one.name: number for number, one in enumerate(columns) if one.values is not None}
        key = key_names(table)
        if lacking := [name for name in key if name not in numbers]:
            raise OlrPgError(
                Code.FALLBACK_TABLE_UNFIT,
                f"PostgreSQL does not have the key's columns {', '.join(lacking)}",
                table=table.full_name,
            )
        numbered = tuple(numbers[name] for name in key)
        return RelationPlan(
            table,
            tuple(columns),
            numbered,
            table.full_name in self._way.partial,
            all(relation.columns[number].is_key for number in numbered),
        )

    def _columns(
        self, relation: Relation, table: Table, place: tuple[str, str]
    ) -> list[PlannedColumn]:
        """Plan the columns of rows that can be older than the columns of the catalogue.

        A column that PostgreSQL does not have any more is left out, and so is one that it did not
        have yet. If there are both, a column may have been renamed: then the values would be lost.
        If a column has a name that another column had, the values would go to the wrong column.
        """
        target = read_table(self._connection, *place)
        types = {} if target is None else {one.name: one for one in target.columns}
        sources = {column.name: column for column in table.delivered}
        back = {pg: name for name, pg in target_columns(self._way.settings, table).items()}
        columns, gone = list[PlannedColumn](), list[str]()
        for one in relation.columns:
            source, typed = sources.get(back.get(one.name, "")), types.get(one.name)
            if source is None:
                if typed is None:
                    gone.append(one.name)
                elif not self._way.omits(table.full_name, one.name):
                    raise _changed(table, one.name, "Oracle has no such column")
                columns.append(PlannedColumn(one.name, None))
                continue
            if typed is None or typed.type_oid != one.type_oid:
                # The rows are older than the column's present type, or than its removal.
                typed = column_of_type(self._connection, *one[:3])
            if typed is None:
                raise _changed(table, one.name, "its type was dropped")
            made = self._way.value_column(table.full_name, source, typed)
            columns.append(PlannedColumn(source.name, made, _empty(source)))
        there = {one.name for one in columns if one.values is not None}
        for pg, name in back.items():
            known = types.get(pg)
            if name in there:
                continue
            if known is None or known.generated:
                what = NOT_SENT if known else "PostgreSQL does not have the column any more"
                raise _changed(table, name, what)
            if gone:
                what = f"the row does not have the column, but has {', '.join(gone)} in its place"
                raise _changed(table, name, what)
        if target is not None:
            places = self._connection.execute(_PLACES, (target.oid,)).fetchall()
            renamed = _renamed(relation, places)
            if renamed is not None:
                raise _changed(table, renamed, "a column was renamed after the row was written")
        return columns


def _renamed(relation: Relation, places: Sequence[tuple[int, str | None]]) -> str | None:
    """Return the first column of a row's description that shows that columns were renamed since
    then. Return None if no column shows this.

    A column keeps its number (ATTNUM) when it is renamed, and a dropped column leaves its number
    unused. PostgreSQL describes the columns of a row in the order of their numbers. So each column
    has the number of the column that has its name now, or of a dropped column.

    Args:
        places: the numbers of the table's columns with their names, in order; None as the name of a
            dropped column.
    """
    last = 0
    for column in relation.columns:
        free = (number for number, name in places if number > last and name in (column.name, None))
        last = next(free, 0)
        if not last:
            return column.name
    return None


def _changed(table: Table, column: str, what: str) -> OlrPgError:
    return OlrPgError(Code.FALLBACK_TABLE_CHANGED, what, table=table.full_name, column=column)


def _oids(
    connection: Connection[Any], tables: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], int]:
    """Return the OIDs of the tables that exist, by their (schema, name)."""
    schemas, names = ([one[place] for one in tables] for place in (0, 1))
    found = connection.execute(_OIDS, (schemas, names)).fetchall()
    return {(schema, name): oid for schema, name, oid in found}


def _empty(column: Column) -> str | None:
    if column.xml or column.stored_as_lob:
        return None
    if column.type_code == OracleType.CLOB:
        return "EMPTY_CLOB()"
    return "EMPTY_BLOB()" if column.type_code == OracleType.BLOB else None


_PUBLISHED: Final = """
SELECT w.schema, w.name, c.oid IS NOT NULL,
    p.pubinsert AND p.pubupdate AND p.pubdelete AND p.pubtruncate
    AND (p.pubviaroot OR c.relkind = 'r')
    AND (p.puballtables
        OR EXISTS (SELECT FROM pg_publication_namespace s
            WHERE s.pnpubid = p.oid AND s.pnnspid = n.oid)
        OR EXISTS (SELECT FROM pg_publication_rel r WHERE r.prpubid = p.oid AND r.prrelid = c.oid
            AND r.prqual IS NULL AND r.prattrs IS NULL)) IS TRUE
FROM unnest(%s::text[], %s::text[]) AS w (schema, name)
LEFT JOIN pg_namespace n ON n.nspname = w.schema
LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = w.name AND c.relkind IN ('r', 'p')
LEFT JOIN pg_publication p ON p.pubname = %s
"""
_PARTITIONS: Final = """
WITH RECURSIVE part AS (
    SELECT w.schema, w.name, c.oid
    FROM unnest(%s::text[], %s::text[]) AS w (schema, name)
    JOIN pg_namespace n ON n.nspname = w.schema
    JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = w.name AND c.relkind = 'p'
  UNION ALL
    SELECT part.schema, part.name, i.inhrelid FROM pg_inherits i JOIN part ON i.inhparent = part.oid
)
SELECT c.oid::int8, part.schema, part.name, c.relname, c.relfilenode::int8, c.reltuples < 0
FROM part JOIN pg_class c ON c.oid = part.oid WHERE c.relkind = 'r'
"""
"""Only the catalogue is read: the functions for partitions and sizes would wait for locks."""


def unpublished(way: WayBack, connection: Connection[Any]) -> dict[tuple[str, str], str]:
    """Return the tables whose changes the publication does not contain, with the reason.

    A publication contains tables by their OID. So a publication does not contain a table that was
    dropped and created again. PostgreSQL sends nothing of such a new table, without an error.

    Returns:
        (schema, name) in PostgreSQL → the reason; also for `OWN_TABLES`.
    """
    wanted = [*target_tables(way), *OWN_TABLES]
    schemas, names = ([one[place] for one in wanted] for place in (0, 1))
    rows = connection.execute(_PUBLISHED, (schemas, names, way.publication)).fetchall()
    return {
        (schema, name): f"the publication {way.publication} does not contain all changes of"
        f" {schema}.{name}: the table was created again, or the publication was changed"
        if exists
        else f"PostgreSQL has no table {schema}.{name}: it was renamed or dropped"
        for schema, name, exists, is_published in rows
        if not is_published
    }


class EmptiedPartition(NamedTuple):
    """A partition of PostgreSQL whose rows have gone without a message to Oracle.

    Attributes:
        table: ``OWNER.NAME`` of its table in Oracle.
        partition: the partition's name in PostgreSQL.
        reason: what happened to the partition.
    """

    table: str
    partition: str
    reason: str


class _Leaf(NamedTuple):
    table: tuple[str, str]
    name: str
    file: int
    is_new: bool


class PartitionWatch:
    """Notices partitions that are emptied or removed between two calls of `emptied`.

    Args:
        connection: a connection to PostgreSQL in autocommit mode.
    """

    def __init__(self, way: WayBack, connection: Connection[Any]) -> None:
        self._tables = target_tables(way)
        self._connection = connection
        self._leaves = self._read()

    def _read(self) -> dict[int, _Leaf]:
        schemas, names = ([one[place] for one in self._tables] for place in (0, 1))
        rows = self._connection.execute(_PARTITIONS, (schemas, names)).fetchall()
        return {
            oid: _Leaf((schema, name), partition, file, is_new)
            for oid, schema, name, partition, file, is_new in rows
        }

    def emptied(self) -> Iterator[EmptiedPartition]:
        """Yield the partitions that were emptied or removed since the last call.

        TRUNCATE gives the partition a new file whose number of rows is unknown to PostgreSQL.
        VACUUM FULL and CLUSTER also give the partition a new file, but count its rows.

        Raises:
            psycopg.Error: the catalogue cannot be read.
        """
        before, self._leaves = self._leaves, self._read()
        for oid, leaf in before.items():
            now = self._leaves.get(oid)
            if now is None:
                reason = "the partition was dropped or detached"
            elif now.file != leaf.file and now.is_new:
                reason = "the partition was truncated or rewritten"
            else:
                continue
            yield EmptiedPartition(self._tables[leaf.table].full_name, leaf.name, reason)
