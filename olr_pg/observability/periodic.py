"""Work that is done now and then, in a thread of its own."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable


class Periodic:
    """Does a piece of work again and again, from `start` to `stop`, or for the span of a context.

    Args:
        name: of the thread.
        seconds: between the end of one piece of work and the next.
        work: raises nothing.
        at_once: whether the first one is done at the start, not `seconds` later.
    """

    def __init__(
        self, name: str, seconds: float, work: Callable[[], None], *, at_once: bool = False
    ) -> None:
        self._seconds = seconds
        self._work = work
        self._at_once = at_once
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the work at hand, and wait for its end."""
        self._over.set()
        self._thread.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    def _run(self) -> None:
        if self._at_once:
            self._work()
        while not self._over.wait(self._seconds):
            self._work()
