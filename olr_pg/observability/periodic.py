"""Runs a task periodically in a thread."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable


class Periodic:
    """Runs a task periodically, from `start` to `stop`, or while the context is active.

    Args:
        name: the name of the thread.
        seconds: pause between two runs.
        work: the task; must not raise.
        at_once: whether the task first runs at the start; otherwise it first runs after `seconds`.
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
        """Stop the thread, and wait until a run in progress has ended."""
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
