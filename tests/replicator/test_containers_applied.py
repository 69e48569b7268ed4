"""Two PDBs with equal schemas, tables, object numbers and XIDs into one PostgreSQL, in one run."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from olr_pg.appliance.appliance import run_appliance
from olr_pg.config.reading import load_config
from olr_pg.dictionary.change_history import FILE_NAME
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.errors import Code, OlrPgError
from olr_pg.simulator.sessions.workload import DdlUse
from olr_pg.simulator.truth import ROWID
from tests.replicator.ddl_source import NUMBER, TEXT, DdlSource
from tests.replicator.test_containers import dictionaries, twins
from tests.simulator.table_rows import read_rows
from tests.target_rows import differing_rows
from tests.waiting import kill_when

ROOT: Final = Path(__file__).resolve().parents[2]
CHANGES: Final = "SELECT coalesce(sum(inserted + updated + deleted), 0) >= {} FROM olr_pg.ledger"


def write_config(
    folder: Path, dictionary: list[str], logs: Path, database: str, **apply: Any
) -> Path:
    document = {
        "context": {"data": str(folder / "data")},
        "source": {"kind": "offline", "dictionary": dictionary, "logs": str(logs)},
        "target": {"address": "127.0.0.1:0"},
        "apply": {"connect-string": database, "create-tables": True, **apply},
        "spark": {"master": "local[2,2]"},
    }
    path = folder / "config.json"
    path.write_text(json.dumps(document), "utf-8")
    return path


def run_once(config: Path) -> None:
    assert run_appliance(load_config(config), once=True, apply=True) == 0


def check_both(folder: Path, database: str) -> None:
    """The tables of both are what the simulator says; PDB.OWNER goes into pdb_owner."""
    with psycopg.connect(database) as connection:
        for path, pdb in zip(dictionaries(folder), ("SIMPDB", "OTHERPDB"), strict=True):
            for table in load_snapshot(path).tables:
                if table.owner != "SIM":
                    continue
                rows = read_rows(folder / "final", f"{pdb}.{table.full_name}")
                for row in rows:
                    del row[ROWID]
                schema = f"{pdb}_sim".lower()
                assert differing_rows(connection, schema, table.name.lower(), rows) == []


def kill_at(config: Path, database: str, query: str) -> int:
    """Start the appliance as a process and kill it once the query gives true."""
    command = [sys.executable, "-m", "olr_pg", "run", "--once", "--config", str(config)]
    with (config.parent / "stderr.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
    with psycopg.connect(database, autocommit=True) as connection:
        kill_when(process, connection, query)
    return process.returncode


@pytest.mark.usefixtures("one_session")
def test_both_are_their_truth_although_a_run_is_killed(
    tmp_path: Path, postgres_database: str
) -> None:
    source = tmp_path / "source"
    twins(source, ddl=DdlUse.FOLLOWED)
    config = write_config(
        tmp_path, dictionaries(source), source / "logs", postgres_database,
        tables=["SIM.*"], **{"batch-changes": 20, "batch-ms": 0},
    )  # fmt: skip
    code = kill_at(config, postgres_database, CHANGES.format(20))
    assert code in (0, -9), (tmp_path / "stderr.log").read_text()
    run_once(config)
    check_both(source, postgres_database)
    with psycopg.connect(postgres_database) as connection:
        found = connection.execute("SELECT source_table FROM olr_pg.ledger").fetchall()
    assert {name.partition(".")[0] for (name,) in found} == {"SIMPDB", "OTHERPDB"}


def rows_of(connection: psycopg.Connection[Any], table: str) -> list[dict[str, Any]]:
    cursor = connection.execute(f"SELECT * FROM {table} ORDER BY 1".encode())
    assert cursor.description is not None
    names = [column.name.upper() for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


@pytest.mark.usefixtures("one_session")
def test_ddl_in_one_does_not_disturb_the_other(tmp_path: Path, postgres_database: str) -> None:
    one = DdlSource(tmp_path / "one", con_id=3)
    other = DdlSource(tmp_path / "other", con_id=4, beside=one)
    both = (one, other)
    for source in both:
        for name in ("A", "B", "C"):
            source.create(name, {"ID": NUMBER, "NAME": TEXT})
    assert one.tables["A"].obj == other.tables["A"].obj
    for source in both:
        source.take_snapshot()
    for number in range(3):
        for source in both:
            for name in ("A", "B", "C"):
                source.insert(name, number, f"first {number}")
    one.add_column("A", "EXTRA", NUMBER)
    one.insert("A", 10, "wide", 1)
    other.insert("A", 11, "narrow")
    one.rename_column("B", 1, "TITLE")
    one.insert("B", 12, "renamed")
    other.insert("B", 13, "as ever")
    one.drop("C")
    other.insert("C", 14, "as ever")
    one.create("C", {"ID": NUMBER, "OTHER": NUMBER})
    one.insert("C", 15, 15)
    other.truncate("A")
    other.insert("A", 16, "alone")
    one.finish()
    config = write_config(
        tmp_path,
        [str(source.directory / "dictionary.json") for source in both],
        one.directory / "logs",
        postgres_database,
        tables=["SHOP.A", "SHOP.B", "SHOP.C"],
        **{"schema-mapping": {"PDB2.SHOP": "second"}},
    )
    for _ in range(2):  # the second run begins with what the first one noted of the DDL
        with pytest.raises(OlrPgError) as caught:
            run_once(config)
        assert caught.value.code == Code.TABLES_STOPPED
        with psycopg.connect(postgres_database) as connection:
            assert rows_of(connection, "pdb1_shop.a") == one.rows("A")
            for name in ("A", "B", "C"):
                assert rows_of(connection, f"second.{name}") == other.rows(name)
            assert rows_of(connection, "pdb1_shop.b") == one.rows("B")
            assert [row["ID"] for row in rows_of(connection, "pdb1_shop.c")] == [0, 1, 2]
            stopped = connection.execute(
                "SELECT source_table, code FROM olr_pg.error ORDER BY 1"
            ).fetchall()
        assert stopped == [("PDB1.SHOP.C", Code.TABLE_GONE)]


@pytest.mark.usefixtures("one_session")
def test_a_later_dictionary_of_one_does_not_hide_missing_changes_of_the_other(
    tmp_path: Path, postgres_database: str
) -> None:
    """The dictionaries of offline PDBs can be of different SCNs."""
    one = DdlSource(tmp_path / "one", con_id=3)
    other = DdlSource(tmp_path / "other", con_id=4, beside=one)
    both = (one, other)
    for source in both:
        source.create("A", {"ID": NUMBER, "NAME": TEXT})
    one.take_snapshot()
    one.add_column("A", "EXTRA", NUMBER)
    one.insert("A", 1, "wide", 1)
    other.insert("A", 1, "narrow")
    other.take_snapshot()
    one.threads[0].switch()
    logs = one.directory / "logs"

    config = write_config(
        tmp_path,
        [str(source.directory / "dictionary.json") for source in both],
        logs,
        postgres_database,
        tables=["PDB1.SHOP.A"],
    )
    run_once(config)
    for path in logs.iterdir():
        path.unlink()
    one.insert("A", 2, "wide", 2)
    one.finish()
    record = tmp_path / "data" / FILE_NAME
    whole = record.read_bytes()
    record.unlink()
    with pytest.raises(OlrPgError) as caught:
        run_once(config)
    assert caught.value.code == Code.DICTIONARY_CHANGES_MISSING
    record.write_bytes(whole)
    run_once(config)
    with psycopg.connect(postgres_database) as connection:
        assert rows_of(connection, "pdb1_shop.a") == one.rows("A")


def equal_xids(folder: Path) -> set[str]:
    """XIDs that a transaction of each PDB has, which both are in the truth."""
    lines = (folder / "truth.jsonl").read_text("utf-8").splitlines()
    begun = Counter(line["xid"] for line in map(json.loads, lines) if line["op"] == "begin")
    return {xid for xid, count in begun.items() if count > 1}


@pytest.mark.usefixtures("one_session")
def test_whole_transactions_of_both_are_applied_although_a_run_is_killed(
    tmp_path: Path, postgres_database: str
) -> None:
    source = tmp_path / "source"
    twins(source)
    assert equal_xids(source)
    config = write_config(
        tmp_path, dictionaries(source), source / "logs", postgres_database,
        tables=["SIM.*"], consistency="transaction", **{"batch-changes": 20, "batch-ms": 0},
    )  # fmt: skip
    code = kill_at(config, postgres_database, CHANGES.format(20))
    assert code in (0, -9), (tmp_path / "stderr.log").read_text()
    run_once(config)
    check_both(source, postgres_database)
