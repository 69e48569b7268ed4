"""The rows of the compiled instance's tables as Parquet columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olr_pg.rendering.arrow_types import arrow_type
from olr_pg.simulator.named import instance_memory as at
from olr_pg.simulator.table_files import cell_value, rowids, write_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy.typing as npt

    from olr_pg.simulator.model.tables import SimColumn, SimTable
    from olr_pg.simulator.named.setup import Memory

    Ints = npt.NDArray[np.int64]


def live_rows(memory: Memory, table: int) -> Ints:
    """Return the numbers of a table's rows that SQL may see."""
    rows = memory.rows[: memory.m[at.ROWS]]
    chosen = (rows[:, at.R_TABLE] == table) & (rows[:, at.R_STATE] == at.LIVE)
    return np.flatnonzero(chosen)


def write_tables(
    folder: Path, memory: Memory, tables: Sequence[SimTable], scn: int
) -> dict[str, int]:
    """Write a Parquet file per table, as of `scn`; return their rows' numbers by table."""
    counts = dict[str, int]()
    for number, table in enumerate(tables):
        live = live_rows(memory, number)
        rows = memory.rows[live]
        dbas = memory.blocks[rows[:, at.R_BLOCK], at.B_DBA]
        order = np.lexsort((rows[:, at.R_SLOT], dbas))
        rows, dbas = rows[order], dbas[order]
        first = int(memory.m[at.TB_COLUMN + number])
        columns = [rowids(table, dbas.tolist(), rows[:, at.R_SLOT].tolist())]
        for place, column in enumerate(table.columns):
            cells = memory.cells[rows[:, at.R_CELLS] + place]
            columns.append(_column(memory, column, first + place, cells))
        write_table(folder, table, columns, scn)
        counts[table.full_name] = len(live)
    return counts


def _column(memory: Memory, column: SimColumn, number: int, cells: Ints) -> pa.Array[Any]:
    m, null, target = memory.m, cells == at.NULL, arrow_type(column.type)
    kind = int(m[at.C_KIND + number])
    if kind in (at.KIND_DATE, at.KIND_TIMESTAMP):
        return pa.array(cells, target, mask=null)
    if kind == at.KIND_NUMBER:
        return _decimals(np.where(null, 0, cells), null, target)
    first, count = int(m[at.C_POOL + number]), int(m[at.C_POOL_SIZE + number])
    pool = pa.array(
        [cell_value(column.type, cell) for cell in memory.pool[first : first + count]], target
    )
    return pool.take(pa.array(np.where(null, 0, cells), pa.int64(), mask=null))


def _decimals(cells: Ints, null: npt.NDArray[np.bool_], target: pa.DataType) -> pa.Array[Any]:
    """Scaled integers as decimal128, whose 16 bytes are the integer in two's complement."""
    halves = np.empty((len(cells), 2), np.int64)
    halves[:, 0], halves[:, 1] = cells, cells >> 63
    data = pa.py_buffer(halves.tobytes())
    values = pa.Array.from_buffers(target, len(cells), [None, data])
    masked: pa.Array[Any] = pc.if_else(pa.array(null), pa.scalar(None, target), values)
    return masked
