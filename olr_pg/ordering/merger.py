"""The merger brings the decoded results of splits into commit order. With Spark, the merger runs in
the driver, not in the decoding tasks.

Splits are merged in redo order, thread by thread. A transaction is released when every open redo
thread has been read past its commit SCN (`Watermarks`, `commit_order`). Changes of the dictionary
are processed in commit order too: a transaction is released only after all earlier changes of the
dictionary are processed (`dictionary_follower`). Row changes that could not be assembled (faults)
are released with the transactions too. But if a changed dictionary explains a fault, the split that
contains the fault is decoded again. The bundled applier stops the table of a fault. Other clients
cannot be informed of a fault, so for them delivery ends before the first one.

This merger or a later one can continue from a saved state (`SavedState`).
"""

from __future__ import annotations

from copy import copy
from functools import partial
from itertools import dropwhile
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import structlog

from olr_pg.decoding.left_out_report import LossReporter
from olr_pg.decoding.split import encode, encode_large, remaining
from olr_pg.errors import Code, OlrPgError
from olr_pg.ordering.accounting import Accounting, changes_by_table
from olr_pg.ordering.commit_order import CommitOrder, ParallelCommits
from olr_pg.ordering.ready_transactions import ready_run
from olr_pg.ordering.table_events import filled_by_ddl
from olr_pg.ordering.transaction_filters import TransactionFilters, count_left_out
from olr_pg.redo.commit_position import CommitPosition
from olr_pg.redo.uninterpreted import Passed
from olr_pg.redo.walk import Tally
from olr_pg.scalars import MAX_SCN
from olr_pg.transactions.assembler import Assembler
from olr_pg.transactions.finished import Account
from olr_pg.transactions.lobs.assembly import no_losses
from olr_pg.transactions.waiting_storage import IN_MEMORY, Batches, Storage
from olr_pg.wire.encoder import just_sized
from olr_pg.wire.frames import ByteOrder

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy.typing as npt

    from olr_pg.decoding.dictionary_follower import DictionaryFollower
    from olr_pg.decoding.split import Encoded, Split, SplitResult, Subscription
    from olr_pg.dictionary.committed_changes import DictionaryTransaction
    from olr_pg.dictionary.decoding_plan import RowPlan
    from olr_pg.ordering.commit_order import SavedOrder
    from olr_pg.ordering.ready_transactions import ReadyRun
    from olr_pg.ordering.run_end import Until
    from olr_pg.redo.commit_position import ParallelCommit
    from olr_pg.redo.sessions import SessionAttributes, SessionDirectory, SessionKey
    from olr_pg.transactions.assembler import UnreadBegins
    from olr_pg.transactions.finished import Finished
    from olr_pg.transactions.lobs.source_reads import LobSource
    from olr_pg.transactions.row_fault import RowFault
    from olr_pg.transactions.waiting_storage import Kept, OpenTransaction, Waiting


class ThreadSplit(NamedTuple):
    """A split of one redo thread, to be decoded and merged.

    Attributes:
        end_scn: a RESETLOGS has orphaned the split's redo from this SCN on; None if it has not.
        again: whether the split was already merged, and is now decoded again with another
            dictionary.
    """

    thread: int
    split: Split
    end_scn: int | None = None
    again: bool = False

    def apart(self) -> list[ThreadSplit]:
        """Return one split for each of the joined logs."""
        return [self._replace(split=split) for split in self.split.apart()]


