"""Decodes change vectors into transaction events and row pieces, for the subscribed objects.

The kernels read the vectors in order and pair them (redo-format §4.8). An undo record (5.1)
followed by a row vector is a change; the undo record names the transaction and the table. A row
vector followed by a 5.6 or 5.11 undoes a change.

A change of a subscribed table must not be lost, even if its vectors are damaged. So two independent
properties identify the table of a row vector: the object in its undo record, and the segment in its
own header. If only one of the two is subscribed, or if the undo record contradicts the row vector,
the change becomes an UNDECODED event (`events`), and its table stops.

Facts: redo-format §3.1, §4, §5, §6; checked on real logs of 19c and 23ai and real records.
"""

from __future__ import annotations

import numpy as np

from olr_pg.kernels.compile import inlined
from olr_pg.redo.batch import EventKind
from olr_pg.redo.boundaries import boundary, ddl, session, state_changes
from olr_pg.redo.direct import direct_load, leaf_root
from olr_pg.redo.events import (
    field_of,
    find,
    find_named,
    find_table,
    has_no_block,
    has_room,
    link_undo,
    note,
    push_contradiction,
    push_event,
    push_undecoded,
    push_unknown,
    signed_xid,
    xid_of,
)
from olr_pg.redo.format.file_fields import (
    RECORD_CON_UID,
    ROOT,
    VECTOR_KIND,
    VECTOR_NO_BLOCK,
    VECTOR_TYP,
    VECTOR_TYP_UNKNOWN,
)
from olr_pg.redo.format.opcodes import (
    INDEX_STRUCTURE_UNDO,
    LAYER_INDEX,
    LAYER_LOB,
    LAYER_ROW,
    LEAF_INITIALIZE,
    LEAF_ROOT,
    LEAF_STRUCTURE,
    OP_BEGIN,
    OP_BLOCK_IMAGE,
    OP_BLOCKS_UNLOGGED,
    OP_BLOCKS_UNLOGGED_AGAIN,
    OP_DDL,
    OP_DIRECT_LOAD,
    OP_END,
    OP_LEAF_ROOT,
    OP_LOB_OPERATION,
    OP_SESSION,
    OP_SESSION_CONTINUED,
    OP_STATE,
    OP_UNDO,
    OP_UNDO_APPLIED,
    OP_UNDO_APPLIED_HEADER,
    UNDO_OF_LEAF,
    UNDO_OF_ROW,
    UNEXPLAINED,
)
from olr_pg.redo.format.row_fields import KDO_BDBA, KDO_SIZE
from olr_pg.redo.format.undo_fields import (
    KTUB_APART,
    KTUB_BEGINS,
    KTUB_CUT,
    KTUB_FLAGS_UNKNOWN,
    KTUB_FLG,
    KTUB_HEAD,
    KTUB_LONG_SIZE,
    KTUB_OBJD,
    KTUB_OBJN,
    KTUB_OPC,
    KTUB_PART,
    KTUB_SIZE,
    KTUB_SLT,
    KTUB_WRP,
    KTUDB_SIZE,
    KTUDB_XID,
)
from olr_pg.redo.in_memory_undo import move_end_behind_changes, order_private_redo
from olr_pg.redo.integers import read_xid, u16, u32
from olr_pg.redo.iot import Pair
from olr_pg.redo.lobs import is_lob_undo, lob_vector
from olr_pg.redo.pairs import pair_pieces
from olr_pg.redo.pieces import NO_ROW, ChangeStatus, open_piece, row_slot
from olr_pg.redo.row_vectors import ENTRIES, FULL, PIECES, push
from olr_pg.redo.uninterpreted import note_new_leaf, pass_by
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
    BEGUN,
    CONTAINER,
    NAMED,
    PENDING,
    RECORD_AT_HAND,
    TALLY_CHANGES,
    TALLY_FILTERED,
    TALLY_NAMED,
    TALLY_ROW_VECTORS,
    TALLY_TOLD,
    TALLY_UNDOING,
    TALLY_UNPAIRED,
    TALLY_VECTORS,
    TALLY_WITHOUT_ROW,
    VECTORS,
    XID,
    Walk,
)

