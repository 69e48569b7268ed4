"""The session of a connection: its claim to replicate, its run of replication, and its
confirmations.
"""

from __future__ import annotations

import hashlib
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import structlog

from olr_pg.errors import Code, OlrPgError
from olr_pg.wire.protocol import ANSWER_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from olr_pg.server.checkpoint import Checkpoint
    from olr_pg.server.queue import ReadyQueue
    from olr_pg.server.replication_source import ReplicationSource
    from olr_pg.wire.protocol import Batch


_log = structlog.get_logger(__name__)

CLAIM_SECONDS: Final = 1.0
"""Seconds that a new subscription waits for the end of another session. If a client reconnects
after a broken connection, its own old session may still be ending, and must not cause a refusal.
"""

BUNDLED: Final = "bundled applier"
"""The name of the bundled applier's session."""


class ReplicationClaim:
    """The right to replicate, which only one session at a time can hold.

    Args:
        patience: seconds that `acquire` waits until the session with the claim has ended.
        is_kept: whether the claim is reserved for the bundled applier, even if the applier has no
            session.
    """

    def __init__(self, patience: float = CLAIM_SECONDS, *, is_kept: bool = False) -> None:
        self._patience = patience
        self._is_kept = is_kept
        self._released = threading.Condition()
        self._holder: PortSession | None = None
        self._wanted_at = float("-inf")

    def acquire(self, session: PortSession) -> None:
        """Give the claim to `session`, which can already hold it.

        Raises:
            OlrPgError: 4008, another session holds the claim, or it is reserved.
        """
        if self._is_kept and session.applier is None:
            raise OlrPgError(
                Code.PLACE_TAKEN, "this port is reserved for the bundled applier", client=BUNDLED
            )
        with self._released:
            if self._holder not in (None, session):
                self._wanted_at = time.monotonic()
            self._released.wait_for(lambda: self._holder in (None, session), self._patience)
            holder = self._holder
            if holder is not None and holder is not session:
                raise OlrPgError(
                    Code.PLACE_TAKEN, "another client has subscribed before", client=holder.peer
                )
            self._holder = session

    def release(self, session: PortSession) -> None:
        """Release the claim if `session` holds it."""
        with self._released:
            if self._holder is session:
                self._holder = None
                self._released.notify_all()

    def is_wanted(self) -> bool:
        """Return whether another session has requested the claim after its holder's last
        request.
        """
        holder = self._holder
        return holder is not None and self._wanted_at > holder.asked_at

    @property
    def holder(self) -> PortSession | None:
        """The session that holds the claim."""
        return self._holder


