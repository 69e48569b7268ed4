"""The ready queue: committed transactions that the decoder has finished for one client.

Theory of operation
-------------------
The decoder adds transactions in output format, as contiguous framed messages, in the order of their
commit SCNs. Transactions with the same commit SCN are in the order of their commit records. Each
transaction goes through these states:

    ready --first message taken--> transmitting --last one taken--> transmitted --confirmed--> gone

At most one transaction is in the state *transmitting*: the oldest one that is not transmitted. The
queue consists of two lists, both in commit order: *sent* (transmitted transactions), followed by
*ready*, whose first transaction can be *transmitting*. So each operation works at one end of a
list:

- `take` returns the messages of the first transaction of *ready*, and after the last message moves
  the transaction to *sent*;
- `confirm(n)` removes transactions from the head of *sent* while their commit SCN ≤ n. `confirm`
  confirms only transmitted transactions: whatever n is, the transaction that is being transmitted
  stays. An n of 0, or lower than in an earlier call, removes nothing;
- `rewind(n)` (BackToSCN) moves transactions from the tail of *sent* back to the head of *ready*
  while their commit SCN > n. Whatever n is, the transaction that is being transmitted is sent again
  from its Begin on.

A checkpoint needs the lowest begin SCN of the unconfirmed transactions. This SCN is computed as a
sliding minimum: each transaction is added once and removed once, so the cost of a confirmation does
not depend on the number of waiting transactions.

The limit: the queue is full if `transactions_max` transactions wait to be transmitted, or if *sent*
and *ready* together need `bytes_max` bytes. A transaction counts with the size of its messages plus
`TRANSACTION_BYTES`. The queue is never full while *ready* is empty. `put` waits while the queue is
full.

Transmitted transactions count only in bytes, and never block the next transaction. Otherwise there
could be a deadlock with a client that confirms a transaction only after it has received a later
transaction: the client would wait for the decoder, and the decoder for the client. So if the
unconfirmed transactions of a client (without the largest) exceed the limit, the client still
receives one transaction at a time. The server reports such a client (4016,
`QueueStatus.held_back`).

If there are several targets, each has its own queue, and a slow client must not delay the decoder
for the others. Therefore a queue then has a *backlog* on disk. When the memory limit is reached,
further transactions are appended to the backlog. These transactions are read back when *ready* is
empty. A queue with a backlog counts as full only if its backlog is full.

The queue also contains events of tables (DDL, or a change that cannot be decoded), at their
positions between the transactions (`queued_events`). `take` stops before an event; the next `take`
returns only the event. While an event waits for the other transactions with its commit SCN, *ready*
counts as empty.

Before further messages, the bundled applier also takes the incarnations of the source, when these
have changed (`announce`). Incarnations have no position of their own and need no confirmation: the
applier stores them before it asks for more messages, and it can store them repeatedly.

A queue belongs to one run of replication: one client and one StartSCN. Both the decoder and the
client can end it (`close`).
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
from olr_pg.observability.wording import counted
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
from olr_pg.wire.messages import message_run
from olr_pg.wire.protocol import ANSWER_BYTES, Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from olr_pg.ordering.ready_transactions import U64, ReadyBatch
    from olr_pg.server.backlog import Backlog
    from olr_pg.transactions.schema_event import Ancestry, SchemaEvent

_log = structlog.get_logger(__name__)

TRANSACTIONS_MAX: Final = 10_000
BYTES_MAX: Final = 100 << 20
_MESSAGES_MIN: Final = 2
"""Minimum number of messages of a transaction: Begin and Commit."""
_SIZE_BYTES: Final = 4
_TOGETHER: Final = 256
"""Maximum number of transactions that are joined to one section of `LowestBegin`, if they arrive in
smaller runs.
"""
_PIECE_BYTES: Final = 1 << 20
"""Minimum bytes of memory that are released at once, because each release is a system call."""


class QueueBounds(NamedTuple):
    """The limits of a ready queue.

    Attributes:
        backlog: stores ready transactions beyond these limits; None to let decoding wait instead.
    """

    transactions_max: int = TRANSACTIONS_MAX
    bytes_max: int = BYTES_MAX
    backlog: Backlog | None = None


USUAL_BOUNDS: Final = QueueBounds()


class ReadyQueue:
    """The ready queue of one run of replication; see the module. Thread-safe.

    Args:
        transactions_max: maximum number of transactions that wait to be transmitted
            (`context.memory.max-tx-msgs`).
        bytes_max: maximum bytes of all transactions in memory.
        backlog: stores transactions when the queue is full; None for no backlog.
        told: called when something was added; must not block.
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
        self._begun = TakenBefore()  # the transmitted part of the head of _ready
        self._held_bytes = 0
        self._lowest = LowestBegin()  # of _sent, _ready and the backlog
        self._last_commit_scn = -1
        self._sent_scn: int | None = None
        self._held_back = HeldBack(bytes_max)
        self._failure: OlrPgError | None = None
        self._ancestry: Ancestry | None = None
        self._is_announced = False
        self._closed = False
        self._changed = threading.Condition()

    # the decoder's side

    def put(self, run: ReadyRun) -> bool:
        """Append committed transactions; wait whenever the queue is full.

        Until `put` returns, the decoder must count the transactions as open.

        Returns:
            False if the queue was closed before all transactions were appended; then the decoder
            must stop.

        Raises:
            OlrPgError: 4015, a commit SCN is lower than the previous one.
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
            OlrPgError: 4015, a commit SCN is lower than the previous one.
        """
        with self._changed:
            if self._closed or not run:
                return 0
            check_commit_order(run, self._last_commit_scn)
            # Because runs are in commit order, all transactions before this run were put.
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
            True if there is space or the queue is closed; False after the timeout.
        """
        size = run.cut(1)[0].cost
        with self._changed:
            return self._changed.wait_for(lambda: self._closed or self._has_room(size), timeout)

    def put_event(self, event: SchemaEvent) -> None:
        """Append an event of a table, at its position in commit order. This never waits."""
        with self._changed:
            place = self._transmitted_count + self._ready_count + self._spilled
            self._events.put(event, place)
            if event.is_of_rows:
                self._events.pass_scn(event.commit_scn - 1)
            self._told()

    def await_event_room(self, event: SchemaEvent, timeout: float) -> bool:
        """Wait until an event can be put, or the queue is closed; return False after a timeout. All
        transactions that commit before the event must already be put.
        """
        with self._changed:
            events = self._events
            events.pass_scn(event.commit_scn - 1)
            return self._changed.wait_for(lambda: self._closed or events.has_room(event), timeout)

    def await_closed(self, timeout: float) -> bool:
        """Wait until the queue is closed, at most `timeout` seconds; return whether it is
        closed.
        """
        with self._changed:
            return self._changed.wait_for(lambda: self._closed, timeout)

    def pass_scn(self, scn: int) -> None:
        """Record that all transactions that commit at or before this SCN were put."""
        with self._changed:
            self._events.pass_scn(scn)

    def abandon(self, scn: int) -> None:
        """Record that a RESETLOGS has orphaned the redo from this SCN on; other redo replaces
        it.
        """
        with self._changed:
            self._events.abandon(scn)

    def announce(self, ancestry: Ancestry) -> None:
        """Let the client take the incarnations of the source, before everything that is put from
        now on.
        """
        with self._changed:
            self._ancestry, self._is_announced = ancestry, False
            self._told()

    def _append(self, run: ReadyRun) -> int:
        """Append a run in memory or to the backlog; return the number of appended transactions."""
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
        """Append a run in memory; return the number of appended transactions."""
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
        """Append a run to *ready*; join it with the previous run if both are small."""
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
        """Record that decoding has failed. Ready transactions are still delivered; then `take`
        raises the error.
        """
        with self._changed:
            self._failure = error
            self._told()

    # the client's side

    def take(self, messages: int, *, stop_scn: int = -1, bytes_max: int = ANSWER_BYTES) -> Batch:
        """Take the next messages in order, or the event that precedes them, or the incarnations of
        the source.

        Args:
            messages: the maximum number of messages (at least 1).
            stop_scn: stop after completing a transaction with a commit SCN up to this, because the
                next request would confirm it.
            bytes_max: the maximum bytes; one message is returned even if it is larger.

        Returns:
            At least one message, or an event, unless nothing is ready.

        Raises:
            OlrPgError: the decoder's failure, if nothing is ready any more.
        """
        parts = JoinedMessages()
        count = 0
        with self._changed:
            if self._must_announce():
                self._is_announced = True
                return Batch(b"", 0, self._ancestry)
            while count < messages and bytes_max > 0 and self._refill():
                if self._must_announce():
                    break
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
            self._changed.notify_all()  # taking messages can make space
            if count == 0 and self._events.is_due(self._transmitted_count):
                return Batch(b"", 0, self._take_event())
            if count == 0 and self._failure is not None:
                raise self._failure
        return Batch(parts.joined(), count)

    def _must_announce(self) -> bool:
        """Return whether the client must take the incarnations before the next message. The
        messages of one transaction are not interrupted.
        """
        is_taken = self._is_announced or self._ancestry is None
        return not is_taken and self._begun.messages == 0

    def _take_event(self) -> SchemaEvent:
        event = self._events.take()
        if not event.past:
            self._sent_scn = max(self._sent_scn or 0, event.commit_scn)
        return event

    @property
    def sent_scn(self) -> int | None:
        """The highest commit SCN of the taken messages; None before the first message."""
        return self._sent_scn

    def confirm(self, scn: int) -> int:
        """Drop all transmitted transactions and events with a commit SCN up to `scn`; return their
        number.
        """
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
            # The client discards what it has received, maybe also the incarnations.
            self._is_announced = False
            self._events.rewind(scn)
            for again in self._sent.take_back(scn):
                self._ready_count += len(again)
                if not prepended(self._ready, again):
                    self._ready.appendleft(again)

    # both sides

    def confirms(self, scn: int) -> bool:
        """Return whether `confirm(scn)` would drop a transaction, or an event that a restart
        needs.
        """
        with self._changed:
            return self._sent.confirms(scn) or self._events.confirms(scn)

    def lowest_begin_scn(self, confirming: int = -1) -> int | None:
        """Return the lowest begin SCN of the unconfirmed transactions and events, without those
        that `confirm(confirming)` would drop.

        None if nothing remains.
        """
        with self._changed:
            lowest = self._lowest.lowest(dropping=self._sent.count_up_to(confirming))
            return lower_of(lowest, self._events.lowest_begin_scn(confirming))

    def lowest_commit_scn(self, confirming: int = -1) -> int | None:
        """Return the lowest commit SCN of the unconfirmed transactions and events, without those
        that `confirm(confirming)` would drop.

        None if nothing remains; 0 if all remaining transactions are in the backlog.
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
        """End the run. From now on, `put` returns False; ready transactions can still be taken."""
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
        """Wait until all transactions put so far are confirmed, or the queue is closed.

        Args:
            timeout: seconds; None for no limit.

        Returns:
            Whether all are confirmed.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._is_empty, timeout)
            return self._is_empty

    def is_calm(self) -> bool:
        """Return whether the queue is at most half full and its backlog is empty, so that it will
        not be full soon.
        """
        with self._changed:
            is_half = 2 * self._held_bytes > self._bytes_max
            return not (self._spilled or is_half or 2 * self._ready_count > self._transactions_max)

    def status(self) -> QueueStatus:
        """Return numbers about the current content of the queue."""
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
        """The number of completely taken transactions, without those that a rewind has made ready
        again.
        """
        return self._sent.confirmed + self._sent.count

    @property
    def _has_next(self) -> bool:
        """Return whether a ready transaction or event can be taken."""
        return bool(self._ready) and not self._events.is_in_the_way(self._transmitted_count)

    def _refill(self) -> bool:
        """Return whether a transaction is ready; if not, first read some from the backlog."""
        if not self._ready and self._backlog is not None and self._spilled:
            try:
                for run in self._backlog.pop():
                    self._hold(run)
            except OlrPgError as error:
                # End the run, because later transactions must not be delivered without the
                # unreadable ones.
                self._failure, self._closed = error, True
                self._backlog.clear()
                return False
        return bool(self._ready)

    def _take_some(
        self, messages: int, bytes_max: int, stop_scn: int, *, must: bool
    ) -> TakenMessages:
        """Take complete transactions, or some messages of the next transaction.

        Args:
            stop_scn: if the first transaction commits at or before this SCN, take only this
                transaction.
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
        """Take messages of the first transaction in `_ready`. If the first message is too large,
        take none, unless `must` is True.
        """
        head, _ = self._ready[0].cut(1)
        part = next_messages(head, self._begun, messages, bytes_max, must=must)
        taken = self._begun.messages + part.messages
        if taken == head.messages:
            self._transmitted(1)
        else:
            self._begun = TakenBefore(taken, part.end - head.start)
        return part

    def _transmitted(self, count: int) -> ReadyRun:
        """Record that the first `count` transactions of the first run in `_ready` were taken
        completely.
        """
        self._begun = TakenBefore()
        sent, rest = self._ready.popleft().cut(count)
        if rest:
            self._ready.appendleft(rest)
        self._ready_count -= count
        self._sent.add(sent)
        return sent