_BEGIN = int(EventKind.BEGIN)
_CHANGE = int(EventKind.CHANGE)
_UNDONE = int(EventKind.UNDONE)
_UNDO_PART = int(EventKind.UNDO_PART)
_SPLIT_CHANGE = int(EventKind.SPLIT_CHANGE)
_STRAY = int(EventKind.STRAY)

_OK = int(ChangeStatus.OK)
_CAPACITY = int(ChangeStatus.CAPACITY)
_SHORT_FIELD = int(ChangeStatus.SHORT_FIELD)
_ENCRYPTED = int(ChangeStatus.ENCRYPTED)
_SPLIT_UNDO = int(ChangeStatus.SPLIT_UNDO)
_CONTRADICTION = int(ChangeStatus.CONTRADICTION)
_NO_UNDO = int(ChangeStatus.NO_UNDO)
_OPERATION = int(ChangeStatus.OPERATION)


@inlined
def _begin_by_undo(walk: Walk) -> None:
    """Push the BEGIN event of a transaction whose first undo record is the current vector, unless a
    5.2 in this record already did.

    In all real records the 5.2 precedes the first undo record. This function is for a 5.2 that was
    misread: without a BEGIN event, the transaction would look like one that began before the first
    log that was read.
    """
    begun = walk.current[BEGUN]
    if (
        begun < 0
        or walk.events.xid[begun] != np.uint64(walk.current[XID])
        or walk.events.undo_con_id[begun] != walk.current[CONTAINER]
    ):
        walk.current[BEGUN] = push_event(walk, _BEGIN, walk.current[CONTAINER], walk.current[XID])


@inlined
def _find_anywhere(walk: Walk, con_id: int, obj: int) -> int:
    """Return the subscribed table of an OBJ# if only the container of the undo is known, −1 if
    there is none.

    With shared undo, the container of the undo is always the root, so the OBJ# is searched in all
    containers (redo-format §3.1).
    """
    table = find_table(walk, con_id, obj)
    if table >= 0 or con_id != ROOT:
        return table
    return _find_in_containers(walk, obj)[0]


@inlined
def _find_in_containers(walk: Walk, obj: int) -> tuple[int, int]:
    """Return (table, container) for an OBJ# from the first container with a subscribed table of
    this number, or (−1, −1).
    """
    key = walk.objects.tables.key
    at = 0
    while at < key.size:
        container = int(key[at] >> np.uint64(32))
        table = find_table(walk, container, obj)
        if table >= 0:
            return table, container
        at = int(np.searchsorted(key, np.uint64(container + 1) << np.uint64(32)))
    return -1, -1


@inlined
def _stray_table(walk: Walk, at: int, obj: int) -> int:
    """Return a subscribed table that has the same OBJ# and data object number as a vector, but is
    in another container. Return −1 if there is none.

    Args:
        at: position of the vector. The vector's container has no subscribed table with this OBJ#.
        obj: OBJ# in the undo record of the vector. The undo record is in the root.
    """
    con_id = container_of(walk.payload, at, walk.header, walk.big)
    if con_id == ROOT and not _is_of_pdb(walk):
        return -1
    table, container = _find_in_containers(walk, obj)
    if table < 0 or container == con_id:
        return -1
    scn = walk.records.scn[walk.current[RECORD_AT_HAND]]
    dataobj = object_of(walk.payload, at, walk.big)
    return table if find(walk.objects.data, container, dataobj, scn) == table else -1


@inlined
def _is_of_pdb(walk: Walk) -> bool:
    """Return whether the CON_UID of the current record belongs to a PDB, and not to the root."""
    position = walk.records.position[walk.current[RECORD_AT_HAND]]
    return bool(u32(walk.payload, position + RECORD_CON_UID, walk.big) > ROOT)


