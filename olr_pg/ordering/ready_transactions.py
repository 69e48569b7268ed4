"""Committed transactions in output format, which are processed in groups.

Theory of operation
-------------------
Transactions that the encoder wrote together stay together in memory: a `ReadyBatch` contains the
messages of n transactions, one after the other, and one array for each property. Operations
(waiting for other redo threads, queueing, delivery, confirmation, undoing) always affect
consecutive transactions. So the operations work on a `ReadyRun`: a batch, the number of a first
transaction, and an end. To cut a run takes the same time for any length, because no work is done
per transaction.

Transactions of a batch are in commit order: by commit SCN, then by `CommitPosition`.

A `Release` passes transactions from the merger to the queues of ready transactions, some at a time.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.redo.column_tables import take
from olr_pg.redo.commit_position import CommitPosition
from olr_pg.transactions import select
from olr_pg.transactions.finished import commit_order
from olr_pg.wire.encoder import EncodedTransactions, Form
from olr_pg.wire.frames import Buffer, ByteOrder
from olr_pg.wire.protocol import TRANSACTION_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, MutableSequence, Sequence

    from olr_pg.transactions.finished_columns import TransactionColumns
    from olr_pg.transactions.waiting_storage import StoredBytes

_first_key = attrgetter("first_key")

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]

SMALL_BYTES: Final = 64 << 10
"""Runs below this size are joined, because each run that is stored costs about a kilobyte."""


CommitKey = tuple[int, CommitPosition]
"""Commit SCN and position; transactions are delivered in this order."""


class ReadyTransaction(NamedTuple):
    """One committed transaction, for code that handles single transactions.

    Attributes:
        xid: packed as `olr_pg.scalars.pack_xid`.
        begin_scn: SCN at which it began.
        commit_scn: SCN of its COMMIT.
        position: the position of its commit record.
        blob: framed Data messages: Begin, row changes, Commit.
        messages: the number of messages in `blob`.
    """

    xid: int
    begin_scn: int
    commit_scn: int
    position: CommitPosition
    blob: memoryview
    messages: int


class ReadyColumns(NamedTuple):
    """Transactions in commit order, one row each; fields as in `TransactionColumns`.

    Attributes:
        delay, thread, sequence, block, offset: see `CommitPosition`.
    """

    xid: U64
    begin_scn: U64
    commit_scn: U64
    delay: npt.NDArray[np.uint32]
    thread: npt.NDArray[np.uint16]
    sequence: npt.NDArray[np.uint32]
    block: npt.NDArray[np.uint32]
    offset: npt.NDArray[np.uint16]


@dataclass(slots=True, eq=False, frozen=True, weakref_slot=True)
class ReadyBatch:
    """n committed transactions in output format.

    Attributes:
        columns: n rows.
        first: shape (n + 1); the offset in `blob` at which the messages of each transaction begin,
            and the end of the last.
        message_first: shape (n + 1); the number of messages before each transaction, and of all.
        blob: the framed Data messages of all transactions, without gaps; for a large transaction on
            disk, an object that reads them.
        order: byte order of the blob.
        view: the number of the view, if the targets receive different data.
        form: the format of the blob, which can contain other data than messages.
    """

    columns: ReadyColumns
    first: I64
    message_first: I64
    blob: memoryview | StoredBytes
    order: ByteOrder = ByteOrder.LITTLE
    view: int = 0
    form: Form = Form.MESSAGES

    def part(self, first: int, end: int) -> memoryview:
        """Return bytes `first` to `end` of the messages."""
        if isinstance(self.blob, memoryview):
            return self.blob[first:end]
        return self.blob.read(first, end - first)

    def key(self, number: int) -> CommitKey:
        """Return commit SCN and position of one transaction."""
        columns = self.columns
        position = (int(getattr(columns, name)[number]) for name in CommitPosition._fields)
        return int(columns.commit_scn[number]), CommitPosition(*position)


@dataclass(slots=True, eq=False)
class ReadyRun:
    """Transactions `first` to `end` (exclusive) of a batch. The properties of a `ReadyRun` describe
    only these transactions. The length of a run is the number of its transactions.
    """

    batch: ReadyBatch
    first: int
    end: int

    def __len__(self) -> int:
        return self.end - self.first

    @property
    def start(self) -> int:
        """The offset in the batch's `blob` at which the messages begin."""
        return int(self.batch.first[self.first])

    @property
    def size(self) -> int:
        """The size of the messages in bytes."""
        return int(self.batch.first[self.end] - self.batch.first[self.first])

    @property
    def messages(self) -> int:
        """The number of messages."""
        bounds = self.batch.message_first
        return int(bounds[self.end] - bounds[self.first])

    @property
    def cost(self) -> int:
        """The approximate bytes of memory that the transactions need."""
        return self.size + TRANSACTION_BYTES * len(self)

    @property
    def largest_cost(self) -> int:
        """The `cost` of the largest transaction; there must be at least one transaction."""
        sizes = np.diff(self.batch.first[self.first : self.end + 1])
        return int(sizes.max()) + TRANSACTION_BYTES

    @property
    def blob(self) -> memoryview:
        """The messages, in memory."""
        return self.batch.part(self.start, self.start + self.size)

    @property
    def bounds(self) -> I64:
        """Shape (length + 1); the offset in `blob` at which the messages of each transaction begin,
        and the end of the last.
        """
        bounds: I64 = self.batch.first[self.first : self.end + 1] - self.batch.first[self.first]
        return bounds

    @property
    def columns(self) -> ReadyColumns:
        """The rows of the batch's columns that describe these transactions."""
        return take(self.batch.columns, slice(self.first, self.end))

    @property
    def begin_scn(self) -> U64:
        """Shape (length)."""
        return self.batch.columns.begin_scn[self.first : self.end]

    @property
    def commit_scn(self) -> U64:
        """Shape (length), ascending."""
        return self.batch.columns.commit_scn[self.first : self.end]

    @property
    def lowest_begin_scn(self) -> int:
        """The lowest begin SCN; there must be at least one transaction."""
        return int(self.begin_scn.min())

    @property
    def first_commit_scn(self) -> int:
        """The commit SCN of the first transaction; there must be at least one transaction."""
        return int(self.batch.columns.commit_scn[self.first])

    @property
    def last_commit_scn(self) -> int:
        """The commit SCN of the last transaction; there must be at least one transaction."""
        return int(self.batch.columns.commit_scn[self.end - 1])

    @property
    def first_key(self) -> CommitKey:
        """The first transaction's key; there must be at least one transaction."""
        return self.batch.key(self.first)

    @property
    def last_key(self) -> CommitKey:
        """The last transaction's key; there must be at least one transaction."""
        return self.batch.key(self.end - 1)

    def alike(self, other: ReadyRun) -> bool:
        """Return whether two runs can be joined."""
        mine, its = self.batch, other.batch
        return (mine.order, mine.view, mine.form) == (its.order, its.view, its.form)

    def cut(self, count: int) -> tuple[ReadyRun, ReadyRun]:
        """Split the run into the first `count` transactions and the others."""
        middle = self.first + count
        return ReadyRun(self.batch, self.first, middle), ReadyRun(self.batch, middle, self.end)

    def count_up_to(self, scn: int) -> int:
        """Count the transactions that commit at `scn` or before."""
        if scn < 0:
            return 0
        limit = np.uint64(min(scn, np.iinfo(np.uint64).max))
        return int(self.commit_scn.searchsorted(limit, side="right"))

    def count_up_to_key(self, key: CommitKey) -> int:
        """Count the transactions up to `key` in commit order."""
        count = self.count_up_to(key[0] - 1)
        while self.first + count < self.end and self.batch.key(self.first + count) <= key:
            count += 1
        return count

    def count_before_key(self, key: tuple[int, tuple[int, ...]]) -> int:
        """Count the transactions before `key` in commit order."""
        count = self.count_up_to(key[0] - 1)
        while self.first + count < self.end and self.batch.key(self.first + count) < key:
            count += 1
        return count

    def count_fitting(self, cost: int) -> int:
        """Return how many transactions, counted from the first one, together have at most this
        `cost`.
        """
        bounds = self.batch.first[self.first : self.end + 1]
        costs = bounds[1:] - bounds[0] + TRANSACTION_BYTES * np.arange(1, len(self) + 1)
        return int(costs.searchsorted(cost, side="right"))

    def count_whole(self, messages: int, size: int) -> int:
        """Return how many transactions, counted from the first one, together have at most this many
        messages and bytes.
        """
        batch, first = self.batch, self.first
        ends = batch.first[first + 1 : self.end + 1]
        message_ends = batch.message_first[first + 1 : self.end + 1]
        by_size = ends.searchsorted(int(batch.first[first]) + size, side="right")
        limit = int(batch.message_first[first]) + messages
        return int(min(by_size, message_ends.searchsorted(limit, side="right")))

    def where(self, wanted: npt.NDArray[np.bool_]) -> ReadyRun:
        """Return a run of the wanted transactions. The data is copied if these transactions are not
        consecutive.

        Args:
            wanted: shape (length).
        """
        if wanted.all():
            return self
        edges = np.flatnonzero(np.diff(wanted, prepend=False, append=False)).tolist()
        runs = zip(edges[::2], edges[1::2], strict=True)
        first = self.first
        kept = [ReadyRun(self.batch, first + start, first + end) for start, end in runs]
        return joined(kept) if kept else ReadyRun(self.batch, first, first)

    def alone(self) -> ReadyBatch:
        """Return a batch that contains only these transactions; the messages are not copied."""
        batch, bounds = self.batch, slice(self.first, self.end + 1)
        is_whole = len(self) == len(batch.columns.xid)
        return ReadyBatch(
            self.columns,
            batch.first[bounds] - batch.first[self.first],
            batch.message_first[bounds] - batch.message_first[self.first],
            batch.blob if is_whole else self.blob,
            batch.order,
            batch.view,
            batch.form,
        )

    def transactions(self) -> Iterator[ReadyTransaction]:
        """Yield the transactions one by one."""
        batch = self.batch
        for number in range(self.first, self.end):
            commit_scn, position = batch.key(number)
            yield ReadyTransaction(
                int(batch.columns.xid[number]),
                int(batch.columns.begin_scn[number]),
                commit_scn,
                position,
                batch.part(int(batch.first[number]), int(batch.first[number + 1])),
                int(batch.message_first[number + 1] - batch.message_first[number]),
            )


