"""The schema of the shop: the tables of the workload `orders`, and objects of every kind around
them.

The workload's tables have rows and redo. The objects that are added here have neither: they are for
assessments and schema conversion. The rows of the workload fulfil the constraints that are added to
its tables. ``shop.toml`` lists the added objects.
"""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from olr_pg.dictionary.inventory import Inventory
from olr_pg.dictionary.inventory_file import inventory_path, write_inventory
from olr_pg.dictionary.snapshot_file import write_snapshot
from olr_pg.simulator.model.plain_inventory import inventory_of, with_objects

if TYPE_CHECKING:
    from collections.abc import Mapping

    from olr_pg.dictionary.inventory import InventoryTable
    from olr_pg.dictionary.model import Snapshot

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