# --- status ---


class QueueStatus(NamedTuple):
    """Numbers about the content of a queue.

    Attributes:
        ready: the number of transactions of which no message was taken.
        transmitting: 1 if some, but not all messages of a transaction were taken, else 0.
        transmitted: the number of transactions that wait for confirmation.
        held_bytes: bytes of the transactions in memory, including `TRANSACTION_BYTES` for each.
        full: whether `put` would wait.
        held_back: whether the limit is exceeded because the client does not confirm.
        next_scn: the commit SCN of the first transaction that is not transmitted; None if there is
            none.
        spilled, spilled_bytes: the number and bytes of the transactions in the backlog.
            Transactions in the backlog count in `ready`, but not in `held_bytes`.
        events: the number of events of tables that were not taken.
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


# --- taking messages from the head of *ready* ---


class TakenMessages(NamedTuple):
    """Messages taken from the queue: in the batch of `run`, the bytes from `first` up to, but not
    including, `end`.

    The range contains all messages of one or more transactions, or a part of one transaction's
    messages.
    """

    run: ReadyRun
    first: int
    end: int
    messages: int


class TakenBefore(NamedTuple):
    """The number of messages of the first transaction that were already taken, and their bytes."""

    messages: int = 0
    size: int = 0


def check_commit_order(run: ReadyRun, last: int) -> None:
    """Check that the transactions of a run are in commit order, and that the first commits at
    `last` or later.

    Raises:
        OlrPgError: 4015, a commit SCN is lower than the previous one.
    """
    scns = run.commit_scn
    if run.first_commit_scn >= last and (scns[1:] >= scns[:-1]).all():
        return
    for one in run.transactions():
        if one.commit_scn < last:
            raise OlrPgError(
                Code.OUT_OF_COMMIT_ORDER,
                f"a transaction with commit SCN {one.commit_scn} came after {last}",
                xid=format_xid(one.xid),
                **one.position.place(),
            )
        last = one.commit_scn


def next_messages(
    head: ReadyRun, begun: TakenBefore, messages: int, bytes_max: int, *, must: bool
) -> TakenMessages:
    """Return the next messages of one transaction.

    Args:
        begun: the messages that were already taken.
        messages: the maximum number of messages.
        bytes_max: the maximum bytes. If the first message is larger, no message is returned, unless
            `must` is True.
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
    """Transmitted transactions, in commit order. The queue calls the methods with its lock held.

    Attributes:
        count: the number of transactions.
        confirmed: the number of transactions that were confirmed and removed so far.
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
        """Return the number of transactions that commit at or before `scn`."""
        count = 0
        for run in self._runs:
            found = run.count_up_to(scn)
            count += found
            if found < len(run):
                break
        return count

    def confirms(self, scn: int) -> bool:
        """Return whether a transaction commits at or before `scn`."""
        return bool(self._runs) and self._runs[0].first_commit_scn <= scn

    def first_commit_scn(self, confirming: int) -> int | None:
        """Return the commit SCN of the first transaction that commits after `confirming`; None if
        there is none.
        """
        for run in self._runs:
            dropped = run.count_up_to(confirming)
            if dropped < len(run):
                return run.cut(dropped)[1].first_commit_scn
        return None

    def confirm(self, count: int) -> Iterator[ReadyRun]:
        """Remove and yield the first `count` transactions."""
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
        """Remove the transactions that commit after `scn`, and yield them as runs, the last run
        first.
        """
        while self._runs and self._runs[-1].last_commit_scn > scn:
            run = self._runs.pop()
            kept, again = run.cut(run.count_up_to(scn))
            if kept:
                self._runs.append(kept)
            self.count -= len(again)
            yield again


# --- the lowest begin SCN ---


class _Stretch(NamedTuple):
    """A section of transactions: those with the numbers `first` to `end` − 1 in the order of
    arrival.

    Attributes:
        lowest: the lowest begin SCN of these transactions.
        begins: shape (end - first); the begin SCN of each transaction; None if only `lowest` is
            known.
    """

    first: int
    end: int
    lowest: int
    begins: U64 | None


class LowestBegin:
    """A sliding minimum of begin SCNs. If a later section has a lower or equal minimum, the earlier
    section is dropped, because it cannot contain the overall minimum.

    Each section is added once and removed once, so the average cost does not depend on the number
    of transactions.
    """

    def __init__(self) -> None:
        self._stretches: deque[_Stretch] = deque()
        self._put = 0
        self._dropped = 0

    def put(self, run: ReadyRun, *, roughly: bool = False) -> None:
        """Add transactions.

        Args:
            roughly: whether to store only the minimum of the run. If True, the minimum counts until
                the last transaction of the run is dropped.
        """
        lowest, stretches = run.lowest_begin_scn, self._stretches
        first, self._put = self._put, self._put + len(run)
        begins = None if roughly else run.begin_scn
        while stretches and stretches[-1].lowest >= lowest:
            stretches.pop()
        if stretches and self._put - stretches[-1].first <= _TOGETHER:
            before = stretches.pop()
            # Transactions between both sections were dropped, because the new minimum is lower.
            # Fill the gap with this minimum.
            gap = np.full(first - before.end, lowest, np.uint64)
            both = begins is not None and before.begins is not None
            begins = np.concatenate([before.begins, gap, begins]) if both else None
            first, lowest = before.first, before.lowest
        stretches.append(_Stretch(first, self._put, lowest, begins))

    def drop(self, count: int) -> None:
        """Remove the oldest `count` transactions."""
        self._dropped += count
        while self._stretches and self._stretches[0].end <= self._dropped:
            self._stretches.popleft()

    def lowest(self, dropping: int = 0) -> int | None:
        """Return the minimum of all transactions except the oldest `dropping`; None if none
        remain.
        """
        gone = self._dropped + dropping
        found: int | None = None
        for stretch in self._stretches:
            if stretch.end <= gone:
                continue
            if stretch.begins is None or stretch.first >= gone:
                return stretch.lowest if found is None else min(found, stretch.lowest)
            # The remaining transactions of this section can be above the next section's minimum,
            # although the section's own minimum is below it. So compare with the next section too.
            found = int(stretch.begins[gone - stretch.first :].min())
        return found


def lower_of(one: int | None, other: int | None) -> int | None:
    """Return the lower of two SCNs. Each can be None; the result is None if both are."""
    return min((scn for scn in (one, other) if scn is not None), default=None)


# --- a client that does not confirm ---


class HeldBack:
    """Detects whether the limit is exceeded because a client does not confirm, and logs when this
    changes.

    Args:
        bytes_max: the limit of the queue.

    Attributes:
        now: whether the limit was exceeded at the last check.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self.now = False

    def look(
        self, sent: Collection[ReadyRun], ready: Collection[ReadyRun], count: int, held_bytes: int
    ) -> None:
        """Log once when a client's unconfirmed transactions exceed the limit, and once when the
        queue is down to half of the limit.

        Args:
            sent, ready: the two lists of the queue.
            count: the number of transactions in `sent`.
            held_bytes: the bytes of both lists.
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
            f"{counted(count, 'unconfirmed transaction')} with {held_bytes:,} bytes in total",
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

        The largest transaction does not count, because it can have any size, and a client cannot
        confirm it before it has applied it.
        """
        size = held_bytes - sum(run.cost for run in ready)
        return size > self._bytes_max and (
            size - max((run.largest_cost for run in sent), default=0) > self._bytes_max
        )


# --- the memory of confirmed messages ---


class ConfirmedMessages:
    """Releases the memory of confirmed messages. Runs are added in the order of confirmation.

    A batch is kept until its last transaction is confirmed. If the messages of a batch are in a
    mapped file, the memory pages of confirmed messages are released earlier. Otherwise, many times
    the size of a log could be in memory.
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
