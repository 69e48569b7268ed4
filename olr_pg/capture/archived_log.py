"""A redo log as a value: its position in the redo stream, and the data of its header."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from olr_pg.errors import OlrPgError
    from olr_pg.redo.header import LogHeader


class LogPosition(NamedTuple):
    """The position of a log in the redo stream; sorts in the order in which the redo of a thread
    was written.

    Resetlogs ids are times, so a later incarnation sorts after an earlier one.
    """

    resetlogs_id: int
    thread: int
    sequence: int
    dbid: int


@dataclass(frozen=True, slots=True)
class ArchivedLog:
    """A complete archived log, or the complete part of a log that is still being written.

    Attributes:
        size: of the file in bytes, at least `used_bytes`.
        header: validated; its `next_scn` and `nab` are known. If the log grows, they describe its
            complete LWN groups: later redo has that SCN or a higher one.
        end_scn: the SCN from which a RESETLOGS has orphaned the redo; None if it has not.
        grows: whether it is still being written.
    """

    path: str
    size: int
    header: LogHeader
    end_scn: int | None = None
    grows: bool = False

    @property
    def position(self) -> LogPosition:
        """The place of the log in the redo stream."""
        header = self.header
        return LogPosition(header.resetlogs_id, header.thread, header.sequence, header.dbid)

    @property
    def next_scn(self) -> int:
        """The end of the log's SCNs, exclusive."""
        assert self.header.next_scn is not None
        return self.header.next_scn

    @property
    def blocks(self) -> int:
        """Number of used blocks, including the header blocks (nab)."""
        assert self.header.nab is not None
        return self.header.nab

    @property
    def used_bytes(self) -> int:
        """Bytes of the used blocks; later bytes are not redo."""
        return self.blocks * self.header.block_size


class AbsentLog(NamedTuple):
    """A log that the source has archived, but without a copy that can be read here.

    Attributes:
        problem: why the listed copies cannot be read yet; None if no copy is listed.
    """

    position: LogPosition
    first_scn: int
    next_scn: int
    problem: OlrPgError | None = None


class Reached(NamedTuple):
    """How far a redo thread was read.

    Attributes:
        log: the last log that was read to its end.
        scn: later redo has this SCN or a higher one.
        block: the block up to which the next log was read; 0 if it was not begun.
    """

    log: LogPosition
    scn: int
    block: int = 0
