"""The backlog: ready transactions of one target on disk, while other targets are faster.

Transactions are collected in memory until they make a segment, which then goes to disk
(`files.waiting_rows`). A segment is read back when everything before it was taken. The segments
belong to one run of replication: a restart decodes again what they held.

Many segments share a file, whose room on disk is free once all of them are taken. A new file is
started for each sixteenth of the waiting bytes: so a long backlog takes some dozens of file
descriptors, and little more room than its transactions need.
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
"""Of a segment, about: large against what reading it costs, small in memory."""

_LARGE_BYTES: Final = 16 << 20
"""From this size on a segment is one large transaction, of which parts are read."""

_FILE_BYTES_MIN: Final = 16 << 20

AGAIN_SECONDS: Final = 1.0
"""Pause after a failed write."""

_WAITING: Final = WaitingUse("ready-", Code.BACKLOG_UNWRITABLE, Code.BACKLOG_UNREADABLE)
_EARLIER: Final = "*.ready"
"""The files of earlier versions, which had names."""

_log = structlog.get_logger(__name__)


class _Segment(NamedTuple):
    """Transactions in a file: the pickled heads from `first` on, then their messages."""

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
    """The transactions that follow those in memory in a target's ready queue.

    Not thread-safe: the queue holds the lock.

    Args:
        directory: of the files, for nothing else; made when first needed. Files of an earlier
            version are deleted.
        bytes_max: of all transactions.

    Attributes:
        transactions: number of transactions.
        size: their bytes, including `TRANSACTION_BYTES` for each.
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
        """Return whether this many more bytes fit and can be written; False for a while after a
        failure.
        """
        return self.size + size <= self.bytes_max and time.monotonic() >= self._again_at

    def append(self, run: ReadyRun) -> int:
        """Append transactions; return how many fitted."""
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
            OlrPgError: 4042, their file cannot be read.
        """
        if not self._segments:
            found, self._open, self._open_bytes = self._open, [], 0
        else:
            found = self._segments.popleft().read()
        self.transactions -= sum(map(len, found))
        self.size -= sum(run.cost for run in found)
        return found

    def clear(self) -> None:
        """Forget all of them."""
        self._segments.clear()
        self._file = None
        self._open = []
        self._open_bytes = self.transactions = self.size = 0

    def _write(self) -> bool:
        """Put what is collected into a file; False if it cannot be written."""
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
        """Return the file that the next segment goes to.

        Raises:
            OlrPgError: 4041, it cannot be made.
        """
        if self._file is None or not self._file.may_grow(self.size, _FILE_BYTES_MIN):
            self._file = WaitingRows(_WAITING, self._directory)
        return self._file
