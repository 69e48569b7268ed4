"""The inventory's file: beside its dictionary, whole, and refused where it is broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from olr_pg.dictionary.inventory import Inventory, InventoryTable
from olr_pg.dictionary.inventory_file import inventory_path, read_inventory_file, write_inventory
from olr_pg.errors import Code, OlrPgError


def test_it_is_beside_the_dictionary() -> None:
    assert inventory_path(Path("a/dictionary.json")) == Path("a/dictionary.inventory.json")


def test_what_was_written_is_read(tmp_path: Path) -> None:
    found = Inventory(owners=("S",), tables=(InventoryTable(owner="S", name="T", rows=3),))
    write_inventory(found, tmp_path / "x.json")
    assert read_inventory_file(tmp_path / "x.json") == found


@pytest.mark.parametrize("text", ['{"format": "olr-pg-inventory/2"}', '{"nothing": 1}'])
def test_another_file_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(OlrPgError) as caught:
        read_inventory_file(tmp_path / "x.json")
    assert caught.value.code == Code.DICTIONARY_INVALID
