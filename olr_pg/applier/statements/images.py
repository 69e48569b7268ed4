"""Rows to PostgreSQL's binary forms: arrays, arrays of composites, COPY; built by kernels.

Facts: type-mapping §3.2 (COPY); arrays and composites as PostgreSQL's ``array_recv`` and
``record_recv`` read them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from olr_pg.applier.statements.net_change import Cells
from olr_pg.datatypes.mapping import PgKind
from olr_pg.kernels.bytes import copy_forward, store
from olr_pg.kernels.compile import inlined, kernel

if TYPE_CHECKING:
    from olr_pg.applier.statements.target_plan import TablePlan

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]

_ARRAY_HEADER: Final = 20
_BYTEA = int(PgKind.BYTEA)
COPY_HEADER: Final = np.frombuffer(b"PGCOPY\n\xff\r\n\0" + bytes(8), np.uint8)
COPY_END: Final = np.frombuffer(b"\xff\xff", np.uint8)


@inlined
def _put_cell(data: U8, start: int, size: int, out: U8, at: int) -> int:
    store(out, at, np.int32(size), True)
    return copy_forward(out, at + 4, data, start, start + size) if size > 0 else at + 4


@kernel
def values_size_kernel(length: I64, rows: I64, columns: I64) -> int:
    """Count the bytes of the values of those columns in those rows."""
    total = 0
    for row in rows:
        for column in columns:
            total += max(length[row, column], 0)
    return total


@kernel
def masks_kernel(length: I64, rows: I64, columns: I64, masks: U8, counts: I64) -> None:
    """Note which of the columns each row has: the bits of their places, as `get_bit` numbers them.

    Args:
        masks: shape (rows, bytes), zero.
        counts: of each column, zero; counts the rows that have it.
    """
    for i in range(rows.size):
        for column in columns:
            if length[rows[i], column] != -2:
                masks[i, column >> 3] |= np.uint8(1 << (column & 7))
                counts[column] += 1


@kernel
def composite_kernel(
    data: U8, offset: I64, length: I64, rows: I64, types: I64, out: U8, at: int
) -> int:
    """Write the array's elements; `types` has the type OID of each field. Return the end."""
    width = types.size
    for row in rows:
        size = 4 + 8 * width
        for column in range(width):
            size += max(length[row, column], 0)
        store(out, at, np.int32(size), True)
        store(out, at + 4, np.int32(width), True)
        at += 8
        for column in range(width):
            store(out, at, np.uint32(types[column]), True)
            size = max(length[row, column], -1)
            at = _put_cell(data, offset[row, column], size, out, at + 4)
    return at


@kernel
def copy_kernel(
    data: U8, offset: I64, length: I64, rows: I64, columns: I64, out: U8, at: int
) -> int:
    """Write the tuples of a binary COPY; return the end."""
    for row in rows:
        store(out, at, np.int16(columns.size), True)
        at += 2
        for column in columns:
            size = max(length[row, column], -1)
            at = _put_cell(data, offset[row, column], size, out, at)
    return at


@kernel
def array_kernel(
    data: U8, offset: I64, length: I64, rows: I64, column: int, out: U8, at: int
) -> int:
    """Write the elements of an array of one column; return the end."""
    for row in rows:
        at = _put_cell(data, offset[row, column], max(length[row, column], -1), out, at)
    return at


def _array_header(element_type: int, count: int) -> npt.NDArray[np.uint8]:
    return np.array([1, 1, element_type, count, 1], ">u4").view(np.uint8)


def composite_array(cells: Cells, rows: I64, row_type: int, types: I64) -> memoryview:
    """Return an array of composite values of `row_type`, one per row; absent cells are NULL.

    Args:
        types: OID of each field's type.
    """
    total = values_size_kernel(cells.length, rows, np.arange(len(types)))
    out = np.empty(_ARRAY_HEADER + len(rows) * (8 + 8 * len(types)) + total, np.uint8)
    out[:_ARRAY_HEADER] = _array_header(row_type, len(rows))
    end = composite_kernel(*cells, rows, types, out, _ARRAY_HEADER)
    assert end == out.size
    return out.data


def column_masks(plan: TablePlan, cells: Cells, rows: I64) -> tuple[U8, I64]:
    """Tell which columns these rows set that an UPDATE may set: not the key, not generated ones.

    Returns:
        (a mask of the columns' places per row, how many rows have each column).
    """
    columns = [
        i
        for i, column in enumerate(plan.target.columns)
        if not plan.is_key[i] and not column.generated and column.identity != "a"
    ]
    return row_masks(cells, rows, np.array(columns, np.int64))


def row_masks(cells: Cells, rows: I64, columns: I64) -> tuple[U8, I64]:
    """Return (a mask of the places of the columns that each row has, how many rows have each)."""
    width = cells.length.shape[1]
    masks, counts = np.zeros((len(rows), -(-width // 8)), np.uint8), np.zeros(width, np.int64)
    masks_kernel(cells.length, rows, columns, masks, counts)
    return masks, counts


def bytea_array(values: U8) -> memoryview:
    """Return an array of bytea, one per row of `values`."""
    count, size = values.shape
    items = np.empty((count, 4 + size), np.uint8)
    items[:, :4] = np.array([size], ">u4").view(np.uint8)
    items[:, 4:] = values
    return np.concatenate([_array_header(_BYTEA, count), items.reshape(-1)]).data


def column_array(cells: Cells, rows: I64, column: int, element_type: int) -> memoryview:
    """Return an array of one column's values."""
    total = values_size_kernel(cells.length, rows, np.array([column]))
    out = np.empty(_ARRAY_HEADER + 4 * len(rows) + total, np.uint8)
    out[:_ARRAY_HEADER] = _array_header(element_type, len(rows))
    end = array_kernel(*cells, rows, column, out, _ARRAY_HEADER)
    assert end == out.size
    return out.data


def copy_buffer(cells: Cells, rows: I64, columns: I64) -> memoryview:
    """Return a whole binary COPY stream of those columns."""
    total = values_size_kernel(cells.length, rows, columns)
    head = len(COPY_HEADER)
    size = head + len(rows) * (2 + 4 * len(columns)) + total + len(COPY_END)
    out = np.empty(size, np.uint8)
    out[:head] = COPY_HEADER
    end = copy_kernel(*cells, rows, columns, out, head)
    out[end:] = COPY_END
    return out.data
