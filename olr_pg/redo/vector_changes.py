"""Change vectors to transaction events and row pieces, for the subscribed objects.

Walks the vectors in order and pairs them as redo-format §4.8 says: an undo record (5.1) with the
row vector behind it is one change; a row vector with 5.6/5.11 behind it is one change undone.
Facts: redo-format §4, §5, §6; checked on real logs of 19c and 23ai and real records.
"""

from __future__ import annotations

from olr_pg.kernels.compile import inlined
from olr_pg.redo.batch import EventKind
from olr_pg.redo.boundaries import boundary, ddl, session
from olr_pg.redo.direct import block_object, block_rows
from olr_pg.redo.events import (
    direct_load_xid,
    field_of,
    find,
    find_table,
    link_undo,
    push_event,
    push_undecoded,
    xid_of,
)
from olr_pg.redo.format.opcodes import (
    LAYER_INDEX,
    LAYER_ROW,
    OP_BEGIN,
    OP_BLOCK_IMAGE,
    OP_BLOCKS_UNLOGGED,
    OP_BLOCKS_UNLOGGED_AGAIN,
    OP_DDL,
    OP_DIRECT_LOAD,
    OP_END,
    OP_LEAF_DATA,
    OP_LEAF_INITIALIZE,
    OP_LEAF_INSERT,
    OP_LOB_OPERATION,
    OP_LOB_REDO,
    OP_LOB_WRITE,
    OP_SESSION,
    OP_SESSION_CONTINUED,
    OP_UNDO,
    OP_UNDO_APPLIED,
    OP_UNDO_APPLIED_HEADER,
    UNDO_OF_LEAF,
    UNDO_OF_ROW,
)
from olr_pg.redo.format.undo_fields import (
    KTUB_APART,
    KTUB_FLG,
    KTUB_HEAD,
    KTUB_OBJD,
    KTUB_OBJN,
    KTUB_OPC,
    KTUB_PART,
    KTUB_SIZE,
    KTUB_SLT,
    KTUDB_SIZE,
    KTUDB_XID,
)
from olr_pg.redo.in_memory_undo import order_private_redo
from olr_pg.redo.integers import read_xid, u16, u32
from olr_pg.redo.iot import Pair
from olr_pg.redo.lob_pieces import MALFORMED, LobSink
from olr_pg.redo.lobs import (
    LobFields,
    is_lob_object,
    lob_alone,
    lob_pair,
)
from olr_pg.redo.pairs import pair_pieces
from olr_pg.redo.pieces import NO_ROW, ChangeStatus, open_piece
from olr_pg.redo.row_vectors import ENTRIES, EVENTS, FULL, PIECES, push
from olr_pg.redo.uninterpreted import pass_by
from olr_pg.redo.unlogged_ranges import unlogged_range
from olr_pg.redo.vectors import (
    container_of,
    dba_of,
    is_encrypted,
    object_of,
    read_fields,
    scan_record,
    undo_segment_of,
)
from olr_pg.redo.walk import (
    CONTAINER,
    PENDING,
    RECORD_AT_HAND,
    TALLY_CHANGES,
    TALLY_FILTERED,
    TALLY_ROW_VECTORS,
    TALLY_UNDOING,
    TALLY_UNPAIRED,
    TALLY_VECTORS,
    TALLY_WITHOUT_ROW,
    VECTORS,
    XID,
    Walk,
)

_CHANGE = int(EventKind.CHANGE)
_UNDONE = int(EventKind.UNDONE)
_LOB = int(EventKind.LOB)
_UNDO_PART = int(EventKind.UNDO_PART)
_SPLIT_CHANGE = int(EventKind.SPLIT_CHANGE)

_CAPACITY = int(ChangeStatus.CAPACITY)
_SHORT_FIELD = int(ChangeStatus.SHORT_FIELD)
_ENCRYPTED = int(ChangeStatus.ENCRYPTED)
_SPLIT_UNDO = int(ChangeStatus.SPLIT_UNDO)
_NO_TRANSACTION = int(ChangeStatus.NO_TRANSACTION)


