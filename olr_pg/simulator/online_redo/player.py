"""Plays steps against the clock: flushes come at a rate of redo."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, BinaryIO, Final

from olr_pg.simulator.online_redo.steps import Event, OnlineEventKind

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable

    from olr_pg.simulator.online_redo.online_files import OnlineFiles
    from olr_pg.simulator.online_redo.steps import Step

LONGEST_DELAY: Final = 1.0
_WAITING_PAUSE: Final = 0.05


class Pacing:
    """The time at which each flush is due.

    After a time in which the process stood still for more than `LONGEST_DELAY`, nothing is made up
    for.

    Args:
        rate: bytes of redo per second.
        stop: once it is set, nothing waits any more.
        clock: seconds that only grow.
    """

    def __init__(
        self, rate: int, stop: threading.Event, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._stop, self._clock = rate, stop, clock
        self._due: float | None = None

    def flushed(self, size: int) -> None:
        """Wait until what follows `size` bytes is due."""
        now = self._clock()
        due = (now if self._due is None else self._due) + size / self._rate
        self._due = max(due, now - LONGEST_DELAY)
        if self._due > now:
            self._stop.wait(self._due - now)

    def waiting(self) -> None:
        """Wait a little for the archiver."""
        self._stop.wait(_WAITING_PAUSE)


def note_flush(file: BinaryIO, event: Event) -> None:
    """Write down when what was flushed, in a JSON line: for measurements of latency.

    It has the Unix time, thread, sequence, the block after the last complete LWN, and an SCN above
    all flushed ones.
    """
    line = {
        "time": time.time(),
        "thread": event.thread,
        "sequence": event.sequence,
        "block": event.block,
        "bytes": event.size,
        "scn": event.scn,
    }
    file.write(json.dumps(line).encode() + b"\n")
    file.flush()


def play(
    steps: Iterable[Step],
    files: OnlineFiles,
    pacing: Pacing,
    stepped: Callable[[Step], None],
) -> None:
    """Carry out steps, flushes at their time.

    Args:
        stepped: called with each step after it is carried out.
    """
    for step in steps:
        files.apply(step)
        stepped(step)
        if isinstance(step, Event):
            if step.kind is OnlineEventKind.FLUSHED:
                pacing.flushed(step.size)
            elif step.kind is OnlineEventKind.WAITING:
                pacing.waiting()
