"""Finished transactions: their columns, their order, and the counts of all transactions (the
account).

Most transactions of a database begin and end in a batch and change no subscribed table. One kernel
finds these transactions, so that the assembler, which groups and copies events, does not process
them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.kernels.compile import kernel
from olr_pg.redo.batch import ChangeBatch, EventColumns, EventKind
from olr_pg.redo.column_tables import take
from olr_pg.transactions.delimit import slot_keys
from olr_pg.transactions.finished_columns import DmlColumns, DmlKind, TransactionColumns
from olr_pg.transactions.lobs.assembly import Owners
from olr_pg.transactions.lobs.page_claims import Places
from olr_pg.transactions.shared_undo import changed_containers

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from olr_pg.dictionary.committed_changes import DictionaryTransaction
    from olr_pg.transactions.delimit import Instances
    from olr_pg.transactions.lobs.assembly import LobOutcome
    from olr_pg.transactions.row_fault import RowFault


_INSERT = int(DmlKind.INSERT)


class Closed(NamedTuple):
    """Transactions with a begin and an end among some events.

    Attributes:
        events, instances: the events, and their sections (`delimit`).
        rows: the transactions, as rows of `instances`.
    """

    events: EventColumns
    instances: Instances
    rows: npt.NDArray[np.int64]

    def part(self, which: npt.NDArray[Any]) -> Closed:
        """Return the transactions at some places, or those for which a mask is true."""
        return self._replace(rows=self.rows[which])


class Finished(NamedTuple):
    """Committed transactions with at least one row change for clients, in commit order.

    Attributes:
        dictionary: dictionary changes of committed transactions, with or without row changes for
            clients.
        faults: tables whose changes could not be decoded, for each committed transaction.
    """

    transactions: TransactionColumns
    dml: DmlColumns
    dictionary: tuple[DictionaryTransaction, ...] = ()
    faults: tuple[RowFault, ...] = ()


def joined_faults(parts: Sequence[Finished]) -> Finished | None:
    """Return the first part together with the faults of all parts. The other parts must contain
    only faults.
    """
    if not parts:
        return None
    return parts[0]._replace(faults=tuple(fault for part in parts for fault in part.faults))


@dataclass(slots=True)
class Account:
    """Counts of transactions and changes in an assembler, by outcome.

    Facts: architecture, “Accounting”.

    Attributes:
        committed: committed transactions that were delivered.
        empty: committed transactions without a change for clients.
        rolled_back: transactions that were rolled back.
        unbegun: transactions whose end was read but not their begin.
        lost: transactions whose end was not read before another transaction used their slot.
        rows: row changes delivered.
        rows_filtered, transactions_filtered: row changes and whole transactions that are left out
            because of filters in the configuration.
        undone: changes in committed transactions that were undone by ROLLBACK TO SAVEPOINT, or by
            the rollback of a failed statement.
        undecoded: number of left-out parts of committed transactions. A part consists of all
            changes of one table in a transaction; it is left out if one of these changes cannot be
            assembled.
        unmatched: undo markers without a matching change.
        without_set: updates that were left out because they set no delivered column.
        lob_values: LOB values delivered.
        lob_fetched: how many of the delivered LOB values were read from the source database.
        lob_unavailable: LOB values that were left out because they could not be assembled or
            decoded.
        lob_unclaimed: LOBs that were changed although no change of their row was found.
        dictionary_rows: row changes that no client receives: changes of SYS tables that the
            dictionary follower reads, and rows that a DDL moved to another segment.
        events: changes in the redo (`EventKind.CHANGE`, `SPLIT_CHANGE`, `UNDECODED`, `LOB`). Each
            change is counted once here, and once in one of the other `events_…` counts when the
            outcome of its transaction is known.
        events_committed: changes in committed transactions that were not undone. The undone changes
            in such transactions are counted in `events_undone`.
        events_rolled_back: changes in transactions that were rolled back.
        events_dropped: changes in transactions whose begin or end was not read.
    """

    committed: int = 0
    empty: int = 0
    rolled_back: int = 0
    unbegun: int = 0
    lost: int = 0
    rows: int = 0
    rows_filtered: int = 0
    transactions_filtered: int = 0
    undone: int = 0
    undecoded: int = 0
    unmatched: int = 0
    without_set: int = 0
    lob_values: int = 0
    lob_fetched: int = 0
    lob_unavailable: int = 0
    lob_unclaimed: int = 0
    dictionary_rows: int = 0
    events: int = 0
    events_committed: int = 0
    events_undone: int = 0
    events_rolled_back: int = 0
    events_dropped: int = 0

    def add(self, other: Account) -> None:
        """Add the counts of another account to this account."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def add_lobs(self, lobs: LobOutcome) -> None:
        """Add the counts of LOB values."""
        losses = lobs.losses
        self.lob_values += lobs.values
        self.lob_fetched += lobs.fetched
        self.lob_unavailable += int(
            losses.missing.sum() + losses.malformed.sum() + losses.undecoded.sum()
        )
        self.lob_unclaimed += int(losses.unclaimed.sum())
        self.without_set += lobs.emptied


