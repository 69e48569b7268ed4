"""The steps by which an instance and its archiver change files, and their meaning.

A step is a value: `online_files.OnlineFiles` carries it out.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from olr_pg.simulator.fields.headers import HeaderBlock


@dataclass(frozen=True, slots=True)
class CreateFile:
    """Create a member's file again: block 0, followed by zeros.

    Attributes:
        size: of the file in bytes.
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
    """Take a member's file away."""

    member: str


@dataclass(frozen=True, slots=True)
class ForbidReading:
    """Make a member's file readable only by its owner, root."""

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
    """An archived log is whole; from now on it has its name, and V$ARCHIVED_LOG knows it."""

    name: str
    header: HeaderBlock


@dataclass(frozen=True, slots=True)
class OpenResetlogs:
    """The database is opened with RESETLOGS: all online logs are empty.

    Attributes:
        header: of the first log of the new incarnation.
    """

    header: HeaderBlock


class OnlineEventKind(StrEnum):
    """The kinds of events, which change no file."""

    FLUSHED = "flushed"
    """A flush is whole in every member in use: its commits are acknowledged."""
    SWITCHED = "switched"
    """The thread writes to the next log from now on."""
    WAITING = "waiting"
    """The thread cannot switch: its next group must be archived first."""
    CRASHED = "crashed"
    RECOVERED = "recovered"
    """The crashed thread's log ends with its last whole LWN."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something has happened.

    Attributes:
        sequence: of the thread's log.
        block: after the last complete LWN.
        size: bytes that were flushed, in each member.
        scn: above the SCN of all that was flushed.
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
