"""Two PDBs: what commits in PostgreSQL goes back to the PDB of its table."""

from __future__ import annotations

import json
import threading
import time
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import oracledb
import psycopg
import pytest

from olr_pg.appliance.appliance import run_appliance
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.cli.migration.cutover import cutover
from olr_pg.cli.migration.fallback import (
    begin_command,
    cutover_command,
    end_command,
    resume_command,
    run_command,
    status_command,
)
from olr_pg.config.reading import load_config
from olr_pg.errors import Code, OlrPgError
from olr_pg.fallback.fallback_run import end, run_all
from olr_pg.fallback.preparation import wait_until_free
from olr_pg.fallback.way_back_checks import check_way_back
from olr_pg.load.cutover.cut_back import open_ways_back
from olr_pg.simulator.database_shape import demo_shape
from tests.fallback.made_way import way_document, write_document
from tests.proving.served import served_source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from olr_pg.config.model import Config
    from tests.proving.served import Served

PDBS: Final = ("SIMPDB", "OTHERPDB")
OF_OTHER: Final = "OTHERPDB.APP.SOLD"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    shape = replace(demo_shape(), neighbour=True, twins=True)
    with served_source(tmp_path_factory.mktemp("pdbs") / "source", shape=shape) as found:
        yield found


def in_pdb(served: Served, pdb: str, *statements: str) -> list[tuple[Any, ...]]:
    """Carry statements out in a PDB; return the rows of the last one."""
    with (
        closing(oracledb.connect(user="app", password="olr", dsn=served.dsn)) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(f'ALTER SESSION SET CONTAINER = "{pdb}"')
        for one in statements:
            cursor.execute(one)
        rows = [tuple(row) for row in cursor] if cursor.description else []
        connection.commit()
        return rows


def sold(served: Served) -> dict[str, list[tuple[Any, ...]]]:
    return {pdb: in_pdb(served, pdb, "SELECT id, name FROM sold ORDER BY id") for pdb in PDBS}


def write(target: str, *statements: str) -> None:
    """Carry statements out in PostgreSQL, in one transaction over both PDBs' tables."""
    with psycopg.connect(target) as connection:
        for one in statements:
            for pdb in PDBS:
                text = one.format(t=f"{pdb.lower()}_app.sold", pdb=pdb)
                connection.execute(text.encode())


@pytest.fixture
def config(served: Served, logical_database: str, tmp_path: Path) -> Path:
    for number, pdb in enumerate(PDBS):
        in_pdb(
            served,
            pdb,
            "CREATE TABLE sold (id NUMBER(9) PRIMARY KEY, name VARCHAR2(20))",
            f"CREATE SEQUENCE sold_seq START WITH {5 + number}",
        )
    scn = served.server.database.current_scn()
    for pdb in PDBS:
        in_pdb(served, pdb, f"INSERT INTO sold VALUES (1, 'one of {pdb}')")
    more = {"create-tables": True, "start-scn": scn}
    document = way_document(served, tmp_path / "data", logical_database, "sold", **more)
    assert document["source"]["containers"] == list(PDBS)
    return write_document(document, tmp_path / "olr-pg.json")


def test_each_container_has_a_way_back_of_its_own(
    served: Served, logical_database: str, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loaded = load_config(config)
    served.server.database.switch_logs()
    with connect(logical_database, replica=None) as connection:
        ensure_ledger(connection)  # as after a load or a run
    cutover(config, as_json=True, unverified=True, accept=["*"], fallback=True)
    done = json.loads(capsys.readouterr().out.splitlines()[-1])
    begun = done["steps"][-2]["detail"]["containers"]
    slots = [f"olr_pg_fallback_olr_pg_{pdb.lower()}" for pdb in PDBS]
    assert [begun[pdb]["slot"] for pdb in PDBS] == slots
    begin_command(config, as_json=True)  # again changes nothing
    assert json.loads(capsys.readouterr().out)["containers"] == begun

    write(logical_database, "INSERT INTO {t} VALUES (2, 'two of {pdb}')")
    run_command(config, once=True)
    assert sold(served) == {pdb: [(1, f"one of {pdb}"), (2, f"two of {pdb}")] for pdb in PDBS}

    goes_on_without_a_closed_one(served, logical_database, loaded)
    stops_a_table_of_one(served, logical_database, config)

    status_command(config, as_json=True)
    status = json.loads(capsys.readouterr().out.splitlines()[-1])
    transactions = [status["containers"][pdb]["ledger"]["transactions"] for pdb in PDBS]
    assert status["ledger"]["transactions"] == sum(transactions)

    # Each PDB's sequence goes on behind the one that it was paired with.
    with psycopg.connect(logical_database) as connection:
        connection.execute("SELECT setval('simpdb_app.sold_seq', 40)")
        connection.execute("SELECT setval('otherpdb_app.sold_seq', 70)")
    cutover_command(config, unverified=True)
    following = [in_pdb(served, pdb, "SELECT sold_seq.NEXTVAL FROM DUAL") for pdb in PDBS]
    assert following == [[(41,)], [(71,)]]

    # The forward way drops what came back, in both: an insert would be a conflict.
    rows = sold(served)
    run_appliance(loaded, once=True, apply=True)
    with psycopg.connect(logical_database) as connection:
        counts = connection.execute(
            "SELECT inserted, updated, deleted, conflicts, stopped FROM olr_pg.ledger"
        ).fetchall()
        assert counts == [(1, 0, 0, 0, False)] * 2
    assert sold(served) == rows

    ends_with_the_first_that_cannot_continue(logical_database, loaded)
    end_command(config)
    with psycopg.connect(logical_database) as connection:
        left = connection.execute(
            "SELECT FROM pg_replication_slots WHERE slot_name = ANY(%s)", [slots]
        )
        assert left.fetchall() == []
        assert connection.execute("SELECT FROM pg_publication").fetchall() == []


def goes_on_without_a_closed_one(served: Served, target: str, loaded: Config) -> None:
    """A PDB that is closed gets its changes once it is open; the other one does not wait."""
    server = served.server.server
    with open_ways_back(loaded) as ways:
        closed = server.containers.pop("OTHERPDB")
        write(target, "UPDATE {t} SET name = 'changed' WHERE id = 1")
        running = threading.Thread(target=run_all, args=(ways,), kwargs={"once": True})
        running.start()
        try:
            while name_of_first(served, "SIMPDB") != "changed" and running.is_alive():
                time.sleep(0.05)
            assert running.is_alive()
        finally:
            server.containers["OTHERPDB"] = closed
            running.join(60)
    assert [name_of_first(served, pdb) for pdb in PDBS] == ["changed"] * 2


def name_of_first(served: Served, pdb: str) -> str:
    ((name,),) = in_pdb(served, pdb, "SELECT name FROM sold WHERE id = 1")
    return str(name)


def stops_a_table_of_one(served: Served, target: str, config: Path) -> None:
    """A conflict in one PDB stops the table there alone, and says where."""
    in_pdb(served, "OTHERPDB", "INSERT INTO sold VALUES (3, 'in the way')")
    write(target, "INSERT INTO {t} VALUES (3, 'three')")
    with pytest.raises(OlrPgError) as stopped:
        run_command(config, once=True)
    assert stopped.value.code == Code.FALLBACK_TABLES_STOPPED
    assert stopped.value.where["container"] == "OTHERPDB"
    assert OF_OTHER in stopped.value.detail
    names = {pdb: rows[-1] for pdb, rows in sold(served).items()}
    assert names == {"SIMPDB": (3, "three"), "OTHERPDB": (3, "in the way")}
    in_pdb(served, "OTHERPDB", "DELETE FROM sold WHERE id = 3")
    resume_command(config, table=[OF_OTHER])
    run_command(config, once=True)
    assert sold(served)["OTHERPDB"][-1] == (3, "three")


def ends_with_the_first_that_cannot_continue(target: str, loaded: Config) -> None:
    """A service does not go on with one PDB while the way back into another one is lost."""
    with open_ways_back(loaded) as ways:
        end(ways[1])
        with pytest.raises(OlrPgError) as missing:
            run_all(ways)
        assert missing.value.code == Code.FALLBACK_NOT_BEGUN
        assert missing.value.where["container"] == ways[1].container
        with psycopg.connect(target, autocommit=True) as connection:
            wait_until_free(connection, ways[0].slot)
            assert loaded.fallback is not None
            assert check_way_back(connection, ways, loaded.fallback) == []
