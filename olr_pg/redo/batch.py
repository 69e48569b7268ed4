"""Tables with the contents of a window: transaction events, row pieces, column values.

An event is something that happened to a transaction. A CHANGE event owns the row pieces of its
vector pair: one piece, or one per row if the vectors concern several rows. A piece owns column
values. The bytes of the values stay in the window's payload (`ChangeBatch.data`). To *push* an
event, a piece or a value means to append it to its table.

Each of the three tables is a structured array. A column is a field of the array (``events.scn``),
and a kernel gets the whole table as one argument. When each column was a separate array, kernels
had about four hundred machine arguments, and Numba needed a minute to compile them.
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
    """The kinds of transaction events."""

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
    """Flags of a column value: whether it is the value before or after the change, and whether it
    comes from supplemental logging (redo-format §7.6).
    """

    BEFORE = 1
    AFTER = 2
    BEFORE_SUPPLEMENTAL = 4
    AFTER_SUPPLEMENTAL = 8


class CutFlag(IntFlag):
    """Flags of a value that is divided among several pieces of a row (redo-format §5.3)."""

    TO_NEXT = 1
    FROM_PREVIOUS = 2


class Packed(IntFlag):
    """Flags of a piece: whether its image before or after the change is compressed (redo-format
    §5.4).
    """

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

A DDL statement can be divided among several records, each with its own event; `wrp` numbers them
from 1. The values of the event's piece are texts: column 1 is the statement, or a part of it; 2 is
the owner, 3 the name.

The pieces of an UNDECODED event have no meaning, except for unlogged blocks
(`redo.unlogged_ranges`).

A PARALLEL event (`ordering.merger`) belongs to no transaction. It shows that the children
of parallel DML have not committed yet at this SCN, or that the state of a transaction changes. Its
`xid` contains the undo segment and the slot.

A STRAY event (`transactions.shared_undo`) is a change, or the undoing of a change, in a container
that is not subscribed. Its undo is in the root, and its numbers except the container are those of a
subscribed table.

Attributes:
    kind: `EventKind`. `redo.lob_pieces` describes the pieces of a LOB event,
        `transactions.split_undo` the pieces of UNDO_PART and SPLIT_CHANGE.
    con_id: container of the row vector. If an event concerns only the transaction: container of the
        undo segment.
    undo_con_id: container of the undo segment. This container and the XID together identify the
        transaction. With shared undo it is the root (redo-format §3.1). It equals `con_id` if only
        the XID of the transaction is known (`transactions.shared_undo`).
    xid: packed by `scalars.pack_xid`. In UNDONE events, the sequence part is 0. The whole XID is 0
        in LOB events whose redo does not name a transaction: they belong to the transaction that
        refers to their LOB id.
    scn, time, thread, sequence, block, offset: SCN, redo time and position of the redo record.
    table: index of the table in the row plan (CHANGE, UNDECODED, UNDONE), otherwise −1.
    dataobj: data object number of the changed segment (objd of the undo record, if known).
    undo_dba: address of the undo block (CHANGE events, and UNDONE events from a 5.6).
    prev_dba, rci, wrp: members of ktub that link a 5.6 or 5.11 to the 5.1 that it undoes
        (redo-format §4.5).
    slot_head: 1 for an UNDONE event from a 5.11, and for a SESSION event from a 5.19 (the vector
        with the attributes of the session).
    serial, session: two numbers whose meaning depends on `kind`. SESSION: serial number and session
        number. CHANGE and UNDONE: slot and block of the changed row, or of the first of several
        rows; the block is 0 if no row vector names it (changes of index leaves, 5.6 and 5.11
        without a row vector). COMMIT: `session` is the delay (`redo.commit_position`). DDL: command
        code and OBJ# (0 = unknown). UNDO_PART and SPLIT_CHANGE: see `transactions.split_undo`.
        UNDECODED: `session` is the `ChangeStatus` with the reason. PARALLEL: `serial` is 1 if a
        parallel commit begins, 0 if it may have ended.
    piece_count: number of pieces of the event.
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
    op: the code x of the 11.x vector.
    supplemental: 1 if a supplemental header was logged.
    sup_type, sup_flags: operation type and fb of the supplemental header (redo-format §4.3).
    row_flags: fb (flag byte) of the row piece after the change; if the row vector has none, fb of
        the undo image.
    old_flags: fb of the row piece before the change, 0 if the piece did not exist.
    width, old_width: numbers of columns of the row piece after and before the change.
    bdba, slot: address of the piece.
    head_bdba, head_slot: address of the row's head; address of the piece if the redo does not
        contain that of the head.
    next_bdba, next_slot: address of the next piece of the row (nrid) after the change, 0 if there
        is none.
    old_next_bdba, old_next_slot: address of the next piece before the change.
    changed_offset, changed_length: bitmap of the columns that really changed; the length is 0 if
        there is no bitmap.
    packed: `Packed`; the values of a compressed image are only in the supplemental data.
    entry_count: number of column values of the piece.
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
    offset, length: position of the value in the batch's data; length −1 means NULL.
"""


class ChangeBatch(NamedTuple):
    """Events of a section of redo, with their pieces, their values, and the bytes of the values."""

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
