"""The backlog: ready transactions on disk that one target has not taken while others go on.

Transactions are collected in memory until they make a segment, which then goes into a file of its
own; a segment is read back when everything before it was taken. The files belong to one run of
replication: a restart decodes again what they held, and removes them.
"""

from __future__ import annotations

import mmap
import pickle
import time
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from olr_pg.errors import Code, OlrPgError, system_reason
from olr_pg.files.durable import removed_on_failure
from olr_pg.files.owned import remove_plain
from olr_pg.files.sealed import SealedReader, is_sealed, row_file
from olr_pg.ordering.ready_transactions import ReadyBatch, ReadyRun, appended, joined, whole

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SEGMENT_BYTES: Final = 4 << 20
"""Of a segment, about: large against a file's cost, small in memory."""

_MAPPED_BYTES: Final = 16 << 20
"""From this size on a segment is one large transaction, which is mapped instead of read."""

AGAIN_SECONDS: Final = 1.0
"""How long a disk that has taken nothing is left alone."""

_SIZE_BYTES: Final = 8
_SUFFIX: Final = ".ready"

_log = structlog.get_logger(__name__)


class _Segment(NamedTuple):
    path: Path
    size: int


class Backlog:
    """The transactions behind those that the ready queue of a target has in memory.

    Not to be used from several threads at once: the queue has the lock.

    Args:
        directory: of the files, for nothing else; made when first needed. What an earlier process
            left there is removed.
        bytes_max: of all files.

    Attributes:
        transactions: how many it holds.
        size: how many bytes they take, `TRANSACTION_BYTES` for each included.
    """

    def __init__(self, directory: Path, bytes_max: int) -> None:
        self._directory = directory
        self.bytes_max = bytes_max
        self._segments: deque[_Segment] = deque()
        self._open: list[ReadyRun] = []
        self._open_bytes = 0
        self._made = 0
        self._again_at = 0.0
        self.transactions = 0
        self.size = 0
        for left in directory.glob(f"*{_SUFFIX}"):
            remove_plain(left)

    def has_room(self, size: int) -> bool:
        """Tell whether so many bytes more fit, and may be written: not soon after a failure."""
        return self.size + size <= self.bytes_max and time.monotonic() >= self._again_at

    def append(self, run: ReadyRun) -> int:
        """Put transactions behind all others; return how many there was room for."""
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
        """Take the oldest transactions; nothing where there are none.

        Raises:
            OlrPgError: 4042, their file cannot be read.
        """
        if not self._segments:
            found, self._open, self._open_bytes = self._open, [], 0
        else:
            found = _read(self._segments.popleft())
        self.transactions -= sum(map(len, found))
        self.size -= sum(run.cost for run in found)
        return found

    def clear(self) -> None:
        """Forget all of them."""
        for segment in self._segments:
            remove_plain(segment.path)
        self._segments.clear()
        self._open = []
        self._open_bytes = self.transactions = self.size = 0

    def _write(self) -> bool:
        """Put what is collected into a file; False where the disk does not take it."""
        path = self._directory / f"{self._made}{_SUFFIX}"
        batch = joined(self._open).alone()
        heads = pickle.dumps(
            (batch.columns, batch.first, batch.message_first, batch.order, batch.view)
        )
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            with removed_on_failure(path), row_file(path) as file:
                file.write(len(heads).to_bytes(_SIZE_BYTES, "little"))
                file.write(heads)
                size = int(batch.first[-1])
                for at in range(0, size, SEGMENT_BYTES):
                    file.write(batch.part(at, min(at + SEGMENT_BYTES, size)))
        except OSError as error:
            if not self._again_at:
                reason = OlrPgError(Code.BACKLOG_UNWRITABLE, system_reason(error), file=str(path))
                _log.warning("ready transactions cannot be put on disk", error=reason)
            self._again_at = time.monotonic() + AGAIN_SECONDS
            return False
        self._again_at = 0.0
        self._made += 1
        self._segments.append(_Segment(path, self._open_bytes))
        self._open, self._open_bytes = [], 0
        return True


def _read(segment: _Segment) -> list[ReadyRun]:
    try:
        data = _bytes_of(segment)
        segment.path.unlink()
        start = _bytes(data, 0, _SIZE_BYTES)
        at = _SIZE_BYTES + int.from_bytes(start, "little")
        heads = pickle.loads(_bytes(data, _SIZE_BYTES, at))  # noqa: S301 - this process wrote it
    except OSError as error:
        raise _unreadable(segment.path, error) from error
    columns, first, message_first, order, view = heads
    blob = data[at:] if isinstance(data, memoryview) else _SealedMessages(segment.path, data, at)
    return [whole(ReadyBatch(columns, first, message_first, blob, order, view))]


def _bytes_of(segment: _Segment) -> memoryview | SealedReader:
    """Return the bytes; those of one large transaction stay outside of memory."""
    is_large = segment.size >= _MAPPED_BYTES
    if is_sealed(segment.path):
        sealed = SealedReader(segment.path)
        return sealed if is_large else memoryview(sealed.read(0, sealed.size))
    with segment.path.open("rb") as file:
        if is_large:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        return memoryview(file.read())


def _bytes(data: memoryview | SealedReader, first: int, end: int) -> memoryview | bytes:
    return data[first:end] if isinstance(data, memoryview) else data.read(first, end - first)


def _unreadable(path: Path, error: OSError) -> OlrPgError:
    return OlrPgError(Code.BACKLOG_UNREADABLE, system_reason(error), file=str(path))


class _SealedMessages:
    """The messages of an encrypted segment, a `transactions.waiting_storage.StoredBytes`."""

    def __init__(self, path: Path, sealed: SealedReader, first: int) -> None:
        self._path, self._sealed, self._first = path, sealed, first

    @property
    def size(self) -> int:
        """How many bytes they are."""
        return self._sealed.size - self._first

    def read(self, first: int, size: int) -> memoryview:
        """Read some of them.

        Raises:
            OlrPgError: 4042, they are not what was written.
        """
        try:
            return memoryview(self._sealed.read(self._first + first, size))
        except OSError as error:
            raise _unreadable(self._path, error) from error
