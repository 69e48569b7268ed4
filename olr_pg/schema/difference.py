"""Compares the target's schema with the objects that the converted statements would create."""

from __future__ import annotations

import re
from functools import cache, partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
import structlog

from olr_pg.applier.target.catalogue import find_tables
from olr_pg.postgres.printed_definitions import (
    CHECK,
    COMMENT,
    DEFAULT,
    GENERATED,
    INDEX,
    printed,
    printed_on_copy,
)
from olr_pg.postgres.sqlstates import may_not_write, plain_words
from olr_pg.schema.table_definitions import made_columns
from olr_pg.schema.translating import quoted
from olr_pg.schema.trial import are_present

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from psycopg import Connection

    from olr_pg.dictionary.inventory import Inventory, InventoryTable
    from olr_pg.schema.relations import Relations
    from olr_pg.schema.statement import Statement

_TYPES = """
SELECT a.attrelid::int8, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull
FROM pg_attribute a
WHERE a.attrelid = ANY(%s::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attrelid, a.attnum
"""

_NAME: Final = r'"(?:[^"]|"")*"'
_PLACE: Final = re.compile(
    rf"(?:ALTER TABLE|COMMENT ON (?:TABLE|COLUMN)|CREATE (?:UNIQUE )?INDEX {_NAME} ON)"
    rf" ({_NAME}\.{_NAME})"
)
"""Finds the table of a statement."""
_ADDED: Final = re.compile(rf" ADD COLUMN ({_NAME})")
_COMPARED: Final = (GENERATED, DEFAULT, CHECK, INDEX, COMMENT)
"""The kinds of statements whose definitions are compared, in the order in which they run on a copy
of the table: the other kinds can use a generated column.
"""

_log = structlog.get_logger(__name__)


class Difference(NamedTuple):
    """An object or column that is missing in the target, or differs from the converted one.

    Attributes:
        what: the kind of difference: ``missing``, ``by hand``, ``type``, ``NOT NULL``,
            ``definition`` or ``extra column``.
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
    there = are_present(connection, statements)
    lacking = [one for one, is_there in zip(statements, there, strict=True) if not is_there]
    present = [one for one, is_there in zip(statements, there, strict=True) if is_there]
    return [
        *(
            Difference(one.kind, one.name, "missing", one.sql)
            for one in lacking
            if one.runs and one.present
        ),
        *(
            Difference(one.what or one.kind, one.name, "by hand", one.reason)
            for one in lacking
            if not one.runs
        ),
        *_columns(connection, inventory, relations),
        *_unlike(connection, present),
        *_definitions(connection, inventory, relations, present),
    ]


def _unlike(connection: Connection[Any], statements: Sequence[Statement]) -> Iterator[Difference]:
    """Yield the objects of the target whose properties differ from those in the statements."""
    asked = [one for one in statements if one.runs and one.alike]
    queries = [one._replace(present=one.alike) for one in asked]
    for one, is_alike in zip(asked, are_present(connection, queries), strict=True):
        if not is_alike:
            yield Difference(one.kind, one.name, "definition", f"the source requires {one.sql}")


def _definitions(
    connection: Connection[Any],
    inventory: Inventory,
    relations: Relations,
    statements: Sequence[Statement],
) -> Iterator[Difference]:
    """Yield the objects of the target that have the name of the source's object, but another
    definition.
    """
    places = {
        f"{quoted(relation.schema)}.{quoted(relation.name)}": f"{one.owner}.{one.name}"
        for one in inventory.tables
        if (relation := relations.find(one.owner, one.name)) is not None
    }
    of_tables = [
        (found[1], one)
        for kind in _COMPARED
        for one in statements
        if one.kind == kind and one.runs and (found := _PLACE.match(one.sql))
        if found[1] in places
    ]
    of_tables.sort(key=lambda pair: pair[0])
    for table, pairs in groupby(of_tables, key=lambda pair: pair[0]):
        texts = list[str]()
        for _, one in pairs:
            added = _ADDED.search(one.sql) if one.kind == GENERATED else None
            texts += [f"ALTER TABLE {table} DROP COLUMN {added[1]}"] if added else []
            texts.append(one.sql)
        try:
            wanted = printed_on_copy(connection, table, texts)
        except psycopg.Error as error:
            if not may_not_write(error):
                raise
            _log.warning(
                "the definitions of checks, indexes, defaults, generated columns and comments are"
                " not compared, because no temporary table can be created",
                reason=plain_words(error),
            )
            return
        there = printed(connection, table)
        for (kind, name), text in wanted.items():
            is_named = kind != INDEX or (kind, name) in there  # else it has another name
            if is_named and there.get((kind, name)) != text:
                told = f"{there.get((kind, name))} in the target; the source requires {text}"
                of_table = places[table] + (f": {name}" if name else "")
                yield Difference(kind, of_table, "definition", told)


def _columns(
    connection: Connection[Any], inventory: Inventory, relations: Relations
) -> Iterator[Difference]:
    places: dict[tuple[str, str], InventoryTable] = {}
    for table in inventory.tables:
        relation = relations.find(table.owner, table.name)
        assert relation is not None
        places[relation.schema, relation.name] = table
    oids = {place: oid for place, (oid, _) in find_tables(connection, places).items()}
    types = _column_types(connection, list(oids.values()))
    names = cache(partial(_type_name, connection))
    for place, table in places.items():
        if place not in oids:
            continue
        relation = relations.find(table.owner, table.name)
        assert relation is not None
        name, there = f"{table.owner}.{table.name}", types.get(oids[place], {})
        for column in made_columns(table, relation):
            if column.reason or (found := there.pop(column.name, None)) is None:
                if not column.reason and not column.source.virtual:
                    yield Difference("column", f"{name}.{column.source.name}", "missing")
                continue
            wanted = names(column.type_name)
            if found[0] != wanted:
                told = f"{found[0]} in the target; the source requires {wanted}"
                yield Difference("column", f"{name}.{column.source.name}", "type", told)
            if found[1] != (not column.source.nullable):
                told = "NOT NULL in the target only" if found[1] else "NOT NULL in the source only"
                yield Difference("column", f"{name}.{column.source.name}", "NOT NULL", told)
        for extra in there:
            yield Difference("column", f"{name}: {extra}", "extra column")


def _column_types(
    connection: Connection[Any], oids: Sequence[int]
) -> dict[int, dict[str, tuple[str, bool]]]:
    """Return the columns of tables by OID: the type of each column, and whether it is NOT NULL."""
    found: dict[int, dict[str, tuple[str, bool]]] = {}
    for oid, column, type_name, not_null in connection.execute(_TYPES, (oids,)):
        found.setdefault(oid, {})[column] = type_name, not_null
    return found


def _type_name(connection: Connection[Any], name: str) -> str:
    """Return the name that PostgreSQL itself uses for a type."""
    result = connection.execute(f"SELECT NULL::{name}".encode()).pgresult
    assert result is not None
    row = connection.execute(
        "SELECT format_type(%s::oid, %s::int)", (result.ftype(0), result.fmod(0))
    ).fetchone()
    assert row is not None
    return str(row[0])
