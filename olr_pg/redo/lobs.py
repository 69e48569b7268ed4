"""Decodes vectors of LOB storage into events: finds the table to which each vector belongs, and
pushes its pieces (`redo.lob_pieces`).

If a vector cannot be decoded, and its header names the LOB segment or LOB index of a subscribed
table, the vector becomes an UNDECODED event (`events`), as for rows (`vector_changes`). Facts:
values-and-lobs §18, §19, §23, redo-format §6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.kernels.compile import inlined
from olr_pg.redo.batch import EventKind
from olr_pg.redo.events import (
    direct_load_xid,
    link_undo,
    note,
    push_event,
    push_undecoded,
    push_unknown,
)
from olr_pg.redo.format.lob_fields import (
    KDLI_FPLOAD,
    KDLI_FPLOAD_OBJD,
    KDLI_FPLOAD_SIZE,
    KDLI_FPLOAD_XID,
    KDLI_SUPLOG,
    KDLI_SUPLOG_OBJN,
    KDLI_SUPLOG_SIZE,
    KDLI_SUPLOG_XID,
    LLB_BEGIN,
    LLB_BEGIN_OBJN,
    LLB_BEGIN_SIZE,
    LLB_BEGIN_XID,
    LLB_END_OBJN,
    LLB_END_SIZE,
    LLB_END_XID,
    LLB_KINDS,
    LOB_IMAGE_BYTES,
)
from olr_pg.redo.format.opcodes import (
    OP_BLOCK_IMAGE,
    OP_LEAF_DATA,
    OP_LEAF_INITIALIZE,
    OP_LEAF_INSERT,
    OP_LOB_OPERATION,
    OP_LOB_REDO,
    OP_LOB_WRITE,
    OP_UNDO,
)
from olr_pg.redo.format.undo_fields import KTUB_FLG, KTUB_OBJD, KTUB_OBJN, KTUB_PART, KTUB_SIZE
from olr_pg.redo.integers import read_xid, u16, u32
from olr_pg.redo.lob_pieces import (
    MALFORMED,
    LobSink,
    kdli_item,
    push_index,
    push_kdli,
    push_long_field,
    push_operation,
)
from olr_pg.redo.pieces import ChangeStatus
from olr_pg.redo.row_vectors import UNKNOWN_ITEM
from olr_pg.redo.vectors import container_of, dba_of, is_encrypted, object_of, read_fields
from olr_pg.redo.walk import CONTAINER, PENDING, XID, Walk

if TYPE_CHECKING:
    from olr_pg.redo.column_tables import ColumnTable
    from olr_pg.redo.walk import ObjectTables
_LOB = int(EventKind.LOB)

_SHORT_FIELD = int(ChangeStatus.SHORT_FIELD)
_ENCRYPTED = int(ChangeStatus.ENCRYPTED)
_SPLIT_UNDO = int(ChangeStatus.SPLIT_UNDO)
_CONTRADICTION = int(ChangeStatus.CONTRADICTION)


class LobFields(NamedTuple):
    """A vector in the payload of a window, with its fields from `vectors.read_fields`.

    Attributes:
        dba: block address in the header of the vector.
        con_id: container in the header of the vector.
    """

    payload: npt.NDArray[np.uint8]
    big: bool
    dba: int
    con_id: int
    offset: npt.NDArray[np.int64]
    length: npt.NDArray[np.int64]
    fields: int


@inlined
def find_lob(objects: ColumnTable, con_id: int, number: int, wanted: int) -> int:
    """Return the table of a subscribed LOB segment (`wanted` is 0) or LOB index (`wanted` is 1).
    Return −1 for other objects.
    """
    key = np.uint64(con_id) << np.uint64(32) | np.uint64(number)
    at = np.searchsorted(objects.key, key)
    if at < objects.key.size and objects.key[at] == key and objects.is_index[at] == wanted:
        return int(objects.table[at])
    return -1


@inlined
def is_lob_object(objects: ColumnTable, con_id: int, number: int) -> bool:
    """Return whether the object is the LOB segment or LOB index of a subscribed column."""
    key = np.uint64(con_id) << np.uint64(32) | np.uint64(number)
    at = np.searchsorted(objects.key, key)
    return bool(at < objects.key.size and objects.key[at] == key)


@inlined
def table_of_lob(objects: ColumnTable, con_id: int, number: int) -> int:
    """Return the table of an object that is a subscribed LOB segment or LOB index
    (`is_lob_object`).
    """
    key = np.uint64(con_id) << np.uint64(32) | np.uint64(number)
    return int(objects.table[np.searchsorted(objects.key, key)])


@inlined
def find_lob_table(objects: ObjectTables, con_id: int, number: int) -> int:
    """Return the table with this OBJ#, −1 if it is not subscribed or has no delivered LOB
    column.
    """
    key = np.uint64(con_id) << np.uint64(32) | np.uint64(number)
    at = np.searchsorted(objects.tables.key, key)
    if at < objects.tables.key.size and objects.tables.key[at] == key:
        table = int(objects.tables.table[at])
        return table if objects.lob_tables[table] else -1
    return -1


@inlined
def lob_alone(
    op: int, vector: LobFields, objects: ObjectTables, sink: LobSink
) -> tuple[int, int, int]:
    """Push the pieces of an 11.17, 19.1 or 26.6; return (number of pieces or MALFORMED, XID or 0,
    table).

    A 19.1 with a LOB page names no transaction: the page belongs to the transaction that refers to
    its LOB id.
    """
    payload, big, offset, length = vector.payload, vector.big, vector.offset, vector.length
    count = vector.fields
    if op == OP_BLOCK_IMAGE:
        if count < 1 or length[1] < LOB_IMAGE_BYTES:
            return 0, 0, -1
        table = find_lob(objects.lob_data, vector.con_id, u32(payload, offset[1], big), 0)
        if table < 0:
            return 0, 0, -1
        return push_long_field(payload, big, offset, length, count, vector.dba, sink), 0, table
    if op == OP_LOB_OPERATION:
        if count < 3 or length[2] < 1 or length[3] < LLB_END_SIZE:
            return 0, 0, -1
        at = offset[3]
        first = payload[offset[2]] == LLB_BEGIN
        if first and length[3] < LLB_BEGIN_SIZE:
            return 0, 0, -1
        obj = u32(payload, at + (LLB_BEGIN_OBJN if first else LLB_END_OBJN), big)
        table = find_lob_table(objects, vector.con_id, obj)
        if table < 0:
            return 0, 0, -1
        pushed = push_operation(payload, big, offset, length, count, sink)
        xid = read_xid(payload, at + (LLB_BEGIN_XID if first else LLB_END_XID), big)
        return pushed, xid, table
    xid, table = _direct_load_owner(vector, objects)
    if table < 0 or xid == 0:
        return 0, 0, -1
    return push_kdli(payload, big, offset, length, count, 1, sink), xid, table


@inlined
def _direct_load_owner(vector: LobFields, objects: ObjectTables) -> tuple[int, int]:
    """Return (XID or 0, table or −1) of a 26.6: they are in its items fpload and suplog."""
    payload, big, offset, length = vector.payload, vector.big, vector.offset, vector.length
    xid, table = 0, -1
    load = kdli_item(payload, offset, length, vector.fields, 2, KDLI_FPLOAD, KDLI_FPLOAD_SIZE)
    if load >= 0:
        xid = read_xid(payload, load + KDLI_FPLOAD_XID, big)
        table = find_lob(
            objects.lob_data, vector.con_id, u32(payload, load + KDLI_FPLOAD_OBJD, big), 0
        )
    logged = kdli_item(payload, offset, length, vector.fields, 2, KDLI_SUPLOG, KDLI_SUPLOG_SIZE)
    if logged >= 0:
        xid = read_xid(payload, logged + KDLI_SUPLOG_XID, big)
        if table < 0:
            table = find_lob_table(
                objects, vector.con_id, u32(payload, logged + KDLI_SUPLOG_OBJN, big)
            )
    return xid, table


@inlined
def lob_pair(
    op: int, vector: LobFields, undo: LobFields, objects: ObjectTables, sink: LobSink
) -> tuple[int, int]:
    """Push the pieces of a 26.2, 10.2, 10.8 or 10.18 with its undo record; return (number of pieces
    or MALFORMED, table).
    """
    if undo.fields < 2 or undo.length[2] < KTUB_SIZE:
        return MALFORMED, -1
    ktub = undo.offset[2]
    obj = u32(undo.payload, ktub + KTUB_OBJN, undo.big)
    dataobj = u32(undo.payload, ktub + KTUB_OBJD, undo.big)
    is_index = 0 if op == OP_LOB_REDO else 1
    table = find_lob(objects.lob_objects, vector.con_id, obj, is_index)
    if table < 0:
        table = find_lob(objects.lob_data, vector.con_id, dataobj, is_index)
    if is_index == 0 and table < 0:
        table = find_lob_table(objects, vector.con_id, obj)
    if table < 0:
        return 0, -1
    if is_index:
        return push_index(
            vector.payload, op & 0xFF, undo.offset, undo.length, undo.fields,
            vector.offset, vector.length, vector.fields, sink,
        ), table  # fmt: skip
    return push_kdli(
        vector.payload, vector.big, vector.offset, vector.length, vector.fields, 2, sink
    ), table


@inlined
def is_lob_undo(walk: Walk, con_id: int, ktub: int) -> bool:
    """Return whether a ktub names the LOB segment or LOB index of a subscribed column."""
    objects = walk.objects
    if objects.lob_tables.size == 0:
        return False
    obj = u32(walk.payload, ktub + KTUB_OBJN, walk.big)
    dataobj = u32(walk.payload, ktub + KTUB_OBJD, walk.big)
    return is_lob_object(objects.lob_objects, con_id, obj) or is_lob_object(
        objects.lob_data, con_id, dataobj
    )


@inlined
def _lob_fields(walk: Walk, at: int, side: int) -> LobFields:
    payload, big = walk.payload, walk.big
    offset, length = walk.scratch[side], walk.scratch[side + 1]
    count = read_fields(payload, at, walk.header, big, offset, length)
    con_id = container_of(payload, at, walk.header, big)
    return LobFields(payload, big, dba_of(payload, at, big), con_id, offset, length, count)


@inlined
def _push_lob_event(walk: Walk, con_id: int, xid: int, table: int, pieces: int) -> int:
    event = push_event(walk, _LOB, con_id, xid)
    walk.events.table[event] = table
    walk.events.piece_count[event] = pieces
    return event


@inlined
def _lob_named(walk: Walk, at: int) -> int:
    """Return the table whose LOB segment or LOB index is named in the header of a vector, −1 if
    there is none.
    """
    con_id = container_of(walk.payload, at, walk.header, walk.big)
    dataobj = object_of(walk.payload, at, walk.big)
    if is_lob_object(walk.objects.lob_data, con_id, dataobj):
        return table_of_lob(walk.objects.lob_data, con_id, dataobj)
    return -1


@inlined
def _lob_unknown(walk: Walk, vector: int, at: int, status: int, table: int, xid: int) -> int:
    """Push the UNDECODED event of a vector of LOB storage. Return −1 if the vector concerns no
    subscribed table.
    """
    if table < 0:
        table = _lob_named(walk, at)
    if table < 0:
        return -1
    con_id = container_of(walk.payload, at, walk.header, walk.big)
    event = push_unknown(
        walk, vector, status, con_id, xid, table, object_of(walk.payload, at, walk.big)
    )
    if xid != 0 and walk.current[PENDING] >= 0:
        walk.events.undo_con_id[event] = walk.current[CONTAINER]
    walk.current[PENDING] = -1
    return 0


@inlined
def _note_unknown_item(walk: Walk, at: int, op: int, table: int) -> None:
    """Add a note for a 26.2 or 26.6 of which only some items were read."""
    if walk.state[UNKNOWN_ITEM] != 0:
        note(walk, op, table, object_of(walk.payload, at, walk.big))


@inlined
def _is_unknown_kind(vector: LobFields) -> bool:
    """Return whether an 11.17 has a kind whose fields are not known: they do not show which table
    it concerns.
    """
    known = vector.fields >= 2 and vector.length[2] >= 1
    return not known or vector.payload[vector.offset[2]] not in LLB_KINDS


@inlined
def _vector_alone(walk: Walk, vector: int, at: int, op: int) -> int:
    """Push the LOB event of an 11.17, 19.1 or 26.6 if its LOB is subscribed. Return −1 for a 19.1
    that may contain a block of a table.
    """
    is_block = op != OP_LOB_OPERATION
    if is_block and is_encrypted(walk.payload, at):
        status = _lob_unknown(walk, vector, at, _ENCRYPTED, -1, direct_load_xid(walk))
        return status if op == OP_BLOCK_IMAGE else 0
    fields = _lob_fields(walk, at, 2)
    sink = LobSink(walk.pieces, walk.entries, walk.state)
    pushed, xid, table = lob_alone(op, fields, walk.objects, sink)
    if op == OP_LOB_WRITE and pushed > 0:
        _note_unknown_item(walk, at, op, table)
    if op == OP_LOB_OPERATION and _is_unknown_kind(fields):
        note(walk, op, -1, 0)
    if pushed > 0:
        _push_lob_event(walk, fields.con_id, xid, table, pushed)
        return 0
    if pushed == MALFORMED:
        return _lob_unknown(walk, vector, at, _SHORT_FIELD, table, xid)
    if is_block and table < 0:
        status = _lob_unknown(walk, vector, at, _CONTRADICTION, -1, 0)
        return status if op == OP_BLOCK_IMAGE else 0
    return 0


@inlined
def lob_vector(walk: Walk, vector: int, at: int, op: int) -> int:
    """Push the LOB event of a vector of LOB storage if its LOB is subscribed. Return −1 for other
    vectors.
    """
    if op in (OP_LOB_WRITE, OP_BLOCK_IMAGE, OP_LOB_OPERATION):
        return _vector_alone(walk, vector, at, op)
    is_pair = op in (OP_LOB_REDO, OP_LEAF_INSERT, OP_LEAF_INITIALIZE, OP_LEAF_DATA)
    pending = walk.current[PENDING]
    if not is_pair or pending < 0 or walk.vectors.opcode[pending] != OP_UNDO:
        return -1
    undo_at = walk.vectors.position[pending]
    if is_encrypted(walk.payload, at) or is_encrypted(walk.payload, undo_at):
        return _lob_unknown(walk, vector, at, _ENCRYPTED, -1, walk.current[XID])
    undo = _lob_fields(walk, undo_at, 0)
    fields = _lob_fields(walk, at, 2)
    sink = LobSink(walk.pieces, walk.entries, walk.state)
    pushed, table = lob_pair(op, fields, undo, walk.objects, sink)
    ktub = undo.offset[2]
    if (
        pushed == 0
        and op == OP_LEAF_DATA
        and table >= 0
        and u16(undo.payload, ktub + KTUB_FLG, undo.big) & KTUB_PART
    ):
        # The undo record is divided among several vectors, and another one contains the key of the
        # LOB index row.
        event = push_undecoded(walk, _SPLIT_UNDO, fields.con_id, walk.current[XID], table)
        link_undo(walk, undo_at, ktub, event)
        walk.current[PENDING] = -1
        return 0
    if pushed == MALFORMED:
        return _lob_unknown(walk, vector, at, _SHORT_FIELD, table, walk.current[XID])
    if pushed <= 0:
        if table >= 0:
            return -1
        return _lob_unknown(walk, vector, at, _CONTRADICTION, -1, 0)
    # A leaf may be initialised by a recursive transaction, so its XID is not used: the LOB id of
    # the row identifies its transaction.
    xid = 0 if op == OP_LEAF_INITIALIZE else walk.current[XID]
    event = _push_lob_event(walk, fields.con_id, xid, table, pushed)
    if op == OP_LOB_REDO:
        _note_unknown_item(walk, at, op, table)
    if xid != 0:
        link_undo(walk, undo_at, ktub, event)
    walk.current[PENDING] = -1
    return 0
