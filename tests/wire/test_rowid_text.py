"""A ROWID's text from the encoder's kernel is the one that the scalar functions print."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.kernels.compile import interpreted
from olr_pg.scalars import format_rowid
from olr_pg.wire.rowid_text import PLACE_SIZE, put_rowid

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