class MergedUpTo(NamedTuple):
    """How far a redo thread was merged: its last merged LWN group ends before block `block` of the
    log `path`.
    """

    path: str
    block: int

    def missed(self, source: ThreadSplit, result: SplitResult) -> ThreadSplit | None:
        """If the result of the next split began at a wrong LWN group, return the split with the
        right first group; else None.

        To find its first group, a split uses the offsets of first records in block headers. Nothing
        else depends on these offsets, so a wrong offset is not noticed otherwise: it can hide a
        group, or point to a place where none begins.
        """
        split = source.split
        if self.path != split.path or split.first_group == self.block:
            return None
        begins = None if result.blocks is None else result.blocks[0]
        expected = self.block if self.block < split.end_block else None
        # If no group begins in the split but decoding failed, a false group caused the failure.
        if begins == expected and (begins is not None or result.failure is None):
            return None
        _log.warning(
            "decoding a part of a log again, because the previous part ends at another position",
            file=split.path,
            thread=source.thread,
            block=self.block,
            found=begins,
        )
        return source._replace(split=split._replace(first_group=self.block))


class SavedState(NamedTuple):
    """The state of a merger before it merged a split."""

    source: ThreadSplit
    assembler: Assembler
    order: SavedOrder
    dictionary: tuple[DictionaryTransaction, ...]
    watermarks: dict[int, int]
    parallel: ParallelCommits
    reached: dict[int, MergedUpTo]
    tally: Tally
    passed: Passed
    account: Account
    table_rows: npt.NDArray[np.int64]


class OpenState(NamedTuple):
    """The open transactions of a merger, from which another merger continues.

    Attributes:
        transactions: the open transactions.
        unowned: LOB pages whose transactions are not known yet.
        sessions: sessions of the open transactions.
        watermarks: the SCN up to which each redo thread was read.
        commit_scn: no transaction that is released or waits for release has a higher commit SCN.
    """

    transactions: tuple[OpenTransaction, ...]
    unowned: Waiting
    sessions: dict[SessionKey, SessionAttributes]
    watermarks: dict[int, int]
    commit_scn: int

    @property
    def batches(self) -> list[Kept]:
        """Return all events: first the events of each transaction, then the events without a
        transaction.
        """
        waiting = [*(one.chunks for one in self.transactions), self.unowned]
        return Batches(*(one.batches for one in waiting)).kept


_log = structlog.get_logger(__name__)


