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
minimum (each transaction enters and leaves it once), so that a confirmation costs the same however
many transactions wait.

The bound: the queue is full when `transactions_max` transactions wait to be transmitted, or when
*sent* and *ready* together take `bytes_max` bytes (each transaction counts with its messages and
`TRANSACTION_BYTES` for keeping it), but never while *ready* is empty. `put` waits while it is full.
Transmitted transactions count in bytes only: they cost memory, but a client that batches many
small ones does what it should. Were the unconfirmed ones simply counted to the end, a client that
confirms T only after it has seen a transaction later than T — one that fills a batch, or one that
must know that no other transaction shares the commit SCN — would wait for the decoder while the
decoder waits for it. So: a client that holds back more than the bound gets one transaction at a
time beyond it, what it holds back is its own doing and is reported (4016, `QueueStatus.held_back`),
and neither side ever waits for the other. A transaction larger than `bytes_max` is taken in when
*ready* is empty, by the same rule; the largest one that is transmitted is nothing to report.

Where there are several targets, each with a queue, a client that is slow must not hold the decoder
up for the others. Then the queue has a *backlog* on disk: what finds the queue full goes behind it
there, and comes back when *ready* is empty; only a full backlog is a full queue.

An object is one run of replication: one client, one StartSCN. `close` ends it from either side and
wakes the decoder; a run is never reused.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.errors import OlrPgError
from olr_pg.ordering.ready_transactions import (
    SMALL_BYTES,
    JoinedMessages,
    ReadyRun,
    appended,
    joined,
    prepended,
)
from olr_pg.server.confirmed_memory import ConfirmedMessages
from olr_pg.server.held_back import HeldBack
from olr_pg.server.lowest_begin import LowestBegin
from olr_pg.server.taken_messages import (
    TakenBefore,
    TakenMessages,
    check_commit_order,
    next_messages,
)
from olr_pg.wire.protocol import ANSWER_BYTES, Batch

if TYPE_CHECKING:
    from olr_pg.server.backlog import Backlog

TRANSACTIONS_MAX: Final = 10_000
BYTES_MAX: Final = 100 << 20
_MESSAGES_MIN: Final = 2
"""Of a transaction: Begin and Commit."""


