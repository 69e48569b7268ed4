"""Finds changes for which the redo does not show clearly whether they were committed. There are
three cases:

- Another transaction uses the slot of an open transaction. Oracle reuses a slot only after its
  transaction has ended. So the end was not read or was misread, or a surviving Oracle instance
  rolled the transaction back in another redo thread. The redo shows which of the two has happened
  when all threads were read up to the SCN of the reuse.
- A transaction was rolled back, but one of its changes was not undone. A rollback undoes every
  change before it ends (redo-format §4.4). So the end was misread, or redo is missing. Undo that is
  applied in parallel can be in any order, so each change is compared with all undo markers of its
  transaction.
- An undo marker names the slot of its transaction and the undo record, but only a transaction on
  another slot has this undo record. So the slot was misread. The marker of a transaction's first
  undo record contains no undo block. For such a marker, the row decides: the vector before the
  marker names the row, and only one open transaction can have changed it, because Oracle locks the
  row.

Nobody knows whether the remaining changes of the transaction were committed. For each table with
such changes, one UNDECODED change replaces them. The UNDECODED change stops the table, and the
reason is reported (`row_faults`).

`StandingChanges` finds the changes of a large transaction that were not undone, with a limited
amount of memory. An undo marker undoes the newest change that matches it. The undone change is
searched only among the newest few thousand changes (`delimit.live_changes`). So the changes that
were not undone yet form a stack. Only the top of the stack is in memory. The changes below are in
the storage, encrypted if there is a key. The stored changes are read when a rollback reaches them.
The memory does not depend on the size of the transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.kernels.compile import kernel
from olr_pg.redo.batch import ChangeBatch, EventColumns, EventKind, empty_batch
from olr_pg.redo.column_tables import head, joined_rows, take
from olr_pg.redo.events import NO_TRANSACTION_USN
from olr_pg.redo.pieces import ChangeStatus
from olr_pg.transactions.delimit import UNDO_SEARCH_DEPTH, Instances, live_changes, slot_keys
from olr_pg.transactions.waiting_storage import Waiting

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from olr_pg.transactions.finished_columns import TransactionColumns
    from olr_pg.transactions.waiting_storage import OpenTransaction, Storage


STRETCH: Final = 1 << 14
"""Number of changes that are moved to the storage together, and number of events that are processed
together.
"""

_READ_TOGETHER: Final = 8
"""Number of stored blocks of changes that `stretches` yields together. For each of its results, the
caller searches all undo markers of the transaction once.
"""

_WITH_UNDO: Final = (
    EventKind.CHANGE, EventKind.SPLIT_CHANGE, EventKind.UNDECODED, EventKind.LOB,
)  # fmt: skip


def have_undo(events: EventColumns) -> npt.NDArray[np.bool_]:
    """Return True for each event that is a change and has an undo record."""
    found: npt.NDArray[np.bool_] = np.isin(events.kind, _WITH_UNDO) & (events.undo_dba != 0)
    return found


class StandingChanges:
    """The changes with an undo record that were not undone so far; see the module's docstring.

    Events are numbered from 0. The number is stored in the column of the XID, which is not needed
    because it is the same for all events of a transaction.

    Attributes:
        undone: number of changes that were undone so far.
        unmatched: number of undo markers without a matching change.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._below: list[Waiting] = []
        self._top = head(empty_batch().events, 0)
        self._fed = 0
        self.undone = 0
        self.unmatched = 0

    def feed(self, events: EventColumns) -> Iterator[npt.NDArray[np.int64]]:
        """Process the next events. Yield the numbers of the changes that they undo, in ascending
        order.
        """
        for start in range(0, events.size, STRETCH):
            yield self._feed(take(events, slice(start, start + STRETCH)))

    def _feed(self, events: EventColumns) -> npt.NDArray[np.int64]:
        is_marker = events.kind == EventKind.UNDONE
        rows = np.flatnonzero(is_marker | have_undo(events))
        own = take(events, rows)
        own.xid[:] = self._fed + rows
        own.piece_count[:] = 0
        self._fed += events.size
        markers = int(np.count_nonzero(is_marker))
        if markers == 0:
            self._put(own)
            return rows[:0]
        self._fetch(UNDO_SEARCH_DEPTH + markers)
        together = joined_rows([self._top, own])
        live, undoable = np.empty((2, together.size), np.int64)
        count, undone, unmatched = live_changes(
            together, np.arange(together.size), 0, together.size, live, undoable
        )
        self.undone += undone
        self.unmatched += unmatched
        is_gone = together.kind != EventKind.UNDONE
        is_gone[live[:count]] = False
        self._top = head(self._top, 0)
        self._put(take(together, live[:count]))
        gone: npt.NDArray[np.int64] = together.xid[is_gone].astype(np.int64)
        return gone

    def _fetch(self, count: int) -> None:
        """Read stored changes into memory until `count` changes, or all, are there."""
        while self._top.size < count and self._below:
            below = [batch.events for batch in self._below.pop().batches]
            self._top = joined_rows([*below, self._top])

    def _put(self, changes: EventColumns) -> None:
        """Push changes on the stack. If there are too many in memory, move the lowest to the
        storage.
        """
        self._top = joined_rows([self._top, changes])
        while self._top.size > 2 * STRETCH:
            below = Waiting()
            below.append(empty_batch()._replace(events=head(self._top, STRETCH).copy()))
            below.move_into(self._storage)
            self._below.append(below)
            self._top = take(self._top, slice(STRETCH, None)).copy()

    def stretches(self) -> Iterator[EventColumns]:
        """Yield the changes that were not undone, in redo order."""
        for at in range(0, len(self._below), _READ_TOGETHER):
            below = self._below[at : at + _READ_TOGETHER]
            yield joined_rows([batch.events for one in below for batch in one.batches])
        yield self._top


