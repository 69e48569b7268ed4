from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from olr_pg.applier.target.connection import connect, storable
from olr_pg.applier.target.ledger import ErrorRow, TableLedger, ensure_ledger
from olr_pg.load.steps_done import FAILED, note_step, read_steps
from olr_pg.postgres.bounded_connection import with_timeouts
from olr_pg.postgres.sqlstates import plain_words, target_error
from tests.applier.target.test_database_kind import encoded
from tests.simulation.proxy import Proxy, Trip

if TYPE_CHECKING:
    from psycopg import Connection

Replication = Any  # tests/applier/conftest.py


def _keepalive(connection: Connection[Any]) -> tuple[int, int, int, int]:
    """What the kernel does on the connection: idle, interval (s), count; user timeout (ms)."""
    with socket.socket(fileno=connection.fileno()) as there:
        tcp = socket.IPPROTO_TCP
        options = (
            socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT,
        )  # fmt: skip
        found = [there.getsockopt(tcp, option) for option in options]
        assert there.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        there.detach()
    return found[0], found[1], found[2], found[3]


def test_a_server_that_vanished_is_noticed(replication: Replication) -> None:
    """After a minute, not after the two hours and more that systems wait by themselves."""
    with connect(make_conninfo(replication.target, host="127.0.0.1")) as connection:
        assert _keepalive(connection) == (30, 10, 3, 60_000)


def test_a_network_that_passes_nothing_on_ends_the_setting_up(
    replication: Replication, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of commands, too, which have no watch."""
    monkeypatch.setattr("olr_pg.applier.target.connection._SET_UP_SECONDS", 0.3)
    given = conninfo_to_dict(replication.target)
    place = (str(given["host"]), int(str(given["port"])))

    def silence(_message: bytes) -> bool:
        proxy.silence("answers")
        return False

    with Proxy("postgres", lambda: place) as proxy:
        # The first statement of the connection, by its type of message.
        proxy.arm(
            Trip("requests", lambda m: m[:1] in b"QP" and silence(m), 1, "before", lambda: None,
                 cuts=False)
        )  # fmt: skip
        own = make_conninfo(
            replication.target, host="127.0.0.1", port=proxy.port, sslmode="disable"
        )
        with pytest.raises(psycopg.OperationalError, match="no answer"):
            connect(own)


def test_what_the_connect_string_says_holds(replication: Replication) -> None:
    own = make_conninfo(replication.target, host="127.0.0.1", keepalives_idle=7, keepalives_count=9)
    with connect(own) as connection:
        assert _keepalive(connection) == (7, 10, 9, 60_000)
    assert "connect_timeout=2" in with_timeouts("host=localhost connect_timeout=2")
    assert "tcp_user_timeout=5 " in with_timeouts("postgresql://u@h:1/d?tcp_user_timeout=5")


def test_timeouts_of_the_role_or_database_do_not_hold(replication: Replication) -> None:
    names = ["statement_timeout", "idle_in_transaction_session_timeout", "idle_session_timeout"]
    options = " ".join(f"-c {name}=1500" for name in names)
    own = make_conninfo(replication.target, options=f"{options} -c synchronous_commit=off")
    with connect(own) as connection:
        if connection.info.server_version >= 170_000:
            names.append("transaction_timeout")
        found = [connection.execute(f"SHOW {name}").fetchone() for name in names]
        assert found == [("0",)] * len(names)
        assert connection.execute("SHOW synchronous_commit").fetchone() == ("on",)
    with connect(make_conninfo(own, options="-c synchronous_commit=remote_apply")) as connection:
        assert connection.execute("SHOW synchronous_commit").fetchone() == ("remote_apply",)


def test_a_backslash_in_a_literal_is_an_ordinary_character(replication: Replication) -> None:
    given = make_conninfo(replication.target, options="-c standard_conforming_strings=off")
    with connect(given) as connection:
        assert connection.execute(rb"SELECT 'a\' || 'b'").fetchone() == ("a\\b",)


def test_commits_wait_for_the_disk_whatever_the_server_is_told(replication: Replication) -> None:
    """An administrator sets ``synchronous_commit`` for all sessions, those that are open too."""
    read = "SELECT pg_conf_load_time(), current_setting('synchronous_commit')"

    def reload(setting: str) -> None:
        ((before, _),) = applier.execute(read).fetchall()
        replication.execute(setting)
        replication.execute("SELECT pg_reload_conf()")
        while applier.execute(read).fetchall()[0][0] == before:
            time.sleep(0.005)

    with connect(replication.target) as applier:
        try:
            reload("ALTER SYSTEM SET synchronous_commit = off")
            assert applier.execute(read).fetchall()[0][1] == "on"
        finally:
            reload("ALTER SYSTEM RESET synchronous_commit")


def test_words_are_on_one_line_and_without_asides() -> None:
    error = psycopg.OperationalError(
        "consuming input failed: server closed the connection unexpectedly\n\tThis probably means"
        " the server terminated abnormally\n\tbefore or while processing the request.\n"
    )
    assert plain_words(error) == "server closed the connection unexpectedly"


def test_a_server_that_takes_no_writes_is_not_said_to_be_away(replication: Replication) -> None:
    text = make_conninfo(replication.target, options="-c default_transaction_read_only=on")
    with connect(text, replica=False) as connection, pytest.raises(psycopg.Error) as caught:
        connection.execute("CREATE TABLE s.written ()")
    told = str(target_error(caught.value, target="a host"))
    assert told.startswith(
        "OLR-05092: PostgreSQL accepts no writes: cannot execute CREATE TABLE in"
    )


_TEXT = "CREATE TEMPORARY TABLE … „ж“"


@pytest.mark.parametrize(
    ("encoding", "stored"),
    [("UTF8", _TEXT), ("LATIN1", "CREATE TEMPORARY TABLE \\u2026 \\u201e\\u0436\\u201c")],
)
def test_messages_and_steps_are_kept(postgres: str, encoding: str, stored: str) -> None:
    row = ErrorRow(
        commit_scn=1, xid="1.2.3", position=0, scn=1, row_id=None, operation="ddl", code=5008,
        sqlstate=None, message=_TEXT, statement=_TEXT, before=None, after=None,
        resolution="stopped",
    )  # fmt: skip
    with encoded(postgres, encoding) as database, connect(database) as connection:
        ensure_ledger(connection)
        TableLedger("olr_pg", "S.T", "s.t").record(connection, row)
        found = connection.execute("SELECT message, statement FROM olr_pg.error").fetchall()
        assert found == [(stored, stored)]
        note_step(connection, "olr_pg", "report", FAILED, {"reasons": [_TEXT], "count": 1})
        assert read_steps(connection, "olr_pg")["report"].detail == {
            "reasons": [stored],
            "count": 1,
        }
        assert storable(connection, None) is None
