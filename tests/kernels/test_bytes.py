"""Bytes inside kernels: compiled and interpreted, copying and storing give the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.kernels.bytes import copy_bytes, copy_forward, store
from olr_pg.kernels.compile import kernel


@kernel
def _copied(out: Any, at: int, data: Any, begin: int, end: int) -> int:
    return copy_bytes(out, at, data, begin, end)


@kernel
def _copied_forward(out: Any, at: int, data: Any, begin: int, end: int) -> int:
    return copy_forward(out, at, data, begin, end)


@kernel
def _stored(out: Any, at: int, value: int, big: bool) -> None:
    store(out, at, np.uint16(value), big)
    store(out, at + 2, np.uint32(value), big)
    store(out, at + 6, np.uint64(value), big)


@given(st.binary(max_size=100), st.data())
def test_copying_touches_nothing_else(content: bytes, data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(begin, len(content)))
    at = data.draw(st.integers(0, 5))
    source = np.frombuffer(content, np.uint8)
    expected = bytearray(b"\xaa" * 110)
    expected[at : at + end - begin] = content[begin:end]
    for copy in (_copied, copy_bytes):
        out = np.full(110, 0xAA, np.uint8)
        assert copy(out, at, source, begin, end) == at + end - begin
        assert out.tobytes() == expected


@given(st.binary(max_size=200), st.data())
def test_copying_forward_touches_nothing_before_nor_outside(
    content: bytes, data: st.DataObject
) -> None:
    begin = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(begin, len(content)))
    at = data.draw(st.integers(0, 90))
    room = at + end - begin + data.draw(st.integers(0, 90))
    source = np.frombuffer(content, np.uint8)
    for copy in (_copied_forward, copy_forward):
        around = np.full(room + 128, 0xAA, np.uint8)
        assert copy(around[:room], at, source, begin, end) == at + end - begin
        assert around[:at].tobytes() == b"\xaa" * at
        assert around[at : at + end - begin].tobytes() == content[begin:end]
        assert around[room:].tobytes() == b"\xaa" * 128


@pytest.mark.parametrize("big", [False, True])
@given(st.integers(0, 2**63 - 1), st.integers(0, 9))
def test_integers_are_stored_in_their_order_at_any_place(big: bool, value: int, at: int) -> None:
    expected = b"\xaa" * at
    for size in (2, 4, 8):
        expected += (value & (1 << 8 * size) - 1).to_bytes(size, "big" if big else "little")
    expected += b"\xaa" * (30 - len(expected))
    compiled, interpreted = np.full((2, 30), 0xAA, np.uint8)
    _stored(compiled, at, value, big)
    for size, kind in ((2, np.uint16), (4, np.uint32), (8, np.uint64)):
        number = np.uint64(value).astype(kind)
        store(interpreted, at + {2: 0, 4: 2, 8: 6}[size], number, big)
    assert compiled.tobytes() == interpreted.tobytes() == expected


@pytest.mark.parametrize("kind", [np.int16, np.int32, np.int64])
def test_interpreted_negative_integers_are_stored_as_they_are(kind: Any) -> None:
    out, size = np.zeros(8, np.uint8), np.dtype(kind).itemsize
    store(out, 0, kind(-2), True)
    assert out[:size].tobytes() == (-2).to_bytes(size, "big", signed=True)
    store(out, 0, kind(-2), False)
    assert out[:size].tobytes() == (-2).to_bytes(size, "little", signed=True)
