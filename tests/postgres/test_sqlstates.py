"""Every SQLSTATE has a meaning, and a real server's errors come to what they mean."""

from __future__ import annotations

import os
import select
import socket
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from olr_pg.applier.stopped.error_table import RefusedError, refused
from olr_pg.cli.group import coded
from olr_pg.errors import Code
from olr_pg.postgres.sqlstates import (
    CLASSES,
    CODES,
    Meaning,
    full_text,
    is_answer,
    meant,
    meant_by,
    state_of,
    text_without_values,
)
from olr_pg.schema.statement import Statement
from olr_pg.schema.trial import CREATED, FAILED, run_statements, tried
from tests.files.limits import no_more_files
from tests.postgres.errors_brought_about import SETUP, STATEMENTS, postgresql_codes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from psycopg import Connection

AWAY, PASSES, STATEMENT = Meaning.AWAY, Meaning.PASSES, Meaning.STATEMENT
OPERATOR, DEFECT = Meaning.OPERATOR, Meaning.DEFECT

BY_MEANING: Final = {
    AWAY: """
        08000 08001 08003 08004 08006 08007 08P01 25006 28000 28P01 3D000 53000 53100 53300
        57P01 57P02 57P03 57P04 58000 58030""",
    PASSES: """
        25P03 25P04 40000 40001 40003 40P01 53200 55006 55P03 57000 57014 57P05 72000 HV001 HV00N
        XX000""",
    OPERATOR: """
        0L000 0LP01 0P000 42501 53400 54001 55P02 58P01 58P02 58P03 F0000 F0001 XX001 XX002""",
    DEFECT: """
        03000 24000 25000 25001 25002 25003 25004 25005 25007 25008 25P01 25P02 26000 34000 3B000
        3B001 42601 42P02 42P03 42P05 42P14""",
}
"""What each code means that is not the statement's own; those that are stand in `OF_STATEMENTS`."""
OF_STATEMENTS: Final = {
    *("02", "09", "0A", "0B", "0F", "0Z", "10", "20", "21", "22", "23", "27", "2B", "2D", "2F"),
    *("38", "39", "3F", "40", "42", "44", "54", "55", "HV", "P0"),
}
"""Classes in which codes mean that the statement itself is the cause."""


def test_each_code_of_postgresql_is_classified() -> None:
    codes = postgresql_codes()
    expected = {code: m for m, names in BY_MEANING.items() for code in names.split()}
    assert set(expected) <= codes
    for code in sorted(codes):
        assert code[:2] in CLASSES, code
        assert meant_by(code).meaning is expected.get(code, STATEMENT), code
        assert code in expected or code[:2] in OF_STATEMENTS, code
    assert {code[:2] for code in codes} == set(CLASSES)
    assert set(CODES) <= codes
    assert [code for code, one in CODES.items() if one == CLASSES[code[:2]]] == []


def test_what_a_class_means_that_nobody_knows_is_the_statements() -> None:
    assert meant_by("ZZ999").meaning is STATEMENT


def _set_up(database: str) -> str:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(SETUP)
        connection.execute(
            "DO $$ BEGIN CREATE ROLE nobody; EXCEPTION WHEN duplicate_object THEN END $$"
        )
    return database


@pytest.fixture
def database(postgres_database: str) -> str:
    return _set_up(postgres_database)


@pytest.fixture(scope="module")
def unchanged(module_database: str) -> str:
    """A database for statements that fail, which leave nothing behind."""
    return _set_up(module_database)


@pytest.fixture
def connection(unchanged: str) -> Iterator[Connection[Any]]:
    with psycopg.connect(unchanged, autocommit=True) as connection:
        yield connection


def _error(work: Callable[[], object]) -> psycopg.Error:
    with pytest.raises(psycopg.Error) as caught:
        work()
    return caught.value


def _judge(error: psycopg.Error, state: str) -> None:
    """See what an error becomes of a command, and of a change in the applier."""
    assert state_of(error) == state
    found = meant_by(state)
    assert meant(error) == found
    assert coded(error).code == found.code
    assert coded(error).action
    if found.meaning in {AWAY, PASSES}:
        assert _error(lambda: refused(error)) is error
        return
    refusal = refused(error)
    assert isinstance(refusal, RefusedError)
    assert refusal.answer is not None
    assert refusal.answer.sqlstate == state
    if found.meaning is OPERATOR:
        assert refusal.error.code == found.code
    else:
        conflicts = state in {"23505", "23P01"}
        assert refusal.is_conflict is conflicts
        wanted = Code.CHANGE_CONFLICTS if conflicts else Code.CHANGE_REFUSED
        assert refusal.error.code == wanted


