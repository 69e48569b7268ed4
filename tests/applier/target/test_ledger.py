"""The ledger: it knows its source and its target tables, and what was loaded.

What the target tells of loads that have not ended.
"""

from __future__ import annotations

import re
import time
from dataclasses import astuple
from importlib import resources
from typing import Any

import pytest

from olr_pg.applier.settings import Consistency
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import LoadsUnderWay, ensure_ledger
from olr_pg.dictionary.model import Table
from olr_pg.errors import Code, OlrPgError
from olr_pg.load.load_progress import LoadState, TableLoadProgress

Replication = Any  # tests/applier/conftest.py


def _table(replication: Replication, table: str = "s.t") -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = replication.rows(f"SELECT * FROM {table} ORDER BY 1")
    return rows


def test_a_second_source_needs_a_subscription_of_its_own(replication: Replication) -> None:
    """Its tables have the same names; their SCNs are not the first one's."""
    r, tables = replication, [Table("S", "T", 1, 1, ())]
    r.execute("CREATE SCHEMA two; CREATE TABLE two.t (LIKE s.t INCLUDING ALL)")
    r.transaction(r.insert({"ID": 1}), scn=1_000)
    r.apply(tables)
    r.script.transactions.clear()
    r.transaction(r.insert({"ID": 2}), scn=20)
    (r.folder / "checkpoint.json").unlink()
    r.serve()
    other = {"schema_names": {"S": "two"}, "applied_file": r.folder / "other.json"}
    with pytest.raises(OlrPgError) as caught:
        r.apply(tables, **other)
    assert caught.value.code == 5025
    assert "s.t" in caught.value.detail
    r.apply(tables, subscription="two", **other)
    assert [row[0] for row in _table(r, "two.t")] == [2]


def test_a_second_database_does_not_take_the_ledger_of_the_first(
    replication: Replication,
) -> None:
    """Both go into one table: the second one's SCNs are below those of the ledger's line."""
    r, tables = replication, [Table("S", "T", 1, 1, ())]
    r.transaction(r.insert({"ID": 1}), scn=1_000)
    r.apply(tables)  # of an earlier release, or of a source that did not say its DBID
    assert r.rows("SELECT dbid FROM olr_pg.ledger") == [(None,)]
    r.serve()
    r.apply(tables, dbid=11)
    assert r.rows("SELECT dbid FROM olr_pg.ledger") == [(11,)]
    r.script.transactions.clear()
    r.transaction(r.insert({"ID": 2}), scn=20)
    (r.folder / "checkpoint.json").unlink()
    r.serve()
    other = {"dbid": 22, "applied_file": r.folder / "other.json"}
    # What names no tables meets the line with the first change.
    for known, consistency in ((tables, "table"), ([], "table"), ([], "transaction")):
        with pytest.raises(OlrPgError) as caught:
            r.apply(known, consistency=Consistency(consistency), **other)
        assert (caught.value.code, caught.value.where["table"]) == (5027, "S.T")
        assert "DBID 11" in caught.value.detail
        r.serve()
    r.apply(tables, subscription="two", **other)
    assert [row[0] for row in _table(r)] == [1, 2]
    assert r.rows("SELECT subscription, dbid FROM olr_pg.ledger ORDER BY dbid") == [
        ("olr_pg", 11),
        ("two", 22),
    ]


def test_a_target_table_that_was_renamed_goes_on(replication: Replication) -> None:
    r, tables = replication, [Table("S", "T", 1, 1, ())]
    r.transaction(r.insert({"ID": 1}))
    r.apply(tables)
    r.execute("ALTER TABLE s.t RENAME TO renamed")
    r.transaction(r.insert({"ID": 2}))
    r.serve()
    r.apply(tables, table_names={"S.T": "s.renamed"})
    assert [row[0] for row in _table(r, "s.renamed")] == [1, 2]
    assert r.rows("SELECT target_table FROM olr_pg.ledger") == [("s.renamed",)]


def test_a_seeded_ledger_skips_what_was_loaded(replication: Replication) -> None:
    r = replication
    r.apply()
    r.execute("INSERT INTO s.t VALUES (1, 1, 'loaded');"
              "INSERT INTO olr_pg.ledger (subscription, source_table, target_table, commit_scn)"
              " VALUES ('olr_pg', 'S.T', 's.t', 10)")  # fmt: skip
    r.transaction(r.insert({"ID": 1, "N": 1, "V": "loaded"}), scn=10)
    r.transaction(r.update({"ID": 1}, {"V": "changed"}), scn=11)
    r.serve()
    r.apply()
    assert _table(r) == [(1, 1, "changed")]


@pytest.mark.parametrize("consistency", list(Consistency))
def test_nothing_is_written_in_a_session_that_lost_its_settings(
    replication: Replication, consistency: Consistency
) -> None:
    """As behind a pool whose mode was changed to ``transaction``: triggers would fire."""
    r = replication
    r.execute(
        "CREATE TABLE s.seen (id bigint); CREATE FUNCTION s.see() RETURNS trigger LANGUAGE plpgsql"
        " AS 'BEGIN INSERT INTO s.seen VALUES (new.id); RETURN NULL; END';"
        "CREATE TRIGGER see AFTER INSERT ON s.t FOR EACH ROW EXECUTE FUNCTION s.see()"
    )
    for number in range(2):
        r.transaction(r.insert({"ID": number}))
    applier = r.batch_applier(consistency)
    with connect(r.target) as connection:
        ensure_ledger(connection)
        applier.apply(connection, r.selection(0, 1))
        connection.execute("DISCARD ALL")
        with pytest.raises(OlrPgError) as caught:
            applier.apply(connection, r.selection(1, 2))
        assert caught.value.code == 5029
    assert _table(r) == [(0, None, None)]
    assert _table(r, "s.seen") == []
    assert r.rows("SELECT commit_scn FROM olr_pg.ledger") == [(10,)]


