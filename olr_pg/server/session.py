"""One connection's share of the server: the claim to replicate, its run, the checkpoint."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

import structlog

from olr_pg.errors import OlrPgError
from olr_pg.scalars import MAX_SCN
from olr_pg.wire.protocol import ANSWER_BYTES

if TYPE_CHECKING:
    from olr_pg.server.checkpoint import Checkpoint
    from olr_pg.server.queue import ReadyQueue
    from olr_pg.server.source import Source
    from olr_pg.wire.protocol import Batch


_log = structlog.get_logger(__name__)

CLAIM_SECONDS: Final = 1.0
"""How long a subscription waits for a session that may be ending: the client that comes back at
once after its connection broke must not find itself in the way."""


class Claim:
    """The right to replicate: one session has it at a time.

    Args:
        patience: seconds that `acquire` waits for the holder to end.
    """

    def __init__(self, patience: float = CLAIM_SECONDS) -> None:
        self._patience = patience
        self._released = threading.Condition()
        self._holder: Session | None = None

    def acquire(self, session: Session) -> None:
        """Give the claim to `session`, which may have it already.

        Raises:
            OlrPgError: 4008, another session has it.
        """
        with self._released:
            self._released.wait_for(lambda: self._holder in (None, session), self._patience)
            holder = self._holder
            if holder is not None and holder is not session:
                raise OlrPgError(4008, "it subscribed first", client=holder.peer)
            self._holder = session

    def release(self, session: Session) -> None:
        """Take the claim back if `session` has it."""
        with self._released:
            if self._holder is session:
                self._holder = None
                self._released.notify_all()

    @property
    def holder(self) -> Session | None:
        """The session that replicates, or has subscribed to."""
        return self._holder


class Session:
    """What a connection does to the server; the `Delivery` of its `ServerProtocol`.

    Life cycle: made with the connection; the claim is taken by TableList and kept until `close`;
    the run begins with StartSCN and ends with `close`. Used from the connection's thread.

    Args:
        source: the replicator.
        checkpoint: where confirmations become durable.
        claim: shared by all sessions of the server.
        peer: the client's address, for messages.
        piece_bytes: where what is taken at once ends.
    """

    def __init__(
        self,
        source: Source,
        checkpoint: Checkpoint,
        claim: Claim,
        peer: str,
        piece_bytes: int = ANSWER_BYTES,
    ) -> None:
        self._source = source
        self._checkpoint = checkpoint
        self._claim = claim
        self._queue: ReadyQueue | None = None
        self._piece_bytes = piece_bytes
        self.peer = peer

    @property
    def subscribed(self) -> bool:
        """Whether it has the claim."""
        return self._claim.holder is self

    @property
    def queue(self) -> ReadyQueue | None:
        """The queue of its run; None before StartSCN and after the end."""
        return self._queue

    def resolve(self, sql: str) -> None:
        """TableList.

        Raises:
            OlrPgError: 4008 another client is replicating; else the source's reason.
        """
        self._claim.acquire(self)
        _log.info("client subscribes", peer=self.peer)
        try:
            self._source.resolve(sql)
        except OlrPgError:
            self._claim.release(self)
            raise

    def start(self, scn: int) -> None:
        """StartSCN.

        Raises:
            OlrPgError: 4002 not an SCN; else the source's reason.
        """
        if scn > MAX_SCN:
            raise OlrPgError(4002, f"{scn} is not an SCN", field="StartSCN")
        saved = self._checkpoint
        resumed = scn == saved.saved
        self._queue = self._source.start(scn, saved.image if resumed else None, resumed=resumed)

    def take(self, confirmed_scn: int, messages: int) -> Batch:
        """LastCommitedSCN, `messages` times in a row.

        Raises:
            OlrPgError: 4013 the confirmation cannot be made durable (nothing is confirmed then);
                the decoder's failure, once all that was ready before it is delivered.
        """
        queue = self._running()
        self._confirm(queue, confirmed_scn)
        return queue.take(messages, stop_scn=confirmed_scn, bytes_max=self._piece_bytes)

    def rewind(self, scn: int) -> Batch:
        """BackToSCN.

        Raises:
            OlrPgError: the decoder's failure, where nothing is ready before it.
        """
        queue = self._running()
        queue.rewind(scn)
        return queue.take(1)

    def saved_scn(self) -> int | None:
        """GetSavedSCN."""
        return self._checkpoint.saved

    def close(self) -> None:
        """The connection has ended; may be called again."""
        if self._queue is not None:
            self._queue.close()
            self._queue = None
        if self._claim.holder is self:
            try:
                self._source.stop()
            finally:
                self._claim.release(self)

    def _confirm(self, queue: ReadyQueue, scn: int) -> None:
        """Confirm up to `scn`: first in the file, then in the queue (see `checkpoint`).

        With nothing left to confirm, the decoder's own progress moves the checkpoint, so that a
        restart does not need the logs of a time without changes.
        """
        if not queue.confirms(scn) and not queue.is_empty():
            return
        # the source first: what it has handed over by the time the queue is asked is in the queue
        points = self._source.recovery_points()
        open_scn = self._source.open_scn()
        held_scn = queue.lowest_begin_scn(confirming=scn)
        lowest = open_scn if held_scn is None else min(open_scn, held_scn)
        unconfirmed = queue.lowest_commit_scn(confirming=scn) if points else None
        serving = (p.image for p in reversed(points) if p.serves(lowest, unconfirmed))
        image = next(serving, None)
        if self._checkpoint.save(lowest, image):
            self._source.saved(lowest, image)
        queue.confirm(scn)

    def _running(self) -> ReadyQueue:
        assert self._queue is not None  # the protocol asks only in state Replicating
        return self._queue