class QueueStatus(NamedTuple):
    """The content of the queue in numbers.

    Attributes:
        ready: transactions whose first message has not been taken.
        transmitting: 0 or 1.
        transmitted: waiting for confirmation.
        held_bytes: of all three, `TRANSACTION_BYTES` for each included.
        full: `put` would wait.
        held_back: the bound is passed for the sake of a client that does not confirm.
        next_scn: commit SCN of the first transaction that is not transmitted; None without one.
        spilled, spilled_bytes: those of `ready` that are in the backlog, not in `held_bytes`.
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


class ReadyQueue:
    """The queue of one run: see the module's theory of operation. Any thread may call any method.

    Args:
        transactions_max: `context.memory.max-tx-msgs`, of those that wait to be transmitted.
        bytes_max: of everything held.
        backlog: where what finds the queue full goes; None: nowhere.
    """

    def __init__(
        self,
        transactions_max: int = TRANSACTIONS_MAX,
        bytes_max: int = BYTES_MAX,
        backlog: Backlog | None = None,
    ) -> None:
        self._transactions_max = transactions_max
        self._bytes_max = bytes_max
        self._backlog = backlog
        self._sent: deque[ReadyRun] = deque()
        self._ready: deque[ReadyRun] = deque()
        self._confirmed = ConfirmedMessages()
        self._sent_count = self._ready_count = 0
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
        """Append committed transactions, up to the first that finds the queue full.

        Returns:
            How many were taken in; none where the queue is closed.

        Raises:
            OlrPgError: 4015, a commit SCN is lower than that of the one before.
        """
        with self._changed:
            if self._closed or not run:
                return 0
            check_commit_order(run, self._last_commit_scn)
            taken = self._append(run)
            if taken:
                self._last_commit_scn = run.cut(taken)[0].last_commit_scn
            self._look_at_held_back()
            return taken

    def await_room(self, run: ReadyRun, timeout: float | None = None) -> bool:
        """Wait until there is room for the first transaction of a run, or the queue is closed.

        Args:
            timeout: seconds; None = for ever.

        Returns:
            Whether either is so.
        """
        size = run.cut(1)[0].cost
        with self._changed:
            return self._changed.wait_for(lambda: self._closed or self._has_room(size), timeout)

    def _append(self, run: ReadyRun) -> int:
        """Append them; return how many there was room for."""
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
        """Append them in memory; return how many there was room for."""
        room = max(self._transactions_max - self._ready_count, 0)
        first, _ = run.cut(min(room, len(run)))
        count = first.count_fitting(self._bytes_max - self._held_bytes)
        if not (count or self._ready):
            count = 1
        if count:
            taken, _ = run.cut(count)
            self._lowest.put(taken)
            self._hold(taken)
        return count

    def _hold(self, run: ReadyRun) -> None:
        """Keep a run behind what is ready; with a small one before it, in one."""
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
        """Note that decoding cannot go on: what is ready is delivered, then `take` raises this."""
        with self._changed:
            self._failure = error
            self._changed.notify_all()

    # the client's side

    def take(self, messages: int, *, stop_scn: int = -1, bytes_max: int = ANSWER_BYTES) -> Batch:
        """Take the next messages, in order.

        Args:
            messages: at most so many (at least 1).
            stop_scn: end where a transaction with a commit SCN up to this ends, because the next
                request confirms it.
            bytes_max: at most so many bytes, but always one message.

        Returns:
            At least one message, unless nothing is ready.

        Raises:
            OlrPgError: the decoder's failure, once nothing is ready before it.
        """
        parts = JoinedMessages()
        count = 0
        with self._changed:
            while count < messages and bytes_max > 0 and self._refill():
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
            self._changed.notify_all()  # the bound gives way to what is transmitted
            if count == 0 and self._failure is not None:
                raise self._failure
        return Batch(parts.joined(), count)

    @property
    def sent_scn(self) -> int | None:
        """The highest commit SCN of which a message was taken; None before the first."""
        return self._sent_scn

    def confirm(self, scn: int) -> int:
        """Drop every transmitted transaction with commit SCN up to `scn`; return how many."""
        with self._changed:
            count = self._count_sent(scn)
            self._sent_count -= count
            left = count
            while left:
                run = self._sent.popleft()
                gone, rest = run.cut(min(left, len(run)))
                left -= len(gone)
                self._held_bytes -= gone.cost
                self._confirmed.add(gone)
                if rest:
                    self._sent.appendleft(rest)
            if count:
                self._lowest.drop(count)
                self._look_at_held_back()
                self._changed.notify_all()
            return count

    def rewind(self, scn: int) -> None:
        """Answer BackToSCN: see the theory of operation."""
        with self._changed:
            self._begun = TakenBefore()
            while self._sent and self._sent[-1].last_commit_scn > scn:
                run = self._sent.pop()
                kept, again = run.cut(run.count_up_to(scn))
                if kept:
                    self._sent.append(kept)
                self._sent_count -= len(again)
                self._ready_count += len(again)
                if not prepended(self._ready, again):
                    self._ready.appendleft(again)

    # both sides

    def confirms(self, scn: int) -> bool:
        """Tell whether `confirm(scn)` would drop anything."""
        with self._changed:
            return bool(self._sent) and self._sent[0].first_commit_scn <= scn

    def lowest_begin_scn(self, confirming: int = -1) -> int | None:
        """Return the lowest begin SCN of what is held, less what `confirm(confirming)` would drop.

        None where nothing is left.
        """
        with self._changed:
            return self._lowest.lowest(dropping=self._count_sent(confirming))

    def lowest_commit_scn(self, confirming: int = -1) -> int | None:
        """Return the lowest commit SCN of what is held, less what `confirm(confirming)` would drop.

        None where nothing is left; 0 where nothing is left in memory, but in the backlog.
        """
        with self._changed:
            for run in self._sent:
                dropped = run.count_up_to(confirming)
                if dropped < len(run):
                    return run.cut(dropped)[1].first_commit_scn
            if self._ready:
                return self._ready[0].first_commit_scn
            return 0 if self._backlog is not None and self._backlog.transactions else None

    def is_empty(self) -> bool:
        """Tell whether every transaction put so far is confirmed."""
        with self._changed:
            return self._is_empty

    def close(self) -> None:
        """End the run: `put` returns False from now on; what is ready can still be taken."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    @property
    def bounds(self) -> tuple[int, int]:
        """Transactions and bytes past which `put` waits."""
        return self._transactions_max, self._bytes_max

    @property
    def closed(self) -> bool:
        """Tell whether `close` was called."""
        return self._closed

    def wait_until_confirmed(self, timeout: float | None = None) -> bool:
        """Wait until every transaction put so far is confirmed, or the queue is closed.

        Args:
            timeout: seconds; None = for ever.

        Returns:
            Whether all are confirmed.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._is_empty, timeout)
            return self._is_empty

    def is_calm(self) -> bool:
        """Tell whether it is so far from full that it will not soon be again."""
        with self._changed:
            return (
                (self._backlog is None or not self._backlog.transactions)
                and 2 * self._held_bytes <= self._bytes_max
                and 2 * self._ready_count <= self._transactions_max
            )

    def status(self) -> QueueStatus:
        """Return what the queue holds now."""
        with self._changed:
            transmitting = 1 if self._begun.messages else 0
            backlog = self._backlog
            spilled = 0 if backlog is None else backlog.transactions
            return QueueStatus(
                ready=self._ready_count - transmitting + spilled,
                transmitting=transmitting,
                transmitted=self._sent_count,
                held_bytes=self._held_bytes,
                full=not self._has_room(backlog.size // spilled if backlog and spilled else 0),
                held_back=self._held_back.now,
                next_scn=self._ready[0].first_commit_scn if self._ready else None,
                spilled=spilled,
                spilled_bytes=0 if backlog is None else backlog.size,
            )

    def _is_full(self, size: int) -> bool:
        return bool(self._ready) and (
            self._ready_count >= self._transactions_max or self._held_bytes + size > self._bytes_max
        )

    @property
    def _is_empty(self) -> bool:
        spilled = self._backlog is not None and self._backlog.transactions
        return not (self._sent or self._ready or spilled)

    def _refill(self) -> bool:
        """Tell whether anything is ready; what is next in the backlog is fetched for that."""
        if not self._ready and self._backlog is not None and self._backlog.transactions:
            try:
                for run in self._backlog.pop():
                    self._hold(run)
            except OlrPgError as error:
                # The run is over: what comes behind must not be delivered without it.
                self._failure, self._closed = error, True
                self._backlog.clear()
                return False
        return bool(self._ready)

    def _count_sent(self, scn: int) -> int:
        """Count the transmitted transactions that commit at `scn` or before."""
        count = 0
        for run in self._sent:
            found = run.count_up_to(scn)
            count += found
            if found < len(run):
                break
        return count

    def _take_some(
        self, messages: int, bytes_max: int, stop_scn: int, *, must: bool
    ) -> TakenMessages:
        """Take whole transactions, or messages of the next one.

        Args:
            stop_scn: whole ones are no more than one where it commits at this SCN or before.
            must: whether it has to be one message at least.
        """
        head = self._ready[0]
        one_by_one = messages < _MESSAGES_MIN or self._begun.messages
        whole = 0 if one_by_one else head.count_whole(messages, bytes_max)
        if not whole:
            return self._take_part(messages, bytes_max, must=must)
        sent = self._transmitted(1 if head.first_commit_scn <= stop_scn else whole)
        return TakenMessages(sent, sent.start, sent.start + sent.size, sent.messages)

    def _take_part(self, messages: int, bytes_max: int, *, must: bool) -> TakenMessages:
        """Take the next messages of the head of `_ready`.

        None where the first is too large, unless one `must` be.
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
        """Note that the first `count` of the head of `_ready` were taken to their end."""
        self._begun = TakenBefore()
        sent, rest = self._ready.popleft().cut(count)
        if rest:
            self._ready.appendleft(rest)
        self._ready_count -= count
        self._sent_count += count
        if not appended(self._sent, sent):
            self._sent.append(sent)
        return sent

    def _look_at_held_back(self) -> None:
        self._held_back.look(self._sent, self._ready, self._sent_count, self._held_bytes)
