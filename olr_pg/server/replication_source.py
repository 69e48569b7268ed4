"""The source of transactions that the server asks: the replicator implements it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from olr_pg.server.queue import ReadyQueue


class RecoveryPoint(NamedTuple):
    """A durable recovery image: what was open when the logs had been read up to some place.

    Attributes:
        image: its name.
        commit_scn: everything that is not in the image, nor behind it in the redo, committed at
            this SCN or before.
        read_scn: who starts with it reads no redo below this SCN.
        whole_scn: transactions that began before it may be in it without their begin.
    """

    image: str
    commit_scn: int
    read_scn: int
    whole_scn: int = 0

    def serves(self, start_scn: int, unconfirmed_scn: int | None) -> bool:
        """Tell whether it may take the place of the redo before it.

        Args:
            start_scn: the lowest begin SCN of what is not confirmed.
            unconfirmed_scn: the lowest commit SCN in the queue, None where that is empty.
        """
        is_confirmed = unconfirmed_scn is None or unconfirmed_scn > self.commit_scn
        return is_confirmed and self.whole_scn <= start_scn < self.read_scn


class ReplicationSource(Protocol):
    """The source of transactions: one subscription and one run of decoding at a time.

    The calls of one session come from one thread, in the order `resolve`…, `start`, `stop`;
    `open_scn`, `reach_scn`, `recovery_points` and `saved` may be called at any time between `start`
    and `stop`, and then from that same thread. `resolve` may be called again after it failed.
    Sessions follow each other: the next `resolve` comes after `stop`.
    """

    def resolve(self, sql: str, is_abandoned: Callable[[], bool] | None = None) -> None:
        """Run a TableList query and subscribe to the tables it names.

        Args:
            is_abandoned: whether nobody waits for the answer any more: the query ends then. May be
                asked from any thread until the call returns, and as often as wanted.

        Raises:
            OlrPgError: why it cannot be done; nothing is subscribed then.
        """

    def start(self, scn: int, image: str | None = None, *, resumed: bool = False) -> ReadyQueue:
        """Begin to decode, in the background, every transaction that began at or after `scn`.

        Args:
            image: the recovery image that the checkpoint names for that SCN: what had committed
                before it is confirmed and need not come again.
            resumed: whether the checkpoint names that SCN.

        Returns:
            A new queue, which the decoder fills with `put` until that returns False, and ends with
            `fail` where it cannot go on.

        Raises:
            OlrPgError: decoding cannot start there; the session may try another SCN.
        """

    def open_scn(self) -> int:
        """Return the lowest begin SCN of every transaction that the queue has not taken in yet.

        That is the minimum over the transactions open in the decoder, those whose `put` has not
        returned, and the SCN from which logs are not decoded yet (all threads). Before anything is
        decoded: the SCN of `start`. Too low is safe, too high loses transactions.
        """

    def reach_scn(self) -> int:
        """Return the end of the redo seen, 0 before the first: no commit lies behind it."""

    def recovery_points(self) -> Sequence[RecoveryPoint]:
        """Return the durable recovery images, oldest first.

        All that committed up to the `commit_scn` of one of them, and what happened to tables until
        then, has been taken in by the queue.
        """

    def saved(self, scn: int, image: str | None) -> None:
        """Note that the checkpoint with that SCN and image is durable: older images can go."""

    def stop(self) -> None:
        """Stop decoding and drop the subscription: the session has ended.

        The queue, if there is one, is closed already. Called once for each `resolve` that did not
        fail, whether or not `start` followed.
        """