@inlined
def _undo_record(walk: Walk, vector: int, at: int) -> int:
    """Hold a 5.1 for its row vector; it names the record's transaction.

    One that is a part of a larger undo record (redo-format §4.2) is an event of its own.
    """
    f1, size = field_of(walk, at, 1)
    if size < KTUDB_SIZE:
        return _SHORT_FIELD
    payload, big = walk.payload, walk.big
    walk.current[XID] = read_xid(payload, f1 + KTUDB_XID, big)
    walk.current[CONTAINER] = container_of(payload, at, walk.header, big)
    walk.current[PENDING] = vector
    ktub = f1 + ((size + 3) & ~3)
    _, size = field_of(walk, at, 2)
    if size < KTUB_SIZE or not u16(payload, ktub + KTUB_FLG, big) & KTUB_APART:
        return 0
    undoes = u16(payload, ktub + KTUB_OPC, True)
    table = find_table(walk, walk.current[CONTAINER], u32(payload, ktub + KTUB_OBJN, big))
    if table < 0 or (undoes != UNDO_OF_ROW and undoes != UNDO_OF_LEAF):
        return 0
    # Of an encrypted one nothing is to be had: its HEAD is UNDECODED, and undone with its marker.
    if not is_encrypted(payload, at):
        _split_event(walk, _UNDO_PART, at, table)
    return 0


@inlined
def _pair_pieces(walk: Walk, at: int, undo_at: int, layer: int, code: int, table: int) -> int:
    """Push the row pieces of a pair; a `ChangeStatus`, or NO_ROW."""
    payload, big, scratch = walk.payload, walk.big, walk.scratch
    undo_fields = read_fields(payload, undo_at, walk.header, big, scratch[0], scratch[1])
    redo_fields = read_fields(payload, at, walk.header, big, scratch[2], scratch[3])
    pair = Pair(
        payload, big, scratch[0], scratch[1], undo_fields, scratch[2], scratch[3], redo_fields,
        walk.pieces, walk.entries, walk.state,
    )  # fmt: skip
    return pair_pieces(pair, layer, code, walk.row_scn, walk.objects.cluster_columns[table])


@inlined
def _push_raw(walk: Walk, vector: int, first: int) -> None:
    """Push the fields of a vector from field `first` on, as they are."""
    offset, length = walk.scratch[0], walk.scratch[1]
    fields = read_fields(walk.payload, vector, walk.header, walk.big, offset, length)
    for field in range(first, fields + 1):
        push(walk.entries, walk.state, 0, 0, field, offset[field], length[field])


@inlined
def _split_event(walk: Walk, kind: int, undo_at: int, table: int) -> int:
    """Push an event of raw fields: a part of the undo of one change (`transactions.split_undo`)."""
    payload, big = walk.payload, walk.big
    ktub, _ = field_of(walk, undo_at, 2)
    piece = walk.state[PIECES]
    first = walk.state[ENTRIES]
    open_piece(walk.pieces, piece, 0)
    _push_raw(walk, undo_at, 3)
    walk.pieces.entry_count[piece] = walk.state[ENTRIES] - first
    walk.state[PIECES] = piece + 1
    event = push_event(walk, kind, walk.current[CONTAINER], walk.current[XID])
    walk.events.table[event] = table
    walk.events.serial[event] = u16(payload, ktub + KTUB_FLG, big)
    walk.events.piece_count[event] = 1
    link_undo(walk, ktub, event, dba_of(payload, undo_at, big))
    return event


