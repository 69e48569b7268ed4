"""Steps carried out on files.

Flushes come at the rate that was asked for.
"""

from __future__ import annotations

import io
import json
import threading
from pathlib import Path

import pytest

from olr_pg.simulator.online_redo.online_files import (
    Archived,
    CopyToArchive,
    CreateFile,
    Event,
    ForbidReading,
    OnlineEventKind,
    OnlineFiles,
    Pacing,
    RemoveFile,
    Step,
    Write,
    WriteArchive,
    note_flush,
    play,
)
from tests.simulator.online_redo.played import Source
from tests.simulator.reader import parse_log

CREATE = CreateFile("redo01a.log", b"head", 2_000)


def test_a_file_is_made_written_and_made_anew_in_place(tmp_path: Path) -> None:
    path = tmp_path / "online" / "redo01a.log"
    with OnlineFiles(tmp_path / "online", tmp_path / "logs") as files:
        files.apply(CREATE)
        assert path.read_bytes() == b"head" + bytes(1_996)
        files.apply(Write("redo01a.log", 1_000, b"redo"))
        assert path.read_bytes() == b"head" + bytes(996) + b"redo" + bytes(996)
        before = path.stat().st_ino
        files.apply(CREATE)
        assert path.read_bytes() == b"head" + bytes(1_996)
        assert path.stat().st_ino == before


def test_a_file_that_is_gone_can_be_made_again(tmp_path: Path) -> None:
    path = tmp_path / "online" / "redo01a.log"
    with OnlineFiles(tmp_path / "online", tmp_path / "logs") as files:
        files.apply(CREATE)
        files.apply(RemoveFile("redo01a.log"))
        assert not path.exists()
        files.apply(CREATE)
        files.apply(Write("redo01a.log", 4, b"redo"))
        assert path.read_bytes()[:8] == b"headredo"


def test_the_instance_writes_what_others_may_not_read(tmp_path: Path) -> None:
    path = tmp_path / "online" / "redo01a.log"
    with OnlineFiles(tmp_path / "online", tmp_path / "logs") as files:
        files.apply(CREATE)
        files.apply(ForbidReading("redo01a.log", forbidden=True))
        assert path.stat().st_mode & 0o777 == 0
        files.apply(Write("redo01a.log", 4, b"redo"))
        files.apply(ForbidReading("redo01a.log", forbidden=False))
        assert path.read_bytes()[:8] == b"headredo"


@pytest.mark.parametrize("growing", [False, True])
def test_an_archived_log_appears_whole_or_grows(
    shop: Source, tmp_path: Path, growing: bool
) -> None:
    data, name = bytes(shop.logs[0].data), "arch.dbf"
    making = None if growing else tmp_path / "archiving"
    archived = tmp_path / "logs" / name
    with OnlineFiles(tmp_path / "online", tmp_path / "logs", making) as files:
        files.apply(CreateFile("redo01a.log", bytes(512), len(data)))
        files.apply(Write("redo01a.log", 512, data[512:]))
        files.apply(WriteArchive(name, data[:512]))
        for at in range(512, len(data), 4_096):
            assert archived.exists() == growing
            files.apply(CopyToArchive(name, "redo01a.log", at, min(4_096, len(data) - at)))
        files.apply(Archived(name, parse_log(data).header))
    assert archived.read_bytes() == data


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
