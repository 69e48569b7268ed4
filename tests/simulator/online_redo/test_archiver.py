"""Copies of logs that have ended."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from olr_pg.simulator.fields.headers import OsHeader
from olr_pg.simulator.online_redo.archiver import Archiver
from olr_pg.simulator.online_redo.control_file import ControlFile
from olr_pg.simulator.online_redo.steps import Archived, CopyToArchive, Step, WriteArchive
from tests.simulator.online_redo.played import Source
from tests.simulator.reader import parse_log


def archiver_of(shop: Source, lag: int | None) -> tuple[Archiver, ControlFile]:
    control = ControlFile(shop.redo, [1], 3, 2, 100)
    return Archiver(shop.redo, control, Random(1), lag), control


def all_steps(archiver: Archiver) -> list[Step]:
    return [step for _ in range(1_000) for step in archiver.step()]


def test_a_log_is_copied_whole_from_a_member_that_is_written(shop: Source) -> None:
    archiver, control = archiver_of(shop, 0)
    header = parse_log(bytes(shop.logs[0].data)).header
    control.switch(1, header)
    control.change_member(1, "redo01a.log", is_written=False)
    archiver.add(1, header)
    assert archiver.is_working
    assert not archiver.may_reuse(1)
    first, *copies, last = all_steps(archiver)
    name = f"arch1_{header.sequence}_{header.resetlogs}.dbf"
    assert first == WriteArchive(name, OsHeader(header.nab - 1).image(shop.redo))
    end = shop.redo.block_size
    for copy in copies:
        assert isinstance(copy, CopyToArchive)
        assert (copy.name, copy.member, copy.offset) == (name, "redo01b.log", end)
        end += copy.size
    assert end == header.nab * shop.redo.block_size
    assert last == Archived(name, header)
    assert control.groups[1].is_archived
    assert archiver.may_reuse(1)
    assert not archiver.is_working


def test_a_copy_waits_for_its_switches_unless_its_group_is_needed(shop: Source) -> None:
    header = parse_log(bytes(shop.logs[0].data)).header
    for needed in (False, True):
        archiver, _ = archiver_of(shop, 9)
        archiver.add(1, header)
        assert not archiver.is_working
        if needed:
            assert not archiver.may_reuse(1)
        else:
            for _ in range(9):
                archiver.switched()
        assert archiver.is_working


def test_two_logs_are_copied_at_a_time(shop: Source) -> None:
    archiver, _ = archiver_of(shop, 0)
    headers = [parse_log(bytes(log.data)).header for log in shop.logs[:3]]
    for number, header in enumerate(headers, 1):
        archiver.add(number, replace(header, nab=40_000))
    steps = all_steps(archiver)
    begun = [at for at, step in enumerate(steps) if isinstance(step, WriteArchive)]
    ended = [at for at, step in enumerate(steps) if isinstance(step, Archived)]
    assert begun[1] < ended[0] < begun[2]


def test_a_stopped_archiver_does_nothing(shop: Source) -> None:
    archiver, _ = archiver_of(shop, 0)
    archiver.add(1, parse_log(bytes(shop.logs[0].data)).header)
    archiver.stop()
    assert all_steps(archiver) == []
    archiver.start()
    assert all_steps(archiver)


def test_what_is_left_may_be_forgotten(shop: Source) -> None:
    archiver, _ = archiver_of(shop, 0)
    archiver.add(1, parse_log(bytes(shop.logs[0].data)).header)
    archiver.forget()
    assert all_steps(archiver) == []


def test_without_archiving_every_group_may_be_reused(shop: Source) -> None:
    archiver, _ = archiver_of(shop, None)
    archiver.add(1, parse_log(bytes(shop.logs[0].data)).header)
    assert archiver.may_reuse(1)
    assert not archiver.is_working
