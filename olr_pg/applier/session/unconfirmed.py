"""Counts what was received and is not durable yet; the server keeps it until it is confirmed."""

from __future__ import annotations

from collections import deque

from olr_pg.wire.protocol import TRANSACTION_BYTES


class Unconfirmed:
    """Counts as the server does; open transactions do not count, because they cannot be confirmed.

    Args:
        bytes_max: the limit of `is_too_much`.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._ended: deque[tuple[int, int]] = deque()
        self._bytes = 0
        self._open = 0

    @property
    def is_full(self) -> bool:
        """Whether the limit was exceeded at the last check; thread-safe."""
        return self._bytes > self._bytes_max

    def add(self, size: int) -> None:
        """Add the size of received messages."""
        self._open += size

    def end(self, transactions: int, last_scn: int) -> None:
        """Record that transactions ended, the last one with this commit SCN."""
        size = self._open + transactions * TRANSACTION_BYTES
        self._ended.append((last_scn, size))
        self._bytes += size
        self._open = 0

    def is_too_much(self, pending_scn: int | None) -> bool:
        """Return whether the limit is exceeded, so that nothing more should be requested.

        Args:
            pending_scn: the lowest commit SCN that is not durable; None if everything is durable.
        """
        while self._ended and (pending_scn is None or self._ended[0][0] < pending_scn):
            self._bytes -= self._ended.popleft()[1]
        return self._bytes > self._bytes_max

    def forget(self) -> None:
        """Reset the count, because everything is delivered again."""
        self._ended.clear()
        self._bytes = self._open = 0