def commit_order(
    scn: npt.NDArray[np.uint64],
    delay: npt.NDArray[np.uint32],
    thread: npt.NDArray[np.uint16],
    sequence: npt.NDArray[np.uint32],
    block: npt.NDArray[np.uint32],
    offset: npt.NDArray[np.uint16],
) -> npt.NDArray[np.int64]:
    """Return the order in which the transactions are delivered: by commit SCN, then by
    `CommitPosition`.
    """
    return np.lexsort((offset, block, sequence, thread, delay, scn))


@kernel
def count_rows(table: Any, kind: Any, rows: Any) -> None:
    """Add the numbers of row changes to `rows`, shape (tables, 3): inserts, deletes, updates."""
    for i in range(table.size):
        rows[table[i], kind[i] - _INSERT] += 1


def owners_of(closed: Closed) -> Owners:
    """Return transactions in the form in which LOBs refer to their transactions."""
    events, instances, rows = closed
    begin, end = instances.begin[rows], instances.end[rows]
    return Owners(
        instances.order,
        instances.first[rows],
        instances.first[rows + 1],
        changed_containers(events, instances, rows),
        events.scn[begin],
        Places.of(take(events, end)),
    )


def transactions_of(closed: Closed, dml_first: npt.NDArray[np.int64]) -> TransactionColumns:
    """Return the columns of transactions. `dml_first` are the indexes of their row changes."""
    events, instances, chosen = closed
    begin, end = instances.begin[chosen], instances.end[chosen]
    serial, session = _sessions(closed)
    return TransactionColumns(
        con_id=changed_containers(events, instances, chosen),
        xid=events.xid[begin],
        begin_scn=events.scn[begin],
        begin_time=events.time[begin],
        commit_scn=events.scn[end],
        commit_time=events.time[end],
        serial=serial,
        session=session,
        commit_delay=events.session[end],
        commit_thread=events.thread[end],
        commit_sequence=events.sequence[end],
        commit_block=events.block[end],
        commit_offset=events.offset[end],
        dml_first=dml_first,
    )


def _sessions(closed: Closed) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint32]]:
    """Return serial and session number of each transaction, from its first SESSION event. Both are
    0 if the transaction has no SESSION event.
    """
    events, instances, chosen = closed
    serial = np.zeros(chosen.size, np.uint16)
    session = np.zeros(chosen.size, np.uint32)
    instance = np.repeat(np.arange(instances.begin.size), np.diff(instances.first))
    row_of = np.full(instances.begin.size, -1, np.int64)
    row_of[chosen] = np.arange(chosen.size)
    places = np.flatnonzero(events.kind[instances.order] == EventKind.SESSION)[::-1]
    rows = row_of[instance[places]]
    places, rows = places[rows >= 0], rows[rows >= 0]
    # The places are in descending order. The last assignment to a row counts, and this is its first
    # SESSION event.
    serial[rows] = events.serial[instances.order[places]]
    session[rows] = events.session[instances.order[places]]
    return serial, session


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