def ready_run(
    transactions: TransactionColumns,
    encoded: EncodedTransactions,
    order: ByteOrder,
    view: int = 0,
    stored: StoredBytes | None = None,
) -> ReadyRun:
    """Return a run of the encoder's output, without copying.

    Args:
        stored: an object that reads the messages from disk; None if they are in memory.
    """
    columns = ReadyColumns(
        transactions.xid,
        transactions.begin_scn,
        transactions.commit_scn,
        transactions.commit_delay,
        transactions.commit_thread,
        transactions.commit_sequence,
        transactions.commit_block,
        transactions.commit_offset,
    )
    messages = np.append(0, np.cumsum(encoded.messages))
    blob = encoded.blob.data if stored is None else stored
    return whole(ReadyBatch(columns, encoded.first, messages, blob, order, view, encoded.form))


def transactions_of(runs: Iterable[ReadyRun]) -> Iterator[ReadyTransaction]:
    """Yield the transactions of some runs, one by one."""
    for run in runs:
        yield from run.transactions()


def whole(batch: ReadyBatch) -> ReadyRun:
    """Return all transactions of a batch."""
    return ReadyRun(batch, 0, len(batch.columns.xid))


def joined(runs: Sequence[ReadyRun]) -> ReadyRun:
    """Join runs into a new run, in their order. The data is copied if there are several.

    Args:
        runs: at least one; all must be `alike`.
    """
    if len(runs) == 1:
        return runs[0]
    batches = [run.alone() for run in runs]
    blob = np.concatenate([np.frombuffer(run.blob, np.uint8) for run in runs])
    return whole(
        ReadyBatch(
            _columns_of(runs),
            _bounds([batch.first for batch in batches]),
            _bounds([batch.message_first for batch in batches]),
            blob.data,
            batches[0].order,
            batches[0].view,
            batches[0].form,
        )
    )


