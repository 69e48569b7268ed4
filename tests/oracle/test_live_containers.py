"""Several PDBs of a live database: one session's user goes into each, the logs are read once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from structlog.testing import capture_logs

from olr_pg.appliance.appliance import run_appliance
from olr_pg.appliance.dictionary_export import export_dictionary
from olr_pg.capture.lineage import Lineage
from olr_pg.capture.logs import discover_logs
from olr_pg.config.reading import load_config
from olr_pg.config.source_section import OracleSource
from olr_pg.dictionary.loader import load_dictionary, load_snapshot
from olr_pg.dictionary.snapshot_file import inventory_path
from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.live_source import LiveDatabase
from olr_pg.simulator.oracle_net.serve import StandIn
from olr_pg.simulator.oracle_net.state import ARCHIVE, OracleState
from tests.replicator.ddl_source import NUMBER, TEXT, DdlSource
from tests.replicator.test_containers_applied import rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator


class Database:
    """Two PDBs with a table SHOP.A each, and what else only one of them has."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.one = DdlSource(folder / "one", con_id=3)
        self.other = DdlSource(folder / "other", con_id=4, beside=self.one)
        self.both = (self.one, self.other)
        for source in self.both:
            source.create("A", {"ID": NUMBER, "NAME": TEXT})
        dbid = self.one.instance.identity.dbid
        self.states = [OracleState(source.take_snapshot(), dbid=dbid) for source in self.both]
        scn = max(state.scn for state in self.states)
        self.start_scn = scn
        for state in self.states:
            state.scn = scn
        self.server = StandIn(self.states[0])
        self.server.containers = {"PDB1": self.states[0], "PDB2": self.states[1]}

    def write_rows(self) -> None:
        for number in range(3):
            for source in self.both:
                source.insert("A", number, f"{source.container.name} {number}")
        self.one.finish()
        for log in discover_logs([str(self.one.directory / "logs")]):
            for state in self.states:
                state.archived(Path(log.path).name, log.header)

    def config(self, target: str, tables: list[str], **source: Any) -> Path:
        document = {
            "context": {"data": str(self.folder / "data")},
            "source": {
                "kind": "oracle",
                "user": "olr",
                "password": "olr",
                "server": self.server.connect_string,
                "containers": ["PDB1", "PDB2"],
                "path-mapping": [ARCHIVE, str(self.one.directory / "logs")],
                "poll-ms": 20,
                **source,
            },
            "target": {"address": "127.0.0.1:0"},
            "apply": {
                "connect-string": target, "tables": tables, "create-tables": True,
                "start-scn": self.start_scn,
            },
            "spark": {"master": "local[2,2]"},
        }  # fmt: skip
        path = self.folder / "config.json"
        path.write_text(json.dumps(document), "utf-8")
        return path


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(tmp_path)
    try:
        yield made
    finally:
        made.server.close()


@pytest.mark.usefixtures("one_session")
def test_both_are_replicated_and_a_restart_goes_on(
    database: Database, postgres_database: str
) -> None:
    database.write_rows()
    config = database.config(postgres_database, ["SHOP.A"])
    for _ in range(2):
        assert run_appliance(load_config(config), once=True, apply=True) == 0
        with psycopg.connect(postgres_database) as connection:
            assert rows_of(connection, "pdb1_shop.a") == database.one.rows("A")
            assert rows_of(connection, "pdb2_shop.a") == database.other.rows("A")
    data = database.folder / "data"
    assert {path.name for path in data.glob("dictionary.*.json")} == {
        "dictionary.PDB1.json", "dictionary.PDB2.json",
    }  # fmt: skip
    entered = [sql for sql, _ in database.server.heard if "CONTAINER" in sql]
    assert {'ALTER SESSION SET CONTAINER = "PDB1"', 'ALTER SESSION SET CONTAINER = "PDB2"'} == set(
        entered
    )


@pytest.mark.usefixtures("one_session")
def test_an_unknown_container_is_named(database: Database, postgres_database: str) -> None:
    database.write_rows()
    config = database.config(postgres_database, ["SHOP.A"], containers=["PDB1", "PDB9"])
    with pytest.raises(OlrPgError, match="PDB9"):
        run_appliance(load_config(config), once=True, apply=True)


