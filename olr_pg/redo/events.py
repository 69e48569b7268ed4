"""Pushes events of records, and finds subscribed tables by object number.

UNDECODED events are changes that certainly belong to subscribed tables, but cannot be decoded. Such
a change stops its table, and the position and the reason are reported (`transactions.row_faults`),
so that no change is lost without a report. The change belongs to the transaction that the redo
names. The transaction is unknown if the undo record is encrypted or missing, or contradicts the row
vector. A change of an unknown transaction becomes a transaction of its own, which commits at the
position of the change. The real transaction may commit later, or may never commit.

Facts: redo-format §4, §5; checked on real logs of 19c and 23ai and real records.
"""

from __future__ import annotations

from typing import Final

import numba
import numpy as np

from olr_pg.kernels.compile import inlined, inlined_for, part
from olr_pg.redo.batch import EventKind
from olr_pg.redo.column_tables import ColumnTable
from olr_pg.redo.format.file_fields import BLOCK_HEADER, VECTOR_KIND, VECTOR_NO_BLOCK, VECTOR_TYP
from olr_pg.redo.format.opcodes import OP_DIRECT_LOAD
from olr_pg.redo.format.undo_fields import (
    DIRECT_XID_AT,
    DIRECT_XID_SIZE,
    KTUB_OBJD,
    KTUB_PREV_DBA,
    KTUB_RCI,
    KTUB_WRP,
)
from olr_pg.redo.integers import low_int16, read_xid, u16, u32
from olr_pg.redo.pieces import ChangeStatus
from olr_pg.redo.row_vectors import EVENTS, FULL, NOTED
from olr_pg.redo.vectors import container_of, dba_of, field_at, object_of
from olr_pg.redo.walk import (
    RECORD_AT_HAND,
    TALLY_CHANGES,
    TALLY_ROW_VECTORS,
    VECTORS,
    XID,
    Walk,
)

NO_TRANSACTION_USN: Final = 0x7FFF
"""The undo segment number in XIDs of changes without a known transaction. It is too high for a real
undo segment: the classes of its blocks would need more than 16 bits.
"""

_BEGIN = int(EventKind.BEGIN)
_COMMIT = int(EventKind.COMMIT)
_UNDECODED = int(EventKind.UNDECODED)

_CONTRADICTION = int(ChangeStatus.CONTRADICTION)


@inlined
def find(objects: ColumnTable, con_id: int, number: int, scn: int) -> int:
    """Return the table that an object belongs to at an SCN, −1 if there is none."""
    wanted = np.uint64(con_id) << np.uint64(32) | np.uint64(number)
    key = objects.key
    low = 0
    high = key.size
    while low < high:
        middle = (low + high) >> 1
        if key[middle] < wanted or (key[middle] == wanted and objects.since[middle] <= scn):
            low = middle + 1
        else:
            high = middle
    if low > 0 and key[low - 1] == wanted:
        return int(objects.table[low - 1])
    return -1


@inlined
def find_table(walk: Walk, con_id: int, obj: int) -> int:
    """Return the table that an OBJ# belongs to at the SCN of the current record, −1 if there is
    none.
    """
    return find(walk.objects.tables, con_id, obj, walk.records.scn[walk.current[RECORD_AT_HAND]])


@inlined
def has_no_block(walk: Walk, at: int) -> bool:
    """Return whether a vector changes no block, so that its header names no object."""
    return bool(walk.payload[at + VECTOR_TYP] & VECTOR_KIND == VECTOR_NO_BLOCK)


@inlined
def find_named(walk: Walk, at: int) -> int:
    """Return the table whose segment is named in the header of a vector, −1 if there is none.

    The result does not depend on the vector's fields, which may be encrypted or misread.
    """
    if has_no_block(walk, at):
        return -1
    payload = walk.payload
    con_id = container_of(payload, at, walk.header, walk.big)
    scn = walk.records.scn[walk.current[RECORD_AT_HAND]]
    return find(walk.objects.data, con_id, object_of(payload, at, walk.big), scn)


