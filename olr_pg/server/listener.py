"""The TCP listener: sockets around `ServerProtocol`, a thread per connection.

A connection's loop is: receive a chunk into a buffer of its own, feed the protocol, and send what
it answers, one `sendall` per piece. Nothing is fetched from the queue while a piece waits for the
network, so a client that does not read holds up only itself.
"""

from __future__ import annotations

import errno
import socket
import threading
from typing import TYPE_CHECKING, Final

import structlog

from olr_pg.errors import OlrPgError
from olr_pg.server.session import Claim, Session
from olr_pg.wire.frames import REQUEST_BYTES_MAX, ByteOrder
from olr_pg.wire.protocol import ServerProtocol

if TYPE_CHECKING:
    from types import TracebackType

    from olr_pg.server.checkpoint import Checkpoint
    from olr_pg.server.source import Source

LOOPBACK: Final = "127.0.0.1"

_RECEIVE_BYTES: Final = 1 << 16
_BACKLOG: Final = 64
_DRAIN_SECONDS: Final = 1.0
_DRAIN_BYTES: Final = 1 << 22

# A peer that vanished without a word would keep its claim to replicate: notice it in two minutes.
_KEEPALIVE: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4),
)

_log = structlog.get_logger(__name__)


class Listener:
    """The server: listens from `start` to `stop`; also a context manager of that span.

    Args:
        source: the replicator.
        checkpoint: where confirmations become durable.
        host: address to listen on; loopback unless told otherwise (the protocol has no
            authentication).
        port: 0 = any free one (see `address`).
        order: byte order of every connection.
        request_limit: the largest request accepted, in bytes.
    """

    def __init__(
        self,
        source: Source,
        checkpoint: Checkpoint,
        *,
        host: str = LOOPBACK,
        port: int = 0,
        order: ByteOrder = ByteOrder.LITTLE,
        request_limit: int = REQUEST_BYTES_MAX,
    ) -> None:
        self._source = source
        self._checkpoint = checkpoint
        self._wanted = (host, port)
        self._order = order
        self._request_limit = request_limit
        self._claim = Claim()
        self._lock = threading.Lock()
        self._connections: dict[socket.socket, threading.Thread] = {}
        self._socket: socket.socket | None = None
        self._acceptor: threading.Thread | None = None
        self._stopping = False

    def __enter__(self) -> Listener:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def address(self) -> tuple[str, int]:
        """Host and port that are listened on, after `start`."""
        assert self._socket is not None
        host, port = self._socket.getsockname()[:2]
        return host, port

    @property
    def replicating(self) -> Session | None:
        """The session that has subscribed, if any."""
        return self._claim.holder

    def start(self) -> None:
        """Listen, and serve in the background.

        Raises:
            OlrPgError: 4009 the address is in use, 4010 it cannot be listened on.
        """
        self._socket = _listen(*self._wanted)
        self._acceptor = threading.Thread(target=self._accept, name="olr-accept", daemon=True)
        self._acceptor.start()
        _log.info("listening", host=self.address[0], port=self.address[1])

    def stop(self) -> None:
        """Close every socket, end every session and wait for the threads; may be called again."""
        with self._lock:
            self._stopping = True
            open_now = dict(self._connections)
        if self._socket is not None:
            _shut(self._socket, socket.SHUT_RDWR)  # wakes accept()
        if self._acceptor is not None:
            self._acceptor.join()
        for connection, thread in open_now.items():
            _shut(connection, socket.SHUT_RDWR)  # wakes recv() and sendall()
            thread.join()
        if self._socket is not None:
            self._socket.close()

    def _accept(self) -> None:
        assert self._socket is not None
        while not self._stopping:
            try:
                connection, address = self._socket.accept()
            except ConnectionAbortedError:
                continue  # the client gave up before it was accepted
            except OSError as error:
                if not self._stopping:
                    _log.error("accept_failed", error=str(error))
                return
            self._admit(connection, "{}:{}".format(*address[:2]))

    def _admit(self, connection: socket.socket, peer: str) -> None:
        thread = threading.Thread(
            target=self._serve, args=(connection, peer), name=f"olr-{peer}", daemon=True
        )
        with self._lock:
            if self._stopping:
                connection.close()
                return
            self._connections[connection] = thread
            thread.start()

    def _serve(self, connection: socket.socket, peer: str) -> None:
        """A connection's thread, and its supervisor: whatever happens, its session is closed."""
        session = Session(self._source, self._checkpoint, self._claim, peer)
        log = _log.bind(peer=peer)
        log.info("connected")
        try:
            _converse(connection, session, self._order, self._request_limit)
        except OlrPgError as error:
            log.warning("disconnected", code=error.label, reason=str(error), action=error.action)
        except OSError as error:
            log.info("disconnected", reason=str(error))
        except Exception as error:  # a bug must end this connection, not the server
            unexpected = OlrPgError(4019, repr(error))
            log.error("disconnected", code=unexpected.label, exc_info=True)
        else:
            log.info("disconnected")
        finally:
            session.close()
            _end(connection)
            with self._lock:
                del self._connections[connection]


def _converse(
    connection: socket.socket, session: Session, order: ByteOrder, request_limit: int
) -> None:
    """Serve one connection to its end.

    Raises:
        OlrPgError: 4001, the client broke the framing (it has been told).
        OSError: the connection broke.
    """
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for level, option, value in _KEEPALIVE:
        connection.setsockopt(level, option, value)
    protocol = ServerProtocol(session, order, request_limit=request_limit)
    chunk = memoryview(bytearray(_RECEIVE_BYTES))
    while not protocol.closed:
        size = connection.recv_into(chunk)
        if size == 0:
            return
        protocol.receive(chunk[:size])
        while parts := protocol.answers():
            connection.sendall(parts[0] if len(parts) == 1 else b"".join(parts))
    if protocol.failure is not None:
        raise protocol.failure


def _end(connection: socket.socket) -> None:
    """Close, but let the client read its last answers: unread input would reset the connection."""
    left = _DRAIN_BYTES
    try:
        connection.settimeout(_DRAIN_SECONDS)
        connection.shutdown(socket.SHUT_WR)
        while left > 0 and (data := connection.recv(_RECEIVE_BYTES)):
            left -= len(data)
    except OSError:
        return  # it had its time, or it has gone
    finally:
        connection.close()


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        code = 4009 if error.errno == errno.EADDRINUSE else 4010
        raise OlrPgError(code, error.strerror or str(error), address=f"{host}:{port}") from error


def _shut(connection: socket.socket, how: int) -> None:
    try:
        connection.shutdown(how)
    except OSError as error:
        # it is closed already, or its peer has gone: what was wanted
        if error.errno not in (errno.ENOTCONN, errno.EBADF):
            raise
