"""Faults of the files of a group: lost, unreadable, no longer written, created again."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from olr_pg.simulator.online_redo.steps import ForbidReading, RemoveFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

    from olr_pg.simulator.online_redo.control_file import ControlFile, MemberFile
    from olr_pg.simulator.online_redo.steps import CreateFile, Step


_FAULTS: Final[tuple[tuple[dict[str, bool], Callable[[str], Step] | None], ...]] = (
    ({"is_written": False, "is_readable": False}, RemoveFile),
    ({"is_readable": False}, partial(ForbidReading, forbidden=True)),
    ({"is_written": False}, None),
)
"""The file is taken away, and the instance notices; readers lose access, and the instance
continues; it stays as it is, for the instance could not write it once.
"""


class MemberFaults:
    """Faults of members; one member of each group stays good.

    Args:
        chance: that something happens when a group is used again.
    """

    def __init__(self, control: ControlFile, rng: Random, chance: float) -> None:
        self._control, self._rng, self._chance = control, rng, chance

    def at_switch(self, number: int, create: Callable[[str], CreateFile]) -> Iterator[Step]:
        """Yield the faults of a group's members before its next log begins."""
        if self._rng.random() >= self._chance:
            return
        members = self._control.groups[number].members
        bad = [member for member in members if not member.is_good]
        if bad and self._rng.random() < 0.5:
            yield from self._mend(number, self._rng.choice(bad), create)
            return
        good = [member for member in members if member.is_good]
        if len(good) > 1:
            name = self._rng.choice(good).name
            values, step = self._rng.choice(_FAULTS)
            self._control.change_member(number, name, **values)
            if step is not None:
                yield step(name)

    def _mend(
        self, number: int, member: MemberFile, create: Callable[[str], CreateFile]
    ) -> Iterator[Step]:
        self._control.change_member(number, member.name, is_written=True, is_readable=True)
        yield (
            ForbidReading(member.name, forbidden=False)
            if member.is_written
            else create(member.name)
        )
