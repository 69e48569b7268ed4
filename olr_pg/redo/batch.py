"""The tables for the contents of a window: transaction events, row pieces, column values.

An event is something that happened to a transaction. A CHANGE event has the row pieces of its
vector pair (one, or one per row for multi-row vectors); a piece has column values. Values stay in
the window's payload (`ChangeBatch.data`).

Each of the three is a structured array: a column is a field of it (``events.scn``), and a kernel
gets the table as one argument. With a separate array per column, the kernels' signatures had about
four hundred machine arguments, which took Numba a minute to compile.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from olr_pg.redo.column_tables import ColumnTable, row_type

U8 = npt.NDArray[np.uint8]
U16 = npt.NDArray[np.uint16]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]


class EventKind(IntEnum):
    """The kinds of event of a transaction."""

    BEGIN = 1
    COMMIT = 2
    ROLLBACK = 3
    CHANGE = 4
    UNDONE = 5
    SESSION = 6
    LOB = 7
    DDL = 8
    UNDO_PART = 9
    SPLIT_CHANGE = 10
    UNDECODED = 11
    PARALLEL = 12
    STRAY = 13


class Role(IntFlag):
    """Flags of a value: the state of the row that it belongs to, and how it was logged (redo-format
    §7.6).
    """

    BEFORE = 1
    AFTER = 2
    BEFORE_SUPPLEMENTAL = 4
    AFTER_SUPPLEMENTAL = 8


class CutFlag(IntFlag):
    """Row flag bits of a value that is divided among several pieces (redo-format §5.3)."""

    TO_NEXT = 1
    FROM_PREVIOUS = 2


class Packed(IntFlag):
    """Which row images of a piece are stored compressed (redo-format §5.4)."""

    OLD = 1
    NEW = 2


EVENT: Final = row_type(
    [
        ("kind", "u1"),
        ("con_id", "u2"),
        ("undo_con_id", "u2"),
        ("xid", "u8"),
        ("scn", "u8"),
        ("time", "u4"),
        ("thread", "u2"),
        ("sequence", "u4"),
        ("block", "u4"),
        ("offset", "u2"),
        ("table", "i4"),
        ("dataobj", "u4"),
        ("undo_dba", "u4"),
        ("prev_dba", "u4"),
        ("rci", "u1"),
        ("wrp", "u2"),
        ("slot_head", "u1"),
        ("serial", "u2"),
        ("session", "u4"),
        ("piece_count", "i4"),
    ],
)

EventColumns: TypeAlias = ColumnTable
"""One row per event.

Attributes:
    kind: `EventKind`; the pieces of a LOB event are those of `redo.lobs`, those of UNDO_PART and
        SPLIT_CHANGE those of `transactions.split_undo`.
    con_id: container of the change (of the row vector); for an event that concerns only the
        transaction, that of the undo segment.
    undo_con_id: container of the undo segment, which identifies the transaction together with its
        XID. With shared undo it is the root (redo-format §3.1); it equals `con_id` if the
        transaction is known only by its XID (`transactions.shared_undo`).
    xid: packed as `scalars.pack_xid`; the sequence is 0 in UNDONE events. 0 in LOB events without a
        transaction: they belong to the transaction that refers to their LOB id.
    scn, time, thread, sequence, block, offset: of the record: SCN, redo time and position.
    table: index into the row plan (CHANGE, UNDECODED, UNDONE), else −1.
    dataobj: objd of the undo.
    undo_dba: undo block (CHANGE, UNDONE by 5.6).
    prev_dba, rci, wrp: of ktub; they link an undone record to its 5.1 (redo-format §4.5).
    slot_head: 1 for UNDONE by 5.11, and for SESSION by 5.19, which has the attributes.
    serial, session: of SESSION events. Of CHANGE and UNDONE events the slot of the row, the first
        of several, and its block; the block is 0 if no row vector names one (leaves, a marker that
        is alone). Of COMMIT events `session` is the delay of `redo.commit_position`. Of DDL events
        the command code and the OBJ# (0 = unknown); their `wrp` numbers the records of one
        statement from 1, and the values of their one piece are texts: of segcol 1 the statement (a
        part of it), 2 the owner, 3 the name. Of UNDO_PART and SPLIT_CHANGE as
        `transactions.split_undo` says. Of UNDECODED events `session` is the `ChangeStatus`, which
        is the reason; the pieces of such an event mean nothing. A PARALLEL event is of no
        transaction: parallel DML whose children have yet to commit at this SCN (`serial` 1), or a
        change of state on its undo segment (0), the segment and slot in `xid`
        (`ordering.parallel_commits`). A STRAY event is a change, or what takes one back, of a
        container that is not subscribed, in the root's undo; all its other numbers are those of a
        subscribed table (`transactions.shared_undo`).
    piece_count: pieces of the event.