@inlined
def agrees(walk: Walk, at: int) -> bool:
    """Return whether all parts of a 5.1 name the same transaction: ktudb, ktub and the vector's
    class.

    In all real records, all three parts name the same transaction (redo-format §4.2).
    """
    payload, big = walk.payload, walk.big
    f1, size1 = field_of(walk, at, 1)
    ktub, size2 = field_of(walk, at, 2)
    if size1 != KTUDB_SIZE or size2 < KTUB_SIZE:
        return False
    xid = read_xid(payload, f1 + KTUDB_XID, big)
    sequence = u16(payload, ktub + KTUB_WRP, big)
    return bool(
        xid >> 48 == undo_segment_of(payload, at, big)
        and xid >> 32 & 0xFF == payload[ktub + KTUB_SLT]
        and (size2 != KTUB_SIZE or xid & 0xFFFF == sequence)
    )


@inlined
def _ktub_of(walk: Walk, at: int) -> tuple[int, int]:
    """Return the position and the size of ktub in a 5.1, even if the size of ktudb was misread.

    ktub follows ktudb. If the size of ktudb was misread as too large, all following fields seem to
    be in later places, and the 5.1 seems to include its row vector. In such a 5.1, only ktub can
    identify the table.
    """
    ktudb, before = field_of(walk, at, 1)
    ktub, size = field_of(walk, at, 2)
    return (ktudb + KTUDB_SIZE if before > KTUDB_SIZE else ktub), size


@inlined
def _undo_alone(walk: Walk, vector: int, at: int) -> None:
    """Push the UNDECODED event of a 5.1 whose row vector is missing, if its table is subscribed."""
    payload, big = walk.payload, walk.big
    ktub, size = _ktub_of(walk, at)
    if is_encrypted(payload, at) or size < KTUB_SIZE:
        return
    undoes = u16(payload, ktub + KTUB_OPC, True)
    is_part = u16(payload, ktub + KTUB_FLG, big) & KTUB_APART
    if is_part or (undoes != UNDO_OF_ROW and undoes != UNDO_OF_LEAF):
        return
    con_id = container_of(payload, at, walk.header, big)
    table = _find_anywhere(walk, con_id, u32(payload, ktub + KTUB_OBJN, big))
    if table >= 0:
        dataobj = u32(payload, ktub + KTUB_OBJD, big)
        push_unknown(walk, vector, _CONTRADICTION, con_id, 0, table, dataobj)


@inlined
def _undo_record(walk: Walk, vector: int, at: int) -> int:
    """Keep a 5.1 until its row vector follows, and set the current transaction to the transaction
    of the 5.1.

    If the 5.1 is a part of an undo record that is divided among several vectors (redo-format §4.2),
    push it as a separate event.
    """
    payload, big = walk.payload, walk.big
    walk.current[PENDING] = vector
    walk.current[CONTAINER] = container_of(payload, at, walk.header, big)
    f1, size = field_of(walk, at, 1)
    if is_encrypted(payload, at) or size != KTUDB_SIZE:
        # The XID is encrypted or its place is unknown, so the current transaction remains the one
        # that the record's 5.2 named.
        return 0
    walk.current[XID] = signed_xid(read_xid(payload, f1 + KTUDB_XID, big))
    ktub = f1 + ((size + 3) & ~3)
    _, size = field_of(walk, at, 2)
    if size < KTUB_SIZE:
        return 0
    flags = u16(payload, ktub + KTUB_FLG, big)
    if size >= KTUB_LONG_SIZE and flags & KTUB_BEGINS:
        _begin_by_undo(walk)
    if not flags & KTUB_APART:
        return 0
    undoes = u16(payload, ktub + KTUB_OPC, True)
    table = _find_anywhere(walk, walk.current[CONTAINER], u32(payload, ktub + KTUB_OBJN, big))
    if table < 0 or (undoes != UNDO_OF_ROW and undoes != UNDO_OF_LEAF):
        return 0
    _split_event(walk, _UNDO_PART, at, table, at)
    return 0