_LOB = int(EventKind.LOB)
_USN = 48
_AT_HEAD = np.uint64(1 << 63)
"""The bit that marks keys of undo records that contain the previous undo block, as in a 5.11,
instead of the record's own block.
"""
_SLOT = np.uint64(32)
"""Bit offset of undo segment and slot in a packed XID."""


class Superseded(NamedTuple):
    """An open transaction whose slot another transaction uses now.

    Attributes:
        successor: the first event of the other transaction.
    """

    transaction: OpenTransaction
    successor: EventColumns


class UnseenEnds:
    """Keeps transactions whose slots are used by other transactions, until all redo up to this
    reuse was read.
    """

    def __init__(self) -> None:
        self._waiting: dict[tuple[int, int], Superseded] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    @property
    def transactions(self) -> list[OpenTransaction]:
        """The waiting transactions."""
        return [one.transaction for one in self._waiting.values()]

    def add(self, key: int, transaction: OpenTransaction, successor: EventColumns) -> None:
        """Add a transaction that was removed from its slot. `key` is the slot, from
        `delimit.slot_keys`.
        """
        self._waiting[key, transaction.xid] = Superseded(transaction, successor)

    def pop(self, key: int, xid: int) -> OpenTransaction | None:
        """Remove and return a transaction whose end was found later; return None if there is no
        such transaction.
        """
        found = self._waiting.pop((key, xid), None)
        return None if found is None else found.transaction

    def passed(self, scn: int) -> list[Superseded]:
        """Remove and return the transactions whose slot was reused before `scn`. All redo before
        `scn` was read, so their end is missing.
        """
        found = {key: one for key, one in self._waiting.items() if one.successor.scn[0] < scn}
        for key in found:
            del self._waiting[key]
        return list(found.values())

    def copy(self) -> UnseenEnds:
        """Return a copy."""
        other = UnseenEnds()
        other._waiting = dict(self._waiting)
        return other


def successors(
    opened: Mapping[int, OpenTransaction], whole: TransactionColumns
) -> list[tuple[int, EventColumns]]:
    """Return the slots of open transactions that other transactions have used later and completely,
    from begin to end.

    Args:
        opened: the open transactions, by slot.
        whole: complete transactions, of any redo thread.

    Returns:
        (slot, an event with the SCN at which the complete transaction began) for each such slot.
    """
    if not opened or whole.xid.size == 0:
        return []
    slots = {one.xid >> 32: key for key, one in opened.items()}
    rows = np.flatnonzero(np.isin(whole.xid >> _SLOT, np.array(list(slots), np.uint64)))
    found = dict[int, EventColumns]()
    for row in rows.tolist():
        key = slots[int(whole.xid[row]) >> 32]
        one = opened[key]
        first = take(one.chunks.batches[0].events, slice(0, 1))
        if key not in found and _uses_slot_of(one, first, whole, row):
            first.scn[0] = whole.begin_scn[row]
            found[key] = first
    return list(found.items())