def _columns_of(runs: Iterable[ReadyRun]) -> ReadyColumns:
    """Concatenate the columns of runs."""
    parts = (run.columns for run in runs)
    return ReadyColumns(*map(np.concatenate, zip(*parts, strict=True)))


def _bounds(parts: Sequence[I64]) -> I64:
    """Concatenate bounds; each part's bounds start at 0."""
    sizes = np.concatenate([np.diff(part) for part in parts])
    return np.append(0, np.cumsum(sizes))


def appended(runs: MutableSequence[ReadyRun], run: ReadyRun) -> bool:
    """If `run` directly follows the last of `runs` in the same batch, extend the last one by it.
    Return whether that was done.
    """
    last = runs[-1] if runs else None
    if last is None or last.batch is not run.batch or last.end != run.first:
        return False
    runs[-1] = ReadyRun(run.batch, last.first, run.end)
    return True


def prepended(runs: MutableSequence[ReadyRun], run: ReadyRun) -> bool:
    """If `run` is in the same batch as the first of `runs`, and directly before it, join both.
    Return whether that was done.
    """
    head = runs[0] if runs else None
    if head is None or head.batch is not run.batch or run.end != head.first:
        return False
    runs[0] = ReadyRun(run.batch, run.first, head.end)
    return True


def by_view(runs: Iterable[ReadyRun]) -> dict[int, list[ReadyRun]]:
    """Group runs by their view, in unchanged order."""
    found: dict[int, list[ReadyRun]] = {}
    for run in runs:
        found.setdefault(run.batch.view, []).append(run)
    return found


