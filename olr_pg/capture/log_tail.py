"""Reads an online log while it grows: each LWN group is copied as soon as it is complete.

The redo that was read is stored in a copy of the log, at the same offsets. The copy is needed
because Oracle reuses the log's file, and decoding may read the redo twice. The copy has the format
of a redo log.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.capture.archived_log import ArchivedLog, LogPosition
from olr_pg.errors import Code, OlrPgError, system_reason
from olr_pg.files.sealed import GrowingFile
from olr_pg.redo.format.file_fields import BLOCK, BLOCK_HEADER, FIRST_DATA_BLOCK
from olr_pg.redo.log_end import Behind, LogEnd, find_end

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.capture.online_file import OnlineMember
    from olr_pg.redo.header import LogHeader

FIRST_BYTES: Final = 64 << 10
"""Bytes per read while little new redo is expected."""

MOST_BYTES: Final = 32 << 20
"""Maximum bytes per read. This maximum limits the memory if much redo was not read yet."""

TAIL_SUFFIX: Final = ".log"
"""Suffix of the name of a log's copy."""


class _Unverified(NamedTuple):
    """Blocks that were read once, and that are read again at the time `due` for comparison."""

    data: npt.NDArray[np.uint8]
    end: LogEnd
    due: float


class LogTail:
    """The part of an online log that has been read.

    Args:
        header: the log's header when it was first read.
        folder: the directory of the copy.
        verify_seconds: seconds after which blocks are read again and compared; 0 to disable this.

    Attributes:
        header: the log's header when it was last read.
        end: the block after the last LWN group that was read.
        scn: all redo from `end` on has this SCN or a higher one.
        is_lost: whether Oracle reused the file before the whole log was read.
        is_archived: whether an archived copy was found; it is read instead of the online log.
        problem: the error because of which the rest of the log cannot be read; None if there is
            none.
    """

    def __init__(self, header: LogHeader, folder: Path, verify_seconds: float = 0.0) -> None:
        self.header = header
        self.end = FIRST_DATA_BLOCK
        self.scn = header.first_scn
        self.is_lost = False
        self.is_archived = False
        self._grew = False
        self.problem: OlrPgError | None = None
        self._verify_seconds = verify_seconds
        self._unverified: _Unverified | None = None
        name = f"{header.thread}_{header.sequence}_{header.resetlogs_id}{TAIL_SUFFIX}"
        self._path = folder / name
        self._file: GrowingFile | None = None

    @property
    def position(self) -> LogPosition:
        """The position of the log in the redo stream."""
        header = self.header
        return LogPosition(header.resetlogs_id, header.thread, header.sequence, header.dbid)

    @property
    def is_whole(self) -> bool:
        """Whether the log is closed and was read to its end."""
        return self.header.nab is not None and self.end >= self.header.nab

    @property
    def log(self) -> ArchivedLog:
        """The part of the log that was read."""
        size = self.end * self.header.block_size
        if self.is_whole:
            return ArchivedLog(str(self._path), size, self.header)
        known = replace(self.header, nab=self.end, next_scn=self.scn)
        return ArchivedLog(str(self._path), size, known, grows=True)

    def renew(self, header: LogHeader, blocks: npt.NDArray[np.uint8]) -> bool:
        """Process the log's current header; return whether Oracle has closed the log since the last
        call.

        Once closed, the log stays closed, even if an outdated member's header says that it is open.

        Args:
            blocks: blocks 0 and 1.

        Raises:
            OlrPgError: 1092, the copy cannot be written.
        """
        closed = self.header.nab is None and header.nab is not None
        if closed or self._file is None:
            self._write(blocks, 0)
        if self.header.nab is None or header.nab is not None:
            self.header = header
        return closed

    def read_on(self, file: OnlineMember, now: float) -> bool:
        """Read the LWN groups that have become complete; return whether there were any.

        Args:
            now: monotonic time in seconds.

        Raises:
            OlrPgError: 2002 the file cannot be read, 1092 the copy cannot be written.
        """
        if self.is_whole or self.is_lost:
            return False
        if self._unverified is not None:
            return self._verify(file, self._unverified, now)
        # If the file had grown at the last call, it has probably grown again: then skip the quick
        # check, because reading the redo shows the same.
        if not self._grew and self._is_quiet(file):
            return False
        self._grew = False
        first = self.end
        size, taken = FIRST_BYTES, 0
        while taken < MOST_BYTES and not self.is_whole:
            data = self._read(file, size)
            end = find_end(data, self.end, self.header, self.scn)
            self._judge(end)
            # If all blocks that were read are valid, more valid blocks may follow.
            is_sound = end.sound >= self.end + data.size // self.header.block_size
            more = is_sound and data.size >= size and not self.is_lost
            if end.block > self.end and not (self._verify_seconds and more and size < MOST_BYTES):
                complete = data[: (end.block - self.end) * self.header.block_size]
                if self._verify_seconds:
                    self._unverified = _Unverified(complete, end, now + self._verify_seconds)
                    return False
                self._take(complete, end)
                taken += complete.size
            if not more:
                break
            size = min(2 * size, MOST_BYTES)
        self._grew = self.end > first
        return self._grew

    def is_of(self, header: LogHeader) -> bool:
        """Return whether a header belongs to this log."""
        return self.position == LogPosition(
            header.resetlogs_id, header.thread, header.sequence, header.dbid
        )

    def has_more(self, file: OnlineMember) -> bool:
        """Return whether another member contains a whole LWN group that was not read yet.

        Raises:
            OlrPgError: 2002, the file cannot be read.
        """
        end = find_end(self._read(file, FIRST_BYTES), self.end, self.header, self.scn)
        return end.block > self.end

    def _is_quiet(self, file: OnlineMember) -> bool:
        """Return whether nothing was written since the last read, by a read of a few bytes."""
        size = self.header.block_size
        if self.header.nab is not None or self.problem is not None:
            return False
        block = file.read(self.end * size, BLOCK_HEADER).tobytes()
        if len(block) < BLOCK_HEADER:
            return True
        big = self.header.big_endian
        number = BLOCK.number(block, "number", big=big)
        sequence = BLOCK.number(block, "sequence", big=big)
        return number != self.end or sequence < self.header.sequence

    def _read(self, file: OnlineMember, size: int) -> npt.NDArray[np.uint8]:
        block_size, nab = self.header.block_size, self.header.nab
        if nab is not None:
            size = min(size, (nab - self.end) * block_size)
        data = file.read(self.end * block_size, size)
        return data[: data.size // block_size * block_size]

    def _verify(self, file: OnlineMember, unverified: _Unverified, now: float) -> bool:
        if now < unverified.due:
            return False
        self._unverified = None
        data = file.read(self.end * self.header.block_size, unverified.data.size)
        if not np.array_equal(data, unverified.data):
            return False
        self._take(data, unverified.end)
        return True

    def _judge(self, end: LogEnd) -> None:
        """Record why no complete redo follows: the file was reused, or is damaged."""
        header, nab = self.header, self.header.nab
        self.problem = None
        if end.behind is Behind.ANOTHER_LOG:
            self.is_lost = True
        elif end.behind is Behind.NO_GROUP or (nab is not None and end.block < nab):
            self.problem = OlrPgError(
                Code.ONLINE_LOG_NOT_SOUND,
                "no LWN group begins at this block"
                if end.behind is Behind.NO_GROUP
                else "the log is closed, and not all of its blocks can be read",
                thread=header.thread,
                sequence=header.sequence,
                block=end.block if end.behind is Behind.NO_GROUP else end.sound,
            )

    def _take(self, data: npt.NDArray[np.uint8], end: LogEnd) -> None:
        self._write(data, self.end * self.header.block_size)
        self.end, self.scn = end.block, max(self.scn, end.scn)

    def _write(self, data: npt.NDArray[np.uint8], offset: int) -> None:
        try:
            if self._file is None:
                self._file = GrowingFile(self._path)
            self._file.write(memoryview(data.tobytes()), offset)
        except OSError as error:
            raise OlrPgError(
                Code.DATA_DIRECTORY_UNUSABLE,
                system_reason(error),
                path=str(self._path),
            ) from error

    def remove(self) -> None:
        """Delete the copy, because the log is no longer needed."""
        if self._file is not None:
            self._file.close()
            self._file = None
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
