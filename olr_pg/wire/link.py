"""A link to the server, as whoever holds the client's side of the protocol uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.wire.client import ClientProtocol


class ServerLink(Protocol):
    """Carries the bytes of one connection; every method raises OSError where it is broken."""

    def send(self, requests: bytes) -> None:
        """Bring requests to the server."""

    def receive(self, client: ClientProtocol, stopped: Callable[[], bool]) -> None:
        """Give `client` what the server answered; waits until there is something.

        Args:
            stopped: asked now and then while the server is silent: whether to give up.
        """

    def close(self) -> None:
        """End the connection; may be called again."""
