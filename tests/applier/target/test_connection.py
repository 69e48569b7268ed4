from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from olr_pg.applier.target.connection import connect, storable
from olr_pg.applier.target.ledger import ErrorRow, TableLedger, ensure_ledger
from olr_pg.load.cutover_steps import FAILED, note_step, read_steps
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


SHADOWS: Final = r"""
CREATE SCHEMA evil;
DO $do$
DECLARE
    one record;
BEGIN
    FOR one IN
        SELECT quote_ident(p.proname) AS name, pg_get_function_identity_arguments(p.oid) AS given,
            pg_get_function_result(p.oid) AS made, p.oid AS number
        FROM pg_proc AS p WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f'
    LOOP
        BEGIN
            EXECUTE format('CREATE FUNCTION evil.%s(%s) RETURNS %s LANGUAGE plpgsql AS '
                '''BEGIN RAISE EXCEPTION ''''shadowed''''; END''', one.name, one.given, one.made);
        EXCEPTION WHEN OTHERS THEN NULL;  -- a type that no function of a user can have
        END;
    END LOOP;
    FOR one IN
        SELECT o.oprname AS name, o.oprleft::regtype AS l, o.oprright::regtype AS r,
            p.proname AS made
        FROM pg_operator AS o JOIN pg_proc AS p ON p.oid = o.oprcode WHERE o.oprleft <> 0
    LOOP
        BEGIN
            EXECUTE format('CREATE OPERATOR evil.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = '
                'evil.%I)', one.name, one.l, one.r, one.made);
        EXCEPTION WHEN OTHERS THEN NULL;
        END;
    END LOOP;
    FOR one IN
        SELECT relname FROM pg_class
        WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind IN ('r', 'v')
    LOOP
        EXECUTE format('CREATE TABLE evil.%I (a int)', one.relname);
    END LOOP;
END
$do$;
"""
"""A schema with every function, operator, table and view of pg_catalog that a user can define."""


@pytest.mark.parametrize("path", ["$user,pg_catalog", "evil,PG_CATALOG", "1a,pg_catalog"])
def test_a_search_path_of_the_options_needs_no_quotation_marks(
    postgres_database: str, path: str
) -> None:
    """In these, PostgreSQL reads names as they are."""
    with connect(f"{postgres_database} options='-c search_path={path}'") as connection:
        rows = connection.execute("SELECT pg_catalog.current_schemas(true)").fetchone()
        assert rows is not None
        assert rows[0][0] == "pg_catalog"
        shown = connection.execute("SHOW search_path").fetchone()
        assert shown == (f"pg_catalog, {path}",)


def test_a_search_path_before_the_catalogue_changes_nothing(replication: Replication) -> None:
    """CVE-2018-1058: what another user's schema of this path has is never called."""
    r = replication
    r.execute(SHADOWS)
    (count,) = r.rows("SELECT count(*) FROM pg_proc WHERE pronamespace = 'evil'::regnamespace")[0]
    assert count > 2_000
    name = conninfo_to_dict(r.target)["dbname"]
    r.execute(f'ALTER DATABASE "{name}" SET search_path = evil, pg_catalog')
    with psycopg.connect(r.target) as plain, pytest.raises(psycopg.Error, match=r"shadowed|exist"):
        plain.execute("SELECT pg_backend_pid() FROM pg_class WHERE relname = 'x'::name")
    r.transaction(r.insert({"ID": 1, "N": 1, "V": "a"}))
    r.transaction(r.update({"ID": 1}, {"N": 2}))
    r.transaction(r.insert({"ID": 2, "N": 1}))
    r.transaction(r.delete({"ID": 2}))
    r.apply()
    with psycopg.connect(r.target, options="-c search_path=pg_catalog") as connection:
        assert connection.execute("SELECT id, n, v FROM s.t").fetchall() == [(1, 2, "a")]
