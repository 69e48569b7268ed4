"""Converts record batches directly to the tuples of a binary COPY: one kernel writes row after row.

If a column's type, or one of its values, cannot be converted by the kernel, the column's encoder
converts the column for the whole batch, and the kernel copies the resulting bytes. The tuples are
the same as those from `column_binding.encode_batch`, but most columns need no intermediate copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from olr_pg.datatypes.plain import ENCODED, PLAIN_BYTES_MAX, PlainForm, put_field
from olr_pg.datatypes.policies import NOTHING
from olr_pg.kernels.bytes import store
from olr_pg.kernels.compile import kernel
from olr_pg.load.column_binding import check_sizes, converted, encoded_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    import pyarrow as pa

    from olr_pg.datatypes.columns import ValueColumn
    from olr_pg.datatypes.policies import Counters
    from olr_pg.load.column_binding import LoadColumn

    U8 = npt.NDArray[np.uint8]
    U16 = npt.NDArray[np.uint16]
    I64 = npt.NDArray[np.int64]

_AS_LONG: Final = (PlainForm.UTF8, PlainForm.ASCII, PlainForm.BYTES, ENCODED)
"""Forms in which the result has the same number of bytes as the value."""


class PlainTuples(NamedTuple):
    """The tuples of a batch.

    Attributes:
        data: the tuples, one after the other.
        losses: counts of values that policies changed, per column.
    """

    data: memoryview
    losses: tuple[Counters, ...]


class _Values(NamedTuple):
    """The values of all columns of a batch.

    Attributes:
        data: the bytes of all values.
        offset, length: shape (columns, rows).
        form: shape (columns); `PlainForm`, or `ENCODED`.
    """

    data: U8
    offset: I64
    length: I64
    form: U8


@kernel
def tuples_kernel(values: _Values, out: U8, shorts: U16) -> tuple[int, int]:
    """Write all rows as tuples.

    Args:
        out, shorts: two views of the same buffer. The buffer has space for all tuples, and
            `PLAIN_BYTES_MAX` · 2 bytes more.

    Returns:
        (−1, the end of the tuples). If only an encoder can convert a value, (the value's column,
        the value's row).
    """
    width, rows = values.offset.shape
    at = 0
    for row in range(rows):
        store(out, at, np.int16(width), True)
        at += 2
        for column in range(width):
            offset, size = values.offset[column, row], values.length[column, row]
            form = int(values.form[column])
            at = put_field(values.data, offset, size, form, out, shorts, at)
            if at < 0:
                return column, row
    return -1, at


def plain_tuples(
    columns: Sequence[LoadColumn], batch: pa.RecordBatch, first_row: int = 0
) -> PlainTuples:
    """Convert a batch to tuples in PostgreSQL's binary form.

    Args:
        first_row: the batch's first row in its partition, for messages.

    Raises:
        OlrPgError: see `encode_batch`.
    """
    given = [converted(column, batch, first_row) for column in columns]
    form = np.array([column.form for column in columns], np.uint8)
    losses = [NOTHING] * len(columns)
    values = list(given)

    def encode(number: int) -> None:
        column = columns[number]
        values[number], losses[number] = encoded_values(column, given[number], batch, first_row)
        form[number] = ENCODED

    for number, column in enumerate(columns):
        if column.form is PlainForm.NONE:
            encode(number)
        else:
            check_sizes(column, given[number], batch, first_row)
    while True:
        shorts = np.empty(_room(values, form) // 2 + 1, np.uint16)
        out = shorts.view(np.uint8)
        left, end = tuples_kernel(_joined(values, form), out, shorts)
        if left < 0:
            return PlainTuples(out[:end].data, tuple(losses))
        encode(left)


def _room(values: Sequence[ValueColumn], form: U8) -> int:
    rows = len(values[0].length)
    room = 2 * rows + 2 * PLAIN_BYTES_MAX
    for column, how in zip(values, form, strict=True):
        long = int(np.maximum(column.length, 0).sum()) if how in _AS_LONG else 0
        room += rows * (4 if how in _AS_LONG else 4 + PLAIN_BYTES_MAX) + long
    return room


def _joined(values: Sequence[ValueColumn], form: U8) -> _Values:
    """Copy the columns' bytes into one buffer, because a kernel accepts no list of buffers."""
    shift = np.cumsum([0, *(column.data.size for column in values)])
    return _Values(
        np.concatenate([column.data for column in values]),
        np.stack([column.offset + at for column, at in zip(values, shift, strict=False)]),
        np.stack([column.length for column in values]),
        form,
    )
