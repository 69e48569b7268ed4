"""Transactions from batches of events: finished ones come out, the others wait.

The same assembler runs at two places. Over the windows of one split it finishes the transactions
that begin and end there; what it cannot finish leaves as `remainder`, a batch like those that came
in. On the driver it is fed these remainders, split after split, and finishes the rest. So any
split of the redo gives the same transactions.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from olr_pg.redo.batch import ChangeBatch, EventColumns, EventKind, empty_batch
from olr_pg.redo.columns import head
from olr_pg.scalars import MAX_SCN
from olr_pg.transactions.defaults import fill_defaults
from olr_pg.transactions.delimit import Instances, delimit, slot_keys
from olr_pg.transactions.dictionary_changes import (
    delivered_changes,
    dictionary_transactions,
)
from olr_pg.transactions.faults import row_faults, without_faulty
from olr_pg.transactions.finished import (
    Account,
    Finished,
    commit_order,
    count_rows,
    owners_of,
    transactions_of,
)
from olr_pg.transactions.large import LargeTransaction, can_be_parted
from olr_pg.transactions.lob_source import LobSource, LobWanted
from olr_pg.transactions.lobs import (
    UnownedPages,
    no_losses,
    pieces_of_events,
    referred_lobs,
    resolve_lobs,
)
from olr_pg.transactions.row_job import FAULTS, UNDONE, UNMATCHED, WITHOUT_SET, assembled
from olr_pg.transactions.rows import assemble
from olr_pg.transactions.select import (
    Selection,
    concatenate,
    count_changes,
    count_changes_of,
)
from olr_pg.transactions.split_undo import join_split_undo
from olr_pg.transactions.storage import IN_MEMORY, Storage, Waiting, spill_largest
from olr_pg.transactions.unconcerned import without_unconcerned

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from olr_pg.dictionary.model import Table
    from olr_pg.dictionary.plan import RowPlan


@dataclass(slots=True)
class OpenTransaction:
    """A transaction whose end was not read yet.

    Attributes:
        begin_scn: None where its begin was not read.
        chunks: its events so far.
    """

    con_id: int
    xid: int
    begin_scn: int | None
    chunks: Waiting = field(default_factory=Waiting)

    @property
    def changes(self) -> int:
        """How many changes it has so far, undone ones too."""
        return self.chunks.changes


class Assembler:
    """Collects events by transaction; see the module's docstring.

    Args:
        plan: the subscription.
        tables: the tables of the plan, for errors.
        is_split: whether earlier redo may hold the begin of what is fed: ended transactions
            without a begin then go to the remainder instead of being dropped.
        storage: where bytes wait.
        lob_source: where LOB values are read that the redo does not hold whole.

    Attributes:
        account: what became of what was fed.
        table_rows: shape (tables, 3); row changes delivered: inserts, deletes, updates.
        large: committed transactions that the last `feed` finished and that are to be read in
            parts, then counted by `settle`.
        unbegun_rollbacks: slot and XID of transactions whose ROLLBACK came before their BEGIN,
            with its SCN. A surviving instance rolls back, in its own redo thread, what was open in
            one that died; `forget_rollbacks` says that no BEGIN comes any more.
    """

    def __init__(
        self,
        plan: RowPlan,
        tables: Sequence[Table],
        *,
        is_split: bool,
        storage: Storage = IN_MEMORY,
        lob_source: LobSource | None = None,
    ) -> None:
        self._storage = storage
        self._lob_source = lob_source
        self._plan = plan
        self._tables = tables
        self._is_split = is_split
        self._open: dict[int, OpenTransaction] = {}
        self._ended_unbegun: list[ChangeBatch] = []
        self._unowned = UnownedPages()
        self.account = Account()
        self.losses = no_losses(plan)
        self.table_rows = np.zeros((len(tables), 3), np.int64)
        self.large: list[LargeTransaction] = []
        self.unbegun_rollbacks: dict[tuple[int, int], int] = {}

    @property
    def open_transactions(self) -> list[OpenTransaction]:
        """The transactions that wait for their end."""
        return list(self._open.values())

    def feed(self, batch: ChangeBatch) -> Finished | None:
        """Take the next stretch of redo; what it finished, None if nothing."""
        return next(iter(self._feed(batch, apart=False)), None)

    def feed_window(self, batch: ChangeBatch) -> list[Finished]:
        """Take the next stretch of redo; what it finished, in parts that are in commit order each.

        The transactions that began before it make a part of their own, so that nothing else needs
        to be copied to where they waited.
        """
        # Whose pages without an owner are, depends on all that commits.
        return self._feed(batch, apart=not self._unowned.waiting.batches)

    def settle(self, large: LargeTransaction) -> None:
        """Count a large transaction that was read to its end."""
        self.account.add(large.account)
        self.table_rows += large.table_rows
        self.losses = self.losses.plus(large.losses)
        self._unowned.drop_lobs(large.adopted)

    def _feed(self, batch: ChangeBatch, *, apart: bool) -> list[Finished]:
        self.large = []
        batch, committed, rolled_back = without_unconcerned(
            self._unowned.take_from(batch), self._open
        )
        self.account.empty += committed
        self.account.rolled_back += rolled_back
        if self._is_split:
            self.account.events += count_changes(batch.events)
        finished = self._finished(batch, apart=apart) if batch.events.kind.size else []
        if not self._is_split:
            self._apply_rollbacks()
            self._unowned.drop_before(self._lowest_begin())
            held = [transaction.chunks for transaction in self._open.values()]
            spill_largest([*held, self._unowned.waiting], self._storage)
        return finished

    def _apply_rollbacks(self) -> None:
        """End the open transactions whose ROLLBACK was read before; the rest of them is dropped."""
        for key, xid in list(self.unbegun_rollbacks):
            transaction = self._open.get(key)
            if transaction is None or transaction.xid != xid:
                continue
            del self._open[key], self.unbegun_rollbacks[key, xid]
            self.account.unbegun -= 1
            self.account.rolled_back += 1
            self.account.events_rolled_back += transaction.changes

    def forget_rollbacks(self, scn: int) -> None:
        """All redo up to `scn` was fed: what was rolled back by then has begun, or never will."""
        pending = self.unbegun_rollbacks.items()
        self.unbegun_rollbacks = {one: at for one, at in pending if at > scn}

    def _lowest_begin(self) -> int:
        begins = [t.begin_scn for t in self._open.values() if t.begin_scn is not None]
        return min(begins, default=MAX_SCN)

    def _finished(self, batch: ChangeBatch, *, apart: bool) -> list[Finished]:
        instances = delimit(batch.events)
        closed = (instances.begin >= 0) & (instances.end >= 0)
        on_open_slot = np.isin(instances.key, np.array(list(self._open), np.uint64))
        # A whole transaction right behind one without its end tells that that end was missed.
        after_lost = np.zeros(closed.size, np.bool_)
        after_lost[1:] = ~closed[:-1] & (instances.key[1:] == instances.key[:-1])
        late: list[ChangeBatch] = []
        selection = Selection(batch)
        chunks = self._chunks(selection, instances, np.flatnonzero(~closed).tolist())
        for row in np.flatnonzero(~closed | on_open_slot | after_lost).tolist():
            chunk = None if closed[row] else next(chunks)
            transaction = self._keep(batch, chunk, instances, row)
            if transaction is not None and not self._set_apart(transaction):
                late.extend(transaction.chunks.batches)
        own = np.flatnonzero(closed)
        parts = [self._finish(batch, instances, own)] if apart or not late else []
        if late:
            if not apart and own.size:
                rows = [instances.order[instances.first[r] : instances.first[r + 1]]
                        for r in own.tolist()]  # fmt: skip
                late.append(selection.events(np.concatenate(rows)))
            batch = concatenate(late, self._storage.allocate)
            instances = delimit(batch.events)
            ended = (instances.begin >= 0) & (instances.end >= 0)
            parts.append(self._finish(batch, instances, np.flatnonzero(ended)))
        return [part for part in parts if part is not None]

    def _set_apart(self, transaction: OpenTransaction) -> bool:
        """Whether an ended transaction needs not be in memory as a whole; `large` has it then."""
        if not transaction.chunks.is_spilled:
            return False
        chunks = transaction.chunks.batches
        if chunks[-1].events.kind[-1] != EventKind.COMMIT:
            self.account.rolled_back += 1
            self.account.events_rolled_back += transaction.changes
            return True
        if not can_be_parted(chunks, self._plan):
            return False
        self.large.append(
            LargeTransaction(
                chunks, self._plan, self._tables, self._storage, self._lob_source,
                self._unowned.waiting.batches,
            )
        )  # fmt: skip
        return True

    def saved(self) -> Assembler:
        """A copy that goes on from here by itself."""
        other = Assembler(
            self._plan,
            self._tables,
            is_split=self._is_split,
            storage=self._storage,
            lob_source=self._lob_source,
        )
        other._open = {
            key: replace(transaction, chunks=transaction.chunks.copy())
            for key, transaction in self._open.items()
        }
        other._ended_unbegun = list(self._ended_unbegun)
        other._unowned.waiting = self._unowned.waiting.copy()
        other.unbegun_rollbacks = dict(self.unbegun_rollbacks)
        return other

    @property
    def unowned(self) -> Waiting:
        """LOB pages that name no transaction and were not referred to yet."""
        return self._unowned.waiting

    def restore(self, transactions: Iterable[OpenTransaction], unowned: Waiting) -> None:
        """Go on with what another assembler had, before anything is fed."""
        for transaction in transactions:
            events = transaction.chunks.batches[0].events
            key = int(slot_keys(events)[0])
            self._open[key] = replace(transaction, chunks=transaction.chunks.copy())
        self._unowned.waiting = unowned.copy()

    def use(self, plan: RowPlan, tables: Sequence[Table]) -> None:
        """Go on with another row plan, which has the tables of this one and more behind them."""
        self._plan, self._tables = plan, tables
        self.losses = no_losses(plan)
        self.table_rows = np.zeros((len(tables), 3), np.int64)

    def remainder(self) -> ChangeBatch:
        """Everything that waits, as one batch; the assembler is empty afterwards."""
        chunks = [*self._unowned.waiting.batches, *self._ended_unbegun]
        for transaction in self._open.values():
            chunks.extend(transaction.chunks.batches)
        self._ended_unbegun, self._open, self._unowned = [], {}, UnownedPages()
        return concatenate(chunks)

    def _chunks(
        self, selection: Selection, instances: Instances, rows: Sequence[int]
    ) -> Iterator[ChangeBatch]:
        """The events of some instances, each for itself."""
        order, first = instances.order, instances.first
        if self._is_split:
            return iter(selection.groups(order, first, rows))
        # What goes to disk is to free its memory, whatever stays.
        return (selection.events(order[first[row] : first[row + 1]]) for row in rows)

    def _keep(
        self, batch: ChangeBatch, chunk: ChangeBatch | None, instances: Instances, row: int
    ) -> OpenTransaction | None:
        """Store an instance; the transaction if this was its end.

        Args:
            chunk: its events; None where it is whole.
        """
        key = int(instances.key[row])
        begin, end = int(instances.begin[row]), int(instances.end[row])
        if begin >= 0:
            # Whoever still holds the slot ended in redo that was not read.
            lost = self._open.pop(key, None)
            self.account.lost += lost is not None and lost.begin_scn is not None
            self.account.events_dropped += 0 if lost is None else lost.changes
        if chunk is None:
            return None
        xid = int(chunk.events.xid.max())
        con_id = int(chunk.events.con_id[0])
        if begin >= 0:
            opened = OpenTransaction(con_id, xid, int(batch.events.scn[begin]))
            opened.chunks.append(chunk)
            self._open[key] = opened
            return None
        waiting = self._open.get(key)
        if waiting is not None and _is_recovered_elsewhere(waiting, chunk, xid):
            waiting = None
        else:
            self._open.pop(key, None)
        if waiting is not None and not _same_transaction(waiting.xid, xid):
            self.account.lost += waiting.begin_scn is not None
            self.account.events_dropped += waiting.changes
            waiting = None
        if waiting is None and not self._is_split:
            self.account.unbegun += end >= 0
            self.account.events_dropped += count_changes(chunk.events)
            if end >= 0 and batch.events.kind[end] == EventKind.ROLLBACK:
                self.unbegun_rollbacks[key, xid] = int(batch.events.scn[end])
            return None
        waiting = waiting or OpenTransaction(con_id, xid, None)
        waiting.chunks.append(chunk)
        if end < 0:
            self._open[key] = waiting
            return None
        if waiting.begin_scn is not None:
            return waiting
        self._ended_unbegun.extend(waiting.chunks.batches)
        return None

    def _finish(
        self, batch: ChangeBatch, instances: Instances, closed: npt.NDArray[np.int64]
    ) -> Finished | None:
        events = batch.events
        ends = instances.end[closed]
        is_commit = events.kind[ends] == EventKind.COMMIT
        self.account.rolled_back += int(np.count_nonzero(~is_commit))
        if not is_commit.all():
            undone = _changes(events, instances, closed[~is_commit])
            self.account.events_rolled_back += undone
        closed, ends = closed[is_commit], ends[is_commit]
        if closed.size == 0:
            return None
        by_commit = commit_order(
            events.scn[ends],
            events.thread[ends],
            events.sequence[ends],
            events.block[ends],
            events.offset[ends],
        )
        closed = closed[by_commit]
        batch, instances = join_split_undo(
            batch, instances, closed, self._plan.cluster_columns, self._storage.allocate
        )
        return self._deliver(batch, instances, closed)

    def _deliver(
        self, batch: ChangeBatch, instances: Instances, closed: npt.NDArray[np.int64]
    ) -> Finished | None:
        """The committed transactions `closed`, which are in commit order."""
        events = batch.events
        first, end = instances.first[closed], instances.first[closed + 1]
        job, dml_first = assemble(batch, self._plan, instances.order, first, end)
        left_out = head(job.faults, int(job.counts[FAULTS]))
        dml, dml_first, emptied = fill_defaults(
            assembled(job), dml_first, self._plan, self._storage.allocate
        )
        if self._plan.lob_tables.size:
            owners = without_faulty(owners_of(events, instances, closed), left_out, events)
            allocate = self._storage.allocate
            unowned = empty_batch()
            if self._unowned.waiting.batches:
                referred = referred_lobs(dml, dml_first, owners, self._plan)
                unowned = self._unowned.of_lobs(referred, allocate)
            wanted = None
            if self._lob_source is not None:
                wanted = LobWanted(self._lob_source, self._tables, owners.commit_scn)
            pieces_of = partial(pieces_of_events, batch, unowned, owners, allocate)
            lobs = resolve_lobs(pieces_of, dml, dml_first, self._plan, allocate, wanted)
            if self._is_split and lobs.incomplete.any():
                # A page that names no transaction may stand before the split.
                self._defer(batch, instances, closed[lobs.incomplete])
                return self._deliver(batch, instances, closed[~lobs.incomplete])
            if unowned.events.kind.size:
                self._unowned.drop_lobs(referred, self._last_left_end())
            self.losses = self.losses.plus(lobs.losses)
            self.account.add_lobs(lobs)
            dml, dml_first = lobs.dml, lobs.dml_first
        dictionary = dictionary_transactions(
            batch, instances, closed, dml, dml_first, self._plan, self._tables
        )
        if self._plan.delivered.size:
            dml, dml_first, others = delivered_changes(
                dml, dml_first, self._plan, self._tables, dictionary
            )
            self.account.dictionary_rows += others
        filled = np.flatnonzero(np.diff(dml_first))
        self.account.committed += filled.size
        self.account.empty += closed.size - filled.size
        self.account.rows += dml.kind.size
        count_rows(dml.table, dml.kind, self.table_rows)
        faults = row_faults(left_out, events, instances, closed, self._tables)
        self.account.undecoded += len(faults)
        self.account.undone += int(job.counts[UNDONE])
        self.account.events_undone += int(job.counts[UNDONE])
        changes = _changes(events, instances, closed)
        self.account.events_committed += changes - int(job.counts[UNDONE])
        self.account.unmatched += int(job.counts[UNMATCHED])
        self.account.without_set += int(job.counts[WITHOUT_SET]) + emptied
        if filled.size == 0 and not dictionary and not faults:
            return None
        chosen = closed[filled]
        transactions = transactions_of(
            events, instances, chosen, np.append(dml_first[filled], dml_first[-1])
        )
        return Finished(transactions, dml, tuple(dictionary.values()), faults)

    def _last_left_end(self) -> int:
        """The newest SCN of transactions that ended here and are left to the driver, 0 for none."""
        return max((int(chunk.events.scn.max()) for chunk in self._ended_unbegun), default=0)

    def _defer(
        self, batch: ChangeBatch, instances: Instances, closed: npt.NDArray[np.int64]
    ) -> None:
        """Leave whole transactions to the driver's assembler."""
        self._ended_unbegun += self._chunks(Selection(batch), instances, np.sort(closed).tolist())


def _changes(events: EventColumns, instances: Instances, rows: npt.NDArray[np.int64]) -> int:
    """As `count_changes_of`."""
    return int(count_changes_of(events.kind, instances.order, instances.first, rows))


def _is_recovered_elsewhere(waiting: OpenTransaction, chunk: ChangeBatch, xid: int) -> bool:
    """Whether events without a BEGIN are of another transaction than the one open on their slot.

    They are of one that was open in an instance that died, if another redo thread has them: then a
    surviving instance rolled it back. Threads are read in any order, so what is open may have come
    before it or behind it. Only its end tells its XID; what it undid before needs not be known.
    """
    own = waiting.chunks.batches[0].events.thread[0]
    return bool(chunk.events.thread[0] != own and waiting.xid != xid)


def _same_transaction(one: int, other: int) -> bool:
    """Whether two XIDs on one slot can be the same transaction: undo markers have no sequence."""
    a, b = one & 0xFFFFFFFF, other & 0xFFFFFFFF
    return a == 0 or b == 0 or a == b
