"""Tables that are made while redo is read; at work: tests/simulation, seeds that make tables.

New tables with rows are loaded by the command, one after the other, while the appliance runs.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import Mock

import pytest
from structlog.testing import capture_logs

from olr_pg.appliance.created_tables import (
    FILE_NAME,
    CreatedOfTarget,
    CreatedTables,
    GrownDatabase,
    loading_new_tables,
)
from olr_pg.applier.session.handover import Created
from olr_pg.config.reading import load_config
from olr_pg.decoding.filters import NO_FILTERS
from olr_pg.decoding.new_tables import Begin
from olr_pg.dictionary.model import Column, Database, Snapshot, Table
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.config.model import Config

OLD = Table("APP", "OLD", 7, 7, (Column("ID", 1, 1, 1, 2, 22),))
NEW = replace(OLD, name="NEW", obj=9, dataobj=9)
LATER = replace(NEW, obj=11, columns=(*OLD.columns, Column("C", 2, 2, 2, 2, 22)))
PATTERN = "SELECT OWNER, TABLE_NAME FROM ALL_TABLES WHERE OWNER = 'APP'"


class Target:
    """What a running target is to the notes."""

    def __init__(self, begun_scn: int) -> None:
        self.delivery = self
        self.begun_scn = begun_scn
        self.config = begun_scn
        self.renewed = list[int]()

    def renew(self, config: int) -> None:
        self.renewed.append(config)


class Source:
    """A database, and what is followed of its dictionary."""

    is_online = True
    is_copying = False
    known_scn = 100

    def __init__(self) -> None:
        self.snapshot = Snapshot(5, Database("DB"), (OLD,))
        self.followed = 0

    def resolve(self, _sql: str, _is_abandoned: Any = None) -> tuple[Snapshot, tuple[Table, ...]]:
        return self.snapshot, self.snapshot.tables

    def follow(self, snapshot: Snapshot) -> Any:
        assert snapshot is self.snapshot
        self.followed += 1
        return self

    def created(self) -> list[Table]:
        return [NEW, replace(NEW, name="OTHER", obj=10)]

    def as_of(self, key: int, scn: int) -> Table | None:
        return LATER if (key, scn) == (NEW.object_key, 100) else None


def grown(source: Source, created: CreatedTables) -> GrownDatabase:
    return GrownDatabase(cast("Any", source), NO_FILTERS, created, source.follow)


def test_a_table_is_noted_over_restarts_and_every_target_begins_anew(tmp_path: Path) -> None:
    created, targets = CreatedTables(tmp_path / FILE_NAME), [Target(70), Target(60)]
    created.targets = cast("Any", targets)
    assert created.take(NEW, Begin(100))
    assert created.take(NEW, Begin(100))  # the redo is read again
    assert [one.renewed for one in targets] == [[70], [60]]
    again = CreatedTables(tmp_path / FILE_NAME)
    assert again.known == {"APP.NEW": Created(100, 60, NEW.object_key)}


def test_a_table_is_taken_later_only_if_all_logs_since_are_there(tmp_path: Path) -> None:
    created = CreatedTables(tmp_path / FILE_NAME)
    created.targets = cast("Any", [Target(150)])  # the run has read more than its begin
    checked = list[int]()
    created.check_logs = checked.append
    assert created.take(NEW, Begin(100))
    assert checked == [100]
    assert created.known == {"APP.NEW": Created(100, 0, NEW.object_key, is_just_read=True)}
    missing = OlrPgError(Code.LOG_MISSING, "the oldest log begins at SCN 120")
    created.check_logs = Mock(side_effect=missing)
    assert not created.take(replace(NEW, name="OTHER"), Begin(110))
    assert created.known.keys() == {"APP.NEW"}


@pytest.mark.parametrize(
    ("begun", "is_past", "start_scn"),
    [((70, 0), False, 70), ((0, 0), False, 0), ((70, 110), False, 70), ((70, 90), True, 0)],
)
def test_a_target_without_a_session_does_not_let_the_others_read_all_redo_again(
    tmp_path: Path, begun: tuple[int, ...], is_past: bool, start_scn: int
) -> None:
    created = CreatedTables(tmp_path / FILE_NAME)
    created.targets = cast("Any", [Target(scn) for scn in begun])
    created.take(NEW, Begin(100, is_past=is_past))
    assert created.known["APP.NEW"].start_scn == start_scn


def test_logs_are_checked_while_another_target_reads_its_list(tmp_path: Path) -> None:
    """A target holds the lock of the logs while it reads its list, and asks for the new tables."""
    created, has_read = CreatedTables(tmp_path / FILE_NAME), threading.Event()

    def read() -> None:
        assert created.known == {}
        has_read.set()

    def check_logs(_: int) -> None:
        threading.Thread(target=read, daemon=True).start()
        assert has_read.wait(PATIENCE_SECONDS)

    created.check_logs = check_logs
    assert created.take(NEW, Begin(100))


def test_a_new_name_of_a_table_begins_before_the_rename(tmp_path: Path) -> None:
    created = CreatedTables(tmp_path / FILE_NAME)
    assert created.take(NEW, Begin(100, is_renamed=True))
    again = CreatedTables(tmp_path / FILE_NAME)
    assert again.known == {"APP.NEW": Created(99, 0, NEW.object_key, is_renamed=True)}


def test_a_second_table_of_the_same_name_is_not_taken(tmp_path: Path) -> None:
    created = CreatedTables(tmp_path / FILE_NAME)
    assert created.take(NEW, Begin(100))
    assert not created.take(replace(NEW, obj=11), Begin(200))


def test_the_dictionary_grows_by_what_was_noted(tmp_path: Path) -> None:
    source, created = Source(), CreatedTables(tmp_path / FILE_NAME)
    database = grown(source, created)
    assert database.resolve(PATTERN) == (source.snapshot, (OLD,))
    assert source.followed == 0
    created.take(NEW, Begin(100))
    snapshot, tables = database.resolve(PATTERN)
    assert tables == (OLD, NEW)
    assert snapshot.tables == (OLD, NEW)
    assert database.resolve(PATTERN)[0] is snapshot  # a run has one dictionary, by its identity
    assert database.resolve("SELECT 'APP', 'OLD' FROM DUAL")[1] == (OLD,)
    assert database.is_online


def test_a_table_is_just_read_until_an_applier_has_begun_with_it(tmp_path: Path) -> None:
    """An applier may fail before it has prepared the target, and a later one may lack the table."""
    noted = CreatedTables(tmp_path / FILE_NAME)
    noted.take(NEW, Begin(100))
    created = CreatedOfTarget(grown(Source(), noted))
    for names, is_begun, is_just_read in (
        ({"APP.OLD", "APP.NEW"}, False, True),
        ({"APP.OLD"}, True, True),
        ({"APP.OLD", "APP.NEW"}, True, True),
        ({"APP.OLD"}, False, False),
        ({"APP.OLD", "APP.NEW"}, True, False),
    ):
        assert created.created()["APP.NEW"].is_just_read == is_just_read
        created.used_by(Mock(is_begun=is_begun), names)
    assert CreatedOfTarget(None).created() == {}


@pytest.mark.parametrize(("begin", "made"), [(Begin(100), LATER), (Begin(90), NEW)])
def test_a_target_is_made_as_the_table_was_where_its_history_begins(
    tmp_path: Path, begin: Begin, made: Table
) -> None:
    """Its name was that of another table before."""
    database = grown(Source(), CreatedTables(tmp_path / FILE_NAME))
    assert database.as_begun([OLD]) == (OLD,)
    database._created.take(NEW, begin)
    tables = database.resolve(PATTERN)[1]
    assert tables == (OLD, NEW)
    assert database.as_begun(tables) == (OLD, made)


def test_a_newer_dictionary_has_the_table_itself(tmp_path: Path) -> None:
    source, created = Source(), CreatedTables(tmp_path / FILE_NAME)
    created.take(NEW, Begin(100))
    source.snapshot = replace(source.snapshot, scn=150, tables=(OLD, NEW))
    assert grown(source, created).resolve(PATTERN) == (source.snapshot, (OLD, NEW))


def test_notes_that_cannot_be_read_are_an_error(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text('{"APP.NEW": 5}')
    with pytest.raises(OlrPgError, match="created-tables"):
        CreatedTables(tmp_path / FILE_NAME)


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
