"""The bound on what the workers of an applier have not applied yet: one for all of them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class UnappliedBound:
    """The bytes that wait, and their bound. All methods may be called from any thread.

    One table that gets all changes may use all of the room.

    Args:
        bytes_max: past which `wait` waits.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._used = 0
        self._changed = threading.Condition()

    @property
    def is_short(self) -> bool:
        """Tell whether more than the bound waits: nothing more comes until some is applied."""
        return self._used > self._bytes_max

    @property
    def is_tight(self) -> bool:
        """Tell whether half of it is used: what is kept back to collect more should go."""
        return self._used > self._bytes_max // 2

    def take(self, size: int) -> None:
        """Count bytes that wait from now on, also past the bound."""
        with self._changed:
            self._used += size

    def give_back(self, size: int) -> None:
        """Count bytes that wait no more."""
        with self._changed:
            self._used -= size
            self._changed.notify_all()

    def wait(self, has_stopped: Callable[[], bool]) -> None:
        """Wait until there is room, or none is to be hoped for (`wake` lets that be asked)."""
        with self._changed:
            self._changed.wait_for(lambda: not self.is_short or has_stopped())

    def wake(self) -> None:
        """Wake the threads that wait for room."""
        with self._changed:
            self._changed.notify_all()