def split_runs(runs: Iterable[ReadyRun], scn: int) -> tuple[list[ReadyRun], list[ReadyRun]]:
    """Split runs into the transactions that commit below `scn`, and the others."""
    before, rest = [], []
    for run in runs:
        first, others = run.cut(run.count_up_to(scn - 1))
        before += [first] if first else []
        rest += [others] if others else []
    return before, rest


def in_commit_order(runs: Iterable[ReadyRun]) -> list[ReadyRun]:
    """Bring the transactions of runs of one view into commit order, in new runs; small runs are
    joined.
    """
    ordered = sorted(filter(None, runs), key=_first_key)
    if any(one.last_key > next_one.first_key for one, next_one in pairwise(ordered)):
        ordered = _interleaved(ordered)
    return [joined(runs) for runs in _small_together(ordered)]


def _small_together(runs: Iterable[ReadyRun]) -> Iterator[list[ReadyRun]]:
    """Group adjacent runs that are alike, up to `SMALL_BYTES` per group. A larger run is a group of
    its own.
    """
    together: list[ReadyRun] = []
    size = 0
    for run in runs:
        size += run.size
        if together and (size > SMALL_BYTES or not run.alike(together[-1])):
            yield together
            together, size = [], run.size
        together.append(run)
    if together:
        yield together


