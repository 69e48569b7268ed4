"""What a window holds of interest, as columns: transaction events, row pieces, column values.

An event is one thing that happened to a transaction; a CHANGE event has the row pieces of its
vector pair (one, or one per row for multi-row vectors); a piece has column values. Values stay in
the window's payload (`ChangeBatch.data`).
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

U8 = npt.NDArray[np.uint8]
U16 = npt.NDArray[np.uint16]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]


class EventKind(IntEnum):
    """What happened to a transaction."""

    BEGIN = 1
    COMMIT = 2
    ROLLBACK = 3
    CHANGE = 4
    UNDONE = 5
    SESSION = 6
    LOB = 7


class Role(IntFlag):
    """Which state of the row a value belongs to, and how it was logged (redo-format §7.6)."""

    BEFORE = 1
    AFTER = 2
    BEFORE_SUPPLEMENTAL = 4
    AFTER_SUPPLEMENTAL = 8


class Part(IntFlag):
    """Row flag bits of a value that is cut over pieces (redo-format §5.3)."""

    TO_NEXT = 1
    FROM_PREVIOUS = 2


class EventColumns(NamedTuple):
    """One row per event.

    Attributes:
        kind: `EventKind`; the pieces of a LOB event are those of `redo.lobs`.
        con_id: container of the undo segment (of the 5.x vector).
        xid: packed as `scalars.pack_xid`; the sequence is 0 in UNDONE events. 0 in LOB events that
            name no transaction: they belong to the one that refers to their LOB id.
        scn, time, thread, sequence, block, offset: of the record, its redo time and its place.
        table: index into the row plan (CHANGE, UNDONE), else −1.
        dataobj: objd of the undo.
        undo_dba: undo block (CHANGE, UNDONE by 5.6).
        prev_dba, rci, wrp: of ktub; they link an undone record to its 5.1 (redo-format §4.5).
        slot_head: 1 for UNDONE by 5.11.
        serial, session: of SESSION events.
        piece_count: pieces of a CHANGE event.
    """

    kind: U8
    con_id: U32
    xid: U64
    scn: U64
    time: U32
    thread: U16
    sequence: U32
    block: U32
    offset: U16
    table: I32
    dataobj: U32
    undo_dba: U32
    prev_dba: U32
    rci: U8
    wrp: U16
    slot_head: U8
    serial: U16
    session: U32
    piece_count: I32


class PieceColumns(NamedTuple):
    """One row per row piece, in the order of the events that own them.

    Attributes:
        op: code of the 11.x vector.
        supplemental: 1 where a supplemental header was logged, with
        sup_type, sup_flags: its operation type and fb (redo-format §4.3).
        row_flags: fb of the row piece (of the undo image where the redo has none).
        bdba, slot: the piece's own address.
        head_bdba, head_slot: address of the row's head as far as this piece tells.
        changed_offset, changed_length: bitmap of columns really changed; length 0 = none.
        packed: 1 where a row image is stored compressed, so that its values are only in the
            supplemental data.
        entry_count: values of the piece.
    """

    op: U8
    supplemental: U8
    sup_type: U8
    sup_flags: U8
    row_flags: U8
    bdba: U32
    slot: U16
    head_bdba: U32
    head_slot: U16
    changed_offset: I64
    changed_length: I32
    packed: U8
    entry_count: I32


class EntryColumns(NamedTuple):
    """One row per column value, in the order of the pieces that own them.

    Attributes:
        role: `Role`.
        part: `Part`.
        segcol: SEGCOL#, from 1.
        offset, length: in the batch's data; length −1 is NULL.
    """

    role: U8
    part: U8
    segcol: I32
    offset: I64
    length: I64


class ChangeBatch(NamedTuple):
    """Events of a stretch of redo with their pieces, values and the bytes these point into."""

    events: EventColumns
    pieces: PieceColumns
    entries: EntryColumns
    data: U8


_EVENT_TYPES = (
    np.uint8, np.uint32, np.uint64, np.uint64, np.uint32, np.uint16, np.uint32, np.uint32,
    np.uint16, np.int32, np.uint32, np.uint32, np.uint32, np.uint8, np.uint16, np.uint8,
    np.uint16, np.uint32, np.int32,
)  # fmt: skip
_PIECE_TYPES = (
    np.uint8, np.uint8, np.uint8, np.uint8, np.uint8, np.uint32, np.uint16, np.uint32,
    np.uint16, np.int64, np.int32, np.uint8, np.int32,
)  # fmt: skip
_ENTRY_TYPES = (np.uint8, np.uint8, np.int32, np.int64, np.int64)


def _arrays(types: tuple[Any, ...], capacity: int) -> list[Any]:
    return [np.empty(capacity, dtype) for dtype in types]


def empty_events(capacity: int) -> EventColumns:
    """Room for `capacity` events, content undefined."""
    return EventColumns(*_arrays(_EVENT_TYPES, capacity))


def empty_pieces(capacity: int) -> PieceColumns:
    """Room for `capacity` pieces, content undefined."""
    return PieceColumns(*_arrays(_PIECE_TYPES, capacity))


def empty_entries(capacity: int) -> EntryColumns:
    """Room for `capacity` values, content undefined."""
    return EntryColumns(*_arrays(_ENTRY_TYPES, capacity))


def empty_batch() -> ChangeBatch:
    """A batch of nothing."""
    return ChangeBatch(empty_events(0), empty_pieces(0), empty_entries(0), np.empty(0, np.uint8))
