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
*ready* is empty, by the same rule.

An object is one run of replication: one client, one StartSCN. `close` ends it from either side and
wakes the decoder; a run is never reused.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import structlog

from olr_pg.errors import OlrPgError
from olr_pg.scalars import format_xid
from olr_pg.wire.frames import ByteOrder
from olr_pg.wire.offsets import message_offsets
from olr_pg.wire.protocol import ANSWER_BYTES, Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from olr_pg.transactions.batch import TransactionColumns
    from olr_pg.wire.encoder import EncodedTransactions

TRANSACTIONS_MAX: Final = 10_000
BYTES_MAX: Final = 64 << 20
TRANSACTION_BYTES: Final = 768
"""What keeping a transaction costs beside its messages, about (CPython 3.11)."""

_SIZE_BYTES: Final = 4

_log = structlog.get_logger(__name__)


class CommitPosition(NamedTuple):
    """Where a commit record is in the redo; orders transactions that share a commit SCN."""

    thread: int
    sequence: int
    block: int
    offset: int


@dataclass(slots=True, eq=False)
class ReadyTransaction:
    """One committed transaction in output format.

    Attributes:
        con_id: container.
        xid: packed as `olr_pg.scalars.pack_xid`.
        begin_scn: SCN at which it began.
        commit_scn: SCN of its COMMIT.
        position: of its commit record.
        blob: framed Data messages: Begin, row changes, Commit.
        messages: how many they are.
        order: byte order of the blob.
    """

    con_id: int
    xid: int
    begin_scn: int
    commit_scn: int
    position: CommitPosition
    blob: memoryview
    messages: int
    order: ByteOrder = ByteOrder.LITTLE
    _offsets: npt.NDArray[np.int64] | None = None

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        """Shape (messages + 1): where each message begins, and the end; made when first needed."""
        if self._offsets is None:
            blob = np.frombuffer(self.blob, np.uint8)
            self._offsets = message_offsets(blob, self.order.is_big)
        return self._offsets


