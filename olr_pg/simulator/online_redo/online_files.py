"""Online logs and archive as files: groups, members, faults, and the steps that change them.

A step is a value. Instances and their archiver make steps, and `OnlineFiles` carries them out.
`OnlineFiles` can work in real time, so that redo is flushed at a given rate.

The control file has the groups and members, and the views on them. Groups are immutable, and the
dictionary of all groups is replaced as a whole. So another thread that reads the views always sees
a consistent state. A fault of a member is a file that is lost, unreadable or not written any more.
"""

from __future__ import annotations

import json
import os
import string
import time
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple

from olr_pg.scalars import SCN_NONE, decode_redo_time

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path
    from random import Random

    from olr_pg.simulator.fields.redo_format import RedoFormat
    from olr_pg.simulator.writer.log_file import HeaderBlock


@dataclass(frozen=True, slots=True)
class CreateFile:
    """Create a member's file, or clear it: block 0, followed by zeros.

    Attributes:
        size: size of the file in bytes.
    """

    member: str
    block_0: bytes
    size: int


@dataclass(frozen=True, slots=True)
class Write:
    """Write bytes into a member's file; they may begin and end within a block."""

    member: str
    offset: int
    data: bytes | memoryview


@dataclass(frozen=True, slots=True)
class RemoveFile:
    """Remove a member's file."""

    member: str


@dataclass(frozen=True, slots=True)
class ForbidReading:
    """Let only the owner of a member's file (root) read it; if not `forbidden`, let everybody read
    it.
    """

    member: str
    forbidden: bool


@dataclass(frozen=True, slots=True)
class WriteArchive:
    """Begin an archived log with its block 0."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class CopyToArchive:
    """Copy bytes of a member's file to the same place of an archived log."""

    name: str
    member: str
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Archived:
    """Give a complete archived log its final name; V$ARCHIVED_LOG contains it from now on."""

    name: str
    header: HeaderBlock


@dataclass(frozen=True, slots=True)
class OpenResetlogs:
    """The database is opened with RESETLOGS: all online logs are empty.

    Attributes:
        header: header of the first log of the new incarnation.
    """

    header: HeaderBlock


class OnlineEventKind(StrEnum):
    """The kinds of events. Events do not change files."""

    FLUSHED = "flushed"
    """A flush is complete in every member in use: its commits are acknowledged."""
    SWITCHED = "switched"
    """The thread writes to the next log from now on."""
    WAITING = "waiting"
    """The thread cannot switch: its next group must be archived first."""
    CRASHED = "crashed"
    RECOVERED = "recovered"
    """The log of the crashed thread was ended after its last complete LWN."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a redo thread.

    Attributes:
        sequence: sequence of the thread's log.
        block: the block after the last complete LWN.
        size: bytes that were flushed to each member.
        scn: an SCN above those of all flushed records.
    """

    kind: OnlineEventKind
    thread: int
    sequence: int
    block: int = 0
    size: int = 0
    scn: int = 0


Step = (
    CreateFile
    | Write
    | RemoveFile
    | ForbidReading
    | WriteArchive
    | CopyToArchive
    | Archived
    | OpenResetlogs
    | Event
)


class LwnPosition(NamedTuple):
    """The end of an LWN: incarnation, log, block."""

    resetlogs: int
    sequence: int
    block: int


_PRIVATE: Final = 0o000
_PUBLIC: Final = 0o644
_ZEROS: Final = 1 << 20


class OnlineFiles:
    """The folders in which steps are carried out; a context manager.

    Args:
        online: folder of the members' files; created if it does not exist.
        archive: folder of the archived logs; created if it does not exist.
        making: folder in which archived logs grow before they are renamed into `archive`; None:
            they grow in `archive`.
    """

    def __init__(self, online: Path, archive: Path, making: Path | None = None) -> None:
        for folder in (online, archive, *(() if making is None else (making,))):
            folder.mkdir(parents=True, exist_ok=True)
        self._online, self._archive, self._making = online, archive, making or archive
        self._open = dict[str, int]()

    def __enter__(self) -> OnlineFiles:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the files."""
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()

    def apply(self, step: Step) -> None:
        """Carry a step out.

        Raises:
            OSError: an operation of the file system failed.
        """
        match step:
            case Write():
                os.pwrite(self._member(step.member), step.data, step.offset)
            case CreateFile():
                self._create(step)
            case RemoveFile():
                self._close(step.member)
                (self._online / step.member).unlink(missing_ok=True)
            case ForbidReading():
                mode = _PRIVATE if step.forbidden else _PUBLIC
                (self._online / step.member).chmod(mode)
            case WriteArchive():
                (self._making / step.name).write_bytes(step.data)
            case CopyToArchive():
                self._copy(step)
            case Archived():
                if self._making != self._archive:
                    (self._making / step.name).rename(self._archive / step.name)
            case Event() | OpenResetlogs():
                pass

    def _create(self, step: CreateFile) -> None:
        """Fill a file with zeros; an existing file is overwritten in place, as by CLEAR LOGFILE."""
        path = self._online / step.member
        path.touch(_PUBLIC)
        file = self._member(step.member)
        os.ftruncate(file, step.size)
        for at in range(0, step.size, _ZEROS):
            os.pwrite(file, bytes(min(_ZEROS, step.size - at)), at)
        os.pwrite(file, step.block_0, 0)

    def _copy(self, step: CopyToArchive) -> None:
        data = os.pread(self._member(step.member), step.size, step.offset)
        with (self._making / step.name).open("r+b", buffering=0) as file:
            file.seek(step.offset)
            file.write(data)

    def _member(self, name: str) -> int:
        """Return the file's descriptor. The descriptor stays open, so that it works after the file
        was made unreadable.
        """
        if name not in self._open:
            self._open[name] = os.open(self._online / name, os.O_RDWR)
        return self._open[name]

    def _close(self, name: str) -> None:
        if name in self._open:
            os.close(self._open.pop(name))


LONGEST_DELAY: Final = 1.0
_WAITING_PAUSE: Final = 0.05


class Pacing:
    """Waits until each flush is due.

    If the process is late by more than `LONGEST_DELAY` seconds, it does not catch up on the rest of
    the delay.

    Args:
        rate: bytes of redo per second.
        stop: when this event is set, all waits end.
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
        """Reset all groups, so that they contain no log."""
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
