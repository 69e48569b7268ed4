"""Carries out steps in real time, so that redo is flushed at a given rate."""

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
    """Waits until each flush is due.

    If the process is late by more than `LONGEST_DELAY` seconds, it does not catch up on the rest of
    the delay.

    Args:
        rate: bytes of redo per second.
        stop: when it is set, all waits end.
        clock: returns seconds that never decrease.
    """

    def __init__(
        self, rate: int, stop: threading.Event, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._stop, self._clock = rate, stop, clock
        self._due: float | None = None

    def flushed(self, size: int) -> None:
        """Wait after a flush of `size` bytes until the next flush is due."""
        now = self._clock()
        due = (now if self._due is None else self._due) + size / self._rate
        self._due = max(due, now - LONGEST_DELAY)
        if self._due > now:
            self._stop.wait(self._due - now)

    def waiting(self) -> None:
        """Wait for a short time, because a thread waits for the archiver."""
        self._stop.wait(_WAITING_PAUSE)


def note_flush(file: BinaryIO, event: Event) -> None:
    """Write a JSON line with the time and the end of a flush, for measurements of latency.

    The line has the Unix time, thread, sequence, the block after the last complete LWN, the number
    of bytes, and an SCN above all flushed SCNs.
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
    """Carry out steps; wait after each flush until the next one is due.

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
