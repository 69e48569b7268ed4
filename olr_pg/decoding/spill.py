"""Stores bytes of large transactions in files when they do not fit in memory.

Batches and messages are stored in files without a name (`files.waiting_rows`), and readers read a
few MiB at a time. So a byte that cannot be read again is an error of the catalogue. If a key is
set, these files are encrypted. The more data is already stored, the larger a shared file may grow,
so there are at most a few dozen files.

Kernels need some data as one array: the values of large LOBs, and one bit for each event of a
transaction that rolled back to a savepoint. A large buffer for such data is a file that is mapped
into memory and unlinked immediately. So the operating system deletes it when its bytes are no
longer used, even if the process is killed. The pages of a mapping would stay in memory until
another program needs the memory. A thread releases the pages every few milliseconds, so that the
process does not seem larger than it is, and other programs keep their memory. Encrypted data cannot
be mapped: with a key, these buffers are in memory. One byte for each piece of a LOB is always in
memory.

A mapping is used as soon as it is written, and only for a moment. If its disk fails meanwhile, an
access ends the process with a signal, without a message; the next start continues.
"""

from __future__ import annotations

import mmap
import os
import threading
import weakref
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from olr_pg.errors import Code, OlrPgError, system_reason
from olr_pg.files.sealed import must_seal, nameless_file
from olr_pg.files.system_errors import advice_unless_full
from olr_pg.files.waiting_rows import SHARED_PART, WaitingRange, WaitingRows, WaitingUse
from olr_pg.redo.batch import ENTRY, EVENT, PIECE, ChangeBatch, columns_of
from olr_pg.transactions.select import EventCutter, copied, count_changes
from olr_pg.transactions.waiting_storage import batch_bytes, batch_cells

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from olr_pg.transactions.waiting_storage import Gathering, StoredBytes

FILE_BYTES_MIN: Final = 16 << 20
"""Buffers that are smaller than this stay in memory."""

PART_BYTES: Final = 8 << 20
"""Approximate bytes of a large transaction that are processed together. This needs several times as
much memory.
"""

_STORED_BYTES_MIN: Final = 64 << 10
"""A stored batch has about `part_bytes`, because several of them can be open at the same time, but
not fewer bytes than this.
"""

_SHARED_BYTES_MIN: Final = 64 << 20
"""A file grows at least to this size before a new file is begun, if the limit of the disk allows
it. The space of a file is released when none of its data is needed.
"""

SPILLED: Final = WaitingUse("spill-", Code.SPILL_FAILED, Code.SPILL_DAMAGED)

_RELEASE_SECONDS: Final = 0.03


