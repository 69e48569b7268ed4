"""Tables that are locked for long: their changes are held, and go in by themselves afterwards."""

from __future__ import annotations

import random
import threading
from typing import Any

import psycopg
import pytest
import structlog.testing

from olr_pg.applier.batches import table_queue
from olr_pg.applier.batches.batch_applier import TableProgress
from olr_pg.applier.stopped.pausing import pause_table, unpause_table
from olr_pg.errors import Code, OlrPgError
from tests.applier.batches.locks import APPLIED, PATIENCE, UPDATES, applying, last, locked
from tests.waiting import wait_until

Replication = Any  # tests/applier/conftest.py

COUNTS = "SELECT sum(transactions), sum(conflicts) FROM olr_pg.ledger"
HELD = "SELECT count(*) > 0 FROM olr_pg.held"
STOPPED = "SELECT source_table FROM olr_pg.ledger WHERE stopped"


@pytest.fixture(autouse=True)
def _little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_queue, "_PATIENT_MILLISECONDS", 300)
    monkeypatch.setattr(table_queue, "_SHORT_MILLISECONDS", 50)
    monkeypatch.setattr(table_queue, "HOLD_SECONDS", 0.5)
    monkeypatch.setattr(table_queue, "_BLOCKED_SECONDS", 0.2)
    monkeypatch.setattr(table_queue, "_AGAIN_SECONDS", 0.3)


def is_held(applier: Any) -> bool:
    return [(one.table, one.is_held) for one in applier.blocked] == [("S.T", True)]


def progress(applier: Any, table: str) -> TableProgress:
    (found,) = (one for one in applier.tables if one.name == table)
    assert isinstance(found, TableProgress)
    return found


def test_a_table_that_is_locked_for_long_is_held_and_goes_on_by_itself(two: Replication) -> None:
    """Nobody else waits for it, though what it lacks is more than memory may hold."""
    locker = locked(two, "t")
    with (
        structlog.testing.capture_logs() as events,
        applying(two, once=False, queue_bytes=20_000) as applier,
    ):
        wait_until(lambda: is_held(applier), PATIENCE)
        wait_until(lambda: last(two, "u") == UPDATES, PATIENCE)
        wait_until(lambda: not applier.crowded_out, PATIENCE)
        assert two.rows(HELD) == [(True,)]
        # What is held is asked for now and then, by another thread.
        wait_until(lambda: progress(applier, "S.T").held is not None, PATIENCE)
        assert progress(applier, "S.T").error is None
        assert applier.blocked[0].error.code == Code.STATEMENT_BLOCKED
        locker.close()
        wait_until(lambda: not applier.blocked, PATIENCE)
    assert (last(two, "t"), two.rows(COUNTS)) == (UPDATES, [APPLIED])
    assert two.rows(HELD) == [(False,)]
    assert two.rows("SELECT DISTINCT resolution FROM olr_pg.error") == [("applied",)]
    told = [event["event"] for event in events if event.get("table") == "S.T"]
    assert (
        told.count("a table is still locked: its changes are held until the lock is released") == 1
    )
    assert told.count("a table is no longer blocked by another session") == 1


def test_a_run_that_is_to_end_says_which_tables_are_locked(two: Replication) -> None:
    locker = locked(two, "t")
    with pytest.raises(OlrPgError, match=r"S\.T") as caught:
        two.apply(answer_seconds=1.5, batch_changes=20)
    assert caught.value.code == Code.TABLES_STOPPED
    assert last(two, "u") == UPDATES
    locker.close()
    two.serve()
    two.apply()
    assert (last(two, "t"), two.rows(COUNTS)) == (UPDATES, [APPLIED])


def test_a_start_does_not_wait_for_a_table_that_is_locked_still(two: Replication) -> None:
    locker = locked(two, "t")
    with pytest.raises(OlrPgError):
        two.apply(answer_seconds=1.5, batch_changes=20)
    two.transaction(two.update({"ID": 1}, {"N": -1}, "U"))
    two.transaction(two.update({"ID": 1}, {"N": -1}, "T"))
    two.serve()
    with applying(two, once=False) as applier:
        wait_until(lambda: last(two, "u") == -1, PATIENCE)
        wait_until(lambda: is_held(applier), PATIENCE)
        locker.close()
        wait_until(lambda: not applier.blocked, PATIENCE)
    assert (last(two, "t"), two.rows(HELD)) == (-1, [(False,)])


def test_a_transaction_that_does_not_fit_in_memory_is_held_as_well(two: Replication) -> None:
    rows = [two.insert({"ID": i, "N": i, "V": "v" * 20}) for i in range(2, 2002)]
    two.transaction(*rows)
    two.transaction(two.update({"ID": 1}, {"N": -1}, "U"))
    two.serve()
    locker = locked(two, "t")
    with applying(two, once=False, spool_bytes=2_000, batch_changes=100_000) as applier:
        wait_until(lambda: last(two, "u") == -1, PATIENCE)
        wait_until(lambda: is_held(applier), PATIENCE)
        locker.close()
        wait_until(lambda: not applier.blocked, PATIENCE)
    assert two.rows("SELECT count(*), sum(id) FROM s.t") == [(2001, sum(range(2002)))]


def test_a_pause_keeps_a_held_table_where_it_is(two: Replication) -> None:
    locker = locked(two, "t")
    with applying(two, once=False) as applier:
        wait_until(lambda: is_held(applier), PATIENCE)
        with psycopg.connect(two.target, autocommit=True) as connection:
            pause_table(connection, "olr_pg", "S.T", "s.t")
            locker.close()
        wait_until(lambda: not applier.blocked, PATIENCE)
    assert two.rows(STOPPED) == [("S.T",)]
    assert last(two, "t") < UPDATES
    with psycopg.connect(two.target, autocommit=True) as connection:
        unpause_table(connection, "olr_pg", "S.T")
    two.serve()
    two.apply()
    assert (last(two, "t"), two.rows(COUNTS)) == (UPDATES, [APPLIED])


def test_a_held_change_that_does_not_go_in_stops_the_table_with_its_reason(
    two: Replication,
) -> None:
    with psycopg.connect(two.target) as locker:
        locker.execute("LOCK TABLE s.t")
        with applying(two, once=False, error=Code.TABLES_STOPPED) as applier:
            wait_until(lambda: is_held(applier), PATIENCE)
            locker.execute("UPDATE s.t SET id = 5")
            locker.commit()
            wait_until(lambda: not applier.blocked, PATIENCE)
            (table,) = (one for one in applier.tables if one.name == "S.T")
            assert table.error is not None
            assert table.error.code == Code.CHANGE_CONFLICTS
    assert two.rows(STOPPED) == [("S.T",)]
    assert last(two, "u") == UPDATES


@pytest.mark.parametrize("seed", range(2))
def test_locks_and_lost_connections_at_random_lose_and_double_nothing(
    two: Replication, seed: int
) -> None:
    drawn = random.Random(seed)
    with applying(two, once=False, workers=1, queue_bytes=20_000) as applier:
        for _ in range(6):
            locker = locked(two, drawn.choice("tu"))
            threading.Event().wait(drawn.choice((0.02, 0.3, 1.5)))  # the lock's time, no condition
            if drawn.random() < 0.5:
                two.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE application_name = 'olr_pg applier' AND datname = current_database()"
                )
            locker.close()
        wait_until(lambda: (last(two, "t"), last(two, "u")) == (UPDATES, UPDATES), PATIENCE)
        wait_until(lambda: not applier.blocked, PATIENCE)
    assert two.rows(HELD) == [(False,)]
    assert two.rows(COUNTS) == [APPLIED]
