"""``schema diff`` behind a history: the target is defined as the simulated source says, and has no
other indexes and constraints, which ``schema diff`` does not look for.

The source's inventory is written down from the simulator's own tables, not by the product.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from olr_pg.appliance.appliance import settings_for
from olr_pg.dictionary.inventory import (
    Constraint,
    IndexPart,
    Inventory,
    InventoryColumn,
    InventoryIndex,
    InventoryTable,
)
from olr_pg.schema.conversion import convert
from olr_pg.schema.difference import differences
from olr_pg.schema.relations import Relations
from olr_pg.simulator.model.tables import CHARSET_UTF16, IDENTITY_SEQUENCE, SimColumn

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from typing import Any

    import psycopg

    from olr_pg.config.model import Config
    from olr_pg.dictionary.model import Snapshot
    from olr_pg.simulator.model.tables import SimTable

_TYPES: Final = {
    1: "VARCHAR2", 2: "NUMBER", 12: "DATE", 23: "RAW", 96: "CHAR", 100: "BINARY_FLOAT",
    101: "BINARY_DOUBLE", 112: "CLOB", 113: "BLOB", 180: "TIMESTAMP",
    181: "TIMESTAMP WITH TIME ZONE", 182: "INTERVAL YEAR TO MONTH",
    183: "INTERVAL DAY TO SECOND",
}  # fmt: skip
"""The names of COL$.TYPE#, as DBA_TAB_COLS has them."""

_OBJECTS: Final = """
SELECT conname FROM pg_constraint
WHERE conrelid = to_regclass(%(table)s) AND contype IN ('c', 'f', 'u')
UNION ALL SELECT relname FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
WHERE indrelid = to_regclass(%(table)s) AND NOT indisprimary
"""
"""Constraints and indexes of a table, but for its primary key, whose name is another one."""

UNTRANSLATED: Final = "own function"
"""The form of virtual columns that PostgreSQL cannot compute; `schema diff` says so."""


def schema_differences(
    connection: psycopg.Connection[Any],
    config: Config,
    snapshot: Snapshot,
    tables: Sequence[SimTable],
    stopped: Collection[str],
) -> list[str]:
    """What ``schema diff`` lists of tables that go on, and does not list although it should.

    Args:
        stopped: tables that the target is not to have as they are.
    """
    going = [table for table in tables if table.full_name not in stopped]
    inventory = Inventory(
        tables=tuple(map(_table, going)),
        constraints=tuple(one for table in going for one in _constraints(table)),
        indexes=tuple(one for table in going for one in _indexes(table)),
    )
    settings = replace(settings_for(config, snapshot, ""), connect_string="")
    relations = Relations(inventory, settings)
    found = differences(connection, inventory, relations, convert(inventory, settings))
    own = {
        f"{table.full_name}.{one.name}"
        for table in going
        for one in table.user_virtual.values()
        if one.form == UNTRANSLATED
    }
    listed = {one.name for one in found if one.kind == "generated column"}
    return [
        *(
            f"{one.kind} {one.name}: {one.what} {one.detail}"
            for one in found
            if one.name not in own
        ),
        *(f"the missing column {name} is not listed" for name in sorted(own - listed)),
        *_unknown(connection, inventory, relations),
    ]


def _unknown(
    connection: psycopg.Connection[Any], inventory: Inventory, relations: Relations
) -> Iterator[str]:
    """What the target has of indexes and constraints that the source does not have (any more)."""
    known = {
        *((one.owner, one.table, one.name.lower()) for one in inventory.constraints),
        *((one.table_owner, one.table, one.name.lower()) for one in inventory.indexes),
    }
    for table in inventory.tables:
        relation = relations.find(table.owner, table.name)
        assert relation is not None
        place = f'"{relation.schema}"."{relation.name}"'
        for (name,) in connection.execute(_OBJECTS, {"table": place}).fetchall():
            if (table.owner, table.name, name) not in known:
                yield f"{table.full_name}: the source has no {name}"


def _table(table: SimTable) -> InventoryTable:
    comments = table.beside.comments
    columns = tuple(
        _column(column, at in table.key, comments.get(at, ""))
        for at, column in enumerate(table.columns)
        if not column.unused
    )
    columns += tuple(_virtual(table, at) for at in sorted(table.user_virtual))
    return InventoryTable(
        owner=table.owner, name=table.name, columns=columns, comment=comments.get(None, "")
    )


def _column(column: SimColumn, in_key: bool, comment: str) -> InventoryColumn:
    kind = column.type
    name, wide = _TYPES[kind.type_code], kind.charset_id == CHARSET_UTF16
    is_text = kind.type_code in (1, 96)
    length = kind.length // 2 if wide else kind.length
    is_identity = column.sequence.startswith(IDENTITY_SEQUENCE)
    return InventoryColumn(
        identity="BY DEFAULT" if is_identity else "",
        identity_sequence=column.sequence if is_identity else "",
        name=column.name,
        data_type=f"N{name}" if wide else name,
        length=kind.length,
        char_length=length if is_text else 0,
        precision=kind.precision,
        scale=kind.scale,
        nullable=column.nullable and not in_key,
        comment=comment,
    )


def _virtual(table: SimTable, intcol: int) -> InventoryColumn:
    column = table.virtual[intcol]
    own = _column(SimColumn(column.name, column.type), False, "")
    return replace(own, default=column.expression(table), virtual=True)


def _constraints(table: SimTable) -> list[Constraint]:
    found = [
        Constraint(
            owner=table.owner,
            table=table.name,
            name=f"CK{con}",
            kind="check",
            columns=(table.columns[place].name,),
            condition=f'"{table.columns[place].name}" IS NULL'
            f' OR "{table.columns[place].name}" IS NOT NULL',
        )
        for con, (place, is_enabled) in table.beside.checks.items()
        if is_enabled
    ]
    if table.key:
        names = tuple(table.columns[at].name for at in table.key)
        found.append(
            Constraint(
                owner=table.owner,
                table=table.name,
                name=f"PK_{table.name}",
                kind="primary key",
                columns=names,
            )
        )
    return found


def _indexes(table: SimTable) -> list[InventoryIndex]:
    parts = {
        obj: IndexPart(text=table.columns[place].name)
        for obj, place in table.beside.indexes.items()
    }
    for one in table.virtual.values():
        if one.index:
            parts[one.index] = IndexPart(text=one.expression(table), expression=True)
    return [
        InventoryIndex(
            owner=table.owner,
            name=table.beside.index_names[obj],
            table_owner=table.owner,
            table=table.name,
            kind="FUNCTION-BASED NORMAL" if part.expression else "NORMAL",
            parts=(part,),
        )
        for obj, part in parts.items()
    ]
