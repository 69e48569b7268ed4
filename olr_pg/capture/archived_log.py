"""A log as a value: its place in the redo stream, and what its header says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from olr_pg.redo.header import LogHeader


class LogPosition(NamedTuple):
    """The place of a log in the redo stream; orders as the redo was written, thread by thread.

    Resetlogs ids are redo times, so a later incarnation sorts behind an earlier one.
    """

    resetlogs_id: int
    thread: int
    sequence: int
    dbid: int


@dataclass(frozen=True, slots=True)
class ArchivedLog:
    """A complete archived log, or what is complete of a log that is still being written.

    Attributes:
        size: of the file in bytes, at least `used_bytes`.
        header: checked; its `next_scn` and `nab` are known. Where the log grows, they are those of
            its complete LWN groups: what comes behind them has that SCN or a higher one.
        end_scn: the SCN from which the redo is orphaned by a RESETLOGS; None where it is not.
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
        """Exclusive end of the log's SCNs."""
        assert self.header.next_scn is not None
        return self.header.next_scn

    @property
    def blocks(self) -> int:
        """Blocks in use, the headers included (nab)."""
        assert self.header.nab is not None
        return self.header.nab

    @property
    def used_bytes(self) -> int:
        """Bytes of the blocks in use; what lies behind is not redo."""
        return self.blocks * self.header.block_size


class AbsentLog(NamedTuple):
    """A log that the source has archived, and of which it names no copy that can be used here."""

    position: LogPosition
    first_scn: int
    next_scn: int


class Reached(NamedTuple):
    """How far a redo thread was read.

    Attributes:
        log: the last one that was read to its end.
        scn: what comes behind has it or a higher one.
        block: up to which the log behind that was read, too; 0: not begun.
    """

    log: LogPosition
    scn: int
    block: int = 0
