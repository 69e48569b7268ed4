"""The driver's side of decoding: remainders to transactions, transactions to commit order.

Splits are merged in redo order, thread by thread. A transaction leaves when every open redo thread
has been read past its commit SCN (`watermarks`, `commit_order`).
What transactions did to the dictionary is looked at in the same order, before anything behind it
leaves (see `follower`). So are row changes that could not be put together: those that a changed
dictionary does not explain, once decoded again, leave with the transactions, for the bundled
applier to stop their tables; without it the delivery ends before the first of them.
"""

from __future__ import annotations

from collections import Counter
from copy import copy
from functools import partial
from itertools import dropwhile
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import structlog

from olr_pg.errors import OlrPgError
from olr_pg.redo.walk import Tally
from olr_pg.replicator.accounting import Accounting
from olr_pg.replicator.commit_order import CommitOrder
from olr_pg.replicator.encode_large import encode_large
from olr_pg.replicator.losses import LossReporter
from olr_pg.replicator.split import encode, remaining
from olr_pg.replicator.transaction_filters import TransactionFilters, count_left_out
from olr_pg.replicator.watermarks import Watermarks
from olr_pg.scalars import MAX_SCN
from olr_pg.server.ready import CommitPosition, ready_run
from olr_pg.transactions.assembler import Assembler
from olr_pg.transactions.batch import DmlKind
from olr_pg.transactions.finished import Account
from olr_pg.transactions.lobs import no_losses
from olr_pg.transactions.storage import IN_MEMORY, Storage
from olr_pg.wire.encoder import encode_transactions
from olr_pg.wire.frames import ByteOrder

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from olr_pg.dictionary.changes import DictionaryTransaction
    from olr_pg.redo.batch import ChangeBatch
    from olr_pg.redo.sessions import SessionAttributes, SessionDirectory, SessionKey
    from olr_pg.replicator.commit_order import SavedOrder
    from olr_pg.replicator.follower import DictionaryFollower
    from olr_pg.replicator.split import Encoded, Split, SplitResult, Subscription
    from olr_pg.server.ready import ReadyRun
    from olr_pg.transactions.assembler import OpenTransaction
    from olr_pg.transactions.faults import RowFault
    from olr_pg.transactions.lob_source import LobSource
    from olr_pg.transactions.storage import Waiting

_log = structlog.get_logger(__name__)


class ThreadSplit(NamedTuple):
    """A split to be merged, of a redo thread.

    Attributes:
        end_scn: the SCN from which its redo is orphaned by a RESETLOGS; None where it is not.
        again: whether it was merged before, and is decoded again with another dictionary.
    """

    thread: int
    split: Split
    end_scn: int | None = None
    again: bool = False


class _Reached(NamedTuple):
    """Where the last LWN group ends that was merged of a redo thread: block `block` of a log."""

    path: str
    block: int


class _State(NamedTuple):
    """What a merger had before it was fed a split."""

    source: ThreadSplit
    assembler: Assembler
    order: SavedOrder
    dictionary: tuple[DictionaryTransaction, ...]
    watermarks: dict[int, int]
    reached: dict[int, _Reached]
    tally: Tally
    account: Account
    table_rows: npt.NDArray[np.int64]


class OpenState(NamedTuple):
    """What a merger has of transactions that have not ended, for another one to go on from.

    Attributes:
        transactions: the open ones.
        unowned: LOB pages that name no transaction yet.
        sessions: those of the open transactions.
        watermarks: by redo thread.
        commit_scn: everything that had committed did so at this SCN or before.
    """

    transactions: tuple[OpenTransaction, ...]
    unowned: Waiting
    sessions: dict[SessionKey, SessionAttributes]
    watermarks: dict[int, int]
    commit_scn: int

    @property
    def batches(self) -> list[ChangeBatch]:
        """All events: of the transactions one by one, then of no transaction."""
        waiting = [*(one.chunks for one in self.transactions), self.unowned]
        return [batch for one in waiting for batch in one.batches]


