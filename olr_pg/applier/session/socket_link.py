"""A connection to the server over a socket."""

from __future__ import annotations

import select
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from olr_pg.wire.client import ClientProtocol

_TOGETHER_BYTES: Final = 2 << 20
"""About this many bytes are received at once if they are available. They are parsed together."""

_STOP_MILLISECONDS: Final = 250


class SocketLink:
    """Implements `wire.link.ServerLink` over a socket.

    Args:
        connected: the socket; `close` closes it.
    """

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    def send(self, requests: bytes) -> None:
        """See `ServerLink`."""
        self._socket.sendall(requests)

    def decline_image(self) -> None:
        """Do nothing, because the protocol has no such message. The server checks itself which
        client confirmed.
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
