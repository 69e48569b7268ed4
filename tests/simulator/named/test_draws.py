from __future__ import annotations

import numpy as np

from olr_pg.kernels.compile import interpreted
from olr_pg.simulator.named import draws
from olr_pg.simulator.named import instance_memory as at


def test_numbers_are_below_their_limit_and_null_as_often_as_they_may_be() -> None:
    m = np.zeros(at.FIXED, np.int64)
    m[at.RANDOM] = 88_172_645_463_325_252
    m[at.C_KIND] = at.KIND_NUMBER
    m[at.C_LIMIT], m[at.C_SIGNED] = 5, 1
    cell = interpreted(draws.random_cell)
    assert {int(cell(m, 0)) for _ in range(500)} == set(range(-4, 5))
    m[at.C_NULLS] = 1000
    assert {int(cell(m, 0)) for _ in range(50)} == {at.NULL}


def test_columns_to_set_are_kept_in_their_order() -> None:
    m = np.zeros(at.FIXED, np.int64)
    set_column = interpreted(draws.set_column)
    set_column(m, 2, 70)
    set_column(m, 5, 71)
    assert m[at.SET_COUNT] == 2
    assert m[at.SET_COLUMNS : at.SET_COLUMNS + 2].tolist() == [2, 5]
    assert m[at.SET_CELLS : at.SET_CELLS + 2].tolist() == [70, 71]
