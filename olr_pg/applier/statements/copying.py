"""Plain inserts straight from the received bytes into a binary COPY stream: one kernel, one pass.

A batch that only inserts has no net change to compute: a key that comes twice is refused by the
target, or by nobody, one way or the other. What the kernel does not take – a value that only its
encoder knows, a key that is not there – goes the way of all changes
(`table_changes`, `table_statements`).

Facts: type-mapping §3.2 (COPY).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.applier.statements.images import COPY_END, COPY_HEADER
from olr_pg.applier.statements.net_change import key_prefix
from olr_pg.datatypes.plain import PLAIN_BYTES_MAX, PlainForm, write_plain
from olr_pg.errors import OlrPgError
from olr_pg.kernels.bytes import copy_bytes, copy_forward, store
from olr_pg.kernels.compile import kernel
from olr_pg.transactions.finished_columns import DmlKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from olr_pg.applier.received.parse import Answers
    from olr_pg.applier.received.row_columns import Operations
    from olr_pg.applier.statements.table_changes import AnswerChunk, Selection
    from olr_pg.applier.statements.target_plan import TablePlan

U8 = npt.NDArray[np.uint8]
U16 = npt.NDArray[np.uint16]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]

_SCRATCH: Final = 2 * PLAIN_BYTES_MAX
"""Bytes at the end of the room, for values that must begin at an even place."""


class _Part(NamedTuple):
    """Inserts of one chunk.

    Attributes:
        layouts: by number, what is done with the changes of those that they have.
    """

    chunk: AnswerChunk
    elements: I64
    layouts: Mapping[int, Operations]


class TupleColumns(NamedTuple):
    """The columns of a tuple.

    Attributes:
        entry: shape (layouts, columns); place among the change's values, −1 = NULL.
        form: the same shape; `PlainForm`.
        is_key: shape (columns); 1 where a value must not be NULL.
        lead: the column that tuples are sorted by, −1 = none.
    """

    entry: I32
    form: U8
    is_key: U8
    lead: int


class Tuples(NamedTuple):
    """Room for the tuples of a batch.

    Attributes:
        start: where each tuple begins.
        prefix: of each tuple's lead.
        out, shorts: the same memory; room for all tuples and `_SCRATCH`.
    """

    start: I64
    prefix: U64
    out: U8
    shorts: U16


@kernel
def copy_rows_kernel(
    answers: Answers, elements: I64, columns: TupleColumns, tuples: Tuples, first_row: int, at: int
) -> tuple[int, int, bool]:
    """Write the inserts `elements` of one chunk as tuples, from `at` on.

    Args:
        first_row: number of the first tuple.

    Returns:
        (tuples, end, ordered): how many were written, fewer where one is left to the way of all
        changes; where they end; whether the leads ascend, within this chunk and from the one
        before.
    """
    entry, form, out, prefix = columns.entry, columns.form, tuples.out, tuples.prefix
    width = entry.shape[1]
    scratch = (out.size - 64) & ~1
    ordered = True
    for number in range(elements.size):
        element, row = elements[number], first_row + number
        tuples.start[row] = at
        store(out, at, np.int16(width), True)
        at += 2
        values, which = answers.entry_first[element], answers.layout[element]
        for column in range(width):
            size = -1
            if entry[which, column] >= 0:
                value, how = values + entry[which, column], int(form[which, column])
                place = at + 4
                if how == 4 and place & 1:
                    place = scratch
                offset, length = answers.value_offset[value], answers.value_length[value]
                size = write_plain(answers.data, offset, length, how, out, tuples.shorts, place)
                if size == -2:
                    return number, at, ordered
                if place == scratch:
                    copy_bytes(out, at + 4, out, scratch, scratch + max(size, 0))
            if size < 0 and columns.is_key[column]:
                return number, at, ordered
            store(out, at, np.int32(size), True)
            at += 4
            if column == columns.lead:
                prefix[row] = key_prefix(out, at, size, 0)
                ordered &= row == 0 or prefix[row - 1] <= prefix[row]
            at += max(size, 0)
    return elements.size, at, ordered


@kernel
def reorder_kernel(data: U8, start: I64, order: I64, out: U8, at: int) -> int:
    """Copy the tuples in that order to `at` of `out`; return the end."""
    for row in order:
        at = copy_forward(out, at, data, start[row], start[row + 1])
    return at


def copy_stream(plan: TablePlan, selection: Selection) -> memoryview | None:
    """Write the whole COPY of these changes into `plan.inserted`, by the first bytes of the key.

    None where they are not all plain inserts.
    """
    parts = [_bound(plan, chunk, elements) for chunk, elements in selection.by_chunk()]
    columns = plan.inserted
    is_key = np.isin(columns, plan.key).astype(np.uint8)
    if is_key.sum() != len(plan.key):
        return None
    lead = int(np.flatnonzero(columns == plan.key[0])[0]) if len(plan.key) else -1
    count, head = len(selection), len(COPY_HEADER)
    # An element is larger than the values that it has in the target's form, their sizes included:
    # each has a head of 37 bytes.
    room = head + selection.element_bytes() + count * (2 + 4 * len(columns)) + _SCRATCH
    shorts = np.empty(room // 2 + 2, np.uint16)
    out = shorts.view(np.uint8)
    start, prefix = np.empty(count + 1, np.int64), np.empty(count, np.uint64)
    row, at, is_ordered = 0, head, True
    for part in parts:
        if part is None:
            return None
        entry, form = _rows(plan, part, columns)
        done, at, ordered = copy_rows_kernel(
            part.chunk.answers,
            part.elements,
            TupleColumns(entry, form, is_key, lead),
            Tuples(start, prefix, out, shorts),
            row,
            at,
        )
        if done < len(part.elements):
            return None
        row += done
        is_ordered &= ordered
    start[count] = at
    if not is_ordered:
        tuples, out = out, np.empty(at + len(COPY_END), np.uint8)
        at = reorder_kernel(tuples, start, np.argsort(prefix, kind="stable"), out, head)
    end = at + len(COPY_END)
    out[:head], out[at:end] = COPY_HEADER, COPY_END
    # A copy where most of the room is left: the stream waits for its turn, the room need not.
    return (out[:end].copy() if 2 * end < out.size else out[:end]).data


def _bound(plan: TablePlan, chunk: AnswerChunk, elements: I64) -> _Part | None:
    """Return these elements, if they are inserts whose values the kernel knows as layouts tell."""
    counts = np.bincount(chunk.answers.layout[elements], minlength=len(chunk.layouts))
    layouts = {}
    for number in np.flatnonzero(counts).tolist():
        layout = chunk.layouts[number]
        if layout.kind is not DmlKind.INSERT:
            return None
        try:
            bound = plan.bind(layout)
        except OlrPgError:
            return None  # the way of all changes says which change it is
        if any(column.form is PlainForm.NONE for column in bound.all):
            return None
        layouts[number] = bound.all_operations
    return _Part(chunk, elements, layouts)


def _rows(plan: TablePlan, part: _Part, columns: I64) -> tuple[I32, U8]:
    """Return `entry` and `form` of the kernel: what goes where for each layout and column."""
    shape = len(part.chunk.layouts), len(columns)
    entry, form = np.full(shape, -1, np.int32), np.zeros(shape, np.uint8)
    place = np.empty(len(plan.target.columns), np.int64)
    place[columns] = np.arange(len(columns))
    for number, operations in part.layouts.items():
        at = place[operations["field"]]
        entry[number, at], form[number, at] = operations["entry"], operations["form"]
    return entry, form
