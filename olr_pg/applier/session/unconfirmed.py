"""The count of what was received and is not durable: the server keeps it until it is confirmed."""

from __future__ import annotations

from collections import deque

from olr_pg.wire.protocol import TRANSACTION_BYTES


class Unconfirmed:
    """Counts as the server counts; what is open does not count, since it cannot be confirmed.

    Args:
        bytes_max: past which `is_too_much`.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._ended: deque[tuple[int, int]] = deque()
        self._bytes = 0
        self._open = 0

    @property
    def is_full(self) -> bool:
        """Whether nothing more was asked for at the last look; from any thread."""
        return self._bytes > self._bytes_max

    def add(self, size: int) -> None:
        """Count so many bytes of messages that came."""
        self._open += size

    def end(self, transactions: int, last_scn: int) -> None:
        """Note that transactions ended in what came, the last one with this commit SCN."""
        size = self._open + transactions * TRANSACTION_BYTES
        self._ended.append((last_scn, size))
        self._bytes += size
        self._open = 0

    def is_too_much(self, pending_scn: int | None) -> bool:
        """Tell whether no more should be asked for.

        Args:
            pending_scn: the lowest commit SCN that is not durable; None where everything is.
        """
        while self._ended and (pending_scn is None or self._ended[0][0] < pending_scn):
            self._bytes -= self._ended.popleft()[1]
        return self._bytes > self._bytes_max

    def forget(self) -> None:
        """Forget all: everything comes again."""
        self._ended.clear()
        self._bytes = self._open = 0
