"""Transactions of a container whose undo is in undo segments of the root (shared undo).

A CDB of 12.1 has one set of undo segments for all containers. A later CDB does too, if LOCAL UNDO
is off. Vectors that change undo blocks or undo headers then name the root as their container; other
vectors name the container of the change. Events contain both containers (`redo.batch.EVENT`). The
container of the undo and the XID together identify the transaction.

Some events have no undo and name their transaction only by an XID: directly written LOB pages,
direct loads and DDL. Events without undo contain only their own container. An event without undo
belongs to the root's undo if a transaction in the root's undo has the event's XID, and no
transaction in the event's own container has this XID.

With shared undo, only the row vector of a pair contains the container of the change, so the undo
record cannot show that this container was misread. But a transaction changes only one container
(ORA-65023). If a change has the numbers of a subscribed table but another container (STRAY), the
other events of its transaction decide. If these events name the same container as the change, the
change is dropped. If the events of one transaction name several containers, all tables that it
changes stop. One case cannot be detected: a transaction with a single change, whose end has no
marker (24.4) with the container.

If undo is shared, the undo of every change of a PDB is in the root. If undo is not shared, or the
database has no containers, a vector that names the root for the undo was misread. The event is then
moved to its own container, if a transaction there has its XID, and none in the root's undo has it.
In the same way, an event whose undo is in a PDB is moved to the root's undo, if a transaction of
this PDB in the root's undo has its XID.

Facts: redo-format §3.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from olr_pg.kernels.compile import inlined, kernel
from olr_pg.redo.batch import ChangeBatch, EventKind
from olr_pg.redo.column_tables import head, joined_rows, take
from olr_pg.redo.format.file_fields import ROOT
from olr_pg.redo.pieces import ChangeStatus
from olr_pg.transactions.unseen_ends import told_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from olr_pg.redo.batch import EventColumns
    from olr_pg.transactions.delimit import Instances
    from olr_pg.transactions.waiting_storage import OpenTransaction

_CONTAINER: Final = 32
"""Bit offset of the container in `delimit.slot_keys`."""

_SLOT: Final = 0xFFFF_00FF_0000_0000
"""The bits of an XID that undo markers contain: undo segment and low byte of the slot."""

_CHANGES: Final = (
    int(EventKind.CHANGE),
    int(EventKind.SPLIT_CHANGE),
    int(EventKind.UNDO_PART),
    int(EventKind.UNDECODED),
    int(EventKind.LOB),
    int(EventKind.UNDONE),
)
_STRAY: Final = int(EventKind.STRAY)
_TOLD: Final = (*_CHANGES, _STRAY)
_BY_XID: Final = (
    int(EventKind.CHANGE),
    int(EventKind.UNDECODED),
    int(EventKind.LOB),
    int(EventKind.DDL),
)


@inlined
def _is_by_xid(events: EventColumns, at: int) -> bool:
    """Return whether an event has no undo, so that it names its transaction only by an XID."""
    event = events[np.uint64(at)]
    return bool(
        event.con_id > ROOT
        and event.con_id == event.undo_con_id
        and event.undo_dba == 0
        and event.xid != 0
        and event.kind in _BY_XID
    )


@kernel
def _find_by_xid(
    events: EventColumns, found: Any, shared: Any, own: Any
) -> tuple[int, int, int, bool, bool, bool]:
    """Fill `found` with the events that name their transaction only by an XID.

    Args:
        shared: filled with changes of PDBs, and their undo markers, whose undo is in the root.
        own: filled with changes and undo markers whose undo is in the container of the change.

    Returns:
        (number of events in `found`, in `shared`, in `own`, whether the undo of any event is in the
        root, whether any of these events is of a PDB, whether the undo of any event is in another
        container than the root).
    """
    count = 0
    shared_count = 0
    own_count = 0
    has_root = False
    has_shared = False
    has_own = False
    for at in range(events.size):
        event = events[np.uint64(at)]
        if _is_by_xid(events, at):
            found[count] = at
            count += 1
        elif event.undo_con_id != ROOT:
            has_own = True
            if event.con_id == event.undo_con_id and event.kind in _CHANGES:
                own[own_count] = at
                own_count += 1
        else:
            has_root = True
            has_shared = has_shared or event.con_id > ROOT
            if event.con_id != ROOT and event.kind in _CHANGES:
                shared[shared_count] = at
                shared_count += 1
    return count, shared_count, own_count, has_root, has_shared, has_own


def names_its_transaction(events: EventColumns) -> bool:
    """Return whether all of these events name their transaction only by an XID."""
    count, *_ = _find_by_xid(events, *np.empty((3, events.size), np.int64))
    return bool(count == events.size)


def with_known_undo(batch: ChangeBatch, opened: Mapping[int, OpenTransaction]) -> ChangeBatch:
    """Return the batch with events assigned to the undo that contains their transaction; see the
    module's docstring.

    Args:
        batch: events in redo order.
        opened: the open transactions, by slot (`delimit.slot_keys`).
    """
    events = batch.events
    found, shared, own = np.empty((3, events.size), np.int64)
    count, shared_count, own_count, has_root, has_shared, has_own = _find_by_xid(
        events, found, shared, own
    )
    may_move = (shared_count and (has_own or opened)) or (own_count and (has_shared or opened))
    if count == 0 and not may_move:
        return batch
    containers = {key >> _CONTAINER for key in opened}
    found, shared, own = found[:count], shared[:shared_count], own[:own_count]
    if count and (has_root or ROOT in containers):
        known = _known(events, (found,), opened)
        of = _transactions(events.con_id, events.xid, found)
        moved = [one not in known and (ROOT, one[1]) in known for one in of]
        events = _moved(events, found, moved, root=True)
    if shared_count and (has_own or containers - {ROOT}):
        known = _with_slots(_known(events, (found, shared), opened))
        of = _transactions(events.con_id, events.xid, shared)
        moved = [one in known and (ROOT, one[1]) not in known for one in of]
        events = _moved(events, shared, moved, root=False)
    if own_count and (has_shared or ROOT in containers):
        of = _transactions(events.con_id, events.xid, own)
        in_root = _with_slots(_in_root(events, opened))
        if in_root.isdisjoint(of):
            return batch._replace(events=events)
        known = _with_slots(_known(events, (found, own), opened))
        moved = [one not in known and one in in_root for one in of]
        events = _moved(events, own, moved, root=True)
    return batch._replace(events=events)


def _with_slots(known: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return the transactions, and for each one also the same container with only those bits of its
    XID that undo markers contain.
    """
    return known | {(con_id, xid & _SLOT) for con_id, xid in known}