@inlined
def _pair_pieces(walk: Walk, at: int, undo_at: int, layer: int, code: int, table: int) -> int:
    """Push the row pieces of an undo record and its row vector; return a `ChangeStatus`, or
    NO_ROW.
    """
    payload, big, scratch = walk.payload, walk.big, walk.scratch
    undo_fields = read_fields(payload, undo_at, walk.header, big, scratch[0], scratch[1])
    redo_fields = read_fields(payload, at, walk.header, big, scratch[2], scratch[3])
    has_block = layer == LAYER_ROW and redo_fields >= 2 and scratch[3][2] >= KDO_SIZE
    if has_block and u32(payload, scratch[2][2] + KDO_BDBA, big) != dba_of(payload, at, big):
        return _CONTRADICTION
    pair = Pair(
        payload, big, scratch[0], scratch[1], undo_fields, scratch[2], scratch[3], redo_fields,
        walk.pieces, walk.entries, walk.state,
    )  # fmt: skip
    return pair_pieces(pair, layer, code, walk.row_scn, walk.objects.cluster_columns[table])


@inlined
def _push_raw(walk: Walk, vector: int, first: int) -> None:
    """Push the fields of a vector, from field `first` on, as values."""
    offset, length = walk.scratch[0], walk.scratch[1]
    fields = read_fields(walk.payload, vector, walk.header, walk.big, offset, length)
    for field in range(first, fields + 1):
        push(walk.entries, walk.state, 0, 0, field, offset[field], length[field])


@inlined
def _split_event(walk: Walk, kind: int, undo_at: int, table: int, changed_at: int) -> int:
    """Push an event with the raw fields of a 5.1 that is one part of a divided undo record
    (`transactions.split_undo`).

    The container of the event is the container of the vector at `changed_at`.
    """
    payload, big = walk.payload, walk.big
    ktub, _ = field_of(walk, undo_at, 2)
    piece = walk.state[PIECES]
    first = walk.state[ENTRIES]
    open_piece(walk.pieces, piece, 0)
    _push_raw(walk, undo_at, 3)
    walk.pieces.entry_count[piece] = walk.state[ENTRIES] - first
    walk.state[PIECES] = piece + 1
    con_id = container_of(payload, changed_at, walk.header, big)
    event = push_event(walk, kind, con_id, walk.current[XID])
    walk.events.table[event] = table
    walk.events.serial[event] = u16(payload, ktub + KTUB_FLG, big)
    walk.events.piece_count[event] = 1
    link_undo(walk, undo_at, ktub, event)
    return event


@inlined
def _split_change(walk: Walk, at: int, undo_at: int, layer: int, code: int, table: int) -> int:
    """Push the last part of a divided undo record, together with its row vector; return a
    `ChangeStatus`.
    """
    piece = walk.state[PIECES]
    if piece + 2 > walk.pieces.op.size:
        walk.state[FULL] = 1
        return 0
    event = _split_event(walk, _SPLIT_CHANGE, undo_at, table, at)
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
def _subject(walk: Walk, at: int, undo_at: int, layer: int, named: int) -> tuple[int, int]:
    """Return the subscribed table that a row or leaf vector changes, which follows its undo record.

    Returns:
        (table or −1, status). The status is a `ChangeStatus`: OK, or the reason why the change
        cannot be decoded.
    """
    payload, big = walk.payload, walk.big
    if is_encrypted(payload, undo_at):
        return named, _ENCRYPTED
    ktub, size = _ktub_of(walk, undo_at)
    if size < KTUB_SIZE:
        return named, _SHORT_FIELD
    undoes = u16(payload, ktub + KTUB_OPC, True)
    table = -1
    con_id = container_of(payload, at, walk.header, big)
    is_known = undoes in (UNDO_OF_ROW, UNDO_OF_LEAF) or undoes in INDEX_STRUCTURE_UNDO
    if is_known:
        obj = u32(payload, ktub + KTUB_OBJN, big)
        table = find_table(walk, con_id, obj)
        if table < 0 and walk.current[CONTAINER] not in (con_id, ROOT):
            return find_table(walk, walk.current[CONTAINER], obj), _CONTRADICTION
    if table < 0:
        return named, _CONTRADICTION
    dataobj = u32(payload, ktub + KTUB_OBJD, big)
    if (layer == LAYER_ROW) != (undoes == UNDO_OF_ROW):
        return table, _CONTRADICTION
    if dataobj != 0 and dataobj != object_of(payload, at, big):
        return table, _CONTRADICTION
    if walk.current[CONTAINER] not in (con_id, ROOT) or not agrees(walk, undo_at):
        return table, _CONTRADICTION
    if (payload[at + VECTOR_TYP] | payload[undo_at + VECTOR_TYP]) & VECTOR_TYP_UNKNOWN:
        return table, _OPERATION
    return table, _ENCRYPTED if is_encrypted(payload, at) else _OK


