"""Assembles transactions from batches of events: finished transactions are returned, the others
wait.

The same assembler runs in two places. For the windows of one split it finishes the transactions
that begin and end there, and returns the rest as `remainder`, a batch of the same form as its
input. The driver's assembler is fed these remainders, split after split, and finishes the rest. So
any division of the redo into splits gives the same transactions.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from olr_pg.redo.batch import ChangeBatch, EventColumns, EventKind
from olr_pg.redo.column_tables import head, take
from olr_pg.redo.unlogged_ranges import range_texts
from olr_pg.scalars import MAX_SCN
from olr_pg.transactions.added_column_defaults import fill_defaults
from olr_pg.transactions.delimit import Instances, delimit, slot_keys
from olr_pg.transactions.dictionary_changes import delivered_changes, dictionary_transactions
from olr_pg.transactions.empty_transactions import without_unconcerned
from olr_pg.transactions.finished import (
    Account,
    Finished,
    commit_order,
    count_rows,
    joined_faults,
    owners_of,
    transactions_of,
)
from olr_pg.transactions.large_finishing import LargeTransaction, can_be_parted
from olr_pg.transactions.lobs.assembly import claims_of, no_losses, pieces_of_events, resolve_lobs
from olr_pg.transactions.lobs.page_claims import NO_CLAIMS, UnownedPages, joined_claims
from olr_pg.transactions.lobs.source_reads import LobSource, LobWanted
from olr_pg.transactions.lobs.strangers import Strangers
from olr_pg.transactions.open_transaction import (
    OpenTransaction,
    is_recovered_elsewhere,
    may_be_one_on_slot,
)
from olr_pg.transactions.row_faults import lob_faults, row_faults, without_faulty
from olr_pg.transactions.row_job import FAULTS, UNDONE, UNMATCHED, WITHOUT_SET, assembled
from olr_pg.transactions.rows import assemble
from olr_pg.transactions.select import EventCutter, concatenate, count_changes, count_changes_of
from olr_pg.transactions.shared_undo import (
    names_its_transaction,
    strays,
    strays_of_large,
    with_known_undo,
)
from olr_pg.transactions.split_undo import join_split_undo
from olr_pg.transactions.unseen_ends import (
    UnseenEnds,
    left_changes,
    left_of_large,
    left_without_end,
    misplaced_markers,
    successors,
)
from olr_pg.transactions.waiting_storage import IN_MEMORY, Storage, Waiting, spill_largest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from olr_pg.dictionary.decoding_plan import RowPlan
    from olr_pg.dictionary.model import Table
    from olr_pg.transactions.finished_columns import TransactionColumns
    from olr_pg.transactions.lobs.lost_values import LostOf


class Assembler:
    """Collects events by transaction and finishes transactions; see the module.

    Args:
        tables: the tables of the plan, for errors.
        is_split: whether earlier redo can contain the begins of the transactions: ended
            transactions without a begin are then put into the remainder instead of being dropped.
        storage: stores bytes of waiting transactions.
        lob_source: reads LOB values that the redo contains only partly.

    Attributes:
        account: counts of what happened to the input.
        table_rows: shape (tables, 3); row changes delivered: inserts, deletes, updates.
        large: committed transactions that the last `feed` finished and that must be read in parts,
            and then counted by `settle`.
        unseen_ends: transactions whose slot another one uses; `tell_unseen_ends` ends them.
        unbegun_rollbacks: slot and XID of transactions whose ROLLBACK came before their BEGIN, with
            its SCN. When an instance dies, a surviving one rolls back its open transactions in its
            own redo thread; after `forget_rollbacks` no BEGIN is expected any more.
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
        self._strangers = Strangers(is_split=is_split)
        self.account = Account()
        self.losses = no_losses(plan)
        self.table_rows = np.zeros((len(tables), 3), np.int64)
        self.large: list[LargeTransaction] = []
        self.unbegun_rollbacks: dict[tuple[int, int], int] = {}
        self.unseen_ends = UnseenEnds()
        self._told: list[ChangeBatch] = []

    @property
    def open_transactions(self) -> list[OpenTransaction]:
        """The transactions whose end was not read yet."""
        return [*self.unseen_ends.transactions, *self._open.values()]

    def feed(self, batch: ChangeBatch) -> Finished | None:
        """Process the next section of redo; return what it finished, or None."""
        return joined_faults(self._feed(batch, apart=False))

    def feed_window(self, batch: ChangeBatch) -> list[Finished]:
        """Process the next section of redo; return what it finished, each part in commit order.

        Transactions that began before it are a separate part, so that no other data is copied
        together with theirs.
        """
        return self._feed(batch, apart=True)

    def settle(self, large: LargeTransaction) -> None:
        """Count a large transaction that was read to its end."""
        self.account.add(large.account)
        self.table_rows += large.table_rows
        self.losses = self.losses.plus(large.losses)
        self._unowned.drop_claimed(large.claims)

    def _feed(self, batch: ChangeBatch, *, apart: bool) -> list[Finished]:
        self.large = []
        batch = with_known_undo(self._unowned.take_from(batch), self._open)
        batch, committed, rolled_back = without_unconcerned(batch, self._open)
        self.account.empty += committed
        self.account.rolled_back += rolled_back
        if self._is_split:
            self.account.events += count_changes(batch.events)
        # Whose pages without an owner are, those of this batch too, depends on all that commits.
        apart = apart and not self._unowned.waiting.batches
        finished = self._finished(batch, apart=apart) if batch.events.kind.size else []
        if not self._is_split:
            self._apply_rollbacks()
            self._share_pages()
            self._unowned.drop_before(self._lowest_begin())
            held = [transaction.chunks for transaction in self.open_transactions]
            spill_largest([*held, self._unowned.waiting], self._storage)
        return finished

    def _apply_rollbacks(self) -> None:
        """End the open transactions whose ROLLBACK was read before their BEGIN; their further
        events are dropped.
        """
        for key, xid in list(self.unbegun_rollbacks):
            transaction = self.unseen_ends.pop(key, xid)
            if transaction is None:
                transaction = self._open.get(key)
                if transaction is None or transaction.xid != xid:
                    continue
                del self._open[key]
            del self.unbegun_rollbacks[key, xid]
            self.account.unbegun -= 1
            self.account.rolled_back += 1
            self.account.events_rolled_back += transaction.changes

    def forget_rollbacks(self, scn: int) -> None:
        """Forget rollbacks up to `scn`. All redo up to there was read, so the begin of their
        transactions cannot come any more.
        """
        pending = self.unbegun_rollbacks.items()
        self.unbegun_rollbacks = {one: at for one, at in pending if at > scn}

    def note_whole(self, whole: TransactionColumns) -> None:
        """Remove open transactions from the slots that other transactions, finished elsewhere, have
        used.
        """
        for key, successor in successors(self._open, whole):
            self._supersede(key, successor, 0)

    def tell_unseen_ends(self, scn: int) -> Finished | None:
        """End the transactions that another one superseded before `scn`, if all redo up to it was
        fed.

        Returns:
            Faults for their changes; None if there are none.
        """
        for one in self.unseen_ends.passed(scn):
            told = left_without_end(one, self._storage)
            self._told += told
            self.account.lost += 1
            self.account.events_dropped += one.transaction.changes - _told_changes(told)
        return self._tell() if self._told else None

    def _supersede(self, key: int, events: EventColumns, first: int) -> None:
        """Remove a transaction, if there is one, from a slot that the transaction of event `first`
        uses.
        """
        transaction = self._open.pop(key, None)
        if transaction is None:
            return
        if self._is_split:
            self._leave_to_driver(transaction.chunks.batches)
        elif transaction.begin_scn is None:
            self.account.events_dropped += transaction.changes
        else:
            self.unseen_ends.add(key, transaction, take(events, slice(first, first + 1)))

    def _tell(self) -> Finished | None:
        """Finish transactions that did not commit but left changes, as faults."""
        batch, self._told = concatenate(self._told), []
        instances = delimit(batch.events)
        self.account.empty -= instances.begin.size
        return self._finish(batch, instances, np.arange(instances.begin.size))

    def _roll_back(
        self, events: EventColumns, instances: Instances, rows: npt.NDArray[np.int64]
    ) -> None:
        """Count transactions that were rolled back, and record those that left changes."""
        # Of what another instance rolled back, not all that it took back is known here.
        own = events.thread[instances.begin[rows]] == events.thread[instances.end[rows]]
        told = left_changes(events, instances, rows[own])
        self._told += told
        self.account.rolled_back += rows.size
        self.account.events_rolled_back += _changes(events, instances, rows) - _told_changes(told)

    def _roll_back_large(self, transaction: OpenTransaction) -> None:
        """Do the same for one that waits outside of memory."""
        chunks = transaction.chunks.batches
        end = take(chunks[-1].events, slice(-1, None))
        told: list[ChangeBatch] = []
        if end.thread[0] == chunks[0].events.thread[0]:
            told = left_of_large(chunks, end, self._storage)
        self._told += told
        self.account.rolled_back += 1
        self.account.events_rolled_back += transaction.changes - _told_changes(told)

    def _note_strays(
        self, events: EventColumns, instances: Instances, rows: npt.NDArray[np.int64]
    ) -> None:
        """Record the committed transactions with changes that name another container."""
        self._note_alone(strays(events, instances, rows, self._is_delivered()))

    def _note_alone(self, told: Sequence[ChangeBatch]) -> None:
        """Record transactions of changes without a known transaction."""
        self._told += told
        self.account.events += _told_changes(told)

    def _is_delivered(self) -> npt.NDArray[np.bool_]:
        """Return for each table whether its rows are delivered to clients."""
        flags = self._plan.delivered
        return flags != 0 if flags.size else np.ones(len(self._tables), np.bool_)

    def _lowest_begin(self) -> int:
        begins = [t.begin_scn for t in self._open.values() if t.begin_scn is not None]
        return min(begins, default=MAX_SCN)

    def _finished(self, batch: ChangeBatch, *, apart: bool) -> list[Finished]:
        self._note_alone(misplaced_markers(batch.events, self._open))
        instances = delimit(batch.events)
        closed = (instances.begin >= 0) & (instances.end >= 0)
        on_open_slot = np.isin(instances.key, np.array(list(self._open), np.uint64))
        # A whole transaction right behind one without its end tells that that end was missed.
        after_lost = np.zeros(closed.size, np.bool_)
        after_lost[1:] = ~closed[:-1] & (instances.key[1:] == instances.key[:-1])
        late: list[ChangeBatch] = []
        selection = EventCutter(batch)
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
        if self._told:
            parts.append(self._tell())
        return [part for part in parts if part is not None]

    def _set_apart(self, transaction: OpenTransaction) -> bool:
        """Return whether an ended transaction can stay on disk; it is then added to `large`."""
        if not transaction.chunks.is_spilled:
            return False
        chunks = transaction.chunks.batches
        if chunks[-1].events.kind[-1] != EventKind.COMMIT:
            self._roll_back_large(transaction)
            return True
        if not can_be_parted(chunks, self._plan):
            return False
        self._note_alone(strays_of_large(chunks, self._is_delivered()))
        large = LargeTransaction(chunks, self._plan, self._tables, self._storage, self._lob_source)
        self.large.append(large)
        self._note_stranger(chunks, large)
        return True

    def _note_stranger(
        self, chunks: Sequence[ChangeBatch], large: LargeTransaction | None = None
    ) -> None:
        """Record that waiting LOB pages may belong to a transaction that is not finished here."""
        if self._unowned.waiting.batches:
            self._strangers.note(chunks, self._plan.lob_tables, large)

    def _share_pages(self) -> None:
        """Give large transactions the waiting pages, and drop pages that no transaction can
        claim.
        """
        for large in self.large:
            large.unowned = self._unowned.waiting.batches
            large.others = self._strangers.claims(large)
        self._strangers.drop_from(self._unowned)

    def saved(self) -> Assembler:
        """Return an independent copy that continues from here."""
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
        other.unseen_ends = self.unseen_ends.copy()
        return other

    @property
    def unowned(self) -> Waiting:
        """LOB pages without a transaction that were not claimed yet."""
        return self._unowned.waiting

    def restore(self, transactions: Iterable[OpenTransaction], unowned: Waiting) -> None:
        """Continue with the transactions of another assembler; call it before the first `feed`."""
        for transaction in transactions:
            events = transaction.chunks.batches[0].events
            key = int(slot_keys(events)[0])
            self._open[key] = replace(transaction, chunks=transaction.chunks.copy())
        self._unowned.waiting = unowned.copy()

    def use(self, plan: RowPlan, tables: Sequence[Table]) -> None:
        """Continue with another row plan, which has the tables of this one and more after them."""
        self._plan, self._tables = plan, tables
        self.losses = no_losses(plan)
        self.table_rows = np.zeros((len(tables), 3), np.int64)

    def remainder(self) -> ChangeBatch:
        """Return everything that waits as one batch, and empty the assembler."""
        opened = [batch for one in self._open.values() for batch in one.chunks.batches]
        # What names its transaction without undo came before all of it that was seen here, or it
        # would have been put to it.
        alone = [batch for batch in opened if names_its_transaction(batch.events)]
        others = [batch for batch in opened if not names_its_transaction(batch.events)]
        chunks = [*alone, *self._unowned.waiting.batches, *self._ended_unbegun, *others]
        self._ended_unbegun, self._open, self._unowned = [], {}, UnownedPages()
        self._strangers = Strangers(is_split=self._is_split)
        return concatenate(chunks)

    def _chunks(
        self, selection: EventCutter, instances: Instances, rows: Sequence[int]
    ) -> Iterator[ChangeBatch]:
        """Yield the events of some instances, each separately."""
        order, first = instances.order, instances.first
        if self._is_split:
            return iter(selection.groups(order, first, rows))
        # What goes to disk is to free its memory, whatever stays.
        return (selection.events(order[first[row] : first[row + 1]]) for row in rows)

    def _keep(
        self, batch: ChangeBatch, chunk: ChangeBatch | None, instances: Instances, row: int
    ) -> OpenTransaction | None:
        """Store an instance; return its transaction if this was its end.

        Args:
            chunk: its events; None if it is complete.
        """
        key = int(instances.key[row])
        begin, end = int(instances.begin[row]), int(instances.end[row])
        if begin >= 0:
            self._supersede(key, batch.events, begin)
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
        if waiting is not None and is_recovered_elsewhere(waiting, chunk, xid):
            waiting = None
        elif waiting is not None and not may_be_one_on_slot(waiting.xid, xid):
            self._supersede(key, chunk.events, 0)
            waiting = None
        else:
            self._open.pop(key, None)
        if waiting is None and not self._is_split:
            self.account.unbegun += end >= 0
            self.account.events_dropped += count_changes(chunk.events)
            if end >= 0 and batch.events.kind[end] == EventKind.ROLLBACK:
                self.unbegun_rollbacks[key, xid] = int(batch.events.scn[end])
            else:
                self._note_stranger([chunk])
            return None
        waiting = waiting or OpenTransaction(con_id, xid, None)
        waiting.chunks.append(chunk)
        if end < 0:
            self._open[key] = waiting
            return None
        if waiting.begin_scn is not None:
            return waiting
        self._leave_to_driver(waiting.chunks.batches)
        return None

    def _finish(
        self, batch: ChangeBatch, instances: Instances, closed: npt.NDArray[np.int64]
    ) -> Finished | None:
        events = batch.events
        ends = instances.end[closed]
        is_commit = events.kind[ends] == EventKind.COMMIT
        if not is_commit.all():
            self._roll_back(events, instances, closed[~is_commit])
        closed, ends = closed[is_commit], ends[is_commit]
        if closed.size == 0:
            return None
        self._note_strays(events, instances, closed)
        by_commit = commit_order(
            events.scn[ends], events.session[ends], events.thread[ends], events.sequence[ends],
            events.block[ends], events.offset[ends],
        )  # fmt: skip
        closed = closed[by_commit]
        batch, instances = join_split_undo(
            batch, instances, closed, self._plan.cluster_columns, self._storage.allocate
        )
        return self._deliver(batch, instances, closed)

    def _deliver(
        self, batch: ChangeBatch, instances: Instances, closed: npt.NDArray[np.int64]
    ) -> Finished | None:
        """Finish the committed transactions `closed`, which are in commit order."""
        events = batch.events
        first, end = instances.first[closed], instances.first[closed + 1]
        job, dml_first = assemble(batch, self._plan, instances.order, first, end)
        left_out = head(job.faults, int(job.counts[FAULTS]))
        dml, dml_first, emptied = fill_defaults(
            assembled(job), dml_first, self._plan, self._storage.allocate
        )
        lost: tuple[LostOf, ...] = ()
        if self._plan.lob_tables.size:
            owners = without_faulty(owners_of(events, instances, closed), left_out, events)
            allocate = self._storage.allocate
            claims = NO_CLAIMS
            if self._unowned.waiting.batches:
                own = claims_of(dml, dml_first, owners, self._plan)
                claims = joined_claims([own, self._strangers.claims()])
            claimed = self._unowned.claimed(claims, allocate)
            wanted = None
            if self._lob_source is not None:
                wanted = LobWanted(self._lob_source, self._tables, owners.commit.scn)
            pieces_of = partial(pieces_of_events, batch, claimed, owners, allocate)
            lobs = resolve_lobs(
                pieces_of, dml, dml_first, self._plan, allocate, wanted, self._tables
            )
            if self._is_split and lobs.incomplete.any():
                # A page that names no transaction may stand before the split.
                self._defer(batch, instances, closed[lobs.incomplete])
                return self._deliver(batch, instances, closed[~lobs.incomplete])
            if claimed.owner.size:
                self._unowned.drop_claimed(claims)
            self.losses = self.losses.plus(lobs.losses)
            self.account.add_lobs(lobs)
            dml, dml_first, lost = lobs.dml, lobs.dml_first, lobs.lost
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
        faults = row_faults(
            left_out, events, instances, closed, self._tables, range_texts(batch, left_out.event)
        )
        self.account.undecoded += len(faults)
        faults += lob_faults(lost, events, instances, closed, self._tables)
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

    def _defer(
        self, batch: ChangeBatch, instances: Instances, closed: npt.NDArray[np.int64]
    ) -> None:
        """Leave complete transactions to the driver's assembler."""
        for chunk in self._chunks(EventCutter(batch), instances, np.sort(closed).tolist()):
            self._leave_to_driver([chunk])

    def _leave_to_driver(self, chunks: Sequence[ChangeBatch]) -> None:
        """Add an ended transaction to the remainder."""
        self._ended_unbegun.extend(chunks)
        if chunks[-1].events.kind[-1] == EventKind.COMMIT:
            self._note_stranger(chunks)


def _told_changes(told: Sequence[ChangeBatch]) -> int:
    return sum(count_changes(batch.events) for batch in told)


def _changes(events: EventColumns, instances: Instances, rows: npt.NDArray[np.int64]) -> int:
    """Return how many changes the instances have, see `count_changes_of`."""
    return int(count_changes_of(events, instances.order, instances.first, rows))
