"""Faults of members: a file is lost, unreadable or not written any more; and their repair."""

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
"""The faults: 1. the file is removed, and the instance notices it; 2. others cannot read the file,
and the instance continues to write it; 3. the instance stops writing the file, which keeps its
content.
"""


class MemberFaults:
    """Produces faults of members; one member of each group always stays good.

    Args:
        chance: probability of a fault or a repair when a group is used again.
    """

    def __init__(self, control: ControlFile, rng: Random, chance: float) -> None:
        self._control, self._rng, self._chance = control, rng, chance

    def at_switch(self, number: int, create: Callable[[str], CreateFile]) -> Iterator[Step]:
        """Yield a fault or a repair of a group's member, before the group's next log begins."""
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