class Merger:
    """Merges the results of splits.

    Args:
        subscription: the subscription with which the splits were decoded.
        start_scn: transactions that began before it are not delivered.
        threads: the open redo threads, with the SCN from which each will be read.
        follower: follows the dictionary, or None.
        storage: stores the bytes of open and of large transactions.
        filters: decide which transactions are left out; None for none.
        lob_source: reads LOB values that the redo contains only partly, or None.
        until: the point after which no commit is released; None for no limit.

    Attributes:
        subscription: the subscription for the next splits.
        tally, passed, account: counts so far.
        failure: the error that ended decoding; raise it after the transactions released before it
            are delivered.
        again: splits that must be decoded again with the new `subscription`, and merged before any
            others. The caller must empty this list.
        rewinds: how often the merger returned to a saved state to decode splits again.
    """

    def __init__(
        self,
        subscription: Subscription,
        start_scn: int,
        threads: dict[int, int],
        follower: DictionaryFollower | None = None,
        storage: Storage = IN_MEMORY,
        lob_source: LobSource | None = None,
        filters: TransactionFilters | None = None,
        until: Until | None = None,
    ) -> None:
        self.subscription = subscription
        self._until = until
        self._filters = filters or TransactionFilters()
        self._storage = storage
        self._lob_source = lob_source
        self._start_scn = start_scn
        self._watermarks = Watermarks(threads)
        self._parallel = ParallelCommits()
        self._reached: dict[int, MergedUpTo] = {}
        self._follower = follower
        self._assembler = self._new_assembler()
        self._order = CommitOrder()
        self._dictionary = DictionaryOrder()
        self._states: list[tuple[SavedState, int]] = []
        self.tally, self.passed = Tally(), Passed()
        self.account = Account()
        self._table_rows = np.zeros(3 * len(subscription.tables), np.int64)
        self._losses = LossReporter(subscription.tables)
        self.failure: OlrPgError | None = None
        self.again: list[ThreadSplit] = []
        self.rewinds = 0

    def _new_assembler(self) -> Assembler:
        plan, tables = self.subscription.row_plan, self.subscription.tables
        return Assembler(
            plan, tables, is_split=False, storage=self._storage, lob_source=self._lob_source
        )

    def abandon(self, scn: int) -> None:
        """Drop all open transactions, and all transactions that committed at `scn` or later,
        because a RESETLOGS has orphaned the redo from `scn` on.
        """
        self._order.abandon(scn)
        self._watermarks.limit(scn)
        # OPEN RESETLOGS has rolled back all transactions that were open.
        opened = self._assembler.open_transactions
        self.account.events_dropped += sum(transaction.changes for transaction in opened)
        unread = self._assembler.unread_begins
        self._assembler = self._new_assembler()
        self._assembler.unread_begins = unread
        self._dictionary.abandon(scn)
        self._parallel = ParallelCommits()
        self._states = []

    def limit(self, scn: int) -> None:
        """Lower the watermark of each thread to at most `scn`."""
        self._watermarks.limit(scn)

    def pass_scn(self, scn: int) -> list[ReadyRun]:
        """Record that all redo before `scn` was read. Return the released transactions, as `feed`
        does.

        If `again` is not empty, call this once more after those splits are merged.

        Raises:
            OlrPgError: 3070, 3005, the dictionary cannot be followed.
        """
        self._watermarks.pass_scn(scn)
        self._forget()
        return [] if self._is_stale() else self._leave()

    def close_thread(self, thread: int) -> list[ReadyRun]:
        """Record that a thread has no more redo. Return the transactions that waited only for this
        thread, as `feed` does.

        If `failure` is set after the call, no other transactions follow. If `again` is not empty,
        the thread is open again, because DDL that waited for the thread has changed the dictionary.
        If the thread is open again, merge the splits in `again`, then call `close_thread` again.

        Raises:
            OlrPgError: 3070, 3005, the dictionary cannot be followed.
        """
        self._watermarks.close(thread)
        self._forget()
        # If this returns to a saved state, the thread is open again, as it was in that state.
        return [] if self._is_stale() else self._leave()

    @property
    def threads(self) -> frozenset[int]:
        """The redo threads that must be read."""
        return self._watermarks.threads

    def threads_before(self, scn: int) -> frozenset[int]:
        """Return the redo threads that were not read up to `scn`."""
        return self._watermarks.before(scn)

    def watermark_of(self, thread: int) -> int:
        """Return the SCN up to which a thread was read."""
        return self._watermarks.of(thread)

    @property
    def watermark(self) -> int:
        """The SCN below which every committed transaction has been decoded."""
        lowest = self._watermarks.lowest
        # If no thread is open, nothing more arrives.
        return self._parallel.limited(lowest) if self._watermarks.threads else lowest

    @property
    def needed_scn(self) -> int:
        """The SCN from which on redo may still be read: splits that a change of the dictionary can
        undo are decoded again.
        """
        undoable = self._undoable_states()[:1]
        return min(
            [self.watermark, *(scn for saved, _ in undoable for scn in saved.watermarks.values())]
        )

    @property
    def deliverable_scn(self) -> int:
        """The SCN below which every committed transaction can be released."""
        if self._until is None:
            return self.watermark
        return min(self.watermark, self._until.scn + 1)

    @property
    def left_scn(self) -> int:
        """The SCN below which every committed transaction was released or left out."""
        return self._order.left_scn

    @property
    def given_scn(self) -> int:
        """The highest commit SCN of the released transactions, faults and dictionary changes; -1
        before the first one. `left_scn` is higher if nothing was committed for some time.
        """
        return max(self._order.given_scn, self._dictionary.given_scn)

    @property
    def left_out(self) -> list[RowFault]:
        """The faults that were released with the last transactions."""
        return self._order.left_out

    @property
    def left_dictionary(self) -> list[DictionaryTransaction]:
        """The dictionary changes of the transactions that were released last, in commit order."""
        return self._dictionary.left

    @property
    def sessions(self) -> SessionDirectory:
        """The sessions found in the redo so far."""
        return self._filters.sessions

    @property
    def waiting(self) -> int:
        """The number of finished transactions that wait for other redo threads."""
        return len(self._order)

    def report_waiting(self) -> None:
        """Log a warning about transactions that wait although nothing more is read."""
        if self.waiting:
            _log.warning(
                "transactions are waiting for logs of other redo threads",
                transactions=self.waiting,
                read_up_to_scn=self.watermark or "none yet",
            )

    @property
    def unread_begins(self) -> UnreadBegins:
        """The dropped transactions that began before the redo."""
        return self._assembler.unread_begins

    @property
    def open_transactions(self) -> list[OpenTransaction]:
        """The transactions whose end was not read yet."""
        return self._assembler.open_transactions

    @property
    def has_unsaved(self) -> bool:
        """True if the merger waits for redo and `open_state` does not contain the reason. There are
        three reasons: another redo thread may still contain the begin of a transaction that has
        ended; another transaction has taken the slot of a transaction whose end was not read;
        or the children of a parallel commit have not committed yet.
        """
        assembler = self._assembler
        unbegun = assembler.unbegun_rollbacks or assembler.unbegun_commits
        return bool(unbegun or assembler.unseen_ends or self._parallel)

    def open_scn(self) -> int:
        """Return the lowest begin SCN of all transactions that are not released yet, decoded or
        not.
        """
        waiting = [*self._order.begin_scns, *self._dictionary.begin_scns]
        return min([self.watermark, self.oldest_open_scn(), *waiting])

    def oldest_open_scn(self) -> int:
        """Return the lowest begin SCN of the open transactions that will be delivered; `MAX_SCN` if
        there is none.
        """
        opened = [t.begin_scn for t in self._assembler.open_transactions]
        wanted = [scn for scn in opened if scn is not None and scn >= self._start_scn]
        return min(wanted, default=MAX_SCN)

    def open_state(self) -> OpenState:
        """Return the current open transactions; later calls of `feed` do not change the result."""
        saved = self._assembler.saved()
        finished = [*self._order.commit_scns, *self._dictionary.commit_scns]
        opened = saved.open_transactions
        return OpenState(
            transactions=tuple(opened),
            unowned=saved.unowned,
            sessions=self.sessions.of_batches(b for t in opened for b in t.chunks.batches),
            watermarks=self._watermarks.saved(),
            commit_scn=max([0, self.left_scn - 1, *finished]),
        )

    def restore(self, state: OpenState) -> None:
        """Continue from a state; call it before the first `feed`."""
        self._assembler.restore(state.transactions, state.unowned)
        # The run that read these changes has counted them as events, so this account must, too.
        self.account.events += sum(t.changes for t in state.transactions)
        self.sessions.add(state.sessions)
        self._watermarks = Watermarks(state.watermarks)

    def accounting(self) -> Accounting:
        """Return the account of everything merged."""
        tables = changes_by_table(self.subscription.tables, self._table_rows)
        waiting = sum(t.changes for t in self._assembler.open_transactions)
        return Accounting(self.tally, copy(self.account), waiting, tables, self.passed.counts)

    def add_thread(self, thread: int, scn: int) -> None:
        """Add a redo thread that will be read from `scn` on. From now on, transactions also wait
        for this thread.
        """
        self._watermarks.add(thread, scn)

    def expect(self, commits: tuple[ParallelCommit, ...]) -> None:
        """Record commits of parallel DML in redo that this merger does not read. Later commits wait
        for the children of these commits.
        """
        self._parallel.see(commits)

    def feed(
        self, thread: int, result: SplitResult, source: ThreadSplit | None = None
    ) -> list[ReadyRun]:
        """Merge the next split of a thread; return the transactions that can now be released.

        The transactions of each view are in commit order. If `failure` is set after the call, no
        other transactions follow. If `again` is not empty, the split was not merged, and `again`
        contains it.

        Args:
            source: the split; None if the dictionary is not followed, so that no split is decoded
                again.

        Raises:
            OlrPgError: 2014, a transaction comes too late, because later commits were released;
                3070, 3005, the dictionary cannot be followed.
        """
        if source is not None:
            before = self._reached.get(thread)
            missed = None if before is None else before.missed(source, result)
            if missed is not None:
                self.again = [missed]
                return []
            if self._follower is not None:
                self._save(source)
            if result.blocks is not None:
                self._reached[thread] = MergedUpTo(source.split.path, result.blocks[1])
        # The transactions of a split may already be released only if the split is decoded again.
        self._order.is_again = source is not None and source.again
        self._take(result)
        # The watermark of a split in which no LWN group begins is 0, so it changes nothing. The
        # watermark of a split that failed ends at the failure. Redo from `end` on is orphaned by a
        # RESETLOGS, so its transactions must not be released.
        end = None if source is None else source.end_scn
        reached = result.watermark if end is None else min(result.watermark, end)
        self._parallel.see(result.parallel)
        self._watermarks.advance(thread, reached)
        self._forget()
        if self._is_stale():
            return []
        self.failure = result.failure
        return self._leave()

    def _take(self, result: SplitResult) -> None:
        """Add the results of a split to the waiting transactions, faults and counts."""
        self.sessions.add(result.sessions)
        self.sessions.add_names(result.names)
        self.tally = self.tally.plus(result.tally)
        self.passed = self.passed.plus(result.passed)
        self._losses.report_passed(result.passed.noted)
        self.account.add(result.account)
        self._table_rows = self._table_rows + result.table_rows
        self._keep(result.encoded)
        self._keep_faults(result.faults)
        self._keep_dictionary(result.dictionary)
        self._finish(self._assembler.feed(result.remainder))
        for part in result.encoded:
            self._assembler.note_whole(part.transactions)
        for large in self._assembler.large:
            encoded, of_views = encode_large(self.subscription, large, self._storage)
            self._keep(encoded)
            self._keep_faults((*large.faults, *large.lob_faults, *of_views))
            self._assembler.settle(large)
        self._count()
        self._losses.report(result.losses.plus(self._assembler.losses))
        self._assembler.losses = no_losses(self.subscription.row_plan)

    def _finish(self, finished: Finished | None) -> None:
        """Add the transactions that the merger's own assembler has finished. Such transactions
        extend over several splits.
        """
        if finished is not None:
            finished = remaining(self.subscription, finished, self._assembler)
            write = partial(just_sized, allocate=self._storage.allocate)
            faults = list(finished.faults)
            self._keep(encode(self.subscription, finished, write, faults))
            self._keep_faults(faults)
            self._keep_dictionary(finished.dictionary)

    def _count(self) -> None:
        """Add the counts of the merger's own assembler."""
        self.account.add(self._assembler.account)
        self._assembler.account = Account()
        self._table_rows += self._assembler.table_rows.reshape(-1)
        self._assembler.table_rows[:] = 0

    def _forget(self) -> None:
        """Give up transactions whose begin or end is missing, if all threads were read past the
        last SCN at which the missing begin or end can be. Finish transactions whose commit was read
        before their begin.
        """
        self._assembler.forget_rollbacks(self.watermark)
        if self._assembler.unbegun_commits:
            self._finish(self._assembler.finish_commits(self.watermark))
            self._count()
        if self._assembler.unseen_ends:
            self._finish(self._assembler.tell_unseen_ends(self.watermark))
            self._count()

    # --- the dictionary ---

    def _save(self, source: ThreadSplit) -> None:
        """Save the state before a split. Discard saved states that end where the dictionary is
        already known.
        """
        self._states = self._undoable_states()
        state = SavedState(
            source=source,
            assembler=self._assembler.saved(),
            order=self._order.saved(),
            dictionary=self._dictionary.saved(),
            watermarks=self._watermarks.saved(),
            parallel=self._parallel.saved(),
            reached=dict(self._reached),
            tally=self.tally,
            passed=self.passed,
            account=copy(self.account),
            table_rows=self._table_rows,
        )
        self._states.append((state, 0))

    def _undoable_states(self) -> list[tuple[SavedState, int]]:
        """Return the saved states, except those that end where the dictionary is already known.

        Only states at the front of the list are left out. A later state stays even if it ends at a
        lower SCN. A return to an earlier state undoes all splits that were merged after this state,
        in every thread.
        """
        settled = self.watermark
        return list(dropwhile(lambda saved: saved[1] < settled, self._states))

    def _is_stale(self) -> bool:
        """Return whether merged splits must be decoded again because the dictionary has changed. If
        so, undo these splits and put them in `again`.

        Raises:
            OlrPgError: 3070, 3005, the dictionary cannot be followed.
        """
        self._dictionary.left = []
        if self._follower is None or not self._states:
            return False
        state, end = self._states[-1]
        self._states[-1] = state, self._watermarks.of(state.source.thread, end)
        # After undecodable rows of SYS tables, the dictionary is unknown.
        ending = self._order.first_fault(self._is_followed)
        limit = self.watermark if ending is None else min(self.watermark, ending.commit_scn)
        since = self._follower.apply(self._dictionary.before(limit))
        if since is not None:
            # If no saved split is known to end at or after `since`, undo only the newest split.
            last = len(self._states) - 1
            self._go_back(
                next((i for i, (_, end) in enumerate(self._states) if end >= since), last)
            )
            _log.info("decoding again with the new dictionary", scn=since, splits=len(self.again))
            return True
        self._dictionary.release(self.watermark)
        return False

    def _go_back(self, first: int) -> None:
        """Undo the splits from number `first` in `_states` on, and put them in `again`."""
        assert self._follower is not None
        self.rewinds += 1
        undone = [state.source._replace(again=True) for state, _ in self._states[first:]]
        state, _ = self._states[first]
        self._states = self._states[:first]
        self.subscription = self._follower.subscription()
        self._assembler = state.assembler
        self._assembler.use(self.subscription.row_plan, self.subscription.tables)
        self._order.go_back(state.order)
        self._dictionary.go_back(state.dictionary)
        self._watermarks = Watermarks(state.watermarks)
        self._parallel = state.parallel.saved()
        self._reached = state.reached
        self.tally, self.passed, self.account = state.tally, state.passed, state.account
        self._table_rows = np.zeros(3 * len(self.subscription.tables), np.int64)
        self._table_rows[: state.table_rows.size] = state.table_rows
        self._losses = self._losses.for_tables(self.subscription.tables)
        self.again = undone

    # --- release ---

    def _keep_faults(self, faults: Iterable[RowFault]) -> None:
        subscription = self.subscription
        for found in faults:
            fault = without_dropped(found, subscription.dropped)
            if fault is None:
                continue
            wanted = is_delivered(fault, subscription.row_plan) or self._is_followed(fault)
            if fault.begin_scn < self._start_scn or not wanted or self._filters.drop(fault):
                continue
            if fault.error.code == Code.LOB_PAGES_WITHOUT_REDO and self._lob_source is not None:
                # The LOB values of the row are fetched from the source.
                self._losses.report_fetched(fault.error)
            else:
                self._order.take_fault(fault)

    def _keep_dictionary(self, transactions: Iterable[DictionaryTransaction]) -> None:
        for transaction in transactions:
            position = CommitPosition(0, *transaction.position)
            self._order.check_in_time(transaction.commit_scn, position)
            self._dictionary.take(transaction)

    def _is_followed(self, fault: RowFault) -> bool:
        return is_followed(fault, self.subscription.row_plan, self._follower)

    def _ends_delivery(self, fault: RowFault) -> bool:
        return ends_delivery(fault, self.subscription.row_plan, self._follower)

    def _leave(self) -> list[ReadyRun]:
        """Release the transactions that can be released, in order. If delivery must end after them,
        set `failure`.
        """
        self._parallel.forget(self._watermarks.lowest)
        limit = self.deliverable_scn
        end = None if self._follower is None else self._follower.end
        if end is not None and end.commit_scn < limit:
            self.failure, limit = end.evolution.error, end.commit_scn + 1
        fault = self._order.first_fault(self._ends_delivery)
        if fault is not None and fault.commit_scn < limit:
            events = () if self._follower is None else self._follower.events
            self.failure, limit = filled_by_ddl(fault, events) or fault.error, fault.commit_scn
        return self._order.release(limit)

    def _keep(self, parts: Iterable[Encoded]) -> None:
        for part in parts:
            if self._until is not None:
                self._until.see_transactions(part.transactions)
            view = self.subscription.views[part.view]
            order = ByteOrder.BIG if view.big_endian else ByteOrder.LITTLE
            run = ready_run(part.transactions, part.messages, order, part.view, part.stored)
            wanted = run.begin_scn >= np.uint64(self._start_scn)
            self._order.take(run.where(self._delivered(part) & wanted))

    def _delivered(self, part: Encoded) -> npt.NDArray[np.bool_]:
        """Return which transactions of a part are not left out by filters; count the ones that are
        left out.
        """
        delivered = self._filters.delivered(part.transactions, part.view)
        # With several targets, do not subtract anything: each target has its own filter, and the
        # account counts decoded changes.
        if len(self.subscription.views) == 1:
            count_left_out(self.account, part.transactions, delivered)
        return delivered


