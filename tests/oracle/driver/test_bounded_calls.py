"""Logins and calls to a database behind a network that passes nothing on, through a real proxy.

Errors of the driver as errors of the catalogue.
"""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import oracledb
import pytest
from sqlalchemy import text

from olr_pg.errors import Code, OlrPgError
from olr_pg.fallback.fallback_run import _passing, _PassingError
from olr_pg.oracle import oracle_connection
from olr_pg.oracle.driver.bounded_calls import (
    CLIENT_LIBRARY,
    CREDENTIALS,
    LOST,
    NOT_REACHED,
    OTHER,
    PASSING,
    PRIVILEGE,
    SERVICE,
    SNAPSHOT_AGE,
    UNREACHABLE,
    BoundedCalls,
    HostError,
    SilenceError,
    is_transient,
    oracle_error,
)
from olr_pg.oracle.oracle_connection import OracleDatabase, open_connection
from tests.simulation.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.config.source_section import OracleSource


SILENT_SECONDS = 0.6
LOGIN_SECONDS = 1.0
PATIENT_SECONDS = 60.0


class Patience:
    """How long logins may take: long, since the machine may be busy, but where none is answered."""

    def __init__(self) -> None:
        self.made: list[BoundedCalls] = []
        self.seconds = PATIENT_SECONDS

    def make(self, arguments: dict[str, Any]) -> BoundedCalls:
        self.made.append(BoundedCalls(arguments, silent_seconds=SILENT_SECONDS))
        self._set()
        return self.made[-1]

    @contextmanager
    def lost(self) -> Iterator[None]:
        """While Oracle has not answered."""
        self.seconds = LOGIN_SECONDS
        self._set()
        yield
        self.seconds = PATIENT_SECONDS
        self._set()

    def _set(self) -> None:
        for one in self.made:
            one._login_seconds = one._probe_seconds = self.seconds


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> Patience:
    patience = Patience()
    monkeypatch.setattr(oracle_connection, "BoundedCalls", patience.make)
    return patience


@pytest.fixture
def proxy(source: OracleSource) -> Iterator[Proxy]:
    host, _, rest = source.server.rpartition("//")[2].partition(":")
    place = (host, int(rest.partition("/")[0]))
    with Proxy("none", lambda: place) as proxy:
        yield proxy


@pytest.fixture
def through(source: OracleSource, proxy: Proxy) -> OracleSource:
    """The source behind the proxy."""
    service = source.server.rpartition("/")[2]
    return source.model_copy(update={"server": f"//127.0.0.1:{proxy.port}/{service}"})


@pytest.fixture
def database(through: OracleSource) -> Iterator[OracleDatabase]:
    one = OracleDatabase(through)
    yield one
    one.close()


def ask(database: OracleDatabase) -> Any:
    question = text("SELECT 'x' FROM DUAL")
    return database.read("testing", lambda connection: connection.execute(question).scalar())


def test_a_login_that_nobody_answers_is_bounded() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        calls = BoundedCalls(
            {"user": "a", "password": "b", "dsn": f"127.0.0.1:{deaf.getsockname()[1]}/x"},
            login_seconds=0.3,
        )
        with pytest.raises(SilenceError, match="Oracle has not answered a login"):
            calls.connect()


def test_a_host_that_cannot_be_found_is_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    calls = BoundedCalls({"user": "a", "password": "b", "dsn": "oracel.example.com:1521/x"})
    with pytest.raises(HostError) as caught:
        calls.connect()
    error = oracle_error(caught.value, "connecting")
    assert error.code == Code.ORACLE_UNREACHABLE
    assert is_transient(error)
    assert error.detail.endswith(
        "the host of the address cannot be found: Name or service not known"
    )


@pytest.mark.parametrize("directions", [("requests",), ("answers",)], ids=str)
def test_a_silent_network_is_an_outage_that_ends_by_itself(
    database: OracleDatabase, proxy: Proxy, patience: Patience, directions: tuple[str, ...]
) -> None:
    assert ask(database) == "x"
    proxy.silence(*directions)
    for _ in range(2):  # over a connection that was there, and over a new one
        with patience.lost(), pytest.raises(OlrPgError) as caught:
            ask(database)
        assert caught.value.label == "OLR-07006"
        assert "Oracle has not answered" in str(caught.value)
    proxy.silence()
    assert ask(database) == "x"


def test_a_call_under_way_is_given_up(
    database: OracleDatabase, proxy: Proxy, patience: Patience
) -> None:
    def work(connection: Any) -> Any:
        assert connection.execute(text("SELECT 'x' FROM DUAL")).scalar() == "x"
        proxy.silence("answers")
        return connection.execute(text("SELECT 'x' FROM DUAL")).scalar()

    assert ask(database) == "x"
    with patience.lost(), pytest.raises(OlrPgError) as caught:
        database.read("testing", work)
    assert caught.value.label == "OLR-07006"


