"""What the server needs from the replicator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from olr_pg.server.queue import ReadyQueue


class Source(Protocol):
    """Where transactions come from: one subscription and one run of decoding at a time.

    The calls of one session come from one thread, in the order `resolve`…, `start`, `stop`;
    `open_scn` may be called at any time between `start` and `stop`, and then from that same
    thread. `resolve` may be called again after it failed. Sessions follow each other: the next
    `resolve` comes after `stop`.
    """

    def resolve(self, sql: str) -> None:
        """Run a TableList query and subscribe to the tables it names.

        Raises:
            OlrPgError: why it cannot be done; nothing is subscribed then.
        """

    def start(self, scn: int) -> ReadyQueue:
        """Begin to decode, in the background, every transaction that began at or after `scn`.

        Returns:
            A new queue, which the decoder fills with `put` until that returns False, and ends with
            `fail` where it cannot go on.

        Raises:
            OlrPgError: decoding cannot start there; the session may try another SCN.
        """

    def open_scn(self) -> int:
        """The lowest begin SCN of every transaction that the queue has not taken in yet.

        That is the minimum over the transactions open in the decoder, those whose `put` has not
        returned, and the SCN from which logs are not decoded yet (all threads). Before anything is
        decoded: the SCN of `start`. Too low is safe, too high loses transactions.
        """

    def stop(self) -> None:
        """The session has ended: stop decoding and drop the subscription.

        The queue, if there is one, is closed already. Called once for each `resolve` that did not
        fail, whether or not `start` followed.
        """
