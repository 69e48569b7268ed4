"""The server as the applier sees it, in this process or over a socket.

`check_not_ahead` checks that the source is not behind the target, and that it still has the redo
that the target lacks. The source can be a clone, which keeps the DBID, or can be restored to an
earlier point in time. Then the target can contain commits with higher SCNs than the source has
reached. New changes of the source with lower SCNs would then be skipped as if they were already
applied.
"""

from __future__ import annotations

import select
import socket
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Collection

    from psycopg import Connection

    from olr_pg.wire.protocol import ClientProtocol


PATIENCE_SECONDS: Final = 20.0
"""How many seconds to wait until the source reaches the SCN. In a cluster, the queried instance can
be slightly behind another one.
"""

_ASK_SECONDS: Final = 0.5
_FURTHEST: Final = """
SELECT source_table, commit_scn FROM olr_pg.ledger
WHERE subscription = %s AND source_table = ANY(%s)
ORDER BY commit_scn DESC, source_table LIMIT 1
"""


class SourceLogs(NamedTuple):
    """Answers the applier's questions about the redo of the source. By default, the SCN is unknown
    and no log is checked.

    Attributes:
        current_scn: returns an SCN that the source has reached; None if unknown.
        check_from: raises an error (2010) if the oldest available log begins after this SCN.
    """

    current_scn: Callable[[], int | None] = lambda: None
    check_from: Callable[[int], None] = lambda _: None


def check_not_ahead(
    connection: Connection[Any],
    subscription: str,
    source_scn: Callable[[], int | None],
    tables: Collection[str],
    stop: threading.Event,
    patience: float = PATIENCE_SECONDS,
) -> None:
    """Check that the source has reached the SCNs in the ledger's rows of these tables.

    Args:
        source_scn: returns an SCN that the source has reached; None if it is unknown, so that
            nothing is checked.
        tables: ``OWNER.NAME`` of each table.
        stop: when it is set, the wait ends.
        patience: maximum seconds to wait.

    Raises:
        OlrPgError: 7101, the source has not reached them; 70xx, the source cannot be queried.
    """
    found = connection.execute(_FURTHEST, (subscription, list(tables))).fetchone()
    if found is None or found[1] == 0:
        return
    deadline = time.monotonic() + patience
    while (now := source_scn()) is not None and now < found[1]:
        if time.monotonic() >= deadline:
            raise OlrPgError(
                Code.TARGET_AHEAD_OF_SOURCE,
                f"the target contains commit SCN {found[1]}, but the source has only"
                f" reached SCN {now}",
                table=found[0],
                subscription=subscription,
            )
        if stop.wait(_ASK_SECONDS):
            return


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
    """Implements `ServerLink` over a socket.

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
