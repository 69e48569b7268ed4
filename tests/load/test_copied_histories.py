"""Rows that another tool copies, in drawn orders of commands; more: ``OLR_PG_SEEDS=50``.

And of several containers.
"""

from __future__ import annotations

import json
import os
from random import Random
from typing import TYPE_CHECKING

import oracledb
import psycopg
import pytest

from olr_pg.appliance.appliance import run_appliance
from olr_pg.cli.migration.load import initial_load
from olr_pg.config.reading import load_config
from olr_pg.load import copy_task
from olr_pg.simulator.database_shape import DatabaseShape
from olr_pg.simulator.fields.redo_format import COMPATIBLE, RedoFormat
from tests.load.copied_histories import LISTED, Bank, history
from tests.proving.served import document_of, served_source

if TYPE_CHECKING:
    from pathlib import Path

SEEDS = int(os.environ.get("OLR_PG_SEEDS", "2"))


@pytest.fixture(autouse=True)
def _commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands have the tests' log, and load without Spark."""
    monkeypatch.setattr(
        "olr_pg.observability.logging_setup.configure_logging", lambda *_, **__: None
    )
    monkeypatch.setattr(copy_task, "HERE_BYTES", 1 << 40)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
def test_at_last_the_target_has_the_rows_of_the_source(
    tmp_path: Path, postgres_database: str, seed: int
) -> None:
    wrong, said = history(seed, tmp_path / "source", postgres_database)
    assert wrong == [], "\n".join(said)


@pytest.mark.parametrize("is_copied", [True, False])
def test_ddl_is_replicated_also_when_its_undo_is_gone_before_the_run(
    tmp_path: Path, postgres_database: str, capsys: pytest.CaptureFixture[str], is_copied: bool
) -> None:
    """With a later dictionary, changes of former segments would be lost without an error."""
    with served_source(tmp_path / "source", 3) as served:
        bank = Bank(served, postgres_database, Random(1), lambda _: None)
        initial_load(bank.config, begin_copy=is_copied, as_json=True)
        if is_copied:
            bank.told(capsys.readouterr().out)
            for name in LISTED:
                bank.read_table(name)
                bank.write_table(name)
        for name in LISTED:
            bank.execute(0, f"UPDATE {name} SET v = 'before' WHERE owner = 0")
        bank.commit_all()
        for statement in (
            "ALTER TABLE k MOVE", "TRUNCATE TABLE u", "ALTER TABLE p ADD (z NUMBER(9))",
            "ALTER TABLE l RENAME COLUMN n TO nn",
        ):  # fmt: skip
            bank.execute(0, statement)
        for name in LISTED:
            bank.execute(1, f"UPDATE {name} SET v = 'after' WHERE owner = 1")
        bank.commit_all()
        bank.switch()
        bank.forget()
        if is_copied:
            initial_load(bank.config, end_copy=True)
        assert run_appliance(load_config(bank.config), once=True, apply=True) == 0
        assert bank.differences() == []


def test_a_transaction_that_is_open_in_another_container_is_not_lost(
    tmp_path: Path, postgres_database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shape = DatabaseShape(RedoFormat(COMPATIBLE["19"]), con_id=3, neighbour=True, twins=True)
    with served_source(tmp_path / "source", 3, shape) as served:
        document = document_of(served.folder)
        first, second = (
            oracledb.connect(user="app", password="olr", dsn=served.dsn) for _ in range(2)
        )
        for one, name in zip((first, second), document["source"]["containers"], strict=True):
            execute = one.cursor().execute
            execute(f'ALTER SESSION SET CONTAINER = "{name}"')
            execute("CREATE TABLE k (id NUMBER(9) PRIMARY KEY, v VARCHAR2(9))")
            execute(f"INSERT INTO k VALUES (1, '{name}')")
            one.commit()
        served.server.database.switch_logs()
        document["context"] = {"data": str(tmp_path / "data")}
        document["status"] = {"enabled": False}
        document["apply"] = {"connect-string": postgres_database, "create-tables": True}
        document["apply"]["tables"] = ["APP.K"]
        config = served.folder / "config.json"
        config.write_text(json.dumps(document), "utf-8")
        second.cursor().execute("INSERT INTO k VALUES (2, 'open')")
        first.cursor().execute("UPDATE k SET v = 'later'")
        first.commit()
        initial_load(config, begin_copy=True, as_json=True)
        begun = json.loads(capsys.readouterr().out.splitlines()[-1])["tables"]
        assert len({one["scn"] for one in begun}) == 1
        second.commit()
        with psycopg.connect(postgres_database) as target:
            for one, there in zip((first, second), begun, strict=True):
                for row in one.cursor().execute(f"SELECT * FROM k AS OF SCN {there['scn']}"):
                    target.execute(f"INSERT INTO {there['target']} VALUES (%s, %s)".encode(), row)
        initial_load(config, end_copy=True)
        served.server.database.switch_logs()
        run_appliance(load_config(config), once=True, apply=True)
        with psycopg.connect(postgres_database) as target:
            for one, there in zip((first, second), begun, strict=True):
                query = f"SELECT id::int, v FROM {there['target']} ORDER BY 1"
                rows = one.cursor().execute("SELECT id, v FROM k ORDER BY id").fetchall()
                assert target.execute(query.encode()).fetchall() == rows
        first.close()
        second.close()
