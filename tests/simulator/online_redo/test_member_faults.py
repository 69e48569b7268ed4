"""Members that fail, and are mended; one of each group stays good."""

from __future__ import annotations

from random import Random

from olr_pg.simulator.online_redo.control_file import ControlFile
from olr_pg.simulator.online_redo.member_faults import MemberFaults
from olr_pg.simulator.online_redo.steps import CreateFile, ForbidReading, RemoveFile
from tests.simulator.online_redo.played import Source


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
