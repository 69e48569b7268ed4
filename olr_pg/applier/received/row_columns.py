"""Changes of one table to rows in the target's form: one kernel, one pass over the values.

What of a layout goes where is an array of operations, made once per layout. A value that the
kernel does not take (a rare form, or one that is wrong) marks its operation; `table_changes` then
gives that column of the batch to its encoder, which converts it or says what is wrong with it.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from olr_pg.applier.received.parse import mix, read_u64
from olr_pg.datatypes.plain import write_plain
from olr_pg.kernels.compile import inlined, kernel

U8 = npt.NDArray[np.uint8]
U16 = npt.NDArray[np.uint16]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]

OPERATION: Final = np.dtype([("entry", "i4"), ("field", "i4"), ("after", "u1"), ("form", "u1")])
"""A value's way: its place among the change's values; the target column's place; whether it is of
the after image; `PlainForm`."""

Operations = npt.NDArray[np.void]


@inlined
def _row_id_hash(data: U8, body: int) -> np.uint64:
    """Return a hash of an element's RowId; 0 where there is none."""
    size = int(data[body + 35])
    if size == 0:
        return np.uint64(0)
    start = body + 36 + int(data[body + 33]) + int(data[body + 34])
    digest = np.uint64(size)
    if size < 8:
        for at in range(start, start + size):
            digest = mix(digest, np.uint64(data[at]))
    else:
        for at in range(start, start + size - 8, 8):
            digest = mix(digest, read_u64(data, at, False))
        digest = mix(digest, read_u64(data, start + size - 8, False))
    return digest | np.uint64(1)


@inlined
def _clear(length: I64, row: int) -> None:
    for column in range(length.shape[1]):
        length[row, column] = -2


@kernel
def encode_rows_kernel(
    data: U8,
    body: I64,
    entry_first: I64,
    value_offset: I64,
    value_length: I64,
    answer_kind: I32,
    layout: I32,
    elements: I64,
    operation_first: I64,
    operations: Operations,
    first_row: int,
    rows: int,
    kind: U8,
    row_hash: U64,
    offset: I64,
    length: I64,
    out: U8,
    shorts: U16,
    at: int,
    left: U8,
) -> int:
    """Convert the changes `elements` of one chunk into the rows from `first_row` on.

    Args:
        data, body, entry_first, value_offset, value_length, answer_kind, layout: of `Answers`.
        operation_first: shape (layouts + 1); where each layout's operations begin.
        rows: of the whole batch: the after images stand that much behind the before images.
        kind, row_hash: of the batch's changes.
        offset, length: shape (at least 2 rows, columns); cells of the images.
        out, shorts: the same memory; room for all values.
        at: where to write.
        left: per operation, set where a value was left.

    Returns:
        The end of what was written.
    """
    for number in range(elements.size):
        element, row = elements[number], first_row + number
        kind[row] = answer_kind[element]
        row_hash[row] = _row_id_hash(data, body[element])
        if kind[row] != 4:
            _clear(length, row)
        if kind[row] != 5:
            _clear(length, row + rows)
        entry = entry_first[element]
        for place in range(operation_first[layout[element]], operation_first[layout[element] + 1]):
            operation = operations[place]
            if operation["form"] == 0:
                left[place] = 1
                continue
            value = entry + operation["entry"]
            at += at & 1
            size = write_plain(
                data, value_offset[value], value_length[value], int(operation["form"]), out,
                shorts, at,
            )  # fmt: skip
            if size == -2:
                left[place] = 1
                continue
            target = row + rows if operation["after"] else row
            offset[target, operation["field"]] = at
            length[target, operation["field"]] = size
            at += max(size, 0)
    return at
