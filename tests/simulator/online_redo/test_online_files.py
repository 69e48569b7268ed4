"""Steps carried out on files.

Flushes come at the rate that was asked for.
"""

from __future__ import annotations

import io
import json
import threading
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from olr_pg.scalars import SCN_NONE, decode_redo_time
from olr_pg.simulator.online_redo.online_files import (
    Archived,
    ControlFile,
    CopyToArchive,
    CreateFile,
    Event,
    ForbidReading,
    MemberFaults,
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
from olr_pg.simulator.writer.log_file import HeaderBlock
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


COLUMNS = ("GROUP#", "THREAD#", "SEQUENCE#", "ARCHIVED", "STATUS", "FIRST_CHANGE#", "NEXT_CHANGE#")


@pytest.fixture
def header(shop: Source) -> HeaderBlock:
    return parse_log(bytes(shop.logs[0].data)).header


def current(header: HeaderBlock) -> HeaderBlock:
    return replace(header, next_scn=SCN_NONE)


def rows(control: ControlFile) -> list[tuple[object, ...]]:
    return [tuple(row[column] for column in COLUMNS) for row in control.logs()]


def test_each_group_goes_through_its_states(shop: Source, header: HeaderBlock) -> None:
    control = ControlFile(shop.redo, [1, 2], 3, 2, 100)
    unused = [(n, 1 + (n > 3), 0, "YES", "UNUSED", 0, 0) for n in range(1, 7)]
    assert rows(control) == unused
    first, scn = header.sequence, header.first_scn
    control.switch(1, current(header))
    assert rows(control)[0] == (1, 1, first, "NO", "CURRENT", scn, SCN_NONE)
    control.change(1, header=header)
    control.switch(2, replace(current(header), sequence=first + 1, first_scn=header.next_scn))
    assert rows(control) == [
        (1, 1, first, "NO", "ACTIVE", scn, header.next_scn),
        (2, 1, first + 1, "NO", "CURRENT", header.next_scn, SCN_NONE),
        *unused[2:],
    ]
    control.change(1, is_archived=True)
    control.switch(3, replace(current(header), sequence=first + 2))
    assert [row[3:5] for row in rows(control)[:3]] == [
        *(("YES", "INACTIVE"), ("NO", "ACTIVE"), ("NO", "CURRENT")),
    ]
    control.reset()
    assert rows(control) == unused


def test_the_other_columns_of_a_log(shop: Source, header: HeaderBlock) -> None:
    control = ControlFile(shop.redo, [1], 2, 3, 100)
    control.switch(1, header)
    row = next(control.logs())
    assert (row["BYTES"], row["BLOCKSIZE"], row["MEMBERS"]) == (51_200, 512, 3)
    assert row["FIRST_TIME"] == decode_redo_time(header.first_time)


def test_before_12_2_the_highest_scn_has_48_bits(shop: Source, header: HeaderBlock) -> None:
    control = ControlFile(replace(shop.redo, version=0x0B200400), [1], 2, 1, 100)
    control.switch(1, current(header))
    assert rows(control)[0][-1] == (1 << 48) - 1


def test_files_have_a_status_where_they_are_not_written(shop: Source) -> None:
    control = ControlFile(shop.redo, [1, 2], 2, 2, 100)
    control.change_member(3, "redo03b.log", is_written=False)
    control.change_member(4, "redo04a.log", is_readable=False)
    found = [(row["GROUP#"], row["STATUS"], row["MEMBER"]) for row in control.log_files("/redo")]
    assert found == [
        (group, "INVALID" if name == "redo03b" else None, f"/redo/{name}.log")
        for group in (1, 2, 3, 4)
        for name in (f"redo{group:02}a", f"redo{group:02}b")
    ]
    assert {row["TYPE"] for row in control.log_files("/redo")} == {"ONLINE"}


def test_threads_have_the_sequence_they_write(shop: Source, header: HeaderBlock) -> None:
    control = ControlFile(shop.redo, [1, 2], 2, 1, 100)
    control.switch(1, header)
    found = [(row["THREAD#"], row["SEQUENCE#"], row["STATUS"]) for row in control.threads()]
    assert found == [(1, header.sequence, "OPEN"), (2, 0, "OPEN")]


def test_a_standby_assigns_a_group_until_it_is_archived(shop: Source, header: HeaderBlock) -> None:
    control = ControlFile(shop.redo, [1], 3, 1, 100)
    control.switch(1, header)
    control.switch(2, current(header))

    def states() -> list[tuple[object, ...]]:
        columns = ("THREAD#", "SEQUENCE#", "STATUS", "NEXT_CHANGE#")
        return [tuple(row[column] for column in columns) for row in control.standby_logs()]

    free = (0, 0, "UNASSIGNED", None)
    used = (1, header.sequence, "ACTIVE")
    assert states() == [(*used, header.next_scn), (*used, None), free]
    control.change(1, is_archived=True)
    assert states() == [free, (*used, None), free]


def created(name: str) -> CreateFile:
    return CreateFile(name, b"", 0)


def test_of_each_group_a_member_stays_good(shop: Source) -> None:
    control = ControlFile(shop.redo, [1], 2, 3, 100)
    faults = MemberFaults(control, Random(1), 1.0)
    kinds = set[type]()
    bad = set[int]()
    for _ in range(200):
        for step in faults.at_switch(1, created):
            kinds.add(type(step))
        members = control.groups[1].members
        bad.add(sum(not member.is_good for member in members))
    assert bad == {0, 1, 2}
    assert kinds == {CreateFile, ForbidReading, RemoveFile}
    assert all(member.is_good for member in control.groups[2].members)


def test_what_is_written_is_there(shop: Source) -> None:
    """A file that the instance writes exists; one that is taken away it no longer writes."""
    control = ControlFile(shop.redo, [1], 2, 2, 100)
    faults = MemberFaults(control, Random(2), 1.0)
    there = {"redo01a.log", "redo01b.log"}
    for _ in range(100):
        for step in faults.at_switch(1, created):
            if isinstance(step, RemoveFile):
                there.remove(step.member)
            if isinstance(step, CreateFile):
                there.add(step.member)
        assert set(control.groups[1].written) <= there


def test_nothing_happens_without_a_chance(shop: Source) -> None:
    control = ControlFile(shop.redo, [1], 2, 2, 100)
    faults = MemberFaults(control, Random(1), 0.0)
    assert [step for _ in range(50) for step in faults.at_switch(1, created)] == []
