"""The schemas of two containers: each under its own names, told apart in the target."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.config.reading import load_config
from olr_pg.config.table_patterns import LEDGER
from olr_pg.dictionary.inventory import InventoryColumn, InventoryView
from olr_pg.dictionary.snapshot_file import inventory_path, write_inventory
from olr_pg.errors import Code, OlrPgError
from olr_pg.schema.source_inventory import all_statements, read_schemas
from olr_pg.simulator.model.shop_inventory import inventory_of, with_objects
from tests.replicator.ddl_source import NUMBER, TEXT, DdlSource

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.config.model import Config

VIEW = InventoryView(
    owner="SHOP",
    name="NAMES",
    text="SELECT A.NAME FROM SHOP.A A",
    columns=(InventoryColumn(name="NAME", data_type="VARCHAR2", length=128),),
)


@pytest.fixture(scope="module")
def dictionaries(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Of two containers with SHOP.A and a view of it."""
    folder = tmp_path_factory.mktemp("two")
    one = DdlSource(folder / "one", con_id=3)
    other = DdlSource(folder / "other", con_id=4, beside=one)
    paths = []
    for source in (one, other):
        source.create("A", {"ID": NUMBER, "NAME": TEXT})
        snapshot = source.take_snapshot()
        inventory = inventory_of(snapshot).model_copy(update={"views": (VIEW,)})
        path = source.directory / "dictionary.json"
        write_inventory(with_objects(inventory), inventory_path(path))
        paths.append(str(path))
    return paths


def config(folder: Path, dictionaries: list[str], **apply: Any) -> Config:
    document = {
        "context": {"data": str(folder / "data")},
        "source": {"kind": "offline", "dictionary": dictionaries, "logs": str(folder)},
        "apply": {"connect-string": "embedded", "tables": ["SHOP.A"], **apply},
    }
    path = folder / "config.json"
    path.write_text(json.dumps(document), "utf-8")
    return load_config(path)


def statements(config: Config) -> dict[tuple[str, str], str]:
    return {(one.kind, one.name): one.sql for one in all_statements(config, read_schemas(config))}


def test_each_container_is_converted_under_its_own_names(
    tmp_path: Path, dictionaries: list[str]
) -> None:
    found = statements(config(tmp_path, dictionaries))
    assert found["schema", "PDB1.SHOP"] == 'CREATE SCHEMA "pdb1_shop"'
    assert found["schema", "PDB2.SHOP"] == 'CREATE SCHEMA "pdb2_shop"'
    for pdb in ("PDB1", "PDB2"):
        schema = f'"{pdb.lower()}_shop"'
        assert f'{schema}."a"' in found["table", f"{pdb}.SHOP.A"]
        view = found["view", f"{pdb}.SHOP.NAMES"]
        assert f'{schema}."names"' in view
        assert f'{schema}."a"' in view


def test_what_is_chosen_for_a_table_of_one_is_not_for_that_of_the_other(
    tmp_path: Path, dictionaries: list[str]
) -> None:
    found = statements(
        config(
            tmp_path, dictionaries,
            **{
                "schema-mapping": {"PDB1.SHOP": "first"},
                "table-mapping": {"PDB2.SHOP.A": "second.goods"},
                "columns": {"PDB2.SHOP.A.NAME": {"name": "title"}},
            },
        )
    )  # fmt: skip
    assert '"first"."a"' in found["table", "PDB1.SHOP.A"]
    assert '"name"' in found["table", "PDB1.SHOP.A"]
    assert '"second"."goods"' in found["table", "PDB2.SHOP.A"]
    assert '"title"' in found["table", "PDB2.SHOP.A"]
    assert '"second"."goods"' in found["view", "PDB2.SHOP.NAMES"]


def test_one_container_alone_has_plain_names(tmp_path: Path, dictionaries: list[str]) -> None:
    found = statements(config(tmp_path, dictionaries[:1]))
    assert found["schema", "SHOP"] == 'CREATE SCHEMA "shop"'
    assert ("table", "SHOP.A") in found


def test_tables_that_would_be_one_in_the_target_are_refused(
    tmp_path: Path, dictionaries: list[str]
) -> None:
    mapping = {"PDB1.SHOP": "shop", "PDB2.SHOP": "shop"}
    with pytest.raises(OlrPgError) as caught:
        read_schemas(config(tmp_path, dictionaries, **{"schema-mapping": mapping}))
    assert caught.value.code == Code.TARGET_NAME_CLASH


def test_the_tables_of_the_way_back_are_not_part_of_the_schema(tmp_path: Path) -> None:
    source = DdlSource(tmp_path / "source", con_id=3)
    for name in ("A", LEDGER, f"{LEDGER}_RECORD"):
        source.create(name, {"ID": NUMBER})
    path = source.directory / "dictionary.json"
    write_inventory(with_objects(inventory_of(source.take_snapshot())), inventory_path(path))
    assert {
        name for kind, name in statements(config(tmp_path, [str(path)])) if kind == "table"
    } == {"SHOP.A"}
