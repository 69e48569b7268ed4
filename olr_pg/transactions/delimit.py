"""Divides a batch into the sections of its transactions, and finds the changes in them that were
undone.

A transaction occupies one slot (container, undo segment, slot number) from its BEGIN to its COMMIT
or ROLLBACK. An *undo marker* (5.6 or 5.11, event UNDONE) shows that an undo record was applied; it
names only the slot of its transaction. Facts: redo-format §4.0, §4.5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.kernels.compile import inlined, kernel
from olr_pg.redo.batch import EventKind

if TYPE_CHECKING:
    from olr_pg.redo.batch import EventColumns

_BEGIN = int(EventKind.BEGIN)
_COMMIT = int(EventKind.COMMIT)
_ROLLBACK = int(EventKind.ROLLBACK)
_CHANGE = int(EventKind.CHANGE)
_UNDONE = int(EventKind.UNDONE)
_LOB = int(EventKind.LOB)
_SPLIT_CHANGE = int(EventKind.SPLIT_CHANGE)
_UNDECODED = int(EventKind.UNDECODED)

_FIRST, _BEGIN_AT, _END_AT = 0, 1, 2
"""Rows in the work space of `_delimit`: the index at which a section begins, its BEGIN event, its
end event.
"""

UNDO_SEARCH_DEPTH: Final = 4096
"""Maximum number of changes, from the newest one back, among which the change of an undo marker is
searched. Oracle undoes the newest change first.
"""

_TAKEN_BACK = -1
"""The value that replaces an undone event in the work space of `live_changes`."""


class Instances(NamedTuple):
    """The sections of a batch, one per row. A section, also called an instance, contains the events
    of one transaction in the batch.

    Attributes:
        order: the events of the batch, grouped by section; each group is in redo order.
        first: shape (n + 1), the index in `order` at which the events of each section begin.
        begin: the BEGIN event, −1 if it is not in the batch.
        end: the COMMIT or ROLLBACK event, −1 if it is not in the batch.
        key: the slot of the transaction, see `slot_keys`.
    """

    order: npt.NDArray[np.int64]
    first: npt.NDArray[np.int64]
    begin: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    key: npt.NDArray[np.uint64]

    def events_of(self, row: int) -> npt.NDArray[np.int64]:
        """Return the events of one section."""
        return self.order[self.first[row] : self.first[row + 1]]


def slot_keys(events: EventColumns) -> npt.NDArray[np.uint64]:
    """Return ``container << 32 | undo segment << 16 | low byte of the slot`` of each event.

    The container is the container of the undo segment.
    """
    keys = np.empty(events.size, np.uint64)
    _put_keys(events, keys)
    return keys


@kernel
def _put_keys(events: EventColumns, keys: Any) -> None:
    # A loop, because NumPy would read the whole table of events once for every operation.
    for i in range(keys.size):
        event = events[np.uint64(i)]
        slot = event.xid >> np.uint64(32) & np.uint64(0xFF)
        container = np.uint64(event.undo_con_id) << np.uint64(32)
        keys[i] = container | event.xid >> np.uint64(48) << np.uint64(16) | slot


def delimit(events: EventColumns) -> Instances:
    """Divide a batch into its sections."""
    keys = slot_keys(events)
    order = np.argsort(keys, kind="stable")
    room = np.empty((3, events.kind.size + 1), np.int64)
    count = _delimit(order, keys, events, room)
    first = room[_FIRST, : count + 1]
    first[count] = order.size
    return Instances(
        order, first, room[_BEGIN_AT, :count], room[_END_AT, :count], keys[order[first[:-1]]]
    )


@kernel
def _delimit(order: Any, keys: Any, events: EventColumns, room: Any) -> int:
    # Read whole events and then their fields. If the table has a single event, NumPy says that a
    # field of it is contiguous. This is another type, for which Numba would compile again.
    count = 0
    sequence = np.uint64(0)
    for i in range(order.size):
        event = order[i]
        one = events[np.uint64(event)]
        own = one.xid & np.uint64(0xFFFFFFFF)
        opens = (
            count == 0
            or keys[event] != keys[order[i - 1]]
            or one.kind == _BEGIN
            or room[_END_AT, count - 1] >= 0
            or (own != 0 and sequence != 0 and own != sequence)
        )
        if opens:
            room[_FIRST, count] = i
            room[_BEGIN_AT, count] = -1
            room[_END_AT, count] = -1
            count += 1
            sequence = np.uint64(0)
        if own != 0:
            sequence = own
        if one.kind == _BEGIN:
            room[_BEGIN_AT, count - 1] = event
        elif one.kind in (_COMMIT, _ROLLBACK):
            room[_END_AT, count - 1] = event
    return count


@inlined
def _is_row_of(events: EventColumns, marker: int, change: int) -> int:
    """Return 1 if a change changes the row that an undo marker names, 0 if it changes another row,
    −1 if the marker or the change names no row.
    """
    block, segment = events.session[marker], events.dataobj[marker]
    if block == 0 or events.kind[change] != _CHANGE or events.session[change] == 0:
        return -1
    return int(
        events.session[change] == block
        and events.serial[change] == events.serial[marker]
        and (segment == 0 or events.dataobj[change] == segment)
    )


@inlined
def _undoes(events: EventColumns, marker: int, change: int) -> bool:
    """Return whether a 5.6 or 5.11 undoes a change: compare their undo records (redo-format
    §4.5).
    """
    named = events.dataobj[marker]
    # In some internal operations, objd is 0 in the undo record and so in its undo marker. The
    # change then has the data object number of its row vector (redo-format §4.8).
    if named != 0 and events.dataobj[change] != named:
        return False
    if events.rci[change] != events.rci[marker]:
        return False
    if events.slot_head[marker]:
        return bool(events.rci[marker] == 0 and events.prev_dba[change] == events.prev_dba[marker])
    return bool(
        events.undo_dba[change] == events.undo_dba[marker]
        and events.wrp[change] == events.wrp[marker]
    )


@inlined
def _take_back(events: EventColumns, marker: int, live: Any, undoable: Any, height: int) -> bool:
    """Find the newest change in `live` that an undo marker undoes, and replace it by _TAKEN_BACK.
    Return False if there is none.

    The row vector before an undo marker names the row of the change. If a newer change of this row
    is not undone yet, the marker matches no change.

    The position of the change is removed from `undoable`, and later positions move. Only few
    positions are later, because Oracle undoes the newest change first.
    """
    for at in range(height - 1, max(-1, height - 1 - UNDO_SEARCH_DEPTH), -1):
        change = live[undoable[at]]
        row = _is_row_of(events, marker, change)
        if not _undoes(events, marker, change):
            if row == 1:
                return False  # a newer change of this row is not undone yet
            continue
        if row != 0:
            live[undoable[at]] = _TAKEN_BACK
            for k in range(at, height - 1):
                undoable[k] = undoable[k + 1]
            return True
    return False


@inlined
def _without_taken_back(live: Any, count: int) -> int:
    """Remove the undone events from `live`; return the number of the remaining events."""
    kept = 0
    for k in range(count):
        if live[k] != _TAKEN_BACK:
            live[kept] = live[k]
            kept += 1
    return kept


@kernel
def live_changes(
    events: EventColumns, order: Any, first: int, end: int, live: Any, undoable: Any
) -> tuple[int, int, int]:
    """Write the changes of one section that were not undone to `live`, in redo order.

    Changes are events of the kinds CHANGE, SPLIT_CHANGE, UNDECODED and LOB.

    Args:
        events, order: see `Instances`.
        first, end: the events of the section are ``order[first:end]``.
        live, undoable: shape (events); the output, and work space.

    Returns:
        The number of changes in `live`, of undone changes, and of undo markers without a matching
        change.
    """
    count = 0
    height = 0
    undone = 0
    unmatched = 0
    for i in range(first, end):
        event = order[i]
        kind = events.kind[event]
        if kind in (_CHANGE, _LOB, _SPLIT_CHANGE, _UNDECODED):
            live[count] = event
            # Changes logged without undo (26.6, 11.17, 19.1) cannot be undone.
            if events.undo_dba[event] != 0:
                undoable[height] = count
                height += 1
            count += 1
        elif kind == _UNDONE:
            if _take_back(events, event, live, undoable, height):
                height -= 1
                undone += 1
            else:
                unmatched += 1
    if undone:
        count = _without_taken_back(live, count)
    return count, undone, unmatched
