"""The ready queue: committed transactions between the decoder and the one client.

Theory of operation
-------------------
A transaction enters in output format, as one run of framed messages, in ascending commit SCN (ties
in the order of their commit records, which is the order of `put`). It then lives through

    ready --first message taken--> transmitting --last one taken--> transmitted --confirmed--> gone

At most one is transmitting, and it is always the oldest that is not transmitted: the queue is two
lists laid end to end, *sent* (transmitted) and *ready* (whose head may be transmitting), in commit
order throughout. So every operation works at an end:

- `take` moves through the head of *ready* and then moves it to *sent*;
- `confirm(n)` drops from the head of *sent* while commit SCN ≤ n. Only transmitted transactions are
  confirmed, whatever n is: the one being transmitted stays, and 0 or an n lower than before drops
  nothing;
- `rewind(n)` (BackToSCN) moves from the tail of *sent* back to the head of *ready* while commit SCN
  > n, and sets the one being transmitted back to its Begin, whatever its commit SCN.

The lowest begin SCN of what is not confirmed is what a checkpoint needs. It is kept as a sliding
minimum (each transaction enters and leaves it once), so the cost of a confirmation does not depend
on the number of waiting transactions.

The limit: the queue is full when `transactions_max` transactions wait to be transmitted, or when
*sent* and *ready* together take `bytes_max` bytes (each transaction counts with its messages and
`TRANSACTION_BYTES`), but never while *ready* is empty. `put` waits while it is full. Transmitted
transactions count only in bytes, and never block the next one: otherwise a client that confirms T
only after it has received a later transaction would wait for the decoder, while the decoder waits
for the client. So a client whose unconfirmed transactions (without the largest) exceed the limit
still receives one transaction at a time. This is reported (4016, `QueueStatus.held_back`), and
there is no deadlock.

With several targets, each has a queue, and a slow client must not delay the decoder for the others.
Then the queue has a *backlog* on disk: when the queue is full, further transactions are appended to
the backlog, and return when *ready* is empty. The queue then counts as full only if the backlog is
full.

Events of tables (DDL, a change that cannot be decoded) are between the transactions, in the same
order (`queued_events`). `take` ends before such an event; the next `take` returns only the event.
*ready* counts as empty while the event waits for the transactions of its commit SCN.

An object is one run of replication: one client, one StartSCN. Either side ends it (`close`).
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import structlog

from olr_pg.errors import Code, OlrPgError
from olr_pg.files.mapped import release_pages
from olr_pg.ordering.ready_transactions import (
    SMALL_BYTES,
    JoinedMessages,
    ReadyRun,
    appended,
    joined,
    prepended,
)
from olr_pg.scalars import format_xid
from olr_pg.server.queued_events import EVENT_BYTES, QueuedEvents
from olr_pg.wire.offsets import message_run
from olr_pg.wire.protocol import ANSWER_BYTES, Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from olr_pg.ordering.ready_transactions import U64, ReadyBatch, ReadyRun
    from olr_pg.server.backlog import Backlog
    from olr_pg.transactions.schema_event import SchemaEvent

_log = structlog.get_logger(__name__)

TRANSACTIONS_MAX: Final = 10_000
BYTES_MAX: Final = 100 << 20
_MESSAGES_MIN: Final = 2
"""Minimum messages of a transaction: Begin and Commit."""
_SIZE_BYTES: Final = 4
_TOGETHER: Final = 256
"""Number of transactions that become one section of `LowestBegin`, if they arrive in smaller
runs.
"""
_PIECE_BYTES: Final = 1 << 20
"""Minimum memory that is released at once, because each release is a system call."""


class ReadyQueue:
    """The queue of one run; see the module. Thread-safe.

    Args:
        transactions_max: `context.memory.max-tx-msgs`, limit of transactions that wait to be
            transmitted.
        bytes_max: limit of bytes of everything held.
        backlog: stores transactions when the queue is full; None for no backlog.
        told: called when something was put; must not block.
    """

    def __init__(
        self,
        transactions_max: int = TRANSACTIONS_MAX,
        bytes_max: int = BYTES_MAX,
        backlog: Backlog | None = None,
        told: Callable[[], None] = lambda: None,
    ) -> None:
        self._told = told
        self._transactions_max = transactions_max
        self._bytes_max = bytes_max
        self._backlog = backlog
        self._sent = Transmitted()
        self._ready: deque[ReadyRun] = deque()
        self._confirmed = ConfirmedMessages()
        self._ready_count = 0
        self._events = QueuedEvents(min(transactions_max, bytes_max // EVENT_BYTES))
        self._begun = TakenBefore()  # how far the head of _ready is transmitted
        self._held_bytes = 0
        self._lowest = LowestBegin()  # over _sent, then _ready
        self._last_commit_scn = -1
        self._sent_scn: int | None = None
        self._held_back = HeldBack(bytes_max)
        self._failure: OlrPgError | None = None
        self._closed = False
        self._changed = threading.Condition()

    # the decoder's side

    def put(self, run: ReadyRun) -> bool:
        """Append committed transactions; wait before each one that finds the queue full.

        Until this returns, the decoder must count the transactions among its open ones.

        Returns:
            False if the queue is closed (before or while waiting): not all of the transactions are
            taken in and the decoder is to stop.

        Raises:
            OlrPgError: 4015, a commit SCN is lower than that of the one before.
        """
        while not self._closed:
            _, run = run.cut(self.offer(run))
            if not run:
                return True
            self.await_room(run)
        return False

    def offer(self, run: ReadyRun) -> int:
        """Append committed transactions until the queue is full.

        Returns:
            The number of appended transactions; 0 if the queue is closed.

        Raises:
            OlrPgError: 4015, a commit SCN is lower than that of the one before.
        """
        with self._changed:
            if self._closed or not run:
                return 0
            check_commit_order(run, self._last_commit_scn)
            # A run in commit order ends earlier events.
            self._events.pass_scn(run.first_commit_scn - 1)
            taken = self._append(run)
            if taken:
                self._last_commit_scn = run.cut(taken)[0].last_commit_scn
                self._told()
            self._held_back.look(self._sent.runs, self._ready, self._sent.count, self._held_bytes)
            return taken

    def await_room(self, run: ReadyRun, timeout: float | None = None) -> bool:
        """Wait until there is space for the first transaction of a run, or the queue is closed.

        Args:
            timeout: seconds; None for no limit.

        Returns:
            Whether one of them is the case.
        """
        size = run.cut(1)[0].cost
        with self._changed:
            return self._changed.wait_for(lambda: self._closed or self._has_room(size), timeout)

    def put_event(self, event: SchemaEvent) -> None:
        """Append an event of a table, at its position in commit order; it does not wait."""
        with self._changed:
            place = self._transmitted_count + self._ready_count + self._spilled
            self._events.put(event, place)
            if event.is_of_rows:
                self._events.pass_scn(event.commit_scn - 1)
            self._told()

    def await_event_room(self, event: SchemaEvent, timeout: float) -> bool:
        """Wait like `await_room`, for an event; everything that commits before it was already
        put.
        """
        with self._changed:
            events = self._events
            events.pass_scn(event.commit_scn - 1)
            return self._changed.wait_for(lambda: self._closed or events.has_room(event), timeout)

    def await_closed(self, timeout: float) -> bool:
        """Wait until the queue is closed; return whether it is after so many seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self._closed, timeout)

    def pass_scn(self, scn: int) -> None:
        """Record that everything that commits at or before this SCN was put."""
        with self._changed:
            self._events.pass_scn(scn)

    def abandon(self, scn: int) -> None:
        """Record that other redo replaces the redo from this SCN on."""
        with self._changed:
            self._events.abandon(scn)

    def _append(self, run: ReadyRun) -> int:
        """Append a run; return how many transactions fitted."""
        backlog = self._backlog
        if backlog is None:
            return self._append_ready(run)
        taken = 0 if backlog.transactions else self._append_ready(run)
        _, rest = run.cut(taken)
        spilled, _ = rest.cut(backlog.append(rest) if rest else 0)
        if spilled:
            self._lowest.put(spilled, roughly=True)
        return taken + len(spilled)

    def _append_ready(self, run: ReadyRun) -> int:
        """Append a run in memory; return how many transactions fitted."""
        room = max(self._transactions_max - self._ready_count, 0)
        first, _ = run.cut(min(room, len(run)))
        count = first.count_fitting(self._bytes_max - self._held_bytes)
        if not (count or self._has_next):
            count = 1
        if count:
            taken, _ = run.cut(count)
            self._lowest.put(taken)
            self._hold(taken)
        return count

    def _hold(self, run: ReadyRun) -> None:
        """Append a run to what is ready; join it with a small run before it."""
        ready = self._ready
        self._ready_count += len(run)
        self._held_bytes += run.cost
        if appended(ready, run):
            return
        if ready and ready[-1].size + run.size <= SMALL_BYTES and ready[-1].alike(run):
            run = joined([ready.pop(), run])
        ready.append(run)

    def _has_room(self, size: int) -> bool:
        backlog = self._backlog
        if backlog is None or not backlog.transactions:
            return not self._is_full(size)
        return backlog.has_room(size)

    def fail(self, error: OlrPgError) -> None:
        """Record that decoding has failed: what is ready is delivered, then `take` raises the
        error.
        """
        with self._changed:
            self._failure = error
            self._changed.notify_all()
            self._told()

    # the client's side

    def take(self, messages: int, *, stop_scn: int = -1, bytes_max: int = ANSWER_BYTES) -> Batch:
        """Take the next messages, in order, or the event before them.

        Args:
            messages: the maximum number (at least 1).
            stop_scn: end after a transaction with a commit SCN up to this, because the next request
                confirms it.
            bytes_max: the maximum bytes, but at least one message.

        Returns:
            At least one message, or an event, unless nothing is ready.

        Raises:
            OlrPgError: the decoder's failure, when nothing is ready before it.
        """
        parts = JoinedMessages()
        count = 0
        with self._changed:
            while count < messages and bytes_max > 0 and self._refill():
                if self._events.ahead(self._transmitted_count) == 0:
                    break
                taken = self._take_some(messages - count, bytes_max, stop_scn, must=count == 0)
                if taken.messages == 0:
                    break
                parts.add(taken.run.batch, taken.first, taken.end)
                self._sent_scn = max(self._sent_scn or 0, taken.run.last_commit_scn)
                count += taken.messages
                bytes_max -= taken.end - taken.first
                if self._begun.messages == 0 and taken.run.last_commit_scn <= stop_scn:
                    break
            self._refill()
            self._changed.notify_all()  # transmitted transactions may exceed the limit
            if count == 0 and self._events.is_due(self._transmitted_count):
                return Batch(b"", 0, self._take_event())
            if count == 0 and self._failure is not None:
                raise self._failure
        return Batch(parts.joined(), count)

    def _take_event(self) -> SchemaEvent:
        event = self._events.take()
        if not event.past:
            self._sent_scn = max(self._sent_scn or 0, event.commit_scn)
        return event

    @property
    def sent_scn(self) -> int | None:
        """The highest commit SCN of the taken messages; None before the first."""
        return self._sent_scn

    def confirm(self, scn: int) -> int:
        """Drop all transmitted transactions with commit SCN up to `scn`; return their number."""
        with self._changed:
            events = self._events.confirm(scn)
            count = self._sent.count_up_to(scn)
            for gone in self._sent.confirm(count):
                self._held_bytes -= gone.cost
                self._confirmed.add(gone)
            if count:
                self._lowest.drop(count)
                self._held_back.look(
                    self._sent.runs, self._ready, self._sent.count, self._held_bytes
                )
            if count or events:
                self._changed.notify_all()
            return count + events

    def rewind(self, scn: int) -> None:
        """Answer BackToSCN; see the module."""
        with self._changed:
            self._begun = TakenBefore()
            self._events.rewind(scn)
            for again in self._sent.take_back(scn):
                self._ready_count += len(again)
                if not prepended(self._ready, again):
                    self._ready.appendleft(again)

    # both sides

    def confirms(self, scn: int) -> bool:
        """Return whether `confirm(scn)` would drop anything."""
        with self._changed:
            return self._sent.confirms(scn) or self._events.confirms(scn)

    def lowest_begin_scn(self, confirming: int = -1) -> int | None:
        """Return the lowest begin SCN of what is held, without what `confirm(confirming)` would
        drop.

        None if nothing remains.
        """
        with self._changed:
            lowest = self._lowest.lowest(dropping=self._sent.count_up_to(confirming))
            return lower_of(lowest, self._events.lowest_begin_scn(confirming))

    def lowest_commit_scn(self, confirming: int = -1) -> int | None:
        """Return the lowest commit SCN of what is held, without what `confirm(confirming)` would
        drop.

        None if nothing remains; 0 if only the backlog has transactions.
        """
        with self._changed:
            lowest = self._lowest_transaction(confirming)
            return lower_of(lowest, self._events.lowest_commit_scn(confirming))

    def _lowest_transaction(self, confirming: int) -> int | None:
        transmitted = self._sent.first_commit_scn(confirming)
        if transmitted is not None:
            return transmitted
        if self._ready:
            return self._ready[0].first_commit_scn
        return 0 if self._spilled else None

    def is_empty(self) -> bool:
        """Return whether everything put so far is confirmed."""
        with self._changed:
            return self._is_empty

    def close(self) -> None:
        """End the run: `put` returns False from now on; ready transactions can still be taken."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    @property
    def bounds(self) -> tuple[int, int]:
        """The limits, in transactions and bytes, above which `put` waits."""
        return self._transactions_max, self._bytes_max

    @property
    def closed(self) -> bool:
        """Return whether `close` was called."""
        return self._closed

    def wait_until_confirmed(self, timeout: float | None = None) -> bool:
        """Wait until every transaction put so far is confirmed, or the queue is closed.

        Args:
            timeout: seconds; None for no limit.

        Returns:
            Whether all are confirmed.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._is_empty, timeout)
            return self._is_empty

    def is_calm(self) -> bool:
        """Return whether the queue is far enough from full that it will not soon be full again."""
        with self._changed:
            is_half = 2 * self._held_bytes > self._bytes_max
            return not (self._spilled or is_half or 2 * self._ready_count > self._transactions_max)

    def status(self) -> QueueStatus:
        """Return the current contents of the queue in numbers."""
        with self._changed:
            transmitting = 1 if self._begun.messages else 0
            backlog, spilled = self._backlog, self._spilled
            return QueueStatus(
                ready=self._ready_count - transmitting + spilled,
                transmitting=transmitting,
                transmitted=self._sent.count,
                held_bytes=self._held_bytes,
                full=not self._has_room(backlog.size // spilled if backlog and spilled else 0),
                held_back=self._held_back.now,
                next_scn=self._ready[0].first_commit_scn if self._ready else None,
                spilled=spilled,
                spilled_bytes=0 if backlog is None else backlog.size,
                events=self._events.ready,
            )

    def _is_full(self, size: int) -> bool:
        return self._has_next and (
            self._ready_count >= self._transactions_max or self._held_bytes + size > self._bytes_max
        )

    @property
    def _is_empty(self) -> bool:
        return not (self._sent.count or self._ready or self._spilled) and self._events.is_empty

    @property
    def _spilled(self) -> int:
        """The number of transactions in the backlog."""
        return 0 if self._backlog is None else self._backlog.transactions

    @property
    def _transmitted_count(self) -> int:
        """The number of transactions that were taken whole, without those that are sent again after
        a rewind.
        """
        return self._sent.confirmed + self._sent.count

    @property
    def _has_next(self) -> bool:
        """Return whether a ready transaction or event can be taken."""
        return bool(self._ready) and not self._events.is_in_the_way(self._transmitted_count)

    def _refill(self) -> bool:
        """Return whether anything is ready; read from the backlog if needed."""
        if not self._ready and self._backlog is not None and self._spilled:
            try:
                for run in self._backlog.pop():
                    self._hold(run)
            except OlrPgError as error:
                # The run has ended: later transactions must not be delivered without those that
                # cannot be read.
                self._failure, self._closed = error, True
                self._backlog.clear()
                return False
        return bool(self._ready)

    def _take_some(
        self, messages: int, bytes_max: int, stop_scn: int, *, must: bool
    ) -> TakenMessages:
        """Take whole transactions, or messages of the next one.

        Args:
            stop_scn: if the first transaction commits at or before this SCN, take only that one.
            must: whether at least one message must be taken.
        """
        head = self._ready[0]
        ahead = self._events.ahead(self._transmitted_count)
        if ahead is not None:
            head, _ = head.cut(min(ahead, len(head)))
        one_by_one = messages < _MESSAGES_MIN or self._begun.messages
        whole = 0 if one_by_one else head.count_whole(messages, bytes_max)
        if not whole:
            return self._take_part(messages, bytes_max, must=must)
        sent = self._transmitted(1 if head.first_commit_scn <= stop_scn else whole)
        return TakenMessages(sent, sent.start, sent.start + sent.size, sent.messages)

    def _take_part(self, messages: int, bytes_max: int, *, must: bool) -> TakenMessages:
        """Take messages of the head of `_ready`; none if the first is too large, unless `must`."""
        head, _ = self._ready[0].cut(1)
        part = next_messages(head, self._begun, messages, bytes_max, must=must)
        taken = self._begun.messages + part.messages
        if taken == head.messages:
            self._transmitted(1)
        else:
            self._begun = TakenBefore(taken, part.end - head.start)
        return part

    def _transmitted(self, count: int) -> ReadyRun:
        """Record that the first `count` transactions of the head of `_ready` were taken
        completely.
        """
        self._begun = TakenBefore()
        sent, rest = self._ready.popleft().cut(count)
        if rest:
            self._ready.appendleft(rest)
        self._ready_count -= count
        self._sent.add(sent)
        return sent


# --- what it holds, in numbers ---


class QueueStatus(NamedTuple):
    """The content of the queue in numbers.

    Attributes:
        ready: transactions whose first message has not been taken.
        transmitting: 0 or 1.
        transmitted: transactions that wait for confirmation.
        held_bytes: bytes of all three, including `TRANSACTION_BYTES` for each.
        full: `put` would wait.
        held_back: the limit is exceeded because the client does not confirm.
        next_scn: commit SCN of the first transaction that is not transmitted; None without one.
        spilled, spilled_bytes: those of `ready` in the backlog; not part of `held_bytes`.
        events: events of tables that have not been taken.
    """

    ready: int
    transmitting: int
    transmitted: int
    held_bytes: int
    full: bool
    held_back: bool
    next_scn: int | None = None
    spilled: int = 0
    spilled_bytes: int = 0
    events: int = 0


# --- what is taken at the head of *ready* ---


class TakenMessages(NamedTuple):
    """Messages that are taken: bytes `first` to `end` of the messages in the run's batch.

    They are those of whole transactions, or a part of one transaction.
    """

    run: ReadyRun
    first: int
    end: int
    messages: int


class TakenBefore(NamedTuple):
    """The messages of the head transaction that were already taken, and their bytes."""

    messages: int = 0
    size: int = 0


def check_commit_order(run: ReadyRun, last: int) -> None:
    """Check that the transactions of a run are in commit order, the first at `last` or later.

    Raises:
        OlrPgError: 4015, a commit SCN is lower than that of the one before.
    """
    scns = run.commit_scn
    if run.first_commit_scn >= last and (scns[1:] >= scns[:-1]).all():
        return
    for one in run.transactions():
        if one.commit_scn < last:
            raise OlrPgError(
                Code.OUT_OF_COMMIT_ORDER,
                f"commit SCN {one.commit_scn} after {last}",
                xid=format_xid(one.xid),
                **one.position.place(),
            )
        last = one.commit_scn


def next_messages(
    head: ReadyRun, begun: TakenBefore, messages: int, bytes_max: int, *, must: bool
) -> TakenMessages:
    """Return the next messages of one transaction.

    Args:
        begun: what was already taken of it.
        messages: the maximum number.
        bytes_max: the maximum bytes; none are returned if the first message is larger, unless
            `must`.
    """
    batch, start, end = head.batch, head.start + begun.size, head.start + head.size
    left = head.messages - begun.messages
    if messages >= left and end - start <= bytes_max:
        return TakenMessages(head, start, end, left)
    most, count, big = min(messages, left), 0, batch.order.is_big
    if most > 1:
        blob = np.frombuffer(batch.part(start, min(start + bytes_max, end)), np.uint8)
        count, size = message_run(blob, 0, big, most, bytes_max)
        end = start + size
    if count == 0:
        size = int.from_bytes(batch.part(start, start + _SIZE_BYTES), batch.order.value)
        count, end = 1, start + _SIZE_BYTES + size
        if end - start > bytes_max and not must:
            return TakenMessages(head, start, start, 0)
    return TakenMessages(head, start, end, count)


# --- *sent* ---


class Transmitted:
    """Transmitted transactions, in commit order; the queue holds the lock.

    Attributes:
        count: their number.
        confirmed: the number of confirmed transactions before them.
    """

    def __init__(self) -> None:
        self._runs: deque[ReadyRun] = deque()
        self.count = 0
        self.confirmed = 0

    @property
    def runs(self) -> Collection[ReadyRun]:
        """The runs, in order."""
        return self._runs

    def add(self, run: ReadyRun) -> None:
        """Append a run."""
        self.count += len(run)
        if not appended(self._runs, run):
            self._runs.append(run)

    def count_up_to(self, scn: int) -> int:
        """Count the transactions that commit at `scn` or before."""
        count = 0
        for run in self._runs:
            found = run.count_up_to(scn)
            count += found
            if found < len(run):
                break
        return count

    def confirms(self, scn: int) -> bool:
        """Return whether any commits at `scn` or before."""
        return bool(self._runs) and self._runs[0].first_commit_scn <= scn

    def first_commit_scn(self, confirming: int) -> int | None:
        """Return the commit SCN of the first transaction after SCN `confirming`; None if there is
        none.
        """
        for run in self._runs:
            dropped = run.count_up_to(confirming)
            if dropped < len(run):
                return run.cut(dropped)[1].first_commit_scn
        return None

    def confirm(self, count: int) -> Iterator[ReadyRun]:
        """Remove and yield the first `count`."""
        self.count -= count
        self.confirmed += count
        while count:
            run = self._runs.popleft()
            gone, rest = run.cut(min(count, len(run)))
            count -= len(gone)
            if rest:
                self._runs.appendleft(rest)
            yield gone

    def take_back(self, scn: int) -> Iterator[ReadyRun]:
        """Remove and yield the transactions that commit after `scn`, the last ones first."""
        while self._runs and self._runs[-1].last_commit_scn > scn:
            run = self._runs.pop()
            kept, again = run.cut(run.count_up_to(scn))
            if kept:
                self._runs.append(kept)
            self.count -= len(again)
            yield again


# --- the lowest begin SCN ---


class _Stretch(NamedTuple):
    """Transactions number `first` to `end` (exclusive) in the order of arrival.

    Attributes:
        lowest: their lowest begin SCN.
        begins: shape (end - first), the begin SCN of each; None if only `lowest` is known.
    """

    first: int
    end: int
    lowest: int
    begins: U64 | None


class LowestBegin:
    """A sliding minimum of begin SCNs: sections with a higher minimum than a later one are dropped.

    Each section is added and removed once, so the cost of a query does not depend on their number.
    """

    def __init__(self) -> None:
        self._stretches: deque[_Stretch] = deque()
        self._put = 0
        self._dropped = 0

    def put(self, run: ReadyRun, *, roughly: bool = False) -> None:
        """Add transactions.

        Args:
            roughly: keep only their minimum, which counts until the last of them is dropped.
        """
        lowest, stretches = run.lowest_begin_scn, self._stretches
        first, self._put = self._put, self._put + len(run)
        begins = None if roughly else run.begin_scn
        while stretches and stretches[-1].lowest >= lowest:
            stretches.pop()
        if stretches and self._put - stretches[-1].first <= _TOGETHER:
            before = stretches.pop()
            # What was undercut between them is as good as what undercut it.
            gap = np.full(first - before.end, lowest, np.uint64)
            both = begins is not None and before.begins is not None
            begins = np.concatenate([before.begins, gap, begins]) if both else None
            first, lowest = before.first, before.lowest
        stretches.append(_Stretch(first, self._put, lowest, begins))

    def drop(self, count: int) -> None:
        """Remove the oldest `count`."""
        self._dropped += count
        while self._stretches and self._stretches[0].end <= self._dropped:
            self._stretches.popleft()

    def lowest(self, dropping: int = 0) -> int | None:
        """Return the minimum of all but the oldest `dropping`; None if none remain."""
        gone = self._dropped + dropping
        found: int | None = None
        for stretch in self._stretches:
            if stretch.end <= gone:
                continue
            if stretch.begins is None or stretch.first >= gone:
                return stretch.lowest if found is None else min(found, stretch.lowest)
            # Those behind `gone` may be above the next stretch's, which is above all of these.
            found = int(stretch.begins[gone - stretch.first :].min())
        return found


def lower_of(one: int | None, other: int | None) -> int | None:
    """Return the lower of two SCNs, each of which can be None."""
    return min((scn for scn in (one, other) if scn is not None), default=None)


# --- a client that does not confirm ---


class HeldBack:
    """Detects that the limit is exceeded because a client does not confirm, and logs changes.

    Args:
        bytes_max: the limit of the queue.

    Attributes:
        now: the result of the last check.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self.now = False

    def look(
        self, sent: Collection[ReadyRun], ready: Collection[ReadyRun], count: int, held_bytes: int
    ) -> None:
        """Log once when a client's unconfirmed transactions exceed the limit, and once when they
        are at half of it.

        Args:
            sent, ready: the lists of the queue.
            count: transactions of `sent`.
            held_bytes: bytes of both.
        """
        if self.now:
            over = bool(sent) and held_bytes > self._bytes_max // 2
        else:
            over = held_bytes > self._bytes_max and self._is_over(sent, ready, held_bytes)
        if over == self.now:
            return
        self.now = over
        reason = OlrPgError(
            Code.CONFIRMATIONS_HELD_BACK,
            f"{count} transmitted transactions, {held_bytes} bytes in all",
            bytes_max=self._bytes_max,
        )
        if over:
            _log.warning(
                "the client does not confirm the transactions it received",
                code=reason.label,
                reason=str(reason),
                action=reason.action,
            )
        else:
            _log.info("the client confirms transactions again", code=reason.label)

    def _is_over(
        self, sent: Collection[ReadyRun], ready: Collection[ReadyRun], held_bytes: int
    ) -> bool:
        """Return whether a client's unconfirmed transactions, except the largest, exceed the limit.

        The largest can have any size, and is not confirmed before it is applied.
        """
        size = held_bytes - sum(run.cost for run in ready)
        return size > self._bytes_max and (
            size - max((run.largest_cost for run in sent), default=0) > self._bytes_max
        )


# --- the memory of confirmed messages ---


class ConfirmedMessages:
    """Messages of transactions in the order of confirmation, one run after the other.

    A batch is kept until its last transaction is confirmed. If its messages are in a mapped file,
    the pages of confirmed ones are released earlier; otherwise many times a log's size would be in
    memory.
    """

    def __init__(self) -> None:
        self._batch: weakref.ref[ReadyBatch] | None = None
        self._first = 0
        self._end = 0

    def add(self, run: ReadyRun) -> None:
        """Append a run."""
        batch = None if self._batch is None else self._batch()
        if run.batch is not batch or run.start != self._end:
            self._batch, self._first = weakref.ref(run.batch), run.start
        self._end = run.start + run.size
        if self._end - self._first >= _PIECE_BYTES:
            if isinstance(run.batch.blob, memoryview):
                release_pages(run.batch.blob[self._first : self._end])
            self._first = self._end
