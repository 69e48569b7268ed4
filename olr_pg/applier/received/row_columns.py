"""Converts changes of one table to rows in PostgreSQL's binary format, by one kernel in one pass.

`BoundColumns` maps the number of a source column to its target column. If the kernel cannot convert
a value (because its form is rare, or it is invalid), it records the value. `table_changes` then
passes it to the column's encoder, which converts it or reports the error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.applier.received.integers import mix, read_u64
from olr_pg.datatypes.plain import write_plain
from olr_pg.kernels.compile import inlined, kernel

if TYPE_CHECKING:
    from olr_pg.transactions.finished_columns import ChangeColumns

U8 = npt.NDArray[np.uint8]
U16 = npt.NDArray[np.uint16]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]

UNBOUND: Final = -1
NOWHERE: Final = -2
"""Values of `BoundColumns.field`. `UNBOUND`: the target column was not looked up yet. `NOWHERE`:
the target column cannot be written, so values are ignored.
"""


class BoundColumns(NamedTuple):
    """The target column of each source column; the index is the column's number in the directory.

    Attributes:
        field: the index of the target column, `UNBOUND` or `NOWHERE`.
        form: how the kernel converts the values (`PlainForm`).
    """

    field: I32
    form: U8


class RowCells(NamedTuple):
    """The changes of a batch in PostgreSQL's binary format.

    Attributes:
        kind, row_hash: the kind of each change, and the hash of its ROWID.
        offset, length: shape (at least twice the number of changes, columns); the offset and the
            length of each value in `out`. The rows are the before images of all changes, then the
            after images.
        out, shorts: the buffer for all values, as bytes and as 16-bit integers.
    """

    kind: U8
    row_hash: U64
    offset: I64
    length: I64
    out: U8
    shorts: U16


class LeftValues(NamedTuple):
    """The values that the kernel did not convert and that encoders must convert.

    Attributes:
        value: the indexes of these values among the values of the changes.
        row: the rows of cells that the values belong to.
    """

    value: I64
    row: I64


@inlined
def _row_id_hash(data: U8, start: int, size: int) -> np.uint64:
    """Return a hash of a ROWID; 0 if there is no ROWID."""
    if size == 0:
        return np.uint64(0)
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


@inlined
def _sets_key(changes: ChangeColumns, element: int, field: I32, is_key: U8) -> bool:
    """Return whether the after image of a change contains a column of the key."""
    for value in range(changes.entry_after[element], changes.entry_first[element + 1]):
        place = field[changes.value_column[value]]
        if place >= 0 and is_key[place]:
            return True
    return False


@kernel
def encode_rows_kernel(
    changes: ChangeColumns, elements: I64, bound: BoundColumns, is_key: U8, whole: bool,
    cells: RowCells, left: LeftValues, first_row: int, begin: int, at: int, lefts: int,
) -> tuple[int, int, int]:  # fmt: skip
    """Convert the changes `elements` from index `begin` on. Change i of `elements` becomes row
    `first_row` + i.

    Args:
        is_key: for each target column, 1 if it belongs to the key.
        whole: whether to convert whole before images. If False, only the key of before images is
            converted, unless the change modifies the key.
        at: the offset in `cells.out` at which to write.
        lefts: how many values are in `left` so far.

    Returns:
        (number, end, lefts): the index of the change that has an unbound column, or the number of
        changes; the end of the written bytes; how many values are in `left`.
    """
    data, kind, length = changes.data, cells.kind, cells.length
    rows = kind.size
    for number in range(begin, elements.size):
        element, row = elements[number], first_row + number
        begun, lefts_before = at, lefts
        kind[row] = changes.kind[element]
        size = int(np.int64(changes.row_id_length[element]))
        cells.row_hash[row] = _row_id_hash(data, changes.row_id_offset[element], size)
        if kind[row] != 4:
            _clear(length, row)
        if kind[row] != 5:
            _clear(length, row + rows)
        every = whole or (kind[row] == 6 and _sets_key(changes, element, bound.field, is_key))
        after = changes.entry_after[element]
        for value in range(changes.entry_first[element], changes.entry_first[element + 1]):
            column = changes.value_column[value]
            field = bound.field[column]
            if field < 0:
                if field == -1:
                    return number, begun, lefts_before
                continue
            if value < after and not every and is_key[field] == 0:
                continue
            target = row + rows if value >= after else row
            offset, size = changes.value_offset[value], changes.value_length[value]
            if size == -1:
                length[target, field] = -1
                continue
            form = int(bound.form[column])
            at += at & 1
            if form == 0:
                size = -2
            else:
                size = write_plain(data, offset, size, form, cells.out, cells.shorts, at)
            if size == -2:
                left.value[lefts], left.row[lefts] = value, target
                lefts += 1
                continue
            cells.offset[target, field] = at
            length[target, field] = size
            at += max(size, 0)
    return elements.size, at, lefts
