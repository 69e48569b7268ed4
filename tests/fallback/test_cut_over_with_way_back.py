"""Cut over with a way back, write, and go back: what applications write is in Oracle."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import oracledb
import psycopg
import pytest

from olr_pg.appliance.appliance import run_appliance
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.cli.migration.cutover import cutover
from olr_pg.cli.migration.fallback import begin_command, cutover_command, run_command
from olr_pg.config.reading import load_config
from olr_pg.errors import Code, OlrPgError
from olr_pg.fallback.fallback_run import run, status
from olr_pg.files.sealed import current_key
from olr_pg.load.cutover.cut_back import cut_back, open_ways_back
from olr_pg.load.cutover.cut_over import STEPS
from olr_pg.load.cutover_steps import DONE, note_step
from tests.advice import followed
from tests.fallback.made_way import way_document, write_document

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.proving.served import Served

ITEMS = "CREATE TABLE sold (id NUMBER(9) PRIMARY KEY, name VARCHAR2(20), made DATE)"


@pytest.fixture
def config(served: Served, logical_database: str, tmp_path: Path) -> Path:
    for name in ("sold", "olr_pg_fallback"):
        with suppress(oracledb.DatabaseError):
            served.execute(f"DROP TABLE {name}")
    with suppress(oracledb.DatabaseError):
        served.execute("DROP SEQUENCE sold_seq")
    served.execute("CREATE SEQUENCE sold_seq START WITH 5")
    served.execute(ITEMS)
    more = {"create-tables": True, "start-scn": served.server.database.current_scn()}
    with connect(logical_database, replica=None) as connection:
        ensure_ledger(connection)  # as after a load or a run
    document = way_document(served, tmp_path / "data", logical_database, "sold", **more)
    return write_document(document, tmp_path / "olr-pg.json")


@pytest.fixture
def cut(
    config: Path, served: Served, capsys: pytest.CaptureFixture[str]
) -> Callable[..., dict[str, Any]]:
    def run(**options: Any) -> dict[str, Any]:
        served.server.database.switch_logs()  # as a DBA does it before the step `archived`
        cutover(config, as_json=True, unverified=True, accept=["*"], **options)
        found: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
        return found

    return run


def rows_in_oracle(served: Served) -> list[tuple[Any, ...]]:
    with oracledb.connect(user="app", password="olr", dsn=served.dsn) as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT id, name FROM sold ORDER BY id")
        return [tuple(row) for row in cursor]


def go_home(config: Path, target: str, served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    """Take the applications back to Oracle, whose sequence goes on behind the target's."""
    with psycopg.connect(target) as connection:
        connection.execute("UPDATE app.sold SET name = 'ONE!' WHERE id = 1")
        with pytest.raises(OlrPgError) as writing:
            cutover_command(config, unverified=True)
        followed(writing.value, Code.TARGET_NOT_QUIET, "let their transactions end")
        connection.execute("SELECT setval('app.sold_seq', 40)")
    for _ in range(2):  # again changes nothing but one value of the sequence
        cutover_command(config, unverified=True, as_json=True)
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["steps"]["verified"] == {"skipped": True}
    move = {"sequence": "APP.SOLD_SEQ", "before": 42, "after": 42}
    assert found["steps"]["sequences"] == {"advanced": [move]}
    assert rows_in_oracle(served) == [(1, "ONE!"), (2, "two")]


