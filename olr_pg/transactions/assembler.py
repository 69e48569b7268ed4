"""Assembles transactions from batches of events: returns finished transactions, and keeps the
events of the others until their end is read.

Assemblers run in two places. The assembler of a split processes the windows of this split. This
assembler finishes the transactions that begin and end in the split, and returns all other events as
`remainder`, a batch of the same form as its input. The assembler of the driver processes these
remainders, one split after the other, and finishes the other transactions. So any division of the
redo into splits gives the same transactions.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
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
from olr_pg.transactions.dictionary_changes import (
    delivered_changes,
    dictionary_transactions,
    sys_row_changes,
)
from olr_pg.transactions.finished import (
    Account,
    Closed,
    Finished,
    commit_order,
    count_rows,
    joined_faults,
    owners_of,
    transactions_of,
    without_unconcerned,
)
from olr_pg.transactions.large_finishing import LargeTransaction, Strangers, can_be_parted
from olr_pg.transactions.lobs.assembly import claims_of, no_losses, pieces_of_events, resolve_lobs
from olr_pg.transactions.lobs.lost_values import Counted, LostOf
from olr_pg.transactions.lobs.page_claims import NO_CLAIMS, UnownedPages, joined_claims
from olr_pg.transactions.lobs.source_reads import LobSource, LobWanted
from olr_pg.transactions.row_faults import lob_faults, row_faults, without_faulty
from olr_pg.transactions.row_job import FAULTS, UNDONE, UNMATCHED, WITHOUT_SET
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
from olr_pg.transactions.waiting_storage import (
    IN_MEMORY,
    OpenTransaction,
    Storage,
    Waiting,
    is_recovered_elsewhere,
    may_be_one_on_slot,
    spill_largest,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from olr_pg.dictionary.decoding_plan import RowPlan
    from olr_pg.dictionary.model import Table
    from olr_pg.transactions.finished_columns import TransactionColumns


@dataclass
class UnreadBegins:
    """Transactions with changes that committed in the redo, but began before it.

    Attributes:
        committed: the number of these transactions.
        last_scn: the highest commit SCN of these transactions; 0 if there are none.
        changed: the slots of transactions with changes whose begin was not read, and whose end was
            not read yet.
    """

    committed: int = 0
    last_scn: int = 0
    changed: set[int] = field(default_factory=set)

    def add(self, slot: int, events: EventColumns, end: int) -> None:
        """Add a section of a transaction without begin.

        Args:
            slot: the transaction's slot, from `delimit.slot_keys`.
            events: the events of the section.
            end: 1 if the section ends with a COMMIT, -1 if with a ROLLBACK, else 0.
        """
        if count_changes(events):
            self.changed.add(slot)
        if end > 0 and slot in self.changed:
            self.committed += 1
            self.last_scn = max(self.last_scn, int(events.scn.max()))
        if end:
            self.changed.discard(slot)

    def copy(self) -> UnreadBegins:
        """Return a copy."""
        return UnreadBegins(self.committed, self.last_scn, set(self.changed))


class Assembler:
    """Collects events by transaction and finishes transactions; see the module's docstring.

    Args:
        tables: the tables of the plan, for error messages.
        is_split: True for the assembler of a split. A transaction whose end is read can then have
            its begin in an earlier split, so it is put into the remainder. The driver's assembler
            drops a transaction whose begin it has not read.
        storage: stores the events of open transactions if they need too much memory.
        lob_source: reads LOB values from the source if the redo contains only a part of them; None
            if they cannot be read.

    Attributes:
        account: counts of the input by outcome.
        table_rows: shape (tables, 3); numbers of delivered inserts, deletes and updates.
        large: committed transactions that ended in the last `feed` but are too large for memory.
            The caller must read such transactions in parts, and then call `settle`.
        unseen_ends: transactions whose slot is already used by another transaction, although their
            end was not read; `tell_unseen_ends` ends them.
        unbegun_rollbacks: transactions whose ROLLBACK was read before their BEGIN: slot and XID,
            with the SCN of the ROLLBACK. The reason: if an Oracle instance dies, a surviving
            instance rolls back the open transactions in its own redo thread. `forget_rollbacks`
            removes the rollbacks whose BEGIN can no longer follow.
        unbegun_commits: transactions whose COMMIT was read before their BEGIN: slot and XID, with
            the events of the COMMIT. The reason: if an Oracle instance dies after a distributed
            transaction was prepared, a surviving instance commits the transaction in its own redo
            thread. `finish_commits` ends these transactions.
        unread_begins: the dropped transactions that began before the redo.
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
        self.unbegun_commits: dict[tuple[int, int], ChangeBatch] = {}
        self.unseen_ends = UnseenEnds()
        self.unread_begins = UnreadBegins()
        self._told: list[ChangeBatch] = []

    @property
    def open_transactions(self) -> list[OpenTransaction]:
        """The transactions whose end was not read yet."""
        return [*self.unseen_ends.transactions, *self._open.values()]

    def feed(self, batch: ChangeBatch) -> Finished | None:
        """Process the next section of redo; return the transactions that are finished now, or
        None.
        """
        return joined_faults(self._feed(batch, apart=False))

    def feed_window(self, batch: ChangeBatch) -> list[Finished]:
        """Process the next section of redo; return the transactions that are finished now, in
        parts. Each part is in commit order.

        Transactions that began before this section are a separate part, so that only their data is
        copied.
        """
        return self._feed(batch, apart=True)

    def settle(self, large: LargeTransaction) -> None:
        """Add the counts of a large transaction, after it was read completely."""
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
        # If LOB pages without an owner are waiting, all transactions of this batch must be finished
        # together: their commits decide who owns the pages.
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
        """Remove the open transactions whose ROLLBACK was read before their BEGIN. Later events of
        these transactions are dropped.
        """
        for key, xid in list(self.unbegun_rollbacks):
            transaction = self._pop_begun(key, xid)
            if transaction is None:
                continue
            del self.unbegun_rollbacks[key, xid]
            self.account.unbegun -= 1
            self.account.rolled_back += 1
            self.account.events_rolled_back += transaction.changes

    def _pop_begun(self, key: int, xid: int) -> OpenTransaction | None:
        """Remove and return a transaction; return None if its BEGIN was not read yet."""
        transaction = self.unseen_ends.pop(key, xid)
        if transaction is not None:
            return transaction
        found = self._open.get(key)
        return self._open.pop(key) if found is not None and found.xid == xid else None

    def forget_rollbacks(self, scn: int) -> None:
        """Forget rollbacks up to `scn`. All redo up to this SCN was read, so the begin of their
        transactions can no longer follow.
        """
        pending = self.unbegun_rollbacks.items()
        self.unbegun_rollbacks = {one: at for one, at in pending if at > scn}

    def finish_commits(self, scn: int) -> Finished | None:
        """Finish the transactions in `unbegun_commits` that committed before `scn`, and forget
        those whose BEGIN can no longer follow. All redo before `scn` must have been fed.

        Returns:
            The finished transactions, None if there are none.
        """
        passed = [one for one, end in self.unbegun_commits.items() if end.events.scn[-1] < scn]
        found: list[ChangeBatch] = []
        for key, xid in passed:
            end = self.unbegun_commits.pop((key, xid))
            transaction = self._pop_begun(key, xid)
            if transaction is None:
                continue
            self.account.unbegun -= 1
            transaction.chunks.append(end)
            found.extend(transaction.chunks.batches)
        if not found:
            return None
        batch = concatenate(found, self._storage.allocate)
        instances = delimit(batch.events)
        ended = (instances.begin >= 0) & (instances.end >= 0)
        return self._finish(batch, Closed(batch.events, instances, np.flatnonzero(ended)))

    def note_whole(self, whole: TransactionColumns) -> None:
        """Remove open transactions from slots that have been used again. `whole` contains
        transactions that a split finished; they may have used these slots.
        """
        for key, successor in successors(self._open, whole):
            self._supersede(key, successor, 0)

    def tell_unseen_ends(self, scn: int) -> Finished | None:
        """End the transactions whose slot another transaction took before `scn`. All redo up to
        `scn` must have been fed.

        Returns:
            Faults for the changes of these transactions, None if they have none.
        """
        for one in self.unseen_ends.passed(scn):
            told = left_without_end(one, self._storage)
            self._told += told
            self.account.lost += 1
            self.account.events_dropped += one.transaction.changes - _told_changes(told)
        return self._tell() if self._told else None

    def _supersede(self, key: int, events: EventColumns, first: int) -> None:
        """Remove the open transaction from a slot, if there is one, because the transaction of
        event `first` uses the slot now.
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
        """Return faults for the transactions in `_told`: it is unknown whether their changes were
        committed.
        """
        batch, self._told = concatenate(self._told), []
        instances = delimit(batch.events)
        self.account.empty -= instances.begin.size
        return self._finish(batch, Closed(batch.events, instances, np.arange(instances.begin.size)))

    def _roll_back(self, closed: Closed) -> None:
        """Count transactions that were rolled back. If changes of such a transaction were not
        undone, record it for `_tell`.
        """
        # If another Oracle instance rolled a transaction back, not all its undo markers are in this
        # redo thread, so the transaction is not checked.
        events, instances, rows = closed
        own = events.thread[instances.begin[rows]] == events.thread[instances.end[rows]]
        told = left_changes(events, instances, rows[own])
        self._told += told
        self.account.rolled_back += rows.size
        self.account.events_rolled_back += _changes(closed) - _told_changes(told)

    def _roll_back_large(self, transaction: OpenTransaction) -> None:
        """Do the same as `_roll_back` for a transaction that waits outside of memory."""
        chunks = transaction.chunks.batches
        end = take(chunks[-1].events, slice(-1, None))
        told: list[ChangeBatch] = []
        if end.thread[0] == chunks[0].events.thread[0]:
            told = left_of_large(chunks, end, self._storage)
        self._told += told
        self.account.rolled_back += 1
        self.account.events_rolled_back += transaction.changes - _told_changes(told)

    def _note_strays(self, closed: Closed) -> None:
        """Record committed transactions whose changes name several containers."""
        self._note_alone(strays(*closed, self._is_delivered()))

    def _note_alone(self, told: Sequence[ChangeBatch]) -> None:
        """Record artificial transactions: each contains changes whose outcome is unknown."""
        self._told += told
        self.account.events += _told_changes(told)

    def _is_delivered(self) -> npt.NDArray[np.bool_]:
        """Return whether clients receive the rows of each table, shape (tables)."""
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
        # If a complete transaction follows a transaction without an end on the same slot, that end
        # was missed.
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
        at_once = apart or not late
        parts = [self._finish(batch, Closed(batch.events, instances, own))] if at_once else []
        if late:
            if not apart and own.size:
                rows = [instances.order[instances.first[r] : instances.first[r + 1]]
                        for r in own.tolist()]  # fmt: skip
                late.append(selection.events(np.concatenate(rows)))
            batch = concatenate(late, self._storage.allocate)
            instances = delimit(batch.events)
            ended = (instances.begin >= 0) & (instances.end >= 0)
            again = Closed(batch.events, instances, np.flatnonzero(ended))
            parts.append(self._finish(batch, again))
        if self._told:
            parts.append(self._tell())
        return [part for part in parts if part is not None]

    def _set_apart(self, transaction: OpenTransaction) -> bool:
        """Return True if an ended transaction can stay on disk: it was rolled back, or it was added
        to `large`.
        """
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
        """Record a transaction that is not finished here and may own waiting LOB pages."""
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
        """Return an independent copy of the assembler with its waiting events. The counts of the
        copy are 0.
        """
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
        other.unbegun_commits = dict(self.unbegun_commits)
        other.unseen_ends = self.unseen_ends.copy()
        other.unread_begins = self.unread_begins.copy()
        return other

    @property
    def unowned(self) -> Waiting:
        """The LOB pages whose redo names no transaction and whose transaction was not found yet."""
        return self._unowned.waiting

    def restore(self, transactions: Iterable[OpenTransaction], unowned: Waiting) -> None:
        """Continue with the transactions of another assembler; call it before the first `feed`."""
        for transaction in transactions:
            events = transaction.chunks.batches[0].events
            key = int(slot_keys(events)[0])
            self._open[key] = replace(transaction, chunks=transaction.chunks.copy())
        self._unowned.waiting = unowned.copy()

    def use(self, plan: RowPlan, tables: Sequence[Table]) -> None:
        """Continue with another row plan. The new plan must begin with the tables of the current
        plan.
        """
        self._plan, self._tables = plan, tables
        self.losses = no_losses(plan)
        self.table_rows = np.zeros((len(tables), 3), np.int64)

    def remainder(self) -> ChangeBatch:
        """Return all waiting events as one batch, and empty the assembler."""
        opened = [batch for one in self._open.values() for batch in one.chunks.batches]
        # Only an XID, and no undo, shows which transaction these events belong to. They precede all
        # other events of the transaction in this split; otherwise they would have been added to it.
        alone = [batch for batch in opened if names_its_transaction(batch.events)]
        others = [batch for batch in opened if not names_its_transaction(batch.events)]
        chunks = [*alone, *self._unowned.waiting.batches, *self._ended_unbegun, *others]
        self._ended_unbegun, self._open, self._unowned = [], {}, UnownedPages()
        self._strangers = Strangers(is_split=self._is_split)
        return concatenate(chunks)

    def _chunks(
        self, selection: EventCutter, instances: Instances, rows: Sequence[int]
    ) -> Iterator[ChangeBatch]:
        """Yield the events of some sections (`delimit.Instances`), one batch for each."""
        order, first = instances.order, instances.first
        if self._is_split:
            return iter(selection.groups(order, first, rows))
        # Copy each section separately, so that moving one to disk frees its memory although others
        # stay.
        return (selection.events(order[first[row] : first[row + 1]]) for row in rows)

    def _keep(
        self, batch: ChangeBatch, chunk: ChangeBatch | None, instances: Instances, row: int
    ) -> OpenTransaction | None:
        """Add a section to its transaction; return the transaction if this is its end.

        Args:
            chunk: events of the section; None if the section is a complete transaction.
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
            is_rollback = end >= 0 and batch.events.kind[end] == EventKind.ROLLBACK
            ended = 0 if end < 0 else -1 if is_rollback else 1
            self.unread_begins.add(key, chunk.events, ended)
            if is_rollback:
                self.unbegun_rollbacks[key, xid] = int(batch.events.scn[end])
            else:
                # If there are no changes, a surviving instance may have committed a prepared
                # transaction (`unbegun_commits`). Otherwise the transaction began before the redo
                # that is read.
                if end >= 0 and not count_changes(chunk.events):
                    self.unbegun_commits[key, xid] = chunk
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

    def _finish(self, batch: ChangeBatch, closed: Closed) -> Finished | None:
        events, instances, rows = closed
        ends = instances.end[rows]
        is_commit = events.kind[ends] == EventKind.COMMIT
        if not is_commit.all():
            self._roll_back(closed.part(~is_commit))
        closed, ends = closed.part(is_commit), ends[is_commit]
        if closed.rows.size == 0:
            return None
        self._note_strays(closed)
        by_commit = commit_order(
            events.scn[ends], events.session[ends], events.thread[ends], events.sequence[ends],
            events.block[ends], events.offset[ends],
        )  # fmt: skip
        rows = closed.rows[by_commit]
        batch, instances = join_split_undo(
            batch, instances, rows, self._plan.cluster_columns, self._storage.allocate
        )
        return self._deliver(batch, Closed(batch.events, instances, rows))

    def _deliver(self, batch: ChangeBatch, closed: Closed) -> Finished | None:
        """Finish the committed transactions `closed`, which are in commit order."""
        events, instances, rows = closed
        first, end = instances.first[rows], instances.first[rows + 1]
        job, changes = assemble(batch, self._plan, instances.order, first, end)
        left_out = head(job.faults, int(job.counts[FAULTS]))
        changes, emptied = fill_defaults(changes, self._plan, self._storage.allocate)
        lost: tuple[LostOf, ...] = ()
        if self._plan.lob_tables.size:
            owners = without_faulty(owners_of(closed), left_out, events)
            allocate = self._storage.allocate
            claims = NO_CLAIMS
            if self._unowned.waiting.batches:
                own = claims_of(changes, owners, self._plan)
                claims = joined_claims([own, self._strangers.claims()])
            claimed = self._unowned.claimed(claims, allocate)
            wanted = None
            if self._lob_source is not None:
                wanted = LobWanted(self._lob_source, self._tables, owners.commit.scn)
            pieces_of = partial(pieces_of_events, batch, claimed, owners, allocate)
            lobs = resolve_lobs(
                pieces_of, changes, self._plan, allocate, Counted(self._tables), wanted
            )
            if self._is_split and lobs.incomplete.any():
                # A LOB page that names no transaction may be in an earlier split.
                self._defer(batch, closed.part(lobs.incomplete))
                return self._deliver(batch, closed.part(~lobs.incomplete))
            if claimed.owner.size:
                self._unowned.drop_claimed(claims)
            self.losses = self.losses.plus(lobs.losses)
            self.account.add_lobs(lobs)
            changes, lost = lobs.changes, lobs.lost
        sys_rows = sys_row_changes(changes, self._plan, self._tables)
        dictionary = dictionary_transactions(batch, closed, sys_rows)
        if self._plan.delivered.size:
            changes, others = delivered_changes(changes, self._plan, self._tables, dictionary)
            self.account.dictionary_rows += others
        dml, first_change = changes
        filled = np.flatnonzero(np.diff(first_change))
        self.account.committed += filled.size
        self.account.empty += rows.size - filled.size
        self.account.rows += dml.kind.size
        count_rows(dml.table, dml.kind, self.table_rows)
        faults = row_faults(left_out, closed, self._tables, range_texts(batch, left_out.event))
        self.account.undecoded += len(faults)
        faults += lob_faults(lost, closed, self._tables)
        self.account.undone += int(job.counts[UNDONE])
        self.account.events_undone += int(job.counts[UNDONE])
        kept = _changes(closed) - int(job.counts[UNDONE])
        self.account.events_committed += kept
        self.account.unmatched += int(job.counts[UNMATCHED])
        self.account.without_set += int(job.counts[WITHOUT_SET]) + emptied
        if filled.size == 0 and not dictionary and not faults:
            return None
        transactions = transactions_of(
            closed.part(filled), np.append(first_change[filled], first_change[-1])
        )
        return Finished(transactions, dml, tuple(dictionary.values()), faults)

    def _defer(self, batch: ChangeBatch, closed: Closed) -> None:
        """Put complete transactions into the remainder, for the driver's assembler."""
        rows = np.sort(closed.rows).tolist()
        for chunk in self._chunks(EventCutter(batch), closed.instances, rows):
            self._leave_to_driver([chunk])

    def _leave_to_driver(self, chunks: Sequence[ChangeBatch]) -> None:
        """Put an ended transaction into the remainder."""
        self._ended_unbegun.extend(chunks)
        if chunks[-1].events.kind[-1] == EventKind.COMMIT:
            self._note_stranger(chunks)


def _told_changes(told: Sequence[ChangeBatch]) -> int:
    return sum(count_changes(batch.events) for batch in told)


def _changes(closed: Closed) -> int:
    """Return the number of changes in some sections, see `count_changes_of`."""
    events, instances, rows = closed
    return int(count_changes_of(events, instances.order, instances.first, rows))