@pytest.mark.parametrize("state", STATEMENTS)
def test_an_error_of_a_statement_becomes_what_it_means(
    connection: Connection[Any], state: str
) -> None:
    _judge(_error(lambda: connection.execute(STATEMENTS[state].encode())), state)


def test_so_many_are_brought_about() -> None:
    assert len(STATEMENTS) >= 90
    assert set(STATEMENTS) <= postgresql_codes()
    assert {state[:2] for state in STATEMENTS} >= {
        *("0A", "20", "21", "22", "23", "25", "26", "27", "2B", "2D", "2F", "34", "39", "3B"),
        *("3D", "3F", "42", "44", "53", "54", "55", "57", "58", "P0", "XX"),
    }


def _raising(state: str) -> str:
    return f"DO $$ BEGIN RAISE EXCEPTION 'raised' USING ERRCODE = '{state}'; END $$"


def _see_list(connection: Connection[Any], state: str) -> None:
    error = _error(lambda: connection.execute(_raising(state).encode()))
    if state != "08P01":  # of a server's ERROR it is no pooler's
        _judge(error, state)
    two = [
        Statement("index", "S.FIRST", _raising(state)),
        Statement("table", "S.SECOND", f'CREATE TABLE "after {state}" ()'),
    ]
    if meant(error).meaning is AWAY:
        assert _error(lambda: run_statements(connection, two)).sqlstate == state
        assert _error(lambda: tried(connection, two)).sqlstate == state
        return
    done = run_statements(connection, two)
    assert [one.state for one in done] == [FAILED, CREATED]
    assert done[0].reason == "PostgreSQL: raised"


def test_each_code_that_a_server_sends_is_listed_or_ends_a_list_of_statements(
    connection: Connection[Any],
) -> None:
    """The list of statements goes on behind each but those of a server that takes nothing."""
    for state in sorted(postgresql_codes()):
        _see_list(connection, state)


def test_a_value_that_cannot_be_read_is_no_outage(connection: Connection[Any]) -> None:
    """PostgreSQL says 08P01 of it, as of a connection that a pooler ends."""
    query = "SELECT $1::numeric"
    result = connection.pgconn.exec_params(
        query.encode(), [b"\0\1"], param_types=[1700], param_formats=[1]
    )
    error = psycopg.errors.error_from_result(result)
    assert error.sqlstate == "08P01"
    assert meant(error).meaning is DEFECT
    assert isinstance(refused(error), RefusedError)


# --- what takes two sessions ---


@pytest.mark.parametrize("name", ["olr_pg.ledger", "gone.ledger"])
def test_a_dropped_ledger_is_not_any_missing_table(connection: Connection[Any], name: str) -> None:
    for statement in (f"SELECT FROM {name}", f"CREATE TABLE {name} ()"):
        error = _error(partial(connection.execute, statement.encode()))
        assert (meant(error).code == Code.LEDGER_UNUSABLE) == (name == "olr_pg.ledger")


def test_two_sessions_in_each_others_way(database: str) -> None:
    with (
        psycopg.connect(database) as first,
        psycopg.connect(database) as second,
    ):
        first.execute("UPDATE p SET v = 'a' WHERE id = 1")
        _judge(
            _error(lambda: second.execute("SELECT FROM p WHERE id = 1 FOR UPDATE NOWAIT")), "55P03"
        )
        second.rollback()
        second.execute("SET LOCAL lock_timeout = 20")
        error = _error(lambda: second.execute("ALTER TABLE p ADD x int"))
        _judge(error, "55P03")
        assert coded(error).code == Code.TARGET_BUSY
        second.rollback()
        second.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        second.execute("SELECT FROM p")
        first.commit()
        _judge(_error(lambda: second.execute("UPDATE p SET v = 'b' WHERE id = 1")), "40001")


