"""Connection poolers: one that shares sessions or does not reset them is refused before anything
is set; one that does neither is used.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from olr_pg.applier.target.connection import connect
from olr_pg.errors import Code, OlrPgError
from olr_pg.postgres import pooler
from olr_pg.postgres.bounded_connection import BoundedConnection
from olr_pg.postgres.sqlstates import is_out_of_reach, is_transient, target_error
from tests.postgres.pooled import NEEDS_PGBOUNCER, Pool, pooled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
    monkeypatch.setattr(pooler, "_WAIT_SECONDS", 1.0)
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
