"""The workloads beside order entry: a bulk load, and updates of wide rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.kernels.compile import part
from olr_pg.simulator.named import instance_memory as at
from olr_pg.simulator.named.draws import fill_row, random_cell, set_column
from olr_pg.simulator.named.put import below, chance

if TYPE_CHECKING:
    from olr_pg.simulator.named.put import Ints

ARRAY_ROWS: Final = 200
"""Rows of a client's array; each block that they fill is one change vector."""

BULK_COMMIT: Final = 20
"""Arrays of a transaction."""

START_ARRAY: Final = 16
"""Rows of an array that fills the tables before the workload begins."""

SET_MAX: Final = 8
WIDE_END: Final = 250


@part
def fill_new_row(m: Ints) -> None:
    """Fill NEW_CELLS with a row of table 0 that has the next key."""
    fill_row(m, 0)
    m[at.NEW_CELLS] = m[at.TB_NEXT_KEY]
    m[at.TB_NEXT_KEY] += 1


@part
def fill_start_row(m: Ints, cells: Ints) -> None:
    """Fill NEW_CELLS with the next row of the tables' start."""
    count = m[at.TB_COLUMNS + m[at.LOAD_TABLE]]
    for i in range(count):
        m[at.NEW_CELLS + i] = cells[m[at.LOAD_CELLS] + i]
    m[at.LOAD_CELLS] += count
    m[at.LOAD_LEFT] -= 1


@part
def step_start(m: Ints) -> int:
    """Insert the rows that the workload starts from: some, or a commit after each table's."""
    table = m[at.LOAD_TABLE]
    if m[at.LOAD_LEFT]:
        if m[at.LOAD_LEFT] == m[at.TB_START_ROWS + table]:
            m[at.TB_FIRST_ROW + table] = m[at.ROWS]
        m[at.A_TABLE] = table
        m[at.A_COUNT] = min(START_ARRAY, m[at.LOAD_LEFT])
        return at.CHANGE_MANY
    m[at.LOAD_TABLE] = table + 1
    if table + 1 == m[at.TABLES]:
        m[at.LOADING] = 0
    else:
        m[at.LOAD_LEFT] = m[at.TB_START_ROWS + table + 1]
    return at.ACT_COMMIT


@part
def step_bulk(m: Ints, w: int) -> int:
    """Do one array insert, or commit after some of them."""
    if m[w] == BULK_COMMIT:
        m[w] = 0
        return at.ACT_COMMIT
    m[w] += 1
    m[at.A_TABLE] = 0
    m[at.A_COUNT] = ARRAY_ROWS
    return at.CHANGE_MANY


@part
def step_wide(m: Ints, session: int) -> int:
    """Update some columns of a wide row; now and then insert, delete or end."""
    if m[at.S_TRANSACTION + session] >= 0 and chance(m, WIDE_END):
        return at.ACT_ROLL_BACK if chance(m, 20) else at.ACT_COMMIT
    m[at.A_TABLE] = 0
    m[at.A_ROW] = m[at.TB_FIRST_ROW] + below(m, m[at.TB_START_ROWS])
    kind = below(m, 1000)
    if kind < 20:
        fill_new_row(m)
        return at.CHANGE_INSERT
    if kind < 22:
        return at.CHANGE_DELETE
    columns = m[at.TB_COLUMNS]
    m[at.SET_COUNT] = 0
    column = 1 + below(m, columns - 1)
    for _ in range(1 + below(m, SET_MAX)):
        if column >= columns:
            break
        set_column(m, column, random_cell(m, m[at.TB_COLUMN] + column))
        column += 1 + below(m, columns // SET_MAX)
    return at.CHANGE_UPDATE