class Merger:
    """Puts the results of splits together.

    Args:
        subscription: what the splits were decoded with.
        start_scn: transactions that began before it are not delivered.
        threads: the open redo threads, with the SCN from which each will be read.
        follower: follows the dictionary; None where nobody does.
        storage: where the bytes of unfinished and of large transactions wait.
        filters: which transactions are left out; None: none are.
        lob_source: where LOB values are read that the redo does not hold whole; None: nowhere.

    Attributes:
        subscription: what the next splits are to be decoded with.
        tally, account: what was seen so far.
        failure: what ended the decoding; to be raised once what left before it was delivered.
        again: splits that are to be decoded again with the new `subscription`, and merged before
            any other; the caller empties it.
        rewinds: how often splits were taken back to be decoded again.
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
    ) -> None:
        self.subscription = subscription
        self._filters = filters or TransactionFilters()
        self._storage = storage
        self._lob_source = lob_source
        self._start_scn = start_scn
        self._watermarks = Watermarks(threads)
        self._reached: dict[int, _Reached] = {}
        self._follower = follower
        self._assembler = self._new_assembler()
        self._order = CommitOrder()
        self._dictionary: list[DictionaryTransaction] = []
        self._states: list[tuple[_State, int]] = []
        self.tally = Tally()
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
        """The redo from `scn` on was given up by a RESETLOGS: drop what it began or committed."""
        self._order.abandon(scn)
        self._watermarks.limit(scn)
        # What was open then, the new incarnation has rolled back.
        opened = self._assembler.open_transactions
        self.account.events_dropped += sum(transaction.changes for transaction in opened)
        self._assembler = self._new_assembler()
        self._dictionary = [t for t in self._dictionary if t.commit_scn < scn]
        self._states = []

    def limit(self, scn: int) -> None:
        """What was read of any thread from `scn` on does not count."""
        self._watermarks.limit(scn)

    def pass_scn(self, scn: int) -> list[ReadyRun]:
        """No thread has more redo from before `scn`; the transactions that leave, see `feed`.

        Where `again` is not empty, call it once more after these were merged.

        Raises:
            OlrPgError: 3070, 3005, the dictionary cannot be followed.
        """
        self._watermarks.pass_scn(scn)
        return [] if self._is_stale() else self._leave()

    def close_thread(self, thread: int) -> list[ReadyRun]:
        """No more redo comes from a thread; the transactions that waited for it only, see `feed`.

        Where `failure` is set then, these are the last ones. Where `again` is not empty, the
        thread is still open: DDL that waited for it, too, has splits decoded again, and only then
        may it be closed.

        Raises:
            OlrPgError: 3070, 3005, the dictionary cannot be followed.
        """
        self._watermarks.close(thread)
        self._assembler.forget_rollbacks(self.watermark)
        # What was saved before a split has the thread open, and going back restores that.
        return [] if self._is_stale() else self._leave()

    @property
    def threads(self) -> frozenset[int]:
        """The redo threads that count."""
        return self._watermarks.threads

    def threads_before(self, scn: int) -> frozenset[int]:
        """Those of them that were not read up to `scn`."""
        return self._watermarks.before(scn)

    def watermark_of(self, thread: int) -> int:
        """Up to which SCN one of them was read."""
        return self._watermarks.of(thread)

    @property
    def watermark(self) -> int:
        """Every transaction that commits below it has been decoded."""
        return self._watermarks.lowest

    @property
    def left_scn(self) -> int:
        """Every transaction that commits below it has left, or was left out."""
        return self._order.left_scn

    @property
    def left_out(self) -> list[RowFault]:
        """What of the transactions that left last could not be decoded."""
        return self._order.left_out

    @property
    def sessions(self) -> SessionDirectory:
        """The sessions that were announced so far."""
        return self._filters.sessions

    @property
    def waiting(self) -> int:
        """How many finished transactions wait for the other redo threads."""
        return len(self._order)

    def report_waiting(self) -> None:
        """Warn of transactions that nothing more was read for."""
        if self.waiting:
            _log.warning(
                "transactions wait for the logs of other redo threads",
                transactions=self.waiting,
                read_up_to_scn=self.watermark,
            )

    @property
    def open_transactions(self) -> list[OpenTransaction]:
        """Those whose end was not read yet."""
        return self._assembler.open_transactions

    @property
    def has_unbegun_rollbacks(self) -> bool:
        """Whether a transaction was rolled back whose begin another redo thread may still bring.

        An `OpenState` does not have it.
        """
        return bool(self._assembler.unbegun_rollbacks)

    def open_scn(self) -> int:
        """The lowest begin SCN of what has not left yet: decoded or not."""
        waiting = [*self._order.begin_scns, *(t.begin_scn for t in self._dictionary)]
        return min([self.watermark, self.oldest_open_scn(), *waiting])

    def oldest_open_scn(self) -> int:
        """The lowest begin SCN of an open transaction that is to be delivered; else `MAX_SCN`."""
        opened = [t.begin_scn for t in self._assembler.open_transactions]
        wanted = [scn for scn in opened if scn is not None and scn >= self._start_scn]
        return min(wanted, default=MAX_SCN)

    def open_state(self) -> OpenState:
        """The open transactions as they are now; what is fed later does not change it."""
        saved = self._assembler.saved()
        finished = [*self._order.commit_scns, *(t.commit_scn for t in self._dictionary)]
        opened = saved.open_transactions
        return OpenState(
            tuple(opened),
            saved.unowned,
            self.sessions.of_batches([b for t in opened for b in t.chunks.batches]),
            self._watermarks.saved(),
            max([0, self.left_scn - 1, *finished]),
        )

    def restore(self, state: OpenState) -> None:
        """Go on from there, before anything is fed."""
        self._assembler.restore(state.transactions, state.unowned)
        # They were counted by the run that read them.
        self.account.events += sum(t.changes for t in state.transactions)
        self.sessions.add(state.sessions)
        self._watermarks = Watermarks(state.watermarks)

    def accounting(self) -> Accounting:
        """What became of everything that was merged."""
        tables: dict[str, Counter[DmlKind]] = {}
        rows = self._table_rows.reshape(-1, 3).tolist()
        for table, counts in zip(self.subscription.tables, rows, strict=True):
            by_kind = dict(zip(DmlKind, counts, strict=True))
            if any(counts):
                tables.setdefault(table.full_name, Counter()).update(by_kind)
        waiting = sum(t.changes for t in self._assembler.open_transactions)
        return Accounting(self.tally, copy(self.account), waiting, tables)

    def add_thread(self, thread: int, scn: int) -> None:
        """Another redo thread is open, read from `scn` on."""
        self._watermarks.add(thread, scn)

    def feed(
        self, thread: int, result: SplitResult, source: ThreadSplit | None = None
    ) -> list[ReadyRun]:
        """Take the next split of a thread; the transactions that may leave now.

        Those of each view are in commit order.

        Where `failure` is set then, these are the last ones. Where `again` is not empty, the
        split was not taken: it is among those to be decoded again.

        Args:
            source: the split; None where the dictionary is not followed and none comes again.

        Raises:
            OlrPgError: 2014 others left that had to wait for what the split brings; 3070, 3005,
                the dictionary cannot be followed.
        """
        if source is not None:
            whole = self._with_missed(thread, result, source.split)
            if whole is not None:
                self.again = [source._replace(split=whole)]
                return []
            if self._follower is not None:
                self._save(source)
            if result.blocks is not None:
                self._reached[thread] = _Reached(source.split.path, result.blocks[1])
        # What a split decoded again brings may have left; what another one brings may not.
        self._order.is_again = source is not None and source.again
        self._take(result)
        path = "" if source is None else source.split.path
        self._losses.report_unpaired(result.tally.unpaired, thread, path)
        # A split that begins no LWN group does not know how far the thread has come. Of a failed
        # one, nothing may leave that commits behind the point up to which it was decoded. Nor does
        # anybody look at what a RESETLOGS has orphaned: neither at rows nor at DDL.
        end = None if source is None else source.end_scn
        reached = result.watermark if end is None else min(result.watermark, end)
        self._watermarks.advance(thread, reached)
        self._assembler.forget_rollbacks(self.watermark)
        if self._is_stale():
            return []
        self.failure = result.failure
        return self._leave()

    def _with_missed(self, thread: int, result: SplitResult, split: Split) -> Split | None:
        """The split from the LWN group that it must begin with, where its result does not.

        A split finds its first group by what block headers say of their first record. Nothing else
        depends on that, so a group may hide there, or what only looks like one be found.
        """
        reached = self._reached.get(thread)
        if reached is None or reached.path != split.path or split.first_group == reached.block:
            return None
        begins = None if result.blocks is None else result.blocks[0]
        expected = reached.block if reached.block < split.end_block else None
        # What has no group of its own cannot fail for what it took for one either.
        if begins == expected and (begins is not None or result.failure is None):
            return None
        _log.warning(
            "decoding again from where the part of the log before it ends",
            file=split.path,
            thread=thread,
            block=reached.block,
            found=begins,
        )
        return split._replace(first_group=reached.block)

    def _take(self, result: SplitResult) -> None:
        """Put a split's results to what is there."""
        self.sessions.add(result.sessions)
        self.tally = self.tally.plus(result.tally)
        self.account.add(result.account)
        self._table_rows = self._table_rows + result.table_rows
        self._keep(result.encoded)
        self._keep_faults(result.faults)
        self._keep_dictionary(result.dictionary)
        finished = self._assembler.feed(result.remainder)
        if finished is not None:
            finished = remaining(self.subscription, finished, self._assembler)
            write = partial(encode_transactions, allocate=self._storage.allocate)
            self._keep(encode(self.subscription, finished, write))
            self._keep_faults(finished.faults)
            self._keep_dictionary(finished.dictionary)
        for large in self._assembler.large:
            self._keep(encode_large(self.subscription, large, self._storage))
            self._keep_faults(large.faults)
            self._assembler.settle(large)
        self.account.add(self._assembler.account)
        self._assembler.account = Account()
        self._table_rows += self._assembler.table_rows.reshape(-1)
        self._assembler.table_rows[:] = 0
        self._losses.report(result.losses.plus(self._assembler.losses))
        self._assembler.losses = no_losses(self.subscription.row_plan)

    # --- the dictionary ---

    def _save(self, source: ThreadSplit) -> None:
        """Note the state before a split, until the dictionary is known past its end."""
        settled = self.watermark
        # Only from the front: to go back to a state undoes every split behind it, those of other
        # threads too, however little of the redo they reach.
        self._states = list(dropwhile(lambda saved: saved[1] < settled, self._states))
        state = _State(
            source,
            self._assembler.saved(),
            self._order.saved(),
            tuple(self._dictionary),
            self._watermarks.saved(),
            dict(self._reached),
            self.tally,
            copy(self.account),
            self._table_rows,
        )
        self._states.append((state, 0))

    def _is_stale(self) -> bool:
        """Whether the dictionary changed under splits that were taken: these are in `again` then.

        Raises:
            OlrPgError: 3070, 3005, the dictionary cannot be followed.
        """
        if self._follower is None or not self._states:
            return False
        state, end = self._states[-1]
        self._states[-1] = state, self._watermarks.of(state.source.thread, end)
        # Behind rows of SYS tables that cannot be decoded nothing is known of the dictionary.
        ending = self._order.first_fault(self._is_followed)
        limit = self.watermark if ending is None else min(self.watermark, ending.commit_scn)
        known = (t for t in self._dictionary if t.commit_scn < limit)
        ready = sorted(known, key=lambda t: t.order)
        since = self._follower.apply(ready)
        if since is not None:
            # The newest split reaches past it, however far it got.
            last = len(self._states) - 1
            self._go_back(
                next((i for i, (_, end) in enumerate(self._states) if end >= since), last)
            )
            _log.info("decoding again with the new dictionary", scn=since, splits=len(self.again))
            return True
        self._dictionary = [t for t in self._dictionary if t.commit_scn >= self.watermark]
        return False

    def _go_back(self, first: int) -> None:
        """Undo the splits from a number on."""
        assert self._follower is not None
        self.rewinds += 1
        undone = [state.source._replace(again=True) for state, _ in self._states[first:]]
        state, _ = self._states[first]
        self._states = self._states[:first]
        self.subscription = self._follower.subscription()
        self._assembler = state.assembler
        self._assembler.use(self.subscription.row_plan, self.subscription.tables)
        self._order.go_back(state.order)
        self._dictionary = list(state.dictionary)
        self._watermarks = Watermarks(state.watermarks)
        self._reached = state.reached
        self.tally, self.account = state.tally, state.account
        self._table_rows = np.zeros(3 * len(self.subscription.tables), np.int64)
        self._table_rows[: state.table_rows.size] = state.table_rows
        self._losses = self._losses.for_tables(self.subscription.tables)
        self.again = undone

    # --- leaving ---

    def _keep_faults(self, faults: Iterable[RowFault]) -> None:
        for fault in faults:
            wanted = self._is_delivered(fault) or self._is_followed(fault)
            if fault.begin_scn >= self._start_scn and wanted and not self._filters.drop(fault):
                self._order.take_fault(fault)

    def _keep_dictionary(self, transactions: Iterable[DictionaryTransaction]) -> None:
        for transaction in transactions:
            position = CommitPosition(*transaction.position)
            self._order.check_in_time(transaction.commit_scn, position)
            self._dictionary.append(transaction)

    def _is_delivered(self, fault: RowFault) -> bool:
        """Whether the table of a fault is a client's."""
        delivered = self.subscription.row_plan.delivered
        return not delivered.size or bool(delivered[fault.table])

    def _is_followed(self, fault: RowFault) -> bool:
        """Whether a fault hides something of the dictionary that its snapshot does not know."""
        followed = self.subscription.row_plan.followed
        return (
            self._follower is not None
            and bool(followed.size and followed[fault.table])
            and fault.commit_scn > self._follower.snapshot_scn
        )

    def _ends_delivery(self, fault: RowFault) -> bool:
        """Whether nobody can be told that the table's changes are missing."""
        is_alone = self._follower is None or self._follower.ends_delivery
        return is_alone or self._is_followed(fault)

    def _leave(self) -> list[ReadyRun]:
        """The transactions that may leave now, in order; `failure` where these are the last."""
        limit = self.watermark
        end = None if self._follower is None else self._follower.end
        if end is not None and end.commit_scn < limit:
            self.failure, limit = end.evolution.error, end.commit_scn + 1
        fault = self._order.first_fault(self._ends_delivery)
        if fault is not None and fault.commit_scn < limit:
            self.failure, limit = fault.error, fault.commit_scn
        return self._order.release(limit)

    def _keep(self, parts: Iterable[Encoded]) -> None:
        for part in parts:
            view = self.subscription.views[part.view]
            order = ByteOrder.BIG if view.big_endian else ByteOrder.LITTLE
            run = ready_run(part.transactions, part.messages, order, part.view)
            wanted = run.begin_scn >= np.uint64(self._start_scn)
            self._order.take(run.where(self._delivered(part) & wanted))

    def _delivered(self, part: Encoded) -> npt.NDArray[np.bool_]:
        """Which transactions of a part are not left out; those that are, are counted."""
        delivered = self._filters.delivered(part.transactions, part.view)
        # What one target does not want, another may: the account is of what was decoded.
        if len(self.subscription.views) == 1:
            count_left_out(self.account, part.transactions, delivered)
        return delivered
