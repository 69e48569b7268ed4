"""The tables of one call of the kernels of `rows`: input, work space and output."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.kernels.compile import kernel
from olr_pg.redo.batch import ChangeBatch, columns_of
from olr_pg.redo.column_tables import ColumnTable, grown, head, row_type
from olr_pg.transactions.finished_columns import VALUE, DmlColumns
from olr_pg.transactions.select import first_rows

if TYPE_CHECKING:
    from olr_pg.dictionary.decoding_plan import RowPlan

MOST_OPEN: Final = 4096
"""Maximum number of row changes of one transaction that can be incomplete at a time."""


class RowStatus(IntEnum):
    """The result of an assembly; all except OK and CAPACITY are faults of one table."""

    OK = 0
    CAPACITY = 1
    UNKNOWN_COLUMN = 2
    MULTI_PIECE = 3
    INCOMPLETE = 4
    PACKED = 5
    UNDECODED = 6
    CONTRADICTS = 7


OK: Final = int(RowStatus.OK)
CAPACITY: Final = int(RowStatus.CAPACITY)
UNKNOWN_COLUMN: Final = int(RowStatus.UNKNOWN_COLUMN)
MULTI_PIECE: Final = int(RowStatus.MULTI_PIECE)
INCOMPLETE: Final = int(RowStatus.INCOMPLETE)
PACKED: Final = int(RowStatus.PACKED)
UNDECODED: Final = int(RowStatus.UNDECODED)
CONTRADICTS: Final = int(RowStatus.CONTRADICTS)

BEFORE: Final = 0
AFTER: Final = 1
BEFORE_SUPPLEMENTAL: Final = 2
AFTER_SUPPLEMENTAL: Final = 3
ROLES: Final = 4
"""The roles of `redo.batch.Role` by bit number, and their number."""

CHANGES: Final = 0
VALUES: Final = 1
PARTS: Final = 2
STAMP: Final = 3
UNDONE: Final = 4
UNMATCHED: Final = 5
WITHOUT_SET: Final = 6
KNOWN_PIECES: Final = 7
FAULTS: Final = 8
KNOWN_BEFORE: Final = 9
MORE: Final = 10
SETTLED: Final = 11
COUNTS: Final = 12
"""Indexes in `RowJob.counts`, and its size."""


CELL: Final = row_type([("stamp", "i8"), ("first", "i4"), ("last", "i4")])
"""A column's value in a role: the change that last set it, and the first and last entry of its
parts.
"""


class Merge(NamedTuple):
    """The values of one row change while its pieces are combined.

    Attributes:
        cells: shape (ROLES · columns); `CELL` ROLES · c + r is that of column c in role r.
        following: shape (ROLES, entries); by role, the entry that continues a value, −1 for none.
    """

    cells: ColumnTable
    following: npt.NDArray[np.int64]


class Shape(NamedTuple):
    """The part of a row plan that the assembly needs; see `dictionary.decoding_plan.RowPlan`."""

    segment_first: npt.NDArray[np.int64]
    segment_column: npt.NDArray[np.int32]
    column_first: npt.NDArray[np.int64]
    as_stored: npt.NDArray[np.uint8]


GROUP: Final = row_type(
    [
        ("kind", "i8"),
        ("table", "i8"),
        ("bdba", "i8"),
        ("slot", "i8"),
        ("row_bdba", "i8"),
        ("row_slot", "i8"),
        ("head", "i8"),
        ("tail", "i8"),
    ]
)
"""An open group of pieces: the row that it belongs to, its first and last piece; `chains` explains
the kinds.
"""

LINK: Final = row_type(
    [("next_piece", "i8"), ("owner", "i8"), ("shift", "i4"), ("bdba", "u4"), ("slot", "u2")],
)
"""For each piece: the next piece of its group (−1 for none), its event, the number of the row's
columns before it, and its row's address.
"""

CHANGE: Final = row_type(
    [
        ("kind", "u1"),
        ("table", "i4"),
        ("scn", "u8"),
        ("time", "u4"),
        ("sequence", "u4"),
        ("block", "u4"),
        ("offset", "u2"),
        ("dataobj", "u4"),
        ("bdba", "u4"),
        ("slot", "u2"),
        ("stored_first", "i8"),
        ("stored_count", "i4"),
    ],
)
"""A row change; the fields are the columns of `DmlColumns` with the same names."""


FAULT: Final = row_type([("transaction", "i8"), ("event", "i8"), ("status", "i8")])
"""A table's part of a transaction that is left out, with the change that caused it and its
`RowStatus`.
"""


KNOWN_MAX: Final = 4096
"""Maximum number of row pieces of one transaction whose position in their row is remembered."""

KNOWN: Final = row_type(
    [
        ("table", "i8"),
        ("bdba", "i8"),
        ("slot", "i8"),
        ("shift", "i8"),
        ("row_bdba", "i8"),
        ("row_slot", "i8"),
    ]
)
"""A piece that the transaction wrote: its address, the number of columns before it, its row's
address.
"""


class RowJob(NamedTuple):
    """The tables of one call: input, output, and work space.

    Attributes:
        batch, plan: the input.
        piece_first, entry_first: where each event's pieces and each piece's entries begin.
        groups: open `GROUP`s.
        links: the `LINK` of each piece.
        changes: `CHANGE` rows to be filled.
        entry_start: where each change's values begin.
        values: `VALUE` rows to be filled; `next` of −2 − k means part k of `parts`.
        parts: shape (3, …); offset, length and next of further parts of values.
        known: `KNOWN` pieces of the current transaction.
        faults: `FAULT` rows to be filled, at most one per transaction and table.
        counts: by CHANGES (number written) …, UNDONE and UNMATCHED (undo with and without a
            matching change), WITHOUT_SET (updates that set nothing), KNOWN_BEFORE (pieces known at
            the start), MORE (whether more of the transaction follows), SETTLED (number of live
            events after which no row is incomplete).
    """

    batch: ChangeBatch
    plan: Shape
    piece_first: npt.NDArray[np.int64]
    entry_first: npt.NDArray[np.int64]
    merge: Merge
    groups: ColumnTable
    links: ColumnTable
    changes: ColumnTable
    entry_start: npt.NDArray[np.int64]
    values: ColumnTable
    parts: npt.NDArray[np.int64]
    known: ColumnTable
    faults: ColumnTable
    counts: npt.NDArray[np.int64]


class Before(NamedTuple):
    """The state from which the assembly of a transaction's part continues.

    Attributes:
        known: the known pieces, and space for more.
        known_count: the number of known pieces.
    """

    known: ColumnTable
    known_count: int


def nothing_before() -> Before:
    """Return the state before a transaction's first part."""
    return Before(columns_of(KNOWN, KNOWN_MAX), 0)


