"""UNDECODED events: changes that certainly belong to subscribed tables, but cannot be decoded.

Such a change stops its table, and the position and the reason are reported
(`transactions.row_faults`), so that no change is lost unnoticed. The change belongs to the
transaction that the redo names. The transaction is unknown if the undo record is encrypted or
missing, or contradicts the row vector. Then the change becomes a transaction of its own, which
commits at the position of the change. The real transaction may commit later, or may never commit.
"""

from __future__ import annotations

from typing import Final

from olr_pg.kernels.compile import inlined, part
from olr_pg.redo.batch import EventKind
from olr_pg.redo.events import push_event, xid_of
from olr_pg.redo.pieces import ChangeStatus
from olr_pg.redo.row_vectors import EVENTS, FULL
from olr_pg.redo.walk import RECORD_AT_HAND, TALLY_CHANGES, TALLY_ROW_VECTORS, Walk

NO_TRANSACTION_USN: Final = 0x7FFF
"""The undo segment number in XIDs of changes without a known transaction. It is too high for a real
undo segment: the classes of its blocks would need more than 16 bits.
"""

_BEGIN = int(EventKind.BEGIN)
_COMMIT = int(EventKind.COMMIT)
_UNDECODED = int(EventKind.UNDECODED)

_CONTRADICTION = int(ChangeStatus.CONTRADICTION)


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
