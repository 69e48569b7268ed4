"""Transactions in output format, and what is taken of them together."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, NamedTuple

from olr_pg.wire.frames import ByteOrder
from olr_pg.wire.protocol import TRANSACTION_BYTES

if TYPE_CHECKING:
    from olr_pg.transactions.batch import TransactionColumns
    from olr_pg.wire.encoder import EncodedTransactions
    from olr_pg.wire.frames import Buffer


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
        view: number of what was encoded, where the targets want different things.
        run: messages of consecutive transactions that `blob` is a part of: those that leave
            together need not be put together. None: it is no part of anything.
        start: where in `run` it begins.
    """

    con_id: int
    xid: int
    begin_scn: int
    commit_scn: int
    position: CommitPosition
    blob: memoryview
    messages: int
    order: ByteOrder = ByteOrder.LITTLE
    view: int = 0
    run: memoryview | None = None
    start: int = 0


def ready_transactions(
    transactions: TransactionColumns,
    encoded: EncodedTransactions,
    order: ByteOrder,
    view: int = 0,
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
            repeat(view),
            repeat(blob),
            first,
        )
    )


def cost_of(transaction: ReadyTransaction) -> int:
    """Bytes that keeping a transaction takes, about."""
    return len(transaction.blob) + TRANSACTION_BYTES


class JoinedMessages:
    """What is taken together; messages that lie behind each other in memory are one slice."""

    def __init__(self) -> None:
        self._parts: list[memoryview] = []
        self._run: memoryview | None = None
        self._first = 0
        self._end = 0

    def add(self, transaction: ReadyTransaction) -> None:
        """The next one, whole."""
        self.add_part(transaction, 0, len(transaction.blob))

    def add_part(self, transaction: ReadyTransaction, first: int, end: int) -> None:
        """Messages of the next one: bytes `first` to `end` of its blob."""
        run, start = transaction.run, transaction.start + first
        if run is None:
            self._close()
            self._parts.append(transaction.blob[first:end])
            return
        if run is not self._run or start != self._end:
            self._close()
            self._run, self._first = run, start
        self._end = transaction.start + end

    def _close(self) -> None:
        if self._run is not None:
            self._parts.append(self._run[self._first : self._end])
            self._run = None

    def joined(self) -> Buffer:
        """All of it."""
        self._close()
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
