"""Describes redo logs: their positions in the redo stream, and the data of their headers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from olr_pg.redo.header import LogHeader


class LogPosition(NamedTuple):
    """The position of a log in the redo stream. Positions of one thread sort in the order in which
    its redo was written.

    Resetlogs ids are times, so a later incarnation sorts after an earlier one.
    """

    resetlogs_id: int
    thread: int
    sequence: int
    dbid: int


class FoundLog(NamedTuple):
    """The fields of a log's header by which a later reader notices that its file was replaced.

    Attributes:
        first_scn: distinguishes the logs of a database and of its clone, which can have the same
            position.
        end: the number of used blocks and the next SCN; None while Oracle is writing the log,
            because both change when it closes the log.
    """

    position: LogPosition
    first_scn: int
    end: tuple[int, int] | None

    def check(self, header: LogHeader, path: str) -> None:
        """Check that a header that was read later is a header of this log.

        Raises:
            OlrPgError: 2022, the header belongs to another log.
        """
        blocks, next_scn = (header.nab, header.next_scn) if self.end is None else self.end
        pairs = (
            ("resetlogs id", header.resetlogs_id, self.position.resetlogs_id),
            ("thread", header.thread, self.position.thread),
            ("sequence", header.sequence, self.position.sequence),
            ("DBID", header.dbid, self.position.dbid),
            ("first SCN", header.first_scn, self.first_scn),
            ("number of blocks", header.nab, blocks),
            ("next SCN", header.next_scn, next_scn),
        )
        for what, now, before in pairs:
            if now != before:
                raise OlrPgError(
                    Code.LOG_REPLACED,
                    f"the {what} of the file is {now}; it was {before} when olr_pg found the log",
                    file=path,
                    thread=self.position.thread,
                    sequence=self.position.sequence,
                    resetlogs=self.position.resetlogs_id,
                )


@dataclass(frozen=True, slots=True)
class ArchivedLog:
    """A complete archived log, or those LWN groups of a log that are complete while Oracle still
    writes it.

    Attributes:
        size: size of the file in bytes; at least `used_bytes`.
        header: the validated log header; its `next_scn` and `nab` are never None. If the log grows,
            both describe its complete LWN groups: `nab` is the block after these groups, and later
            redo has the SCN `next_scn` or a higher one.
        end_scn: the SCN from which on a RESETLOGS has orphaned the redo; None if there was no such
            RESETLOGS.
        grows: whether Oracle is still writing the log.
        previous_end: the next SCN of the previous log of the thread; None if the source has not
            provided it. This next SCN is lower than the log's first SCN if the instance was
            restarted between the two logs (`continuity.check_chain`).
    """

    path: str
    size: int
    header: LogHeader
    end_scn: int | None = None
    grows: bool = False
    previous_end: int | None = field(default=None, compare=False)

    @property
    def position(self) -> LogPosition:
        """The position of the log in the redo stream."""
        header = self.header
        return LogPosition(header.resetlogs_id, header.thread, header.sequence, header.dbid)

    @property
    def identity(self) -> FoundLog:
        """The fields that identify the log if its file is opened again."""
        end = None if self.grows else (self.blocks, self.next_scn)
        return FoundLog(self.position, self.header.first_scn, end)

    @property
    def next_scn(self) -> int:
        """The SCN at which the log's redo ends: all its redo has a lower SCN."""
        assert self.header.next_scn is not None
        return self.header.next_scn

    @property
    def blocks(self) -> int:
        """Number of used blocks, including the header blocks (`nab` in the header)."""
        assert self.header.nab is not None
        return self.header.nab

    @property
    def used_bytes(self) -> int:
        """Bytes of the used blocks; later bytes are not redo."""
        return self.blocks * self.header.block_size


class AbsentLog(NamedTuple):
    """A log that the source has archived, but of which this process can read no copy.

    Attributes:
        problem: why the copies that the source lists cannot be read yet; None if it lists no copy.
    """

    position: LogPosition
    first_scn: int
    next_scn: int
    problem: OlrPgError | None = None


class Reached(NamedTuple):
    """The position up to which a redo thread was read.

    Attributes:
        log: the last log that was read to its end.
        scn: all redo that was not read yet has this SCN or a higher one.
        block: the block up to which the log after `log` was read; 0 if reading it has not begun.
    """

    log: LogPosition
    scn: int
    block: int = 0