"""


PIECE: Final = row_type(
    [
        ("op", "u1"),
        ("supplemental", "u1"),
        ("sup_type", "u1"),
        ("sup_flags", "u1"),
        ("row_flags", "u1"),
        ("old_flags", "u1"),
        ("width", "u1"),
        ("old_width", "u1"),
        ("bdba", "u4"),
        ("slot", "u2"),
        ("head_bdba", "u4"),
        ("head_slot", "u2"),
        ("next_bdba", "u4"),
        ("next_slot", "u2"),
        ("old_next_bdba", "u4"),
        ("old_next_slot", "u2"),
        ("changed_offset", "i8"),
        ("changed_length", "i4"),
        ("packed", "u1"),
        ("entry_count", "i4"),
    ],
)

PieceColumns: TypeAlias = ColumnTable
"""One row per row piece, in the order of the events that own them.

Attributes:
    op: code of the 11.x vector.
    supplemental: 1 if a supplemental header was logged, with
    sup_type, sup_flags: its operation type and fb (redo-format §4.3).
    row_flags: fb of the row piece (of the undo image if the redo has none).
    old_flags: fb of the row piece before the change, 0 if it did not exist.
    width, old_width: columns of the row piece after and before the change.
    bdba, slot: the piece's own address.
    head_bdba, head_slot: address of the row's head, if this piece contains it.
    next_bdba, next_slot: address of the next piece of the row (nrid) after the change, 0 if there
        is none, and
    old_next_bdba, old_next_slot: the same before the change.
    changed_offset, changed_length: bitmap of the columns that really changed; length 0 for none.
    packed: `Packed`; the values of such an image are only in the supplemental data.
    entry_count: number of the piece's values.
"""


ENTRY: Final = row_type(
    [
        ("role", "u1"),
        ("part", "u1"),
        ("segcol", "i2"),
        ("length", "i4"),
        ("offset", "i8"),
    ],
)

EntryColumns: TypeAlias = ColumnTable
"""One row per column value, in the order of the pieces that own them.

    Attributes:
        role: `Role`.
        part: `CutFlag`.
        segcol: SEGCOL#, from 1.
        offset, length: in the batch's data; length −1 is NULL.
    """


class ChangeBatch(NamedTuple):
    """Events of a section of redo, with their pieces, values and the bytes that these refer to."""

    events: EventColumns
    pieces: PieceColumns
    entries: EntryColumns
    data: U8


def columns_of(dtype: np.dtype[np.void], capacity: int) -> ColumnTable:
    """Return uninitialised space for `capacity` rows of a table."""
    return np.empty(capacity, dtype).view(ColumnTable)


def empty_events(capacity: int) -> EventColumns:
    """Return uninitialised space for `capacity` events."""
    return columns_of(EVENT, capacity)


def empty_pieces(capacity: int) -> PieceColumns:
    """Return uninitialised space for `capacity` pieces."""
    return columns_of(PIECE, capacity)


def empty_entries(capacity: int) -> EntryColumns:
    """Return uninitialised space for `capacity` values."""
    return columns_of(ENTRY, capacity)


def empty_batch() -> ChangeBatch:
    """Return an empty batch."""
    return ChangeBatch(empty_events(0), empty_pieces(0), empty_entries(0), np.empty(0, np.uint8))
