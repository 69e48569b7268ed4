"""Decodes vectors of LOB storage, and whole table blocks of direct loads, into events.

If a vector cannot be decoded, and its header names the segment of a subscribed table or of one of
its LOBs, the vector becomes an UNDECODED event, as for rows (`vector_changes`). Facts: redo-format
§6; values-and-lobs §18, §19.
"""

from __future__ import annotations

from olr_pg.kernels.compile import inlined
from olr_pg.redo.batch import EventKind
from olr_pg.redo.direct import block_object, block_rows
from olr_pg.redo.events import (
    direct_load_container,
    direct_load_xid,
    field_of,
    find,
    link_undo,
    push_event,
)
from olr_pg.redo.format.lob_fields import BLOCK_INDEX
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
from olr_pg.redo.format.undo_fields import KTUB_FLG, KTUB_OBJD, KTUB_OBJN, KTUB_PART
from olr_pg.redo.integers import u16, u32
from olr_pg.redo.lob_pieces import MALFORMED, LobSink
from olr_pg.redo.lobs import LobFields, is_lob_object, lob_alone, lob_pair, table_of_lob
from olr_pg.redo.pieces import ChangeStatus
from olr_pg.redo.row_vectors import ENTRIES, PIECES
from olr_pg.redo.undecoded import push_contradiction, push_undecoded, push_unknown
from olr_pg.redo.vectors import container_of, dba_of, is_encrypted, object_of, read_fields
from olr_pg.redo.walk import (
    CONTAINER,
    PENDING,
    RECORD_AT_HAND,
    TALLY_CHANGES,
    TALLY_NAMED,
    TALLY_ROW_VECTORS,
    TALLY_TOLD,
    XID,
    RowScn,
    Walk,
)

_CHANGE = int(EventKind.CHANGE)
_LOB = int(EventKind.LOB)

_OK = int(ChangeStatus.OK)
_SHORT_FIELD = int(ChangeStatus.SHORT_FIELD)
_ENCRYPTED = int(ChangeStatus.ENCRYPTED)
_SPLIT_UNDO = int(ChangeStatus.SPLIT_UNDO)
_LEAF_BLOCK = int(ChangeStatus.LEAF_BLOCK)
_NO_TRANSACTION = int(ChangeStatus.NO_TRANSACTION)
_CONTRADICTION = int(ChangeStatus.CONTRADICTION)
_UNKNOWN = int(RowScn.UNKNOWN)


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
def _lob_alone(walk: Walk, vector: int, at: int, op: int) -> int:
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
        return _lob_alone(walk, vector, at, op)
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
    if xid != 0:
        link_undo(walk, undo_at, ktub, event)
    walk.current[PENDING] = -1
    return 0


@inlined
def _loaded_table(walk: Walk, at: int) -> tuple[int, int, int, int]:
    """Find the subscribed table of a 19.1.

    The vector's header and the block both contain a data object number. If both numbers are of
    subscribed tables and differ, nobody can know which is right.

    Returns:
        (table or −1, named, data object number, status). `named` is the subscribed table that the
        vector's header names, or −1. The status is a `ChangeStatus`: OK, or the reason why the
        block cannot be read.
    """
    payload, big = walk.payload, walk.big
    con_id, dataobj = container_of(payload, at, walk.header, big), object_of(payload, at, big)
    scn = walk.records.scn[walk.current[RECORD_AT_HAND]]
    # Not by `find_named`: the vector has a block, whatever its TYP contains.
    named = find(walk.objects.data, con_id, dataobj, scn)
    if is_encrypted(payload, at):
        return named, named, dataobj, _ENCRYPTED
    f1, size = field_of(walk, at, 1)
    in_block = block_object(payload, f1, size, big)
    if in_block >= 0:
        table = find(walk.objects.data, con_id, in_block, scn)
        if table >= 0:
            agree = dataobj in (0, in_block)
            return table, named, in_block, _OK if agree else _CONTRADICTION
        marked = direct_load_container(walk)
        if named < 0 and marked not in (-1, con_id):
            return find(walk.objects.data, marked, in_block, scn), -1, in_block, _CONTRADICTION
    # Either the block is not a table block (an index block contains rows of an index-organised
    # table), or its data object number contradicts the vector's header.
    is_index = size > 0 and payload[f1] == BLOCK_INDEX
    return named, named, dataobj, _LEAF_BLOCK if is_index else _CONTRADICTION


@inlined
def direct_load(walk: Walk, vector: int, at: int) -> int:
    """Push the event of a 19.1 with a block of a table, if the table is subscribed."""
    payload, big = walk.payload, walk.big
    table, named, dataobj, status = _loaded_table(walk, at)
    if table < 0:
        return 0
    walk.tally[TALLY_NAMED] += named >= 0
    walk.tally[TALLY_TOLD] += named >= 0
    walk.tally[TALLY_ROW_VECTORS] += 1
    con_id = container_of(payload, at, walk.header, big)
    if status == _CONTRADICTION and named >= 0 and named != table:
        push_contradiction(walk, vector, con_id, table, named, dataobj)
        return 0
    walk.tally[TALLY_CHANGES] += 1
    xid = direct_load_xid(walk)
    if xid == 0 and status == _OK:
        status = _NO_TRANSACTION
    if status == _CONTRADICTION and direct_load_container(walk) != con_id:
        xid = 0  # the two containers differ: the transaction's is unknown
    first_piece = walk.state[PIECES]
    first_entry = walk.state[ENTRIES]
    if status == _OK:
        f1, size = field_of(walk, at, 1)
        status = block_rows(
            payload, f1, size, dba_of(payload, at, big), big, walk.row_scn,
            walk.objects.row_scns[table] if walk.objects.row_scns.size > 0 else _UNKNOWN,
            walk.pieces, walk.entries, walk.state,
        )  # fmt: skip
    if status != _OK:
        walk.state[PIECES] = first_piece
        walk.state[ENTRIES] = first_entry
        push_unknown(walk, vector, status, con_id, xid, table, dataobj)
        return 0
    event = push_event(walk, _CHANGE, con_id, xid)
    walk.events.table[event] = table
    walk.events.dataobj[event] = dataobj
    walk.events.piece_count[event] = walk.state[PIECES] - first_piece
    return 0
