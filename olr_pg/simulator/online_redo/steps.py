"""The steps with which instances and their archiver change files.

A step is a value; `online_files.OnlineFiles` carries it out.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
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
