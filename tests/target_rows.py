"""Rows of a table of the target compared with expected ones, in PostgreSQL itself."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from psycopg import sql

if TYPE_CHECKING:
    from collections.abc import Sequence

    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

_FINER: Final = re.compile(r"(\.[0-9]{6})[0-9]+")


def column_types(connection: Connection, schema: str, table: str) -> dict[str, str]:
    """The types of a table's columns, empty where there is no such table."""
    rows = connection.execute(
        "SELECT column_name, data_type FROM information_schema.columns"
        " WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position",
        (schema, table),
    )
    return dict(rows.fetchall())


def differing_from(
    connection: Connection, source_table: str, rows: Sequence[dict[str, Any]]
) -> list[tuple[Any, ...]]:
    """`differing_rows` of the table that ``OWNER.NAME`` becomes by default."""
    owner, _, name = source_table.lower().partition(".")
    return differing_rows(connection, owner, name, rows)


def differing_rows(
    connection: Connection,
    schema: str,
    table: str,
    rows: Sequence[dict[str, Any]],
    *,
    only: bool = False,
) -> list[tuple[Any, ...]]:
    """Rows that only one side has; PostgreSQL reads the expected ones from their text.

    A column that a row does not have is NULL.

    Args:
        only: leave out the rows of tables that inherit from it.
    """
    types, target = column_types(connection, schema, table), sql.Identifier(schema, table)
    connection.execute(sql.SQL("CREATE TEMPORARY TABLE expected (LIKE {})").format(target))
    with connection.cursor() as cursor, cursor.copy("COPY expected FROM STDIN") as copy:
        for row in rows:
            values = {name.lower(): value for name, value in row.items()}
            copy.write_row([_text(values.get(name), kind) for name, kind in types.items()])
    found = connection.execute(
        sql.SQL(
            "(SELECT 'target', t.*::text FROM"
            " (SELECT * FROM {1} {0} EXCEPT ALL SELECT * FROM expected) t)"
            " UNION ALL (SELECT 'source', t.*::text FROM"
            " (SELECT * FROM expected EXCEPT ALL SELECT * FROM {1} {0}) t)"
        ).format(target, sql.SQL("ONLY" if only else ""))
    ).fetchall()
    connection.execute("DROP TABLE expected")
    return found


def _text(value: Any, kind: str) -> str | None:
    if value is None:
        return None
    if isinstance(value, bytes):
        return f"\\x{value.hex()}"
    if kind == "bytea":
        return f"\\x{value}"
    if isinstance(value, datetime):
        return value.isoformat()
    if kind.startswith(("timestamp", "interval")):
        # PostgreSQL holds microseconds, and the default is to cut what is finer.
        return _FINER.sub(r"\1", value)
    return str(value)
