"""Tables and subscriptions that somebody has paused: nothing is lost, nothing comes twice."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from olr_pg.applier.batches.replay import replay, stopped_tables
from olr_pg.applier.session.applier_session import Applier, Overview
from olr_pg.applier.settings import Consistency
from olr_pg.applier.stopped.error_table import read_errors, skip_error
from olr_pg.applier.stopped.pausing import (
    pause_all,
    pause_table,
    paused_tables,
    read_pause,
    resume_all,
    unpause_table,
)
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.errors import Code
from tests.applier.seen import fails, held, rows

Replication = Any  # tests/applier/conftest.py


@contextmanager
def running(replication: Replication) -> Iterator[Applier]:
    applier = Applier(replication.settings(poll_milliseconds=10))
    failures: list[BaseException] = []

    def run() -> None:
        try:
            applier.run()
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield applier
    finally:
        applier.stop()
        thread.join()
    assert failures == []


@contextmanager
def target(replication: Replication) -> Iterator[psycopg.Connection[Any]]:
    with connect(replication.target) as connection:
        ensure_ledger(connection)
        yield connection


def await_that(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_paused_table_is_held_and_the_others_and_the_confirmation_go_on(
    replication: Replication,
) -> None:
    r = replication
    r.execute("CREATE TABLE s.o (id int)")
    r.transaction(r.insert({"ID": 1, "N": 1}), r.insert({"ID": 1}, "O"))
    with running(r) as applier, target(r) as connection:
        r.wait_for("SELECT count(*) = 1 FROM s.t")
        assert pause_table(connection, "olr_pg", "S.T", "s.t")
        assert not pause_table(connection, "olr_pg", "S.T", "s.t")
        second = r.transaction(r.insert({"ID": 2, "N": 2}), r.insert({"ID": 2}, "O"))
        r.transaction(r.update({"ID": 1}, {"N": 5}), r.insert({"ID": 3}, "O"))
        r.script.put_rest()
        r.wait_for("SELECT count(*) = 3 FROM s.o")
        r.wait_for("SELECT count(*) = 2 FROM olr_pg.held")
        assert rows(r) == [(1, 1, None)]
        # Nothing is kept back in the server: the checkpoint goes on.
        assert r.script._queue.wait_until_confirmed(60)
        r.wait_for(f"SELECT olr_pg.consistent_scn() = {second - 1}")
        await_that(lambda: {one.name: one for one in applier.tables}["S.T"].held)
        table = {one.name: one for one in applier.tables}["S.T"]
        assert table.held is not None
        assert (table.paused, table.error, table.held.commit_scn) == (True, None, second)
        applied = sum(one.counters.changes for one in applier.tables)
        assert applied
        assert applier.overview == Overview(applied, [], ["S.T"], [])
        assert stopped_tables(connection, "olr_pg") == []
        assert paused_tables(connection, "olr_pg") == ["S.T"]
        assert unpause_table(connection, "olr_pg", "S.T")
        done = replay(connection, r.settings(), "S.T")
        assert (done.error, done.counters[:3]) == (None, (2, 1, 1))
        last = r.transaction(r.delete({"ID": 1}))
        r.script.put_rest()
        r.wait_for("SELECT count(*) = 1 FROM s.t")
        assert rows(r) == [(2, 2, None)]
        r.wait_for(f"SELECT olr_pg.consistent_scn() = {last}")


def test_a_table_stays_paused_over_restarts(replication: Replication) -> None:
    r = replication
    with target(r) as connection:
        pause_table(connection, "olr_pg", "S.T", "s.t")  # before anything came of it
    r.transaction(r.insert({"ID": 1, "N": 1}))
    r.apply()  # a paused table is no failure
    r.serve()
    r.transaction(r.insert({"ID": 2, "N": 2}))
    r.apply()
    assert rows(r) == []
    assert [line[0] for line in held(r)] == ["S.T", "S.T"]
    with target(r) as connection:
        unpause_table(connection, "olr_pg", "S.T")
        assert replay(connection, r.settings(), "S.T").error is None
    assert rows(r) == [(1, 1, None), (2, 2, None)]
    assert held(r) == []


def test_nothing_was_held_of_a_paused_table(replication: Replication) -> None:
    r = replication
    with target(r) as connection:
        pause_table(connection, "olr_pg", "S.T", "s.t")
        unpause_table(connection, "olr_pg", "S.T")
        assert replay(connection, r.settings(), "S.T").error is None
    r.transaction(r.insert({"ID": 1, "N": 1}))
    r.apply()
    assert rows(r) == [(1, 1, None)]


def test_a_change_that_does_not_go_in_stops_the_table_once_it_is_resumed(
    replication: Replication,
) -> None:
    r = replication
    r.execute("ALTER TABLE s.t ADD CONSTRAINT small CHECK (n < 100)")
    with target(r) as connection:
        pause_table(connection, "olr_pg", "S.T", "s.t")
    r.transaction(r.insert({"ID": 1, "N": 1}))
    r.transaction(r.insert({"ID": 2, "N": 200}))
    r.apply()
    with target(r) as connection:
        unpause_table(connection, "olr_pg", "S.T")
        error = replay(connection, r.settings(), "S.T").error
        assert error is not None
        assert error.code == 5008
        assert stopped_tables(connection, "olr_pg") == ["S.T"]
    assert rows(r) == [(1, 1, None)]


@pytest.mark.parametrize("is_paused", [False, True])
def test_a_table_that_a_command_has_resumed_is_not_shown_as_stopped_until_its_next_change(
    replication: Replication, *, is_paused: bool
) -> None:
    """The table's worker notices it only with the next batch, which may be hours later."""
    r = replication
    r.execute("ALTER TABLE s.t ADD CONSTRAINT small CHECK (n < 100)")
    r.transaction(r.insert({"ID": 2, "N": 200}))
    with running(r) as applier, target(r) as connection:
        await_that(lambda: [one for one in applier.tables if one.held])
        assert applier.overview.stopped == ["S.T"]
        if is_paused:
            assert pause_table(connection, "olr_pg", "S.T", "s.t")
            await_that(lambda: applier.overview.paused)
            assert unpause_table(connection, "olr_pg", "S.T")
        assert replay(connection, r.settings(), "S.T").error is not None
        r.execute("ALTER TABLE s.t DROP CONSTRAINT small")
        assert replay(connection, r.settings(), "S.T").error is None
        await_that(lambda: not applier.overview.stopped)
        table = {one.name: one for one in applier.tables}["S.T"]
        assert (table.error, table.held, table.paused) == (None, None, False)
        r.execute("ALTER TABLE s.t ADD CONSTRAINT small CHECK (n < 300)")
        r.transaction(r.insert({"ID": 3, "N": 300}))
        r.script.put_rest()
        await_that(lambda: applier.overview.stopped == ["S.T"])
        await_that(lambda: {one.name: one for one in applier.tables}["S.T"].held)
        r.execute("ALTER TABLE s.t DROP CONSTRAINT small")
        assert replay(connection, r.settings(), "S.T").error is None
    assert rows(r) == [(2, 200, None), (3, 300, None)]