class PortSession:
    """Performs the requests of one connection; implements `SessionOperations` for its
    `ServerProtocol`.

    A session is created with its connection. TableList acquires the claim, which is held until
    `close`. The run of replication begins with StartSCN and ends with `close`. Only the
    connection's thread uses the session.

    Args:
        checkpoint: makes confirmations durable.
        claim: the claim to replicate, which all sessions of the server share.
        peer: the client's address, for messages.
        applier: identifies the bundled applier in the checkpoint; None if this is not its session.

    Attributes:
        is_abandoned: returns whether the client has disconnected; then its work is cancelled. The
            session's creator sets it; it is called from the session's thread, and from threads that
            work for the session.
        piece_bytes: approximate maximum number of bytes that are taken from the queue at once. The
            session's creator can change it.
        asked_at: the time of the client's last request for replication (`time.monotonic`).
            GetStatus and, except from the bundled applier, GetSavedSCN do not count.
        is_served: whether the client waits for the server, which runs its TableList query or
            searches for logs.
    """

    def __init__(
        self,
        source: ReplicationSource,
        checkpoint: Checkpoint,
        claim: ReplicationClaim,
        peer: str,
        applier: str | None = None,
    ) -> None:
        self._source = source
        self._checkpoint = checkpoint
        self._claim = claim
        self._queue: ReadyQueue | None = None
        self.piece_bytes = ANSWER_BYTES
        self.is_abandoned: Callable[[], bool] | None = None
        self._who = ""
        self._start_scn = 0
        self._takes_image = True
        self._ahead: OlrPgError | None = None
        self._has_confirmed = False
        self._brought_scn = 0
        self.applier = applier
        self.peer = peer
        self.asked_at = time.monotonic()
        self.is_served = False

    @property
    def subscribed(self) -> bool:
        """Return whether the session holds the claim to replicate."""
        return self._claim.holder is self

    @property
    def queue(self) -> ReadyQueue | None:
        """The queue of the session's run; None before StartSCN and after `close`."""
        return self._queue

    @property
    def ahead(self) -> OlrPgError | None:
        """The warning 4050 if the session's run skips unconfirmed changes, else None."""
        return self._ahead

    def resolve(self, sql: str) -> None:
        """Answer TableList.

        Raises:
            OlrPgError: 4008 another client is replicating; or any error of the source.
        """
        self._claim.acquire(self)
        self._who = self.applier or f"tables {hashlib.sha256(sql.encode()).hexdigest()}"
        _log.info("client subscribed", peer=self.peer)
        try:
            with self._serving():
                self._source.resolve(sql, self.is_abandoned)
        except OlrPgError:
            self._claim.release(self)
            raise

    def decline_image(self) -> None:
        """Begin without the checkpoint's recovery image at the next StartSCN: read all redo from
        that SCN on.
        """
        self._takes_image = False

    def start(self, scn: int) -> None:
        """Answer StartSCN.

        The checkpoint's recovery image is used only for the client that has confirmed everything
        that committed before the image. Another client can start at the same SCN although it lacks
        these transactions, because the SCN does not change while a transaction is open for a long
        time.

        Raises:
            OlrPgError: any error of the source.
        """
        saved = self._checkpoint
        resumed = scn == saved.saved
        is_own = saved.confirmed_by == self._who
        image = saved.image if resumed and is_own and self._takes_image else None
        with self._serving():
            self._queue = self._source.start(scn, image, resumed=resumed)
        self._start_scn = scn
        self._ahead = None
        if scn > 0 and self.applier is None and saved.confirmed_by not in (None, self._who):
            # Log this, because nothing else shows it: the client may lack changes of the tables
            # that are only in its own list.
            _log.info(
                "this client's list of tables differs from the list of the client that"
                " confirmed last",
                peer=self.peer,
                start_scn=scn,
                saved_scn=saved.saved,
            )
        if saved.saved is not None and scn > saved.saved:
            self._ahead = OlrPgError(
                Code.CLIENT_AHEAD,
                f"it starts at SCN {scn}, but transactions that began at SCN {saved.saved} or later"
                " are not confirmed",
                client=self.peer,
            )
            _log.warning(
                "the client starts after the last confirmed SCN",
                reason=str(self._ahead),
                action=self._ahead.action,
            )

    def take(self, confirmed_scn: int, messages: int) -> Batch:
        """Answer up to `messages` consecutive LastCommitedSCN requests.

        Raises:
            OlrPgError: 4013 the confirmation cannot be made durable; 4051 it includes transactions
                that were never sent; in both cases nothing is confirmed. Or the decoder's failure,
                after all transactions that were ready before it are delivered.
        """
        queue = self._running()
        self.asked_at = time.monotonic()
        self._check_sent(queue, confirmed_scn)
        self._confirm(queue, confirmed_scn)
        return queue.take(messages, stop_scn=confirmed_scn, bytes_max=self.piece_bytes)

    def rewind(self, scn: int) -> Batch:
        """Answer BackToSCN.

        Raises:
            OlrPgError: the decoder's failure, if no message is ready.
        """
        queue = self._running()
        self.asked_at = time.monotonic()
        queue.rewind(scn)
        return queue.take(1)

    def saved_scn(self) -> int | None:
        """Answer GetSavedSCN."""
        if self.applier is not None:
            # The applier sends this request every second, even while it is paused. So it is not a
            # silent client.
            self.asked_at = time.monotonic()
        return self._checkpoint.saved

    def close(self) -> None:
        """End the session, after its connection has ended; can be called repeatedly."""
        if self._queue is not None:
            self._queue.close()
            self._queue = None
        if self._claim.holder is self:
            try:
                self._source.stop()
            finally:
                self._claim.release(self)

    @contextmanager
    def _serving(self) -> Iterator[None]:
        """While the context is active, the server works on a request. The time during which the
        client waits for the answer does not count as silence of the client.
        """
        self.is_served = True
        try:
            yield
        finally:
            self.asked_at = time.monotonic()
            self.is_served = False

    def _check_sent(self, queue: ReadyQueue, scn: int) -> None:
        """Check that all transactions that a confirmation includes were sent.

        A client can also confirm transactions that an earlier session has sent. This session does
        not know them. So before it has sent anything, the client can confirm any SCN up to the end
        of the redo.

        Raises:
            OlrPgError: 4051, a transaction was not sent.
        """
        sent = queue.sent_scn
        if scn <= max(sent or 0, self._brought_scn):
            return
        known = max(self._source.reach_scn(), self._checkpoint.saved or 0)
        if sent is None and scn <= known:
            self._brought_scn = scn
            return
        last = "nothing was sent yet" if sent is None else f"the last SCN that was sent is {sent}"
        raise OlrPgError(Code.NEVER_SENT, f"SCN {scn}, {last}", client=self.peer)

    def _confirm(self, queue: ReadyQueue, scn: int) -> None:
        """Confirm up to `scn`: first in the file, then in the queue (see `checkpoint`)."""
        confirms = queue.confirms(scn)
        if not confirms and not self._is_quiet(queue):
            return
        if self._ahead is None:
            self._save(queue, scn, only_up=not confirms)
        self._has_confirmed |= confirms
        queue.confirm(scn)

    def _is_quiet(self, queue: ReadyQueue) -> bool:
        """Return whether the decoder's progress may raise the saved SCN, because nothing remains to
        be confirmed.

        This way, a restart does not need the logs of a time without changes. See the module
        `checkpoint` for the clients to which it applies.
        """
        is_known = self._has_confirmed or self._who in (self.applier, self._checkpoint.confirmed_by)
        return is_known and queue.is_empty()

    def _save(self, queue: ReadyQueue, scn: int, *, only_up: bool) -> None:
        """Write the lowest begin SCN of the transactions that are still unconfirmed after `scn` is
        confirmed.
        """
        # Query the source before the queue, because the source moves transactions to the queue at
        # any time. In the other order, a transaction could be missed.
        points = self._source.recovery_points()
        open_scn = self._source.open_scn()
        held_scn = queue.lowest_begin_scn(confirming=scn)
        lowest = open_scn if held_scn is None else min(open_scn, held_scn)
        saved = self._checkpoint.saved
        if only_up and (lowest <= self._start_scn if saved is None else lowest < saved):
            return
        unconfirmed = queue.lowest_commit_scn(confirming=scn) if points else None
        serving = (p.image for p in reversed(points) if p.serves(lowest, unconfirmed))
        image = next(serving, None)
        if self._checkpoint.save(lowest, image, self._who):
            self._source.saved(lowest, image)

    def _running(self) -> ReadyQueue:
        assert self._queue is not None  # the protocol allows this request only in state Replicating
        return self._queue