def test_a_cut_over_with_a_way_back(
    served: Served,
    logical_database: str,
    config: Path,
    cut: Callable[..., dict[str, Any]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    served.execute("INSERT INTO sold VALUES (1, 'one', DATE '2024-01-01')")
    begun = cut(until="constraints")
    assert "fallback" not in [step["step"] for step in begun["steps"]]
    done = cut(fallback=True)
    assert done["finished"]
    names = [step["step"] for step in done["steps"]]
    assert names[-3:] == ["constraints", "fallback", "report"]
    assert done["steps"][-2]["detail"]["slot"] == "olr_pg_fallback_olr_pg"
    assert "`olr-pg fallback cutover`" in done["way_back"]
    assert cut(fallback=True)["steps"] == done["steps"]
    cutover(config, status=True)
    assert "leave it running" in capsys.readouterr().out

    with psycopg.connect(logical_database) as connection:
        connection.execute("INSERT INTO app.sold VALUES (2, 'two', '2024-02-02')")
        connection.execute("UPDATE app.sold SET name = 'ONE' WHERE id = 1")
    loaded = load_config(config)
    with open_ways_back(loaded) as (way,):
        run(way, once=True)
    assert rows_in_oracle(served) == [(1, "ONE"), (2, "two")]

    go_home(config, logical_database, served, capsys)

    # The forward way, which reads this in Oracle's redo, drops it: the insert would be a conflict.
    served.execute("INSERT INTO sold VALUES (3, 'three', NULL)")
    served.execute("INSERT INTO sold VALUES (sold_seq.NEXTVAL, 'drawn', NULL)")
    run_appliance(loaded, once=True, apply=True)
    with psycopg.connect(logical_database) as connection:
        ledger = "SELECT inserted, updated, conflicts, stopped FROM olr_pg.ledger"
        assert connection.execute(ledger).fetchall() == [(3, 0, 0, False)]
        rows = connection.execute("SELECT id, name FROM app.sold ORDER BY id").fetchall()
    assert rows == [(1, "ONE!"), (2, "two"), (3, "three"), (42, "drawn")]

    # Nor does the way back return to Oracle what the forward way wrote, which would be one, too.
    with open_ways_back(loaded) as (way,):
        run(way, once=True)
        assert status(way).ledger is not None
    assert rows_in_oracle(served) == [*rows]

    # As a service it would disable what fires in Oracle, where applications are.
    with pytest.raises(OlrPgError) as taken_back:
        run_command(config, once=True)
    followed(taken_back.value, Code.FALLBACK_TAKEN_BACK, "`olr-pg cutover --fallback` first")

    # The next cut-over begins anew: it has another end, and goes on with the same way back.
    again = cut(fallback=True)
    assert again["finished"]
    assert again["steps"][0]["detail"]["scn"] > done["steps"][0]["detail"]["scn"]
    assert again["steps"][-2]["detail"]["slot"] == done["steps"][-2]["detail"]["slot"]
    with psycopg.connect(logical_database) as connection:
        drawn = "INSERT INTO app.sold VALUES (nextval('app.sold_seq'), 'drawn here') RETURNING id"
        assert connection.execute(drawn).fetchone() == (43,)
    run_command(config, once=True)
    assert rows_in_oracle(served)[-1] == (43, "drawn here")


def test_a_source_that_changes_after_its_end_is_noticed(
    served: Served,
    config: Path,
    cut: Callable[..., dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Compare in this process: Spark would need seconds to start.
    monkeypatch.setattr("olr_pg.load.copy_task.HERE_BYTES", 1 << 40)
    cut(until="applied")
    goes_on: dict[str, Any] = {"accept": ["*"], "as_json": True}
    served.execute("INSERT INTO sold VALUES (99, 'a forgotten job', NULL)")
    with pytest.raises(OlrPgError, match=r"APP\.SOLD") as changed:
        cutover(config, **goes_on)
    assert changed.value.code == Code.SOURCE_CHANGED_AFTER_CUTOVER
    served.execute("DELETE FROM sold WHERE id = 99")
    cutover(config, until="constraints", **goes_on)
    # Until the next command, applications use the source again, and replication does not run.
    served.execute("INSERT INTO sold VALUES (98, 'a day of work', NULL)")
    with pytest.raises(OlrPgError) as changed:
        cutover(config, **goes_on)
    assert changed.value.code == Code.SOURCE_CHANGED_AFTER_CUTOVER
    served.execute("DELETE FROM sold WHERE id = 98")
    cutover(config, **goes_on)


def test_a_return_without_a_cut_over_is_recorded_each_time(
    logical_database: str, config: Path, served: Served
) -> None:
    """A service that begins again would disable what fires in Oracle, where applications are."""
    with psycopg.connect(logical_database) as connection:
        connection.execute("CREATE SCHEMA app")
        connection.execute("CREATE TABLE app.sold (id int PRIMARY KEY, name text, made timestamp)")
    for number in (1, 2):
        begin_command(config)
        with psycopg.connect(logical_database) as connection:
            connection.execute(f"INSERT INTO app.sold VALUES ({number}, 'one')".encode())
        run_command(config, once=True)
        cutover_command(config, unverified=True)
        with pytest.raises(OlrPgError) as taken_back:
            run_command(config, once=True)
        followed(taken_back.value, Code.FALLBACK_TAKEN_BACK, "run `olr-pg fallback begin`")
    assert rows_in_oracle(served) == [(1, "one"), (2, "one")]


def test_what_is_written_during_the_return_is_not_lost(
    served: Served, logical_database: str, config: Path, cut: Callable[..., dict[str, Any]]
) -> None:
    cut(fallback=True)
    loaded = load_config(config)

    def write(step: str, _title: str) -> None:
        if step == "sequences":
            with psycopg.connect(logical_database) as connection:
                connection.execute("INSERT INTO app.sold VALUES (7, 'late', NULL)")

    with pytest.raises(OlrPgError, match="1 row change") as late:
        cut_back(loaded, pytest.fail, unverified=True, progress=write)
    assert late.value.code == Code.TARGET_NOT_QUIET
    assert rows_in_oracle(served) == [(7, "late")]
    cut_back(loaded, pytest.fail, unverified=True)


def test_a_return_ends_where_the_databases_differ(
    served: Served,
    logical_database: str,
    config: Path,
    cut: Callable[..., dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Compare in this process: Spark would need seconds to start.
    monkeypatch.setattr("olr_pg.load.copy_task.HERE_BYTES", 1 << 40)
    cut(fallback=True)
    loaded = load_config(config)

    def changed_after_drained(step: str, _title: str) -> None:
        if step == "verified":
            served.execute("UPDATE sold SET name = 'other'")

    with psycopg.connect(logical_database) as connection:
        connection.execute("INSERT INTO app.sold VALUES (1, 'one', NULL)")
    with pytest.raises(OlrPgError, match=r"APP\.SOLD") as ended:
        cut_back(loaded, pytest.fail, progress=changed_after_drained)
    assert ended.value.code == Code.SOURCE_AND_TARGET_DIFFER
    served.execute("UPDATE sold SET name = 'one'")
    served.execute("DROP SEQUENCE sold_seq")
    with pytest.raises(OlrPgError, match=r"APP\.SOLD_SEQ") as ended:
        cut_back(loaded, pytest.fail)
    followed(ended.value, Code.SEQUENCES_NOT_ADVANCED, "create a missing sequence again")
    served.execute("CREATE SEQUENCE sold_seq START WITH 5")
    assert cut_back(loaded, pytest.fail)["verified"] == {"tables": 1, "rows": 1}


def test_large_transactions_are_encrypted_as_those_of_a_run_are(
    served: Served, config: Path
) -> None:
    key = base64.b64encode(bytes(range(32))).decode()
    document = json.loads(config.read_text())
    document["context"]["encryption-key"] = key
    config.write_text(json.dumps(document))
    with open_ways_back(load_config(config)):
        assert current_key() is not None
    assert current_key() is None


def test_a_way_back_begins_before_applications_may_write(
    logical_database: str, cut: Callable[..., dict[str, Any]]
) -> None:
    with psycopg.connect(logical_database, autocommit=True) as connection:
        ensure_ledger(connection)
        details: dict[str, Any] = {"quiet": {"scn": 1}, "report": {"tables": []}}
        for step in STEPS:
            note_step(connection, "olr_pg", step.name, DONE, details.get(step.name, {}))
    with pytest.raises(OlrPgError) as late:
        cut(fallback=True)
    followed(late.value, Code.WAY_BACK_TOO_LATE, "`olr-pg cutover --restart --fallback`")
    done = cut(fallback=True, restart=True)
    assert done["finished"]
    assert done["steps"][-2]["step"] == "fallback"


def test_a_way_back_needs_its_section(config: Path, cut: Callable[..., dict[str, Any]]) -> None:
    document = json.loads(config.read_text("utf-8"))
    del document["fallback"]
    config.write_text(json.dumps(document), "utf-8")
    with pytest.raises(OlrPgError) as missing:
        cut(fallback=True)
    assert missing.value.code == Code.NO_WAY_BACK