# --- changes of the dictionary, which wait until all earlier commits are known ---


class DictionaryOrder:
    """The dictionary changes of transactions, ordered by their commits.

    Attributes:
        left: the transactions that were released last, in commit order.
    """

    def __init__(self) -> None:
        self._waiting: list[DictionaryTransaction] = []
        self._last: tuple[int, tuple[int, int, int, int]] | None = None
        self.left: list[DictionaryTransaction] = []

    @property
    def begin_scns(self) -> list[int]:
        """The begin SCNs of the waiting transactions."""
        return [transaction.begin_scn for transaction in self._waiting]

    @property
    def commit_scns(self) -> list[int]:
        """The commit SCNs of the waiting transactions."""
        return [transaction.commit_scn for transaction in self._waiting]

    def take(self, transaction: DictionaryTransaction) -> None:
        """Add a transaction that changed the dictionary."""
        self._waiting.append(transaction)

    def before(self, limit: int) -> list[DictionaryTransaction]:
        """Return the transactions that commit below `limit`, in commit order, without removing
        them.
        """
        known = (t for t in self._waiting if t.commit_scn < limit)
        return sorted(known, key=lambda t: t.order)

    @property
    def given_scn(self) -> int:
        """The highest commit SCN of the released transactions; -1 before the first one."""
        return -1 if self._last is None else self._last[0]

    def release(self, limit: int) -> None:
        """Remove the transactions that commit below `limit`. Set `left` to those removed
        transactions that were not released before: a split that is decoded again can contain
        transactions that were already released.
        """
        known, last = self.before(limit), self._last
        self.left = [t for t in known if last is None or t.order > last]
        if self.left:
            self._last = self.left[-1].order
        self._waiting = [t for t in self._waiting if t.commit_scn >= limit]

    def abandon(self, scn: int) -> None:
        """Drop transactions that committed at `scn` or later, because a RESETLOGS has orphaned
        them.
        """
        self._waiting = [t for t in self._waiting if t.commit_scn < scn]

    def saved(self) -> tuple[DictionaryTransaction, ...]:
        """Return the waiting transactions, for `go_back`."""
        return tuple(self._waiting)

    def go_back(self, saved: tuple[DictionaryTransaction, ...]) -> None:
        """Restore the state from `saved`."""
        self._waiting = list(saved)


