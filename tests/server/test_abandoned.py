"""A query that a client has asked for ends with its connection, and with the server."""

from __future__ import annotations

import contextlib
import ssl
import threading
from typing import TYPE_CHECKING

import pytest

from olr_pg.config.port_sections import Tls, server_context
from olr_pg.dictionary.model import Column, Database, Snapshot, Table
from olr_pg.dictionary.table_list import query_tables
from olr_pg.errors import OlrPgError
from olr_pg.server.checkpoint import FILE_NAME, Checkpoint
from olr_pg.server.listener import Listener
from olr_pg.server.port_connection import PortSettings
from olr_pg.wire.frames import ByteOrder
from olr_pg.wire.messages import TableList, encode_request
from olr_pg.wire.protocol import ClientProtocol
from tests.server.certificates import Authority
from tests.server.test_listener import MemorySource, RawClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SNAPSHOT = Snapshot(1, Database("D"), (Table("A", "T", 1, 1, (Column("C", 1, 1, 1, 2, 22),)),))
ENDLESS = b"WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT 'A', 'T' FROM r"
WAIT_SECONDS = 60


class QuerySource(MemorySource):
    """Runs queries without any limit but the client's patience."""

    def __init__(self) -> None:
        super().__init__(1)
        self.begun = threading.Event()
        self.ended = threading.Event()
        self.error: OlrPgError | None = None

    def resolve(self, sql: str, is_abandoned: Callable[[], bool] | None = None) -> None:  # type: ignore[override]
        def looked() -> bool:
            self.begun.set()
            return is_abandoned is not None and is_abandoned()

        try:
            query_tables(SNAPSHOT, sql, is_abandoned=looked, steps_max=10**12, seconds_max=3600.0)
        except OlrPgError as error:
            self.error = error
            raise
        finally:
            self.ended.set()


@pytest.fixture
def source() -> QuerySource:
    return QuerySource()


@pytest.fixture(params=["plain", "tls"])
def tls(request: pytest.FixtureRequest, tmp_path: Path) -> ssl.SSLContext | None:
    if request.param == "plain":
        return None
    pair = Authority(tmp_path).issue("server")
    return server_context(Tls(certificate=pair.certificate, key=pair.key))


@pytest.fixture
def server(source: QuerySource, tmp_path: Path, tls: ssl.SSLContext | None) -> Iterator[Listener]:
    with Listener(source, Checkpoint(tmp_path / FILE_NAME, "db"), PortSettings(tls=tls)) as server:
        yield server


@contextlib.contextmanager
def client_of(server: Listener, tls: ssl.SSLContext | None) -> Iterator[RawClient]:
    with RawClient(server.address) as client:
        if tls is not None:
            trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
            client.socket = trusting.wrap_socket(client.socket)
        yield client


def ask_endlessly(client: RawClient, source: QuerySource) -> None:
    client.send(1, ENDLESS)
    assert source.begun.wait(WAIT_SECONDS)


def test_a_query_goes_on_while_its_client_waits(
    server: Listener, source: QuerySource, tls: ssl.SSLContext | None
) -> None:
    with client_of(server, tls) as client:
        assert client.ask(1, b"SELECT 'A', 'T' FROM DUAL") == (1, b"")
    assert source.begun.is_set()


def test_a_query_ends_when_its_client_leaves(
    server: Listener, source: QuerySource, tls: ssl.SSLContext | None
) -> None:
    with client_of(server, tls) as client:
        ask_endlessly(client, source)
        assert not source.ended.is_set()

    assert source.ended.wait(WAIT_SECONDS)
    assert source.error is not None
    assert source.error.code == 3015
    with client_of(server, tls) as client:  # the place is free
        assert client.ask(1, b"SELECT 'A', 'T' FROM DUAL") == (1, b"")


def test_a_query_ends_with_the_server(
    server: Listener, source: QuerySource, tls: ssl.SSLContext | None
) -> None:
    with client_of(server, tls) as client:
        ask_endlessly(client, source)
        server.stop()  # waits for the connection's thread

    assert source.ended.is_set()


def test_a_query_from_inside_ends_with_the_server(server: Listener, source: QuerySource) -> None:
    link = server.connect()
    link.send(encode_request(TableList(ENDLESS.decode()), ByteOrder.LITTLE))

    def receive() -> None:
        with contextlib.suppress(ConnectionResetError, OlrPgError):
            link.receive(ClientProtocol(ByteOrder.LITTLE), lambda: False)

    asking = threading.Thread(target=receive)
    asking.start()
    assert source.begun.wait(WAIT_SECONDS)
    server.stop()
    asking.join(WAIT_SECONDS)

    assert source.ended.is_set()
