from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from olr_pg.datatypes.mapping import OracleType
from olr_pg.simulator.oracle_net.values import (
    NATIONAL,
    NUMBER_KIND,
    UNICODE,
    BindType,
    LobValue,
    MalformedMessageError,
    Marker,
    PacketStream,
    PacketType,
    PeerGoneError,
    ResultType,
    TtcReader,
    TtcWriter,
    Wanted,
    decode_bind,
    kind_of,
    lob_of,
    write_value,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.mark.parametrize(
    ("values", "lob", "kind"),
    [
        ([None, 7], False, NUMBER_KIND),
        ([None, b"abc", b"x"], False, ResultType(OracleType.RAW, 3)),
        (["été", "x"], False, ResultType(OracleType.VARCHAR2, 5, 1)),
        (["text"], True, ResultType(OracleType.CLOB, 4000, 1)),
        ([None], True, ResultType(OracleType.BLOB, 4000)),
    ],
)
def test_a_column_has_the_type_of_its_values(
    values: list[object], kind: ResultType, *, lob: bool
) -> None:
    assert kind_of(values, lob=lob) == kind


def test_binds_are_decoded_by_their_type() -> None:
    assert decode_bind(BindType(OracleType.NUMBER, 0, 22), b"\xc1\x02", UNICODE, []) == 1
    assert (
        decode_bind(
            BindType(OracleType.VARCHAR2, NATIONAL, 40), "ü".encode("utf-16-be"), UNICODE, []
        )
        == "ü"
    )
    assert decode_bind(BindType(OracleType.RAW, 0, 40), b"\1", UNICODE, []) == b"\1"
    assert decode_bind(BindType(OracleType.VARCHAR2, 1, 40), None, UNICODE, []) is None


@pytest.mark.parametrize(
    ("number", "stored"),
    [(1.0, "bff0000000000000"), (-1.0, "400fffffffffffff"), (0.0, "8000000000000000")],
)
def test_binary_doubles_are_in_the_form_that_orders_as_bytes_do(number: float, stored: str) -> None:
    out = TtcWriter()
    write_value(out, number, Wanted(OracleType.BINARY_DOUBLE), [], UNICODE)
    written = TtcReader(bytes(out.data)).bytes_()
    assert written is not None
    assert written.hex() == stored


def test_a_locator_leads_to_its_lob() -> None:
    out, lobs = TtcWriter(), [LobValue(b"other", 1)]
    write_value(out, "text", Wanted(OracleType.CLOB), lobs, UNICODE)
    reader = TtcReader(bytes(out.data))
    assert [reader.integer() for _ in range(2)] == [40, 4]
    reader.integer()
    locator = reader.bytes_()
    assert locator is not None
    found = lob_of(locator, lobs)
    assert found.piece(2, 2).decode("utf-16-be") == "ex"


@pytest.mark.parametrize("value", [0, 1, -1, 127, 255, 256, 65_536, 2**40, -(2**62)])
def test_integers_are_read_as_they_were_written(value: int) -> None:
    assert TtcReader(bytes(TtcWriter().integer(value).data)).integer() == value


@pytest.mark.parametrize("first", range(1, 23))
def test_a_message_is_read_from_any_packets_to_its_end(first: int) -> None:
    """A skipped field can be the last one of the message, and of a packet of its own."""
    out = TtcWriter().byte(9).integer(70_000, -5).byte(0).bytes_(b"text").integer(2**40)
    whole = bytes(out.data)
    assert len(whole) == 23
    rest = [whole[at : at + 3] for at in range(first, len(whole), 3)]
    reader = TtcReader(whole[:first], lambda: rest.pop(0))
    reader.skip("bi")
    assert reader.integer() == -5
    reader.skip("b")
    assert reader.bytes_() == b"text"
    reader.skip("i")
    assert reader.done
    assert not rest
    with pytest.raises(MalformedMessageError):
        TtcReader(whole[-9:-1]).skip("i")


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
