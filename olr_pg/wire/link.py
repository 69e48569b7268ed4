"""The interface of a link to the server, for a client of the protocol."""

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
        """Make the server read all redo from the next StartSCN on, without a recovery image."""

    def receive(self, client: ClientProtocol, stopped: Callable[[], bool]) -> None:
        """Hand `client` the bytes that the server sent. Waits until there are some.

        Args:
            stopped: asked now and then while the server is silent: whether to give up.
        """

    def close(self) -> None:
        """Close the connection. It may be called more than once."""
