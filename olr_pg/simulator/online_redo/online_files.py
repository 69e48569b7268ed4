"""Carries out steps on the files of the online logs and of the archive.

It also carries out steps in real time, so that redo is flushed at a given rate.

It also contains the steps with which instances and their archiver change files.

A step is a value; `online_files.OnlineFiles` carries it out.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from olr_pg.simulator.fields.headers import HeaderBlock


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
        """Return the file's descriptor. It stays open, so that it works after the file was made
        unreadable.
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
        stop: when it is set, all waits end.
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