def test_what_oracle_works_on_takes_its_time(
    database: OracleDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers a login beside it, so that it is there."""
    tried = threading.Semaphore(0)
    answers = BoundedCalls._is_answered

    def counted(calls: BoundedCalls) -> bool:
        found = answers(calls)
        tried.release()
        return found

    monkeypatch.setattr(BoundedCalls, "_is_answered", counted)

    def work(connection: Any) -> Any:
        for _ in range(2):
            assert tried.acquire(timeout=60)
        return connection.execute(text("SELECT 'x' FROM DUAL")).scalar()

    began = time.monotonic()
    assert database.read("testing", work) == "x"
    assert time.monotonic() - began > SILENT_SECONDS


def test_one_connection_by_itself(through: OracleSource, proxy: Proxy, patience: Patience) -> None:
    with open_connection(through) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 'x' FROM DUAL")
        assert cursor.fetchone() == ("x",)
    proxy.silence("answers")
    with patience.lost(), pytest.raises(oracledb.Error, match="Oracle has not answered"):
        open_connection(through)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("ORA-01017: invalid credential", CREDENTIALS),
        ("DPY-6005: cannot connect\nORA-12541: no listener", UNREACHABLE),
        ("DPY-6005: cannot connect\nDPY-6001: service is unknown", SERVICE),
        ("ORA-01555: snapshot too old", SNAPSHOT_AGE),
        ("ORA-08181: specified number is not a valid system change number", NOT_REACHED),
        ('ORA-41900: missing FLASHBACK privilege on "SYS"."OBJ$"', PRIVILEGE),
        ("DPY-6005: cannot connect\nDPY-3010: release 11.2 is not supported", CLIENT_LIBRARY),
        ("DPY-6005: cannot connect\nORA-12516: no handler available", LOST),
        ("ORA-99999: new", OTHER),
        ("no number", OTHER),
    ],
)
def test_the_most_specific_number_counts(text: str, code: int) -> None:
    error = oracle_error(oracledb.DatabaseError(text), "reading X")
    assert error.code == code
    assert error.detail.startswith("reading X: ")


@pytest.mark.parametrize(
    "text",
    [
        "ORA-01035: ORACLE only available to users with RESTRICTED SESSION privilege",
        "ORA-12526: TNS:listener: all appropriate instances are in restricted mode",
        "ORA-00028: your session has been killed",
        "ORA-02396: exceeded maximum idle time, please connect again",
        "ORA-01089: immediate shutdown or close in progress",
        "ORA-01033: ORACLE initialization or shutdown in progress",
        "ORA-01109: database not open",
        "ORA-12514: TNS:listener does not currently know of service",
        "ORA-00020: maximum number of processes (300) exceeded",
    ],
)
def test_what_a_dba_does_to_sessions_and_instances_passes(text: str) -> None:
    assert oracle_error(oracledb.DatabaseError(text), "reading X").code in PASSING


def test_the_words_are_one_line_without_help_and_secrets() -> None:
    text = "DPY-6005: no (CONNECTION_ID=abc==)\n\nHelp: https://docs.oracle.com/x\npassword=s3cret"
    text += "\n[Errno 111] Connection refused"
    detail = oracle_error(oracledb.DatabaseError(text), "connecting").detail
    assert "\n" not in detail
    assert "s3cret" not in detail
    assert "CONNECTION_ID" not in detail
    assert "Help:" not in detail
    assert detail.endswith("Connection refused")
    assert "Errno" not in detail


def test_only_a_lost_connection_is_tried_again_at_once() -> None:
    assert is_transient(oracle_error(oracledb.DatabaseError("ORA-03113: end of file"), "x"))
    assert not is_transient(oracle_error(oracledb.DatabaseError("ORA-00942: no table"), "x"))
    assert not is_transient(ValueError())


NOT_UNIQUE = (
    "ORA-02091: transaction rolled back\nORA-00001: unique constraint (A.PK) violated on"
    " table A.T columns (ID)"
)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (
            f"{NOT_UNIQUE}\nORA-03301: (ORA-00001 details) row with values (ID:'SECRET') exists",
            NOT_UNIQUE.replace("\n", ": "),
        ),
        (
            "ORA-20001: no credit for SECRET\nSECRET again\nORA-06512: at A.TRG, line 3",
            "ORA-20001: PL/SQL of the database raised this error: ORA-06512: at A.TRG, line 3",
        ),
        (
            "ORA-01722: unable to convert string value containing 'SECRET' to a number: column N",
            "ORA-01722: unable to convert string value containing … to a number: column N",
        ),
        (
            "ORA-01438: value SECRET greater than specified precision (3, 1) for column N",
            "ORA-01438: value … greater than specified precision (3, 1) for column N",
        ),
        ("ORA-54013: 'it''s SECRET' is wrong", "ORA-54013: … is wrong"),
        ('ORA-12899: value too large for column "A"."T"."C" (actual: 9, maximum: 8)', None),
    ],
)
def test_an_error_of_a_write_contains_no_value(text: str, left: str | None) -> None:
    found = oracle_error(oracledb.DatabaseError(text), "writing", of_rows=True)
    assert found.detail == f"writing: {left or text}"
    for whole in (oracledb.DatabaseError(text), oracledb.IntegrityError(text)):
        with pytest.raises((OlrPgError, _PassingError)) as caught, _passing():
            raise whole
        assert "SECRET" not in str(caught.value)