@inlined
def _split_change(walk: Walk, at: int, undo_at: int, layer: int, code: int, table: int) -> int:
    """Push the pair that completes an undo of several vectors; a `ChangeStatus`."""
    piece = walk.state[PIECES]
    if piece + 2 > walk.pieces.op.size:
        walk.state[FULL] = 1
        return 0
    event = _split_event(walk, _SPLIT_CHANGE, undo_at, table)
    first = walk.state[ENTRIES]
    open_piece(walk.pieces, piece + 1, 0)
    _push_raw(walk, at, 2)
    walk.pieces.entry_count[piece + 1] = walk.state[ENTRIES] - first
    walk.state[PIECES] = piece + 2
    walk.events.session[event] = layer << 8 | code | walk.row_scn << 16 | int(walk.big) << 24
    walk.events.piece_count[event] = 2
    if walk.events.dataobj[event] == 0:
        walk.events.dataobj[event] = object_of(walk.payload, at, walk.big)
    walk.tally[TALLY_CHANGES] += 1
    return 0


@inlined
def _change(walk: Walk, at: int, layer: int, code: int) -> int:
    """Push the CHANGE event of a row or leaf vector behind its undo, if it is subscribed."""
    payload, big = walk.payload, walk.big
    undo_at = walk.vectors.position[walk.current[PENDING]]
    ktub, size = field_of(walk, undo_at, 2)
    if size < KTUB_SIZE:
        return _SHORT_FIELD
    table = -1
    undoes = u16(payload, ktub + KTUB_OPC, True)
    if (layer == LAYER_ROW and undoes == UNDO_OF_ROW) or (
        layer == LAYER_INDEX and undoes == UNDO_OF_LEAF
    ):
        con_id = container_of(payload, at, walk.header, big)
        table = find_table(walk, con_id, u32(payload, ktub + KTUB_OBJN, big))
    if table < 0:
        walk.tally[TALLY_FILTERED] += layer == LAYER_ROW
        return 0
    walk.tally[TALLY_ROW_VECTORS] += layer == LAYER_INDEX
    encrypted = is_encrypted(payload, at) or is_encrypted(payload, undo_at)
    split = u16(payload, ktub + KTUB_FLG, big) & KTUB_PART
    if split == KTUB_HEAD and not encrypted:
        return _split_change(walk, at, undo_at, layer, code, table)
    first_piece = walk.state[PIECES]
    first_entry = walk.state[ENTRIES]
    if encrypted:
        status = _ENCRYPTED
    elif split != 0:
        status = _SPLIT_UNDO
    else:
        status = _pair_pieces(walk, at, undo_at, layer, code, table)
    if status == NO_ROW:
        walk.tally[TALLY_WITHOUT_ROW] += 1
        return 0
    if status == _SHORT_FIELD:
        return status
    if status > 0:
        walk.state[PIECES] = first_piece
        walk.state[ENTRIES] = first_entry
        event = push_undecoded(walk, status, walk.current[CONTAINER], walk.current[XID], table)
    else:
        event = push_event(walk, _CHANGE, walk.current[CONTAINER], walk.current[XID])
        walk.events.table[event] = table
        walk.events.piece_count[event] = walk.state[PIECES] - first_piece
    link_undo(walk, ktub, event, dba_of(payload, undo_at, big))
    if walk.events.dataobj[event] == 0:
        walk.events.dataobj[event] = object_of(payload, at, big)
    walk.tally[TALLY_CHANGES] += 1
    return 0