def _uses_slot_of(
    one: OpenTransaction, first: EventColumns, whole: TransactionColumns, row: int
) -> bool:
    """Return whether a complete transaction used the slot of an open one after it, in the same redo
    thread and container.
    """
    return bool(
        int(whole.con_id[row]) == one.con_id
        and int(whole.xid[row]) > one.xid
        and whole.commit_thread[row] == first.thread[0]
        and one.begin_scn is not None
        and int(whole.begin_scn[row]) >= one.begin_scn
    )


def misplaced_markers(
    events: EventColumns, opened: Mapping[int, OpenTransaction]
) -> list[ChangeBatch]:
    """Return an artificial transaction with a fault for each undo marker whose slot differs from
    the slot of its change.

    Args:
        events: the events of a batch, in redo order.
        opened: the open transactions, by slot.
    """
    markers = np.flatnonzero((events.kind == EventKind.UNDONE) & (events.table >= 0))
    if markers.size == 0:
        return []
    lost = _unfound(events, markers, events)
    if lost.size == 0:
        return []
    # Search first the open transactions on the slots of the markers, from their newest events back.
    # Usually all markers are found there.
    slots = set(slot_keys(take(events, lost)).tolist())
    own_first = sorted(opened, key=lambda slot: slot not in slots)
    waiting = [opened[slot].chunks.batches for slot in own_first]
    for batches in waiting:
        for place in reversed(range(len(batches))):
            lost = _unfound(events, lost, batches[place].events)
            if lost.size == 0:
                return []
    records, own = _marker_keys(events, lost)[0], take(events, lost)
    related = [_related(batch.events, records, own) for batches in waiting for batch in batches]
    everything = joined_rows([*related, events])
    elsewhere = np.isin(records, _undone_keys(everything)[0])
    behind = everything.size - events.size
    told = [row for row in lost[elsewhere].tolist() if _is_open_elsewhere(everything, behind + row)]
    told += _on_locked_rows(everything, events, lost[~elsewhere])
    return [_told_alone(take(events, np.full(3, row))) for row in sorted(told)]


def _unfound(
    events: EventColumns, markers: npt.NDArray[np.int64], known: EventColumns
) -> npt.NDArray[np.int64]:
    """Return the markers for which `known` has no change on the same slot with the undo record that
    the marker names.

    Most changes of a batch are excluded by 16 bits of their undo record, because that is much
    faster than the comparison of their keys.
    """
    own = take(events, markers)
    is_named = np.zeros(1 << 16, np.bool_)
    is_named[_record_bits(np.where(own.slot_head != 0, own.prev_dba, own.undo_dba), own)] = True
    near = is_named[_record_bits(known.undo_dba, known)]
    near |= (known.rci == 0) & is_named[_record_bits(known.prev_dba, known)]
    # Sorted keys are searched, because NumPy's `isin` takes ten times as long.
    found = np.sort(_undone_keys(take(known, np.flatnonzero(near)))[1])
    wanted = _marker_keys(events, markers)[1]
    is_unfound = found.searchsorted(wanted) == found.searchsorted(wanted, side="right")
    return markers[np.flatnonzero(is_unfound)]


def _record_bits(dba: npt.NDArray[np.uint32], events: EventColumns) -> npt.NDArray[np.uint32]:
    """Return 16 bits of the undo record of each event. `dba` is the block of this record."""
    bits: npt.NDArray[np.uint32] = (dba ^ events.rci.astype(np.uint32) << np.uint32(8)) & 0xFFFF
    return bits


