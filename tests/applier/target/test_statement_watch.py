"""Statements that PostgreSQL works on, and those that a network has lost: through a real proxy."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
import structlog.testing
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from olr_pg.applier.session.applier_session import Applier
from olr_pg.applier.target import statement_watch
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.statement_watch import StatementWatch
from tests.simulation.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Replication = Any  # tests/applier/conftest.py

PATIENCE = 60.0
ANSWER_SECONDS = 1.5


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def proxy(replication: Replication) -> Iterator[Proxy]:
    given = conninfo_to_dict(replication.target)
    place = (str(given["host"]), int(str(given["port"])))
    with Proxy("postgres", lambda: place) as proxy:
        yield proxy


def through(proxy: Proxy, replication: Replication) -> str:
    return make_conninfo(
        replication.target, host="127.0.0.1", port=proxy.port, connect_timeout=2, sslmode="disable"
    )


class Running:
    """An applier at work in a thread."""

    def __init__(self, applier: Applier, replication: Replication) -> None:
        self.applier = applier
        self.failures: list[BaseException] = []
        self._complete = replication.script.complete
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.applier.run(once=True, drained=self._complete.is_set)
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.failures.append(error)

    def join(self) -> None:
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()


@pytest.mark.parametrize(
    "directions", [("requests",), ("answers",), ("requests", "answers")], ids=str
)
def test_a_network_that_passes_nothing_on_for_a_while(
    replication: Replication, proxy: Proxy, directions: tuple[str, ...]
) -> None:
    """It is an outage, and over by itself; what was committed meanwhile is not applied again."""
    r = replication
    for i in range(3_000):
        r.transaction(r.insert({"ID": i, "N": i}))
    settings = r.settings(
        connect_string=through(proxy, r), answer_seconds=ANSWER_SECONDS, workers=2,
        batch_changes=20, batch_milliseconds=1, window=64,
    )  # fmt: skip
    running = Running(Applier(settings), r)
    until(lambda: running.failures or r.rows("SELECT count(*) FROM s.t") > [(50,)])
    assert running.failures == []
    proxy.silence(*directions)
    until(lambda: running.applier.outage)
    outage = running.applier.outage
    assert outage is not None
    assert outage.error.label == "OLR-05003"
    proxy.silence()
    running.join()
    assert running.failures == []
    assert r.rows("SELECT count(*), sum(n) FROM s.t") == [(3_000, sum(range(3_000)))]
    assert r.rows("SELECT sum(inserted), sum(conflicts) FROM olr_pg.ledger") == [(3_000, 0)]


def test_a_session_that_was_given_up_holds_nothing_any_more(
    replication: Replication, proxy: Proxy
) -> None:
    watch = StatementWatch(through(proxy, replication), ANSWER_SECONDS)
    watch.start()
    try:
        lost = connect(through(proxy, replication), watch=watch)
        lost.execute("BEGIN")
        lost.execute("LOCK TABLE s.t")
        proxy.silence("answers")
        with pytest.raises(psycopg.OperationalError):
            lost.execute("SELECT 1")
        lost.close()
        proxy.silence()
        with connect(through(proxy, replication), watch=watch) as again:
            again.execute("SET lock_timeout = '60s'")
            again.execute("SELECT count(*) FROM s.t")
    finally:
        watch.stop()


def test_what_postgresql_works_on_takes_its_time(replication: Replication, proxy: Proxy) -> None:
    """An index of hours is no lost statement; nor is one that waits for a lock."""
    watch = StatementWatch(through(proxy, replication), ANSWER_SECONDS)
    watch.start()
    seconds = 3 * ANSWER_SECONDS
    try:
        with connect(through(proxy, replication), watch=watch) as connection:
            connection.execute("SELECT pg_sleep(%s)", (seconds,))
            with psycopg.connect(replication.target) as locker:
                locker.execute("LOCK TABLE s.t")
                ending = threading.Timer(seconds, locker.rollback)
                ending.start()
                connection.execute("SELECT count(*) FROM s.t")
                ending.join()
            assert connection.given_up is None
    finally:
        watch.stop()


def test_a_slow_network_is_none_that_has_lost_something(
    replication: Replication, proxy: Proxy
) -> None:
    watch = StatementWatch(through(proxy, replication), ANSWER_SECONDS)
    watch.start()
    proxy.delay(0.2, each=True)
    try:
        with connect(through(proxy, replication), watch=watch) as connection:
            size = 1 << 19
            found = connection.execute("SELECT length(%s)", ("x" * size,)).fetchone()
            assert found == (size,)
            with connection.cursor().copy("COPY s.t FROM STDIN") as copy:
                copy.write("".join(f"{i}\t{i}\t{i}\n" for i in range(size // 12)))
            assert connection.given_up is None
    finally:
        watch.stop()


def test_an_applier_that_is_abandoned_ends_at_once(replication: Replication) -> None:
    r = replication
    r.transaction(r.insert({"ID": 1}))
    waits = (
        "SELECT count(*) {} FROM pg_stat_activity WHERE datname = current_database()"
        " AND application_name = 'olr_pg applier' AND wait_event_type = 'Lock'"
    )
    with psycopg.connect(r.target) as locker:
        locker.execute("LOCK TABLE s.t")
        running = Running(Applier(r.settings()), r)
        r.wait_for(waits.format("= 1"))
        running.applier.abandon()
        running.join()
        r.wait_for(waits.format("= 0"))  # it was cancelled
    assert r.rows("SELECT count(*) FROM s.t") == [(0,)]
    r.serve()
    r.apply()
    assert r.rows("SELECT count(*) FROM s.t") == [(1,)]


def test_a_command_says_once_who_holds_its_statement_up(
    replication: Replication, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of statements that follow, and of a lock that another session takes over."""
    monkeypatch.setattr(statement_watch, "BLOCKED_SECONDS", 0.2)
    monkeypatch.setattr(statement_watch, "LOOK_SECONDS", 0.1)
    r = replication
    with (
        structlog.testing.capture_logs() as events,
        psycopg.connect(r.target, application_name="night job") as locker,
        connect(r.target) as connection,
    ):

        def told() -> list[Any]:
            return [
                one
                for one in events
                if one["event"] == "another session blocks a statement of this command"
            ]

        def wait_for_it(statement: bytes) -> None:
            locker.execute("LOCK TABLE s.t")
            waiting = threading.Thread(target=connection.execute, args=(statement,))
            waiting.start()
            until(told)
            locker.rollback()
            waiting.join(PATIENCE)

        pid = locker.info.backend_pid
        wait_for_it(b"SELECT count(*) FROM s.t")
        wait_for_it(b"TRUNCATE s.t")
        (line,) = told()
    assert line["log_level"] == "warning"
    assert line["error"].label == "OLR-05098"
    assert f"pid {pid} ('night job'" in line["error"].detail
    assert "last statement LOCK TABLE" in line["error"].detail
