"""Decodes vectors that concern a transaction, not its rows: begin and end, the session, DDL.

Facts: redo-format §4, §8.1; checked on real logs of 19c and 23ai and real records.
"""

from __future__ import annotations

from olr_pg.kernels.compile import inlined, part
from olr_pg.redo.batch import EventKind
from olr_pg.redo.events import field_of, push_event, signed_xid, xid_of
from olr_pg.redo.format.file_fields import ROOT
from olr_pg.redo.format.opcodes import OP_BEGIN, OP_MARKER, OP_SESSION
from olr_pg.redo.format.undo_fields import (
    DDL_CMD,
    DDL_CONTINUED,
    DDL_FIELDS,
    DDL_MAGIC,
    DDL_NAME,
    DDL_OBJN,
    DDL_OWNER,
    DDL_SEQ,
    DDL_SIZE,
    DDL_STATEMENT,
    DDL_XID,
    KTUCM_CHILD,
    KTUCM_FLG,
    KTUCM_HAS_SCN,
    KTUCM_LEAST,
    KTUCM_PARALLEL,
    KTUCM_ROLLED_BACK,
    KTUCM_SCN_SIZE,
    KTUCM_SIZE,
    KTUCM_SLT,
    KTUCM_SQN,
    KTUCM_SRT,
    KTUCM_STA,
    KTUDH_LEAST,
    KTUDH_SLT,
    KTUDH_SQN,
    MARKER_COMMIT,
    MARKER_ROLLBACK,
    MARKER_SIZE,
    MARKER_XID,
    SESSION_NUMBER,
    SESSION_OLD_NUMBER,
    SESSION_OLD_SIZE,
    SESSION_SERIAL,
    SESSION_SIZE,
)
from olr_pg.redo.integers import read_xid, scn8, u16, u32
from olr_pg.redo.pieces import ChangeStatus, open_piece
from olr_pg.redo.row_vectors import PARALLELS, PIECES, push
from olr_pg.redo.vectors import container_of, is_encrypted, undo_segment_of, vector_end
from olr_pg.redo.walk import BEGUN, CONTAINER, RECORD_AT_HAND, VECTORS, XID, Walk

_BEGIN = int(EventKind.BEGIN)
_COMMIT = int(EventKind.COMMIT)
_ROLLBACK = int(EventKind.ROLLBACK)
_SESSION = int(EventKind.SESSION)
_DDL = int(EventKind.DDL)
_PARALLEL = int(EventKind.PARALLEL)

_DELAY_MAX = 0xFFFFFFFF

_ENCRYPTED = int(ChangeStatus.ENCRYPTED)
_CONTRADICTION = int(ChangeStatus.CONTRADICTION)
_SHORT_FIELD = int(ChangeStatus.SHORT_FIELD)
_OVERLONG = int(ChangeStatus.OVERLONG)

_MOST = 128
"""Maximum bytes of the field list and the fields of a 5.2 or 5.4. Real vectors have 84.

If a vector is longer, its length was misread, and the vector seems to include later vectors: an
undo record together with its row vector has at least 140 bytes.
"""


@inlined
def boundary(walk: Walk, at: int, op: int) -> int:
    """Push the BEGIN, COMMIT or ROLLBACK event of a 5.2 or 5.4."""
    payload, big = walk.payload, walk.big
    if is_encrypted(payload, at):
        return _ENCRYPTED  # the undo tablespace is encrypted: no transaction can be identified
    f1, size = field_of(walk, at, 1)
    begins = op == OP_BEGIN
    # A 5.2 whose opcode was misread as 5.4 has a field of another size. Reading it as a commit
    # would end the transaction that it begins.
    if size < KTUDH_LEAST if begins else size != KTUCM_SIZE:
        return _SHORT_FIELD
    if vector_end(payload, at, walk.header, big) - at - walk.header > _MOST:
        return _OVERLONG
    slot = u16(payload, f1 + (KTUDH_SLT if begins else KTUCM_SLT), big)
    sequence = u32(payload, f1 + (KTUDH_SQN if begins else KTUCM_SQN), big)
    kind = _BEGIN
    if begins and sequence == 0:
        return 0
    if not begins:
        kind = _ROLLBACK if payload[f1 + KTUCM_FLG] & KTUCM_ROLLED_BACK else _COMMIT
    walk.current[XID] = signed_xid(xid_of(undo_segment_of(payload, at, big), slot, sequence))
    walk.current[CONTAINER] = container_of(payload, at, walk.header, big)
    if not begins and not _has_marker(walk, kind):
        return _CONTRADICTION
    event = push_event(walk, kind, walk.current[CONTAINER], walk.current[XID])
    if not begins:
        walk.events.con_id[event] = _marked_container(walk)
    if begins:
        walk.current[BEGUN] = event
        return 0
    return _commit_in_parallel(walk, at, f1, event)


