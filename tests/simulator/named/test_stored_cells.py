"""Cells are stored as Oracle stores their values."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.datatypes.number import encode_number
from olr_pg.datatypes.temporal import DateTime, encode_date, encode_timestamp
from olr_pg.kernels.compile import interpreted
from olr_pg.simulator.named import instance_memory as at
from olr_pg.simulator.named.stored_cells import add_cell, put_cell, put_number

AREA = at.REDO
SCRATCH, ROOM = 200, 400
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001


def memory(kind: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The numbers and bytes of an instance whose column 0 is of a kind; its area is empty."""
    m, d = np.zeros(at.FIXED + 16, np.int64), np.full(ROOM, 0xEE, np.uint8)
    m[at.VALUE_AT], m[at.C_KIND] = SCRATCH, kind
    return m, d


@given(value=st.integers(-(10**17) + 1, 10**17 - 1), scale=st.integers(0, 6))
def test_numbers(value: int, scale: int) -> None:
    m, d = memory()
    size = interpreted(put_number)(m, d, 0, value, scale)
    assert d[:size].tobytes() == encode_number(Decimal(value).scaleb(-scale))


@given(st.integers(0, 4_000_000_000), st.integers(0, 999_999))
def test_dates_and_timestamps(seconds: int, micros: int) -> None:
    moment = EPOCH + timedelta(seconds=seconds, microseconds=micros)
    parts = (moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second)
    m, d = memory(at.KIND_DATE)
    size = interpreted(put_cell)(m, d, 0, 0, seconds)
    assert d[:size].tobytes() == encode_date(DateTime(*parts))
    m, d = memory(at.KIND_TIMESTAMP)
    size = interpreted(put_cell)(m, d, 0, 0, seconds * 1_000_000 + micros)
    assert d[:size].tobytes() == encode_timestamp(DateTime(*parts, micros * 1_000))


def test_fields_are_padded_to_words_and_null_takes_none() -> None:
    m, d = memory(at.KIND_NUMBER)
    add = interpreted(add_cell)
    assert add(m, d, AREA, 0, 122) == 4  # c2 02 17 and the length in front of it
    assert add(m, d, AREA, 0, at.NULL) == 1
    assert add(m, d, AREA, 0, 12_345) == 5
    first = AREA * at.AREA_FIELDS
    assert m[at.AREA_SIZES + first : at.AREA_SIZES + first + 3].tolist() == [3, 0, 4]
    assert (m[at.AREA_COUNT + AREA], m[at.AREA_END + AREA]) == (3, 8)
    assert d[:9].tobytes() == b"\xc2\x02\x17\0\xc3\x02\x18\x2e\xee"
