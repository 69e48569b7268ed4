"""The inventory of a simulated database's schemas, derived from its tables."""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from olr_pg.datatypes.mapping import OracleType
from olr_pg.dictionary.inventory import (
    Constraint,
    IndexPart,
    Inventory,
    InventoryColumn,
    InventoryIndex,
    InventoryTable,
    SchemaObject,
)
from olr_pg.dictionary.model import KeyKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from olr_pg.dictionary.model import Column, Snapshot, Table
    from olr_pg.dictionary.structure import Index

NATIONAL: Final = 2
_LETTERS: Final = {"primary key": "P", "unique": "U", "foreign key": "R"}
"""CONSTRAINT_TYPE by kind."""

_WITH_DIGITS: Final = {
    OracleType.TIMESTAMP: "TIMESTAMP({})",
    OracleType.TIMESTAMP_TZ: "TIMESTAMP({}) WITH TIME ZONE",
    OracleType.TIMESTAMP_LTZ: "TIMESTAMP({}) WITH LOCAL TIME ZONE",
}


def data_type(column: Column) -> str:
    """Return the name of the type as in DATA_TYPE of the dictionary's views."""
    code = OracleType(column.type_code)
    if column.xml:
        return "XMLTYPE"
    if code in _WITH_DIGITS:
        return _WITH_DIGITS[code].format(column.scale)
    if code is OracleType.INTERVAL_DS:
        return f"INTERVAL DAY({column.precision}) TO SECOND({column.scale})"
    if code is OracleType.INTERVAL_YM:
        return f"INTERVAL YEAR({column.precision}) TO MONTH"
    if code is OracleType.NUMBER and column.precision is not None and column.scale is None:
        return "FLOAT"
    national = "N" if column.charset_form == NATIONAL else ""
    return national + code.title


def _column(column: Column) -> InventoryColumn:
    unit = 2 if column.charset_form == NATIONAL else 1
    is_text = column.type_code in (OracleType.VARCHAR2, OracleType.CHAR)
    return InventoryColumn(
        name=column.name,
        data_type=data_type(column),
        type_owner="PUBLIC" if column.xml else "",
        length=column.length,
        char_length=(column.char_length or column.length // unit) if is_text else 0,
        precision=column.precision,
        scale=column.scale,
        nullable=column.nullable,
        virtual=column.virtual,
        hidden=column.hidden,
    )


def inventory_of(snapshot: Snapshot) -> Inventory:
    """Return the inventory of a database that contains only the tables of the snapshot."""
    tables = [table for table in snapshot.tables if table.owner != "SYS"]
    found = Inventory(
        scn=snapshot.scn,
        database=snapshot.database.name,
        owners=tuple(sorted({table.owner for table in tables})),
        tables=tuple(
            InventoryTable(
                owner=table.owner,
                name=table.name,
                kind="index-organised table" if table.index_organised else "table",
                columns=tuple(
                    map(_column, sorted(table.columns, key=attrgetter("hidden", "col", "intcol")))
                ),
            )
            for table in sorted(tables, key=lambda table: table.full_name)
        ),
        constraints=tuple(_constraints(snapshot, tables)),
        indexes=tuple(_indexes(snapshot, tables)),
        sequences=tuple(sorted(snapshot.structure.sequences, key=lambda one: one.full_name)),
    )
    return with_objects(found)


def with_objects(inventory: Inventory) -> Inventory:
    """Add an entry of DBA_OBJECTS to an inventory for each of its tables, indexes and other
    objects.
    """
    parts: tuple[tuple[str, Iterable[Any]], ...] = (
        ("TABLE", inventory.tables),
        ("INDEX", inventory.indexes),
        ("VIEW", inventory.views),
        ("MATERIALIZED VIEW", inventory.materialized_views),
        ("SEQUENCE", inventory.sequences),
        ("SYNONYM", [one for one in inventory.synonyms if one.owner != "PUBLIC"]),
        ("TRIGGER", inventory.triggers),
        ("JOB", inventory.jobs),
        ("DATABASE LINK", inventory.links),
        *((source.kind, [source]) for source in inventory.sources),
    )
    found = [
        SchemaObject(owner=one.owner, name=one.name, kind=kind)
        for kind, own in parts
        for one in own
    ]
    for kind, count in Counter((one.owner, one.name, one.kind) for one in found).items():
        assert count == 1, kind
    found.sort(key=lambda one: (one.owner, one.kind, one.name))
    return inventory.model_copy(update={"objects": tuple(found)})


def _constraints(snapshot: Snapshot, tables: Iterable[Table]) -> list[Constraint]:
    found, structure = list[Constraint](), snapshot.structure

    def add(owner: str, table: str, name: str, kind: str, **others: Any) -> None:
        letter = _LETTERS[kind]
        of: dict[str, Any] = {"owner": owner, "name": name, "table": table, "kind": kind}
        found.append(Constraint(**of, oracle_kind=letter, **others))

    for table in tables:
        names = {column.intcol: column.name for column in table.columns}
        if table.key:
            kind = "primary key" if table.key_kind is KeyKind.PRIMARY else "unique"
            name, columns = f"{table.name}_PK", tuple(names[intcol] for intcol in table.key)
            add(table.owner, table.name, name, kind, columns=columns, index=name)
    for key in structure.unique_keys:
        add(key.owner, key.table, key.name, "unique", columns=key.columns, index=key.name)
    for foreign in structure.foreign_keys:
        add(
            *(foreign.owner, foreign.table, foreign.name, "foreign key"),
            columns=foreign.columns,
            parent_owner=foreign.parent_owner,
            parent_table=foreign.parent,
            parent_columns=foreign.parent_columns,
            delete_rule=foreign.on_delete.upper(),
        )
    return sorted(found, key=lambda one: (one.table, one.full_name))


def _indexes(snapshot: Snapshot, tables: Iterable[Table]) -> list[InventoryIndex]:
    found = list[InventoryIndex]()

    def add(one: Constraint | Index, name: str, *, unique: bool, constraint: str = "") -> None:
        parts = tuple(IndexPart(text=column) for column in one.columns)
        of: dict[str, Any] = {
            "owner": one.owner,
            "table_owner": one.owner,
            "table": one.table,
            "name": name,
        }
        found.append(InventoryIndex(**of, unique=unique, parts=parts, constraint=constraint))

    for key in _constraints(snapshot, tables):
        if key.index:
            add(key, key.index, unique=True, constraint=key.name)
    for index in snapshot.structure.indexes:
        add(index, index.name, unique=index.unique)
    return sorted(found, key=lambda one: one.full_name)
