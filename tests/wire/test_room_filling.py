"""Values in several parts: their size, their bytes, and parts that contradict one another."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.kernels.compile import interpreted
from olr_pg.scalars import format_rowid
from olr_pg.wire.room_filling import PLACE_SIZE, measure_value, put_rowid, write_parts

measure: Any = interpreted(measure_value)
write: Any = interpreted(write_parts)
DATA = np.arange(100, dtype=np.uint8)


def columns(*parts: tuple[int, int, int]) -> Any:
    """Parts as (offset, length, next)."""
    offset, length, following = (np.array(one, np.int64) for one in zip(*parts, strict=True))
    values = SimpleNamespace(offset=offset, length=length, next=following)
    return SimpleNamespace(values=values, data=DATA)


def test_parts_come_in_the_order_in_which_they_name_one_another() -> None:
    dml = columns((50, 3, 2), (10, 2, -1), (0, 4, 1))
    assert measure(dml, 0) == 9
    out = np.zeros(10, np.uint8)
    assert write(dml, 0, out, 1) == 10
    assert out.tolist() == [0, 50, 51, 52, 0, 1, 2, 3, 10, 11]


def test_null_and_empty_values_have_no_bytes() -> None:
    assert measure(columns((0, -1, -1)), 0) == 0
    assert measure(columns((100, 0, -1)), 0) == 0


@pytest.mark.parametrize(
    "parts",
    [
        ((98, 3, -1),),  # past the data
        ((-1, 1, -1),),
        ((0, 1, 7),),  # no such part
        ((0, 1, 1), (1, 1, 0)),  # a circle
    ],
)
def test_parts_that_cannot_be_are_told(parts: tuple[tuple[int, int, int], ...]) -> None:
    assert measure(columns(*parts), 0) == -1


ROWID_BYTES = 18
put: Any = interpreted(put_rowid)
U32 = st.integers(0, 2**32 - 1)


@given(st.lists(st.tuples(U32, U32, st.integers(0, 4095)), min_size=1, max_size=5), st.data())
def test_rows_of_the_same_block_and_of_others(
    rows: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    rows += [(*rows[-1][:2], data.draw(st.integers(0, 4095)))]
    out = np.zeros(len(rows) * ROWID_BYTES, np.uint8)
    place = np.zeros(PLACE_SIZE, np.int64)
    for number, (dataobj, dba, slot) in enumerate(rows):
        put(out, number * ROWID_BYTES, np.uint32(dataobj), np.uint32(dba), np.uint16(slot), place)
    assert out.tobytes().decode() == "".join(format_rowid(*row) for row in rows)
