"""The interface of a client's link to the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.wire.client import ClientProtocol


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