def _related(
    events: EventColumns, records: npt.NDArray[np.uint64], markers: EventColumns
) -> EventColumns:
    """Return the events that have one of these undo records, or that concern a row that one of the
    markers names.
    """
    rows, keys = _undo_records(events)
    is_related = (events.session != 0) & np.isin(_row_keys(events), _row_keys(markers))
    is_related[rows[np.isin(keys, records)]] = True
    return take(events, is_related)


def _is_open_elsewhere(events: EventColumns, marker: int) -> bool:
    """Return whether a transaction that is open at the position of a marker has the undo record
    that the marker names.

    That the record exists in some transaction is not enough. An undo block is reused after its
    transactions have ended, so an earlier or later transaction can have a record with the same
    position and wrap. And the change of the marker can be unknown: it can be older than the batch,
    or change no row, such as a lock.

    Args:
        events: the events of open transactions from before the batch, followed by the events of the
            batch in redo order.
    """
    before = take(events, slice(0, marker))
    records, keys = _undo_records(before)
    found = records[keys == _marker_keys(events, np.array([marker]))[0]]
    slots = slot_keys(before)
    ends = np.isin(before.kind, (EventKind.COMMIT, EventKind.ROLLBACK))
    return any(not (ends[row:] & (slots[row:] == slots[row])).any() for row in found.tolist())


def _on_locked_rows(
    known: EventColumns, events: EventColumns, markers: npt.NDArray[np.int64]
) -> list[int]:
    """Return the markers whose row was changed by an open transaction on another slot.

    The events of a batch are not always in redo order, so SCNs decide which event of a redo thread
    was first.
    """
    markers = markers[events.session[markers] != 0]
    if markers.size == 0:
        return []
    named = (known.session != 0) & np.isin(known.kind, (EventKind.CHANGE, EventKind.UNDONE))
    ends = np.isin(known.kind, (EventKind.COMMIT, EventKind.ROLLBACK))
    rows, ended = take(known, named), take(known, ends)
    keys, slots, own = _row_keys(rows), slot_keys(rows), take(events, markers)
    order = np.argsort(keys, kind="stable")
    wanted, own_slots = _row_keys(own), slot_keys(own)
    first = np.searchsorted(keys, wanted, "left", order)
    last = np.searchsorted(keys, wanted, "right", order)
    found = []
    for at, marker in enumerate(markers.tolist()):
        of_row = order[first[at] : last[at]]
        scn = int(own.scn[at])
        others = (slots[of_row] != own_slots[at]) & (rows.thread[of_row] == own.thread[at])
        for slot in np.unique(slots[of_row[others]]).tolist():
            ends_at = ended.scn[slot_keys(ended) == slot]
            if _locks(take(rows, of_row[slots[of_row] == slot]), ends_at, scn):
                found.append(marker)
                break
    return found


def _locks(of_row: EventColumns, ends: npt.NDArray[np.uint64], scn: int) -> bool:
    """Return whether the transaction on a slot has locked a row at an SCN.

    Args:
        of_row: the changes of this row by transactions on the slot, and their undo markers.
        ends: the SCNs at which transactions on the slot end.
    """
    before = ends[ends <= scn].max(initial=0)
    of_row = take(of_row, (of_row.scn >= before) & (of_row.scn <= scn))
    is_change = of_row.kind == EventKind.CHANGE
    changed = np.count_nonzero(is_change & (of_row.scn < scn) & (of_row.scn > before))
    return bool(changed > np.count_nonzero(~is_change))


def _row_keys(events: EventColumns) -> npt.NDArray[np.uint64]:
    """Return the row that each event concerns, as one number."""
    block = events.session.astype(np.uint64) << np.uint64(16) | events.serial.astype(np.uint64)
    segment = events.con_id.astype(np.uint64) << np.uint64(32) | events.dataobj.astype(np.uint64)
    mixed: npt.NDArray[np.uint64] = block ^ segment * np.uint64(0x9E3779B97F4A7C15)
    return mixed


