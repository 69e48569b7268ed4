"""Compares the target's schema with the objects that the converted statements would create."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from olr_pg.applier.target.catalogue import read_table
from olr_pg.schema.table_definitions import made_columns
from olr_pg.schema.trial import is_present

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from psycopg import Connection

    from olr_pg.dictionary.inventory import Inventory
    from olr_pg.schema.relations import Relations
    from olr_pg.schema.statement import Statement

_TYPES = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull FROM pg_attribute a
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
"""


class Difference(NamedTuple):
    """An object or column that is missing in the target, or differs from the converted one.

    Attributes:
        what: the kind of difference: ``missing``, ``by hand``, ``type``, ``NOT NULL`` or ``extra
            column``.
    """

    kind: str
    name: str
    what: str
    detail: str = ""


def differences(
    connection: Connection[Any],
    inventory: Inventory,
    relations: Relations,
    statements: Sequence[Statement],
) -> list[Difference]:
    """Compare the target with the statements for the source's objects. If an object cannot be
    translated and is missing in the target, it is listed as ``by hand``: a person must create it.
    """
    found = [
        Difference(one.kind, one.name, "missing", one.sql)
        for one in statements
        if one.runs and one.present and not is_present(connection, one)
    ]
    found += [
        Difference(one.what or one.kind, one.name, "by hand", one.reason)
        for one in statements
        if not one.runs and not is_present(connection, one)
    ]
    return [*found, *_columns(connection, inventory, relations)]


def _columns(
    connection: Connection[Any], inventory: Inventory, relations: Relations
) -> Iterator[Difference]:
    for table in inventory.tables:
        relation = relations.find(table.owner, table.name)
        assert relation is not None
        target = read_table(connection, relation.schema, relation.name)
        if target is None:
            continue
        name = f"{table.owner}.{table.name}"
        there = {
            column: (type_name, not_null)
            for column, type_name, not_null in connection.execute(_TYPES, (target.oid,))
        }
        for column in made_columns(table, relation):
            if column.reason or (found := there.pop(column.name, None)) is None:
                if not column.reason and not column.source.virtual:
                    yield Difference("column", f"{name}.{column.source.name}", "missing")
                continue
            wanted = _type_name(connection, column.type_name)
            if found[0] != wanted:
                told = f"{found[0]} in the target; the source requires {wanted}"
                yield Difference("column", f"{name}.{column.source.name}", "type", told)
            if found[1] != (not column.source.nullable):
                told = "NOT NULL in the target only" if found[1] else "NOT NULL in the source only"
                yield Difference("column", f"{name}.{column.source.name}", "NOT NULL", told)
        for extra in there:
            yield Difference("column", f"{name}: {extra}", "extra column")


def _type_name(connection: Connection[Any], name: str) -> str:
    """Return the name that PostgreSQL itself uses for a type."""
    result = connection.execute(f"SELECT NULL::{name}".encode()).pgresult
    assert result is not None
    row = connection.execute(
        "SELECT format_type(%s::oid, %s::int)", (result.ftype(0), result.fmod(0))
    ).fetchone()
    assert row is not None
    return str(row[0])
