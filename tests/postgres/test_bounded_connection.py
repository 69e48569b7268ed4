"""Statements that are given up: by their own bound, by another thread, behind a silent network.

Connect strings with timeouts: a server that vanished is noticed, and what was said holds.

Connection poolers: one that shares sessions or does not reset them is refused before anything
is set; one that does neither is used.
"""

from __future__ import annotations

import re
import threading
import time
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from olr_pg.applier.target.connection import connect
from olr_pg.errors import Code, OlrPgError
from olr_pg.postgres import bounded_connection
from olr_pg.postgres.bounded_connection import BoundedConnection, with_timeouts
from olr_pg.postgres.sqlstates import is_out_of_reach, is_transient, target_error
from tests.postgres.pooled import NEEDS_PGBOUNCER, Pool, pooled
from tests.simulation.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


PATIENCE = 120.0
ROOT = Path(__file__).parents[2]


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def behind(postgres: str, proxy: Proxy) -> str:
    return make_conninfo(postgres, host="127.0.0.1", port=proxy.port, sslmode="disable")


def proxy_to(postgres: str) -> Proxy:
    given = conninfo_to_dict(postgres)
    return Proxy("postgres", lambda: (str(given["host"]), int(str(given["port"]))))


def test_answers_come_as_ever(postgres_database: str) -> None:
    with BoundedConnection.connect(postgres_database, autocommit=True) as connection:
        connection.answer_seconds = PATIENCE
        assert connection.execute("SELECT 7").fetchone() == (7,)
        with connection.pipeline():
            found = [connection.execute("SELECT %s::int", (n,)) for n in range(3)]
        assert [one.fetchone() for one in found] == [(0,), (1,), (2,)]
        connection.execute("CREATE TABLE t (a int)")
        with connection.cursor().copy("COPY t FROM STDIN") as copy:
            copy.write(b"1\n2\n")
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute("SELECT 1/0")
        assert connection.execute("SELECT sum(a) FROM t").fetchone() == (3,)
        assert connection.waiting_since is None


def test_a_statement_has_its_bound(postgres_database: str) -> None:
    with BoundedConnection.connect(postgres_database, autocommit=True) as connection:
        connection.answer_seconds = 0.3
        with pytest.raises(psycopg.OperationalError, match="gave no answer for"):
            connection.execute("SELECT pg_sleep(60)")
        assert connection.closed
        with pytest.raises(psycopg.OperationalError):
            connection.rollback()


@pytest.mark.parametrize("cancel", [True, False])
def test_another_thread_gives_it_up(postgres_database: str, *, cancel: bool) -> None:
    failures: list[BaseException] = []
    with (
        psycopg.connect(postgres_database, autocommit=True) as other,
        BoundedConnection.connect(postgres_database, autocommit=True) as connection,
    ):
        pid = connection.info.backend_pid

        def wait() -> None:
            try:
                connection.execute("SELECT pg_sleep(600)")
            except psycopg.Error as error:
                failures.append(error)

        def is_active() -> bool:
            found = other.execute("SELECT state FROM pg_stat_activity WHERE pid = %s", (pid,))
            return found.fetchone() == ("active",)

        thread = threading.Thread(target=wait)
        thread.start()
        until(is_active)
        assert connection.waiting_since is not None
        connection.give_up("because of the test", cancel=cancel)
        thread.join(PATIENCE)
        assert isinstance(failures[0], psycopg.OperationalError)
        assert str(failures[0]) == connection.given_up == "because of the test"
        if cancel:
            until(lambda: not is_active())
        else:
            assert is_active()  # nobody has told it
            other.execute("SELECT pg_terminate_backend(%s)", (pid,))


@pytest.mark.parametrize("direction", ["requests", "answers"])
def test_a_network_that_passes_nothing_on(postgres_database: str, direction: str) -> None:
    with (
        proxy_to(postgres_database) as proxy,
        BoundedConnection.connect(behind(postgres_database, proxy), autocommit=True) as connection,
    ):
        before = connection.transported()
        assert before is not None
        assert connection.execute("SELECT 1").fetchone() == (1,)
        after = connection.transported()
        assert after is not None
        assert after[1] > before[1]
        proxy.silence(direction)
        connection.answer_seconds = 0.5
        with pytest.raises(psycopg.OperationalError, match="no answer"):
            connection.execute("SELECT 1")
        assert connection.transported() is None