@inlined
def _stray(walk: Walk, at: int, undo_at: int, ktub: int, xid: int) -> None:
    """Push the STRAY event of a vector if its numbers, except the container, belong to a subscribed
    table.

    The container in the vector may have been misread. Because the undo is in the root, only the
    transaction shows which container the vector belongs to (`transactions.shared_undo`).
    """
    table = _stray_table(walk, at, u32(walk.payload, ktub + KTUB_OBJN, walk.big))
    if table < 0:
        return
    con_id = container_of(walk.payload, at, walk.header, walk.big)
    event = push_event(walk, _STRAY, con_id, xid)
    walk.events.table[event] = table
    link_undo(walk, undo_at, ktub, event)


@inlined
def _note_row(walk: Walk, at: int, event: int) -> None:
    """Store in an event the block and slot of the row that a row vector changes. If no row is
    named, the block stays 0.
    """
    if is_encrypted(walk.payload, at):
        return
    kdo, size = field_of(walk, at, 2)
    slot = row_slot(walk.payload, kdo, size, walk.big)
    if slot >= 0:
        walk.events.session[event] = u32(walk.payload, kdo + KDO_BDBA, walk.big)
        walk.events.serial[event] = slot


@inlined
def _index_block(walk: Walk, at: int, code: int, table: int) -> int:
    """Process a vector that changes blocks of a subscribed index-organised table, but no row of it,
    according to its undo record. Return NO_ROW, or a `ChangeStatus` if its code contradicts the
    undo record.
    """
    if code not in LEAF_STRUCTURE:
        return _CONTRADICTION
    if code == LEAF_INITIALIZE:
        note_new_leaf(walk, at, table)
    return NO_ROW


@inlined
def _row_status(walk: Walk, at: int, undo_at: int, op: int, table: int, flags: int) -> int:
    """Push the row pieces of an undo record and its row or leaf vector; return a `ChangeStatus`, or
    NO_ROW.

    Args:
        op: opcode of the row or leaf vector.
        flags: flg of the ktub in the undo record.
    """
    if flags & KTUB_FLAGS_UNKNOWN:
        return _OPERATION
    if flags & (KTUB_PART | KTUB_CUT):
        return _SPLIT_UNDO
    return _pair_pieces(walk, at, undo_at, op >> 8, op & 0xFF, table)


