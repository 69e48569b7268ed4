"""The tables for one call of the kernels in `rows`: input, work space and output."""

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
"""Maximum number of row changes of one transaction that can be incomplete at the same time."""


class RowStatus(IntEnum):
    """The result of an assembly. Each value except OK and CAPACITY is the reason for a fault of one
    table.
    """

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
"""The bit numbers of `redo.batch.Role`, and the number of roles."""

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
WITH_PARTS: Final = 12
COUNTS: Final = 13
"""Indexes of `RowJob.counts`, and the size of this array."""


CELL: Final = row_type([("stamp", "i8"), ("first", "i4"), ("last", "i4")])
"""The value of a column in a role, while a change is assembled. `stamp` is the number of the change
that set the cell last; for every other change, the cell is empty. `first` and `last` are the first
and last entry of the value, which can have several parts.
"""


class Merge(NamedTuple):
    """The values of one row change while its pieces are combined.

    Attributes:
        cells: shape (ROLES · columns); the `CELL` at ROLES · c + r is for column c in role r.
        following: shape (ROLES, entries); by role, the entry with the next part of the value, −1 if
            there is none.
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
"""An open group of pieces: its kind, its table, its address, the address of its row (−1 if
unknown), and its first and last piece. `chains` explains kinds and addresses.
"""

LINK: Final = row_type(
    [("next_piece", "i8"), ("owner", "i8"), ("shift", "i4"), ("bdba", "u4"), ("slot", "u2")],
)
"""For each piece: the next piece of its group (−1 if it is the last), its event, the number of the
row's columns before the piece, and the address of its row.
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
"""A row change. Its fields are the columns of `DmlColumns` with the same names."""


FAULT: Final = row_type([("transaction", "i8"), ("event", "i8"), ("status", "i8")])
"""A fault: the transaction, the event that cannot be assembled, and the reason, a `RowStatus`. All
changes of the event's table are left out of the transaction.
"""


KNOWN_MAX: Final = 4096
"""Maximum number of row pieces for which an assembly remembers, until the end of the transaction,
how many columns precede them.
"""

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
"""A piece that the transaction wrote: its table and address, the number of the row's columns before
it, and the address of its row.
"""


class RowJob(NamedTuple):
    """The tables for one call: input, output and work space.

    Attributes:
        batch, plan: the input.
        piece_first, entry_first: the index of each event's first piece, and of each piece's first
            entry.
        groups: open `GROUP`s.
        links: a `LINK` for each piece.
        changes: the `CHANGE` rows to fill.
        entry_start: the index of each change's first value.
        values: the `VALUE` rows to fill. If `next` is −2 − k, the next part of the value is part k
            of `parts`.
        parts: shape (3, …); offset, length and next of further parts of values.
        known: the known pieces of the current transaction (`KNOWN`).
        faults: the `FAULT` rows to fill, at most one per transaction and table.
        counts: numbers, by the indexes CHANGES and following. CHANGES, VALUES and PARTS: used rows
            of the tables. UNDONE: undone changes. UNMATCHED: undo markers without a matching
            change. WITHOUT_SET: updates that set nothing. KNOWN_BEFORE: known pieces at the start.
            MORE: 1 if more events of the transaction follow. SETTLED: number of events, from the
            first on, after which no row change is incomplete.
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
    """The state after one part of a transaction, with which the assembly of the next part begins.

    Attributes:
        known: a table with the known pieces (`KNOWN`), and space for more.
        known_count: the number of known pieces.
    """

    known: ColumnTable
    known_count: int


def nothing_before() -> Before:
    """Return the state before the first part of a transaction."""
    return Before(columns_of(KNOWN, KNOWN_MAX), 0)


def row_job(
    batch: ChangeBatch,
    plan: RowPlan,
    room: int,
    before: Before | None = None,
    *,
    more: bool = False,
) -> RowJob:
    """Return a job for assembling the row changes of a batch, with space for `room` values.

    Args:
        batch, plan: see `RowJob`.
        before: if the batch is a part of one transaction, the state after the previous part.
        more: whether more events of this transaction follow.
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
    """Return the row changes that a job produced. If a value has several parts, the parts after the
    first one are entries behind all values.
    """
    changes, entries, parts = (int(job.counts[at]) for at in (CHANGES, VALUES, PARTS))
    rows, values = head(job.changes, changes), head(job.values, entries)
    if parts:
        values = _with_parts(values, job.parts[:, :parts])
    # The encoder is compiled for arrays that are contiguous in memory.
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
    """The fields of `CHANGE`, one array for each."""

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
    """Copy `CHANGE` rows into one array per field, in one pass."""
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
