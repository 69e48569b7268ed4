"""Random cells and rows, and the list of columns that an update sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.kernels.compile import part
from olr_pg.simulator.named import instance_memory as at
from olr_pg.simulator.named.instance_memory import NULL
from olr_pg.simulator.named.put import below, chance

if TYPE_CHECKING:
    from olr_pg.simulator.named.put import Ints


@part
def random_cell(m: Ints, column: int) -> int:
    """Draw a value of a column (numbered over all tables), NULL as often as it may be."""
    if m[at.C_NULLS + column] and chance(m, m[at.C_NULLS + column]):
        return NULL
    kind = m[at.C_KIND + column]
    if kind == at.KIND_NUMBER:
        value = below(m, m[at.C_LIMIT + column])
        return -value if m[at.C_SIGNED + column] and chance(m, 300) else value
    if kind == at.KIND_DATE:
        return int(m[at.CLOCK] // 1000 - below(m, m[at.C_LIMIT + column]))
    if kind == at.KIND_TIMESTAMP:
        return int(m[at.CLOCK] * 1000 - below(m, m[at.C_LIMIT + column]))
    return below(m, m[at.C_POOL_SIZE + column])


@part
def fill_row(m: Ints, table: int) -> None:
    """Random values of all columns into NEW_CELLS."""
    for i in range(m[at.TB_COLUMNS + table]):
        m[at.NEW_CELLS + i] = random_cell(m, m[at.TB_COLUMN + table] + i)


@part
def set_column(m: Ints, column: int, cell: int) -> None:
    """Add a column to what an update sets; columns come in ascending order."""
    m[at.SET_COLUMNS + m[at.SET_COUNT]] = column
    m[at.SET_CELLS + m[at.SET_COUNT]] = cell
    m[at.SET_COUNT] += 1