# --- row changes that could not be assembled ---


def without_dropped(fault: RowFault, dropped: npt.NDArray[np.bool_] | None) -> RowFault | None:
    """Return a fault without the missing LOB values of changes that the filters of all targets
    leave out.

    Args:
        dropped: shape (tables, 3); see `decoding.filters.Filters.dropped`.

    Returns:
        None if nothing remains.
    """
    if not fault.lobs or dropped is None:
        return fault
    lobs = [lob.without(dropped[fault.table]) for lob in fault.lobs]
    left = tuple(lob for lob in lobs if lob is not None)
    return fault._replace(lobs=left) if left else None


def is_delivered(fault: RowFault, plan: RowPlan) -> bool:
    """Return whether changes of the fault's table are delivered to a client."""
    return not plan.delivered.size or bool(plan.delivered[fault.table])


def is_followed(fault: RowFault, plan: RowPlan, follower: DictionaryFollower | None) -> bool:
    """Return whether a fault hides changes of a followed SYS table that the dictionary's snapshot
    does not contain.
    """
    return (
        follower is not None
        and not fault.lobs
        and bool(plan.followed.size and plan.followed[fault.table])
        and fault.commit_scn > follower.snapshot_scn(fault.con_id)
    )


def ends_delivery(fault: RowFault, plan: RowPlan, follower: DictionaryFollower | None) -> bool:
    """Return whether a fault must end the delivery: because no event can inform the client of the
    fault, or because the dictionary is unknown after the fault.
    """
    if fault.lobs:
        return False
    is_alone = follower is None or follower.ends_delivery
    return is_alone or is_followed(fault, plan, follower)


