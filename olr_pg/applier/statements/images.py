"""Writes rows in PostgreSQL's binary formats (arrays, arrays of composite values, COPY) by kernels.

Facts: type-mapping §3.2 (COPY); arrays and composites in the format that PostgreSQL's
``array_recv`` and ``record_recv`` read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.applier.statements.net_change import Cells
from olr_pg.datatypes.mapping import PgKind
from olr_pg.kernels.bytes import copy_forward, store
from olr_pg.kernels.compile import kernel

if TYPE_CHECKING:
    from olr_pg.applier.statements.target_plan import TablePlan

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]

_NOTHING: Final = np.zeros(0, np.uint8)
_NO_TYPES: Final = np.zeros(0, np.int64)
_BYTEA = int(PgKind.BYTEA)
COPY_HEADER: Final = np.frombuffer(b"PGCOPY\n\xff\r\n\0" + bytes(8), np.uint8)
COPY_END: Final = np.frombuffer(b"\xff\xff", np.uint8)


@kernel
def values_size_kernel(length: I64, rows: I64, columns: I64) -> int:
    """Return the total size in bytes of the values of these columns in these rows."""
    total = 0
    for row in rows:
        for column in columns:
            total += max(length[row, column], 0)
    return total


@kernel
def masks_kernel(
    length: I64, rows: I64, columns: I64, masks: U8, counts: I64, nulls: I64
) -> None:  # fmt: skip
    """Set a bit for each column that a row contains, in the order of PostgreSQL's `get_bit`.

    Args:
        masks: shape (rows, bytes); zero before the call.
        counts: for each column, receives the number of rows that contain it; zero before the call.
        nulls: for each column, receives the number of these rows in which it is NULL; zero before
            the call.
    """
    for i in range(rows.size):
        for column in columns:
            size = length[rows[i], column]
            if size != -2:
                masks[i, column >> 3] |= np.uint8(1 << (column & 7))
                counts[column] += 1
                nulls[column] += size == -1


@kernel
def rows_kernel(
    cells: Cells, rows: I64, columns: I64, types: I64, head: U8, is_sized: bool, out: U8, at: int
) -> int:
    """Write the values of `columns` row by row, from offset `at` of `out` on; return the end.

    Args:
        types: the type OID to write before each value; empty to write none.
        head: the bytes to write at the start of each row.
        is_sized: whether to write the size of each row before it.
    """
    length = cells.length
    for row in rows:
        if is_sized:
            size = head.size + 4 * (columns.size + types.size)
            for column in columns:
                size += max(length[row, column], 0)
            store(out, at, np.int32(size), True)
            at += 4
        for i in range(head.size):
            out[at + i] = head[i]
        at += head.size
        for place in range(columns.size):
            column = columns[place]
            if types.size:
                store(out, at, np.uint32(types[place]), True)
                at += 4
            size = max(length[row, column], -1)
            store(out, at, np.int32(size), True)
            at += 4
            if size > 0:
                start = cells.offset[row, column]
                at = copy_forward(out, at, cells.data, start, start + size)
    return at


def _array_header(element_type: int, count: int) -> npt.NDArray[np.uint8]:
    return np.array([1, 1, element_type, count, 1], ">u4").view(np.uint8)


def composite_array(cells: Cells, rows: I64, row_type: int, types: I64) -> memoryview:
    """Return an array of composite values of `row_type`, one per row. Absent cells become NULL.

    Args:
        types: the type OID of each field.
    """
    head = np.array([len(types)], ">u4").view(np.uint8)
    columns = np.arange(len(types))
    return _written(
        cells, rows, columns, types, head, _array_header(row_type, len(rows)), is_sized=True
    )


class ColumnMasks(NamedTuple):
    """Which columns some rows contain.

    Attributes:
        masks: shape (rows, bytes); a bit for each column, in the order of PostgreSQL's `get_bit`.
        counts: shape (columns); the number of rows that contain the column.
        nulls: shape (columns); the number of these rows in which it is NULL.
    """

    masks: U8
    counts: I64
    nulls: I64


def column_masks(plan: TablePlan, cells: Cells, rows: I64) -> ColumnMasks:
    """Return which columns each of the given rows sets in an UPDATE. The key, generated columns and
    identity columns GENERATED ALWAYS are left out.
    """
    columns = [
        i
        for i, column in enumerate(plan.target.columns)
        if not plan.is_key[i] and not column.generated and column.identity != "a"
    ]
    return row_masks(cells, rows, np.array(columns, np.int64))


def row_masks(cells: Cells, rows: I64, columns: I64) -> ColumnMasks:
    """Return which of the given columns each row contains."""
    width = cells.length.shape[1]
    counts, nulls = np.zeros(width, np.int64), np.zeros(width, np.int64)
    found = ColumnMasks(np.zeros((len(rows), -(-width // 8)), np.uint8), counts, nulls)
    masks_kernel(cells.length, rows, columns, *found)
    return found


def bytea_array(values: U8) -> memoryview:
    """Return an array of bytea, one per row of `values`."""
    count, size = values.shape
    items = np.empty((count, 4 + size), np.uint8)
    items[:, :4] = np.array([size], ">u4").view(np.uint8)
    items[:, 4:] = values
    return np.concatenate([_array_header(_BYTEA, count), items.reshape(-1)]).data


def column_array(cells: Cells, rows: I64, column: int, element_type: int) -> memoryview:
    """Return an array of one column's values."""
    header = _array_header(element_type, len(rows))
    return _written(cells, rows, np.array([column]), _NO_TYPES, _NOTHING, header)


def copy_buffer(cells: Cells, rows: I64, columns: I64) -> memoryview:
    """Return a complete binary COPY stream of these columns and rows."""
    head = np.array([len(columns)], ">u2").view(np.uint8)
    return _written(cells, rows, columns, _NO_TYPES, head, COPY_HEADER, COPY_END)


def _written(
    cells: Cells, rows: I64, columns: I64, types: I64, head: U8, header: U8, end: U8 = _NOTHING,
    *, is_sized: bool = False,
) -> memoryview:  # fmt: skip
    """Return `header`, the output of `rows_kernel`, and `end` in one buffer."""
    fixed = head.size + 4 * (len(columns) + len(types) + is_sized)
    size = len(rows) * fixed + values_size_kernel(cells.length, rows, columns)
    out = np.empty(len(header) + size + len(end), np.uint8)
    out[: len(header)] = header
    at = rows_kernel(cells, rows, columns, types, head, is_sized, out, len(header))
    assert at == len(header) + size
    out[at:] = end
    return out.data