def _interleaved(runs: Sequence[ReadyRun]) -> list[ReadyRun]:
    """Merge the transactions of several runs in commit order; return runs as long as possible."""
    columns = _columns_of(runs)
    order = commit_order(
        columns.commit_scn,
        columns.delay,
        columns.thread,
        columns.sequence,
        columns.block,
        columns.offset,
    )
    counts = np.array([len(run) for run in runs])
    owner = np.repeat(np.arange(len(runs)), counts)[order]
    number = select.runs(np.array([run.first for run in runs]), counts)[order]
    breaks = np.flatnonzero((np.diff(owner) != 0) | (np.diff(number) != 1)) + 1
    firsts = np.append(0, breaks)
    lengths = np.diff(np.append(firsts, len(order)))
    stretches = zip(owner[firsts].tolist(), number[firsts].tolist(), lengths.tolist(), strict=True)
    return [ReadyRun(runs[of].batch, first, first + length) for of, first, length in stretches]


class JoinedMessages:
    """Joins messages; messages that are consecutive in memory are taken as one slice."""

    def __init__(self) -> None:
        self._parts: list[memoryview] = []
        self._batch: ReadyBatch | None = None
        self._first = 0
        self._end = 0

    def add(self, batch: ReadyBatch, first: int, end: int) -> None:
        """Append bytes `first` to `end` of a batch's messages."""
        if batch is not self._batch or first != self._end:
            self._close()
            self._batch, self._first = batch, first
        self._end = end

    def _close(self) -> None:
        if self._batch is not None:
            self._parts.append(self._batch.part(self._first, self._end))

    def joined(self) -> Buffer:
        """Return all added messages."""
        self._close()
        self._batch = None
        return self._parts[0] if len(self._parts) == 1 else bytearray().join(self._parts)


_TOGETHER: Final = 256
"""Maximum number of transactions of a view that are queued in one step. The checkpoint cannot
advance past transactions that are not queued yet.
"""


class _Next(NamedTuple):
    """A run of a view, and the lowest begin SCN of this run and all later runs of the view."""

    run: ReadyRun
    lowest_begin_scn: int


class Release:
    """Transactions that the merger released in one step. The object is true while it contains
    transactions.

    Args:
        runs: the released runs, for each view in commit order.
    """

    def __init__(self, runs: Iterable[ReadyRun]) -> None:
        self._views = [_waiting(of_view) for of_view in by_view(runs).values()]

    def __bool__(self) -> bool:
        return bool(self._views)

    @property
    def first_commit_scn(self) -> int:
        """The lowest commit SCN of the remaining transactions."""
        return min(view[0].run.first_commit_scn for view in self._views)

    @property
    def lowest_begin_scn(self) -> int:
        """The lowest begin SCN of the remaining transactions."""
        return min(view[0].lowest_begin_scn for view in self._views)

    def take(self, barrier: int | None) -> tuple[list[ReadyRun], int]:
        """Remove the next transactions. Return all transactions that commit up to an SCN, and this
        SCN.

        Args:
            barrier: transactions that commit at this SCN or later are not returned; it is higher
                than `first_commit_scn`. None for no limit.
        """
        heads = [view[0].run for view in self._views]
        last = min(run.cut(min(len(run), _TOGETHER))[0].last_commit_scn for run in heads)
        if barrier is not None:
            last = min(last, barrier - 1)
        taken = [run for view in self._views for run in _take_up_to(view, last)]
        self._views = [view for view in self._views if view]
        return taken, last


def _waiting(runs: list[ReadyRun]) -> deque[_Next]:
    waiting: deque[_Next] = deque()
    for run in reversed(runs):
        _put_before(waiting, run)
    return waiting


def _put_before(waiting: deque[_Next], run: ReadyRun) -> None:
    lowest = run.lowest_begin_scn
    if waiting:
        lowest = min(lowest, waiting[0].lowest_begin_scn)
    waiting.appendleft(_Next(run, lowest))


def _take_up_to(waiting: deque[_Next], scn: int) -> list[ReadyRun]:
    taken = []
    while waiting and waiting[0].run.first_commit_scn <= scn:
        run = waiting.popleft().run
        now, later = run.cut(run.count_up_to(scn))
        taken.append(now)
        if later:
            _put_before(waiting, later)
    return taken
