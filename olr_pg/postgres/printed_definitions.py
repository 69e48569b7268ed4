"""Compares definitions of objects of a table, as PostgreSQL prints them.

The text of a statement cannot be compared with the definition that PostgreSQL prints for an
existing object, because PostgreSQL adds casts and parentheses. So PostgreSQL executes the statement
on an empty copy of the table and prints the new definition; then the transaction is rolled back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import psycopg

from olr_pg.postgres.sqlstates import is_of_statement

if TYPE_CHECKING:
    from collections.abc import Iterable

    from psycopg import Connection

CHECK, INDEX, DEFAULT = "check", "index", "default"
GENERATED, COMMENT = "generated column", "comment"

_PRINTED: Final = """
SELECT 'check', conname::text, replace(pg_get_constraintdef(oid), ' NOT VALID', '')
FROM pg_constraint WHERE conrelid = to_regclass(%(table)s) AND contype = 'c'
UNION ALL
SELECT 'index', relname::text, CASE WHEN indisunique THEN 'UNIQUE' ELSE '' END
    || regexp_replace(substring(pg_get_indexdef(indexrelid) FROM ' USING .*'),
        ' WITH [(].*?[)]', '')
FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE indrelid = to_regclass(%(table)s)
UNION ALL
SELECT CASE WHEN attgenerated = '' THEN 'default' ELSE 'generated column' END, attname::text,
    pg_get_expr(adbin, adrelid)
FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
WHERE adrelid = to_regclass(%(table)s)
UNION ALL
SELECT 'comment', coalesce(attname::text, ''), description
FROM pg_description LEFT JOIN pg_attribute ON attrelid = objoid AND attnum = objsubid
WHERE objoid = to_regclass(%(table)s) AND classoid = 'pg_class'::regclass
    AND (objsubid = 0 OR attnum > 0)
"""
"""The comparison ignores the storage parameters of an index (WITH)."""

_COPY: Final = "olr_pg_copy"
_PLACE: Final = f'pg_temp."{_COPY}"'

Printed = dict[tuple[str, str], str]
"""Definitions by kind and name. The name of a default, a generated column or a comment is that of
the column; that of a comment on the table is empty.
"""


def printed(connection: Connection[Any], table: str) -> Printed:
    """Return the definitions of the checks, indexes, defaults, generated columns and comments of a
    table.

    Args:
        table: the quoted name of the table, with the schema.
    """
    rows = connection.execute(_PRINTED, {"table": table}).fetchall()
    return {(kind, name): text for kind, name, text in rows}


def printed_on_copy(connection: Connection[Any], table: str, statements: Iterable[str]) -> Printed:
    """Return the definitions that statements would make. Statements that fail are left out.

    Args:
        table: the quoted name of the table, with the schema, as in the statements.

    Raises:
        psycopg.Error: no temporary table can be created.
    """
    with connection.transaction(force_rollback=True):
        connection.execute(f'CREATE TEMPORARY TABLE "{_COPY}" (LIKE {table})'.encode())
        for statement in statements:
            there = statement.replace(table, _PLACE, 1)
            try:
                with connection.transaction():
                    connection.execute(there.encode())
            except psycopg.Error as error:
                if not is_of_statement(error, connection):
                    raise
        return printed(connection, _PLACE)
