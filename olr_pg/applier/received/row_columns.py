"""Changes of one table to rows in the target's form: one kernel, one pass over the values.

What of a layout goes where is an array of operations, made once per layout. A value that the
kernel does not take (a rare form, or one that is wrong) marks its operation; `table_changes` then
gives that column of the batch to its encoder, which converts it or says what is wrong with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.applier.received.parse import mix, read_u64
from olr_pg.datatypes.plain import write_plain
from olr_pg.kernels.compile import inlined, kernel

if TYPE_CHECKING:
    from olr_pg.applier.received.parse import Answers

U8 = npt.NDArray[np.uint8]
U16 = npt.NDArray[np.uint16]
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


class Conversion(NamedTuple):
    """What is done with the changes of one chunk.

    Attributes:
        first: shape (layouts + 1); where each layout's operations begin.
        left: per operation, set where a value was left.
    """

    first: I64
    operations: Operations
    left: U8


class RowCells(NamedTuple):
    """The changes of a batch in the target's form.

    Attributes:
        kind, row_hash: of each change.
        offset, length: shape (at least 2 rows, columns); cells of the images, those after the
            changes behind those before them.
        out, shorts: the same memory; room for all values.
    """

    kind: U8
    row_hash: U64
    offset: I64
    length: I64
    out: U8
    shorts: U16


@kernel
def encode_rows_kernel(
    answers: Answers, elements: I64, todo: Conversion, cells: RowCells, first_row: int, at: int
) -> int:
    """Convert the changes `elements` of one chunk into the rows from `first_row` on.

    Args:
        at: where to write.

    Returns:
        The end of what was written.
    """
    data, kind, length = answers.data, cells.kind, cells.length
    rows = kind.size
    for number in range(elements.size):
        element, row = elements[number], first_row + number
        kind[row] = answers.kind[element]
        cells.row_hash[row] = _row_id_hash(data, answers.body[element])
        if kind[row] != 4:
            _clear(length, row)
        if kind[row] != 5:
            _clear(length, row + rows)
        entry, layout = answers.entry_first[element], answers.layout[element]
        for place in range(todo.first[layout], todo.first[layout + 1]):
            operation = todo.operations[place]
            if operation["form"] == 0:
                todo.left[place] = 1
                continue
            value = entry + operation["entry"]
            offset, size = answers.value_offset[value], answers.value_length[value]
            at += at & 1
            size = write_plain(
                data, offset, size, int(operation["form"]), cells.out, cells.shorts, at
            )
            if size == -2:
                todo.left[place] = 1
                continue
            target = row + rows if operation["after"] else row
            cells.offset[target, operation["field"]] = at
            length[target, operation["field"]] = size
            at += max(size, 0)
    return at
