"""Counts the bytes of received changes that are not durable yet. The server keeps them until they
are confirmed.
"""

from __future__ import annotations

from collections import deque

from olr_pg.wire.protocol import TRANSACTION_BYTES


class Unconfirmed:
    """Counts unconfirmed bytes in the same way as the server. A transaction counts only after its
    Commit was received, because it cannot be confirmed before.

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
        """Whether the limit is exceeded, according to the last call of `is_too_much`;
        thread-safe.
        """
        return self._bytes > self._bytes_max

    def add(self, size: int) -> None:
        """Add the size of received messages."""
        self._open += size

    def end(self, transactions: int, last_scn: int) -> None:
        """Record that the Commits of transactions were received. `last_scn` is the last commit
        SCN.
        """
        size = self._open + transactions * TRANSACTION_BYTES
        self._ended.append((last_scn, size))
        self._bytes += size
        self._open = 0

    def is_too_much(self, pending_scn: int | None) -> bool:
        """Return whether the limit is exceeded. If so, nothing more should be requested.

        Args:
            pending_scn: the lowest commit SCN that is not durable yet; None if all changes are
                durable.
        """
        while self._ended and (pending_scn is None or self._ended[0][0] < pending_scn):
            self._bytes -= self._ended.popleft()[1]
        return self._bytes > self._bytes_max

    def forget(self) -> None:
        """Reset the count, because the server delivers all these changes again."""
        self._ended.clear()
        self._bytes = self._open = 0
