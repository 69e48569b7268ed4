"""Statements that are given up: by their own bound, by another thread, behind a silent network.

Connect strings with timeouts: a server that vanished is noticed, and what was said holds.
"""

from __future__ import annotations

import re
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from olr_pg.postgres.bounded_connection import BoundedConnection, with_timeouts
from tests.simulation.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Callable

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
        "olr_pg/postgres/pooler.py",
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
