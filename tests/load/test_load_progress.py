"""The bookkeeping of loads in the target."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

from olr_pg.applier.batches.stream_applier import StreamApplier
from olr_pg.applier.settings import Consistency
from olr_pg.applier.stopped.renaming import bring_rows
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import SEED, LoadsUnderWay, ensure_ledger
from olr_pg.errors import OlrPgError
from olr_pg.load.load_progress import LoadState, TableLoadProgress
from tests.applier.conftest import Replication

if TYPE_CHECKING:
    from pathlib import Path


def test_a_load_drops_what_was_held_of_its_table_and_of_no_other(postgres_database: str) -> None:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        ensure_ledger(connection)
        for table in ("S.A", "S.B"):
            connection.execute(
                "INSERT INTO olr_pg.held (subscription, source_table, commit_scn, xid, kind,"
                " changes, big_endian, data) VALUES ('s', %s, 9, '1.2.3', 'changes', 1, false, '')",
                [table],
            )
            connection.execute(
                "INSERT INTO olr_pg.error (subscription, source_table, target_table, commit_scn,"
                " xid, position, scn, operation, code, message, resolution)"
                " VALUES ('s', %s, 't', 9, '1.2.3', 0, 9, 'undecoded', 2011, 'why', 'stopped')",
                [table],
            )
        TableLoadProgress("s", "S.A", "a").begin(connection, LoadState(10, 5, "files", 1))
        held = connection.execute("SELECT source_table FROM olr_pg.held").fetchall()
        errors = connection.execute("SELECT source_table, resolution FROM olr_pg.error").fetchall()
    assert held == [("S.B",)]
    assert sorted(errors) == [("S.A", "skipped"), ("S.B", "stopped")]


def test_a_load_is_finished_with_its_position_or_not_at_all(postgres_database: str) -> None:
    """A finished load without a position would get the changes that its rows contain again."""
    fail = """
        CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql
            AS $$ BEGIN RAISE EXCEPTION 'lost' USING ERRCODE = '40001'; END $$;
        CREATE TRIGGER fail BEFORE INSERT OR DELETE ON olr_pg.ledger
            FOR EACH ROW EXECUTE FUNCTION fail()
    """
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        ensure_ledger(connection)
        progress = TableLoadProgress("s", "S.A", "a")
        progress.begin(connection, LoadState(10, 5, "files", 1))
        assert progress.claim(connection, 0, 10)
        connection.execute(fail)
        with pytest.raises(psycopg.errors.SerializationFailure):
            progress.finish(connection, 10)
        state = progress.read(connection)
        assert state is not None
        assert not state.finished
        connection.execute("DROP TRIGGER fail ON olr_pg.ledger")
        applied = "UPDATE olr_pg.ledger SET commit_scn = %s"
        connection.execute(SEED, ("s", "S.A", "a"))
        connection.execute(applied, [11])  # a run has begun the table meanwhile
        with pytest.raises(OlrPgError) as caught:
            progress.finish(connection, 10)
        assert caught.value.code == 5105
        state = progress.read(connection)
        assert state is not None
        assert not state.finished
        connection.execute(applied, [0])
        progress.finish(connection, 10)
        connection.execute(fail.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"))
        with pytest.raises(psycopg.errors.SerializationFailure):
            progress.leave(connection)
        state = progress.read(connection)
        assert state is not None
        assert state.finished


def test_rows_that_a_rename_brings_are_no_partition_of_a_load(postgres_database: str) -> None:
    """The source can give a table's name to another one while its load is under way."""
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        ensure_ledger(connection)
        former, progress = (TableLoadProgress("s", f"S.{name}", name) for name in "AB")
        for one, rows in ((former, 7), (progress, 3)):
            one.begin(connection, LoadState(10, 5, "files", 1))
            assert one.claim(connection, 0, 10)
            one.note(connection, 0, rows, 80)
        assert former.finish(connection, 10) == (7, 80)
        bring_rows(connection, "s", "S.A", "S.B")
        under_way = LoadsUnderWay("s")
        under_way.look(connection)
        ((parts, done, rows),) = ((one.parts, one.parts_done, one.rows) for one in under_way.loads)
        assert (parts, done, rows) == (1, 1, 3)
        state = progress.read(connection)
        assert state is not None
        assert state.done == {0}
        assert progress.finish(connection, 10) == (3, 80)


def test_a_change_that_comes_again_after_a_load_is_not_one_that_was_skipped(
    postgres_database: str, tmp_path: Path
) -> None:
    """The load is as of an SCN before the change that had failed: its error was resolved by it."""
    r = Replication(postgres_database, tmp_path)
    r.execute("CREATE SCHEMA s; CREATE TABLE s.t (id bigint PRIMARY KEY, n numeric)")
    try:
        for number in (1, 1, 2):  # the second one finds the row there
            r.transaction(r.insert({"ID": number}))
        settings = r.settings(consistency=Consistency.TRANSACTION)
        with connect(postgres_database) as connection:
            ensure_ledger(connection)
            with pytest.raises(OlrPgError) as caught:
                StreamApplier(settings, {}).apply(connection, r.selection())
            assert caught.value.code == 5145
            progress = TableLoadProgress(settings.subscription, "S.T", "s.t")
            connection.execute("TRUNCATE s.t")
            progress.forget_applied(connection)
            progress.begin(connection, LoadState(10, 5, "files", 0))
            progress.finish(connection, 10)
            StreamApplier(settings, {}).apply(connection, r.selection())
        assert r.rows("SELECT id FROM s.t ORDER BY id") == [(1,), (2,)]
        assert r.rows("SELECT commit_scn, resolution FROM olr_pg.error") == [(20, "applied")]
    finally:
        r.close()
