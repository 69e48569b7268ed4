"""Measures which table uses most of a worker's time, so that the worker's other tables wait.

A table belongs to one worker, which applies one batch at a time. If the batches of one table take
long (because its key has no index, a trigger is slow, or there are many changes), the lag of the
worker's other tables grows too, although they have no problem themselves.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

WINDOW_SECONDS: Final = 10.0
"""The time of batches is added up for this many seconds up to now (the window)."""

LARGE_SHARE: Final = 0.5
"""A table that uses at least this share of the window delays the others."""


class WorkerTime:
    """Adds up how long the batches of each table recently took; guarded by its worker's condition.

    Args:
        clock: returns a monotonic time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ended: deque[tuple[float, float, str]] = deque()
        self._begun: tuple[float, str] | None = None

    def begin(self, table: str) -> None:
        """Note that a batch of the table begins."""
        self._begun = self._clock(), table

    def end(self) -> None:
        """Note that the batch has ended."""
        if self._begun is not None:
            began, table = self._begun
            self._begun = None
            self._ended.append((began, self._clock(), table))
            self._drop()

    def slowest(self) -> str | None:
        """Return the table that took at least half of the window; None if there is none."""
        self._drop()
        now = self._clock()
        first = now - WINDOW_SECONDS
        spent: defaultdict[str, float] = defaultdict(float)
        for began, ended, table in self._ended:
            spent[table] += ended - max(began, first)
        if self._begun is not None:
            began, table = self._begun
            spent[table] += now - max(began, first)
        table, seconds = max(spent.items(), key=lambda one: one[1], default=("", 0.0))
        return table if seconds >= WINDOW_SECONDS * LARGE_SHARE else None

    def _drop(self) -> None:
        first = self._clock() - WINDOW_SECONDS
        while self._ended and self._ended[0][1] <= first:
            self._ended.popleft()
