"""Makes copies of rows; each copy has its own ROWIDs and keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from olr_pg.rendering.arrow_types import arrow_type
from olr_pg.scalars import parse_rowid
from olr_pg.simulator.stamping.text_copies import ROWID_BLOCK, put_rowid_blocks
from olr_pg.simulator.table_files import row_arrays

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from olr_pg.simulator.model.tables import SimTable
    from olr_pg.simulator.sessions.keys import KeyForm
    from olr_pg.simulator.stamping.template import Rows

ROWID_SIZE: Final = 18


class TableCopies:
    """Makes copies of a table's rows.

    Args:
        rows: the rows of the first copy.
        blocks: distance from the blocks of a copy to those of the next copy.
        keys: the forms of key columns, by 0-based column.
    """

    def __init__(
        self, table: SimTable, rows: Rows, blocks: int, keys: Mapping[int, KeyForm]
    ) -> None:
        self._step, self._arrays, self._count = blocks, row_arrays(table, rows), len(rows)
        rowids = "".join(rowid for rowid, _ in rows).encode()
        self._rowids = np.frombuffer(rowids, np.uint8)
        self._blocks = np.array([parse_rowid(rowid)[1] & 0x3FFFFF for rowid, _ in rows], np.int64)
        self._ends = _buffer(np.arange(len(rows) + 1, dtype=np.int32) * ROWID_SIZE)
        self._numbers = {
            at: np.array([int(cell.json) for _, cells in rows if (cell := cells[at])], np.int64)
            for at in keys
        }
        self._keys = keys
        self._types = {at: arrow_type(table.columns[at].type) for at in keys}

    def arrays(self, copy: int) -> list[pa.Array[Any]]:
        """Return the columns of the copy with this number, from 0; ROWID is the first column."""
        arrays = list(self._arrays)
        rowids = self._rowids.copy()
        places = np.arange(self._count) * ROWID_SIZE + ROWID_BLOCK
        put_rowid_blocks(rowids, places, self._blocks + copy * self._step)
        buffers = [None, self._ends, _buffer(rowids)]
        arrays[0] = pa.Array.from_buffers(pa.string(), self._count, buffers)
        for at, form in self._keys.items():
            numbers = self._numbers[at] + copy * form.stride
            arrays[1 + at] = _decimals(numbers, self._types[at])
        return arrays


def _decimals(numbers: npt.NDArray[np.int64], kind: pa.DataType) -> pa.Array[Any]:
    """Return integers as decimal128 values: 16 bytes in two's complement."""
    halves = np.zeros((len(numbers), 2), np.int64)
    halves[:, 0] = numbers
    return pa.Array.from_buffers(kind, len(numbers), [None, _buffer(halves)])


def _buffer(array: npt.NDArray[Any]) -> pa.Buffer:
    return pa.py_buffer(array.data)