def test_each_dictionary_is_exported_as_of_one_scn(database: Database, tmp_path: Path) -> None:
    config = load_config(database.config("embedded", ["SHOP.A"]))
    exported = export_dictionary(config, None, 0, tmp_path / "dictionary.json")
    paths = [tmp_path / "dictionary.PDB1.json", tmp_path / "dictionary.PDB2.json"]
    assert [one.path for one in exported] == paths
    assert len({one.snapshot.scn for one in exported}) == 1
    both = load_dictionary(map(str, paths))
    assert both.database.containers == ("PDB1", "PDB2")
    assert [inventory_path(path).exists() for path in paths] == [True, True]


def test_a_dictionary_of_one_is_exported_by_its_name(database: Database, tmp_path: Path) -> None:
    config = load_config(database.config("embedded", ["SHOP.A"], containers=["pdb2"]))
    ((found, _),) = export_dictionary(config, None, 0, tmp_path / "dictionary.json")
    assert (found.database.con_id, found.database.con_name) == (4, "PDB2")
    assert found.find("SHOP", "A") is not None


@pytest.mark.usefixtures("one_session")
@pytest.mark.parametrize("has_ddl", [False, True])
def test_where_one_has_no_undo_left_all_dictionaries_are_of_one_moment(
    database: Database, postgres_database: str, has_ddl: bool
) -> None:
    """In local undo mode each PDB has its own, which may reach back less far."""
    database.write_rows()
    catalogue = database.states[1].catalogue
    catalogue.undo_scn = database.start_scn + 1
    if has_ddl:
        catalogue.update('UPDATE SYS."OBJ$" SET "ORA_ROWSCN" = ?', catalogue.undo_scn)
    config = database.config(postgres_database, ["SHOP.A"])
    with capture_logs() as logged:
        assert run_appliance(load_config(config), once=True, apply=True) == 0
    later = [line["start_scn"] for line in logged if "a later dictionary" in line["event"]]
    assert later == [database.start_scn] * has_ddl
    with psycopg.connect(postgres_database) as connection:
        assert rows_of(connection, "pdb1_shop.a") == database.one.rows("A")
        assert rows_of(connection, "pdb2_shop.a") == database.other.rows("A")
    data = database.folder / "data"
    kept = {load_snapshot(str(path)).scn for path in data.glob("dictionary.*.json")}
    assert len(kept) == 1
    assert (kept == {database.start_scn}) is not has_ddl


@pytest.mark.usefixtures("one_session")
def test_a_container_of_which_no_table_is_chosen_changes_nothing(
    database: Database, postgres_database: str
) -> None:
    database.write_rows()
    config = database.config(postgres_database, ["PDB1.SHOP.A"], containers=["pdb1", "pdb2"])
    assert run_appliance(load_config(config), once=True, apply=True) == 0
    with psycopg.connect(postgres_database) as connection:
        assert rows_of(connection, "shop.a") == database.one.rows("A")


@pytest.mark.usefixtures("one_session")
def test_a_start_needs_every_container_and_says_which_is_not_open(
    database: Database, postgres_database: str
) -> None:
    config = database.config(postgres_database, ["SHOP.A"])
    run_appliance(load_config(config), once=True, apply=True)
    database.write_rows()
    closed = database.server.containers.pop("PDB2")
    with pytest.raises(OlrPgError, match='"PDB2"') as caught:
        run_appliance(load_config(config), once=True, apply=True)
    assert caught.value.code == Code.ORACLE_SERVICE_UNKNOWN
    database.server.containers["PDB2"] = closed
    assert run_appliance(load_config(config), once=True, apply=True) == 0
    with psycopg.connect(postgres_database) as connection:
        assert rows_of(connection, "pdb1_shop.a") == database.one.rows("A")
        assert rows_of(connection, "pdb2_shop.a") == database.other.rows("A")


def test_a_container_that_is_closed_meanwhile_does_not_hold_up_the_others(
    database: Database,
) -> None:
    """What it did before is in the redo: that needs no session there."""
    source = load_config(database.config("embedded", ["SHOP.A"])).source
    assert isinstance(source, OracleSource)
    live = LiveDatabase(source, Lineage(database.folder / "lineage.json"))
    try:
        live.resolve("SELECT OWNER, TABLE_NAME FROM ALL_TABLES WHERE TABLE_NAME = 'A'")
        database.write_rows()
        del database.server.containers["PDB2"]
        found = live.scan(0, 0)
        assert found.logs
        assert found.source_answers
        # The first one is asked for the logs: they are waited for, as while Oracle restarts.
        del database.server.containers["PDB1"]
        found = live.scan(0, 0)
        assert found.logs
        assert not found.source_answers
    finally:
        live.close()
