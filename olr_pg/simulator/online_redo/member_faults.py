"""What happens to the files of a group: lost, not readable, not written any more, made anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.simulator.online_redo.steps import ForbidReading, RemoveFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

    from olr_pg.simulator.online_redo.control_file import ControlFile, Member
    from olr_pg.simulator.online_redo.steps import CreateFile, Step


class MemberFaults:
    """Faults of members, of which each group keeps one that is good.

    Args:
        chance: that something happens when a group is used again.
    """

    def __init__(self, control: ControlFile, rng: Random, chance: float) -> None:
        self._control, self._rng, self._chance = control, rng, chance

    def at_switch(self, number: int, create: Callable[[str], CreateFile]) -> Iterator[Step]:
        """Yield what happens to a group's members before its next log begins."""
        if self._rng.random() >= self._chance:
            return
        members = self._control.groups[number].members
        bad = [member for member in members if not member.is_good]
        if bad and self._rng.random() < 0.5:
            yield from self._mend(number, self._rng.choice(bad), create)
            return
        good = [member for member in members if member.is_good]
        if len(good) > 1:
            yield from self._spoil(number, self._rng.choice(good).name)

    def _spoil(self, number: int, name: str) -> Iterator[Step]:
        kind = self._rng.choice((self._remove, self._forbid, self._abandon))
        yield from kind(number, name)

    def _remove(self, number: int, name: str) -> Iterator[Step]:
        """Take the file away; the instance notices."""
        self._control.change_member(number, name, is_written=False, is_readable=False)
        yield RemoveFile(name)

    def _forbid(self, number: int, name: str) -> Iterator[Step]:
        """Who reads may no longer; the instance goes on."""
        self._control.change_member(number, name, is_readable=False)
        yield ForbidReading(name, forbidden=True)

    def _abandon(self, number: int, name: str) -> Iterator[Step]:
        """Leave the file as it is: the instance could not write it once."""
        self._control.change_member(number, name, is_written=False)
        yield from ()

    def _mend(
        self, number: int, member: Member, create: Callable[[str], CreateFile]
    ) -> Iterator[Step]:
        self._control.change_member(number, member.name, is_written=True, is_readable=True)
        yield (
            ForbidReading(member.name, forbidden=False)
            if member.is_written
            else create(member.name)
        )