@pytest.mark.parametrize("autocommit", [True, False])
def test_times_are_read_whatever_style_the_session_begins_with(
    postgres_database: str, autocommit: bool
) -> None:
    text = make_conninfo(
        postgres_database, options="-c datestyle=SQL,DMY -c intervalstyle=sql_standard"
    )
    query = "SELECT timestamptz '2026-02-01 03:04:05+00', interval '-1 day 02:03:04'"
    with psycopg.connect(text) as plain, pytest.raises(NotImplementedError):
        plain.execute(query).fetchone()
    with BoundedConnection.connect(text, autocommit=autocommit) as connection:
        assert connection.answer_seconds is None
        assert connection.info.transaction_status.name == "IDLE"
        connection.rollback()
        found = connection.execute(query).fetchone()
        assert found == (
            datetime(2026, 2, 1, 3, 4, 5, tzinfo=UTC),
            timedelta(days=-1, hours=2, minutes=3, seconds=4),
        )


def test_every_part_that_connects_to_a_target_reads_times_so() -> None:
    """A connection of psycopg itself is only for these modules, whose servers are their own or
    which read no times as text.
    """
    plain = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "olr_pg").rglob("*.py")
        if re.search(
            r"psycopg\.(Async)?(connect|Connection\.connect)\(|psycopg\.AsyncConnection",
            path.read_text("utf-8"),
        )
    }
    assert {name for name in plain if not name.startswith("olr_pg/bench/")} == {
        "olr_pg/appliance/demo_run.py",
        "olr_pg/postgres/bounded_connection.py",
        "olr_pg/postgres/embedded.py",
    }


def test_a_server_that_vanishes_is_noticed_within_a_minute_or_so() -> None:
    found = conninfo_to_dict(with_timeouts("host=h dbname=d"))
    assert (found["host"], found["dbname"]) == ("h", "d")
    idle, interval, count = (
        int(str(found[f"keepalives_{name}"])) for name in ("idle", "interval", "count")
    )
    assert idle + interval * count <= 60
    assert int(str(found["tcp_user_timeout"])) <= 60_000
    assert int(str(found["connect_timeout"])) > 0


def test_what_the_connect_string_says_holds() -> None:
    found = conninfo_to_dict(with_timeouts("postgresql://u@h:1/d?keepalives_idle=7"))
    assert (found["keepalives_idle"], found["user"], found["port"]) == ("7", "u", "1")


def test_no_connect_string() -> None:
    with pytest.raises(psycopg.ProgrammingError):
        with_timeouts("no connect string")


pytestmark = NEEDS_PGBOUNCER

SETTINGS: Final = """
SELECT name, setting FROM pg_settings WHERE context IN ('user', 'superuser') AND name NOT IN
    ('application_name', 'client_encoding', 'DateStyle', 'TimeZone') ORDER BY name
"""
"""Without those that pgbouncer restores for each client."""


def settings_of_all(pool: Pool, sessions: int = 4) -> list[list[tuple[Any, ...]]]:
    """The settings of each session of a pool, as its next clients get them."""
    with ExitStack() as stack:
        clients = [stack.enter_context(psycopg.connect(pool.connect_string)) for _ in range(4)]
        assert sessions <= len(clients)
        return [one.execute(SETTINGS, prepare=False).fetchall() for one in clients[:sessions]]


@pytest.fixture
def odd_database(postgres_database: str) -> str:
    """A database whose settings olr_pg has to change at once."""
    name = conninfo_to_dict(postgres_database)["dbname"]
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        for setting in ("IntervalStyle = 'iso_8601'", "search_path = public, pg_catalog"):
            connection.execute(f'ALTER DATABASE "{name}" SET {setting}'.encode())
    return postgres_database


def plain(connect_string: str) -> BoundedConnection:
    return BoundedConnection.connect(connect_string, autocommit=True)


@pytest.mark.parametrize("opened", [connect, plain])
@pytest.mark.parametrize("mode", ["transaction", "statement"])
def test_one_that_shares_sessions_is_refused_and_keeps_its_settings(
    odd_database: str, mode: str, opened: Callable[[str], BoundedConnection]
) -> None:
    with pooled(odd_database, mode) as pool:
        with pooled(odd_database, "transaction") as fresh:
            expected = settings_of_all(fresh)
        with pytest.raises(OlrPgError) as caught:
            opened(pool.connect_string)
        assert caught.value.code == Code.POOLER_SHARES_SESSIONS
        pool.configure("transaction")
        pool.reload()
        assert settings_of_all(pool) == expected


def test_one_is_recognised_whatever_its_other_clients_do(odd_database: str) -> None:
    over = threading.Event()
    with pooled(odd_database, "transaction", "server_lifetime = 0") as pool:

        def work() -> None:
            with psycopg.connect(pool.connect_string, autocommit=True) as other:
                other.prepare_threshold = None
                while not over.is_set():
                    other.execute("SELECT pg_sleep(0.0005)")

        others = [threading.Thread(target=work) for _ in range(3)]
        for one in others:
            one.start()
        try:
            for _ in range(20):
                with pytest.raises(OlrPgError) as caught:
                    connect(pool.connect_string)
                assert caught.value.code == Code.POOLER_SHARES_SESSIONS
        finally:
            over.set()
            for one in others:
                one.join()