@inlined
def _change(walk: Walk, vector: int, at: int, layer: int, code: int) -> int:
    """Push the event of a row or leaf vector that follows its undo record, if its table is
    subscribed.
    """
    payload, big = walk.payload, walk.big
    undo_at = walk.vectors.position[walk.current[PENDING]]
    named = find_named(walk, at)
    # All tables of a cluster are in the same segment, so the segment does not identify the table.
    is_shared = named >= 0 and walk.objects.cluster_columns[named] != 0
    is_counted = int(layer == LAYER_ROW and named >= 0 and not is_shared)
    walk.tally[TALLY_NAMED] += is_counted
    told = -1 if is_shared and not is_encrypted(payload, undo_at) else named
    table, status = _subject(walk, at, undo_at, layer, told)
    if table < 0:
        walk.tally[TALLY_FILTERED] += layer == LAYER_ROW
        if walk.current[CONTAINER] == ROOT and not is_encrypted(payload, undo_at):
            ktub, size = field_of(walk, undo_at, 2)
            if size >= KTUB_SIZE:
                _stray(walk, at, undo_at, ktub, walk.current[XID])
        return 0
    walk.tally[TALLY_TOLD] += is_counted
    con_id = container_of(payload, at, walk.header, big)
    walk.tally[TALLY_ROW_VECTORS] += layer == LAYER_INDEX
    if status == _CONTRADICTION and told >= 0 and told != table:
        push_contradiction(walk, vector, con_id, table, told, object_of(payload, at, big))
        return 0
    if status != _OK:
        xid = walk.current[XID] if status == _ENCRYPTED else 0
        event = push_unknown(walk, vector, status, con_id, xid, table, object_of(payload, at, big))
        walk.events.undo_con_id[event] = walk.current[CONTAINER] if xid != 0 else con_id
        if xid != 0 and not is_encrypted(payload, undo_at):
            ktub, _ = field_of(walk, undo_at, 2)
            link_undo(walk, undo_at, ktub, event)
        walk.tally[TALLY_CHANGES] += 1
        return 0
    ktub, _ = field_of(walk, undo_at, 2)
    flags = u16(payload, ktub + KTUB_FLG, big)
    of_structure = u16(payload, ktub + KTUB_OPC, True) in INDEX_STRUCTURE_UNDO
    if flags & KTUB_PART == KTUB_HEAD and not of_structure:
        return _split_change(walk, at, undo_at, layer, code, table)
    first_piece = walk.state[PIECES]
    first_entry = walk.state[ENTRIES]
    if of_structure:
        status = _index_block(walk, at, code, table)
    else:
        status = _row_status(walk, at, undo_at, layer << 8 | code, table, flags)
    if status == NO_ROW:
        walk.tally[TALLY_WITHOUT_ROW] += 1
        if layer == LAYER_ROW and code in UNEXPLAINED:
            note(walk, layer << 8 | code, table, object_of(payload, at, big))
        return leaf_root(walk, vector, at) if layer == LAYER_INDEX and code == LEAF_ROOT else 0
    if status > 0:
        walk.state[PIECES] = first_piece
        walk.state[ENTRIES] = first_entry
        event = push_undecoded(walk, status, con_id, walk.current[XID], table)
    else:
        event = push_event(walk, _CHANGE, con_id, walk.current[XID])
        walk.events.table[event] = table
        walk.events.piece_count[event] = walk.state[PIECES] - first_piece
        if layer == LAYER_ROW:
            _note_row(walk, at, event)
    link_undo(walk, undo_at, ktub, event)
    if walk.events.dataobj[event] == 0:
        walk.events.dataobj[event] = object_of(payload, at, big)
    walk.tally[TALLY_CHANGES] += 1
    return 0


