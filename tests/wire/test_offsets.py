"""Message offsets: compiled and interpreted, whole and broken."""

from __future__ import annotations

from typing import Any

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