@pytest.mark.parametrize("turns", [0, 1])
def test_one_that_does_not_reset_sessions_is_refused(odd_database: str, turns: int) -> None:
    turn = f"server_round_robin = {turns}"
    with pooled(odd_database, "session", turn) as fresh:
        expected = settings_of_all(fresh)
    with pooled(odd_database, "session", "server_reset_query =", turn) as pool:
        settings_of_all(pool)  # it has all its sessions
        with pytest.raises(OlrPgError) as caught:
            connect(pool.connect_string)
        assert caught.value.code == Code.POOLER_KEEPS_SETTINGS
        assert settings_of_all(pool) == expected


@pytest.mark.parametrize("size", [1, 4])
def test_one_that_gives_a_session_to_keep_is_used(
    odd_database: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_connection, "_WAIT_SECONDS", 1.0)
    with pooled(odd_database, "session", f"default_pool_size = {size}") as pool:
        expected = settings_of_all(pool, sessions=0)
        with connect(pool.connect_string) as connection:
            pid = connection.execute("SELECT pg_backend_pid()").fetchone()
            assert pid != (connection.info.backend_pid,)
            row = connection.execute("SHOW session_replication_role").fetchone()
            assert row == ("replica",)
        assert settings_of_all(pool, sessions=0) == expected


def test_a_wait_that_the_pooler_ends_is_not_taken_for_a_shared_session(odd_database: str) -> None:
    options = "default_pool_size = 1", "query_wait_timeout = 1"
    with pooled(odd_database, "session", *options) as pool, connect(pool.connect_string) as own:
        assert own.execute("SHOW session_replication_role").fetchone() == ("replica",)


def test_a_session_is_not_passed_on_where_the_mode_was_changed(odd_database: str) -> None:
    with pooled(odd_database, "session", "default_pool_size = 1") as pool:
        with connect(pool.connect_string) as connection:
            connection.execute("SELECT 1")
            pool.configure("transaction", "default_pool_size = 1")
            pool.reload()
            connection.execute("SELECT 1")  # the pool gets the session back
        with psycopg.connect(pool.connect_string) as other:
            assert other.execute("SHOW session_replication_role").fetchone() == ("origin",)


@pytest.mark.parametrize("end", [BoundedConnection.commit, BoundedConnection.rollback])
def test_a_session_that_ends_behind_the_pooler_is_an_outage(
    postgres_database: str, end: Callable[[BoundedConnection], None]
) -> None:
    with (
        pooled(postgres_database, "session") as pool,
        psycopg.connect(postgres_database, autocommit=True) as direct,
        BoundedConnection.connect(pool.connect_string) as connection,
    ):
        (pid,) = connection.execute("SELECT pg_backend_pid()").fetchone() or (0,)
        direct.execute("SELECT pg_terminate_backend(%s, 60000)", [pid])
        with pytest.raises(psycopg.Error) as caught:
            end(connection)
        assert is_out_of_reach(caught.value), caught.value


def test_a_session_that_ends_during_the_check_is_no_shared_session(
    postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = BoundedConnection.transaction

    @contextmanager
    def ended(connection: BoundedConnection) -> Iterator[object]:
        with psycopg.connect(postgres_database, autocommit=True) as direct:
            direct.execute(
                "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND state = 'idle'"
            )
        with begin(connection) as begun:
            yield begun

    monkeypatch.setattr(BoundedConnection, "transaction", ended)
    with pooled(postgres_database, "session") as pool:
        with pytest.raises(psycopg.Error) as caught:
            plain(pool.connect_string)
        assert is_out_of_reach(caught.value)


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("max_client_conn = 1", "no more connections allowed"),
        ("query_wait_timeout = 1", "query_wait_timeout"),
    ],
)
def test_a_full_pool_is_named(postgres_database: str, option: str, reason: str) -> None:
    with (
        pooled(postgres_database, "session", "default_pool_size = 1", option) as pool,
        psycopg.connect(pool.connect_string) as other,
    ):
        other.execute("SELECT 1")
        with pytest.raises(psycopg.OperationalError) as caught:
            connect(pool.connect_string)
    assert is_transient(caught.value)
    told = target_error(caught.value)
    assert told.code == Code.TARGET_CONNECTIONS
    assert reason in told.detail
    assert "default_pool_size" in told.action


def test_a_parameter_that_the_pooler_refuses_is_named(postgres_database: str) -> None:
    with (
        pooled(postgres_database, "session") as pool,
        pytest.raises(psycopg.OperationalError) as caught,
    ):
        plain(pool.connect_string + " options='-c jit=off'")
    told = target_error(caught.value)
    assert "unsupported startup parameter: options" in told.detail
    assert "remove the parameter from the connection string" in told.action