@inlined_for(numba.int64(numba.int64, numba.int64, numba.int64))
def xid_of(usn: int, slot: int, sequence: int) -> int:
    """Return a transaction id, packed as in `EventColumns`."""
    return usn << 48 | slot << 32 | sequence


@inlined_for(numba.int64(numba.int64))
def signed_xid(xid: int) -> int:
    """Return a transaction id as a signed integer, which is the form in which the current
    transaction is stored. In compiled kernels all integers are signed; an interpreted kernel needs
    this function, because it could not store the id of an undo segment from 32,768 on.
    """
    return low_int16(xid >> 48) << 48 | xid & 0xFFFFFFFFFFFF


@inlined
def field_of(walk: Walk, at: int, number: int) -> tuple[int, int]:
    """Return (payload offset, length) of a field of a vector; the length is −1 if there is no such
    field.
    """
    return field_at(walk.payload, at, walk.header, number, walk.big)


@inlined
def direct_load_xid(walk: Walk) -> int:
    """Return the transaction that the 24.6 of the current record names, 0 if there is no 24.6."""
    for vector in range(walk.current[VECTORS]):
        if walk.vectors.opcode[vector] == OP_DIRECT_LOAD:
            f1, size = field_of(walk, walk.vectors.position[vector], 1)
            if size >= DIRECT_XID_SIZE:
                return read_xid(walk.payload, f1 + DIRECT_XID_AT, walk.big)
    return 0


@inlined
def direct_load_container(walk: Walk) -> int:
    """Return the container that the 24.6 of the current record names, −1 if there is no 24.6."""
    for vector in range(walk.current[VECTORS]):
        if walk.vectors.opcode[vector] == OP_DIRECT_LOAD:
            at = walk.vectors.position[vector]
            return container_of(walk.payload, at, walk.header, walk.big)
    return -1


@inlined
def push_event(walk: Walk, kind: int, con_id: int, xid: int) -> int:
    """Push an event of the current record and return its row. The table of the event is −1; columns
    of the row that are not arguments and not from the record are 0.
    """
    at = walk.state[EVENTS]
    record = walk.current[RECORD_AT_HAND]
    event = walk.events[np.uint64(at)]
    source = walk.records[np.uint64(record)]
    event.kind = kind
    event.con_id = con_id
    event.undo_con_id = con_id
    event.xid = xid
    event.scn = source.scn
    event.time = walk.lwns.time[source.lwn]
    event.thread = walk.place[0]
    event.sequence = walk.place[1]
    position, width = np.uint32(source.position), np.uint32(walk.width)
    block = position // width
    event.block = walk.first_block + block
    event.offset = BLOCK_HEADER + (position - block * width)
    event.table = -1
    event.dataobj = 0
    event.undo_dba = 0
    event.prev_dba = 0
    event.rci = 0
    event.wrp = 0
    event.slot_head = 0
    event.serial = 0
    event.session = 0
    event.piece_count = 0
    walk.state[EVENTS] = at + 1
    return int(at)


@inlined
def link_undo(walk: Walk, undo_at: int, ktub: int, event: int) -> None:
    """Set the columns of an event that identify its undo record.

    The container of the undo block or undo header, together with the slot, identifies the
    transaction.

    Args:
        undo_at: position of the vector that changes the undo block or undo header.
        ktub: position of the ktub of this vector.
    """
    payload, big, events = walk.payload, walk.big, walk.events
    events.undo_con_id[event] = container_of(payload, undo_at, walk.header, big)
    events.dataobj[event] = u32(payload, ktub + KTUB_OBJD, big)
    events.undo_dba[event] = dba_of(payload, undo_at, big)
    events.prev_dba[event] = u32(payload, ktub + KTUB_PREV_DBA, big)
    events.rci[event] = payload[ktub + KTUB_RCI]
    events.wrp[event] = u16(payload, ktub + KTUB_WRP, big)