@inlined
def _has_marker(walk: Walk, kind: int) -> bool:
    """Return whether the 24.4 in the record of a 5.4, if any, names the same transaction and the
    same outcome as the 5.4.

    In all real records, the 24.4 names the same transaction and outcome (redo-format §8.3), and
    also the same container unless undo is shared. The check matters because a misread 5.4 would
    lose all changes of its transaction: the commit would count as a rollback, or as the commit of
    another transaction.
    """
    payload, big = walk.payload, walk.big
    for vector in range(walk.current[VECTORS]):
        if walk.vectors.opcode[vector] != OP_MARKER:
            continue
        at = walk.vectors.position[vector]
        f1, size = field_of(walk, at, 1)
        f2, outcome_size = field_of(walk, at, 2)
        if size < MARKER_SIZE or outcome_size < 1:
            continue
        if signed_xid(read_xid(payload, f1 + MARKER_XID, big)) != walk.current[XID]:
            return False
        if walk.current[CONTAINER] not in (container_of(payload, at, walk.header, big), ROOT):
            return False
        outcome = payload[f2]
        return bool(
            outcome == (MARKER_COMMIT if kind == _COMMIT else MARKER_ROLLBACK)
            or outcome not in (MARKER_COMMIT, MARKER_ROLLBACK)
        )
    return True


@inlined
def _marked_container(walk: Walk) -> int:
    """Return the container that the 24.4 in the record of a 5.4 names. If there is no 24.4, return
    the container of the 5.4.

    With shared undo the two containers differ, because the 5.4 then names the root (redo-format
    §3.1).
    """
    for vector in range(walk.current[VECTORS]):
        if walk.vectors.opcode[vector] == OP_MARKER:
            at = walk.vectors.position[vector]
            return container_of(walk.payload, at, walk.header, walk.big)
    return int(walk.current[CONTAINER])


@part
def _commit_in_parallel(walk: Walk, at: int, f1: int, event: int) -> int:
    """Set the commit SCN of a child of parallel DML. The 5.4 of a child contains the commit SCN of
    the parent in a field.

    If the 5.4 is the parent's, push a PARALLEL event.

    A child is recognised by its srt or by its flag, so it is still recognised if one of the two was
    misread.

    Facts: redo-format §4.4.
    """
    payload, big = walk.payload, walk.big
    if u32(payload, f1 + KTUCM_STA, big) == KTUCM_PARALLEL:
        push_parallel(walk, at, u16(payload, f1 + KTUCM_SLT, big), 1)
    is_flagged = payload[f1 + KTUCM_FLG] & KTUCM_HAS_SCN != 0
    is_child = u16(payload, f1 + KTUCM_SRT, big) == KTUCM_CHILD
    if not is_flagged and not is_child:
        return 0
    fields = (u16(payload, at + walk.header, big) - 2) >> 1
    for number in range(2, fields + 1):
        offset, size = field_of(walk, at, number)
        if size == KTUCM_SCN_SIZE:
            scn = scn8(payload, offset, big)
            delay = walk.records.scn[walk.current[RECORD_AT_HAND]] - scn
            if scn > 0 and delay >= 0:
                walk.events.scn[event] = scn
                walk.events.session[event] = min(delay, _DELAY_MAX)
                return 0
            return _CONTRADICTION
    return _CONTRADICTION if is_flagged and is_child else 0


