"""Reads the target's tables from PostgreSQL's catalogue, and creates missing tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import psycopg
from psycopg import sql

from olr_pg.datatypes.mapping import PgKind
from olr_pg.errors import Code, OlrPgError
from olr_pg.postgres.sqlstates import is_transient, target_error

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any

    from psycopg import Connection

MIN_VERSION = 150_000

_TABLES = """
SELECT w.schema, w.name, c.oid::int8, c.reltype::int8,
    coalesce(pg_relation_filenode(c.oid), 0)::int8
FROM unnest(%s::text[], %s::text[]) AS w (schema, name)
JOIN pg_namespace n ON n.nspname = w.schema::name
JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = w.name::name
WHERE c.relkind IN ('r', 'p')
"""
# A domain may be based on another domain. Then the type modifier comes from the domain that is
# nearest to the base type. A type's binary format is identified by the function that reads it,
# because types of extensions have no fixed OID.
_TYPED = """
WITH RECURSIVE base AS (
    SELECT col.*, t.oid, t.typtype, t.typbasetype, t.typtypmod
    FROM ({}) AS col JOIN pg_type t ON t.oid = col.type
  UNION ALL
    SELECT d.relation, d.number, d.name, d.type, d.generated, d.identity,
        CASE WHEN d.typtypmod >= 0 THEN d.typtypmod ELSE d.modifier END,
        t.oid, t.typtype, t.typbasetype, t.typtypmod
    FROM base d JOIN pg_type t ON t.oid = d.typbasetype WHERE d.typtype = 'd'
)
SELECT base.relation::int8, base.name, base.type::int8, b.oid::int8,
    quote_ident(n.nspname) || '.' || quote_ident(b.typname), base.generated, base.identity,
    base.modifier,
    CASE WHEN b.typtype = 'e' OR (receives.prosrc = 'textrecv' AND b.oid <> 25) THEN 25
        WHEN receives.prosrc = 'vector_recv' THEN -1
        WHEN receives.prosrc = 'halfvec_recv' THEN -2
        WHEN receives.prosrc = 'sparsevec_recv' THEN -3
        ELSE 0 END
FROM base
JOIN pg_type b ON b.oid = base.oid AND base.typtype <> 'd'
JOIN pg_namespace n ON n.oid = b.typnamespace
LEFT JOIN pg_proc receives ON receives.oid = b.typreceive
ORDER BY base.relation, base.number
"""
_COLUMNS = _TYPED.format("""
    SELECT attrelid AS relation, attnum AS number, attname AS name, atttypid AS type,
        attgenerated <> '' AS generated, attidentity AS identity, atttypmod AS modifier
    FROM pg_attribute
    WHERE attrelid = ANY(%(tables)s::oid[]) AND attnum > 0 AND NOT attisdropped""")
_COLUMN_OF_TYPE = _TYPED.format("""
    SELECT 0 AS relation, 1 AS number, %(name)s::text AS name, %(type)s::oid AS type,
        false AS generated, '' AS identity, %(modifier)s::int4 AS modifier""")
_KEYS = """
SELECT DISTINCT ON (i.indrelid) i.indrelid::int8, array_agg(a.attname::text ORDER BY k.n)
FROM pg_index i
CROSS JOIN LATERAL unnest(i.indkey[0:i.indnkeyatts - 1]) WITH ORDINALITY k(attnum, n)
LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
WHERE i.indrelid = ANY(%(tables)s::oid[]) AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
    AND i.indexprs IS NULL
GROUP BY i.indexrelid, i.indrelid, i.indisprimary, i.indnkeyatts, i.indimmediate
HAVING bool_and(a.attnotnull)
ORDER BY i.indrelid, i.indisprimary DESC, i.indimmediate DESC, i.indnkeyatts, i.indexrelid
"""

_LIKE_IT = """
SELECT DISTINCT ON (w.schema, w.name) w.schema, w.name, n.nspname, c.relname, CASE c.relkind
    WHEN 'v' THEN 'a view' WHEN 'm' THEN 'a materialized view'
    WHEN 'f' THEN 'a foreign table' WHEN 'S' THEN 'a sequence' WHEN 'r' THEN '' WHEN 'p' THEN ''
    ELSE 'an index or type' END
