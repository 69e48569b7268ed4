"""Integers in redo: either byte order, and both forms of an SCN slot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.kernels.compile import interpreted, kernel
from olr_pg.redo.integers import read_xid, scn8, u16, u32


@kernel
def _read(data: Any, at: int, big: bool) -> tuple[int, int]:
    return u16(data, at, big), u32(data, at, big)


@kernel
def _scn(data: Any, at: int, big: bool) -> int:
    return scn8(data, at, big)


@given(st.binary(min_size=8, max_size=8), st.integers(0, 4), st.booleans())
def test_integers_are_those_of_python(content: bytes, at: int, big: bool) -> None:
    data = np.frombuffer(content, np.uint8).copy()
    short, long = _read(data, at, big)
    parts = content[at : at + 2], content[at : at + 4]
    if not big:
        parts = parts[0][::-1], parts[1][::-1]
    assert (short, long) == (int.from_bytes(parts[0]), int.from_bytes(parts[1]))


@pytest.mark.parametrize(
    ("little", "scn"),
    [
        ("785634126500 0000", 0x6512345678),
        ("78563412 6580 6543", 0x0065_4365_1234_5678),
        ("ffffffff ffff ffff", -1),
        ("ffffffff 0000 ffff", 0xFFFFFFFF),
    ],
)
def test_an_scn_slot_has_two_forms_and_none(little: str, scn: int) -> None:
    raw = bytes.fromhex(little)
    assert _scn(np.frombuffer(raw, np.uint8).copy(), 0, False) == scn
    big = raw[3::-1] + raw[5:3:-1] + raw[7:5:-1]
    assert _scn(np.frombuffer(b"\0" + big, np.uint8).copy(), 1, True) == scn


@pytest.mark.parametrize(
    ("raw", "big"), [("0a00 0c00 3c020000", False), ("000a 000c 0000023c", True)]
)
def test_a_transaction_s_id_is_packed_by_segment_slot_and_sequence(raw: str, big: bool) -> None:
    data = np.frombuffer(b"\xee" + bytes.fromhex(raw), np.uint8).copy()
    assert interpreted(read_xid)(data, 1, big) == 10 << 48 | 12 << 32 | 572
