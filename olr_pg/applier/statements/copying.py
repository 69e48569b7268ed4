"""Copies plain inserts from the received bytes into a binary COPY stream: one kernel, one pass.

A batch that contains only inserts needs no net change: if a key occurs twice, the target's
constraint refuses it. If the kernel meets a value that only its encoder can convert, or a missing
key, the batch is applied like other changes (`table_changes`, `table_statements`).

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
    from olr_pg.transactions.change_columns import ChangeColumns

U8 = npt.NDArray[np.uint8]
U16 = npt.NDArray[np.uint16]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]

_INSERT = int(DmlKind.INSERT)

_SCRATCH: Final = 2 * PLAIN_BYTES_MAX
"""Bytes at the end of the buffer, for values that must begin at an even offset."""


class TupleColumns(NamedTuple):
    """The columns of a tuple.

    Attributes:
        place: shape (fields of the target); the index of each in the tuple, −1 if it is not in it.
        is_key: shape (columns); 1 if the value must not be NULL.
        lead: the column that tuples are sorted by, −1 for none.
        value: shape (columns); scratch space for the index of each column's value.
    """

    place: I64
    is_key: U8
    lead: int
    value: I64


class Tuples(NamedTuple):
    """A buffer for the tuples of a batch.

    Attributes:
        start: where each tuple begins.
        prefix: of each tuple's lead.
        out, shorts: two views of one buffer for all tuples and `_SCRATCH`.
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
        (tuples, end, ordered): how many were written, fewer where one is left to the way of all
        changes; where they end; whether the leads ascend, within this chunk and from the one
        before.
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
            # Of a field that is NULL there is its size alone, whose first bit is set.
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
    """Write the COPY stream of these changes into `plan.inserted`, sorted by the first bytes of the
    key; return None if they are not all plain inserts.

    None unless all are plain inserts.
    """
    try:
        for chunk, elements in selection.by_chunk():
            if len(elements):
                plan.bind(chunk, int(elements[0]))
    except OlrPgError:
        return None  # the general path reports which change it is
    columns = plan.inserted
    is_key = plan.is_key[columns]
    if is_key.sum() != len(plan.key):
        return None
    lead = int(np.flatnonzero(columns == plan.key[0])[0]) if len(plan.key) else -1
    place = np.full(len(plan.target.columns), -1, np.int64)
    place[columns] = np.arange(len(columns))
    layout = TupleColumns(place, is_key, lead, np.empty(len(columns), np.int64))
    count, head = len(selection), len(COPY_HEADER)
    # An element is larger than its values in the target's form, including their sizes: each element
    # has a header of 37 bytes.
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
    # Copy the stream if most of the buffer is unused: the stream waits for its turn, but the buffer
    # need not.
    return (out[:end].copy() if 2 * end < out.size else out[:end]).data


def _again(
    plan: TablePlan, selection: Selection, chunk: ReceivedChanges, element: int
) -> memoryview | None:
    """Write the stream again after binding the columns, if the kernel stopped at a change with
    unbound columns.
    """
    try:
        return copy_stream(plan, selection) if plan.bind(chunk, element) else None
    except OlrPgError:
        return None
