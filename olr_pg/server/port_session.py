"""The session of a connection: its claim to replicate, its run of replication, and its
confirmations.

`InsideLink` is the link of a client within the server's process. The link uses the same protocol,
without a socket. The link passes the answers to the client as they are in the ready queue, if
possible without copying them. Over a socket, each byte would be copied into the kernel and out of
it, which takes longer than parsing. The link also passes events of tables, for which the protocol
has no messages.

`ReplicationSource` is the interface of a source of transactions for the server. The replicator
implements it.
"""

from __future__ import annotations

import hashlib
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import structlog

from olr_pg.errors import Code, OlrPgError
from olr_pg.wire.protocol import ANSWER_BYTES, ServerProtocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from olr_pg.server.checkpoint import Checkpoint
    from olr_pg.server.queue import ReadyQueue
    from olr_pg.wire.frames import ByteOrder
    from olr_pg.wire.protocol import Batch, ClientProtocol


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
    """The source of transactions for one port. A source has one subscription at a time.

    A session calls the methods from one thread, in the order `resolve`…, `start`, `stop`. A session
    can call `open_scn`, `reach_scn`, `recovery_points` and `saved` at any time between `start` and
    `stop`, from the same thread. If `resolve` has failed, the session can call it again. There is
    one session at a time: the next `resolve` comes after `stop`.
    """

    def resolve(self, sql: str, is_abandoned: Callable[[], bool] | None = None) -> None:
        """Run a TableList query and subscribe to its tables.

        Args:
            is_abandoned: returns whether the client has disconnected; then the query is cancelled.
                Any thread can call this function until `resolve` returns.

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
            A new queue. The decoder fills the queue until the queue is closed, and calls the
            queue's `fail` if it cannot continue.

        Raises:
            OlrPgError: decoding cannot start at `scn`; the session can try another SCN.
        """

    def open_scn(self) -> int:
        """Return the lowest begin SCN of all transactions that are not in the queue yet.

        The result is the minimum of three SCNs: the lowest begin SCN of the open transactions, the
        lowest begin SCN of the finished transactions that are not queued yet, and the SCN up to
        which the redo of all threads is decoded. Before anything is decoded, the result is the SCN
        of `start`. A value that is too low is safe; a value that is too high loses transactions.
        """

    def reach_scn(self) -> int:
        """Return the SCN at which the redo found so far ends; 0 if none was found. No commit in the
        redo found so far has a higher SCN.
        """

    def recovery_points(self) -> Sequence[RecoveryPoint]:
        """Return the durable recovery images, oldest first.

        For each image, all transactions that committed up to the image's `commit_scn`, and all
        events of tables up to this SCN, are already in the queue or confirmed.
        """

    def saved(self, scn: int, image: str | None) -> None:
        """Record that the checkpoint with this SCN and image is durable. Older images can be
        deleted.
        """

    def stop(self) -> None:
        """Stop decoding and end the subscription, because the session has ended.

        The session calls this method once after each successful `resolve`, with or without a
        `start` in between. If there is a queue, it is already closed.
        """


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
        applier: identifies the bundled applier in the checkpoint; None if this is a session of
            another client.

    Attributes:
        is_abandoned: returns whether the client has disconnected; then its work is cancelled. The
            session's creator sets it; it is called from the session's thread, and from threads that
            work for the session.
        check_query: raises an error for a TableList query that the client may not run. The
            session's creator sets it.
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
        self.check_query: Callable[[str], None] | None = None
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
            OlrPgError: 4008 another client is replicating; any error of `check_query`; or any
                error of the source.
        """
        if self.check_query is not None:
            self.check_query(sql)
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
        that committed before the image. Another client that lacks these transactions can start at
        the same SCN, because the SCN does not change while a transaction is open for a long time.

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
                f"the client starts at SCN {scn}, but transactions that began at SCN"
                f" {saved.saved} or later are not confirmed",
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
        not know these transactions. So until this session has sent something, the client can
        confirm any SCN up to the end of the redo.

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
        """Return whether nothing remains to be confirmed, so that the decoder's progress may raise
        the saved SCN.

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


PIECE_BYTES: Final = 4 << 20
"""Approximate bytes that the client receives at once. The client parses each piece as a whole."""

_ONE_PART: Final = 1
"""The size at which a piece of output ends. With 1, a piece is a single part, which is passed to
the client unchanged.
"""


class InsideLink:
    """A link between a client and a session of the server; implements
    `applier.session.server_side.ServerLink`.

    Only the client's thread uses the link, except that another thread can call `close`.

    Args:
        session: the client's session, which is closed together with the link.
        ended: called with the link when it has ended.
    """

    def __init__(
        self, session: PortSession, order: ByteOrder, ended: Callable[[InsideLink], None]
    ) -> None:
        self._session = session
        self._protocol = ServerProtocol(session, order, answer_bytes=_ONE_PART)
        self._ended = ended
        self._lock = threading.Lock()
        self._is_closed = False

    def send(self, requests: bytes) -> None:
        """See `ServerLink`."""
        with self._lock:
            self._check()
            self._protocol.receive(requests)

    def decline_image(self) -> None:
        """See `ServerLink`."""
        self._session.decline_image()

    def receive(self, client: ClientProtocol, stopped: Callable[[], bool]) -> None:
        """See `ServerLink`. The method never waits, because the server answers immediately."""
        with self._lock:
            self._check()
            parts = self._protocol.answers()
            event = None if parts else self._protocol.event()
        if event is not None:
            client.tell(event)
        elif not parts:
            raise ConnectionResetError("the server has ended the session")
        for part in parts:
            client.adopt(memoryview(part))

    def close(self) -> None:
        """End the session. Later calls of other methods raise ConnectionResetError."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._session.close()
        _log.info("disconnected", peer=self._session.peer)
        self._ended(self)

    def _check(self) -> None:
        if self._is_closed:
            raise ConnectionResetError("the server has been stopped")
