"""Framing: any split of the input gives the same messages, and sizes are bounded."""

from __future__ import annotations

import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.errors import OlrPgError
from olr_pg.wire.frames import ByteOrder, FrameBuffer, encode_frame

ORDERS = st.sampled_from(ByteOrder)


def pieces_of(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


def read_all(buffer: FrameBuffer, pieces: list[bytes]) -> list[bytes]:
    found = []
    for piece in pieces:
        buffer.receive(piece)
        while (message := buffer.next_message()) is not None:
            found.append(message)
    return found


@given(
    st.lists(st.binary(min_size=2, max_size=40)), st.binary(max_size=3), st.lists(st.integers(0)),
    ORDERS,
)  # fmt: skip
def test_any_split_gives_the_same_messages(
    messages: list[bytes], rest: bytes, cuts: list[int], order: ByteOrder
) -> None:
    data = b"".join(encode_frame(message, order) for message in messages) + rest
    buffer = FrameBuffer(order)
    assert read_all(buffer, pieces_of(data, cuts)) == messages
    assert buffer.waiting == len(rest)
    assert buffer.failure is None


@given(st.binary(max_size=60), st.lists(st.integers(0)), ORDERS)
def test_any_bytes_give_the_same_messages_and_failure_in_any_split(
    data: bytes, cuts: list[int], order: ByteOrder
) -> None:
    whole, split = FrameBuffer(order, limit=20), FrameBuffer(order, limit=20)
    assert read_all(whole, [data]) == read_all(split, pieces_of(data, cuts))
    assert str(whole.failure) == str(split.failure)


@pytest.mark.parametrize("size", [0, 1, 21, 0xFFFFFFFF])
def test_a_size_out_of_bounds_ends_the_framing_after_what_was_whole(
    size: int, order: ByteOrder
) -> None:
    buffer = FrameBuffer(order, limit=20)
    good = encode_frame(b"ab", order)
    messages = read_all(buffer, [good + struct.pack(order.prefix + "I", size), good])
    assert messages == [b"ab"]
    assert buffer.failure is not None
    assert buffer.failure.code == 4001
    assert buffer.failure.where == {"size": size}


def test_a_size_is_judged_before_the_message_is_there(order: ByteOrder) -> None:
    buffer = FrameBuffer(order, limit=20)
    assert read_all(buffer, [struct.pack(order.prefix + "I", 21)]) == []
    assert isinstance(buffer.failure, OlrPgError)


def test_memory_is_given_back_while_a_long_input_passes() -> None:
    buffer = FrameBuffer(ByteOrder.LITTLE)
    frame = encode_frame(bytes(5000), ByteOrder.LITTLE)
    data = frame * 200
    for start in range(0, len(data), 7001):
        read_all(buffer, [data[start : start + 7001]])
        assert len(buffer._data) < 100_000
    assert buffer.waiting == 0