FROM unnest(%s::text[], %s::text[]) AS w (schema, name)
JOIN pg_namespace n ON lower(n.nspname) = lower(w.schema COLLATE "C")
JOIN pg_class c ON c.relnamespace = n.oid AND lower(c.relname) = lower(w.name COLLATE "C")
ORDER BY w.schema, w.name, (n.nspname, c.relname) = (w.schema, w.name) DESC, 3, 4
"""


class TargetColumn(NamedTuple):
    """A column of the target.

    Attributes:
        type_oid: the type's OID as required in a composite value; for a domain, the OID of the
            domain.
        base_oid: the type's OID; for a domain, the OID of its base type.
        base_name: the name of the base type in SQL, without modifiers, because a cast must not
            truncate.
        generated: whether the server computes the values, so that the column cannot be written.
        identity: 'a' for a column GENERATED ALWAYS AS IDENTITY, 'd' for BY DEFAULT, '' for other
            columns.
        modifier: the type's modifier; for a domain, of its base type (`modifiers`); −1 for none.
        form: if the type is not a `PgKind`, the `PgKind` that has the same binary format (text for
            enums and citext, special kinds for types of pgvector); else 0.
    """

    name: str
    type_oid: int
    base_oid: int
    base_name: str
    generated: bool
    identity: str
    modifier: int = -1
    form: int = 0

    @property
    def kind(self) -> int:
        """The `PgKind` of the values' binary format, or the OID of a type that has none."""
        return self.form or self.base_oid

    @property
    def comparable(self) -> bool:
        """Return whether the column's type has an equality operator."""
        return self.base_oid not in (PgKind.JSON, PgKind.XML)


@dataclass(frozen=True)
class TargetTable:
    """A table of the target.

    Attributes:
        columns: all columns in their order, which are also the fields of the table's composite
            type.
        key: the names of the columns of the primary key. If there is no primary key, the columns of
            the unique key with the fewest columns that are all NOT NULL. Empty if the table has
            neither a primary key nor such a unique key.
        file: the number of the file that stores the rows; 0 for a partitioned table. TRUNCATE and
            statements that rewrite the table change it.
    """

    schema: str
    name: str
    oid: int
    row_type_oid: int
    columns: tuple[TargetColumn, ...]
    key: tuple[str, ...]
    file: int = 0

    @property
    def identifier(self) -> sql.Identifier:
        """``"schema"."name"``."""
        return sql.Identifier(self.schema, self.name)

    @property
    def full_name(self) -> str:
        """``schema.name`` for display."""
        return f"{self.schema}.{self.name}"

    def column_number(self, name: str) -> int | None:
        """Return the index of a column in `columns`."""
        return self._numbers.get(name)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {column.name: number for number, column in enumerate(self.columns)}


class Instead(NamedTuple):
    """Describes what exists instead of a missing table. `is_in_place` is true if the other object
    has exactly the table's name.
    """

    what: str
    is_in_place: bool


class NewColumn(NamedTuple):
    """A column of a table that will be created. `type_name` is the type in SQL."""

    name: str
    type_name: str
    not_null: bool = False


def read_table(connection: Connection[Any], schema: str, name: str) -> TargetTable | None:
    """Read a table from the catalogue. Return None if the table does not exist."""
    return read_tables(connection, [(schema, name)]).get((schema, name))


def read_tables(
    connection: Connection[Any], names: Collection[tuple[str, str]]
) -> dict[tuple[str, str], TargetTable]:
    """Read tables from the catalogue, by schema and name. Names that are no table are left out."""
    found = _find(connection, names)
    if not found:
        return {}
    asked = {"tables": [oid for oid, *_ in found.values()]}
    columns = dict[int, list[TargetColumn]]()
    for oid, *column in connection.execute(_COLUMNS, asked):
        columns.setdefault(oid, []).append(TargetColumn(*column))
    keys = dict(connection.execute(_KEYS, asked).fetchall())
    return {
        name: TargetTable(
            *name, oid, row_type, tuple(columns.get(oid, ())), tuple(keys.get(oid, ())), file
        )
        for name, (oid, row_type, file) in found.items()
    }


def column_of_type(
    connection: Connection[Any], name: str, type_oid: int, modifier: int
) -> TargetColumn | None:
    """Return a column that had this type before its table was altered. Return None if the type does
    not exist any more.
    """
    values = {"name": name, "type": type_oid, "modifier": modifier}
    row = connection.execute(_COLUMN_OF_TYPE, values).fetchone()
    return None if row is None else TargetColumn(*row[1:])


def find_tables(
    connection: Connection[Any], names: Collection[tuple[str, str]]
) -> dict[tuple[str, str], tuple[int, int]]:
    """Return the OIDs of tables and of their row types, by schema and name. Names that are no table
    are left out.
    """
    found = _find(connection, names)
    return {name: (oid, row_type) for name, (oid, row_type, _) in found.items()}


def _find(
    connection: Connection[Any], names: Collection[tuple[str, str]]
) -> dict[tuple[str, str], tuple[int, int, int]]:
    """Return the OIDs of tables and of their row types, and the numbers of their files."""
    both = [name[0] for name in names], [name[1] for name in names]
    rows = connection.execute(_TABLES, both).fetchall()
    return {(schema, name): (oid, row_type, file) for schema, name, oid, row_type, file in rows}


