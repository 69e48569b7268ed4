"""The bytes of a connection over real sockets.

A source that is behind what the target has of it is none that goes on where it was.
"""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from olr_pg.applier.session.server_side import SocketLink, check_not_ahead
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.errors import Code, OlrPgError
from olr_pg.wire.frames import ByteOrder
from olr_pg.wire.messages import GetSavedScn, SavedScn, encode_answer, encode_request
from olr_pg.wire.protocol import ClientProtocol

if TYPE_CHECKING:
    from collections.abc import Iterator


ORDER = ByteOrder.LITTLE


@pytest.fixture
def ends() -> Iterator[tuple[SocketLink, socket.socket]]:
    """The link, and the server's end of its connection."""
    own, other = socket.socketpair()
    with own, other:
        yield SocketLink(own), other


def never() -> bool:
    return False


def test_requests_go_and_answers_come(ends: tuple[SocketLink, socket.socket]) -> None:
    link, server = ends
    client = ClientProtocol(ORDER)
    client.request(GetSavedScn())
    request = encode_request(GetSavedScn(), ORDER)
    link.send(request)
    assert server.recv(100) == request
    answer = encode_answer(SavedScn(77), ORDER)
    server.sendall(answer[:3])
    link.receive(client, never)
    assert client.next_event() is None
    server.sendall(answer[3:])
    link.receive(client, never)
    event = client.next_event()
    assert event is not None
    assert event.answer == SavedScn(77)  # type: ignore[union-attr]


def test_all_that_has_come_is_taken_at_once(ends: tuple[SocketLink, socket.socket]) -> None:
    link, server = ends
    client = ClientProtocol(ORDER)
    count = 3_000
    for _ in range(count):
        client.request(GetSavedScn())
    answers = encode_answer(SavedScn(5), ORDER) * count
    writer = threading.Thread(target=server.sendall, args=(answers,))
    writer.start()
    found = 0
    while found < count:
        link.receive(client, never)
        while client.next_event() is not None:
            found += 1
    writer.join()
    assert found == count


def test_a_closed_connection_is_an_error(ends: tuple[SocketLink, socket.socket]) -> None:
    link, server = ends
    server.close()
    with pytest.raises(ConnectionResetError):
        link.receive(ClientProtocol(ORDER), never)
    link.close()
    link.close()
    with pytest.raises(OSError, match="file descriptor"):
        link.send(b"x")


def test_a_silent_server_is_left_when_asked(ends: tuple[SocketLink, socket.socket]) -> None:
    link, _ = ends
    asked: list[bool] = []

    def stopped() -> bool:
        asked.append(True)
        return len(asked) == 2

    with pytest.raises(ConnectionAbortedError):
        link.receive(ClientProtocol(ORDER), stopped)
    assert len(asked) == 2


TABLES = ("S.A", "S.B")


@pytest.fixture
def target(postgres_database: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        ensure_ledger(connection)
        for table, scn in (("S.A", 20), ("S.B", 30), ("S.OTHER", 99)):
            connection.execute(
                "INSERT INTO olr_pg.ledger (subscription, source_table, target_table, commit_scn)"
                " VALUES ('one', %s, %s, %s)",
                (table, table.lower(), scn),
            )
        yield connection


def check(target: psycopg.Connection[Any], *answers: int | None, patience: float = 60) -> list[Any]:
    left = list(answers)
    asked = lambda: left.pop(0)  # noqa: E731
    check_not_ahead(target, "one", asked, TABLES, threading.Event(), patience)
    return left


def test_a_source_that_is_as_far_or_comes_to_it_passes(target: psycopg.Connection[Any]) -> None:
    assert check(target, 30) == []
    assert check(target, 29, 30) == []
    assert check(target, None) == []
    # Nothing is there to be behind of.
    check_not_ahead(target, "two", lambda: 0, TABLES, threading.Event())


def test_one_that_stays_behind_is_refused(target: psycopg.Connection[Any]) -> None:
    with pytest.raises(OlrPgError) as caught:
        check(target, 29, patience=0)
    assert caught.value.code is Code.TARGET_AHEAD_OF_SOURCE
    assert caught.value.where["table"] == "S.B"
    assert "commit SCN 30, but the source has only reached SCN 29" in caught.value.detail


def test_the_waiting_ends_with_the_applier(target: psycopg.Connection[Any]) -> None:
    stop = threading.Event()
    stop.set()
    check_not_ahead(target, "one", lambda: 1, TABLES, stop)
