"""Dictionaries that loads store, because Oracle loses the undo before a run begins."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from olr_pg.appliance.appliance import run_appliance
from olr_pg.cli.migration.load import initial_load
from olr_pg.cli.tables import add
from olr_pg.config.reading import load_config
from olr_pg.errors import Code, OlrPgError
from olr_pg.load import copy_task
from tests.advice import followed
from tests.load.copied_histories import ADDED, LISTED, Bank
from tests.proving.served import served_source

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

X = f"APP.{ADDED}"


@pytest.fixture(autouse=True)
def _commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands have the tests' log, and load without Spark."""
    monkeypatch.setattr(
        "olr_pg.observability.logging_setup.configure_logging", lambda *_, **__: None
    )
    monkeypatch.setattr(copy_task, "HERE_BYTES", 1 << 40)


@pytest.fixture
def bank(tmp_path: Path, postgres_database: str) -> Iterator[Bank]:
    with served_source(tmp_path / "source", 3) as served:
        yield Bank(served, postgres_database, Random(1), lambda _: None)


def forget(bank: Bank) -> None:
    """Oracle has no undo up to now any more."""
    state = bank.served.server.server.state
    state.catalogue.undo_scn = state.scn


def run(bank: Bank) -> None:
    assert run_appliance(load_config(bank.config), once=True, apply=True) == 0


def list_tables(bank: Bank, names: Sequence[str]) -> None:
    document = json.loads(bank.config.read_text("utf-8"))
    document["apply"]["tables"] = [f"APP.{name}" for name in names]
    bank.config.write_text(json.dumps(document), "utf-8")
    bank.listed = set(names)


def begin(bank: Bank, capsys: pytest.CaptureFixture[str], names: Sequence[str]) -> None:
    """Begin a copy of listed tables, and copy their rows."""
    capsys.readouterr()
    initial_load(bank.config, table=[f"APP.{one}" for one in names], begin_copy=True, as_json=True)
    bank.told(capsys.readouterr().out)
    copy(bank, names)


