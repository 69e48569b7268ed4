"""Vectors about transactions as such: begin and end, the session, DDL.

Facts: redo-format §4, §8.1; checked on real logs of 19c and 23ai and real records.
"""

from __future__ import annotations

from olr_pg.kernels.compile import inlined
from olr_pg.redo.batch import EventKind
from olr_pg.redo.events import field_of, push_event, xid_of
from olr_pg.redo.format.marker_fields import (
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
)
from olr_pg.redo.format.opcodes import OP_BEGIN, OP_SESSION
from olr_pg.redo.format.undo_fields import (
    KTUCM_FLG,
    KTUCM_LEAST,
    KTUCM_ROLLED_BACK,
    KTUCM_SLT,
    KTUCM_SQN,
    KTUDH_LEAST,
    KTUDH_SLT,
    KTUDH_SQN,
    SESSION_NUMBER,
    SESSION_OLD_NUMBER,
    SESSION_OLD_SIZE,
    SESSION_SERIAL,
    SESSION_SIZE,
)
from olr_pg.redo.integers import read_xid, u16, u32
from olr_pg.redo.pieces import ChangeStatus, open_piece
from olr_pg.redo.row_vectors import PIECES, push
from olr_pg.redo.vectors import container_of, undo_segment_of
from olr_pg.redo.walk import CONTAINER, XID, Walk

_BEGIN = int(EventKind.BEGIN)
_COMMIT = int(EventKind.COMMIT)
_ROLLBACK = int(EventKind.ROLLBACK)
_SESSION = int(EventKind.SESSION)
_DDL = int(EventKind.DDL)

_SHORT_FIELD = int(ChangeStatus.SHORT_FIELD)


@inlined
def boundary(walk: Walk, at: int, op: int) -> int:
    """Push the BEGIN, COMMIT or ROLLBACK event of a 5.2 or 5.4."""
    payload, big = walk.payload, walk.big
    f1, size = field_of(walk, at, 1)
    begins = op == OP_BEGIN
    if size < (KTUDH_LEAST if begins else KTUCM_LEAST):
        return _SHORT_FIELD
    slot = u16(payload, f1 + (KTUDH_SLT if begins else KTUCM_SLT), big)
    sequence = u32(payload, f1 + (KTUDH_SQN if begins else KTUCM_SQN), big)
    kind = _BEGIN
    if begins and sequence == 0:
        return 0
    if not begins:
        kind = _ROLLBACK if payload[f1 + KTUCM_FLG] & KTUCM_ROLLED_BACK else _COMMIT
    walk.current[XID] = xid_of(undo_segment_of(payload, at, big), slot, sequence)
    walk.current[CONTAINER] = container_of(payload, at, walk.header, big)
    push_event(walk, kind, walk.current[CONTAINER], walk.current[XID])
    return 0


@inlined
def session(walk: Walk, at: int, op: int) -> int:
    """Push the SESSION event of a 5.19 or 5.20, for the record's transaction."""
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
    """Push the DDL event of a 24.1, whatever its object is; the values of its piece are texts.

    Facts: redo-format §8.1, by published field sizes; no real record of it was at hand.
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