@inlined
def state_changes(walk: Walk, at: int) -> None:
    """Push the PARALLEL event of a 5.12, which can mean that parallel DML has ended."""
    if undo_segment_of(walk.payload, at, walk.big) < 0:
        return
    f1, size = field_of(walk, at, 1)
    slot = u16(walk.payload, f1 + KTUCM_SLT, walk.big) if size >= KTUCM_LEAST else 0
    push_parallel(walk, at, slot, 0)


@inlined
def push_parallel(walk: Walk, at: int, slot: int, begins: int) -> None:
    """Push the PARALLEL event of a vector that changes the header of an undo segment, for one slot
    of this segment.
    """
    payload, big = walk.payload, walk.big
    con_id = container_of(payload, at, walk.header, big)
    event = push_event(walk, _PARALLEL, con_id, xid_of(undo_segment_of(payload, at, big), slot, 0))
    walk.events.serial[event] = begins
    walk.state[PARALLELS] += 1


@inlined
def session(walk: Walk, at: int, op: int) -> int:
    """Push the SESSION event of a 5.19 or 5.20, for the transaction of the current record."""
    payload, big = walk.payload, walk.big
    f1, size = field_of(walk, at, 1)
    if walk.current[XID] == 0 or size < (SESSION_SIZE if walk.long_session else SESSION_OLD_SIZE):
        return 0
    event = push_event(walk, _SESSION, walk.current[CONTAINER], walk.current[XID])
    walk.events.serial[event] = u16(payload, f1 + SESSION_SERIAL, big)
    walk.events.slot_head[event] = 1 if op == OP_SESSION else 0
    if walk.long_session:
        walk.events.session[event] = u32(payload, f1 + SESSION_NUMBER, big)
    else:
        walk.events.session[event] = u16(payload, f1 + SESSION_OLD_NUMBER, big)
    return 0


@inlined
def _push_text(walk: Walk, at: int, field: int, number: int) -> None:
    offset, length = field_of(walk, at, field)
    push(walk.entries, walk.state, 0, 0, number, offset, max(0, length))


@inlined
def ddl(walk: Walk, at: int) -> int:
    """Push the DDL event of a 24.1, whether its object is subscribed or not. The values of the
    event's piece are texts.

    Facts: redo-format §8.1, from published field sizes, because no real record was available.
    """
    payload, big = walk.payload, walk.big
    f1, size = field_of(walk, at, 1)
    if size != DDL_SIZE or u32(payload, f1, big) != DDL_MAGIC:
        return 0
    part = u16(payload, f1 + DDL_SEQ, big)
    fields = (u16(payload, at + walk.header, big) - 2) >> 1
    if fields < (DDL_FIELDS if part <= 1 else DDL_CONTINUED):
        return 0
    con_id = container_of(payload, at, walk.header, big)
    xid = read_xid(payload, f1 + DDL_XID, big)
    event = push_event(walk, _DDL, con_id, xid)
    walk.events.serial[event] = u16(payload, f1 + DDL_CMD, big)
    walk.events.wrp[event] = part
    walk.events.piece_count[event] = 1
    piece = walk.state[PIECES]
    open_piece(walk.pieces, piece, 0)
    walk.pieces.entry_count[piece] = 1
    if part <= 1:
        f12, size12 = field_of(walk, at, DDL_OBJN)
        walk.events.session[event] = u32(payload, f12, big) if size12 == 4 else 0
        walk.pieces.entry_count[piece] = 3
        _push_text(walk, at, DDL_STATEMENT, 1)
        _push_text(walk, at, DDL_OWNER, 2)
        _push_text(walk, at, DDL_NAME, 3)
    else:
        _push_text(walk, at, DDL_CONTINUED, 1)
    walk.state[PIECES] = piece + 1
    return 0
