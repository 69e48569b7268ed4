"""Reads and writes the file of an inventory. It is next to the file of the dictionary that was
exported with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
from pydantic import ValidationError

from olr_pg.dictionary.inventory import Inventory
from olr_pg.dictionary.json_document import invalid, parse_object, read_bytes
from olr_pg.dictionary.oracle_schemas import is_oracle_schema
from olr_pg.dictionary.snapshot_file import write_whole
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.dictionary.model import Snapshot


def inventory_path(dictionary: Path) -> Path:
    """Return the path of the inventory that belongs to a snapshot: ``x.inventory.json`` for
    ``x.json``.
    """
    return dictionary.with_suffix(".inventory.json")


def owners_of(snapshot: Snapshot) -> set[str]:
    """Return the schemas of the snapshot's tables, without Oracle's own schemas."""
    return {table.owner for table in snapshot.tables if not is_oracle_schema(table.source_owner)}


def write_inventory(inventory: Inventory, path: Path) -> None:
    """Write the inventory atomically. Default values are omitted.

    Raises:
        OlrPgError: 3007, the file cannot be written.
    """
    document = inventory.model_dump(exclude_defaults=True)
    written = orjson.dumps({"format": inventory.format, **document}, option=orjson.OPT_INDENT_2)
    write_whole(written + b"\n", str(path))


def read_inventory_file(path: Path) -> Inventory:
    """Read an inventory from its file.

    Raises:
        OlrPgError: 3001–3004 the file cannot be read, 3260 it does not exist.
    """
    if not path.exists():
        raise OlrPgError(Code.INVENTORY_MISSING, f"there is no {path}", file=str(path))
    data = read_bytes(str(path))
    try:
        # Parse the JSON directly into the model: Python objects of the file would take five times
        # its size.
        return Inventory.model_validate_json(data)
    except ValidationError as error:
        parse_object(data, str(path))  # rejects a file that is not a JSON object
        raise invalid(error, str(path)) from error