def _in_root(events: EventColumns, opened: Mapping[int, OpenTransaction]) -> set[tuple[int, int]]:
    """Return (container, XID) of the transactions of PDBs whose undo is in the root."""
    rows = np.flatnonzero((events.undo_con_id == ROOT) & (events.con_id > ROOT))
    found = set(_transactions(events.con_id, events.xid, rows))
    found.update(
        (_changed_by(one), one.xid) for key, one in opened.items() if key >> _CONTAINER == ROOT
    )
    return found


def _changed_by(transaction: OpenTransaction) -> int:
    """Return the container that an open transaction changes; the root if its events do not show it
    yet.
    """
    if transaction.con_id != ROOT:
        return transaction.con_id
    return changed_container(transaction.chunks.batches)


def _moved(
    events: EventColumns, rows: npt.NDArray[np.int64], moved: list[bool], *, root: bool
) -> EventColumns:
    """Return the events. The events of `rows` for which `moved` is True are assigned to the root's
    undo if `root` is set, otherwise to the undo of their own container.
    """
    if not any(moved):
        return events
    events, rows = events.copy(), rows[np.array(moved)]
    events.undo_con_id[rows] = ROOT if root else events.con_id[rows]
    return events


def _transactions(
    containers: npt.NDArray[np.uint16], xids: npt.NDArray[np.uint64], rows: npt.NDArray[Any]
) -> list[tuple[int, int]]:
    return list(zip(containers[rows].tolist(), xids[rows].tolist(), strict=True))


def _known(
    events: EventColumns,
    asked: Sequence[npt.NDArray[np.int64]],
    opened: Mapping[int, OpenTransaction],
) -> set[tuple[int, int]]:
    """Return (container of the undo, XID) of the known transactions.

    Args:
        asked: rows of events that are not used as evidence, because their own undo is in question.
    """
    others = np.ones(events.size, np.bool_)
    for rows in asked:
        others[rows] = False
    known = set(_transactions(events.undo_con_id, events.xid, others))
    known.update((key >> _CONTAINER, one.xid) for key, one in opened.items())
    return known


