"""A connection of the port: the exchange of messages, and its time limits.

The connection's loop receives bytes into its own buffer, passes them to the protocol, and sends the
answers, piece by piece. Nothing is taken from the queue while a piece waits for the network, so a
client that does not read delays only itself.

Before a client has subscribed, there is a time limit for everything. `request_seconds` is the limit
for the TLS handshake, for the rest of an incomplete request, and for reading an answer.
`idle_seconds` is the limit for silence. For a client that has subscribed, there is a limit only for
the rest of an incomplete request. Silence and slow reading have no limit, because applying can take
long.
"""

from __future__ import annotations

import select
import socket
import ssl
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.config.address import LOOPBACK, Network
from olr_pg.config.port_sections import Limits
from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.wire.frames import Buffer, ByteOrder
from olr_pg.wire.protocol import ServerProtocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from olr_pg.server.port_session import PortSession

_RECEIVE_BYTES: Final = 1 << 16
_PIECE_BYTES: Final = 1 << 14
_DRAIN_SECONDS: Final = 1.0
_DRAIN_BYTES: Final = 1 << 22

# If a peer disappears without closing the connection, end its claim to replicate within two
# minutes.
_KEEPALIVE: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
)


class PortSettings(NamedTuple):
    """The settings of a port.

    Attributes:
        host: the address to listen on. The default is loopback, because the protocol has no
            authentication without `tls` and a client CA.
        port: the port number; 0 for any unused port.
        order: the byte order of all connections.
        limits: the limits of each connection, and of the number of connections.
        tls: the TLS context.
        allow: networks that may connect, in addition to loopback; None for all networks.
        check_query: raises an error for a TableList query that clients may not run; None to allow
            every query that the source accepts.
    """

    host: str = LOOPBACK
    port: int = 0
    order: ByteOrder = ByteOrder.LITTLE
    limits: Limits = Limits()
    tls: ssl.SSLContext | None = None
    allow: Sequence[Network] | None = None
    check_query: Callable[[str], None] | None = None


UNUSED_PORT: Final = PortSettings()


class Connection:
    """A connected client. Only its own thread calls `converse` and `end`.

    Args:
        session: the client's session.
        peer: the client's address, for messages.
        settings: the settings of the port.
        told: called with each error that is sent as an answer.

    Attributes:
        requests: whether the client has sent a complete request.
        active: the time at which the client last sent something (`time.monotonic`).
    """

    def __init__(
        self,
        connected: socket.socket,
        session: PortSession,
        peer: str,
        settings: PortSettings,
        told: Callable[[OlrPgError], None] | None = None,
    ) -> None:
        self._socket = connected
        self._order, self._limits, self._tls = settings.order, settings.limits, settings.tls
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
        """Serve the connection until it ends.

        Raises:
            OlrPgError: 4001 the client sent an invalid MessageSize (and received this error), 4033
                a time limit was exceeded, 4034 TLS failed; or the error that was passed to `fail`.
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
                raise  # from keepalive: the network to the peer is broken
            waited = f"the time limit passed while the server waited for {self._awaited}"
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
                self._awaited = "the client to read its answers"
                for piece in _pieces(parts):
                    self._socket.sendall(piece)
                self._begun = None
            if not protocol.waiting:
                self._begun = None
            elif self._begun is None:
                self._begun = self.active

    def _patience(self) -> float | None:
        """Return the seconds in which the client must send its next bytes; None for no limit."""
        if self._begun is not None:
            left = self._begun + self._limits.request_seconds - time.monotonic()
            return max(left, 0.001)
        return None if self.session.subscribed else self._limits.idle_seconds

    def _allow(self, seconds: float | None) -> None:
        if seconds != self._socket.gettimeout():
            self._socket.settimeout(seconds)

    def has_gone(self) -> bool:
        """Return whether the client has closed its side of the connection, or `shut` was called;
        thread-safe.
        """
        events = select.poll()
        try:
            events.register(self._socket, select.POLLRDHUP)
        except (OSError, ValueError):
            return True  # closed
        try:
            return bool(events.poll(0))
        except OSError:
            return False  # for example, the system has no memory for the call

    def shut(self) -> None:
        """End the connection from another thread."""
        shut(self._socket)

    def fail(self, error: OlrPgError) -> None:
        """End the connection from another thread, with an error; later calls have no effect."""
        if self._failure is None:
            self._failure = error
            self.shut()

    def end(self) -> None:
        """Close the connection, but give the client time to read its last answers. Meanwhile, read
        and drop the client's remaining input: unread input would reset the connection, and the
        answers would be lost.
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
            return  # a timeout, or the peer has disconnected
        finally:
            self._socket.close()


def _pieces(parts: Sequence[Buffer]) -> Sequence[Buffer]:
    """Return the parts in the form in which they are sent; small parts are joined."""
    if sum(map(len, parts)) >= _PIECE_BYTES * len(parts):
        return parts
    return (b"".join(parts),)


def shut(one: socket.socket) -> None:
    """Shut a socket down, which wakes every thread that waits on it."""
    try:
        # Do not call `shutdown` of the TLS socket: it would remove the encryption while another
        # thread still sends.
        socket.socket.shutdown(one, socket.SHUT_RDWR)
    except OSError:
        return  # already closed, or the peer has disconnected