def test_nothing_but_a_resume_applies_the_changes_of_a_paused_table(
    replication: Replication,
) -> None:
    """Somebody skips an error of a table that somebody else has paused."""
    r = replication
    r.transaction(r.insert({"ID": 1, "V": "too long for a varchar(20)"}))
    r.transaction(r.insert({"ID": 2}))
    fails(r)
    with target(r) as connection:
        assert pause_table(connection, "olr_pg", "S.T", "s.t")
        (error,) = read_errors(connection, "olr_pg", resolved=False)
        skip_error(connection, "olr_pg", error.id)
        done = replay(connection, r.settings(), "S.T")
        assert done.error is not None
        assert done.error.code == Code.TABLE_PAUSED
        assert rows(r) == []
        assert unpause_table(connection, "olr_pg", "S.T")
        assert replay(connection, r.settings(), "S.T").error is None
    assert [row[0] for row in rows(r)] == [2]


def test_a_paused_subscription_takes_and_confirms_nothing(replication: Replication) -> None:
    r = replication
    r.transaction(r.insert({"ID": 1, "N": 1}))
    with running(r) as applier, target(r) as connection:
        r.wait_for("SELECT count(*) = 1 FROM s.t")
        assert pause_all(connection, "olr_pg", "somebody")
        assert not pause_all(connection, "olr_pg", "somebody else")
        await_that(lambda: applier.pause is not None)
        assert applier.pause is not None
        assert applier.pause.by == "somebody"
        # What was asked for before comes; then nothing more.
        before = len(r.rows("SELECT FROM s.t"))
        r.transaction(r.insert({"ID": 2, "N": 2}))
        r.transaction(r.insert({"ID": 3, "N": 3}))
        r.script.put_rest()
        r.wait_for("SELECT pg_sleep(0.3) IS NOT NULL")
        assert len(r.rows("SELECT FROM s.t")) == before
        assert held(r) == []
        assert not r.script._queue.is_empty()
        assert resume_all(connection, "olr_pg")
        assert read_pause(connection, "olr_pg") is None
        r.wait_for("SELECT count(*) = 3 FROM s.t")
        assert applier.pause is None


def test_a_run_that_is_to_end_says_that_it_is_paused(replication: Replication) -> None:
    r = replication
    with target(r) as connection:
        pause_all(connection, "olr_pg", "somebody")
    r.transaction(r.insert({"ID": 1, "N": 1}))
    error = fails(r)
    assert error.code == 8012
    assert "somebody" in str(error)
    assert rows(r) == []
    with target(r) as connection:
        resume_all(connection, "olr_pg")
    r.apply()
    assert rows(r) == [(1, 1, None)]


def test_all_tables_in_one_stream_do_not_pass_one_that_is_paused(replication: Replication) -> None:
    r = replication
    with target(r) as connection:
        pause_table(connection, "olr_pg", "S.T", "s.t")
    r.transaction(r.insert({"ID": 1, "N": 1}))
    assert fails(r, consistency=Consistency.TRANSACTION).code == 8013
    with target(r) as connection:
        unpause_table(connection, "olr_pg", "S.T")
        replay(connection, r.settings(), "S.T")
    r.serve()
    r.apply(consistency=Consistency.TRANSACTION)
    assert rows(r) == [(1, 1, None)]


@pytest.mark.parametrize("version", [8])
def test_tables_of_an_earlier_release_are_brought_up(
    replication: Replication, version: int
) -> None:
    r = replication
    r.apply()
    r.execute("ALTER TABLE olr_pg.ledger DROP COLUMN paused; DROP TABLE olr_pg.paused")
    r.execute(f"UPDATE olr_pg.version SET version = {version}")
    r.transaction(r.insert({"ID": 1, "N": 1}))
    r.serve()
    r.apply()
    assert rows(r) == [(1, 1, None)]