@inlined
def _is_lob_undo(walk: Walk, con_id: int, ktub: int) -> bool:
    """Tell whether a ktub names a LOB segment or index of the subscription."""
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
def _lob(walk: Walk, at: int, op: int) -> int:
    """Push the LOB event of a vector of LOB storage if subscribed; −1 if it is no such vector."""
    sink = LobSink(walk.pieces, walk.entries, walk.state)
    if op in (OP_LOB_WRITE, OP_BLOCK_IMAGE, OP_LOB_OPERATION):
        vector = _lob_fields(walk, at, 2)
        pushed, xid, table = lob_alone(op, vector, walk.objects, sink)
        if pushed > 0:
            _push_lob_event(walk, vector.con_id, xid, table, pushed)
        if pushed == 0 and op == OP_BLOCK_IMAGE:
            return -1  # not a LOB's page: a table's block
        return _SHORT_FIELD if pushed == MALFORMED else 0
    is_pair = op in (OP_LOB_REDO, OP_LEAF_INSERT, OP_LEAF_INITIALIZE, OP_LEAF_DATA)
    pending = walk.current[PENDING]
    if not is_pair or pending < 0 or walk.vectors.opcode[pending] != OP_UNDO:
        return -1
    undo = _lob_fields(walk, walk.vectors.position[pending], 0)
    vector = _lob_fields(walk, at, 2)
    pushed, table = lob_pair(op, vector, undo, walk.objects, sink)
    ktub = undo.offset[2]
    if (
        pushed == 0
        and op == OP_LEAF_DATA
        and table >= 0
        and u16(undo.payload, ktub + KTUB_FLG, undo.big) & KTUB_PART
    ):
        # The key of the LOB index row is in another part of the undo.
        event = push_undecoded(walk, _SPLIT_UNDO, walk.current[CONTAINER], walk.current[XID], table)
        link_undo(walk, ktub, event, undo.dba)
        walk.current[PENDING] = -1
        return 0
    if pushed <= 0:
        return _SHORT_FIELD if pushed == MALFORMED else -1
    # A leaf may be initialised by a recursive transaction: its row goes with its LOB id.
    xid = 0 if op == OP_LEAF_INITIALIZE else walk.current[XID]
    event = _push_lob_event(walk, walk.current[CONTAINER], xid, table, pushed)
    if xid != 0:
        link_undo(walk, ktub, event, undo.dba)
    walk.current[PENDING] = -1
    return 0


@inlined
def _undone(walk: Walk, at: int, op: int) -> int:
    """Push the UNDONE event of a 5.6 or 5.11 if the object is subscribed."""
    payload, big = walk.payload, walk.big
    ktub, size = field_of(walk, at, 1)
    if size < KTUB_SIZE:
        return _SHORT_FIELD
    con_id = container_of(payload, at, walk.header, big)
    table = find_table(walk, con_id, u32(payload, ktub + KTUB_OBJN, big))
    if table < 0 and not _is_lob_undo(walk, con_id, ktub):
        return 0
    if u16(payload, ktub + KTUB_FLG, big) & KTUB_APART:
        return 0  # a part of an undo record: its change goes with the HEAD's marker
    xid = xid_of(undo_segment_of(payload, at, big), int(payload[ktub + KTUB_SLT]), 0)
    event = push_event(walk, _UNDONE, con_id, xid)
    walk.events.table[event] = table
    link_undo(walk, ktub, event, dba_of(payload, at, big))
    walk.events.slot_head[event] = 1 if op == OP_UNDO_APPLIED_HEADER else 0
    return 0


@inlined
def _direct_load(walk: Walk, at: int) -> int:
    """Push the CHANGE event of a 19.1 with a table's block if the table is subscribed."""
    payload, big = walk.payload, walk.big
    f1, size = field_of(walk, at, 1)
    dataobj = block_object(payload, f1, size, big)
    if dataobj < 0:
        return 0
    con_id = container_of(payload, at, walk.header, big)
    table = find(walk.objects.data, con_id, dataobj, walk.records.scn[walk.current[RECORD_AT_HAND]])
    if table < 0:
        return 0
    xid = direct_load_xid(walk)
    if xid == 0:
        return _NO_TRANSACTION
    first_piece = walk.state[PIECES]
    first_entry = walk.state[ENTRIES]
    status = _ENCRYPTED
    if not is_encrypted(payload, at):
        status = block_rows(
            payload, f1, size, dba_of(payload, at, big), big, walk.pieces, walk.entries, walk.state
        )
    if status != 0:
        walk.state[PIECES] = first_piece
        walk.state[ENTRIES] = first_entry
        event = push_undecoded(walk, status, con_id, xid, table)
    else:
        event = push_event(walk, _CHANGE, con_id, xid)
        walk.events.table[event] = table
        walk.events.piece_count[event] = walk.state[PIECES] - first_piece
    walk.events.dataobj[event] = dataobj
    walk.tally[TALLY_ROW_VECTORS] += 1
    walk.tally[TALLY_CHANGES] += 1
    return 0


