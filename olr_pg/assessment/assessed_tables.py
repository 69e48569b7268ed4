"""Assesses tables: their types, character sets, size, logging and key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.assessment.report import AssessedColumn, AssessedTable, TextColumns
from olr_pg.datatypes.charsets import DATABASE_FORM, charset
from olr_pg.dictionary.flag_checks import non_flag_values
from olr_pg.dictionary.inventory import oracle_type_text
from olr_pg.dictionary.true_charsets import is_explicit
from olr_pg.errors import OlrPgError
from olr_pg.schema.table_definitions import key_of, made_columns
from olr_pg.schema.value_kinds import NUMBERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from olr_pg.dictionary.inventory import InventoryTable
    from olr_pg.dictionary.model import Table
    from olr_pg.schema.relations import Relation, Relations


def assessed_table(
    replicated: frozenset[str],
    relations: Relations,
    table: InventoryTable,
    found: Table | None,
) -> AssessedTable:
    """Assess one table.

    Args:
        found: the table in the dictionary; None if the dictionary does not contain it.
    """
    name = f"{table.owner}.{table.name}"
    if name not in replicated:
        answer = "not in `apply.tables`"
    else:
        answer = (found.obstacle if found is not None else None) or "yes"
    return AssessedTable(
        name=name,
        kind=table.kind,
        rows=table.rows,
        bytes=table.bytes,
        lob_bytes=table.lob_bytes,
        replicated=answer,
        logging=", ".join(word.removesuffix(" LOGGING").lower() for word in table.logging),
        key=_key(relations, table),
        columns=tuple(_columns(table, relations, found)),
    )


def text_columns(declared: str, tables: Iterable[Table]) -> TextColumns | None:
    """Count the text columns of replicated tables by the origin of their character set.

    Returns:
        None if the declared set is unsupported or can have several bytes per character: then no
        other set can be configured.
    """
    try:
        is_replaceable = charset(declared).structure == "single-byte"
    except OlrPgError:
        return None  # each text column has this obstacle in the report
    if not is_replaceable:
        return None
    columns = [column for table in tables for column in table.delivered]
    as_declared = sum(column.charset_form == DATABASE_FORM for column in columns)
    return TextColumns(declared, as_declared, sum(map(is_explicit, columns)))


def _key(relations: Relations, table: InventoryTable) -> str:
    key = key_of(relations, table)
    if key is not None:
        return "primary key: " + ", ".join(key.columns)
    nullable = {column.name for column in table.columns if column.nullable}
    for one in relations.constraints_of(table.owner, table.name):
        if one.kind == "unique" and one.enabled and not nullable & set(one.columns):
            return "unique key: " + ", ".join(one.columns)
    return ""


def _columns(
    table: InventoryTable, relations: Relations, known: Table | None
) -> Iterator[AssessedColumn]:
    relation = relations.find(table.owner, table.name)
    assert relation is not None
    reasons = {c.name: c.unsupported or "" for c in known.columns} if known else {}
    for column in made_columns(table, relation):
        obstacle = column.reason or reasons.get(column.source.name, "")
        if column.source.virtual:
            obstacle = "" if column.type_name else obstacle
        yield AssessedColumn(
            name=column.source.name,
            oracle_type=oracle_type_text(column.source)
            + (" (virtual)" if column.source.virtual else ""),
            target_type=column.type_name
            + (" (generated)" if column.source.virtual and column.type_name else ""),
            lost=column.note + _doubt(relations, table, column.source.name, relation),
            obstacle=obstacle,
        )


def _doubt(relations: Relations, table: InventoryTable, name: str, relation: Relation) -> str:
    """Describe the risk of a column that is converted to boolean only because of its type."""
    column = relation.columns[name]
    if not column.no_flag_setting:
        return ""
    checks = (
        one.condition
        for one in relations.constraints_of(table.owner, table.name)
        if one.kind == "check" and one.enabled
    )
    is_number = column.fact.kind in NUMBERS
    strays = non_flag_values(checks, name, column.pairs, is_number=is_number)
    if strays == ():
        return ""
    known = f"its check allows {', '.join(strays)}" if strays else "no check restricts its values"
    return (
        f"; {known}: a value that means neither true nor false stops the table. If the column can"
        f" have such values, add: {column.no_flag_setting}"
    )
