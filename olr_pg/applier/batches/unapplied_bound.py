"""The limit on changes that an applier's workers have not applied yet, shared by all workers."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class UnappliedBound:
    """Counts the bytes of waiting changes, and limits them. All methods are thread-safe.

    One table alone can use the whole limit.

    Args:
        bytes_max: the limit; above it, `wait` waits.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._used = 0
        self._changed = threading.Condition()

    @property
    def is_short(self) -> bool:
        """Return whether the limit is exceeded. If so, nothing more is received until changes are
        applied.
        """
        return self._used > self._bytes_max

    @property
    def is_tight(self) -> bool:
        """Return whether more than half of the limit is used. If so, waiting changes should be
        applied soon, in smaller batches.
        """
        return self._used > self._bytes_max // 2

    def take(self, size: int) -> None:
        """Add the bytes of changes that begin to wait. This never blocks."""
        with self._changed:
            self._used += size

    def give_back(self, size: int) -> None:
        """Subtract the bytes of changes that no longer wait."""
        with self._changed:
            self._used -= size
            self._changed.notify_all()

    def wait(self, has_stopped: Callable[[], bool]) -> None:
        """Wait until the limit is not exceeded or `has_stopped` returns True, which is checked
        again after each `wake`.
        """
        with self._changed:
            self._changed.wait_for(lambda: not self.is_short or has_stopped())

    def wake(self) -> None:
        """Let the threads in `wait` check their conditions again."""
        with self._changed:
            self._changed.notify_all()
