"""A target that was put back: restored from a backup, or a standby that had not everything."""

from __future__ import annotations

import json
import shutil
from itertools import product
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from structlog.testing import capture_logs

from olr_pg.applier.session.applier_session import Applier
from olr_pg.applier.settings import Consistency
from olr_pg.applier.target.applied_file import AppliedTables
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ALL, Reach, ensure_ledger
from olr_pg.dictionary.evolution import DdlKind, Evolution, Step
from olr_pg.dictionary.model import Column, Table
from olr_pg.errors import Code, OlrPgError
from olr_pg.postgres.sqlstates import is_transient
from olr_pg.transactions.schema_event import SchemaEvent

if TYPE_CHECKING:
    from pathlib import Path

Replication = Any  # tests/applier/conftest.py

_BACKUP = """
CREATE SCHEMA backup;
CREATE TABLE backup.t AS TABLE s.t;
CREATE TABLE backup.ledger AS TABLE olr_pg.ledger;
CREATE TABLE backup.subscription AS TABLE olr_pg.subscription
"""
_RESTORE = """
TRUNCATE s.t; INSERT INTO s.t TABLE backup.t;
DELETE FROM olr_pg.ledger; INSERT INTO olr_pg.ledger TABLE backup.ledger;
DELETE FROM olr_pg.subscription; INSERT INTO olr_pg.subscription TABLE backup.subscription
"""
_END_CONNECTIONS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE application_name = 'olr_pg applier' AND datname = current_database()
"""


def test_a_file_that_cannot_be_written_is_told_of_once(tmp_path: Path) -> None:
    folder = tmp_path / "not there"
    applied = AppliedTables("olr_pg", folder / "applied.json")
    applied.read_file()
    with capture_logs() as logs:
        for scn in (1, 2):
            applied.add({"S.T": Reach(scn, 1)})
            applied.save()
        assert len(logs) == 1
        folder.mkdir()
        applied.save()
        (folder / "applied.json").unlink()
        folder.rmdir()
        applied.add({"S.T": Reach(3, 1)})
        applied.add({"S.T": Reach(2, 9)})  # a load that is handed over late
        assert applied.scn_of("S.T") == 3
        applied.save()
    assert [entry["event"] for entry in logs] == ["could not save the applied positions"] * 2


def _with_decoder_at_the_end(replication: Replication) -> None:
    """What is confirmed need not be decoded again: so the checkpoint moves on."""
    script = replication.script
    script.open_scn = lambda: script.transactions[-1].last_commit_scn + 1


def _again(replication: Replication) -> None:
    replication.listener.stop()
    replication.listener = None


def _one_more(replication: Replication) -> int:
    number = len(replication.script.transactions) + 1
    scn: int = replication.transaction(replication.insert({"ID": number}))
    return scn


def _ids(replication: Replication) -> list[int]:
    return [row[0] for row in replication.rows("SELECT id FROM s.t ORDER BY id")]


@pytest.mark.parametrize("consistency", list(Consistency))
def test_a_restored_target_is_noticed(replication: Replication, consistency: Consistency) -> None:
    r = replication
    _with_decoder_at_the_end(r)
    first = _one_more(r)
    r.apply(consistency=consistency)
    _again(r)
    r.apply(consistency=consistency)  # nothing new: it notes where the next one would start
    r.execute(_BACKUP)
    second = _one_more(r)
    _again(r)
    r.apply(consistency=consistency)
    r.execute(_RESTORE)
    _one_more(r)
    _again(r)
    for _ in range(2):
        with pytest.raises(OlrPgError) as caught:
            r.apply(consistency=consistency)
        assert caught.value.code == 5024
        assert f"SCN {first}, but changes up to SCN {second} were applied" in caught.value.detail
        assert caught.value.where["table"] == "S.T"
        assert _ids(r) == [1]
    # As docs/operations.md says.
    start = caught.value.where["start_scn"]
    assert isinstance(start, int)
    assert 0 < start < second
    (r.folder / "checkpoint.json").unlink()
    _again(r)
    r.apply(consistency=consistency, start_scn=start)
    assert _ids(r) == [1, 2, 3]
    assert r.script.started[-1] == start
    _again(r)
    r.apply(consistency=consistency)


@pytest.mark.parametrize("consistency", list(Consistency))
def test_a_target_that_lacks_one_of_two_transactions_at_an_scn_is_noticed(
    replication: Replication, consistency: Consistency
) -> None:
    """A standby can have received the batch with the first of them, but not the next batch."""
    r = replication
    r.script.open_scn = lambda: 5  # the second transaction is not decoded yet
    r.transaction(r.insert({"ID": 1}), scn=10)
    r.apply(consistency=consistency)
    r.execute(_BACKUP)
    r.transaction(r.insert({"ID": 2}), scn=10)
    _again(r)
    r.apply(consistency=consistency)
    assert _ids(r) == [1, 2]
    r.execute(_RESTORE)
    r.transaction(r.insert({"ID": 3}))
    _with_decoder_at_the_end(r)
    _again(r)
    with pytest.raises(OlrPgError) as caught:
        r.apply(consistency=consistency)
    assert caught.value.code == 5024
    assert "SCN 10 with 1 transaction(s) at this SCN, but 2 were applied" in caught.value.detail
    assert _ids(r) == [1]


@pytest.mark.parametrize("consistency", list(Consistency))
def test_an_event_counts_as_one_of_the_transactions_at_its_scn(
    replication: Replication, consistency: Consistency
) -> None:
    r = replication
    r.transaction(r.insert({"ID": 1}), scn=10)
    table = Table("S", "T", 1, 1, (Column("ID", 1, 1, 1, 2, 22),))
    made = r.batch_applier(consistency)
    with connect(r.target) as connection:
        ensure_ledger(connection)
        made.apply(connection, r.selection())
        made.evolve(
            connection,
            SchemaEvent("S.T", 10, 99, 10, Evolution((Step(DdlKind.TRUNCATE),)), table),
        )
    assert made.reached() == {"S.T": (10, 2)}
    assert _ids(r) == []


def test_a_file_of_version_1_has_no_numbers_of_transactions(
    replication: Replication, tmp_path: Path
) -> None:
    r = replication
    r.transaction(r.insert({"ID": 1}), scn=10)
    r.apply()
    path = tmp_path / "old.json"

    def old(scn: int) -> AppliedTables:
        head = {"format": "olr-pg applied", "version": 1, "subscription": "olr_pg"}
        path.write_text(json.dumps({**head, "tables": {"S.T": scn}}))
        applied = AppliedTables("olr_pg", path)
        applied.read_file()
        return applied

    with psycopg.connect(r.target, autocommit=True) as connection:
        applied = old(10)
        applied.check(connection)
        applied.add({"S.T": Reach(10, 1)})
        applied.save()
        found = json.loads(path.read_bytes())
        assert found["version"] == 2
        assert found["tables"] == {"S.T": {"commit_scn": 10, "transactions": 1}}
        with pytest.raises(OlrPgError):
            old(11).check(connection)


def test_a_loaded_table_contains_all_transactions_at_its_scn(
    replication: Replication, tmp_path: Path
) -> None:
    r = replication
    r.transaction(r.insert({"ID": 1}), scn=10)
    r.apply()
    path = tmp_path / "loaded.json"
    applied = AppliedTables("olr_pg", path)
    applied.read_file()
    applied.add({"S.T": Reach(10, ALL)})
    applied.save()
    again = AppliedTables("olr_pg", path)
    again.read_file()
    with psycopg.connect(r.target, autocommit=True) as connection:
        with pytest.raises(OlrPgError) as caught:
            again.check(connection)
        assert "but all were applied" in caught.value.detail
        connection.execute("UPDATE olr_pg.ledger SET xids = '{}'")
        again.check(connection)


@pytest.mark.parametrize("consistency", list(Consistency))
def test_a_restored_target_that_lacks_only_a_ddl_is_noticed(
    replication: Replication, consistency: Consistency
) -> None:
    """Nobody would find the rows of a TRUNCATE that a standby lacks: each later change succeeds."""
    r = replication
    _with_decoder_at_the_end(r)
    table = Table("S", "T", 1, 1, (Column("ID", 1, 1, 1, 2, 22),))
    first = _one_more(r)
    truncation = SchemaEvent(
        "S.T", first + 1, 99, first + 1, Evolution((Step(DdlKind.TRUNCATE),)), table
    )
    r.script.events = [truncation._replace(past=True)]  # so that the link is the one for events
    r.apply([table], consistency=consistency)
    r.execute(_BACKUP)
    r.script.events = [truncation]
    _again(r)
    r.apply([table], consistency=consistency)
    assert _ids(r) == []
    known = json.loads((r.folder / "applied.json").read_bytes())["tables"]
    assert known == {"S.T": {"commit_scn": truncation.commit_scn, "transactions": 1}}
    r.execute(_RESTORE)
    r.script.events = [truncation._replace(past=True)]
    _one_more(r)
    _again(r)
    with pytest.raises(OlrPgError) as caught:
        r.apply([table], consistency=consistency)
    assert caught.value.code == 5024
    assert _ids(r) == [1]


@pytest.mark.parametrize("consistency", list(Consistency))
def test_what_a_crash_took_is_not_remembered(
    replication: Replication, consistency: Consistency
) -> None:
    """Its commit did not wait for the disk, so it comes again: nothing is lacking."""
    r = replication
    r.transaction(r.insert({"ID": 1}))
    made = r.batch_applier(consistency)
    with connect(r.target) as connection:
        ensure_ledger(connection)
        made.apply(connection, r.selection(0, 1))
        assert made.reached() == {"S.T": (10, 1)}
        made.forget()
        assert made.reached().get("S.T", Reach()) == (0, 0)


@pytest.mark.parametrize(
    "change", ["DELETE FROM olr_pg.ledger", "UPDATE olr_pg.ledger SET commit_scn = 10"]
)
@pytest.mark.parametrize("consistency", list(Consistency))
def test_a_table_that_another_process_puts_back_is_noticed(
    replication: Replication, consistency: Consistency, change: str
) -> None:
    """As a load on another machine does, over no connection of the applier."""
    r = replication
    for _ in range(3):
        _one_more(r)
    applier = r.batch_applier(consistency)
    with connect(r.target) as connection:
        ensure_ledger(connection)
        applier.apply(connection, r.selection(0, 2))
        r.execute(f"TRUNCATE s.t; {change}")
        with pytest.raises(OlrPgError) as caught:
            applier.apply(connection, r.selection(2, 3))
    assert (caught.value.code, caught.value.where["table"]) == (5024, "S.T")
    assert "file named above" not in caught.value.action  # the error names none
    assert _ids(r) == []


def test_an_empty_target_is_noticed(replication: Replication) -> None:
    r = replication
    _with_decoder_at_the_end(r)
    _one_more(r)
    r.apply()
    r.execute("DROP SCHEMA olr_pg CASCADE; TRUNCATE s.t")
    _one_more(r)
    _again(r)
    with pytest.raises(OlrPgError) as caught:
        r.apply()
    assert caught.value.code == 5024
    assert "The SCN to start from is unknown" in caught.value.detail
    assert _ids(r) == []


@pytest.mark.parametrize("consistency", list(Consistency))
def test_a_target_that_is_put_back_while_it_runs(
    replication: Replication, consistency: Consistency
) -> None:
    """As by a standby that takes over and lacks the last transactions."""
    r = replication
    with psycopg.connect(r.target, autocommit=True) as connection:
        ensure_ledger(connection)
    first = _one_more(r)
    applier = Applier(r.settings(consistency=consistency, batch_milliseconds=1))
    thread, caught = r.started(applier)
    try:
        r.wait_for(f"SELECT count(*) = 1 FROM olr_pg.ledger WHERE commit_scn = {first}")
        r.wait_for(f"SELECT count(*) = 1 FROM olr_pg.subscription WHERE complete_scn >= {first}")
        r.execute(_BACKUP)
        second = _one_more(r)
        r.script.put_rest()
        while applier.confirmed_scn < second:
            assert thread.is_alive()
            thread.join(0.005)
        with psycopg.connect(r.target) as other:
            other.execute(_END_CONNECTIONS)
            other.execute(_RESTORE.encode())
        _one_more(r)
        r.script.put_rest()
        thread.join(120)
    finally:
        applier.stop()
        thread.join()
    assert [error.code for error in caught] == [5024]
    assert 2 not in _ids(r)
    assert 3 not in _ids(r)


def test_a_load_that_a_promoted_standby_lacks_is_noticed(replication: Replication) -> None:
    """Before replication has reached the SCN of the load: nothing else would show the loss."""
    r = replication
    with psycopg.connect(r.target, autocommit=True) as connection:
        ensure_ledger(connection)
    r.execute(_BACKUP)
    r.execute(
        "INSERT INTO s.t VALUES (-1);"
        "INSERT INTO olr_pg.ledger (subscription, source_table, target_table, commit_scn)"
        " VALUES ('olr_pg', 'S.T', 's.t', 1000);"
        "INSERT INTO olr_pg.load (subscription, source_table, target_table, scn, start_scn, source,"
        " parts, finished_at) VALUES ('olr_pg', 'S.T', 's.t', 1000, 0, '', 0, now())"
    )
    applier = Applier(r.settings(batch_milliseconds=1))
    thread, caught = r.started(applier)
    try:
        assert r.script.complete.wait(20)  # the applier has subscribed
        with psycopg.connect(r.target) as other:
            other.execute(_END_CONNECTIONS)
            other.execute(f"{_RESTORE}; DELETE FROM olr_pg.load".encode())
        r.transaction(r.insert({"ID": 1}), scn=1001)
        r.script.put_rest()
        thread.join(20)
    finally:
        applier.stop()
        thread.join()
    assert [error.code for error in caught] == [5024]
    assert _ids(r) == []


def test_the_file_knows_what_is_confirmed(replication: Replication) -> None:
    """Who is killed right after a confirmation, while a standby that is behind takes over, must not
    start behind what the standby lacks.
    """
    r = replication
    applier = Applier(r.settings(batch_milliseconds=1))
    thread, _ = r.started(applier)
    try:
        for _ in range(3):
            scn = _one_more(r)
            r.script.put_rest()
            while applier.confirmed_scn < scn:
                assert thread.is_alive()
                thread.join(0.001)
            known = json.loads((r.folder / "applied.json").read_bytes())["tables"]
            assert known == {"S.T": {"commit_scn": scn, "transactions": 1}}
    finally:
        applier.stop()
        thread.join()


def test_a_table_that_is_loaded_anew_is_not_taken_for_one_put_back(
    replication: Replication,
) -> None:
    r = replication
    _with_decoder_at_the_end(r)
    for _ in range(3):
        _one_more(r)
    r.apply()
    r.execute(
        "DELETE FROM olr_pg.ledger; DELETE FROM s.t WHERE id > 2;"
        "INSERT INTO olr_pg.ledger (subscription, source_table, target_table, commit_scn)"
        " VALUES ('olr_pg', 'S.T', 's.t', 20);"
        "INSERT INTO olr_pg.load (subscription, source_table, target_table, scn, start_scn, source,"
        " parts, finished_at) VALUES ('olr_pg', 'S.T', 's.t', 20, 20, '', 0, now())"
    )
    _again(r)
    r.apply()
    assert _ids(r) == [1, 2, 3]


def test_only_what_was_on_disk_is_remembered(replication: Replication, tmp_path: Path) -> None:
    """So a kill leaves a file that says too little, never too much."""
    r = replication
    _one_more(r)
    r.apply()
    file = tmp_path / "of_another.json"
    applied = AppliedTables("olr_pg", file)
    applied.read_file()
    applied.add({"S.T": Reach(9, 1), "S.U": Reach(0, ALL)})
    applied.add({"S.T": Reach(5, 3)})
    applied.save()
    again = AppliedTables("olr_pg", file)
    again.read_file()
    with psycopg.connect(r.target, autocommit=True) as connection:
        again.check(connection)
        again.add({"S.T": Reach(11, 1)})
        with pytest.raises(OlrPgError):
            again.check(connection)
        again.forget(["S.T"])
        again.check(connection)
    fewer = AppliedTables("olr_pg", file)
    fewer.read_file({"S.U"})
    with psycopg.connect(r.target, autocommit=True) as connection:
        connection.execute("DELETE FROM olr_pg.ledger")
        fewer.check(connection)
    other = AppliedTables("another", file)
    other.read_file()
    with psycopg.connect(r.target, autocommit=True) as connection:
        other.check(connection)


def test_a_standby_that_lags_is_not_one_put_back(replication: Replication) -> None:
    r = replication
    _one_more(r)
    r.apply()
    # Found before PostgreSQL's own.
    r.execute(
        "CREATE SCHEMA lagging; CREATE FUNCTION lagging.pg_is_in_recovery() RETURNS boolean"
        " LANGUAGE sql AS 'SELECT true'"
    )
    applied = AppliedTables("olr_pg", None)
    applied.add({"S.T": Reach(1000, 1)})
    standby = f"{r.target} options='-c search_path=lagging,pg_catalog'"
    with psycopg.connect(standby, autocommit=True) as connection:
        with pytest.raises(psycopg.Error) as caught:
            applied.check(connection)
        assert is_transient(caught.value)
        applied.forget()
        applied.check(connection)


_SAVED = ("t", "ledger", "subscription")


def _save(r: Replication, name: str) -> None:
    r.execute(f"CREATE SCHEMA {name}; CREATE TABLE {name}.t AS TABLE s.t")
    for table in _SAVED[1:]:
        r.execute(f"CREATE TABLE {name}.{table} AS TABLE olr_pg.{table}")
    for file in ("applied.json", "checkpoint.json"):
        shutil.copy(r.folder / file, r.folder / f"{name}-{file}")


def _put_back(r: Replication, rows: str, ledger: str, directory: str) -> None:
    r.execute("TRUNCATE s.t")
    for table in _SAVED[1:]:
        r.execute(f"DELETE FROM olr_pg.{table}")
    if rows != "empty":
        r.execute(f"INSERT INTO s.t TABLE {rows}.t")
    if ledger != "missing":
        for table in _SAVED[1:]:
            r.execute(f"INSERT INTO olr_pg.{table} TABLE {ledger}.{table}")
    for file in ("applied.json", "checkpoint.json"):
        (r.folder / file).unlink(missing_ok=True)
        if directory != "missing":
            shutil.copy(r.folder / f"{directory}-{file}", r.folder / file)


def test_what_is_restored_without_the_rest_is_never_continued_silently(
    replication: Replication,
) -> None:
    """All combinations of rows, ledger and directory, each older, newer or missing."""
    r = replication
    _with_decoder_at_the_end(r)
    for name in ("older", "newer"):
        for _ in range(2):
            _one_more(r)
            if r.listener is not None:
                _again(r)
            r.apply()
        _again(r)
        r.apply()
        _save(r, name)
    _one_more(r)
    everything = list(range(1, len(r.script.transactions) + 1))
    found = {}
    kept = "older", "newer", "missing"
    states = ("older", "newer", "empty"), kept, kept
    for combination in product(*states):
        _put_back(r, *combination)
        r.execute("DELETE FROM olr_pg.error; DELETE FROM olr_pg.held")
        _again(r)
        with capture_logs() as logs:
            try:
                r.apply()
                outcome = "right" if _ids(r) == everything else "wrong"
            except OlrPgError as error:
                outcome = str(int(error.code))
        is_named = any("has another file" in one["event"] for one in logs)
        found[combination] = "named" if outcome == "wrong" and is_named else outcome
    assert set(found.values()) == {"right", "named", "5010", "5024"}
    # Rows that are only older look as if VACUUM FULL had been run.
    named = {one for one, outcome in found.items() if outcome == "named"}
    assert named == set(product(("older",), ("newer",), states[2]))
    assert {one for one, outcome in found.items() if outcome == "right"} == {
        *product(("newer",), ("newer",), states[2]),
        *product(("older",), ("older",), ("older", "missing")),
        ("empty", "missing", "missing"),
    }


@pytest.mark.parametrize(
    ("directory", "ended_by", "stopped_by"),
    [
        ("newer", Code.TARGET_PUT_BACK, []),
        ("older", Code.TABLES_STOPPED, [Code.TARGET_TABLE_REPLACED]),
        ("missing", Code.TABLES_STOPPED, [Code.TARGET_TABLE_REPLACED]),
    ],
)
def test_an_older_ledger_in_new_tables_is_noticed_with_each_directory(
    replication: Replication, directory: str, ended_by: Code, stopped_by: list[Code]
) -> None:
    """`pg_restore --clean` makes new tables for the ledger."""
    r = replication
    _with_decoder_at_the_end(r)
    for name in ("older", "newer"):
        _one_more(r)
        if r.listener is not None:
            _again(r)
        r.apply()
        _again(r)
        r.apply()
        _save(r, name)
    _one_more(r)
    r.execute("DROP SCHEMA olr_pg CASCADE")
    with connect(r.target) as connection:
        ensure_ledger(connection)
    _put_back(r, "newer", "older", directory)
    _again(r)
    with pytest.raises(OlrPgError) as ended:
        r.apply()
    assert ended.value.code == ended_by
    assert [code for (code,) in r.rows("SELECT code FROM olr_pg.error")] == stopped_by
