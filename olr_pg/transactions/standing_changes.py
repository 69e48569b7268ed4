"""Finds the changes of a large transaction that were not undone, with a limited amount of memory.

An undo marker undoes the newest change that matches it. The undone change is searched only among
the newest few thousand changes (`delimit.live_changes`). So the changes that were not undone yet
form a stack. Only the top of the stack is in memory. The changes below are in the storage,
encrypted if there is a key. The stored changes are read when a rollback reaches them. The memory
does not depend on the size of the transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from olr_pg.redo.batch import EventKind, empty_batch
from olr_pg.redo.column_tables import head, joined_rows, take
from olr_pg.transactions.delimit import UNDO_SEARCH_DEPTH, live_changes
from olr_pg.transactions.waiting_storage import Waiting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.redo.batch import EventColumns
    from olr_pg.transactions.waiting_storage import Storage

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