def test_a_ledger_that_a_later_release_upgrades_ends_the_run(replication: Replication) -> None:
    """A command of that release does it, beside an appliance of this one."""
    r = replication
    r.transaction(r.insert({"ID": 1}))
    thread, caught = r.started(r.applier(batch_milliseconds=1))
    r.wait_for("SELECT to_regclass('olr_pg.subscription') IS NOT NULL")
    r.wait_for("SELECT count(*) = 1 FROM olr_pg.subscription")
    r.execute("UPDATE olr_pg.version SET version = version + 1")
    thread.join(120)
    assert [error.code for error in caught] == [5140]


_TABLES = "SELECT oid FROM pg_class WHERE relnamespace = 'olr_pg'::regnamespace AND relkind = 'r'"
_COLUMNS = f"""
SELECT attrelid::regclass::text, attname FROM pg_attribute
WHERE attrelid IN ({_TABLES}) AND attnum > 0
"""
_KEYS = f"""
SELECT conrelid::regclass::text, conname FROM pg_constraint
WHERE conrelid IN ({_TABLES}) AND contype IN ('p', 'u')
    AND conname <> 'error_pkey' -- another unique index has its column
"""
_DEFINITIONS = f"""
SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint
WHERE conrelid IN ({_TABLES}) AND contype IN ('p', 'u') ORDER BY 1, 2
"""


@pytest.mark.parametrize("script", [False, True])
def test_a_start_names_the_part_of_the_ledger_that_somebody_has_dropped(
    postgres_database: str, *, script: bool
) -> None:
    """Each table, column and key; and what the error advises helps."""
    with connect(postgres_database) as connection:
        ensure_ledger(connection)
        columns = connection.execute(_COLUMNS).fetchall()
        drops = [(table, f"TABLE {table}") for table in sorted({one for one, _ in columns})]
        drops += [(f"{table}.{name}", f"{table} DROP {name}") for table, name in columns]
        keys = [(f"{table} ", f"{table} DROP CONSTRAINT {name}") for table, name in
                connection.execute(_KEYS).fetchall()]  # fmt: skip
        definitions = connection.execute(_DEFINITIONS).fetchall()
        assert len(drops) > 130
        for named, what in (*drops[:: 7 if script else 1], *keys):
            if named.startswith("olr_pg.version"):
                continue  # without the version, the next start creates what is missing
            verb = "DROP" if what.startswith("TABLE") else "ALTER TABLE"
            with connection.transaction(force_rollback=True):
                connection.execute(f"{verb} {what} CASCADE".encode())
                with pytest.raises(OlrPgError) as caught:
                    ensure_ledger(connection)
                error = caught.value
                assert error.code == Code.LEDGER_UNUSABLE
                assert named in f"{error.detail} ", what
                if script:
                    _follow(connection, error, named)
                    ensure_ledger(connection)
                    assert connection.execute(_DEFINITIONS).fetchall() == definitions, what


def test_all_keys_that_a_restore_lacks_are_named_at_once(postgres_database: str) -> None:
    """As after `pg_restore` without `--section=post-data`."""
    with connect(postgres_database) as connection:
        ensure_ledger(connection)
        connection.execute("DROP INDEX olr_pg.error_id CASCADE")
        for table, name in connection.execute(
            _KEYS.partition("AND conname")[0].encode()
        ).fetchall():
            connection.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}".encode())
        with pytest.raises(OlrPgError) as caught:
            ensure_ledger(connection)
        assert "more keys are missing" in caught.value.detail
        assert "--section=post-data" in caught.value.action
        _follow(connection, caught.value, "")
        ensure_ledger(connection)


def _follow(connection: Any, error: OlrPgError, named: str) -> None:
    if statement := re.search(r"run `(ALTER TABLE .*?)`", error.action):
        connection.execute(statement[1].encode())
        return
    assert "sql/postgres/ledger.sql" in error.action
    text = resources.files("olr_pg.applier").joinpath("sql/ledger.sql").read_bytes()
    if "." in named.removeprefix("olr_pg."):
        assert "drop it and run the script again" in error.action
        connection.execute(f"DROP TABLE {named.rpartition('.')[0]} CASCADE".encode())
    connection.execute(text)


def test_a_load_is_seen_from_its_begin_to_its_end(postgres_database: str) -> None:
    looks = LoadsUnderWay("olr_pg")
    with connect(postgres_database) as connection:
        ensure_ledger(connection)
        progress = TableLoadProgress("olr_pg", "S.T", "s.t")
        other = TableLoadProgress("another", "S.U", "s.u")
        progress.begin(connection, LoadState(500, 400, "files", 2))
        other.begin(connection, LoadState(1, 1, "files", 1))
        looks.look(connection)
        (load,) = looks.loads
        assert astuple(load)[:6] == ("S.T", 500, 2, 0, 0, 0)
        assert abs(load.began - time.time()) < 60
        with connection.transaction():
            assert progress.claim(connection, 0, 500)
            progress.note(connection, 0, 10, 1000)
        looks.look(connection)
        assert astuple(looks.loads[0])[1:6] == (500, 2, 1, 10, 1000)
        with connection.transaction():
            progress.claim(connection, 1, 500)
            progress.note(connection, 1, 5, 500)
        progress.finish(connection, 500)
        looks.look(connection)
        assert looks.loads == ()
