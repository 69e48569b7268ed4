"""New tables with rows are loaded by the command, one after the other, while the appliance runs."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from olr_pg.appliance.created_tables import FILE_NAME, CreatedTables
from olr_pg.appliance.loading_new_tables import loading_new_tables
from olr_pg.config.reading import load_config
from olr_pg.decoding.new_tables import Begin
from olr_pg.dictionary.model import Column, Table

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.config.model import Config

PATIENCE_SECONDS = 60
COMMAND = """
import json, os, sys, time
with open(sys.argv[1], "a") as file:
    file.write(json.dumps([*sys.argv[2:], os.environ["SECRET"]]) + "\\n")
if sys.argv[-1] == "SHOP.WAITS":
    time.sleep(600)
if sys.argv[-1] == "SHOP.BAD":
    sys.exit("OLR-07001: no such table")
"""


def config(folder: Path, policy: str = "load", **source: Any) -> Config:
    live = {"kind": "oracle", "user": "u", "password": "p", "server": "127.0.0.1:1/X"}
    apply = {"connect-string": "embedded", "tables": ["SHOP.*"], "ddl": {"new-table": policy}}
    document = {"context": {"data": str(folder)}, "source": source or live, "apply": apply}
    path = folder / "config.json"
    path.write_text(json.dumps(document), "utf-8")
    return load_config(path)


def command(folder: Path) -> list[str]:
    program = folder / "command.py"
    program.write_text(COMMAND, "utf-8")
    return [sys.executable, str(program), str(folder / "called")]


def called(folder: Path, count: int) -> list[list[str]]:
    """The first calls of the command; waits for them."""
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        path = folder / "called"
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        if len(lines) >= count:
            return [json.loads(line) for line in lines]
        assert time.monotonic() < end
        time.sleep(0.01)


def test_each_table_is_loaded_once_and_a_failure_is_told(tmp_path: Path) -> None:
    made = command(tmp_path)
    with (
        capture_logs() as logs,
        loading_new_tables(config(tmp_path), lambda: {"SECRET": "s"}, made) as load,
    ):
        created = CreatedTables(tmp_path / FILE_NAME)
        created.load = load
        table = Table("SHOP", "BAD", 7, 7, (Column("ID", 1, 1, 1, 2, 22),))
        assert created.take(table, Begin(100, has_rows=True))
        assert created.known == {}
        assert load("SHOP.WAITS")
        assert load("SHOP.WAITS")
        calls = called(tmp_path, 2)
    where = ["tables", "add", "--config", str(tmp_path / "config.json"), "--"]
    assert calls == [[*where, "SHOP.BAD", "s"], [*where, "SHOP.WAITS", "s"]]
    told = [(one["log_level"], one["table"]) for one in logs]
    assert told == [("info", "SHOP.BAD"), ("info", "SHOP.WAITS"), ("warning", "SHOP.BAD")]
    assert "OLR-07001" in logs[2]["reason"]


def test_a_target_without_the_policy_is_told_that_it_lacks_the_table(tmp_path: Path) -> None:
    apply = {"connect-string": "host=x", "tables": ["SHOP.*"]}
    targets = [
        {"name": "one", "apply": {**apply, "ddl": {"new-table": "load"}}},
        {"name": "two", "apply": {**apply, "subscription": "two"}},
    ]
    live = {"kind": "oracle", "user": "u", "password": "p", "server": "127.0.0.1:1/X"}
    document = {"context": {"data": str(tmp_path)}, "source": live, "target": targets}
    path = tmp_path / "several.json"
    path.write_text(json.dumps(document), "utf-8")
    with loading_new_tables(load_config(path), lambda: {"SECRET": "s"}, command(tmp_path)) as load:
        assert not load("SHOP.T")
        (call,) = called(tmp_path, 1)
    assert call[-5:] == ["--target", "one", "--", "SHOP.T", "s"]


@pytest.mark.parametrize("policy", ["follow", "ignore"])
def test_other_policies_load_nothing(tmp_path: Path, policy: str) -> None:
    with loading_new_tables(config(tmp_path, policy), dict, command(tmp_path)) as load:
        assert not load("SHOP.T")


def test_an_offline_source_has_nothing_to_load(tmp_path: Path) -> None:
    offline = {"kind": "offline", "dictionary": "d.json", "logs": "logs"}
    with loading_new_tables(config(tmp_path, **offline), dict, command(tmp_path)) as load:
        assert not load("SHOP.T")