def row_job(
    batch: ChangeBatch,
    plan: RowPlan,
    room: int,
    before: Before | None = None,
    *,
    more: bool = False,
) -> RowJob:
    """Return a job that assembles a batch's rows, with space for `room` values.

    Args:
        batch, plan, room: see `RowJob`.
        before: if the batch is a part of one transaction, the state before it.
        more: whether more of that transaction follows.
    """
    pieces = batch.pieces.op.size
    widest = int(np.diff(plan.column_first).max(initial=1))

    def numbers(*shape: int) -> npt.NDArray[np.int64]:
        return np.empty(shape, np.int64)

    changes = pieces + 1
    known, count = before or nothing_before()
    counts = np.zeros(COUNTS, np.int64)
    counts[KNOWN_BEFORE], counts[MORE] = count, more
    merge = Merge(
        np.zeros(ROLES * widest, CELL).view(ColumnTable),
        numbers(ROLES, batch.entries.role.size),
    )
    return RowJob(
        batch,
        Shape(plan.segment_first, plan.segment_column, plan.column_first, plan.as_stored),
        first_rows(batch.events.piece_count),
        first_rows(batch.pieces.entry_count),
        merge,
        columns_of(GROUP, MOST_OPEN + 1),
        columns_of(LINK, pieces),
        columns_of(CHANGE, changes),
        numbers(changes + 1),
        columns_of(VALUE, room),
        numbers(3, batch.entries.role.size + 1),
        known,
        columns_of(FAULT, batch.events.kind.size),
        counts,
    )


def assembled(job: RowJob) -> DmlColumns:
    """Return the rows of a job's output, with further parts of values appended."""
    changes, entries, parts = (int(job.counts[at]) for at in (CHANGES, VALUES, PARTS))
    rows, values = head(job.changes, changes), head(job.values, entries)
    if parts:
        values = _with_parts(values, job.parts[:, :parts])
    # The encoder is compiled for columns whose values are stored one after the other.
    own = ChangeColumns(*(np.empty(changes, rows.dtype[name]) for name in ChangeColumns._fields))
    _take_apart(rows, own)
    return DmlColumns(
        **own._asdict(),
        entry_first=job.entry_start[: changes + 1],
        values=values,
        stored=job.batch.entries,
        data=job.batch.data,
    )


class ChangeColumns(NamedTuple):
    """The fields of `CHANGE`, each a column."""

    kind: Any
    table: Any
    scn: Any
    time: Any
    sequence: Any
    block: Any
    offset: Any
    dataobj: Any
    bdba: Any
    slot: Any
    stored_first: Any
    stored_count: Any


@kernel
def _take_apart(rows: Any, columns: ChangeColumns) -> None:
    """Split `CHANGE` rows into columns, in one pass."""
    for i in range(rows.size):
        row = rows[np.uint64(i)]
        columns.kind[i] = row.kind
        columns.table[i] = row.table
        columns.scn[i] = row.scn
        columns.time[i] = row.time
        columns.sequence[i] = row.sequence
        columns.block[i] = row.block
        columns.offset[i] = row.offset
        columns.dataobj[i] = row.dataobj
        columns.bdba[i] = row.bdba
        columns.slot[i] = row.slot
        columns.stored_first[i] = row.stored_first
        columns.stored_count[i] = row.stored_count


def _with_parts(values: ColumnTable, parts: npt.NDArray[np.int64]) -> ColumnTable:
    entries = values.size
    joined = grown(values, entries, entries + parts.shape[1])
    joined.next[:entries] = np.where(values.next < -1, entries - 2 - values.next, -1)
    further: Any = joined[entries:]
    further.offset, further.length, part_next = parts
    further.next = np.where(part_next >= 0, part_next + entries, -1)
    further.column, further.image = 0, 0
    return joined
