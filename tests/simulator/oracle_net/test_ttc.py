from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from olr_pg.simulator.oracle_net.ttc import (
    Marker,
    PacketStream,
    PacketType,
    PeerGoneError,
    TtcReader,
    TtcWriter,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.mark.parametrize("value", [0, 1, -1, 127, 255, 256, 65_536, 2**40, -(2**62)])
def test_integers_are_read_as_they_were_written(value: int) -> None:
    assert TtcReader(bytes(TtcWriter().integer(value).data)).integer() == value


@pytest.fixture
def ends() -> Iterator[tuple[PacketStream, PacketStream]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield PacketStream(ours), PacketStream(theirs)


@pytest.mark.parametrize("accepted", [False, True])
def test_a_packet_arrives_as_it_was_sent(
    ends: tuple[PacketStream, PacketStream], *, accepted: bool
) -> None:
    ours, theirs = ends
    ours.accepted = theirs.accepted = accepted
    ours.send(PacketType.DATA, b"body")
    ours.send_marker(Marker.RESET)
    assert theirs.receive() == (PacketType.DATA, b"body")
    assert theirs.receive().marker == Marker.RESET
    assert not theirs.readable(0)


def test_a_long_message_takes_several_packets(ends: tuple[PacketStream, PacketStream]) -> None:
    ours, theirs = ends
    ours.sdu = 20
    ours.send_message(b"0123456789abcdefghijk")
    bodies = [theirs.receive().body for _ in range(3)]
    assert [body[2:] for body in bodies] == [b"0123456789", b"abcdefghij", b"k"]


def test_the_end_of_a_connection_is_an_error(ends: tuple[PacketStream, PacketStream]) -> None:
    ours, theirs = ends
    ours.send(PacketType.DATA, b"body")
    ours._socket.shutdown(socket.SHUT_WR)
    theirs.receive()
    with pytest.raises(PeerGoneError):
        theirs.receive()
