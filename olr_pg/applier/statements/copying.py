"""Writes inserts from the received bytes into a binary COPY stream, by one kernel in one pass.

A batch that contains only inserts needs no net change: if a key occurs twice, the target's
constraint refuses it. If the kernel finds a value that only its encoder can convert, or a row
without its key, the whole batch is applied like other changes (`table_changes`,
`table_statements`).

Facts: type-mapping §3.2 (COPY).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.applier.statements.images import COPY_END, COPY_HEADER
from olr_pg.applier.statements.net_change import key_prefix
from olr_pg.datatypes.plain import ENCODED, PLAIN_BYTES_MAX, put_field
from olr_pg.errors import OlrPgError
from olr_pg.kernels.bytes import copy_forward, store
from olr_pg.kernels.compile import kernel
from olr_pg.transactions.finished_columns import DmlKind

if TYPE_CHECKING:
    from olr_pg.applier.received.change_reading import ReceivedChanges
    from olr_pg.applier.received.row_columns import BoundColumns
    from olr_pg.applier.statements.table_changes import Selection
    from olr_pg.applier.statements.target_plan import TablePlan
    from olr_pg.transactions.finished_columns import ChangeColumns

U8 = npt.NDArray[np.uint8]
U16 = npt.NDArray[np.uint16]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]

_INSERT = int(DmlKind.INSERT)

_SCRATCH: Final = 2 * PLAIN_BYTES_MAX
"""Size in bytes of an area at the end of the buffer, where values that need an even offset are
converted.
"""


class TupleColumns(NamedTuple):
    """The columns of a tuple, which is a row of the COPY stream.

    Attributes:
        place: shape (columns of the target); the index of each column in the tuple; −1 if the tuple
            does not contain it.
        is_key: shape (columns); 1 if the value must not be NULL.
        lead: the column of the tuple by which tuples are sorted; −1 for none.
        value: shape (columns); scratch space for the index of each column's value.
    """

    place: I64
    is_key: U8
    lead: int
    value: I64


class Tuples(NamedTuple):
    """A buffer for the tuples of a batch.

    Attributes:
        start: the offset at which each tuple begins.
        prefix: the first bytes of each tuple's `lead` column, as a number that sorts like the
            column.
        out, shorts: the buffer for all tuples and `_SCRATCH`, as bytes and as 16-bit integers.
    """

    start: I64
    prefix: U64
    out: U8
    shorts: U16


@kernel
def copy_rows_kernel(
    changes: ChangeColumns, elements: I64, bound: BoundColumns, columns: TupleColumns,
    tuples: Tuples, first_row: int, at: int,
) -> tuple[int, int, bool]:  # fmt: skip
    """Write the inserts `elements` of one chunk as tuples from `at` on.

    Args:
        first_row: number of the first tuple.

    Returns:
        (tuples, end, ordered): how many tuples were written, which is less than all if an insert
        cannot be written; the offset of their end; whether they are sorted by `lead`, including the
        last tuple of the previous chunk.
    """
    out, prefix, of_column = tuples.out, tuples.prefix, columns.value
    width = of_column.size
    ordered = True
    for number in range(elements.size):
        element, row = elements[number], first_row + number
        if changes.kind[element] != _INSERT:
            return number, at, ordered
        tuples.start[row] = at
        store(out, at, np.int16(width), True)
        at += 2
        for column in range(width):
            of_column[column] = -1
        for value in range(changes.entry_first[element], changes.entry_first[element + 1]):
            field = bound.field[changes.value_column[value]]
            if field == -1:
                return number, at, ordered
            if field >= 0:
                of_column[columns.place[field]] = value
        for column in range(width):
            value, form, offset, size = of_column[column], ENCODED, 0, -1
            if value >= 0 and changes.value_length[value] != -1:
                form = int(np.int64(bound.form[changes.value_column[value]]))
                offset = int(changes.value_offset[value])
                size = int(changes.value_length[value])
            end = -2 if form == 0 else put_field(
                changes.data, offset, size, form, out, tuples.shorts, at
            )  # fmt: skip
            # A NULL consists only of its size, −1, so the first bit is set.
            if end < 0 or (columns.is_key[column] and out[at] & 0x80):
                return number, at, ordered
            if column == columns.lead:
                prefix[row] = key_prefix(out, at + 4, end - at - 4, 0)
                ordered &= row == 0 or prefix[row - 1] <= prefix[row]
            at = end
    return elements.size, at, ordered


@kernel
def reorder_kernel(data: U8, start: I64, order: I64, out: U8, at: int) -> int:
    """Copy the tuples in the given order to offset `at` of `out`; return the end."""
    for row in order:
        at = copy_forward(out, at, data, start[row], start[row + 1])
    return at


def copy_stream(plan: TablePlan, selection: Selection) -> memoryview | None:
    """Return these changes as a COPY stream for the columns `plan.inserted`, sorted by the first
    bytes of the key.

    Return None if a change is not an insert, or if the kernel cannot convert one of its values.
    """
    try:
        for chunk, elements in selection.by_chunk():
            if len(elements):
                plan.bind(chunk, int(elements[0]))
    except OlrPgError:
        return None  # the general path reports the error with its change
    columns = plan.inserted
    is_key = plan.is_key[columns]
    if is_key.sum() != len(plan.key):
        return None
    lead = int(np.flatnonzero(columns == plan.key[0])[0]) if len(plan.key) else -1
    place = np.full(len(plan.target.columns), -1, np.int64)
    place[columns] = np.arange(len(columns))
    layout = TupleColumns(place, is_key, lead, np.empty(len(columns), np.int64))
    count, head = len(selection), len(COPY_HEADER)
    # This is enough: the element of a change is larger than the tuple of its values, because it has
    # a description of at least 37 bytes for each value.
    room = head + selection.element_bytes() + count * (2 + 4 * len(columns)) + _SCRATCH
    shorts = np.empty(room // 2 + 2, np.uint16)
    out = shorts.view(np.uint8)
    start, prefix = np.empty(count + 1, np.int64), np.empty(count, np.uint64)
    row, at, is_ordered = 0, head, True
    for chunk, elements in selection.by_chunk():
        bound = plan.bound(chunk.directory)
        done, at, ordered = copy_rows_kernel(
            chunk.changes, elements, bound, layout, Tuples(start, prefix, out, shorts), row, at
        )
        if done < len(elements):
            return _again(plan, selection, chunk, int(elements[done]))
        row += done
        is_ordered &= ordered
    start[count] = at
    if not is_ordered:
        tuples, out = out, np.empty(at + len(COPY_END), np.uint8)
        at = reorder_kernel(tuples, start, np.argsort(prefix, kind="stable"), out, head)
    end = at + len(COPY_END)
    out[:head], out[at:end] = COPY_HEADER, COPY_END
    # If most of the buffer is unused, copy the stream to free the buffer, because the stream may
    # have to wait before it is sent.
    return (out[:end].copy() if 2 * end < out.size else out[:end]).data


def _again(
    plan: TablePlan, selection: Selection, chunk: ReceivedChanges, element: int
) -> memoryview | None:
    """If the kernel stopped at a change whose target columns were not looked up yet, look them up,
    and write the stream again.
    """
    try:
        return copy_stream(plan, selection) if plan.bind(chunk, element) else None
    except OlrPgError:
        return None
