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
from itertools import chain, dropwhile
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import structlog

from olr_pg.errors import OlrPgError
from olr_pg.scalars import format_xid
from olr_pg.server.ready import JoinedMessages, cost_of
from olr_pg.wire.offsets import message_run
from olr_pg.wire.protocol import ANSWER_BYTES, TRANSACTION_BYTES, Batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.server.backlog import Backlog
    from olr_pg.server.ready import ReadyTransaction

TRANSACTIONS_MAX: Final = 10_000
BYTES_MAX: Final = 42 << 20
_SIZE_BYTES: Final = 4

_PUT_TOGETHER: Final = 1_000
"""Transactions that are put at once: the client is not kept waiting longer."""

_NOTED_TOGETHER: Final = 256
"""Transactions of the backlog whose begin is noted as one: they may be many."""

_log = structlog.get_logger(__name__)


def _out_of_order(transaction: ReadyTransaction, last_commit_scn: int) -> OlrPgError:
    return OlrPgError(
        4015,
        f"commit SCN {transaction.commit_scn} after {last_commit_scn}",
        xid=format_xid(transaction.xid),
        **transaction.position._asdict(),
    )


class QueueStatus(NamedTuple):
    """What the queue holds.

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


class _Part(NamedTuple):
    """Consecutive messages of one transaction: bytes `first` to `end` of its blob."""

    first: int
    end: int
    messages: int


class ReadyQueue:
    """See the module's theory of operation. All methods may be called from any thread.

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
        self._sent: deque[ReadyTransaction] = deque()
        self._ready: deque[ReadyTransaction] = deque()
        # how far the head of _ready is transmitted
        self._taken_messages = 0
        self._taken_bytes = 0
        self._held_bytes = 0
        # sliding minimum of begin SCNs over _sent then _ready: (ordinal of put, begin SCN)
        self._lowest: deque[tuple[int, int]] = deque()
        self._put_count = 0
        self._dropped_count = 0
        self._last_commit_scn = -1
        self._held_back = False
        self._failure: OlrPgError | None = None
        self._closed = False
        self._changed = threading.Condition()

    # the decoder's side

    def put(self, transaction: ReadyTransaction) -> bool:
        """`put_all` of one transaction."""
        return self.put_all((transaction,))

    def put_all(self, transactions: Sequence[ReadyTransaction]) -> bool:
        """Append committed transactions; waits before each one that finds the queue full.

        Until this returns, the decoder must count the transactions among its open ones.

        Returns:
            False if the queue is closed (before or while waiting): not all of the transactions are
            taken in and the decoder is to stop.

        Raises:
            OlrPgError: 4015, a commit SCN is lower than that of the one before.
        """
        done = 0
        while not self._closed:
            part = transactions[done : done + _PUT_TOGETHER]
            taken = self.offer(part)
            done += taken
            if done == len(transactions):
                return True
            if taken < len(part):
                self.await_room(part[taken])
        return False

    def offer(self, transactions: Sequence[ReadyTransaction]) -> int:
        """Append committed transactions, up to the first that finds the queue full.

        Returns:
            How many were taken in; none where the queue is closed.

        Raises:
            OlrPgError: 4015, a commit SCN is lower than that of the one before.
        """
        with self._changed:
            taken = self._append_together(transactions)
            for transaction in transactions[taken:]:
                if self._closed or not self._append(transaction):
                    break
                taken += 1
            self._report_held_back()
            return taken

    def await_room(self, transaction: ReadyTransaction, timeout: float | None = None) -> bool:
        """Wait until there is room for a transaction, or the queue is closed.

        Args:
            timeout: seconds; None = for ever.

        Returns:
            Whether either is so.
        """
        size = cost_of(transaction)
        with self._changed:
            return self._changed.wait_for(lambda: self._closed or self._has_room(size), timeout)

    def _append_together(self, transactions: Sequence[ReadyTransaction]) -> int:
        """Append all of them where there is room for all; the common case of `_append`."""
        scns = [self._last_commit_scn, *(one.commit_scn for one in transactions)]
        size = sum(len(one.blob) for one in transactions) + TRANSACTION_BYTES * len(transactions)
        fits = (
            len(self._ready) + len(transactions) <= self._transactions_max
            and self._held_bytes + size <= self._bytes_max
            and (self._backlog is None or not self._backlog.transactions)
        )
        if self._closed or not fits or scns != sorted(scns):
            return 0
        self._ready.extend(transactions)
        self._held_bytes += size
        for one in transactions:
            self._note_lowest(one.begin_scn)
        self._last_commit_scn = scns[-1]
        return len(transactions)

    def _append(self, transaction: ReadyTransaction) -> bool:
        """Whether there was room for it."""
        size, backlog = cost_of(transaction), self._backlog
        if transaction.commit_scn < self._last_commit_scn:
            raise _out_of_order(transaction, self._last_commit_scn)
        if self._is_full(size) or (backlog is not None and backlog.transactions):
            if backlog is None or not backlog.append(transaction):
                return False
            self._note_lowest(transaction.begin_scn, together=_NOTED_TOGETHER)
        else:
            self._ready.append(transaction)
            self._held_bytes += size
            self._note_lowest(transaction.begin_scn)
        self._last_commit_scn = transaction.commit_scn
        return True

    def _has_room(self, size: int) -> bool:
        backlog = self._backlog
        if backlog is None or not backlog.transactions:
            return not self._is_full(size)
        return backlog.size + size <= backlog.bytes_max

    def fail(self, error: OlrPgError) -> None:
        """The decoder cannot go on: what is ready is still delivered, then `take` raises this."""
        with self._changed:
            self._failure = error
            self._changed.notify_all()

    # the client's side

    def take(self, messages: int, *, stop_scn: int = -1, bytes_max: int = ANSWER_BYTES) -> Batch:
        """The next messages, in order.

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
                head = self._ready[0]
                size = len(head.blob)
                if not (self._taken_messages or head.messages > messages - count
                        or size > bytes_max):  # fmt: skip
                    # The common case, whole: what `_take_part` would do.
                    parts.add(head)
                    count += head.messages
                    bytes_max -= size
                    self._sent.append(self._ready.popleft())
                    if head.commit_scn <= stop_scn:
                        break
                    continue
                taken = self._take_part(head, messages - count, bytes_max, must=count == 0)
                if taken.messages == 0:
                    break
                parts.add_part(head, taken.first, taken.end)
                count += taken.messages
                bytes_max -= taken.end - taken.first
                if self._taken_messages == 0 and head.commit_scn <= stop_scn:
                    break
            self._refill()
            self._changed.notify_all()  # the bound gives way to what is transmitted
            if count == 0 and self._failure is not None:
                raise self._failure
        return Batch(parts.joined(), count)

    def confirm(self, scn: int) -> int:
        """Drop every transmitted transaction with commit SCN up to `scn`; returns how many."""
        with self._changed:
            sent, count, size = self._sent, 0, 0
            while sent and sent[0].commit_scn <= scn:
                size += len(sent.popleft().blob)
                count += 1
            if count:
                self._held_bytes -= size + TRANSACTION_BYTES * count
                self._dropped_count += count
                while self._lowest and self._lowest[0][0] < self._dropped_count:
                    self._lowest.popleft()
                self._report_held_back()
                self._changed.notify_all()
            return count

    def rewind(self, scn: int) -> None:
        """BackToSCN: see the theory of operation."""
        with self._changed:
            self._taken_messages = self._taken_bytes = 0
            while self._sent and self._sent[-1].commit_scn > scn:
                self._ready.appendleft(self._sent.pop())

    # both sides

    def confirms(self, scn: int) -> bool:
        """Whether `confirm(scn)` would drop anything."""
        with self._changed:
            return bool(self._sent) and self._sent[0].commit_scn <= scn

    def lowest_begin_scn(self, confirming: int = -1) -> int | None:
        """The lowest begin SCN of what is held, less what `confirm(confirming)` would drop.

        None where nothing is left.
        """
        with self._changed:
            dropped = self._dropped_count
            for transaction in self._sent:
                if transaction.commit_scn > confirming:
                    break
                dropped += 1
            return next((scn for ordinal, scn in self._lowest if ordinal >= dropped), None)

    def lowest_commit_scn(self, confirming: int = -1) -> int | None:
        """The lowest commit SCN of what is held, less what `confirm(confirming)` would drop.

        None where nothing is left; 0 where nothing is left in memory, but in the backlog.
        """
        with self._changed:
            kept = dropwhile(lambda transaction: transaction.commit_scn <= confirming, self._sent)
            first = next(chain(kept, self._ready), None)
            if first is None:
                is_spilled = self._backlog is not None and self._backlog.transactions
                return 0 if is_spilled else None
            return first.commit_scn

    def is_empty(self) -> bool:
        """Whether every transaction put so far is confirmed."""
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
        """Whether `close` was called."""
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
        """Whether it is so far from full that it will not soon be again."""
        with self._changed:
            return (
                (self._backlog is None or not self._backlog.transactions)
                and 2 * self._held_bytes <= self._bytes_max
                and 2 * len(self._ready) <= self._transactions_max
            )

    def status(self) -> QueueStatus:
        """What the queue holds now."""
        with self._changed:
            transmitting = 1 if self._taken_messages else 0
            backlog = self._backlog
            spilled = 0 if backlog is None else backlog.transactions
            return QueueStatus(
                len(self._ready) - transmitting + spilled,
                transmitting,
                len(self._sent),
                self._held_bytes,
                not self._has_room(0 if backlog is None else TRANSACTION_BYTES),
                self._held_back,
                self._ready[0].commit_scn if self._ready else None,
                0 if backlog is None else backlog.transactions,
                0 if backlog is None else backlog.size,
            )

    def _is_full(self, size: int) -> bool:
        return bool(self._ready) and (
            len(self._ready) >= self._transactions_max or self._held_bytes + size > self._bytes_max
        )

    @property
    def _is_empty(self) -> bool:
        spilled = self._backlog is not None and self._backlog.transactions
        return not (self._sent or self._ready or spilled)

    def _refill(self) -> bool:
        """Whether anything is ready; what is next in the backlog is fetched for that."""
        if not self._ready and self._backlog is not None and self._backlog.transactions:
            try:
                self._ready.extend(self._backlog.pop())
            except OlrPgError as error:
                # The run is over: what comes behind must not be delivered without it.
                self._failure, self._closed = error, True
                self._backlog.clear()
                return False
            self._held_bytes += sum(map(cost_of, self._ready))
        return bool(self._ready)

    def _note_lowest(self, begin_scn: int, together: int = 1) -> None:
        """Note the begin SCN of what is put now.

        Args:
            together: of so many transactions only the lowest is kept, until the last is dropped.
        """
        lowest = self._lowest
        while lowest and lowest[-1][1] >= begin_scn:
            lowest.pop()
        ordinal = self._put_count
        self._put_count += 1
        if together > 1 and lowest and lowest[-1][0] // together == ordinal // together:
            begin_scn = lowest.pop()[1]
        lowest.append((ordinal, begin_scn))

    def _take_part(
        self, head: ReadyTransaction, messages: int, bytes_max: int, *, must: bool
    ) -> _Part:
        """The next messages of `head`; none where the first is too large, unless one `must` be."""
        first, start = self._taken_messages, self._taken_bytes
        end = len(head.blob)
        if messages < head.messages - first or end - start > bytes_max:
            messages = min(messages, head.messages - first)
            count = 0
            if messages > 1:
                blob = np.frombuffer(head.blob, np.uint8)
                count, end = message_run(blob, start, head.order.is_big, messages, bytes_max)
            if count == 0:
                size = int.from_bytes(head.blob[start : start + _SIZE_BYTES], head.order.value)
                count, end = 1, start + _SIZE_BYTES + size
                if end - start > bytes_max and not must:
                    return _Part(start, start, 0)
            messages = count
        else:
            messages = head.messages - first
        if first + messages == head.messages:
            self._transmitted()
        else:
            self._taken_messages, self._taken_bytes = first + messages, end
        return _Part(start, end, messages)

    def _transmitted(self) -> None:
        """The head of `_ready` was taken to its end."""
        self._taken_messages = self._taken_bytes = 0
        self._sent.append(self._ready.popleft())

    def _is_held_back(self) -> bool:
        """Whether a client has more than the bound, its largest transaction aside.

        That may be of any size, and is not confirmed before it is applied.
        """
        sent = self._held_bytes - sum(map(cost_of, self._ready))
        return sent > self._bytes_max and (
            sent - max(map(cost_of, self._sent), default=0) > self._bytes_max
        )

    def _report_held_back(self) -> None:
        """Log once when what a client does not confirm passes the bound, and once it is half."""
        if self._held_back:
            over = bool(self._sent) and self._held_bytes > self._bytes_max // 2
        else:
            over = self._held_bytes > self._bytes_max and self._is_held_back()
        if over == self._held_back:
            return
        self._held_back = over
        reason = OlrPgError(
            4016,
            f"{len(self._sent)} transmitted transactions, {self._held_bytes} bytes in all",
            bytes_max=self._bytes_max,
        )
        if over:
            _log.warning("held_back", code=reason.label, reason=str(reason))
        else:
            _log.info("held_back_ended", code=reason.label)