# --- up to which SCN each open redo thread was read ---


class Watermarks:
    """The SCNs up to which the open redo threads were read.

    Args:
        threads: the open redo threads, with the SCN from which each will be read.
    """

    def __init__(self, threads: Mapping[int, int]) -> None:
        self._scns = dict(threads)

    @property
    def threads(self) -> frozenset[int]:
        """The redo threads."""
        return frozenset(self._scns)

    @property
    def lowest(self) -> int:
        """The lowest watermark: every transaction that commits below it has been decoded; 0 if
        there are no threads.
        """
        return min(self._scns.values(), default=0)

    def of(self, thread: int, default: int = 0) -> int:
        """Return the SCN up to which a redo thread was read; `default` for an unknown thread."""
        return self._scns.get(thread, default)

    def before(self, scn: int) -> frozenset[int]:
        """Return the threads that were not read up to `scn`."""
        return frozenset(thread for thread, at in self._scns.items() if at < scn)

    def add(self, thread: int, scn: int) -> None:
        """Add a redo thread, read from `scn` on, if it is not known yet."""
        self._scns.setdefault(thread, scn)

    def advance(self, thread: int, scn: int) -> None:
        """Record that a thread was read up to `scn`. Do nothing if the thread's watermark is
        already higher.
        """
        self._scns[thread] = max(self.of(thread), scn)

    def pass_scn(self, scn: int) -> None:
        """Record that all redo before `scn` was read, in every thread."""
        self._scns = {thread: max(at, scn) for thread, at in self._scns.items()}

    def limit(self, scn: int) -> None:
        """Lower the watermark of each thread to at most `scn`."""
        self._scns = {thread: min(at, scn) for thread, at in self._scns.items()}

    def close(self, thread: int) -> None:
        """Record that a thread has no more redo."""
        self._scns.pop(thread, None)

    def saved(self) -> dict[int, int]:
        """Return a copy of the watermarks."""
        return dict(self._scns)
