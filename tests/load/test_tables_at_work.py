"""Tables that are added and removed while the others go on: identical at the end."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from typer.testing import CliRunner

from olr_pg.cli.main import app
from olr_pg.cli.migration import load
from olr_pg.load import copy_task
from olr_pg.observability import logging_setup
from olr_pg.simulator.database_shape import DatabaseShape
from olr_pg.simulator.fields.redo_format import COMPATIBLE, RedoFormat
from olr_pg.simulator.writer.instance import Pace
from olr_pg.spark import session
from tests.load.conftest import Project
from tests.load.copied_histories import Bank
from tests.load.table_data import simulated
from tests.proving.served import served_source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KILLED = """
import os, signal
from olr_pg.cli import tables
tables._take = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
tables.add({config!r}, ["APP.U"], load=False)
"""
TOKEN = "a-token-of-this-test"
ROOT = Path(__file__).resolve().parents[2]


class Work:
    """An appliance at work, and the commands that are given meanwhile."""

    def __init__(self, config: Path, database: str) -> None:
        self.config = config
        self._database = database

    def command(self, *arguments: str) -> str:
        given = [*arguments, "--config", str(self.config)]
        result = CliRunner().invoke(app, given, env={"CONTROL_TOKEN": TOKEN})
        assert result.exit_code == 0, (result.output, result.exception)
        return result.output

    def status(self) -> dict[str, Any]:
        announced = json.loads((self.config.parent / "data" / "status.json").read_text())
        with urllib.request.urlopen(announced["url"] + "status.json", timeout=60) as answer:
            record: dict[str, Any] = json.load(answer)
            return record

    def post(self, action: str, body: dict[str, Any]) -> dict[str, Any]:
        announced = json.loads((self.config.parent / "data" / "status.json").read_text())
        request = urllib.request.Request(
            f"{announced['url']}control/{action}",
            json.dumps(body).encode(),
            {"Authorization": f"Bearer {TOKEN}"},
        )
        with urllib.request.urlopen(request, timeout=240) as answer:
            job: dict[str, Any] = json.load(answer)
        deadline = time.monotonic() + 240
        while job["state"] == "at work":
            assert time.monotonic() < deadline
            request = urllib.request.Request(
                f"{announced['url']}control/jobs/{job['job']}",
                headers={"Authorization": f"Bearer {TOKEN}"},
            )
            with urllib.request.urlopen(request, timeout=60) as answer:
                job = json.load(answer)
        assert job["state"] == "done", job
        return job

    def await_that(self, condition: Callable[[dict[str, Any]], Any]) -> None:
        deadline = time.monotonic() + 240
        while True:
            try:
                if condition(self.status()):
                    return
            except (OSError, json.JSONDecodeError):
                pass  # it is not there yet, or not whole
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self._database, autocommit=True) as connection:
            return connection.execute(query.encode()).fetchall()


@contextmanager
def at_work(config: Path, database: str) -> Iterator[Work]:
    command = [sys.executable, "-m", "olr_pg", "run", "--config", str(config)]
    with (config.parent / "stderr.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, stderr=log)
    try:
        yield Work(config, database)
        process.terminate()
        code = process.wait(60)
        assert code == 143, (config.parent / "stderr.log").read_text()
    finally:
        process.kill()
        process.wait()


def with_control(config: Path) -> Path:
    """Let the appliance take commands over HTTP, with a token of the environment."""
    document = json.loads(config.read_text())
    tokens = {"tester": "${CONTROL_TOKEN}"}
    document["status"] = {"address": "127.0.0.1:0", "control": {"tokens": tokens}}
    config.write_text(json.dumps(document))
    return config


def is_caught_up(record: dict[str, Any]) -> bool:
    return bool(record["state"]["name"] == "CAUGHT_UP")


@pytest.mark.timeout(600)
def test_one_is_added_and_one_removed_while_the_others_go_on(
    tmp_path: Path,
    postgres_database: str,
    one_session: Callable[[], SparkSession],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(load, "spark_session_of", lambda *_: one_session())
    monkeypatch.setattr(session, "stop_session", lambda: None)
    shape = DatabaseShape(RedoFormat(COMPATIBLE["19"]), con_id=3, pace=Pace(log_blocks=100))
    source = simulated(4, tmp_path / "source", 150_000, shape)
    project = Project(tmp_path, source, postgres_database, one_session)
    *_, removed, added = names = list(project.names)
    project.names = names[:-1]
    project.tables = source.write_tables(tmp_path / "tables", source.scn(0.4))
    logs = sorted((tmp_path / "source" / "logs").iterdir())
    later = [(log, tmp_path / log.name) for log in logs[len(logs) // 2 :]]
    for log, away in later:
        log.rename(away)
    monkeypatch.setenv("CONTROL_TOKEN", TOKEN)
    with at_work(with_control(project.write()), postgres_database) as work:
        work.await_that(is_caught_up)
        assert {table["name"] for table in work.status()["tables"]} == set(names[:-1])
        assert f"now replicated: {added}" in work.command("tables", "add", added.lower())
        assert {table["name"] for table in work.status()["tables"]} == set(names)
        work.command("tables", "pause", names[0])
        for log, away in later[:-1]:
            away.rename(log)
        work.await_that(lambda r: any(t["paused"] and t["held_scn"] for t in r["tables"]))
        assert "continues" in work.post("resume", {"tables": [names[0]]})["output"]
        work.await_that(is_caught_up)
        rows = work.ask(f"SELECT count(*) FROM {removed}")
        work.command("tables", "remove", removed)
        later[-1][1].rename(later[-1][0])
        work.await_that(lambda r: r["source"]["logs"] and is_caught_up(r))
        last = source.transactions[-1].commit_scn
        work.await_that(lambda r: r["source"]["decoded_scn"] > last and is_caught_up(r))
        assert work.ask(f"SELECT count(*) FROM {removed}") == rows  # it stays as it is
        assert work.ask("SELECT source_table FROM olr_pg.ledger ORDER BY 1") == [
            (name,) for name in sorted({*names} - {removed})
        ]
        said = (tmp_path / "stderr.log").read_text()
        assert "tables_of" in said
        assert "by=tester" in said
        assert TOKEN not in said
    project.names = [name for name in names if name != removed]
    project.tables = source.write_tables(tmp_path / "final", last)
    assert all(one.identical for one in project.verify())
    # A restart has the list, too.
    assert project.config().apply is not None
    work.command("config", "check")


@pytest.mark.timeout(300)
def test_a_table_whose_addition_was_killed_is_added_without_a_load(
    tmp_path: Path, postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only changes after the second command are wanted, although the first one has recorded an
    earlier position.
    """
    monkeypatch.setattr(copy_task, "HERE_BYTES", 1 << 40)
    monkeypatch.setattr(logging_setup, "configure_logging", lambda *_, **__: None)
    with served_source(tmp_path / "source", 3) as served:
        bank = Bank(served, postgres_database, Random(1), lambda _: None)
        document = json.loads(bank.config.read_text())
        document["status"] = {"address": "127.0.0.1:0"}
        document["apply"]["tables"] = ["APP.K"]
        bank.config.write_text(json.dumps(document))
        load.initial_load(bank.config)
        with psycopg.connect(postgres_database, autocommit=True) as connection:
            connection.execute("CREATE TABLE app.u (id numeric, owner numeric, v text, n numeric)")
        add = [sys.executable, "-c", KILLED.format(config=str(bank.config))]
        with at_work(bank.config, postgres_database) as work:
            work.await_that(is_caught_up)
            assert subprocess.run(add, cwd=ROOT, check=False).returncode == -9
            assert work.ask("SELECT 1 FROM olr_pg.ledger WHERE source_table = 'APP.U'") == [(1,)]
            for name in ("U", "K"):
                bank.insert(1, name)
            bank.commit_all()
            bank.switch()
            rows = bank.sessions[0].cursor().execute("SELECT * FROM u").fetchall()
            with psycopg.connect(postgres_database, autocommit=True) as connection:
                for row in rows:
                    connection.execute("INSERT INTO app.u VALUES (%s, %s, %s, %s)", row)
            assert "now replicated: APP.U" in work.command("tables", "add", "APP.U", "--no-load")
            bank.insert(2, "U")
            bank.commit_all()
            bank.switch()
            wanted = [(len(rows) + 1,)]
            work.await_that(lambda _: work.ask("SELECT count(*) FROM app.u") == wanted)
            work.await_that(is_caught_up)
        bank.listed = {"K", "U"}
        assert bank.differences() == []