class SpillFiles:
    """Implements `transactions.waiting_storage.Storage` in a directory.

    Args:
        directory: the folder for the files. The folder is created when it is needed for the first
            time.
        memory_max: maximum bytes of open transactions in memory.
        file_bytes_min: `allocate` uses a file for buffers of at least this size.
        disk_max: maximum bytes of all files together, None for no limit.
        part_bytes: see `Storage.part_bytes`.

    Attributes:
        disk_max: the maximum bytes of all files.
        spilled_bytes: bytes that were reserved in files or written to them so far.
    """

    def __init__(
        self,
        directory: Path,
        memory_max: int,
        file_bytes_min: int = FILE_BYTES_MIN,
        disk_max: int | None = None,
        part_bytes: int = PART_BYTES,
    ) -> None:
        self._directory = directory
        self.part_bytes = part_bytes
        self.memory_max = memory_max
        self._file_bytes_min = file_bytes_min
        self.disk_max = disk_max
        self._released = _Release()
        self._lock = threading.Lock()
        self._files = weakref.WeakSet[WaitingRows]()
        self._files_lock = threading.Lock()  # a set cannot be read while another thread changes it
        self._shared: weakref.ref[WaitingRows] | None = None
        self.spilled_bytes = 0

    @property
    def waiting_bytes(self) -> int:
        """See `Storage.waiting_bytes`. Files that are still in use are counted."""
        with self._files_lock:
            files = list(self._files)
        return self._released.mapped_bytes + sum(one.size for one in files)

    def allocate(self, size: int) -> npt.NDArray[np.uint8]:
        """Return a buffer of `size` bytes: in memory, or in a file of its own if it is large.

        Raises:
            OlrPgError: 2081 if the disk cannot store the bytes.
        """
        if size < self._file_bytes_min or must_seal():
            return np.empty(size, np.uint8)
        return np.frombuffer(self._reserved(size), np.uint8)

    def _reserved(self, size: int) -> mmap.mmap:
        """Create a new file of this size, and map it."""
        self.check_limit(size)
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            with nameless_file(self._directory, "spill-", buffering=0) as file:
                # Reserve the space now. If the disk is full when pages are written later, the
                # process crashes.
                os.posix_fallocate(file.fileno(), 0, size)
                mapping = mmap.mmap(file.fileno(), size)
        except OSError as error:
            raise self._refused(size, error) from error
        self.spilled_bytes += size
        self._released.add(mapping)
        return mapping

    def store(self, batches: Sequence[ChangeBatch]) -> list[_StoredBatch]:
        """Store batches in a file, which several transactions share.

        Raises:
            OlrPgError: 2081 if the file cannot be created or the disk is full, 1097 if the limit is
                reached. Waiting for space would not help, because most spilled transactions are
                still open.
        """
        with self._lock:
            return [
                _StoredBatch(self._shared_rows(batch_bytes(part)), part)
                for part in _parts(batches, max(self.part_bytes, _STORED_BYTES_MIN))
            ]

    def keep(self, data: npt.NDArray[np.uint8]) -> StoredBytes:
        """See `Storage.keep`.

        Raises:
            OlrPgError: as for `store`.
        """
        with self._lock:
            rows = self._shared_rows(data.size)
            return WaitingRange(rows, rows.append(data.data), data.size)

    def _shared_rows(self, size: int) -> WaitingRows:
        """Return the file to which the next `size` bytes are appended."""
        self.check_limit(size)
        least = _SHARED_BYTES_MIN
        if self.disk_max is not None:
            least = min(least, self.disk_max // SHARED_PART)
        rows = None if self._shared is None else self._shared()
        if rows is None or not rows.may_grow(self.waiting_bytes, least):
            rows = self._file()
            self._shared = weakref.ref(rows)
        self.spilled_bytes += size
        return rows

    def _file(self) -> WaitingRows:
        rows = WaitingRows(SPILLED, self._directory)
        with self._files_lock:
            self._files.add(rows)
        return rows

    def gather(self) -> Gathering:
        """Return an object that collects bytes in a file.

        Raises:
            OlrPgError: as for `store`. The methods of the returned object raise the same errors.
        """
        return _Gathered(self, self._file())

    def check_limit(self, size: int) -> None:
        """Raise an error if `size` more bytes would exceed the limit.

        Raises:
            OlrPgError: 1097 if the limit is reached.
        """
        waiting = self.waiting_bytes
        if self.disk_max is not None and waiting + size > self.disk_max:
            raise OlrPgError(
                Code.SPILL_LIMIT_REACHED,
                f"{size} more bytes, in addition to {waiting} spilled bytes",
                limit=self.disk_max,
                directory=str(self._directory),
            )

    def _refused(self, size: int, error: OSError) -> OlrPgError:
        """Return error 2081, because the disk cannot store `size` bytes."""
        detail = f"{size} bytes: {system_reason(error)}"
        action = advice_unless_full(error)
        return OlrPgError(Code.SPILL_FAILED, detail, action=action, directory=str(self._directory))


def _parts(batches: Sequence[ChangeBatch], part_bytes: int) -> Iterator[ChangeBatch]:
    """Yield the events of the batches in new batches of about `part_bytes` bytes."""
    together: list[ChangeBatch] = []
    for batch in batches:
        together.append(batch)
        size = sum(map(batch_bytes, together))
        if size >= part_bytes:
            yield from _cut(copied(together), -(-size // part_bytes))
            together = []
    if together:
        yield copied(together)


def _cut(batch: ChangeBatch, count: int) -> Iterator[ChangeBatch]:
    if count == 1:
        yield batch
        return
    cutter, events = EventCutter(batch), batch.events.size
    for part in range(count):
        rows = np.arange(events * part // count, events * (part + 1) // count)
        if rows.size:
            yield cutter.events(rows)


class _StoredBatch:
    """Implements `transactions.waiting_storage.StoredBatch` in a file."""

    def __init__(self, rows: WaitingRows, batch: ChangeBatch) -> None:
        self.size = batch_bytes(batch)
        self.changes = count_changes(batch.events)
        self.lowest_scn = int(batch.events.scn.min())
        self._rows = rows
        self._counts = tuple(int(column.size) for column in batch)
        self._firsts = [rows.append(cell.data) for cell in batch_cells(batch)]

    def open(self) -> ChangeBatch:
        """See `StoredBatch.open`.

        Raises:
            OlrPgError: 2082 if the file is damaged or cannot be read.
        """
        events, pieces, entries, data = self._counts
        batch = ChangeBatch(
            columns_of(EVENT, events),
            columns_of(PIECE, pieces),
            columns_of(ENTRY, entries),
            np.empty(data, np.uint8),
        )
        for cell, first in zip(batch_cells(batch), self._firsts, strict=True):
            self._rows.read_into(cell.data, first)
        return batch


class _Gathered:
    """Implements `transactions.waiting_storage.Gathering` in a file. `finish` returns this file."""

    def __init__(self, files: SpillFiles, rows: WaitingRows) -> None:
        self._files = files
        self._rows = rows

    def append(self, data: npt.NDArray[np.uint8]) -> None:
        """See `Gathering.append`.

        Raises:
            OlrPgError: 2081 if the disk cannot store the bytes, 1097 if the limit is reached.
        """
        self._files.check_limit(data.size)
        self._rows.append(data.data)

    def finish(self) -> WaitingRows:
        """See `Gathering.finish`."""
        self._files.spilled_bytes += self._rows.size
        return self._rows


class _Release:
    """Releases the pages of mappings to the kernel while the mappings are in use. The bytes remain
    in the files.
    """

    def __init__(self) -> None:
        self._mappings: list[weakref.ref[mmap.mmap]] = []
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def mapped_bytes(self) -> int:
        """The bytes of all mappings that still exist."""
        with self._lock:
            mappings = [one() for one in self._mappings]
        return sum(len(mapping) for mapping in mappings if mapping is not None)

    def add(self, mapping: mmap.mmap) -> None:
        """Release the pages of a mapping regularly, as long as it exists."""
        with self._lock:
            self._mappings.append(weakref.ref(mapping))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="olr-spill", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        pause = threading.Event()
        while self._release():
            pause.wait(_RELEASE_SECONDS)

    def _release(self) -> bool:
        """Release the pages of all mappings once; return whether there are any mappings. If there
        are none, the thread ends.
        """
        with self._lock:
            self._mappings = [one for one in self._mappings if one() is not None]
            if not self._mappings:
                self._thread = None
                return False
            mappings = list(self._mappings)
        for reference in mappings:
            mapping = reference()
            if mapping is not None:
                mapping.madvise(mmap.MADV_DONTNEED)
        return True