def changed_containers(
    events: EventColumns, instances: Instances, rows: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint32]:
    """Return, for each of some complete transactions, the container that it changes.

    The BEGIN event contains this container, unless the undo is in the root and no change was in the
    same record as the begin. In this exceptional case, another event shows the container.
    """
    containers: npt.NDArray[np.uint32] = events.con_id[instances.begin[rows]].astype(np.uint32)
    _find_changed(events, instances.order, instances.first, rows, containers)
    return containers


def changed_container(chunks: Sequence[ChangeBatch]) -> int:
    """Return the container that one transaction changes. `chunks` are all events of the
    transaction.
    """
    own = int(chunks[0].events.con_id[0])
    if own != ROOT:
        return own
    # Every container id of a PDB is higher than that of the root.
    return max(int(batch.events.con_id.max()) for batch in chunks)


@kernel
def _find_changed(events: EventColumns, order: Any, first: Any, rows: Any, containers: Any) -> None:
    for k in range(rows.size):
        if containers[k] != ROOT:
            continue
        for at in range(first[rows[k]], first[rows[k] + 1]):
            event = events[np.uint64(order[at])]
            if event.con_id > ROOT:
                containers[k] = event.con_id
                break


def strays(
    events: EventColumns, instances: Instances, rows: npt.NDArray[np.int64], user: Any
) -> list[ChangeBatch]:
    """Return an artificial transaction with faults for each transaction whose events name several
    containers.

    Args:
        rows: the committed transactions, as rows of `instances`. The transactions must be complete.
        user: shape (tables); whether the table is delivered. Changes in the root are only a fault
            for delivered tables, because transactions of a PDB can change Oracle's own tables in
            the root.
    """
    mixed = np.zeros(rows.size, np.bool_)
    if not _find_mixed(events, instances.order, instances.first, rows, mixed):
        return []
    found = []
    for row in rows[mixed].tolist():
        own = instances.events_of(row)
        own = own[np.isin(events.kind[own], _TOLD) & (events.table[own] >= 0)]
        own = own[(events.con_id[own] != ROOT) | user[events.table[own]]]
        if own.size:
            told = take(events, np.concatenate([[instances.begin[row]], own]))
            end = int(instances.end[row])
            found.append(told_of(told, take(events, slice(end, end + 1)), ChangeStatus.STRAY))
    return found


def strays_of_large(chunks: Sequence[ChangeBatch], user: Any) -> list[ChangeBatch]:
    """Return the same as `strays`, for one committed transaction that may be on disk.

    Args:
        chunks: the events of the transaction.
        user: see `strays`.
    """
    begin, end = head(chunks[0].events, 1), take(chunks[-1].events, slice(-1, None))
    if begin.undo_con_id[0] != ROOT:
        return []
    containers = set[int]()
    first: dict[int, EventColumns] = {}
    for chunk in chunks:
        events = chunk.events
        named = (events.con_id != ROOT) | (events.kind == _STRAY)
        containers.update(np.unique(events.con_id[named]).tolist())
        told = np.flatnonzero(np.isin(events.kind, _TOLD) & (events.table >= 0))
        told = told[(events.con_id[told] != ROOT) | user[events.table[told]]]
        tables, places = np.unique(events.table[told], return_index=True)
        for table, place in zip(tables.tolist(), told[places].tolist(), strict=True):
            first.setdefault(table, take(events, slice(place, place + 1)).copy())
    if len(containers) < 2 or not first:
        return []
    return [told_of(joined_rows([begin, *first.values()]), end, ChangeStatus.STRAY)]


@kernel
def _find_mixed(events: EventColumns, order: Any, first: Any, rows: Any, mixed: Any) -> int:
    """Mark the transactions in the root's undo whose events name several containers; return their
    number.
    """
    count = 0
    for k in range(rows.size):
        container = -1
        for at in range(first[rows[k]], first[rows[k] + 1]):
            event = events[np.uint64(order[at])]
            if event.undo_con_id != ROOT:
                break
            if event.con_id == ROOT and event.kind != _STRAY:
                continue
            if container >= 0 and event.con_id != container:
                mixed[k] = True
                count += 1
                break
            container = int(event.con_id)
    return count