@inlined
def _row_vector_alone(walk: Walk) -> int:
    pending = walk.current[PENDING]
    return 1 if pending >= 0 and walk.vectors.opcode[pending] >> 8 == LAYER_ROW else 0


@inlined
def _pass_alone(walk: Walk) -> None:
    """Count the pending row vector, if there is one, as one without undo.

    Of a subscribed table it is a change that nobody can tell the transaction of.
    """
    if _row_vector_alone(walk) == 0:
        return
    at = walk.vectors.position[walk.current[PENDING]]
    con_id = container_of(walk.payload, at, walk.header, walk.big)
    dataobj = object_of(walk.payload, at, walk.big)
    scn = walk.records.scn[walk.current[RECORD_AT_HAND]]
    if find(walk.objects.data, con_id, dataobj, scn) < 0:
        walk.tally[TALLY_FILTERED] += 1
    else:
        walk.tally[TALLY_UNPAIRED] += 1


@inlined
def _step(walk: Walk, vector: int) -> int:
    """Walk over one vector, given the pending one before it; a `ChangeStatus`."""
    at = walk.vectors.position[vector]
    op = int(walk.vectors.opcode[vector])
    pending = walk.current[PENDING]
    if walk.objects.lob_tables.size > 0:
        status = _lob(walk, at, op)
        if status >= 0:
            return status
    if op >> 8 == LAYER_ROW:
        walk.tally[TALLY_ROW_VECTORS] += 1
    is_pair = pending >= 0 and walk.vectors.opcode[pending] == OP_UNDO
    if is_pair and (op >> 8 == LAYER_ROW or op >> 8 == LAYER_INDEX):
        status = _change(walk, at, op >> 8, op & 0xFF)
        walk.current[PENDING] = -1
        return status
    if op in (OP_UNDO_APPLIED, OP_UNDO_APPLIED_HEADER):
        walk.tally[TALLY_UNDOING] += _row_vector_alone(walk)
        walk.current[PENDING] = -1
        return _undone(walk, at, op)
    _pass_alone(walk)
    walk.current[PENDING] = vector if op >> 8 == LAYER_ROW else -1
    if op == OP_UNDO:
        return _undo_record(walk, vector, at)
    if op in (OP_BEGIN, OP_END):
        return boundary(walk, at, op)
    if op in (OP_SESSION, OP_SESSION_CONTINUED):
        return session(walk, at, op)
    if op == OP_BLOCK_IMAGE:
        return _direct_load(walk, at)
    if op in (OP_BLOCKS_UNLOGGED, OP_BLOCKS_UNLOGGED_AGAIN):
        return unlogged_range(walk, vector, at)
    if op == OP_DDL:
        return ddl(walk, at)
    if op >> 8 != LAYER_ROW and op != OP_DIRECT_LOAD:
        pass_by(walk, vector, at, op)
    return 0


@inlined
def walk_record(walk: Walk, record: int) -> tuple[int, int, int]:
    """Walk over the vectors of one record; (stage, status, payload position).

    Stage 1 is the list of vectors, with a `VectorStatus`; stage 2 a vector, with a `ChangeStatus`.
    """
    walk.current[RECORD_AT_HAND] = record
    walk.current[PENDING] = -1
    walk.current[XID] = 0
    status, at, count = scan_record(
        walk.payload, walk.records, record, (walk.header, walk.big), 0, walk.vectors
    )
    walk.current[VECTORS] = count
    if status != 0:
        return 1, status, at
    order_private_redo(walk, count)
    for vector in range(count):
        walk.tally[TALLY_VECTORS] += 1
        full = (
            walk.state[EVENTS] == walk.events.kind.size
            or walk.state[PIECES] == walk.pieces.op.size
            or walk.state[FULL] != 0
        )
        status = _CAPACITY if full else _step(walk, vector)
        if status != 0:
            return 2, status, walk.vectors.position[vector]
    _pass_alone(walk)
    return 2, _CAPACITY if walk.state[FULL] != 0 else 0, 0
