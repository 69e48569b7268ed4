"""Logins and calls to a database behind a network that passes nothing on, through a real proxy."""

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
from olr_pg.oracle import oracle_connection
from olr_pg.oracle.driver.bounded_calls import BoundedCalls, HostError, SilenceError
from olr_pg.oracle.driver.driver_failures import is_transient, oracle_error
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
