"""The dictionary of a live source as a file; what is lacking is said before anything is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.appliance.dictionary_export import export_dictionary
from olr_pg.config.reading import parse_config
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.dictionary.model import Column, Database, KeyKind, Snapshot, Table
from olr_pg.dictionary.structure import Index, Structure
from olr_pg.errors import OlrPgError
from olr_pg.schema.source_inventory import read_schemas
from olr_pg.simulator.oracle_net.serve import StandIn
from olr_pg.simulator.oracle_net.state import OracleState

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.config.model import Config

QUERY = "SELECT owner, table_name FROM all_tables WHERE owner = 'SHOP'"
COLUMNS = (
    Column("ID", 1, 1, 1, 2, 22, precision=12, scale=0, nullable=False),
    Column("PLACE", 2, 2, 2, 2, 22, precision=12, scale=0),
)
TABLE = Table("SHOP", "ORDERS", 72_000, 72_000, COLUMNS, key_kind=KeyKind.PRIMARY, key=(1,))
STRUCTURE = Structure(
    indexes=(Index(owner="SHOP", table="ORDERS", name="ORDERS_IX", columns=("PLACE",)),)
)


def config(folder: Path, source: dict[str, Any], **sections: Any) -> Config:
    return parse_config({"source": source, **sections}, folder, {}, file="c.json")


def test_the_snapshot_has_the_tables_and_their_structure(tmp_path: Path) -> None:
    database = Database("SIMDB", 3, "SIMPDB", 77, (2_000,), 55, big_endian=False)
    state = OracleState(Snapshot(5_000, database, (TABLE,), structure=STRUCTURE), dbid=1)
    path = tmp_path / "dictionary.json"
    with StandIn(state) as server:
        source = {"user": "olr", "password": "olr", "server": server.connect_string}
        ((snapshot, _),) = export_dictionary(config(tmp_path, source), QUERY, 0, path)
    found = load_snapshot(str(path))
    assert found == snapshot
    assert (found.scn, [table.full_name for table in found.tables]) == (5_000, ["SHOP.ORDERS"])
    assert found.structure == STRUCTURE


def test_a_table_that_does_not_exist_is_not_left_out(tmp_path: Path) -> None:
    database = Database("SIMDB", 3, "SIMPDB", 77, (2_000,), 55, big_endian=False)
    state = OracleState(Snapshot(5_000, database, (TABLE,), structure=STRUCTURE), dbid=1)
    path = tmp_path / "dictionary.json"
    with StandIn(state) as server:
        source = {"user": "olr", "password": "olr", "server": server.connect_string}
        tables = {"connect-string": "embedded", "tables": ["SHOP.ORDERS", "SHOP.ODRERS"]}
        wrong = config(tmp_path, source, apply=tables)
        for work in (lambda: export_dictionary(wrong, None, 0, path), lambda: read_schemas(wrong)):
            with pytest.raises(OlrPgError) as caught:
                work()
            assert caught.value.code == 3012
    assert not path.exists()


def test_an_scn_that_cannot_be_read_and_a_schema_without_objects(tmp_path: Path) -> None:
    database = Database("SIMDB", 3, "SIMPDB", 77, (2_000,), 55, big_endian=False)
    state = OracleState(Snapshot(5_000, database, (TABLE,), structure=STRUCTURE), dbid=1)
    state.catalogue.undo_scn = 4_000
    with StandIn(state) as server:
        source = {"user": "olr", "password": "olr", "server": server.connect_string}
        tables = {"connect-string": "embedded", "tables": ["SHOP.ORDERS"]}
        live = config(tmp_path, source, apply=tables)
        for scn, code in ((1, 7005), (1 << 40, 7100)):
            with pytest.raises(OlrPgError) as caught:
                export_dictionary(live, None, scn, tmp_path / "d.json")
            assert caught.value.code == code
            assert "omit --scn to export the dictionary as of now" in caught.value.action
        with pytest.raises(OlrPgError) as caught:
            read_schemas(live, ["shop"])
        assert (caught.value.code, caught.value.detail) == (3019, "shop")
    offline = {"kind": "offline", "dictionary": "d.json", "logs": "archive"}
    with pytest.raises(OlrPgError, match="--owner is only for a live source"):
        read_schemas(config(tmp_path, offline, apply=tables), ["SHOP"])


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ({"kind": "offline", "dictionary": "d.json", "logs": "archive"}, 1093),
        ({"user": "u", "password": "p", "server": "127.0.0.1:1/S"}, 1094),
    ],
    ids=["no live source", "no tables"],
)
def test_what_is_lacking_is_said_first(tmp_path: Path, source: dict[str, Any], code: int) -> None:
    with pytest.raises(OlrPgError) as caught:
        export_dictionary(config(tmp_path, source), None, 0, tmp_path / "out.json")
    assert caught.value.code == code
    assert not (tmp_path / "out.json").exists()
