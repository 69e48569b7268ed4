"""The server as the applier sees it, in this process or over a socket."""

from __future__ import annotations

import select
import socket
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from olr_pg.applier.target.source_position import SourceLogs

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.wire.protocol import ClientProtocol


class ServerLink(Protocol):
    """Carries the bytes of one connection. Every method raises OSError if the connection is
    broken.
    """

    def send(self, requests: bytes) -> None:
        """Send requests to the server."""

    def decline_image(self) -> None:
        """Make the server begin without a recovery image at the next StartSCN: it reads all redo
        from that SCN on.
        """

    def receive(self, client: ClientProtocol, stopped: Callable[[], bool]) -> None:
        """Wait until the server has sent bytes, and pass them to `client`.

        Args:
            stopped: returns whether to stop waiting; called repeatedly while the server sends
                nothing.
        """

    def close(self) -> None:
        """Close the connection; can be called repeatedly."""


_CONNECT_SECONDS: Final = 10

_TOGETHER_BYTES: Final = 2 << 20
"""About this many bytes are received at once if they are available. They are parsed together."""

_STOP_MILLISECONDS: Final = 250


class ServerSide(NamedTuple):
    """The server that delivers changes.

    Attributes:
        connect: connects to the server. A server in this process also sends events of tables.
        is_saved_here: returns whether the server's saved position was confirmed by this applier. If
            the function returns False, another client may have confirmed the position.
        logs: answers questions about the redo of the source.
    """

    connect: Callable[[], ServerLink]
    is_saved_here: Callable[[], bool] = lambda: False
    logs: SourceLogs = SourceLogs()


class SocketLink:
    """Implements `applier.session.server_side.ServerLink` over a socket.

    Args:
        connected: the socket; `close` closes it.
    """

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    def send(self, requests: bytes) -> None:
        """See `ServerLink`."""
        self._socket.sendall(requests)

    def decline_image(self) -> None:
        """Do nothing, because the protocol has no message for this event. The server checks itself
        which client confirmed.
        """

    def receive(self, client: ClientProtocol, stopped: Callable[[], bool]) -> None:
        """See `ServerLink`."""
        ready = select.poll()
        ready.register(self._socket, select.POLLIN)
        while not ready.poll(_STOP_MILLISECONDS):
            if stopped():
                raise ConnectionAbortedError(
                    "the applier was stopped while it waited for the server"
                )
        received = 0
        while True:
            size = self._socket.recv_into(client.room())
            if size == 0:
                raise ConnectionResetError("the server closed the connection")
            client.filled(size)
            received += size
            if received >= _TOGETHER_BYTES or not ready.poll(0):
                return

    def close(self) -> None:
        """See `ServerLink`."""
        self._socket.close()


def connect_over_network(host: str, port: int) -> SocketLink:
    """Connect to a server.

    Raises:
        OSError: the server cannot be reached.
    """
    connected = socket.create_connection((host, port), timeout=_CONNECT_SECONDS)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connected.settimeout(None)
    return SocketLink(connected)
