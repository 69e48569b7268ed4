"""The bytes of a connection over real sockets."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

import pytest

from olr_pg.applier.session.server_side import SocketLink
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
