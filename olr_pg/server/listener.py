"""The TCP listener: accepts connections, and serves each of them in its own thread with
`ServerProtocol`.

Loopback and the addresses in the allow-list can connect. `limits.clients` limits the number of
connections. At this limit, the listener closes a connection for each new connection: among the
connections that do not replicate, the connection that has been idle longest. So idle connections
cannot block new ones, and the replicating client never loses its connection.
"""

from __future__ import annotations

import errno
import socket
import threading
import time
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Final

import structlog

from olr_pg.config.address import Address, is_allowed, listen
from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.observability.periodic import Periodic, join_started
from olr_pg.observability.wording import counted
from olr_pg.server.port_connection import UNUSED_PORT, Connection, PortSettings, shut
from olr_pg.server.port_session import (
    BUNDLED,
    PIECE_BYTES,
    InsideLink,
    PortSession,
    ReplicationClaim,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.server.checkpoint import Checkpoint
    from olr_pg.server.port_session import ReplicationSource


_REFUSED_SECONDS: Final = 0.1
"""Pause after an error of accept(). The usual errors are limits of files and memory: file
descriptors become free when connections end.
"""
_LOST_BEFORE: Final = (
    errno.ECONNABORTED,
    errno.EPERM,
    errno.EPROTO,
    errno.ENETDOWN,
    errno.ENETUNREACH,
    errno.EHOSTDOWN,
    errno.EHOSTUNREACH,
    errno.ENONET,
    errno.ENOPROTOOPT,
    errno.EOPNOTSUPP,
    errno.ETIMEDOUT,
)
"""Errors of accept() for a connection that was lost or forbidden before it was accepted. accept(2)
says to call it again after these errors.
"""
_LEAVING_SECONDS: Final = 2.0
"""Maximum time that a new connection waits until another connection is closed, which can take
longer.
"""

_log = structlog.get_logger(__name__)


class Listener:
    """The server of a port. The server listens from `start` to `stop`, or while it is used as a
    context manager.

    Args:
        checkpoint: makes confirmations durable.
        settings: the settings of the port; see `address` for the number of an unused port.
        applier: identifies the bundled applier in the checkpoint; None if the port has no bundled
            applier. If the port has a bundled applier, only links from `connect` can replicate.

    Attributes:
        settings: see above. `limits` and `allow` can be changed while the server runs, and then
            apply to new connections.
        refusals: counts the connections that were refused, or ended with an error.
    """

    def __init__(
        self,
        source: ReplicationSource,
        checkpoint: Checkpoint,
        settings: PortSettings = UNUSED_PORT,
        *,
        applier: str | None = None,
    ) -> None:
        self._source = source
        self._checkpoint = checkpoint
        self._applier = applier
        self._claim = ReplicationClaim(is_kept=applier is not None)
        self._silence = Silence()
        self._watch = Periodic("olr-silence", LOOK_SECONDS, self._look_at_silence)
        self._lock = threading.Lock()
        self._left = threading.Condition(self._lock)
        self._connections: dict[Connection, threading.Thread] = {}
        self._leaving: set[Connection] = set()
        self._links: set[InsideLink] = set()
        self._socket: socket.socket | None = None
        self._acceptor: threading.Thread | None = None
        self._stopping = threading.Event()
        self.settings = settings
        self.refusals = Refusals("connection refused")
        self._refused_requests = Refusals("a request was answered with an error")

    def __enter__(self) -> Listener:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def address(self) -> tuple[str, int]:
        """The host and port on which the server listens; only after `start`."""
        assert self._socket is not None
        host, port = self._socket.getsockname()[:2]
        return host, port

    @property
    def replicating(self) -> PortSession | None:
        """The session that has subscribed, or None."""
        return self._claim.holder

    @property
    def silence(self) -> OlrPgError | None:
        """The warning 4054 if the replicating client has sent no request for a long time, else
        None.
        """
        holder = self._claim.holder
        if holder is None or holder.applier is not None:
            return None
        return self._silence.of(holder, self._checkpoint.saved, self.settings.limits.silent_seconds)

    @property
    def connections(self) -> int:
        """The number of connections."""
        with self._lock:
            return len(self._connections)

    def start(self) -> None:
        """Start listening, and serve in the background.

        Raises:
            OlrPgError: 4009 the address is in use, 4010 the server cannot listen on it.
        """
        self._socket = listen(Address(self.settings.host, self.settings.port))
        self._acceptor = threading.Thread(target=self._accept, name="olr-accept", daemon=True)
        self._acceptor.start()
        self._watch.start()
        _log.info(
            "listening",
            host=self.address[0],
            port=self.address[1],
            tls=self.settings.tls is not None,
        )

    def stop(self) -> None:
        """Close all sockets, end all sessions and wait for the threads; can be called
        repeatedly.
        """
        with self._lock:
            self._stopping.set()
            self._left.notify_all()
            open_now, links = dict(self._connections), list(self._links)
        if self._socket is not None:
            shut(self._socket)  # wakes accept()
        if self._acceptor is not None:
            join_started(self._acceptor)
            self._watch.stop()
        for connection, thread in open_now.items():
            connection.shut()  # wakes recv() and sendall()
            thread.join()
        for link in links:
            link.close()
        if self._socket is not None:
            self._socket.close()

    def connect(self) -> InsideLink:
        """Return a link for a client in this process. The port's limits and allow-list do not apply
        to this client.
        """
        session = PortSession(self._source, self._checkpoint, self._claim, BUNDLED, self._applier)
        session.piece_bytes = PIECE_BYTES
        session.is_abandoned = self._stopping.is_set
        link = InsideLink(session, self.settings.order, self._links.discard)
        with self._lock:
            self._links.add(link)
            is_late = self._stopping.is_set()
        if is_late:
            link.close()
        return link

    def _accept(self) -> None:
        assert self._socket is not None
        told: int | None = None
        while not self._stopping.is_set():
            try:
                connected, (host, port, *_) = self._socket.accept()
            except OSError as error:
                if self._stopping.is_set():
                    return
                if error.errno in _LOST_BEFORE:
                    continue
                # Log an error that lasts only once.
                if error.errno != told:
                    told = error.errno
                    _log.error("could not accept a connection", error=plain_reason(error))
                self._stopping.wait(_REFUSED_SECONDS)
                continue
            told = None
            peer = f"{host}:{port}"
            if is_allowed(host, self.settings.allow):
                self._admit(connected, peer)
            else:
                connected.close()
                self.refusals.add(
                    OlrPgError(
                        Code.ADDRESS_NOT_ALLOWED, "the connection was rejected", client=host
                    ),
                    peer,
                )

    def _admit(self, connected: socket.socket, peer: str) -> None:
        session = PortSession(self._source, self._checkpoint, self._claim, peer)
        session.check_query = self.settings.check_query
        # Many clients do not report why they stopped, so log it here.
        told = partial(self._refused_requests.add, peer=peer)
        connection = Connection(connected, session, peer, self.settings, told)
        thread = threading.Thread(
            target=self._serve, args=(connection,), name=f"olr-{peer}", daemon=True
        )
        refusal: OlrPgError | None = None
        with self._lock:
            if not self._stopping.is_set() and self._make_room():
                self._connections[connection] = thread
                try:
                    thread.start()
                except RuntimeError as error:  # the system cannot start more threads
                    del self._connections[connection]
                    refusal = OlrPgError(
                        Code.TOO_MANY_CONNECTIONS, str(error), limit=self.settings.limits.clients
                    )
                else:
                    return
        connected.close()
        if not self._stopping.is_set():
            limit = self.settings.limits.clients
            self.refusals.add(
                refusal
                or OlrPgError(
                    Code.TOO_MANY_CONNECTIONS,
                    "no idle connection can be closed for the new one",
                    limit=limit,
                ),
                peer,
            )

    def _make_room(self) -> bool:
        """If the number of connections is at its limit, close one. Return False if none can be
        closed.
        """
        limit = self.settings.limits.clients
        if len(self._connections) - len(self._leaving) < limit:
            return True
        # Each connection that is being closed still has a thread, so limit their number too.
        self._left.wait_for(
            lambda: len(self._leaving) < limit or self._stopping.is_set(), _LEAVING_SECONDS
        )
        staying = [one for one in self._connections if one not in self._leaving]
        idle = [one for one in staying if not one.session.subscribed]
        if self._stopping.is_set() or not idle or len(self._leaving) >= limit:
            return False
        idlest = min(idle, key=lambda one: one.active)
        self._leaving.add(idlest)
        idlest.shut()
        error = OlrPgError(
            Code.TOO_MANY_CONNECTIONS,
            "the connection that was idle longest was closed for a new one",
            limit=limit,
        )
        self.refusals.add(error, idlest.peer)
        return True

    def _serve(self, connection: Connection) -> None:
        """Serve a connection in its thread; at the end, always close its session."""
        log = _log.bind(peer=connection.peer)
        reason: dict[str, str] = {}
        try:
            connection.converse()
        except OlrPgError as error:
            self.refusals.add(error, connection.peer)
            reason = {"reason": str(error)}
        except OSError as error:
            reason = {"reason": plain_reason(error)}
        except Exception as error:  # a bug must end this connection, not the server
            unexpected = OlrPgError(Code.CONNECTION_FAILED, repr(error))
            log.error("disconnected", code=unexpected.label, exc_info=True)
        finally:
            # Log connections without a request (port scans, health checks) only at debug level.
            (log.info if connection.requests else log.debug)("disconnected", **reason)
            try:
                connection.session.close()
            except Exception:  # this thread ends here, so nothing else reports it
                log.exception("could not close the session")
            finally:
                self._forget(connection)

    def _look_at_silence(self) -> None:
        """Log a warning if the replicating client sends no requests. Close the connection of the
        replicating client if the client was silent for `limits.silent_seconds` and another client
        wants to replicate.

        If no other client wants to replicate, the client can be silent for any time, because it may
        be applying transactions.
        """
        holder, limit = self._claim.holder, self.settings.limits.silent_seconds
        if holder is None or holder.applier is not None:
            return
        self._silence.report(holder, self.silence)
        if limit is None or self._silence.seconds(holder) < limit or not self._claim.is_wanted():
            return
        with self._lock:
            found = [one for one in self._connections if one.session is holder]
        for connection in found:
            connection.fail(
                OlrPgError(
                    Code.CLIENT_SILENT_ENDED,
                    f"the old client was silent for more than {limit:g} s",
                    client=holder.peer,
                )
            )

    def _forget(self, connection: Connection) -> None:
        try:
            connection.end()
        finally:
            with self._lock:
                del self._connections[connection]
                self._leaving.discard(connection)
                self._left.notify()


# --- refusals: counted, and logged at a limited rate ---

QUIET_SECONDS: Final = 60.0
"""After a refusal was logged, further refusals with the same code are only counted for these
seconds.
"""


class Refusals:
    """Counts refusals by error code; thread-safe.

    Args:
        message: the message of the log lines.
        clock: returns monotonic time in seconds.
    """

    def __init__(self, message: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._message = message
        self._clock = clock
        self._lock = threading.Lock()
        self._counts = Counter[str]()
        self._unsaid = Counter[str]()
        self._said: dict[str, float] = {}

    def add(self, error: OlrPgError, peer: str) -> None:
        """Count a refusal; log it, unless one with the same code was logged recently."""
        now = self._clock()
        with self._lock:
            self._counts[error.label] += 1
            if now - self._said.get(error.label, -QUIET_SECONDS) < QUIET_SECONDS:
                self._unsaid[error.label] += 1
                return
            self._said[error.label] = now
            unsaid = self._unsaid.pop(error.label, 0)
        _log.warning(
            self._message,
            client=peer,
            code=error.label,
            reason=str(error),
            action=error.action,
            **({"others_not_logged": unsaid} if unsaid else {}),
        )

    def counts(self) -> dict[str, int]:
        """Return the counts by error label, such as ``OLR-04008``."""
        with self._lock:
            return dict(self._counts)


# --- a replicating client that sends no requests ---

WARN_SECONDS: Final = 15.0
"""Seconds of silence after which a warning is logged. A client that applies a batch can be silent
for some seconds. If the time limit for silence is short, the warning is logged after half of it.
"""
LOOK_SECONDS: Final = 0.5


class Silence:
    """Measures how long a session has sent no request, and logs each silence once.

    Args:
        clock: returns seconds of the same clock as `PortSession.asked_at`.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._said: tuple[PortSession, float] | None = None

    def seconds(self, session: PortSession) -> float:
        """Return the seconds since the session's last request; 0 while the client waits for the
        server.
        """
        return 0.0 if session.is_served else self._clock() - session.asked_at

    def of(
        self, session: PortSession, saved_scn: int | None, limit: float | None
    ) -> OlrPgError | None:
        """Return the warning 4054 if it is due, else None.

        Args:
            saved_scn: the checkpoint's SCN, for the message.
            limit: seconds of silence after which another client can replace the client; None for no
                limit.
        """
        seconds = self.seconds(session)
        if seconds < (WARN_SECONDS if limit is None else min(WARN_SECONDS, limit / 2)):
            return None
        queue = session.queue
        if queue is None:
            waits = "it has not requested a start SCN"
        else:
            held = queue.status()
            waits = (
                f"it has not confirmed {counted(held.transmitted, 'transaction')} that it received"
            )
        saved = "no SCN is saved" if saved_scn is None else f"the saved SCN stays at {saved_scn}"
        end = "no time limit ends its connection"
        if limit is not None:
            end = f"another client may take its place after {limit:g} s"
        since = time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(time.time() - seconds))
        return OlrPgError(
            Code.CLIENT_SILENT, f"since {since}: {waits}, {saved}, {end}", client=session.peer
        )

    def report(self, session: PortSession, warning: OlrPgError | None) -> None:
        """Log the warning, unless it was logged since the session's last request."""
        now = session, session.asked_at
        if warning is None or now == self._said:
            return
        self._said = now
        _log.warning(
            "the replicating client has stopped sending requests",
            reason=str(warning),
            action=warning.action,
        )
