"""Transactions of a container whose undo is in the root's segments (shared undo).

A CDB of 12.1 has one set of undo segments for all containers, later ones where LOCAL UNDO is off.
Vectors on undo blocks and headers then have the root's container, the vectors on other blocks that
of what changes: events have both (`redo.batch.EVENT`), and the undo's one names the transaction
together with its XID. An event that nothing but an XID puts to a transaction (a LOB's page written
directly, a direct load, DDL) tells its own container only. It is of the root's undo where a
transaction of the root's undo has that XID and none of its own container's does.

Facts: redo-format §3.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from olr_pg.kernels.compile import inlined, kernel
from olr_pg.redo.batch import ChangeBatch, EventKind
from olr_pg.redo.format.file_fields import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from olr_pg.redo.batch import EventColumns
    from olr_pg.transactions.delimit import Instances
    from olr_pg.transactions.open_transaction import OpenTransaction

_CONTAINER: Final = 32
"""Where the container begins in `delimit.slot_keys`."""

_BY_XID: Final = (
    int(EventKind.CHANGE),
    int(EventKind.UNDECODED),
    int(EventKind.LOB),
    int(EventKind.DDL),
)


@inlined
def _is_by_xid(events: EventColumns, at: int) -> bool:
    """Tell whether an event names its transaction, and no undo does."""
    event = events[np.uint64(at)]
    return bool(
        event.con_id > ROOT
        and event.con_id == event.undo_con_id
        and event.undo_dba == 0
        and event.xid != 0
        and event.kind in _BY_XID
    )


@kernel
def _find_by_xid(events: EventColumns, found: Any) -> tuple[int, bool]:
    """Fill `found` with the events that an XID alone puts to a transaction.

    Returns:
        (how many they are, whether any event is of the root's undo).
    """
    count = 0
    has_root = False
    for at in range(events.size):
        has_root = has_root or events[np.uint64(at)].undo_con_id == ROOT
        if _is_by_xid(events, at):
            found[count] = at
            count += 1
    return count, has_root


def names_its_transaction(events: EventColumns) -> bool:
    """Tell whether all of some events are put to their transaction by an XID alone."""
    count, _ = _find_by_xid(events, np.empty(events.size, np.int64))
    return bool(count == events.size)


def with_known_undo(batch: ChangeBatch, opened: Mapping[int, OpenTransaction]) -> ChangeBatch:
    """Put events that an XID alone puts to a transaction to the root's undo where it has that XID.

    Args:
        batch: events in redo order.
        opened: the transactions that wait for their end, by slot (`delimit.slot_keys`).
    """
    events = batch.events
    found = np.empty(events.size, np.int64)
    count, has_root = _find_by_xid(events, found)
    if count == 0 or not (has_root or any(key >> _CONTAINER == ROOT for key in opened)):
        return batch
    found = found[:count]
    others = np.ones(events.size, np.bool_)
    others[found] = False
    known = _known(events, others, opened)
    own = zip(events.con_id[found].tolist(), events.xid[found].tolist(), strict=True)
    moved = [(con, xid) not in known and (ROOT, xid) in known for con, xid in own]
    if not any(moved):
        return batch
    events = events.copy()
    events.undo_con_id[found[np.array(moved)]] = ROOT
    return batch._replace(events=events)


def _known(
    events: EventColumns, others: npt.NDArray[np.bool_], opened: Mapping[int, OpenTransaction]
) -> set[tuple[int, int]]:
    """Return container of the undo and XID of the transactions that are known."""
    containers, xids = events.undo_con_id[others], events.xid[others]
    known = set(zip(containers.tolist(), xids.tolist(), strict=True))
    known.update((key >> _CONTAINER, one.xid) for key, one in opened.items())
    return known


def changed_containers(
    events: EventColumns, instances: Instances, rows: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint32]:
    """Return the container that each of some whole instances changes.

    Its begin tells, unless that changed nothing itself and is of the root's undo.
    """
    containers: npt.NDArray[np.uint32] = events.con_id[instances.begin[rows]].astype(np.uint32)
    _find_changed(events, instances.order, instances.first, rows, containers)
    return containers


def changed_container(chunks: Sequence[ChangeBatch]) -> int:
    """Return the container that one transaction changes, by all of its events."""
    own = int(chunks[0].events.con_id[0])
    if own != ROOT:
        return own
    # What it changes in the root itself is of no other container.
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
