"""Flushes come at the rate that was asked for."""

from __future__ import annotations

import io
import json
import threading
from pathlib import Path

from olr_pg.simulator.online_redo.online_files import OnlineFiles
from olr_pg.simulator.online_redo.player import Pacing, note_flush, play
from olr_pg.simulator.online_redo.steps import Event, OnlineEventKind, Step


class Clock(threading.Event):
    """A clock that waiting moves on; set from a time on."""

    def __init__(self, end: float = 1e9) -> None:
        super().__init__()
        self.now, self.end = 100.0, end

    def is_set(self) -> bool:
        return self.now >= self.end

    def wait(self, timeout: float | None = None) -> bool:
        if not self.is_set():
            self.now = min(self.now + (timeout or 0.0), self.end)
        return self.is_set()


def test_a_flush_waits_for_its_bytes() -> None:
    clock = Clock()
    pacing = Pacing(1_000, clock, lambda: clock.now)
    for expected in (100.5, 101.0, 101.5):
        pacing.flushed(500)
        assert clock.now == expected
    clock.now += 0.4
    pacing.flushed(500)  # what was late is made up for
    assert clock.now == 102.0
    clock.now += 60
    pacing.flushed(500)  # but not a time in which the process stood still
    assert clock.now == 162.0
    for _ in range(3):
        pacing.flushed(500)
    assert clock.now == 162.5


def test_nothing_waits_once_it_is_stopped() -> None:
    clock = Clock(end=100.2)
    pacing = Pacing(1_000, clock, lambda: clock.now)
    for _ in range(10):
        pacing.flushed(500)
        pacing.waiting()
    assert clock.now == 100.2


def test_steps_are_carried_out_and_told(tmp_path: Path) -> None:
    clock = Clock()
    flushed = Event(OnlineEventKind.FLUSHED, 1, 7, 9, size=2_000, scn=500)
    steps: list[Step] = [flushed, Event(OnlineEventKind.WAITING, 1, 7), flushed]
    told = list[Step]()
    with OnlineFiles(tmp_path / "online", tmp_path / "logs") as files:
        play(steps, files, Pacing(1_000, clock, lambda: clock.now), told.append)
    assert told == steps
    assert clock.now == 104.0


def test_flushes_are_written_down_with_their_time() -> None:
    file = io.BytesIO()
    note_flush(file, Event(OnlineEventKind.FLUSHED, 1, 7, 9, size=2_000, scn=500))
    line = json.loads(file.getvalue())
    assert line.pop("time") > 1.7e9
    assert line == {"thread": 1, "sequence": 7, "block": 9, "bytes": 2_000, "scn": 500}
