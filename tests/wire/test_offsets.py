"""Message offsets: compiled and interpreted, whole and broken."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.errors import OlrPgError
from olr_pg.wire import offsets
from olr_pg.wire.frames import ByteOrder, encode_frame
from olr_pg.wire.messages import Data, NoMore, encode_answer

ORDERS = st.sampled_from(ByteOrder)


def interpreted_of(kernel: Any) -> Any:
    """The kernel's Python function, which its type does not tell of."""
    return kernel.py_func


@given(st.lists(st.binary(min_size=2, max_size=30)), ORDERS)
def test_offsets_are_where_the_frames_begin(messages: list[bytes], order: ByteOrder) -> None:
    frames = [encode_frame(message, order) for message in messages]
    blob = np.frombuffer(b"".join(frames), np.uint8)
    expected = np.cumsum([0, *map(len, frames)]).tolist()
    assert offsets.message_offsets(blob, order.is_big).tolist() == expected
    interpreted = np.empty(len(expected), np.int64)
    interpreted_of(offsets.fill_offsets)(blob, order.is_big, interpreted)
    assert interpreted.tolist() == expected


@given(st.binary(max_size=60), st.booleans())
def test_any_bytes_give_offsets_or_4001(data: bytes, big: bool) -> None:
    blob = np.frombuffer(data, np.uint8)
    count, end = offsets.message_run(blob, 0, big, len(data), len(data))
    assert interpreted_of(offsets.message_run)(blob, 0, big, len(data), len(data)) == (count, end)
    assert interpreted_of(offsets.data_run)(blob, big, 5, 20) == offsets.data_run(blob, big, 5, 20)
    if end == len(data):
        assert offsets.message_offsets(blob, big)[-1] == end
    else:
        with pytest.raises(OlrPgError, match="OLR-04001"):
            offsets.message_offsets(blob, big)


@given(st.lists(st.binary(min_size=2, max_size=30), min_size=1), ORDERS, st.data())
def test_a_run_of_messages_ends_at_its_limits(
    messages: list[bytes], order: ByteOrder, draw: st.DataObject
) -> None:
    frames = [encode_frame(message, order) for message in messages]
    blob = np.frombuffer(b"".join(frames), np.uint8)
    first = draw.draw(st.integers(0, len(frames)))
    most = draw.draw(st.integers(0, len(frames) + 1))
    room = draw.draw(st.integers(0, blob.size + 1))
    bounds = np.cumsum([0, *map(len, frames)]).tolist()
    count = sum(end - bounds[first] <= room for end in bounds[first + 1 : first + 1 + most])
    found = offsets.message_run(blob, bounds[first], order.is_big, most, room)
    assert found == (count, bounds[first + count])


def test_a_run_of_data_ends_at_its_limits(order: ByteOrder) -> None:
    data = encode_answer(Data(b"12345"), order)
    blob = np.frombuffer(data * 3 + encode_answer(NoMore(), order) + data, np.uint8)
    assert offsets.data_run(blob, order.is_big, 9, 100) == (3, 33)
    assert offsets.data_run(blob, order.is_big, 2, 100) == (2, 22)
    assert offsets.data_run(blob, order.is_big, 9, 6) == (0, 0)
    assert offsets.data_run(blob[:32], order.is_big, 9, 100) == (2, 22)


def test_frames_laid_out_by_hand() -> None:
    """A size of 32 bits and as many bytes, two of them the message's code (protocol)."""
    for order in ByteOrder:
        big = order.is_big
        name: Literal["big", "little"] = "big" if big else "little"
        number = np.frombuffer(b"\xee" + 0x81A2C3D4.to_bytes(4, name), np.uint8)
        assert offsets.get32(number, 1, big) == 0x81A2C3D4
        data = encode_answer(Data(b"12345"), order)
        code = data[4:6]
        assert len(data) == 11

        def frame(size: int, code: bytes = code, sizes: Any = name) -> bytes:
            return size.to_bytes(4, sizes) + code + bytes(max(size, 2) - 2)

        other = bytes(one ^ 1 for one in code)
        long = frame(300)
        blob = np.frombuffer(long + data + frame(2) + frame(3), np.uint8)
        assert offsets.message_offsets(blob, big).tolist() == [0, 304, 315, 321, 328]
        for size in range(1, 8):  # what is behind the last whole message
            assert offsets.message_run(blob[:-size], 0, big, 9, 999) == (3, 321)
        for tail, count in (
            (b"", 0),
            (frame(3), 1),
            (frame(3)[:-1], 0),
            (frame(2), 0),
            *((frame(3)[:size], 0) for size in range(1, 6)),
            (frame(20), 1),
            (frame(21), 0),
            (frame(3, code[:1] + other[1:]), 0),
            (frame(3, other[:1] + code[1:]), 0),
        ):
            blob = np.frombuffer(data + tail, np.uint8)
            assert offsets.data_run(blob, big, 9, 20) == (1 + count, 11 + count * len(tail))
            assert offsets.data_run(blob, big, 1, 20) == (1, 11)
            assert offsets.data_run(blob, big, 0, 20) == (0, 0)