def test_a_deadlock(database: str) -> None:
    with psycopg.connect(database) as first, psycopg.connect(database) as second:
        for one, number in (first, 1), (second, 2):
            one.execute("SET LOCAL deadlock_timeout = '50ms'")
            one.execute("UPDATE p SET v = 'a' WHERE id = %s", [number])
        errors = list[psycopg.Error]()

        def cross(one: Connection[Any], number: int) -> None:
            try:
                one.execute("UPDATE p SET v = 'b' WHERE id = %s", [number])
            except psycopg.Error as error:
                errors.append(error)
                one.rollback()

        crossing = [threading.Thread(target=cross, args=each) for each in ((first, 2), (second, 1))]
        for thread in crossing:
            thread.start()
        for thread in crossing:
            thread.join()
        assert len(errors) == 1
        _judge(errors[0], "40P01")


@pytest.mark.parametrize(
    ("setting", "state", "transaction"),
    [
        ("idle_session_timeout", "57P05", False),
        ("idle_in_transaction_session_timeout", "25P03", True),
    ],
)
def test_a_session_that_the_server_ends_for_its_idleness(
    database: str, setting: str, state: str, transaction: bool
) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f"SET {setting} = 20")
        if transaction:
            connection.execute("BEGIN")
        # The socket becomes readable when the server says that it ends the session.
        select.select([connection.fileno()], [], [], 60)
        _judge(_error(lambda: connection.execute("SELECT 1")), state)


# --- connections that are refused or lost ---


