"""Vectors about transactions as such: begin and end, the session, DDL.

Facts: redo-format §4, §8.1; checked on real logs of 19c and 23ai and real records.
"""

from __future__ import annotations

from olr_pg.kernels.compile import inlined
from olr_pg.redo.batch import EventKind
from olr_pg.redo.events import field_of, push_event, xid_of
from olr_pg.redo.integers import u16, u32
from olr_pg.redo.pieces import ChangeStatus, open_piece
from olr_pg.redo.row_vectors import PIECES, push
from olr_pg.redo.vectors import container_of
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
    if size < (8 if op == 0x0502 else 17):
        return _SHORT_FIELD
    sequence = u32(payload, f1 + 4, big)
    kind = _BEGIN
    if op == 0x0502 and sequence == 0:
        return 0
    if op == 0x0504:
        kind = _ROLLBACK if payload[f1 + 16] & 0x04 else _COMMIT
    usn = (u16(payload, at + 2, big) - 15) >> 1
    walk.current[XID] = xid_of(usn, u16(payload, f1, big), sequence)
    walk.current[CONTAINER] = container_of(payload, at, walk.header, big)
    push_event(walk, kind, walk.current[CONTAINER], walk.current[XID])
    return 0


@inlined
def session(walk: Walk, at: int, op: int) -> int:
    """Push the SESSION event of a 5.19 or 5.20, for the record's transaction."""
    payload, big = walk.payload, walk.big
    f1, size = field_of(walk, at, 1)
    if walk.current[XID] == 0 or size < (8 if walk.long_session else 4):
        return 0
    event = push_event(walk, _SESSION, walk.current[CONTAINER], walk.current[XID])
    walk.events.serial[event] = u16(payload, f1 + 2, big)
    walk.events.slot_head[event] = 1 if op == 0x0513 else 0
    if walk.long_session:
        walk.events.session[event] = u32(payload, f1 + 4, big)
    else:
        walk.events.session[event] = u16(payload, f1, big)
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
    if size != 24 or u32(payload, f1, big) != 10000:
        return 0
    part = u16(payload, f1 + 18, big)
    fields = (u16(payload, at + walk.header, big) - 2) >> 1
    if fields < (12 if part <= 1 else 2):
        return 0
    con_id = container_of(payload, at, walk.header, big)
    xid = xid_of(u16(payload, f1 + 4, big), u16(payload, f1 + 6, big), u32(payload, f1 + 8, big))
    event = push_event(walk, _DDL, con_id, xid)
    walk.events.serial[event] = u16(payload, f1 + 12, big)
    walk.events.wrp[event] = part
    walk.events.piece_count[event] = 1
    piece = walk.state[PIECES]
    open_piece(walk.pieces, piece, 0)
    walk.pieces.entry_count[piece] = 1
    if part <= 1:
        f12, size12 = field_of(walk, at, 12)
        walk.events.session[event] = u32(payload, f12, big) if size12 == 4 else 0
        walk.pieces.entry_count[piece] = 3
        _push_text(walk, at, 8, 1)
        _push_text(walk, at, 9, 2)
        _push_text(walk, at, 10, 3)
    else:
        _push_text(walk, at, 2, 1)
    walk.state[PIECES] = piece + 1
    return 0
