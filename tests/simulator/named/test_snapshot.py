"""The rows of the compiled instance that SQL may see."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from olr_pg.simulator.named import instance_memory as at
from olr_pg.simulator.named.snapshot import live_rows


def test_only_live_rows_of_the_table_are_seen() -> None:
    width = max(value for name, value in vars(at).items() if name.startswith("R_")) + 1
    rows = np.zeros((6, width), np.int64)
    rows[:, at.R_TABLE] = [0, 1, 1, 1, 0, 1]
    rows[:, at.R_STATE] = at.LIVE
    rows[2, at.R_STATE] = at.LIVE + 1
    m = np.zeros(at.FIXED, np.int64)
    m[at.ROWS] = 5
    memory: Any = SimpleNamespace(rows=rows, m=m)
    assert live_rows(memory, 1).tolist() == [1, 3]
    assert live_rows(memory, 0).tolist() == [0, 4]
