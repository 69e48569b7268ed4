"""The interface of a source of transactions for the server; the replicator implements it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from olr_pg.server.queue import ReadyQueue


class RecoveryPoint(NamedTuple):
    """A durable recovery image: the open transactions at a position up to which the logs were read.

    Attributes:
        image: the name of the image.
        commit_scn: all transactions that are neither in the image nor after it in the redo
            committed at or before this SCN.
        read_scn: the SCN from which on redo must be read after a start with the image.
        whole_scn: transactions that began before this SCN can be in the image without their begin.
    """

    image: str
    commit_scn: int
    read_scn: int
    whole_scn: int = 0

    def serves(self, start_scn: int, unconfirmed_scn: int | None) -> bool:
        """Return whether a start at `start_scn` can use the image instead of reading the redo
        before it.

        Args:
            start_scn: the lowest begin SCN of unconfirmed transactions.
            unconfirmed_scn: the lowest unconfirmed commit SCN in the queue; None if the queue is
                empty.
        """
        is_confirmed = unconfirmed_scn is None or unconfirmed_scn > self.commit_scn
        return is_confirmed and self.whole_scn <= start_scn < self.read_scn


class ReplicationSource(Protocol):
    """The source of transactions for one port. It has one subscription at a time.

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
            OlrPgError: the query fails; then there is no subscription.
        """

    def start(self, scn: int, image: str | None = None, *, resumed: bool = False) -> ReadyQueue:
        """Begin to decode, in the background, all transactions that began at or after `scn`.

        Args:
            image: the recovery image that the checkpoint names for this SCN. The client has
                confirmed everything that committed before the image.
            resumed: whether `scn` is the SCN in the checkpoint.

        Returns:
            A new queue. The decoder fills it until it is closed, and calls its `fail` if it cannot
            continue.

        Raises:
            OlrPgError: decoding cannot start at `scn`; the session can try another SCN.
        """

    def open_scn(self) -> int:
        """Return the lowest begin SCN of all transactions that are not in the queue yet.

        It is the minimum of three SCNs: the lowest begin SCN of the open transactions, the lowest
        begin SCN of the finished transactions that are not queued yet, and the SCN up to which the
        redo of all threads is decoded. Before anything is decoded, it is the SCN of `start`. A
        value that is too low is safe; a value that is too high loses transactions.
        """

    def reach_scn(self) -> int:
        """Return the SCN at which the redo found so far ends; 0 if none was found. No found commit
        is after it.
        """

    def recovery_points(self) -> Sequence[RecoveryPoint]:
        """Return the durable recovery images, oldest first.

        For each image, all transactions that committed up to its `commit_scn`, and the events of
        tables up to it, are already in the queue or confirmed.
        """

    def saved(self, scn: int, image: str | None) -> None:
        """Record that the checkpoint with this SCN and image is durable. Older images can be
        deleted.
        """

    def stop(self) -> None:
        """Stop decoding and end the subscription, because the session has ended.

        The session calls it once after each successful `resolve`, with or without a `start` in
        between. If there is a queue, it is already closed.
        """