@inlined
def _undone(walk: Walk, vector: int, at: int, op: int) -> int:
    """Push the UNDONE event of a 5.6 or 5.11 if the object is subscribed.

    The vector before it undoes the change; the container of this vector is the container of the
    event.
    """
    payload, big = walk.payload, walk.big
    con_id = container_of(payload, at, walk.header, big)
    named, before = -1, -1
    if vector > 0 and walk.vectors.opcode[vector - 1] >> 8 in (LAYER_ROW, LAYER_INDEX, LAYER_LOB):
        before = walk.vectors.position[vector - 1]
        con_id = container_of(payload, before, walk.header, big)
        named = find_named(walk, before)
        if named >= 0 and walk.objects.cluster_columns[named] != 0:
            named = -1
    ktub, size = field_of(walk, at, 1)
    encrypted = is_encrypted(payload, at)
    if encrypted or size < KTUB_SIZE:
        if named >= 0:
            status = _ENCRYPTED if encrypted else _SHORT_FIELD
            push_unknown(walk, vector, status, con_id, 0, named, object_of(payload, before, big))
            return 0
        return 0 if encrypted or before >= 0 else _SHORT_FIELD
    obj = u32(payload, ktub + KTUB_OBJN, big)
    table = find_table(walk, con_id, obj) if before >= 0 else _find_anywhere(walk, con_id, obj)
    xid = xid_of(undo_segment_of(payload, at, big), int(payload[ktub + KTUB_SLT]), 0)
    if table < 0 and not is_lob_undo(walk, con_id, ktub):
        if named >= 0:
            dataobj = object_of(payload, before, big)
            push_unknown(walk, vector, _CONTRADICTION, con_id, 0, named, dataobj)
        elif before >= 0 and container_of(payload, at, walk.header, big) == ROOT:
            _stray(walk, before, at, ktub, xid)
        return 0
    if u16(payload, ktub + KTUB_FLG, big) & KTUB_APART:
        # This 5.6 or 5.11 belongs to a part (TAIL or MID) of a divided undo record. Its change is
        # undone by the 5.6 or 5.11 of the part HEAD, so nothing is pushed here. Only a row vector
        # before it is a contradiction.
        if table >= 0 and before >= 0:
            dataobj = object_of(payload, before, big)
            push_unknown(walk, vector, _CONTRADICTION, con_id, 0, table, dataobj)
        return 0
    if table >= 0 and container_of(payload, at, walk.header, big) not in (con_id, ROOT):
        dataobj = object_of(payload, before, big)
        push_unknown(walk, vector, _CONTRADICTION, con_id, 0, table, dataobj)
        return 0
    event = push_event(walk, _UNDONE, con_id, xid)
    walk.events.table[event] = table
    link_undo(walk, at, ktub, event)
    walk.events.slot_head[event] = 1 if op == OP_UNDO_APPLIED_HEADER else 0
    if before >= 0 and walk.vectors.opcode[vector - 1] >> 8 == LAYER_ROW:
        _note_row(walk, before, event)
    return 0


@inlined
def _row_vector_alone(walk: Walk) -> int:
    pending = walk.current[PENDING]
    return 1 if pending >= 0 and walk.vectors.opcode[pending] >> 8 == LAYER_ROW else 0


@inlined
def _named_alone(walk: Walk) -> int:
    """Return 1 if the header of the pending row vector names a subscribed table outside a cluster,
    else 0.
    """
    table = walk.current[NAMED]
    return int(table >= 0 and walk.objects.cluster_columns[table] == 0)


@inlined
def _pass_alone(walk: Walk) -> None:
    """Process the pending vector, if there is one: it is a row vector without undo, or an undo
    record without a row vector.

    If the table of the vector is subscribed, push the vector as a change whose transaction is
    unknown.
    """
    pending = walk.current[PENDING]
    if pending < 0:
        return
    at = walk.vectors.position[pending]
    if walk.vectors.opcode[pending] == OP_UNDO:
        _undo_alone(walk, pending, at)
        return
    table = walk.current[NAMED]
    if table < 0:
        walk.tally[TALLY_FILTERED] += 1
        op = int(walk.vectors.opcode[pending])
        if op != OP_LOB_OPERATION and has_no_block(walk, at):
            note(walk, op, -1, 0)
        return
    walk.tally[TALLY_UNPAIRED] += 1
    walk.tally[TALLY_TOLD] += _named_alone(walk)
    con_id = container_of(walk.payload, at, walk.header, walk.big)
    dataobj = object_of(walk.payload, at, walk.big)
    push_unknown(walk, pending, _NO_UNDO, con_id, 0, table, dataobj)


@inlined
def _begun_elsewhere(walk: Walk, at: int) -> None:
    """If a transaction has just begun and its undo is in the root, set its container to the
    container of its first change.
    """
    begun = walk.current[BEGUN]
    if begun < 0 or walk.payload[at + VECTOR_TYP] & VECTOR_KIND == VECTOR_NO_BLOCK:
        return
    if walk.events.undo_con_id[begun] == ROOT and walk.current[CONTAINER] == ROOT:
        walk.events.con_id[begun] = container_of(walk.payload, at, walk.header, walk.big)