def found_instead(
    connection: Connection[Any], names: Collection[tuple[str, str]]
) -> dict[tuple[str, str], Instead]:
    """Describe other objects that have the names of missing tables, or tables whose names differ
    only in case. Missing tables without such an object or table are left out.
    """
    both = [name[0] for name in names], [name[1] for name in names]
    found = dict[tuple[str, str], Instead]()
    for schema, name, own_schema, own_name, kind in connection.execute(_LIKE_IT, both):
        if (own_schema, own_name) != (schema, name):
            told = f'; there is "{own_schema}"."{own_name}"' + (f", {kind}" if kind else "")
            what = f"{schema}.{name} does not exist{told}"
            found[schema, name] = Instead(what, is_in_place=False)
        elif kind:
            what = f"{schema}.{name} is {kind}, not a table"
            found[schema, name] = Instead(what, is_in_place=True)
    return found


def missing_table(connection: Connection[Any], schema: str, name: str, source: str) -> OlrPgError:
    """Return the error for a missing table. The error also names a similar table or schema that
    exists, if there is one.

    Args:
        source: ``OWNER.NAME`` of the source's table.
    """
    instead = found_instead(connection, [(schema, name)]).get((schema, name))
    return missing_error(schema, name, source, instead)


def missing_error(schema: str, name: str, source: str, instead: Instead | None) -> OlrPgError:
    """Return the error of `missing_table`, if it is known what exists instead of the table."""
    what = f"{schema}.{name} does not exist" if instead is None else instead.what
    return OlrPgError(Code.TARGET_TABLE_MISSING, what, table=source)


def supports_xml(connection: Connection[Any]) -> bool:
    """Return whether the server was built with libxml. Without libxml, a server rejects all values
    of type xml.
    """
    try:
        with connection.transaction():
            connection.execute("SELECT '<a/>'::text::xml")
    except psycopg.errors.FeatureNotSupported:
        return False
    return True


def create_table(
    connection: Connection[Any],
    schema: str,
    name: str,
    columns: Sequence[NewColumn],
    key: Sequence[str],
) -> None:
    """Create the table, and its schema if needed (`connection` in autocommit mode).

    Raises:
        OlrPgError: any error of `postgres.sqlstates`, such as 5004, the role lacks a privilege.
    """
    parts: list[sql.Composable] = [
        sql.SQL("{} {}{}").format(
            sql.Identifier(column.name),
            sql.SQL(column.type_name),
            sql.SQL(" NOT NULL" if column.not_null else ""),
        )
        for column in columns
    ]
    if key:
        parts.append(
            sql.SQL("PRIMARY KEY ({})").format(sql.SQL(", ").join(map(sql.Identifier, key)))
        )
    try:
        with connection.transaction():
            if connection.execute(
                "SELECT to_regnamespace(quote_ident(%s))", (schema,)
            ).fetchone() == (None,):
                connection.execute(
                    sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema))
                )
            connection.execute(
                sql.SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(
                    sql.Identifier(schema, name), sql.SQL(", ").join(parts)
                )
            )
    except psycopg.Error as error:
        if is_transient(error):
            raise
        table = f"{schema}.{name}"
        raise target_error(
            error, "the table cannot be created", is_ddl=True, table=table
        ) from error


def relation_exists(connection: Connection[Any], name: str) -> bool:
    """Return whether a relation of any kind has this name.

    Args:
        name: schema and name as in SQL, quoted if necessary.
    """
    found = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (name,)).fetchone()
    return found == (True,)


def has_rows(connection: Connection[Any], table: sql.Composable) -> bool:
    """Return whether a table has a row."""
    query = sql.SQL("SELECT EXISTS (SELECT FROM {})").format(table)
    return connection.execute(query).fetchone() == (True,)


def empty_table(connection: Connection[Any], table: sql.Identifier) -> None:
    """Delete every row of a table or partition, in the open transaction.

    Raises:
        OlrPgError: 5008, rows remain.
    """
    try:
        with connection.transaction():
            connection.execute(sql.SQL("TRUNCATE {}").format(table))
    except psycopg.errors.FeatureNotSupported:
        # A foreign key references the table. It does not fire here, but PostgreSQL forbids
        # TRUNCATE.
        connection.execute(sql.SQL("DELETE FROM {}").format(table))
        if has_rows(connection, table):
            raise OlrPgError(
                Code.CHANGE_REFUSED,
                f"{table.as_string()} was emptied, but rows remain: a trigger discards the deletes",
                action="disable the trigger, which `olr-pg doctor` names, then try again",
            ) from None
