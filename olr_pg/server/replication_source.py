"""The interface of a source of transactions for the server; the replicator implements it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from olr_pg.server.queue import ReadyQueue


class RecoveryPoint(NamedTuple):
    """A durable recovery image: the open transactions at a position up to which the logs were read.

    Attributes:
        image: its name.
        commit_scn: everything that is neither in the image nor after it in the redo committed at
            this SCN or before.
        read_scn: a start with the image reads no redo below this SCN.
        whole_scn: transactions that began before this SCN can be in the image without their begin.
    """

    image: str
    commit_scn: int
    read_scn: int
    whole_scn: int = 0

    def serves(self, start_scn: int, unconfirmed_scn: int | None) -> bool:
        """Return whether it can replace the redo before it.

        Args:
            start_scn: the lowest begin SCN of unconfirmed transactions.
            unconfirmed_scn: the lowest commit SCN in the queue; None if it is empty.
        """
        is_confirmed = unconfirmed_scn is None or unconfirmed_scn > self.commit_scn
        return is_confirmed and self.whole_scn <= start_scn < self.read_scn


class ReplicationSource(Protocol):
    """The source of transactions: one subscription and one run of decoding at a time.

    A session calls the methods from one thread, in the order `resolve`…, `start`, `stop`. It can
    call `open_scn`, `reach_scn`, `recovery_points` and `saved` at any time between `start` and
    `stop`, from the same thread. `resolve` can be called again after it failed. There is one
    session at a time: the next `resolve` comes after `stop`.
    """

    def resolve(self, sql: str, is_abandoned: Callable[[], bool] | None = None) -> None:
        """Run a TableList query and subscribe to its tables.

        Args:
            is_abandoned: returns whether the client has disconnected; then the query is cancelled.
                It can be called from any thread until `resolve` returns.

        Raises:
            OlrPgError: if it fails; then there is no subscription.
        """

    def start(self, scn: int, image: str | None = None, *, resumed: bool = False) -> ReadyQueue:
        """Begin to decode, in the background, every transaction that began at or after `scn`.

        Args:
            image: the recovery image in the checkpoint for that SCN; everything that committed
                before it is confirmed and not needed again.
            resumed: whether the SCN is the checkpoint's.

        Returns:
            A new queue, which the decoder fills with `put` until that returns False, and ends with
            `fail` if it cannot continue.

        Raises:
            OlrPgError: decoding cannot start there; the session can try another SCN.
        """

    def open_scn(self) -> int:
        """Return the lowest begin SCN of all transactions that are not in the queue yet.

        It is the minimum of the transactions open in the decoder, those whose `put` has not
        returned, and the SCN from which logs are not decoded yet (all threads). Before anything is
        decoded, it is the SCN of `start`. A value that is too low is safe; one that is too high
        loses transactions.
        """

    def reach_scn(self) -> int:
        """Return the end of the redo found so far, 0 before the first; no commit is after it."""

    def recovery_points(self) -> Sequence[RecoveryPoint]:
        """Return the durable recovery images, oldest first.

        Everything that committed up to the `commit_scn` of each of them, with the events of tables,
        is in the queue.
        """

    def saved(self, scn: int, image: str | None) -> None:
        """Record that the checkpoint with that SCN and image is durable; older images can be
        deleted.
        """

    def stop(self) -> None:
        """Stop decoding and end the subscription, because the session has ended.

        The queue, if there is one, is already closed. It is called once for each successful
        `resolve`, with or without a `start`.
        """
