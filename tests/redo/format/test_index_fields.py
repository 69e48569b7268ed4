"""Fields of layer 10, as the simulator writes them on its own terms."""

from __future__ import annotations

import pytest

from olr_pg.redo.format.index_fields import KDILK, KDILK_PURGE_TOO, KDILK_SUPPLEMENTAL, LEAF
from olr_pg.simulator.fields.redo_format import RedoFormat, index_row, kdilk


@pytest.mark.parametrize("big", [False, True])
def test_a_leaf_row_and_its_undo(big: bool) -> None:
    redo = RedoFormat(big_endian=big)
    row = index_row(redo, 2, 345, 17)
    assert [LEAF.number(row, one.name, big=big) for one in LEAF.members] == [2, 0, 345, 17]
    assert len(row) == LEAF.size
    undo = kdilk(redo, KDILK_PURGE_TOO, 2, 0x0180_0101, 0x0180_0104, logs=True)
    names = ("code", "itl", "indexid", "block", "sdc")
    found = [KDILK.number(undo, name, big=big) for name in names]
    assert found == [KDILK_PURGE_TOO, 2, 0x0180_0101, 0x0180_0104, 0x7FFE]
    assert KDILK.number(undo, "flags", big=big) & KDILK_SUPPLEMENTAL
    assert len(undo) == KDILK.size
