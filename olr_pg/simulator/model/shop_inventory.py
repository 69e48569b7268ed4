"""The schema of the shop: the tables of the workload `orders`, and objects of every kind around
them.

The workload's tables have rows and redo. The objects that this module adds have neither rows nor
redo: they are for assessments and schema conversion. The rows of the workload fulfil the
constraints that are added to its tables. ``shop.toml`` lists the added objects.

The inventory of a simulated database's schemas, and the indexes, keys and sequences that a target
needs, are derived from its tables. The indexes have redo. The model does not check keys, and does
not maintain an index for the shop's unique key.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

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
from olr_pg.dictionary.snapshot_file import inventory_path, write_inventory, write_snapshot
from olr_pg.dictionary.structure import ForeignKey, Index, Sequence, Structure, UniqueKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from olr_pg.dictionary.model import Column, Snapshot, Table
    from olr_pg.simulator.model.tables import SimTable

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


SHOP: Final = "SHOP"
_TABLES: Final = frozenset(
    {"WAREHOUSES", "CUSTOMERS", "STOCK", "ORDERS", "ORDER_LINES", "PAYMENTS"}
)
_FILE: Final = Path(__file__).with_name("shop.toml")
_ROWS: Final = 100
"""Number of rows of a table for which ``shop.toml`` names no number."""


def shop_inventory(snapshot: Snapshot) -> Inventory:
    """Return the inventory of `snapshot`; if its tables are the shop's, with the shop's other
    objects.
    """
    found = inventory_of(snapshot)
    names = {table.name for table in found.tables if table.owner == SHOP}
    return with_objects(_completed(found)) if names >= _TABLES else found


def write_dictionary(snapshot: Snapshot, directory: Path, *, of_container: bool = False) -> None:
    """Write the snapshot as ``dictionary.json``, and its inventory in the same folder.

    Args:
        of_container: add the container to the file name, as for several containers:
            ``dictionary.PDB1.json``.

    Raises:
        OlrPgError: 3007, a file cannot be written.
    """
    name = f"dictionary.{snapshot.database.con_name}.json" if of_container else "dictionary.json"
    path = directory / name
    write_snapshot(snapshot, str(path))
    write_inventory(shop_inventory(snapshot), inventory_path(path))


def _completed(found: Inventory) -> Inventory:
    """Add the content of ``shop.toml`` to the inventory of the tables."""
    document = tomllib.loads(_FILE.read_text("utf-8"))
    known = document.pop("known")
    for parts in document.values():
        for part in parts:
            part.setdefault("owner", SHOP)
    added = Inventory.model_validate_json(orjson.dumps(document))
    tables = tuple(_known_table(table, known.get(table.name, {})) for table in found.tables)
    found = found.model_copy(update={"tables": tables})
    order: dict[str, Any] = {
        "tables": lambda one: one.full_name,
        "constraints": lambda one: (one.table, one.full_name),
        "sources": lambda one: (one.kind, one.name),
        "synonyms": lambda one: (one.owner, one.name),
        "grants": lambda one: (one.name, one.grantee, one.privilege),
        "others": lambda one: one.owner,
        "named": lambda _one: "",  # in the order of the views
    }
    return found.model_copy(
        update={
            name: tuple(
                sorted(
                    (*getattr(found, name), *getattr(added, name)),
                    key=order.get(name, lambda one: one.name),
                )
            )
            for name in document
        }
    )


def _known_table(table: InventoryTable, said: Mapping[str, Any]) -> InventoryTable:
    """Add defaults, comment and size to a table of the workload."""
    defaults, rows = said.get("defaults", {}), said.get("rows", _ROWS)
    columns = tuple(
        replace(column, default=defaults.get(column.name, "")) for column in table.columns
    )
    return replace(
        table,
        columns=columns,
        comment=said.get("comment", ""),
        rows=rows,
        bytes=65_536 + 128 * rows,
        logging=("ALL COLUMN LOGGING",),
    )


CACHE: Final = 20
"""Number of values of a sequence that an instance reserves at a time (CACHE 20, Oracle's default).
"""

_ORDER_PARENTS: Final = (
    ("DISTRICTS", "WAREHOUSE_ID", "WAREHOUSES"),
    ("CUSTOMERS", "WAREHOUSE_ID", "WAREHOUSES"),
    ("STOCK", "WAREHOUSE_ID", "WAREHOUSES"),
    ("ORDERS", "CUSTOMER_ID", "CUSTOMERS"),
    ("NEW_ORDERS", "ORDER_ID", "ORDERS"),
    ("ORDER_LINES", "ORDER_ID", "ORDERS"),
    ("PAYMENTS", "CUSTOMER_ID", "CUSTOMERS"),
)
"""(table, column, table whose primary key the column refers to)."""

_ORDER_SEQUENCES: Final = ("CUSTOMERS", "ORDERS", "PAYMENTS")


def table_structure(tables: Iterable[SimTable]) -> Structure:
    """Return the tables' indexes, without those of their primary keys."""
    return Structure(indexes=tuple(_table_indexes(tables)))


def _table_indexes(tables: Iterable[SimTable]) -> Iterable[Index]:
    for table in tables:
        made = Counter[str]()
        for index in table.indexes:
            if index.columns != table.key:
                columns = tuple(table.columns[at].name for at in index.columns)
                made[columns[0]] += 1
                number = made[columns[0]] if made[columns[0]] > 1 else ""
                yield Index(
                    owner=table.owner,
                    table=table.name,
                    name=f"{table.name}_{columns[0]}_IX{number}",
                    columns=columns,
                    unique=index.unique,
                )


def order_structure(tables: Iterable[SimTable], next_keys: Mapping[str, int]) -> Structure:
    """Return the indexes, constraints and sequences of the shop's tables.

    Args:
        next_keys: the next value of the key of each table that has a sequence.
    """
    tables = tuple(tables)
    owner = tables[0].owner
    sequences = tuple(
        Sequence(
            owner=owner,
            name=f"{name}_SEQ",
            # HIGHWATER is the value after all values that the instance has reserved.
            next=(next_keys[name] + CACHE - 2) // CACHE * CACHE + 1,
            cache=CACHE,
        )
        for name in _ORDER_SEQUENCES
    )
    foreign = tuple(
        ForeignKey(
            owner=owner,
            table=child,
            name=f"{child}_{parent}_FK",
            columns=(column,),
            parent_owner=owner,
            parent=parent,
            parent_columns=(column,),
        )
        for child, column, parent in _ORDER_PARENTS
    )
    unique = UniqueKey(
        owner=owner, table="ORDERS", name="ORDERS_CUSTOMER_UK", columns=("CUSTOMER_ID", "ORDER_ID")
    )
    return Structure(
        unique_keys=(unique,),
        indexes=table_structure(tables).indexes,
        foreign_keys=foreign,
        sequences=sequences,
    )