def ready_transactions(
    transactions: TransactionColumns, encoded: EncodedTransactions, order: ByteOrder
) -> list[ReadyTransaction]:
    """The encoder's output as transactions to put, sharing its memory."""
    blob = encoded.blob.data
    first = encoded.first.tolist()
    positions = map(
        CommitPosition,
        transactions.commit_thread.tolist(),
        transactions.commit_sequence.tolist(),
        transactions.commit_block.tolist(),
        transactions.commit_offset.tolist(),
    )
    blobs = [blob[start:end] for start, end in pairwise(first)]
    return list(
        map(
            ReadyTransaction,
            transactions.con_id.tolist(),
            transactions.xid.tolist(),
            transactions.begin_scn.tolist(),
            transactions.commit_scn.tolist(),
            positions,
            blobs,
            encoded.messages.tolist(),
            repeat(order),
        )
    )


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
    """

    ready: int
    transmitting: int
    transmitted: int
    held_bytes: int
    full: bool
    held_back: bool
    next_scn: int | None = None


class _Part(NamedTuple):
    """Consecutive messages of one transaction."""

    framed: memoryview
    messages: int


class ReadyQueue:
    """See the module's theory of operation. All methods may be called from any thread.

    Args:
        transactions_max: `context.memory.max-tx-msgs`, of those that wait to be transmitted.
        bytes_max: of everything held.
        on_full: called when `put` has to wait; must not call the queue.
    """

    def __init__(
        self,
        transactions_max: int = TRANSACTIONS_MAX,
        bytes_max: int = BYTES_MAX,
        on_full: Callable[[], object] = lambda: None,
    ) -> None:
        self._transactions_max = transactions_max
        self._bytes_max = bytes_max
        self._on_full = on_full
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
        with self._changed:
            for transaction in transactions:
                size = _cost(transaction)
                if transaction.commit_scn < self._last_commit_scn:
                    raise _out_of_order(transaction, self._last_commit_scn)
                if self._closed or self._is_full(size):
                    self._report_held_back()
                    self._await_room(size)
                    if self._closed:
                        return False
                self._last_commit_scn = transaction.commit_scn
                self._ready.append(transaction)
                self._held_bytes += size
                self._note_lowest(transaction.begin_scn)
            self._report_held_back()
        return True

    def _await_room(self, size: int) -> None:
        if self._is_full(size) and not self._closed:
            self._on_full()
        self._changed.wait_for(lambda: self._closed or not self._is_full(size))

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
        parts: list[memoryview] = []
        count = 0
        with self._changed:
            while self._ready and count < messages and bytes_max > 0:
                head = self._ready[0]
                size = len(head.blob)
                if not (self._taken_messages or head.messages > messages - count
                        or size > bytes_max):  # fmt: skip
                    # The common case, whole: what `_take_part` would do.
                    parts.append(head.blob)
                    count += head.messages
                    bytes_max -= size
                    self._sent.append(self._ready.popleft())
                    if head.commit_scn <= stop_scn:
                        break
                    continue
                taken = self._take_part(head, messages - count, bytes_max, must=not parts)
                if taken.messages == 0:
                    break
                parts.append(taken.framed)
                count += taken.messages
                bytes_max -= len(taken.framed)
                if self._taken_messages == 0 and head.commit_scn <= stop_scn:
                    break
            self._changed.notify_all()  # the bound gives way to what is transmitted
            if not parts and self._failure is not None:
                raise self._failure
        return Batch(parts[0] if len(parts) == 1 else b"".join(parts), count)

    def confirm(self, scn: int) -> int:
        """Drop every transmitted transaction with commit SCN up to `scn`; returns how many."""
        with self._changed:
            count = 0
            while self._sent and self._sent[0].commit_scn <= scn:
                self._held_bytes -= _cost(self._sent.popleft())
                count += 1
            if count:
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

    def is_empty(self) -> bool:
        """Whether every transaction put so far is confirmed."""
        with self._changed:
            return not self._sent and not self._ready

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
            self._changed.wait_for(lambda: self._closed or not (self._sent or self._ready), timeout)
            return not self._sent and not self._ready

    def status(self) -> QueueStatus:
        """What the queue holds now."""
        with self._changed:
            transmitting = 1 if self._taken_messages else 0
            return QueueStatus(
                len(self._ready) - transmitting,
                transmitting,
                len(self._sent),
                self._held_bytes,
                self._is_full(0),
                self._held_back,
                self._ready[0].commit_scn if self._ready else None,
            )

    def _is_full(self, size: int) -> bool:
        return bool(self._ready) and (
            len(self._ready) >= self._transactions_max or self._held_bytes + size > self._bytes_max
        )

    def _note_lowest(self, begin_scn: int) -> None:
        while self._lowest and self._lowest[-1][1] >= begin_scn:
            self._lowest.pop()
        self._lowest.append((self._put_count, begin_scn))
        self._put_count += 1

    def _take_part(
        self, head: ReadyTransaction, messages: int, bytes_max: int, *, must: bool
    ) -> _Part:
        """The next messages of `head`; none where the first is too large, unless one `must` be."""
        first, start = self._taken_messages, self._taken_bytes
        end = len(head.blob)
        if messages < head.messages - first or end - start > bytes_max:
            messages = min(messages, head.messages - first)
            if messages == 1:
                size = int.from_bytes(head.blob[start : start + _SIZE_BYTES], head.order.value)
                end = start + _SIZE_BYTES + size
            else:
                last = int(np.searchsorted(head.offsets, start + bytes_max, "right")) - 1
                messages = min(messages, max(last - first, 1))
                end = int(head.offsets[first + messages])
            if end - start > bytes_max and not must:
                return _Part(head.blob[:0], 0)
        else:
            messages = head.messages - first
        if first + messages == head.messages:
            self._transmitted()
        else:
            self._taken_messages, self._taken_bytes = first + messages, end
        return _Part(head.blob[start:end], messages)

    def _transmitted(self) -> None:
        """The head of `_ready` was taken to its end."""
        self._taken_messages = self._taken_bytes = 0
        self._sent.append(self._ready.popleft())

    def _report_held_back(self) -> None:
        """Log once when what a client does not confirm passes the bound, and once it is half."""
        limit = self._bytes_max // 2 if self._held_back else self._bytes_max
        over = bool(self._sent) and self._held_bytes > limit
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


def _cost(transaction: ReadyTransaction) -> int:
    return len(transaction.blob) + TRANSACTION_BYTES
