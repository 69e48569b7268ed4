"""The commands as a user sees them: what they print, and their exit codes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
import typer

from olr_pg.appliance.data_lock import hold_data_lock
from olr_pg.applier.stopped.pausing import pause_table
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.cli.group import coded
from olr_pg.cli.migration.load import initial_load
from olr_pg.cli.migration.verify import repair, verify
from olr_pg.cli.tables import remove
from olr_pg.errors import Code, OlrPgError
from tests.advice import followed
from tests.load.test_initial import fetch
from tests.load.verification.test_verification import execute

if TYPE_CHECKING:
    from pathlib import Path

    from tests.load.conftest import Project


@pytest.fixture
def commands(project: Project, shared_session: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project's configuration file; commands use the tests' Spark session and log."""
    for module in ("load", "verify"):
        monkeypatch.setattr(
            f"olr_pg.cli.migration.{module}.spark_session_of", lambda *_: shared_session()
        )
    monkeypatch.setattr("olr_pg.spark.session.stop_session", lambda: None)
    monkeypatch.setattr(
        "olr_pg.observability.logging_setup.configure_logging", lambda *_, **__: None
    )
    project.tables = project.source.write_tables(project.folder / "tables", project.source.scn(0.5))
    return project.write()


def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    """The last line, where the JSON object is; the tests' log comes before it."""
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_load_verify_and_repair(
    project: Project, commands: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    initial_load(commands, table=["SHOP.ORDERS"], as_json=True)
    (loaded,) = printed(capsys)["tables"]
    assert loaded["table"] == "SHOP.ORDERS"
    (count,) = fetch(project, "SELECT count(*)::int FROM shop.orders")[0]
    assert loaded["rows"] == count
    initial_load(commands)
    text = capsys.readouterr().out
    assert "SHOP.CUSTOMERS" in text
    assert "initial-load does not create column defaults" in text
    assert "index: 1 present" in text

    verify(commands, as_json=True)
    assert printed(capsys)["identical"]
    execute(project, "UPDATE shop.orders SET status = '~'; DELETE FROM shop.customers")
    file = project.folder / "differences.jsonl"
    with pytest.raises(typer.Exit) as ending:
        verify(commands, differences=file)
    assert ending.value.exit_code == 1
    assert f"SHOP.ORDERS: different order_id = {first_order(project)}: status" in (
        capsys.readouterr().out
    )
    repair(commands, differences=file)
    assert f"update {count}" in capsys.readouterr().out
    assert fetch(project, "SELECT DISTINCT status FROM shop.orders") == [("~",)]
    fail_at_the_second_table(project, commands, file, capsys)
    repair(commands, differences=file, yes=True, as_json=True)
    done = printed(capsys)
    assert (done["tables"][1]["updated"], done["unfinished"]) == (count, [])
    verify(commands, as_json=True)
    assert printed(capsys)["identical"]


def test_a_table_that_does_not_take_a_row_keeps_no_other_from_being_loaded(
    project: Project, commands: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    execute(
        project,
        "CREATE SCHEMA shop; CREATE TABLE shop.orders (order_id bigint PRIMARY KEY,"
        " customer_id boolean, status text, entered timestamp, shipped timestamptz);"
        " CREATE TABLE shop.customers (customer_id bigint PRIMARY KEY CHECK (customer_id < 0),"
        " name text, city text, balance numeric, since timestamp, notes text)",
    )
    with pytest.raises(OlrPgError) as caught:
        initial_load(commands, as_json=True)
    said = printed(capsys)
    assert [one["table"] for one in said["tables"]] == ["SHOP.ORDER_LINES"]
    assert [(one["code"], one["where"]["table"]) for one in said["failures"]] == [
        ("OLR-05109", "SHOP.CUSTOMERS"),
        ("OLR-02053", "SHOP.ORDERS"),
    ]
    assert said["failures"][0]["where"]["sqlstate"] == "23514"
    assert said["failures"][1]["where"]["column"] == "CUSTOMER_ID"
    assert caught.value.code == 5109
    assert not any(one["kind"] == "sequence" for one in said["structure"])
    execute(
        project,
        "ALTER TABLE shop.customers DROP CONSTRAINT customers_customer_id_check;"
        " ALTER TABLE shop.orders ALTER customer_id TYPE bigint USING 0",
    )
    initial_load(commands, resume=True, as_json=True)
    said = printed(capsys)
    assert said["failures"] == []
    assert len(said["tables"]) == 3
    verify(commands)


def test_a_table_that_is_in_is_loaded_again_only_anew(
    project: Project, commands: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    initial_load(commands)
    fetch(project, "DELETE FROM shop.orders RETURNING 1")
    capsys.readouterr()
    initial_load(commands, table=["SHOP.ORDERS"])
    assert "SHOP.ORDERS: already loaded, not loaded again" in capsys.readouterr().out
    data = project.folder / "data"
    with hold_data_lock(data), pytest.raises(OlrPgError) as caught:
        initial_load(commands, table=["SHOP.ORDERS"], anew=True)
    assert caught.value.code == 4044
    assert fetch(project, "SELECT count(*) FROM shop.orders") == [(0,)]
    initial_load(commands, table=["SHOP.ORDERS"], anew=True)
    assert "already loaded, not loaded again" not in capsys.readouterr().out
    verify(commands)


def test_a_table_that_cannot_be_compared_keeps_no_other_from_it(
    project: Project, commands: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    initial_load(commands)
    execute(
        project,
        "DROP TABLE shop.order_lines; DELETE FROM shop.customers;"
        " ALTER TABLE shop.orders ALTER customer_id TYPE boolean USING true",
    )
    file = tmp_path / "differences.jsonl"
    capsys.readouterr()
    with pytest.raises(OlrPgError) as caught:
        verify(commands, differences=file, as_json=True)
    said = printed(capsys)
    assert not said["identical"]
    assert [one["table"] for one in said["tables"]] == ["SHOP.CUSTOMERS"]
    assert said["tables"][0]["differences"]["missing"] > 0
    assert [(one["code"], one["where"]["table"]) for one in said["failures"]] == [
        ("OLR-02053", "SHOP.ORDERS"),
        ("OLR-05005", "SHOP.ORDER_LINES"),
    ]
    assert said["failures"][0]["where"]["column"] == "CUSTOMER_ID"
    assert caught.value.code == 2053
    # What was found is in the file nevertheless.
    repair(commands, differences=file, yes=True)
    with pytest.raises(OlrPgError):
        verify(commands)
    text = capsys.readouterr().out
    assert "not compared: OLR-05005" in text
    assert "not compared: OLR-02053" in text
    with pytest.raises(OlrPgError) as caught:
        verify(commands, table=["SHOP.ORDERS"])
    assert caught.value.code == 2053
    verify(commands, table=["SHOP.CUSTOMERS"])


def fail_at_the_second_table(
    project: Project, commands: Path, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was repaired before the failure is said, in either form."""
    (there,) = fetch(project, "SELECT count(*)::int FROM shop.customers")[0]
    assert there == 0
    execute(project, "ALTER TABLE shop.orders ADD CONSTRAINT no CHECK (status = '~')")
    for as_json in (True, False):
        with pytest.raises(OlrPgError) as caught:
            repair(commands, differences=file, yes=True, as_json=as_json)
        assert (caught.value.code, caught.value.where) == (5114, {"table": "SHOP.ORDERS"})
        (there,) = fetch(project, "SELECT count(*)::int FROM shop.customers")[0]
        if as_json:
            said = printed(capsys)
            assert [(one["table"], one["inserted"]) for one in said["tables"]] == [
                ("SHOP.CUSTOMERS", there)
            ]
            assert said["unfinished"] == ["SHOP.ORDERS"]
        else:
            said = capsys.readouterr().out
            assert (
                f"SHOP.CUSTOMERS: 0 inserted, 0 updated, 0 deleted; {there} rows were not repaired"
                in said
            )
            assert "not repaired: SHOP.ORDERS\n" in said
    execute(project, "ALTER TABLE shop.orders DROP CONSTRAINT no")


def first_order(project: Project) -> object:
    return fetch(project, "SELECT min(order_id) FROM shop.orders")[0][0]


def test_wrong_options(commands: Path, tmp_path: Path) -> None:
    with pytest.raises(typer.BadParameter):
        initial_load(commands, resume=True, restart=True)
    with pytest.raises(typer.BadParameter):
        initial_load(commands, table=["SHOP.ORDERS"], restart=True, anew=True)
    with pytest.raises(typer.BadParameter):
        initial_load(commands, anew=True)
    with pytest.raises(typer.BadParameter):
        verify(commands, sample=0.0)
    with pytest.raises(OlrPgError) as caught:
        initial_load(commands, table=["SHOP.NOWHERE"])
    assert caught.value.code == 3012
    file = tmp_path / "none.jsonl"
    for content in (b"", b"{}\n", b"no json", b'{"format": "olr-pg-differences/3"}\n'):
        file.write_bytes(content)
        with pytest.raises(OlrPgError) as caught:
            repair(commands, differences=file)
        assert caught.value.code == 5112


def test_a_database_that_takes_no_writes_is_compared_and_nothing_else(
    project: Project, commands: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where olr_pg has no ledger yet, which a comparison does not need."""
    initial_load(commands, as_json=True)
    name = fetch(project, "SELECT current_database()::text")[0][0]
    execute(project, f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    with pytest.raises(psycopg.Error) as refused:
        initial_load(commands, anew=True, table=["SHOP.ORDERS"])
    assert coded(refused.value).code == Code.TARGET_READ_ONLY
    execute(
        project,
        "SET transaction_read_only = off; DROP SCHEMA olr_pg CASCADE",
    )
    verify(commands, as_json=True)
    assert printed(capsys)["identical"]


def test_a_paused_table_is_called_paused(project: Project, commands: Path) -> None:
    initial_load(commands, as_json=True)
    paused = "SET paused = true, stopped = true WHERE source_table = 'SHOP.ORDERS'"
    execute(project, f"UPDATE olr_pg.ledger {paused}")
    with pytest.raises(OlrPgError) as caught:
        verify(commands)
    assert caught.value.code == Code.NOT_COMPARABLE_AT_SCN
    assert "is paused" in caught.value.detail
    assert "olr-pg tables resume SHOP.ORDERS" in caught.value.action


def test_a_load_keeps_a_pause(project: Project, commands: Path) -> None:
    """That of a table that was not there yet, and the load anew of one that was."""
    name = "WHERE source_table = 'SHOP.ORDERS'"
    with connect(project.database) as connection:
        ensure_ledger(connection)
        pause_table(connection, "olr_pg", "SHOP.ORDERS", "shop.orders")
    initial_load(commands, as_json=True)
    state = f"SELECT paused, stopped, commit_scn > 0 FROM olr_pg.ledger {name}"
    assert fetch(project, state) == [(True, True, True)]
    initial_load(commands, table=["SHOP.ORDERS"], anew=True)
    assert fetch(project, state) == [(True, True, True)]
    commands = project.write(tables=["SHOP.*"])
    remove(commands, ["SHOP.ORDERS"])
    assert fetch(project, state) == []


def test_an_event_trigger_that_raises_is_told_with_its_words(
    project: Project, commands: Path
) -> None:
    """Where the ledger is to be made, and where a table is."""
    execute(
        project,
        "CREATE FUNCTION no() RETURNS event_trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'no DDL on weekdays'; END $$;"
        " CREATE EVENT TRIGGER no ON ddl_command_start EXECUTE FUNCTION no();"
        " ALTER EVENT TRIGGER no ENABLE ALWAYS",
    )
    with pytest.raises(OlrPgError) as ledger:
        initial_load(commands)
    assert ledger.value.code == Code.LEDGER_UNUSABLE
    assert "no DDL on weekdays" in ledger.value.detail
    execute(project, "ALTER EVENT TRIGGER no DISABLE")
    with psycopg.connect(project.database, autocommit=True) as connection:
        ensure_ledger(connection)
        connection.execute("ALTER EVENT TRIGGER no ENABLE ALWAYS")
    with pytest.raises(OlrPgError) as table:
        initial_load(commands)
    assert table.value.detail == "the table cannot be created: no DDL on weekdays"
    words = "Then start the same command again"
    followed(table.value, Code.STATEMENT_REFUSED, "a trigger or event trigger", words)
    execute(project, "ALTER EVENT TRIGGER no DISABLE")
    initial_load(commands)
    verify(commands)


def test_a_lock_of_somebody_else_is_no_outage(project: Project, commands: Path) -> None:
    initial_load(commands, as_json=True)
    name = fetch(project, "SELECT current_database()::text")[0][0]
    execute(project, f"ALTER DATABASE \"{name}\" SET lock_timeout = '50ms'")
    with psycopg.connect(project.database) as holder:
        holder.execute("LOCK TABLE shop.orders")
        with pytest.raises(psycopg.Error) as caught:
            initial_load(commands, anew=True, table=["SHOP.ORDERS"])
        assert coded(caught.value).code == Code.TARGET_BUSY
        with pytest.raises(OlrPgError) as blocked:
            verify(commands)
        assert blocked.value.code == Code.TARGET_BUSY
        assert blocked.value.where["table"] == "SHOP.ORDERS"


def test_a_table_that_is_not_there_cannot_be_removed(project: Project, commands: Path) -> None:
    """Where a query or patterns name the tables: neither the list nor the ledger has it."""
    initial_load(commands, table=["SHOP.ORDERS"], as_json=True)
    commands = project.write(tables=["SHOP.*"])
    remove(commands, ["SHOP.ORDERS", "SHOP.CUSTOMERS"])
    for name in ("SHOP.NOPE", "SHOP.ORDERS"):  # the source has the one that was removed
        with pytest.raises(OlrPgError) as caught:
            remove(commands, [name])
        assert caught.value.code == Code.TABLES_NOT_CHANGEABLE
        assert caught.value.detail == "the table is not replicated"
