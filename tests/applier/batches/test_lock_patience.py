"""Tables that somebody locks: they wait and say for whom, and the others of their worker go on."""

from __future__ import annotations

import random
import threading
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
import structlog.testing

from olr_pg.applier.batches import table_queue
from olr_pg.applier.session.applier_session import Overview
from olr_pg.applier.settings import Consistency
from olr_pg.applier.stopped.pausing import pause_table, unpause_table
from tests.applier.batches.locks import APPLIED, PATIENCE, UPDATES, applying, last, locked
from tests.postgres.own_cluster import own_cluster
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.applier.batches.batch_applier import TableProgress

Replication = Any  # tests/applier/conftest.py


@pytest.fixture(autouse=True)
def _little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_queue, "_PATIENT_MILLISECONDS", 1_500)
    monkeypatch.setattr(table_queue, "_SHORT_MILLISECONDS", 50)
    monkeypatch.setattr(table_queue, "_BLOCKED_SECONDS", 0.2)


def test_a_locked_table_is_named_and_the_other_goes_on(two: Replication) -> None:
    locker = locked(two, "t")
    with structlog.testing.capture_logs() as events, applying(two) as applier:

        def by_name() -> dict[str, TableProgress]:
            return {table.name: table for table in applier.tables}

        wait_until(lambda: last(two, "u") == UPDATES, PATIENCE)
        wait_until(lambda: bool(applier.blocked), PATIENCE)
        (blocked,) = applier.blocked
        assert (blocked.table, blocked.error.label) == ("S.T", "OLR-05098")
        text = str(blocked.error)
        assert f"pid {locker.info.backend_pid} ('night job'" in text
        assert "idle in transaction" in text
        assert "last statement LOCK TABLE" in text
        # The worker counts a transaction after its commit.
        wait_until(lambda: by_name()["S.U"].pending is None, PATIENCE)
        assert by_name()["S.T"].pending is not None
        assert applier.overview == Overview(by_name()["S.U"].counters.changes, [], [], ["S.T"])
        locker.close()
        wait_until(lambda: not applier.blocked)
    assert (last(two, "t"), last(two, "u")) == (UPDATES, UPDATES)
    assert two.rows("SELECT sum(transactions), sum(conflicts) FROM olr_pg.ledger") == [APPLIED]
    told = [event["event"] for event in events if event.get("table") == "S.T"]
    assert (
        told.count("a table is blocked by another session")
        == told.count("a table is no longer blocked by another session")
        == 1
    )


def test_a_locked_table_can_be_paused_and_holds_nothing_up_then(two: Replication) -> None:
    """Its changes go to the hold, so that memory is not what they wait in."""
    locker = locked(two, "t")
    with applying(two) as applier:
        wait_until(lambda: bool(applier.blocked), PATIENCE)
        with psycopg.connect(two.target, autocommit=True) as connection:
            pause_table(connection, "olr_pg", "S.T", "s.t")
        wait_until(lambda: not applier.blocked, PATIENCE)
    assert (last(two, "u"), two.rows("SELECT count(*) > 0 FROM olr_pg.held")) == (
        UPDATES,
        [(True,)],
    )
    locker.close()
    with psycopg.connect(two.target, autocommit=True) as connection:
        unpause_table(connection, "olr_pg", "S.T")
    two.serve()
    two.apply()
    assert last(two, "t") == UPDATES


def test_a_row_that_somebody_has_locked_holds_its_table_up_only(two: Replication) -> None:
    with psycopg.connect(two.target) as locker:
        locker.execute("UPDATE s.t SET n = n WHERE id = 1")
        with applying(two) as applier:
            wait_until(lambda: last(two, "u") == UPDATES, PATIENCE)
            wait_until(lambda: [one.table for one in applier.blocked] == ["S.T"])
            locker.rollback()
    assert last(two, "t") == UPDATES


def test_a_stream_waits_in_its_place_and_says_for_whom(
    two: Replication, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("olr_pg.applier.target.statement_watch.BLOCKED_SECONDS", 0.5)
    locker = locked(two, "t")
    with applying(two, consistency=Consistency.TRANSACTION) as applier:
        wait_until(lambda: bool(applier.blocked), PATIENCE)
        assert "'night job'" in str(applier.blocked[0].error)
        locker.close()
    assert (last(two, "t"), last(two, "u")) == (UPDATES, UPDATES)


def test_what_the_applier_itself_writes_down_may_be_locked(
    two: Replication, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("olr_pg.applier.target.statement_watch.BLOCKED_SECONDS", 0.5)
    with psycopg.connect(two.target) as locker:
        locker.execute("LOCK TABLE olr_pg.subscription")
        with applying(two) as applier:
            wait_until(lambda: bool(applier.blocked), PATIENCE)
            assert [one.table for one in applier.blocked] == [""]
            locker.rollback()
    assert (last(two, "t"), last(two, "u")) == (UPDATES, UPDATES)


def test_a_commit_that_waits_for_a_standby_says_so(
    replicate: Callable[[str], Replication], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("olr_pg.applier.target.statement_watch.BLOCKED_SECONDS", 0.5)
    with own_cluster() as cluster:
        r = replicate(cluster.connect_string)
        r.execute("CREATE SCHEMA s; CREATE TABLE s.t (id bigint PRIMARY KEY, n numeric)")
        r.apply()  # makes the ledger
        for i in range(100):
            r.transaction(r.insert({"ID": i, "N": i}))
        r.serve()
        r.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        r.execute("SELECT pg_reload_conf()")
        with applying(r) as applier:
            wait_until(lambda: bool(applier.blocked), PATIENCE)
            assert "no standby confirms the commit" in str(applier.blocked[0].error)
            r.execute("ALTER SYSTEM RESET synchronous_standby_names")
            r.execute("SELECT pg_reload_conf()")
        assert r.rows("SELECT count(*), sum(n) FROM s.t") == [(100, sum(range(100)))]


@pytest.mark.parametrize("seed", range(1))
def test_locks_at_random_lose_and_double_nothing(two: Replication, seed: int) -> None:
    drawn = random.Random(seed)
    with applying(two, workers=1):
        for _ in range(12):
            locker = locked(two, drawn.choice("tu"))
            threading.Event().wait(drawn.choice((0.02, 0.3, 1.8)))  # the lock's time, no condition
            locker.close()
    assert (last(two, "t"), last(two, "u")) == (UPDATES, UPDATES)
    assert two.rows("SELECT sum(transactions), sum(conflicts) FROM olr_pg.ledger") == [APPLIED]


def test_a_lock_behind_which_too_much_is_unconfirmed_holds_everybody_until_a_pause(
    two: Replication,
) -> None:
    """What waits for the lock is not confirmed; once that fills its share, nothing more comes."""
    locker = locked(two, "t")
    with applying(two, queue_bytes=20_000) as applier:
        wait_until(lambda: bool(applier.crowded_out), PATIENCE)
        assert [one.table for one in applier.crowded_out] == ["S.T"]
        assert last(two, "u") < UPDATES
        with psycopg.connect(two.target, autocommit=True) as connection:
            pause_table(connection, "olr_pg", "S.T", "s.t")
        wait_until(lambda: last(two, "u") == UPDATES, PATIENCE)
        wait_until(lambda: not applier.crowded_out, PATIENCE)
    locker.close()
    assert last(two, "t") < UPDATES
    assert two.rows("SELECT count(*) > 0 FROM olr_pg.held") == [(True,)]