@pytest.fixture
def limited(database: str) -> Iterator[str]:
    """A role of this test's own, and the connection string with it."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE ROLE limited LOGIN PASSWORD 'right'")
        yield make_conninfo(database, user="limited", password="right")
        connection.execute("DROP OWNED BY limited; DROP ROLE limited")


def _connects(text: str) -> psycopg.Error:
    return _error(lambda: psycopg.connect(text, connect_timeout=5))


def test_refused_connections(database: str, limited: str) -> None:
    _judge(_connects(make_conninfo(limited, password="wrong")), "28P01")
    with psycopg.connect(database, autocommit=True) as owner:
        owner.execute("ALTER ROLE limited CONNECTION LIMIT 0")
        _judge(_connects(limited), "53300")
        owner.execute("ALTER ROLE limited CONNECTION LIMIT -1")
        name = owner.info.dbname
        owner.execute(f'ALTER DATABASE "{name}" CONNECTION LIMIT 0'.encode())
        _judge(_connects(limited), "53300")
        owner.execute(f'ALTER DATABASE "{name}" CONNECTION LIMIT -1'.encode())
        owner.execute(f'REVOKE CONNECT ON DATABASE "{name}" FROM public'.encode())
        shut_out = _connects(limited)
        assert state_of(shut_out) == "42501"
        assert meant(shut_out).meaning is AWAY
        assert "GRANT CONNECT" in coded(shut_out).action
        owner.execute("ALTER ROLE limited NOLOGIN")
        _judge(_connects(limited), "28000")
    _judge(_connects(make_conninfo(database, dbname="never_made")), "3D000")
    _judge(_connects(make_conninfo(database, target_session_attrs="standby")), "25006")
    tls = _connects(make_conninfo(database, sslmode="require"))
    assert meant(tls).meaning is AWAY
    assert "sslmode" in coded(tls).action


def test_nobody_listens_or_answers() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        _judge(_connects(f"host=127.0.0.1 port={port}"), "08001")
        closed.listen()
        error = _error(lambda: psycopg.connect(f"host=127.0.0.1 port={port}", connect_timeout=1))
        _judge(error, "08001")
    _judge(_connects("host=never.invalid"), "08001")
    _judge(_connects("host=/never/made"), "08001")


_NO_SOCKET: Final = "the operating system gave this process no socket"


@pytest.mark.parametrize(
    ("user", "reasons"),
    [
        ("user=x passfile=/none", [_NO_SOCKET]),
        # The C library may know the user already, and then opens no file to look it up.
        ("", [_NO_SOCKET, f"could not look up local user ID {os.getuid()}: Too many open files"]),
    ],
)
def test_no_socket_is_a_limit_of_this_machine(user: str, reasons: list[str]) -> None:
    with no_more_files(), pytest.raises(psycopg.OperationalError) as caught:
        psycopg.connect(f"host=127.0.0.1 port=1 sslmode=disable {user}")
    failure = coded(caught.value)
    assert failure.code == Code.POSTGRES_UNREACHABLE
    assert failure.detail in reasons
    assert "ulimit -n" in failure.action
    assert meant(caught.value).meaning is AWAY


def test_a_lost_connection(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        with socket.socket(fileno=connection.fileno()) as ours:
            ours.shutdown(socket.SHUT_RDWR)
            ours.detach()
        _judge(_error(lambda: connection.execute("SELECT 1")), "08006")
        _judge(_error(lambda: connection.execute("SELECT 1")), "08006")
    _judge(_error(lambda: connection.execute("SELECT 1")), "08006")


def test_what_the_driver_refuses_itself(connection: Connection[Any]) -> None:
    value = _error(lambda: connection.execute("SELECT %s", ["a\0b"]))
    assert state_of(value) is None
    assert meant(value).meaning is STATEMENT
    query = _error(lambda: connection.execute("SELECT %s", []))
    assert meant(query).meaning is DEFECT
    assert coded(query).code == Code.INTERNAL


@pytest.mark.parametrize(
    ("words", "state"),
    [
        ("FATAL:  sorry, too many clients already", "53300"),
        ("FATAL:  remaining connection slots are reserved for roles with SUPERUSER", "53300"),
        ("FATAL:  the database system is starting up", "57P03"),
        ("FATAL:  the database system is not yet accepting connections", "57P03"),
        ('FATAL:  no pg_hba.conf entry for host "10.0.0.1", user "x"', "28000"),
        ('FATAL:  database "x" is not currently accepting connections', "3D000"),
        ("FATAL:  terminating connection due to administrator command", "57P01"),
        # As PostgreSQL 15 with these languages said it.
        ("FATAL:  Passwort-Authentifizierung für Benutzer »x« fehlgeschlagen", "08004"),
        ('ВАЖНО:  пользователь "x" не прошёл проверку подлинности (по паролю)', "08004"),
    ],
)
def test_words_of_servers_that_refuse(words: str, state: str) -> None:
    error = psycopg.OperationalError(f'connection failed: connection to "x" failed: {words}')
    assert state_of(error) == state
    assert is_answer(error)


@pytest.mark.parametrize(
    "words",
    [
        "Connection refused\n\tIs the server running on that host and accepting connections?",
        "server closed the connection unexpectedly\n\tThis probably means the server terminated",
        "timeout expired",
        "SSL error: certificate verify failed",
    ],
)
def test_words_of_libpq_are_no_answer(words: str) -> None:
    error = psycopg.OperationalError(f'connection failed: connection to "x" failed: {words}')
    assert not is_answer(error)


SECRET = "4711secret"


@pytest.fixture
def with_secret(postgres: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres, autocommit=True) as with_secret:
        with_secret.execute(
            "CREATE TEMP TABLE t (id text PRIMARY KEY, n numeric(3), d date NOT NULL,"
            " v varchar(3) CHECK (v <> 'no'), EXCLUDE (n WITH =));"
            f"INSERT INTO t VALUES ('{SECRET}', 1, now(), 'v')"
        )
        yield with_secret


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("INSERT INTO t VALUES ('{}', 2, now(), 'v')", "t_pkey"),
        ("INSERT INTO t VALUES ('{} ', 1, now(), 'v')", "t_n_excl"),
        ("INSERT INTO t VALUES ('{} ', 3, now(), 'no')", "t_v_check"),
        ("INSERT INTO t VALUES ('{} ', 3, NULL, 'v')", '"d"'),
        ("INSERT INTO t VALUES ('x', 3, now(), '{}')", "too long"),
        ("SELECT '{}'::int", "invalid input syntax for type integer"),
        ("SELECT '{}'::timestamp", "invalid input syntax for type timestamp"),
        ("SELECT '9999999999999{}'::int", "integer"),
        ("SELECT '{{\"a\": {}}}'::json", "json"),
        ("SELECT chr(0) || '{}'", "null character"),
        ("DO $$ BEGIN RAISE EXCEPTION 'what about {}?'; END $$", "a function of the target"),
    ],
)
def test_no_value_is_in_the_text(
    with_secret: psycopg.Connection, statement: str, words: str
) -> None:
    with pytest.raises(psycopg.Error) as caught:
        with_secret.execute(statement.format(SECRET).encode())
    text = text_without_values(caught.value)
    assert SECRET not in text
    assert "4711" not in text
    assert words in text


def test_the_full_text_has_the_detail(with_secret: psycopg.Connection) -> None:
    with pytest.raises(psycopg.Error) as caught:
        with_secret.execute(f"INSERT INTO t VALUES ('{SECRET}', 2, now(), 'v')".encode())
    assert SECRET in full_text(caught.value)
