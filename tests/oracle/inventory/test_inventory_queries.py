"""Everything that is in a schema, through the stand-in, into a file and back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from olr_pg.config.source_section import OracleSource
from olr_pg.dictionary.inventory import Inventory
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.dictionary.model import Snapshot
from olr_pg.dictionary.snapshot_file import inventory_path, read_inventory_file, write_inventory
from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.inventory.inventory_queries import NAMED_VIEWS, read_inventory
from olr_pg.oracle.oracle_connection import OracleDatabase
from olr_pg.simulator.model.shop_inventory import shop_inventory
from olr_pg.simulator.oracle_net.serve import StandIn
from olr_pg.simulator.oracle_net.state import OracleState
from olr_pg.simulator.simulation import simulate
from tests.oracle.conftest import DBID


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    folder = tmp_path_factory.mktemp("shop")
    simulate(3, folder, workload="orders", size=1, truth=False)
    assert read_inventory_file(inventory_path(folder / "dictionary.json")).tables
    return load_snapshot(str(folder / "dictionary.json"))


@pytest.fixture
def shop_state(shop: Snapshot) -> OracleState:
    return OracleState(replace(shop, sys_rows=None), dbid=DBID)


@pytest.fixture
def shop_oracle(shop_state: OracleState) -> Iterator[OracleDatabase]:
    with StandIn(shop_state) as server:
        source = {"user": "olr", "password": "olr", "server": server.connect_string}
        database = OracleDatabase(OracleSource.model_validate(source))
        try:
            yield database
        finally:
            database.close()


def _expected(shop: Snapshot) -> Inventory:
    looked_at = tuple(view.full_name for view in NAMED_VIEWS.values())
    update = {"version": "19.3.0.0.0", "looked_at": looked_at}
    return shop_inventory(shop).model_copy(update=update)


def test_what_is_read_is_what_is_there(
    shop: Snapshot, shop_oracle: OracleDatabase, tmp_path: Path
) -> None:
    found = read_inventory(shop_oracle, ["SHOP"], shop.scn)
    expected = _expected(shop)
    for name in type(found).model_fields:
        assert getattr(found, name) == getattr(expected, name), name
    write_inventory(found, tmp_path / "x.json")
    assert read_inventory_file(tmp_path / "x.json") == found


def test_the_shop_has_objects_of_every_kind(shop: Snapshot) -> None:
    found = shop_inventory(shop)
    empty = [name for name in type(found).model_fields if not getattr(found, name)]
    assert empty == ["version", "looked_at", "unread", "redo"]
    assert {one.kind for one in found.objects} >= {
        *("TABLE", "INDEX", "VIEW", "MATERIALIZED VIEW", "SEQUENCE", "SYNONYM", "TRIGGER", "TYPE"),
        *("PROCEDURE", "FUNCTION", "PACKAGE", "PACKAGE BODY", "JOB", "DATABASE LINK"),
    }


def test_a_view_that_may_not_be_read_is_named(
    shop: Snapshot, shop_state: OracleState, shop_oracle: OracleDatabase
) -> None:
    shop_state.catalogue.denied |= {"DBA_SOURCE", "ALL_SOURCE", "V$ARCHIVED_LOG"}
    found = read_inventory(shop_oracle, ["SHOP"], shop.scn)
    assert found.unread == ("DBA_SOURCE", "V$ARCHIVED_LOG")
    assert not found.sources
    assert found.triggers


def test_tables_that_are_only_in_dba_objects_are_object_tables(
    shop: Snapshot, shop_state: OracleState, shop_oracle: OracleDatabase
) -> None:
    catalogue = shop_state.catalogue
    catalogue.update("DELETE FROM SYS.DBA_TABLES WHERE TABLE_NAME IN ('ORDERS', 'CUSTOMERS')")
    catalogue.update(
        "UPDATE SYS.DBA_OBJECTS SET OBJECT_NAME = 'SYS_NTabc+/==' WHERE OBJECT_NAME = 'CUSTOMERS'"
    )
    found = {one.name: one for one in read_inventory(shop_oracle, ["SHOP"], shop.scn).tables}
    assert found["ORDERS"].kind == "object table"
    assert found["ORDERS"].columns
    assert [one.name for one in found.values() if one.kind == "object table"] == ["ORDERS"]


def test_a_missing_file_says_how_it_is_made(tmp_path: Path) -> None:
    with pytest.raises(OlrPgError) as caught:
        read_inventory_file(inventory_path(tmp_path / "dictionary.json"))
    assert caught.value.code == Code.INVENTORY_MISSING
    assert "dictionary.inventory.json" in caught.value.detail


@pytest.mark.parametrize(
    ("version", "told"),
    [
        ("12.2.0.1.0", "12.2.0.1.0"),
        ("18.3.0.0.0", "18.3.0.0.0"),
        # VERSION of it is 23.0.0.0.0.
        ("23.26.1.0.0", "23.26.1.0.0"),
    ],
)
def test_the_version_names_the_release_update(
    shop: Snapshot, shop_state: OracleState, shop_oracle: OracleDatabase, version: str, told: str
) -> None:
    shop_state.set_version(version)
    assert read_inventory(shop_oracle, ["SHOP"], shop.scn).version == told
