"""Removes transactions that begin and end in a batch and change no subscribed table.

Most transactions of a database are like this. One kernel finds these transactions, so that the
assembler, which groups and copies events, does not process them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from olr_pg.kernels.compile import kernel
from olr_pg.redo.batch import ChangeBatch, EventKind
from olr_pg.redo.column_tables import take
from olr_pg.transactions.delimit import slot_keys

if TYPE_CHECKING:
    from collections.abc import Iterable

    from olr_pg.redo.batch import EventColumns

_SLOTS: Final = 1 << 14
"""Size of the hash table of slots. A database has at most a few thousand transaction slots."""

_BEGIN = int(EventKind.BEGIN)
_COMMIT = int(EventKind.COMMIT)
_ROLLBACK = int(EventKind.ROLLBACK)
_SESSION = int(EventKind.SESSION)


class Concerned(NamedTuple):
    """A batch from which the transactions without changes were removed.

    Attributes:
        committed, rolled_back: numbers of removed transactions.
    """

    batch: ChangeBatch
    committed: int
    rolled_back: int


def without_unconcerned(batch: ChangeBatch, open_slots: Iterable[int]) -> Concerned:
    """Remove from a batch the complete transactions that change nothing.

    Args:
        batch: events in redo order.
        open_slots: `slot_keys` of the open transactions. The next transaction on such a slot is
            kept, because it shows that the end of the open one was missed.
    """
    events = batch.events
    if events.size == 0:
        return Concerned(batch, 0, 0)
    table = np.zeros((4, _SLOTS), np.int64)
    keep = np.ones(events.size, np.bool_)
    waiting = np.fromiter(open_slots, np.uint64)
    counts = np.zeros(2, np.int64)
    _find_unconcerned(events, slot_keys(events), waiting, table, keep, counts)
    if keep.all():
        return Concerned(batch, 0, 0)
    kept = batch._replace(events=take(events, keep))
    return Concerned(kept, int(counts[0]), int(counts[1]))


@kernel
def _find_unconcerned(
    events: EventColumns, keys: Any, waiting: Any, table: Any, keep: Any, counts: Any
) -> None:
    """Set `keep` to False for the events to remove.

    For each slot, `table` contains four numbers: the key + 1; the BEGIN event + 1 (0 if there is
    none, −1 if the transaction must be kept); the first SESSION event + 1; and the number of
    SESSION events.
    """
    mask = np.uint64(_SLOTS - 1)
    used = 0
    for i in range(waiting.size + events.size):
        event = i - waiting.size
        key = waiting[i] if event < 0 else keys[event]
        slot = (key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32) & mask
        wanted = np.int64(key) + 1
        while table[0, slot] != 0 and table[0, slot] != wanted:
            slot = (slot + np.uint64(1)) & mask
        if table[0, slot] == 0:
            if used == _SLOTS // 2:
                return  # the hash table is full: keep all other transactions
            used += 1
            table[0, slot] = wanted
        if event < 0:
            table[1, slot] = -1
            continue
        kind = events.kind[event]
        if kind == _BEGIN:
            # If another BEGIN on this slot precedes it, the end of that transaction was missed:
            # keep both.
            table[1, slot] = event + 1 if table[1, slot] == 0 else -1
            table[2, slot] = 0
            table[3, slot] = 0
        elif kind == _SESSION:
            if table[3, slot] == 0:
                table[2, slot] = event + 1
            table[3, slot] += 1
        elif kind in (_COMMIT, _ROLLBACK):
            begin = table[1, slot] - 1
            if begin >= 0 and table[3, slot] <= 1 and events.xid[begin] == events.xid[event]:
                keep[begin] = False
                keep[event] = False
                if table[3, slot] == 1:
                    keep[table[2, slot] - 1] = False
                counts[0 if kind == _COMMIT else 1] += 1
            table[1, slot] = 0
        else:
            table[1, slot] = -1
