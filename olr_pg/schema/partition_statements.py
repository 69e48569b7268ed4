"""Converts range, list and hash partitions. Interval partitions become range partitions, with a
default partition for rows beyond the last range.

In PostgreSQL, a unique key of a partitioned table must include the partition key. If the primary
key does not include it, the table is created without partitions, because replication needs the
primary key.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from olr_pg.schema.presence import has_relation
from olr_pg.schema.statement import Statement
from olr_pg.schema.translating import UntranslatableError, quoted
from olr_pg.schema.translation import translate_expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from olr_pg.dictionary.inventory import Constraint, InventoryTable, Partition
    from olr_pg.schema.relations import Relation, Relations

_METHODS: Final = ("RANGE", "LIST", "HASH")
_CALENDAR: Final = re.compile(r",\s*'NLS_CALENDAR=GREGORIAN'\s*(?=\))", re.IGNORECASE)


def partition_clause(
    table: InventoryTable, key: Constraint | None, relations: Relations, relation: Relation
) -> tuple[str, str]:
    """Return (the PARTITION BY clause of a table, reason). The reason is empty unless the table is
    partitioned in Oracle, but not in PostgreSQL.
    """
    parted = table.partitioning
    if parted is None:
        return "", ""
    methods = [parted.method, *([parted.submethod] if parted.submethod else [])]
    unknown = [method for method in methods if method not in _METHODS]
    if unknown:
        return "", f"PARTITION BY {unknown[0]}: the table is created without partitions"
    columns = (*parted.columns, *parted.subcolumns)
    by_list = [parted.columns] if parted.method == "LIST" else []
    by_list += [parted.subcolumns] if parted.submethod == "LIST" else []
    if any(len(one) > 1 for one in by_list):
        return "", (
            "PARTITION BY LIST of several columns, which PostgreSQL does not have: the table is"
            " created without partitions"
        )
    if key is not None and not set(columns) <= set(key.columns):
        return "", (
            "the primary key lacks columns of the partition key, which PostgreSQL requires there:"
            " the table is created without partitions"
        )
    try:
        list(partition_statements(table, relations, relation))
    except UntranslatableError as error:
        return "", f"{error}: the table is created without partitions"
    return f" PARTITION BY {_by(parted.method, parted.columns, relation)}", ""


def _by(method: str, columns: tuple[str, ...], relation: Relation) -> str:
    names = ", ".join(quoted(relation.columns[column].name) for column in columns)
    return f"{method} ({names})"


def partition_statements(
    table: InventoryTable, relations: Relations, relation: Relation
) -> Iterator[Statement]:
    """Yield the statements that create the partitions of a table with a PARTITION BY clause."""
    parted = table.partitioning
    assert parted is not None
    sub = f" PARTITION BY {_by(parted.submethod, parted.subcolumns, relation)}"
    for part, bound in _bounds(parted.method, parted.partitions, relations, table.owner):
        has_parts = bool(parted.submethod and part.subpartitions)
        of = (relation.schema, relation.name)
        yield _one(table, of, part.name, bound, sub if has_parts else "", relations)
        inside = _bounds(parted.submethod, part.subpartitions, relations, table.owner)
        for inner, bound_inner in inside:
            parent = (
                relation.schema,
                _part_name(relation.schema, relation.name, part.name, relations),
            )
            yield _one(table, parent, inner.name, bound_inner, "", relations)
    if parted.interval:
        parent = (relation.schema, relation.name)
        yield _one(table, parent, "DEFAULT", "DEFAULT", "", relations)


def _part_name(schema: str, table: str, part: str, relations: Relations) -> str:
    """Return an unused name for a partition. In Oracle, partitions of different tables can have the
    same name; in PostgreSQL they cannot.
    """
    return relations.free_name(
        schema, table, relations.name(f"{table}_{relations.name(part)}"), "part"
    )


def _one(
    table: InventoryTable,
    parent: tuple[str, str],
    part: str,
    bound: str,
    sub: str,
    relations: Relations,
) -> Statement:
    schema, over = parent
    target = f"{quoted(schema)}.{quoted(_part_name(schema, over, part, relations))}"
    return Statement(
        "partition",
        f"{table.owner}.{table.name}.{part}",
        f"CREATE TABLE {target} PARTITION OF {quoted(schema)}.{quoted(over)} {bound}{sub}",
        present=has_relation(target, "rp"),
    )


def _bounds(
    method: str, parts: Sequence[Partition], relations: Relations, owner: str
) -> Iterator[tuple[Partition, str]]:
    """Yield each partition, and the clause with its bounds."""
    before = ""
    for at, part in enumerate(parts):
        if method == "HASH":
            yield part, f"FOR VALUES WITH (MODULUS {len(parts)}, REMAINDER {at})"
            continue
        text = _CALENDAR.sub("", part.high_value)
        if text.upper() == "DEFAULT":
            yield part, "DEFAULT"
            continue
        values = [_value(value.strip(), relations, owner) for value in _split(text)]
        listed = ", ".join(values)
        if method == "LIST":
            yield part, f"FOR VALUES IN ({listed})"
            continue
        lower = before or ", ".join(["MINVALUE"] * len(values))
        yield part, f"FOR VALUES FROM ({lower}) TO ({listed})"
        before = listed


def bound_values(text: str, relations: Relations, owner: str) -> str:
    """Return the bound of a range or the values of a list as PostgreSQL's SQL.

    Raises:
        UntranslatableError: a value has no translation.
    """
    return ", ".join(_value(value.strip(), relations, owner) for value in _split(text))


def _split(text: str) -> list[str]:
    """Split a text at commas that are outside brackets and literals."""
    parts, depth, quote, part = list[str](), 0, False, ""
    for letter in text:
        if letter == "'":
            quote = not quote
        if not quote:
            depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and not quote and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += letter
    return [*parts, part]


def _value(text: str, relations: Relations, owner: str) -> str:
    if text.upper() in ("MAXVALUE", "NULL", "DEFAULT"):
        return text.upper()
    return translate_expression(text, relations, owner)[0]