def begin_added(bank: Bank, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    add(bank.config, [X], begin_copy=True)
    bank.copies[ADDED].scn = int(capsys.readouterr().out.split("as of SCN ")[1].split(":")[0])
    copy(bank, [ADDED])


def copy(bank: Bank, names: Sequence[str]) -> None:
    for name in names:
        bank.read_table(name)
        bank.write_table(name)


def change(bank: Bank, names: Sequence[str]) -> None:
    """Change rows before and after DDL that gives tables other segments: with a later dictionary,
    the first changes would be lost without an error.
    """
    for step, ddl in enumerate(("ALTER TABLE k MOVE", "TRUNCATE TABLE u", "ALTER TABLE x MOVE")):
        for name in names:
            bank.insert(step, name)
            bank.execute(step, f"UPDATE {name} SET v = 'step {step}' WHERE owner = {step}")
        bank.commit_all()
        bank.execute(0, ddl)
    bank.switch()


@pytest.mark.parametrize("is_configured", [True, False])
def test_a_table_that_is_added_later_is_in_the_stored_dictionary_too(
    bank: Bank, capsys: pytest.CaptureFixture[str], is_configured: bool
) -> None:
    begin(bank, capsys, LISTED)
    change(bank, (*LISTED, ADDED))
    if is_configured:
        list_tables(bank, (*LISTED, ADDED))
        begin(bank, capsys, [ADDED])
    else:
        begin_added(bank, capsys)
    change(bank, (*LISTED, ADDED))
    forget(bank)
    initial_load(bank.config, end_copy=True)
    if not is_configured:
        add(bank.config, [X], end_copy=True)
        bank.listed.add(ADDED)
    run(bank)
    assert bank.differences() == []


def test_a_configured_table_that_the_stored_dictionary_lacks_waits_for_the_others(
    bank: Bank, capsys: pytest.CaptureFixture[str]
) -> None:
    begin(bank, capsys, LISTED)
    change(bank, (*LISTED, ADDED))
    forget(bank)
    list_tables(bank, (*LISTED, ADDED))
    begin(bank, capsys, [ADDED])
    change(bank, (*LISTED, ADDED))
    forget(bank)
    initial_load(bank.config, end_copy=True)
    for _ in range(2):
        with pytest.raises(OlrPgError, match=f"lacks {X}") as caught:
            run(bank)
        words = f"remove {X} from `apply.tables`, start `olr-pg run`"
        followed(
            caught.value, Code.DICTIONARY_LOST, words, "add the tables to `apply.tables` again"
        )
    list_tables(bank, LISTED)
    run(bank)
    assert bank.differences() == []
    list_tables(bank, (*LISTED, ADDED))
    run(bank)
    assert bank.differences() == []


@pytest.mark.parametrize("how", ["copied", "loaded", "not loaded"])
def test_a_table_cannot_be_added_while_the_stored_dictionary_of_another_load_lacks_it(
    bank: Bank, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    begin(bank, capsys, LISTED)
    change(bank, (*LISTED, ADDED))
    forget(bank)
    ways: dict[str, dict[str, Any]] = {
        "copied": {"end_copy": True}, "loaded": {}, "not loaded": {"load": False}
    }  # fmt: skip
    if how == "copied":
        begin_added(bank, capsys)
        change(bank, (*LISTED, ADDED))
        forget(bank)
    with pytest.raises(OlrPgError, match=f"the dictionary of {X}") as caught:
        add(bank.config, [X], **ways[how])
    assert caught.value.code == Code.TABLES_NOT_CHANGEABLE
    assert "complete the load or the copy of APP." in caught.value.action
    initial_load(bank.config, end_copy=True)
    run(bank)
    assert bank.differences() == []
    if how == "not loaded":
        bank.served.execute(f"DELETE FROM {ADDED}")
        with psycopg.connect(bank.target, autocommit=True) as connection:
            columns = "id numeric PRIMARY KEY, owner numeric, v text, n numeric"
            connection.execute(f"CREATE TABLE app.x ({columns})".encode())
    add(bank.config, [X], **ways[how])
    bank.listed.add(ADDED)
    change(bank, (*LISTED, ADDED))
    run(bank)
    assert bank.differences() == []


def test_a_table_cannot_be_added_while_replication_is_behind_the_undo(bank: Bank) -> None:
    """With a later dictionary, the tables that are replicated already would lose changes."""
    initial_load(bank.config)
    run(bank)
    change(bank, LISTED)
    run(bank)
    change(bank, LISTED)
    forget(bank)
    with pytest.raises(OlrPgError, match="replication is at SCN") as caught:
        add(bank.config, [X])
    assert caught.value.code == Code.TABLES_NOT_CHANGEABLE
    list_tables(bank, (*LISTED, ADDED))  # past the command
    initial_load(bank.config, table=[X])
    with pytest.raises(OlrPgError, match=f"lacks {X}") as caught:
        run(bank)
    assert caught.value.code == Code.DICTIONARY_LOST
    list_tables(bank, LISTED)
    run(bank)
    assert bank.differences() == []
    change(bank, (*LISTED, ADDED))
    list_tables(bank, (*LISTED, ADDED))
    run(bank)
    assert bank.differences() == []


def test_a_load_behind_an_old_transaction_needs_no_undo_of_its_begin(bank: Bank) -> None:
    bank.insert(0, "K")  # open over the load
    bank.insert(1, "U")
    bank.sessions[1].commit()
    bank.execute(1, "ALTER TABLE u MOVE")
    forget(bank)
    initial_load(bank.config)
    bank.commit_all()
    change(bank, LISTED)
    forget(bank)
    run(bank)
    assert bank.differences() == []


def test_the_dictionary_of_a_load_is_not_where_it_was_stored(bank: Bank) -> None:
    initial_load(bank.config)
    change(bank, LISTED)
    forget(bank)
    stored = list((bank.served.folder / "data").glob("dictionary-*.json"))
    assert len(stored) == 1
    content = stored[0].read_bytes()
    stored[0].unlink()
    with pytest.raises(OlrPgError) as caught:
        run(bank)
    assert caught.value.code == Code.DICTIONARY_LOST
    assert "dictionary-SCN.json" in caught.value.action
    stored[0].write_bytes(content)
    run(bank)
    assert bank.differences() == []


def test_rows_that_were_copied_without_a_begin(bank: Bank) -> None:
    """The operator answers for it that there was no DDL, as long as this affects no other table."""
    database = bank.served.server.database
    initial_load(bank.config, begin_copy=True, table=["APP.P"])  # creates the target tables
    initial_load(bank.config, begin_copy=True)
    with psycopg.connect(bank.target, autocommit=True) as connection:
        connection.execute("TRUNCATE olr_pg.load")
    for path in (bank.served.folder / "data").glob("dictionary-*"):
        path.unlink()
    scn = database.current_scn()
    for name in LISTED:
        bank.copies[name].scn = scn
    copy(bank, LISTED)
    change(bank, LISTED[2:])
    forget(bank)
    initial_load(bank.config, table=["APP.K", "APP.P"], end_copy=True, scn=scn, since=scn)
    others = [f"APP.{name}" for name in LISTED]
    with pytest.raises(OlrPgError) as caught:
        initial_load(bank.config, table=others, end_copy=True, scn=scn, since=scn - 1)
    assert caught.value.code == Code.COPY_NOT_USABLE
    initial_load(bank.config, end_copy=True, scn=scn, since=scn)
    run(bank)
    list_tables(bank, [name for name in LISTED if name != "U"])  # it was truncated: DDL
    assert bank.differences() == []


def stored_scns(bank: Bank) -> set[int]:
    names = (path.name for path in (bank.served.folder / "data").glob("dictionary-*.json"))
    return {int(name.split("-")[1].split(".")[0]) for name in names if name.split("-")[1][0] != "c"}


@pytest.mark.parametrize("is_copied", [True, False])
def test_a_kill_leaves_no_load_without_its_dictionary(
    bank: Bank, is_copied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dictionary is stored before the statement that records the load."""
    stored: list[set[int]] = []
    original = psycopg.Connection.execute

    def execute(self: Any, query: Any, *arguments: Any, **options: Any) -> Any:
        if "INSERT INTO olr_pg.load " in str(query):
            stored.append(stored_scns(bank))
        return original(self, query, *arguments, **options)

    monkeypatch.setattr(psycopg.Connection, "execute", execute)
    initial_load(bank.config, begin_copy=is_copied)
    with psycopg.connect(bank.target) as connection:
        rows = connection.execute("SELECT start_scn FROM olr_pg.load").fetchall()
    assert rows != []
    assert stored == [{scn for (scn,) in rows}] * len(rows)


def to_two_targets(bank: Bank, *lists: Sequence[str]) -> None:
    """Replicate each list of tables to a target of its own."""
    document = json.loads(bank.config.read_text("utf-8"))
    apply = {**document.pop("apply"), "table-mapping": {}}
    del document["filter"], document["target"]
    document["target"] = [
        {
            "name": f"t{number}",
            "apply": {
                **apply,
                "tables": [f"APP.{name}" for name in names],
                "subscription": f"t{number}",
            },
        }
        for number, names in enumerate(lists)
    ]
    bank.config.write_text(json.dumps(document), "utf-8")
    bank.listed = {name for names in lists for name in names}


@pytest.mark.parametrize("has_undo", [False, True])
def test_targets_with_other_tables_share_the_dictionary_of_the_first_load(
    bank: Bank, has_undo: bool
) -> None:
    """The oldest log is older, and so are DDL that no run reads any more."""
    deleted = 'UPDATE SYS."V$ARCHIVED_LOG" SET "DELETED" = \'YES\''
    bank.served.server.server.state.catalogue.update(deleted)
    to_two_targets(bank, ["K", "U"], [ADDED])
    for name in ("K", "U", ADDED):
        bank.execute(0, f"ALTER TABLE {name} ADD (c NUMBER(9))")
    for _ in range(2):
        bank.switch()
        bank.insert(0, "K")
        bank.commit_all()
    for target in ("t0", "t1"):
        initial_load(bank.config, only_target=target)
        bank.insert(0, "K")
        bank.commit_all()
    change(bank, ("K", "U", ADDED))
    if not has_undo:
        forget(bank)
    run(bank)
    assert bank.differences() == []