@inlined
def _own_xid(walk: Walk, vector: int) -> int:
    """Return an artificial XID for a change without a known transaction. No two changes with the
    same SCN get the same XID.
    """
    position = walk.records.position[walk.current[RECORD_AT_HAND]]
    place = (walk.first_block * walk.width + position) >> 2 & 0xFFFFFFFF
    return xid_of(NO_TRANSACTION_USN, (walk.place[0] & 0xFF) << 8 | vector & 0xFF, place)


def names_no_transaction(xid: int) -> bool:
    """Return whether a packed XID is artificial (`_own_xid`): the change's transaction is
    unknown.
    """
    return xid >> 48 == NO_TRANSACTION_USN


@inlined
def push_undecoded(walk: Walk, status: int, con_id: int, xid: int, table: int) -> int:
    """Push the UNDECODED event of a change whose transaction is known; return the event's row."""
    event = push_event(walk, _UNDECODED, con_id, xid)
    walk.events.table[event] = table
    walk.events.session[event] = status
    return event


@part
def push_unknown(
    walk: Walk, vector: int, status: int, con_id: int, xid: int, table: int, dataobj: int
) -> int:
    """Push the UNDECODED event of a change whose transaction may be unknown; return the event's
    row.

    Args:
        vector: the change's vector in the current record.
        status: the reason, a `pieces.ChangeStatus`.
        con_id: container of the changed segment.
        xid: the transaction; 0 if it is unknown.
        dataobj: data object of the changed segment.
    """
    alone = xid == 0
    if alone:
        xid = _own_xid(walk, vector)
        push_event(walk, _BEGIN, con_id, xid)
    event = push_undecoded(walk, status, con_id, xid, table)
    walk.events.dataobj[event] = dataobj
    if alone:
        push_event(walk, _COMMIT, con_id, xid)
    return event


@part
def push_contradiction(
    walk: Walk, vector: int, con_id: int, table: int, other: int, dataobj: int
) -> None:
    """Push the UNDECODED events of a change that names two subscribed tables, one for each of them.

    Nobody can know which of the tables the change belongs to, so both stop. Like `push_unknown`
    without a transaction, the change becomes a transaction of its own. `Tally` counts two changes
    and two row vectors for it. The caller counts one of these row vectors.
    """
    xid = _own_xid(walk, vector)
    push_event(walk, _BEGIN, con_id, xid)
    for one in (table, other):
        event = push_undecoded(walk, _CONTRADICTION, con_id, xid, one)
        walk.events.dataobj[event] = dataobj
        walk.events.undo_con_id[event] = con_id
        walk.tally[TALLY_CHANGES] += 1
    walk.tally[TALLY_ROW_VECTORS] += 1
    push_event(walk, _COMMIT, con_id, xid)


@inlined
def has_room(walk: Walk) -> bool:
    """Return whether there is space for all events of one vector. If not, set ``state[FULL]``."""
    found = walk.state[EVENTS] + 8 <= walk.events.kind.size
    if not found:
        walk.state[FULL] = 1
    return bool(found)


@inlined
def note(walk: Walk, op: int, table: int, dataobj: int) -> None:
    """Add a note for a vector, unless there is one of the same code and table.

    Args:
        table: −1 if nobody can know which table the vector concerns.
    """
    notes, count = walk.notes, walk.state[NOTED]
    for known in range(count):
        if notes.opcode[known] == op and notes.table[known] == table:
            return
    if count == notes.size:
        walk.state[FULL] = 1
        return
    record = walk.current[RECORD_AT_HAND]
    position, width = walk.records.position[record], walk.width
    notes.opcode[count] = op
    notes.table[count] = table
    notes.dataobj[count] = dataobj
    notes.xid[count] = walk.current[XID]
    notes.scn[count] = walk.records.scn[record]
    notes.block[count] = walk.first_block + position // width
    notes.offset[count] = BLOCK_HEADER + position % width
    walk.state[NOTED] = count + 1
