"""The backlog: ready transactions on disk, for a target that is slower than the others.

Transactions are collected in memory until they fill a segment, which is then written to disk
(`files.waiting_rows`). A segment is read when everything before it was taken. The segments belong
to one run of replication: after a restart, their transactions are decoded again.

Many segments share a file. The file has no name; its disk space becomes free when all of its
segments were taken. A new file is begun when the current one contains one 16th of the waiting
bytes. So a long backlog needs only some dozens of file descriptors, and little more disk space than
its transactions.
"""

from __future__ import annotations

import pickle
import time
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from olr_pg.errors import Code, OlrPgError
from olr_pg.files.owned import remove_plain
from olr_pg.files.waiting_rows import WaitingRange, WaitingRows, WaitingUse
from olr_pg.ordering.ready_transactions import ReadyBatch, ReadyRun, appended, joined, whole

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SEGMENT_BYTES: Final = 4 << 20
"""Approximate size of a segment: large enough to be read efficiently, small enough for the
memory.
"""

_LARGE_BYTES: Final = 16 << 20
"""A segment of at least this size contains one large transaction. Such a segment is read in parts,
not as a whole.
"""

_FILE_BYTES_MIN: Final = 16 << 20

AGAIN_SECONDS: Final = 1.0
"""Seconds between a failed write and the next attempt."""

_WAITING: Final = WaitingUse("ready-", Code.BACKLOG_UNWRITABLE, Code.BACKLOG_UNREADABLE)
_EARLIER: Final = "*.ready"
"""Pattern of the files of earlier versions, which still had names."""

_log = structlog.get_logger(__name__)


class _Segment(NamedTuple):
    """Transactions in a file: from the offset `first` on, `heads` bytes of pickled descriptions,
    then `messages` bytes of messages.
    """

    rows: WaitingRows
    first: int
    heads: int
    messages: int

    def read(self) -> list[ReadyRun]:
        heads = self.rows.read(self.first, self.heads)
        columns, first, message_first, order, view = pickle.loads(heads)  # noqa: S301 - ours
        at = self.first + self.heads
        messages = WaitingRange(self.rows, at, self.messages)
        blob = messages if self.messages >= _LARGE_BYTES else messages.read(0, self.messages)
        return [whole(ReadyBatch(columns, first, message_first, blob, order, view))]


class Backlog:
    """The transactions on disk, which follow the transactions in memory in a target's ready queue.

    Not thread-safe: the queue calls it with its lock held.

    Args:
        directory: the directory of the files, which must be used for nothing else; created when
            first needed. Files of an earlier version are deleted.
        bytes_max: maximum of `size`.

    Attributes:
        transactions: the number of transactions.
        size: the bytes of the transactions, including `TRANSACTION_BYTES` for each.
    """

    def __init__(self, directory: Path, bytes_max: int) -> None:
        self._directory = directory
        self.bytes_max = bytes_max
        self._segments: deque[_Segment] = deque()
        self._open: list[ReadyRun] = []
        self._open_bytes = 0
        self._file: WaitingRows | None = None
        self._again_at = 0.0
        self.transactions = 0
        self.size = 0
        for left in directory.glob(_EARLIER):
            remove_plain(left)

    def has_room(self, size: int) -> bool:
        """Return whether `size` more bytes fit. Return False for `AGAIN_SECONDS` after a failed
        write.
        """
        return self.size + size <= self.bytes_max and time.monotonic() >= self._again_at

    def append(self, run: ReadyRun) -> int:
        """Append transactions until the limit is reached; return the number of appended
        transactions.
        """
        run, _ = run.cut(run.count_fitting(self.bytes_max - self.size))
        rest = run
        while rest:
            count = rest.count_fitting(SEGMENT_BYTES - self._open_bytes)
            if not (count or self._open):
                count = 1
            if not count:
                if not self._write():
                    break
                continue
            part, rest = rest.cut(count)
            if not appended(self._open, part):
                self._open.append(part)
            self._open_bytes += part.cost
            self.size += part.cost
        taken = len(run) - len(rest)
        self.transactions += taken
        return taken

    def pop(self) -> Sequence[ReadyRun]:
        """Remove and return the oldest transactions; empty if there are none.

        Raises:
            OlrPgError: 4042, the file with the transactions cannot be read.
        """
        if not self._segments:
            found, self._open, self._open_bytes = self._open, [], 0
        else:
            found = self._segments.popleft().read()
        self.transactions -= sum(map(len, found))
        self.size -= sum(run.cost for run in found)
        return found

    def clear(self) -> None:
        """Remove all transactions."""
        self._segments.clear()
        self._file = None
        self._open = []
        self._open_bytes = self.transactions = self.size = 0

    def _write(self) -> bool:
        """Write the collected transactions to a file as a segment; return False if this fails."""
        batch = joined(self._open).alone()
        heads = pickle.dumps(
            (batch.columns, batch.first, batch.message_first, batch.order, batch.view)
        )
        size = int(batch.first[-1])
        try:
            rows = self._file_with_room()
            first = rows.append(heads)
            for at in range(0, size, SEGMENT_BYTES):
                rows.append(batch.part(at, min(at + SEGMENT_BYTES, size)))
            rows.flush()
        except OlrPgError as error:
            self._file = None  # the file may contain a part of the segment
            if not self._again_at:
                _log.warning("could not write ready transactions to disk", error=error)
            self._again_at = time.monotonic() + AGAIN_SECONDS
            return False
        self._again_at = 0.0
        self._segments.append(_Segment(rows, first, len(heads), size))
        self._open, self._open_bytes = [], 0
        return True

    def _file_with_room(self) -> WaitingRows:
        """Return the file for the next segment.

        Raises:
            OlrPgError: 4041, the file cannot be created.
        """
        if self._file is None or not self._file.may_grow(self.size, _FILE_BYTES_MIN):
            self._file = WaitingRows(_WAITING, self._directory)
        return self._file