def _marker_keys(
    events: EventColumns, markers: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Return the key of the undo record that each marker names, as in `_undone_keys`."""
    own = take(events, markers)
    at_head = own.slot_head != 0
    keys = np.where(
        at_head, _undo_keys(own.prev_dba, own) | _AT_HEAD, _undo_keys(own.undo_dba, own)
    )
    return keys, _slotted(keys, own)


def _undone_keys(
    events: EventColumns,
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Return the keys of the undo records of changes: without the slot of the transaction, and
    combined with it.

    A 5.11 does not contain the block of the undo record, but the undo block before it. For the
    first undo record of a transaction, there is no such block, and slot and row identify the
    record.
    """
    rows, keys = _undo_records(events)
    changes = take(events, rows)
    names_block = (keys & _AT_HEAD == 0) | (changes.prev_dba != 0)
    return keys[names_block], _slotted(keys, changes)


def _undo_records(
    events: EventColumns,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """Return the rows of the changes that have an undo record, and the keys of these records.

    If the record is the first one of an undo block, it has a second key, in the form of a 5.11.
    """
    rows = np.flatnonzero(have_undo(events))
    own = take(events, rows)
    is_first = own.rci == 0
    at_head = _undo_keys(own.prev_dba, own)[is_first] | _AT_HEAD
    keys = np.concatenate([_undo_keys(own.undo_dba, own), at_head])
    return np.concatenate([rows, rows[is_first]]), keys


def _slotted(keys: npt.NDArray[np.uint64], events: EventColumns) -> npt.NDArray[np.uint64]:
    """Combine the key of each event with its slot. If the key contains no undo block, combine it
    with the row too.
    """
    mixed: npt.NDArray[np.uint64] = keys ^ slot_keys(events) * np.uint64(0x9E3779B97F4A7C15)
    is_first = (keys & _AT_HEAD != 0) & (events.prev_dba == 0)
    is_row = np.isin(events.kind, (EventKind.CHANGE, EventKind.UNDONE))
    return np.where(is_first & is_row, mixed ^ _row_keys(events), mixed)


def _told_alone(told: EventColumns) -> ChangeBatch:
    """Return an artificial transaction, at the position of an event, with a fault for the event's
    table.

    Args:
        told: three copies of the event. The copies become BEGIN, UNDECODED and COMMIT.
    """
    place = int(told.offset[0] & 0xFFFF) << _USN - 16 | int(told.block[0])
    told.xid[:] = NO_TRANSACTION_USN << _USN | place
    told.kind[:] = [EventKind.BEGIN, EventKind.UNDECODED, EventKind.COMMIT]
    told.table[::2] = -1
    told.session[:] = [0, int(ChangeStatus.CONTRADICTION), 0]
    told.undo_con_id[:], told.undo_dba[:] = told.con_id, 0
    return empty_batch()._replace(events=told)


def left_without_end(one: Superseded, storage: Storage) -> list[ChangeBatch]:
    """Return an artificial transaction with a fault for each table that a transaction without an
    end has changed.
    """
    chunks = one.transaction.chunks.batches
    return left_of_large(chunks, one.successor, storage, ChangeStatus.NO_END)


def left_of_large(
    chunks: Sequence[ChangeBatch],
    end: EventColumns,
    storage: Storage,
    status: ChangeStatus = ChangeStatus.NOT_TAKEN_BACK,
) -> list[ChangeBatch]:
    """Do what `left_changes` does, for one transaction that may be on disk.

    Args:
        chunks: the events of the transaction.
        end: the event at which it ends.
    """
    standing = StandingChanges(storage)
    for chunk in chunks:
        for _ in standing.feed(chunk.events):
            pass
    first: dict[int, EventColumns] = {}
    for changes in standing.stretches():
        # One remaining change of each table is enough to stop the table.
        is_left = (changes.kind != EventKind.LOB) & (changes.table >= 0)
        left = take(changes, is_left & ~np.isin(changes.table, list(first)))
        for place in reversed(range(len(chunks) if left.size else 0)):
            left = take(left, ~_is_marked(left, chunks[place].events))
        tables, places = np.unique(left.table, return_index=True)
        for table, place in zip(tables.tolist(), places.tolist(), strict=True):
            first.setdefault(table, take(left, slice(place, place + 1)))
    if not first:
        return []
    return [told_of(joined_rows([head(chunks[0].events, 1), *first.values()]), end, status)]


def left_changes(
    events: EventColumns,
    instances: Instances,
    rows: npt.NDArray[np.int64],
    status: ChangeStatus = ChangeStatus.NOT_TAKEN_BACK,
) -> list[ChangeBatch]:
    """Return an artificial transaction for each transaction with remaining changes. The artificial
    transaction contains a fault for each table of these changes.

    The transactions `rows` ended without a COMMIT. A remaining change is one that no undo marker
    has undone.
    """
    live, undoable, left = np.empty((3, events.size), np.int64)
    counts = np.zeros(rows.size, np.int64)
    count = _find_left(events, instances.order, instances.first, rows, live, undoable, left, counts)
    if count == 0:
        return []
    found, ends = [], np.cumsum(counts)
    for at in np.flatnonzero(counts).tolist():
        own = np.sort(left[ends[at] - counts[at] : ends[at]])
        of_instance = take(events, instances.events_of(int(rows[at])))
        own = own[~_is_marked(take(events, own), of_instance)]
        if own.size == 0:
            continue
        begin, end = int(instances.begin[rows[at]]), int(instances.end[rows[at]])
        of = take(events, np.concatenate([[begin], own]))
        end_event = take(events, slice(end, end + 1))
        found.append(told_of(of, end_event, status))
    return found


def _is_marked(changes: EventColumns, events: EventColumns) -> npt.NDArray[np.bool_]:
    """Return True for each change for which there is an undo marker among the events, in any
    order.
    """
    at_head = (events.kind == EventKind.UNDONE) & (events.slot_head != 0)
    by_block = take(events, (events.kind == EventKind.UNDONE) & (events.slot_head == 0))
    by_slot = take(events, at_head)
    at_block = np.isin(
        _undo_keys(changes.undo_dba, changes), _undo_keys(by_block.undo_dba, by_block)
    )
    at_slot = np.isin(_undo_keys(changes.prev_dba, changes), _undo_keys(by_slot.prev_dba, by_slot))
    marked: npt.NDArray[np.bool_] = at_block | at_slot & (changes.rci == 0)
    return marked


def _undo_keys(dba: npt.NDArray[np.uint32], events: EventColumns) -> npt.NDArray[np.uint64]:
    """Return the undo record of each event as one number. Two records have the same number if
    `delimit` treats them as the same.
    """
    keys: npt.NDArray[np.uint64] = (
        dba.astype(np.uint64) << np.uint64(24)
        | events.wrp.astype(np.uint64) << np.uint64(8)
        | events.rci.astype(np.uint64)
    )
    return keys


@kernel
def _find_left(
    events: EventColumns, order: Any, first: Any, rows: Any, live: Any, undoable: Any, left: Any,
    counts: Any,
) -> int:  # fmt: skip
    """Fill `left` with the row changes that were not undone by a rollback, and `counts` with their
    number per transaction.
    """
    found = 0
    for at in range(rows.size):
        row = rows[at]
        count, _, _ = live_changes(events, order, first[row], first[row + 1], live, undoable)
        for k in range(count):
            event = events[np.uint64(live[k])]
            # A change without an undo record cannot be undone, and LOB pages are not undone either.
            if event.kind != _LOB and event.undo_dba != 0 and event.table >= 0:
                left[found] = live[k]
                found += 1
                counts[at] += 1
    return found


def told_of(events: EventColumns, end: EventColumns, status: ChangeStatus) -> ChangeBatch:
    """Return a transaction with one UNDECODED change for each table of some changes.

    Args:
        events: the BEGIN of the transaction, and its changes.
        end: the event at which the returned transaction commits.
    """
    _, first = np.unique(events.table[1:], return_index=True)
    begin, changes, commit = take(events, slice(0, 1)), take(events, 1 + np.sort(first)), end.copy()
    changes.kind[:], changes.session[:], changes.undo_dba[:] = EventKind.UNDECODED, int(status), 0
    commit.kind[:], commit.session[:], commit.table[:] = EventKind.COMMIT, 0, -1
    told = joined_rows([begin, changes, commit])
    told.piece_count[:] = 0
    told.undo_con_id[:], told.xid[:] = begin.undo_con_id[0], begin.xid[0]
    told.con_id[told.kind == EventKind.COMMIT] = begin.con_id[0]
    return empty_batch()._replace(events=told)
