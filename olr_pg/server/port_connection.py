"""A connection of the port: its protocol exchange, and the time limit of each part.

The connection's loop receives a chunk into its own buffer, passes it to the protocol, and sends the
answers, piece by piece. Nothing is fetched from the queue while a piece waits for the network, so a
client that does not read delays only itself.

Before a client has subscribed, everything has a time limit: `request_seconds` for TLS, for a
request that has begun, and for an answer that is not read; `idle_seconds` for silence. For the
subscribed client, only a request that has begun has a limit. Its silence has none, because applying
can take long, and neither has its reading.
"""

from __future__ import annotations

import select
import socket
import ssl
import time
from typing import TYPE_CHECKING, Final

from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.wire.protocol import ServerProtocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from olr_pg.config.port_sections import Limits
    from olr_pg.server.port_session import PortSession
    from olr_pg.wire.frames import Buffer, ByteOrder

_RECEIVE_BYTES: Final = 1 << 16
_PIECE_BYTES: Final = 1 << 14
_DRAIN_SECONDS: Final = 1.0
_DRAIN_BYTES: Final = 1 << 22

# A peer that disappears silently would keep its claim to replicate: notice it within two minutes.
_KEEPALIVE: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
)


class Connection:
    """A connected client; `converse` and `end` belong to its thread.

    Args:
        session: the client's session.
        peer: its address, for messages.
        order: byte order of the connection.
        limits: limits of time and size.
        tls: the TLS context, if the port uses TLS.
        told: called with each error that is sent as an answer.

    Attributes:
        requests: whether it has sent a whole request.
        active: when it last sent something (`time.monotonic`).
    """

    def __init__(
        self,
        connected: socket.socket,
        session: PortSession,
        peer: str,
        order: ByteOrder,
        limits: Limits,
        tls: ssl.SSLContext | None = None,
        told: Callable[[OlrPgError], None] | None = None,
    ) -> None:
        self._socket = connected
        self._order = order
        self._limits = limits
        self._tls = tls
        self._told = told
        self._begun: float | None = None  # time at which an incomplete request began
        self._awaited = ""
        self._failure: OlrPgError | None = None
        self.session = session
        self.peer = peer
        self.requests = False
        self.active = time.monotonic()
        session.is_abandoned = self.has_gone

    def converse(self) -> None:
        """Serve the connection to its end.

        Raises:
            OlrPgError: 4001 the client violated the framing (the error was sent), 4033 a time
                limit, 4034 TLS failed; the error passed to `fail`.
            OSError: the connection broke.
        """
        for level, option, value in _KEEPALIVE:
            self._socket.setsockopt(level, option, value)
        if self._tls is not None:
            self._secure(self._tls)
        protocol = ServerProtocol(
            self.session, self._order, request_limit=self._limits.request_bytes
        )
        protocol.told = self._told
        try:
            self._serve(protocol)
        except OSError as error:
            if self._failure is not None:
                raise self._failure from error
            if not isinstance(error, TimeoutError):
                raise
            if error.errno is not None:
                raise  # an error of the system: the network to the peer is broken (keepalive)
            waited = f"it was waited for {self._awaited}"
            raise OlrPgError(Code.CLIENT_TOO_SLOW, waited, client=self.peer) from error
        if self._failure is not None:
            raise self._failure
        if protocol.failure is not None:
            raise protocol.failure

    def _secure(self, context: ssl.SSLContext) -> None:
        self._socket.settimeout(self._limits.request_seconds)
        try:
            # Assign the socket before the handshake, so that `shut` can find it.
            self._socket = secured = context.wrap_socket(
                self._socket, server_side=True, do_handshake_on_connect=False
            )
            secured.do_handshake()
        except OSError as error:
            raise OlrPgError(Code.TLS_NOT_AGREED, plain_reason(error), client=self.peer) from error

    def _serve(self, protocol: ServerProtocol) -> None:
        chunk = memoryview(bytearray(_RECEIVE_BYTES))
        while not protocol.closed:
            self._allow(self._patience())
            self._awaited = "a request" if self._begun is None else "the rest of a request"
            size = self._socket.recv_into(chunk)
            if size == 0:
                return
            self.active = time.monotonic()
            protocol.receive(chunk[:size])
            while parts := protocol.answers():
                self.requests = True
                self._allow(None if self.session.subscribed else self._limits.request_seconds)
                self._awaited = "that it reads its answers"
                for piece in _pieces(parts):
                    self._socket.sendall(piece)
                self._begun = None
            if not protocol.waiting:
                self._begun = None
            elif self._begun is None:
                self._begun = self.active

    def _patience(self) -> float | None:
        """Return the seconds that the client has to send its next bytes; None for no limit."""
        if self._begun is not None:
            left = self._begun + self._limits.request_seconds - time.monotonic()
            return max(left, 0.001)
        return None if self.session.subscribed else self._limits.idle_seconds

    def _allow(self, seconds: float | None) -> None:
        if seconds != self._socket.gettimeout():
            self._socket.settimeout(seconds)

    def has_gone(self) -> bool:
        """Return whether the client has closed its side, or `shut` was called; thread-safe."""
        events = select.poll()
        try:
            events.register(self._socket, select.POLLRDHUP)
        except (OSError, ValueError):
            return True  # closed
        return bool(events.poll(0))

    def shut(self) -> None:
        """End the connection from another thread."""
        shut(self._socket)

    def fail(self, error: OlrPgError) -> None:
        """End the connection from another thread, with an error; later calls have no effect."""
        if self._failure is None:
            self._failure = error
            self.shut()

    def end(self) -> None:
        """Close the connection after the client could read its last answers: unread input would
        reset the connection.
        """
        left = _DRAIN_BYTES
        deadline = time.monotonic() + _DRAIN_SECONDS
        try:
            self._socket.settimeout(_DRAIN_SECONDS)
            self._socket.shutdown(socket.SHUT_WR)
            while left > 0 and time.monotonic() < deadline:
                data = self._socket.recv(_RECEIVE_BYTES)
                if not data:
                    break
                left -= len(data)
        except OSError:
            return  # the peer had enough time, or it is gone
        finally:
            self._socket.close()


def _pieces(parts: Sequence[Buffer]) -> Sequence[Buffer]:
    """Return the parts to send at once; small parts are joined."""
    if sum(map(len, parts)) >= _PIECE_BYTES * len(parts):
        return parts
    return (b"".join(parts),)


def shut(one: socket.socket) -> None:
    """Shut a socket down, which wakes every thread that waits on it."""
    try:
        # Do not call the method of `ssl`: it would remove the encryption while another thread still
        # sends.
        socket.socket.shutdown(one, socket.SHUT_RDWR)
    except OSError:
        return  # already closed, or the peer is gone: both are fine
