"""The control file's information on the online logs: groups, members, and the views on them.

Groups are immutable, and the dictionary of all groups is replaced as a whole. So another thread
that reads the views always sees a consistent state.

It also contains faults of members: a file is lost, unreadable or not written any more; and their
repair.
"""

from __future__ import annotations

import string
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from olr_pg.scalars import SCN_NONE, decode_redo_time
from olr_pg.simulator.online_redo.online_files import ForbidReading, RemoveFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from random import Random

    from olr_pg.simulator.fields.headers import HeaderBlock
    from olr_pg.simulator.fields.redo_format import RedoFormat
    from olr_pg.simulator.online_redo.online_files import CreateFile, Step

CURRENT: Final = "CURRENT"
ACTIVE: Final = "ACTIVE"
INACTIVE: Final = "INACTIVE"
UNUSED: Final = "UNUSED"
UNASSIGNED: Final = "UNASSIGNED"
INVALID: Final = "INVALID"

_HIGHEST_SCN: Final = (1 << 48) - 1


@dataclass(frozen=True, slots=True)
class MemberFile:
    """A file of a group.

    Attributes:
        name: name of the file, without a folder.
        is_written: the instance writes the file; if not, V$LOGFILE shows it as INVALID.
        is_readable: the file exists and can be read.
    """

    name: str
    is_written: bool = True
    is_readable: bool = True

    @property
    def is_good(self) -> bool:
        """Whether the complete redo of the group can be read from the file."""
        return self.is_written and self.is_readable


@dataclass(frozen=True, slots=True)
class Group:
    """A group of online logs.

    Attributes:
        header: header of the log in its files; None if no log was written to them yet.
    """

    number: int
    thread: int
    members: tuple[MemberFile, ...]
    header: HeaderBlock | None = None
    status: str = UNUSED
    is_archived: bool = True

    @property
    def written(self) -> tuple[str, ...]:
        """The names of the files that the instance writes."""
        return tuple(member.name for member in self.members if member.is_written)


class ControlFile:
    """The groups of all threads.

    Args:
        threads: the numbers of the threads.
        groups: number of groups of each thread.
        members: number of files of each group.
        blocks: number of blocks of each file, including block 0.
    """

    def __init__(
        self, redo: RedoFormat, threads: Sequence[int], groups: int, members: int, blocks: int
    ) -> None:
        self._long_scn, self._block_size = redo.long_scn, redo.block_size
        self._blocks = blocks
        self._threads = tuple(threads)
        self.groups: dict[int, Group] = {}
        for place, thread in enumerate(threads):
            for number in range(1 + place * groups, 1 + (place + 1) * groups):
                names = (f"redo{number:02}{letter}.log" for letter in string.ascii_lowercase)
                files = tuple(
                    MemberFile(name) for name, _ in zip(names, range(members), strict=False)
                )
                self.groups[number] = Group(number, thread, files)

    def ring(self, thread: int) -> list[Group]:
        """Return a thread's groups in the order in which they are used."""
        return [group for group in self.groups.values() if group.thread == thread]

    def change(self, number: int, **values: Any) -> Group:
        """Change fields of a group; return the changed group."""
        group = replace(self.groups[number], **values)
        self.groups = self.groups | {number: group}
        return group

    def change_member(self, number: int, name: str, **values: Any) -> Group:
        """Change fields of a member of a group; return the changed group."""
        members = tuple(
            replace(member, **values) if member.name == name else member
            for member in self.groups[number].members
        )
        return self.change(number, members=members)

    def switch(self, number: int, header: HeaderBlock) -> None:
        """Make a group CURRENT; the thread's CURRENT group becomes ACTIVE, its ACTIVE group
        INACTIVE.
        """
        after = {CURRENT: ACTIVE, ACTIVE: INACTIVE}
        begun = self.groups[number]
        self.groups = {
            own: group
            if group.thread != begun.thread
            else replace(group, status=after.get(group.status, group.status))
            for own, group in self.groups.items()
        } | {number: replace(begun, header=header, status=CURRENT, is_archived=False)}

    def reset(self) -> None:
        """Reset all groups: they contain no log."""
        self.groups = {
            number: replace(group, header=None, status=UNUSED, is_archived=True)
            for number, group in self.groups.items()
        }

    def logs(self) -> Iterator[dict[str, object]]:
        """Yield the rows of V$LOG."""
        none = SCN_NONE if self._long_scn else _HIGHEST_SCN
        for group in self.groups.values():
            header = group.header
            yield {
                "GROUP#": group.number,
                "THREAD#": group.thread,
                "SEQUENCE#": header.sequence if header else 0,
                "BYTES": self._blocks * self._block_size,
                "BLOCKSIZE": self._block_size,
                "MEMBERS": len(group.members),
                "ARCHIVED": "YES" if group.is_archived else "NO",
                "STATUS": group.status,
                "FIRST_CHANGE#": header.first_scn if header else 0,
                "FIRST_TIME": decode_redo_time(header.first_time) if header else None,
                "NEXT_CHANGE#": min(header.next_scn, none) if header else 0,
            }

    def standby_logs(self) -> Iterator[dict[str, object]]:
        """Yield the rows of V$STANDBY_LOG for a standby that writes the redo it receives to these
        files.

        A group is assigned to a log from the beginning of the log until the log is archived.
        """
        for row in self.logs():
            del row["MEMBERS"]
            if row["STATUS"] == CURRENT:
                yield row | {"STATUS": ACTIVE, "NEXT_CHANGE#": None}
            elif row["ARCHIVED"] == "NO":
                yield row | {"STATUS": ACTIVE}
            else:
                none = dict.fromkeys(("FIRST_CHANGE#", "FIRST_TIME", "NEXT_CHANGE#"))
                free = {"THREAD#": 0, "SEQUENCE#": 0, "ARCHIVED": "NO", "STATUS": UNASSIGNED}
                yield row | free | none

    def log_files(self, folder: str, kind: str = "ONLINE") -> Iterator[dict[str, object]]:
        """Yield the rows of V$LOGFILE.

        Args:
            folder: the folder of the files.
            kind: ONLINE or STANDBY.
        """
        for group in self.groups.values():
            for member in group.members:
                yield {
                    "GROUP#": group.number,
                    "STATUS": None if member.is_written else INVALID,
                    "TYPE": kind,
                    "MEMBER": f"{folder}/{member.name}",
                }

    def threads(self) -> Iterator[dict[str, object]]:
        """Yield the rows of V$THREAD."""
        for thread in self._threads:
            current = [g for g in self.ring(thread) if g.status == CURRENT and g.header is not None]
            yield {
                "THREAD#": thread,
                "STATUS": "OPEN",
                "ENABLED": "PUBLIC",
                "INSTANCE": f"sim{thread}",
                "SEQUENCE#": current[0].header.sequence if current and current[0].header else 0,
            }


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
