"""Kernels that fill the tables before the first redo, and one that counts changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.kernels.compile import interpreted, kernel
from olr_pg.simulator.named import instance_memory as at
from olr_pg.simulator.named.draws import fill_row
from olr_pg.simulator.named.loads import fill_start_row
from olr_pg.simulator.named.row_writing import add_row
from olr_pg.simulator.named.session_run import SLICES

if TYPE_CHECKING:
    from olr_pg.simulator.named.put import Bytes, Ints


@kernel
def draw_rows(m: Ints, cells: Ints, place: int, table: int, count: int) -> None:
    """Random cells of `count` rows from `place` on."""
    columns = m[at.TB_COLUMNS + table]
    for row in range(count):
        fill_row(m, table)
        for i in range(columns):
            cells[place + row * columns + i] = m[at.NEW_CELLS + i]


@kernel
def place_rows(m: Ints, d: Bytes, blocks: Ints, rows: Ints, cells: Ints) -> None:
    """Place the start rows of all tables in blocks that no transaction has touched."""
    for table in range(m[at.TABLES]):
        m[at.LOAD_TABLE] = table
        m[at.TB_FIRST_ROW + table] = m[at.ROWS]
        for _ in range(m[at.TB_START_ROWS + table]):
            fill_start_row(m, cells)
            add_row(m, d, blocks, rows, cells, 0, table, -1)
        m[at.TB_INSERT_BLOCK + table * at.SESSIONS_MAX] = -1


@kernel
def count_changes(journal: Ints, counts: Ints) -> None:
    """Add a journal's transactions (place 0) and changes by kind to `counts`, shape (4)."""
    q = 0
    while q < len(journal):
        counts[0] += 1
        changes = journal[q + 3]
        q += at.TRANSACTION_INTS
        for _ in range(changes):
            counts[journal[q]] += 1
            q += at.CHANGE_INTS + 2 * (journal[q + 5] + journal[q + 6])


draw_interpreted = interpreted(draw_rows)
place_interpreted = interpreted(place_rows, SLICES)
count_interpreted = interpreted(count_changes)
