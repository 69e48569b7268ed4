"""A client's link within the server's process: the same protocol, without a socket.

The link passes the answers to the client as they are in the ready queue, if possible without
copying them. Over a socket, each byte would be copied into the kernel and out of it, which takes
longer than parsing. The link also passes events of tables, for which the protocol has no messages.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

import structlog

from olr_pg.wire.protocol import ServerProtocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.server.port_session import PortSession
    from olr_pg.wire.client import ClientProtocol
    from olr_pg.wire.frames import ByteOrder

PIECE_BYTES: Final = 4 << 20
"""Approximate bytes that the client receives at once. The client parses each piece as a whole."""

_ONE_PART: Final = 1
"""The size at which a piece of output ends. With 1, a piece is a single part, which is passed to
the client unchanged.
"""

_log = structlog.get_logger(__name__)


class InsideLink:
    """A link between a client and a session of the server; implements `wire.link.ServerLink`.

    Only the client's thread uses it, except that `close` can be called from another thread.

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
        """See `ServerLink`. It never waits, because the server answers immediately."""
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