@inlined
def _step_alone(walk: Walk, vector: int, at: int, op: int) -> int:
    """Process a vector that forms no pair with the vector before it; return a `ChangeStatus`."""
    if op == OP_UNDO:
        return _undo_record(walk, vector, at)
    if op in (OP_BEGIN, OP_END):
        return boundary(walk, at, op)
    if op in (OP_SESSION, OP_SESSION_CONTINUED):
        return session(walk, at, op)
    if op == OP_BLOCK_IMAGE:
        return direct_load(walk, vector, at)
    if op in (OP_BLOCKS_UNLOGGED, OP_BLOCKS_UNLOGGED_AGAIN):
        return unlogged_range(walk, vector, at)
    if op == OP_DDL:
        return ddl(walk, at)
    if op == OP_STATE:
        state_changes(walk, at)
    if op == OP_LEAF_ROOT:
        leaf_root(walk, vector, at)
    if op >> 8 != LAYER_ROW and op != OP_DIRECT_LOAD:
        pass_by(walk, vector, at, op)
    return 0


@inlined
def _step(walk: Walk, vector: int) -> int:
    """Process one vector, together with the pending vector before it, if any; return a
    `ChangeStatus`.
    """
    at = walk.vectors.position[vector]
    op = int(walk.vectors.opcode[vector])
    pending = walk.current[PENDING]
    is_pair = pending >= 0 and walk.vectors.opcode[pending] == OP_UNDO
    if is_pair:
        _begun_elsewhere(walk, at)
    if walk.objects.lob_tables.size > 0:
        status = lob_vector(walk, vector, at, op)
        if status >= 0:
            return status
    if op >> 8 == LAYER_ROW:
        walk.tally[TALLY_ROW_VECTORS] += 1
    if is_pair and (op >> 8 == LAYER_ROW or op >> 8 == LAYER_INDEX):
        status = _change(walk, vector, at, op >> 8, op & 0xFF)
        walk.current[PENDING] = -1
        return status
    if op in (OP_UNDO_APPLIED, OP_UNDO_APPLIED_HEADER):
        if _row_vector_alone(walk):
            walk.tally[TALLY_UNDOING] += 1
            walk.tally[TALLY_TOLD] += _named_alone(walk)
            walk.current[PENDING] = -1
        _pass_alone(walk)
        walk.current[PENDING] = -1
        return _undone(walk, vector, at, op)
    _pass_alone(walk)
    walk.current[PENDING] = -1
    if op >> 8 == LAYER_ROW:
        walk.current[PENDING] = vector
        walk.current[NAMED] = find_named(walk, at)
        walk.tally[TALLY_NAMED] += _named_alone(walk)
    return _step_alone(walk, vector, at, op)


@inlined
def walk_record(walk: Walk, record: int) -> tuple[int, int, int]:
    """Process the vectors of one record; return (stage, status, payload position).

    In stage 1 the vectors of the record are found; its status is a `VectorStatus`. In stage 2 each
    vector is processed; its status is a `ChangeStatus`.
    """
    walk.current[RECORD_AT_HAND] = record
    walk.current[PENDING] = -1
    walk.current[XID] = 0
    walk.current[BEGUN] = -1
    status, at, count = scan_record(
        walk.payload, walk.records, record, (walk.header, walk.big), 0, walk.vectors
    )
    walk.current[VECTORS] = count
    if status != 0:
        return 1, status, at
    order_private_redo(walk, count)
    move_end_behind_changes(walk, count)
    for vector in range(count):
        walk.tally[TALLY_VECTORS] += 1
        full = (
            not has_room(walk) or walk.state[PIECES] == walk.pieces.op.size or walk.state[FULL] != 0
        )
        status = _CAPACITY if full else _step(walk, vector)
        if status != 0:
            return 2, status, walk.vectors.position[vector]
    _pass_alone(walk)
    return 2, _CAPACITY if walk.state[FULL] != 0 else 0, 0
