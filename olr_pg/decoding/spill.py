"""Stores bytes of large transactions in files when they do not fit in memory.

A file is mapped into memory and unlinked immediately. So the operating system deletes it when its
bytes are no longer used, even if the process is killed. The pages of a mapping would stay in memory
until another program needs the memory. A thread releases the pages every few milliseconds, so that
the process does not seem larger than it is, and other programs keep their memory.

Encrypted data cannot be mapped. With encryption (`files.sealed`), batches and messages are stored
in encrypted files (`files.waiting_rows`), and readers decrypt a few MiB at a time. Some data then
stays in memory: data that kernels need as one array, such as the largest LOB value; one bit for
each event of a transaction that rolled back to a savepoint; and one byte for each piece of a LOB.

Each mapping uses a file descriptor. So several buffers share one file. The more data is already
spilled, the larger is a new file, so there are at most a few dozen files.
"""

from __future__ import annotations

import mmap
import os
import threading
import weakref
from typing import IO, TYPE_CHECKING, Final

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

STORED_BYTES: Final = 8 << 20
"""Approximate bytes of an encrypted batch. Several of them can be open at the same time."""

_SHARED_BYTES_MIN: Final = 64 << 20
"""An encrypted file grows at least to this size before a new file is begun. The space of a file is
released when none of its data is needed.
"""

SPILLED: Final = WaitingUse("spill-", Code.SPILL_FAILED, Code.SPILL_DAMAGED)

_PAGE: Final = 4096
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
        self._growing: dict[int, int] = {}
        self._lock = threading.Lock()
        self._shared: weakref.ref[mmap.mmap] | None = None
        self._shared_end = 0
        self._sealed = weakref.WeakSet[WaitingRows]()
        self._stored: WaitingRows | None = None
        self.spilled_bytes = 0

    @property
    def waiting_bytes(self) -> int:
        """See `Storage.waiting_bytes`. Files that are still in use are counted."""
        sealed = sum(one.size for one in list(self._sealed))
        return self._released.mapped_bytes + sum(list(self._growing.values())) + sealed

    def allocate(self, size: int) -> npt.NDArray[np.uint8]:
        """Return a buffer of `size` bytes: in memory, or in a file of its own if it is large.

        Raises:
            OlrPgError: 2081 if the disk cannot store the bytes.
        """
        if size < self._file_bytes_min or must_seal():
            return np.empty(size, np.uint8)
        return np.frombuffer(self._reserved(size), np.uint8)

    def spill(self, size: int) -> npt.NDArray[np.uint8]:
        """Return a buffer of `size` bytes in a file, which several buffers can share. If files must
        be encrypted, the buffer is in memory.

        Raises:
            OlrPgError: 2081 if the file cannot be created or the disk is full, 1097 if the limit is
                reached. Waiting for space would not help, because most spilled transactions are
                still open.
        """
        if must_seal():
            return np.empty(size, np.uint8)
        with self._lock:
            shared = None if self._shared is None else self._shared()
            if shared is None or self._shared_end + size > len(shared):
                shared, self._shared_end = self._new_shared(size), 0
                self._shared = weakref.ref(shared)
            start, self._shared_end = (
                self._shared_end,
                -(-(self._shared_end + size) // _PAGE) * _PAGE,
            )
        return np.frombuffer(shared, np.uint8, size, start)

    def _new_shared(self, size: int) -> mmap.mmap:
        larger = self.waiting_bytes // SHARED_PART
        if larger > size:
            try:
                return self._reserved(larger)
            except OlrPgError:
                pass  # there is no space for a larger file, but perhaps for one of this size
        return self._reserved(size)

    def _reserved(self, size: int) -> mmap.mmap:
        """Create a new file of this size, and map it."""
        self.check_limit(size)
        try:
            with self._file() as file:
                # Reserve the space now. If the disk is full when pages are written later, the
                # process crashes.
                os.posix_fallocate(file.fileno(), 0, size)
                return self.map(file, size)
        except OSError as error:
            raise self.refused(size, error) from error

    def store(self, batches: Sequence[ChangeBatch]) -> list[_StoredBatch] | None:
        """Store batches in an encrypted file; return None if there is no key.

        Raises:
            OlrPgError: as for `spill`.
        """
        if not must_seal():
            return None
        with self._lock:
            return [self._store(part) for part in _parts(batches)]

    def _store(self, batch: ChangeBatch) -> _StoredBatch:
        return _StoredBatch(self._shared_rows(batch_bytes(batch)), batch)

    def _shared_rows(self, size: int) -> WaitingRows:
        """Return the encrypted file to which the next `size` bytes are appended."""
        self.check_limit(size)
        rows = self._stored
        if rows is None or not rows.may_grow(self.waiting_bytes, _SHARED_BYTES_MIN):
            rows = self._stored = self._sealed_file()
        self.spilled_bytes += size
        return rows

    def keep(self, data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8] | StoredBytes:
        """See `Storage.keep`.

        Raises:
            OlrPgError: as for `spill`.
        """
        if not must_seal():
            room = self.spill(data.size)
            room[:] = data
            return room
        with self._lock:
            rows = self._shared_rows(data.size)
            return WaitingRange(rows, rows.append(data.data), data.size)

    def _sealed_file(self) -> WaitingRows:
        rows = WaitingRows(SPILLED, self._directory)
        self._sealed.add(rows)
        return rows

    def gather(self) -> Gathering:
        """Return an object that collects bytes in a file.

        Raises:
            OlrPgError: as for `spill`. The methods of the returned object raise the same errors.
        """
        if must_seal():
            return _SealedGathering(self, self._sealed_file())
        try:
            return _Gathered(self, self._file(), self._growing)
        except OSError as error:
            raise self.refused(0, error) from error

    def map(self, file: IO[bytes], size: int) -> mmap.mmap:
        """Map the bytes of a file into memory. The bytes can be read as long as the mapping is
        used. `size` must be greater than 0.
        """
        mapping = mmap.mmap(file.fileno(), size)
        self.spilled_bytes += size
        self._released.add(mapping)
        return mapping

    def _file(self) -> IO[bytes]:
        self._directory.mkdir(parents=True, exist_ok=True)
        return nameless_file(self._directory, "spill-", buffering=0)

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

    def refused(self, size: int, error: OSError) -> OlrPgError:
        """Return error 2081, because the disk cannot store `size` bytes."""
        detail = f"{size} bytes: {system_reason(error)}"
        action = advice_unless_full(error)
        return OlrPgError(Code.SPILL_FAILED, detail, action=action, directory=str(self._directory))


class _Gathered:
    """Implements `transactions.waiting_storage.Gathering` in a file.

    Args:
        file: the file, which is already unlinked.
        growing: the bytes of each file that still grows. The mapping contains `file` until this
            file is complete or is dropped.
    """

    def __init__(self, files: SpillFiles, file: IO[bytes], growing: dict[int, int]) -> None:
        self._files = files
        self._file = file
        self._growing = growing
        growing[id(file)] = 0
        self._close = weakref.finalize(self, _close, file, growing)

    def append(self, data: npt.NDArray[np.uint8]) -> None:
        """See `Gathering.append`.

        Raises:
            OlrPgError: 2081 if the disk cannot store the bytes, 1097 if the limit is reached.
        """
        self._files.check_limit(data.size)
        rest = data.data
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            raise self._files.refused(data.size, error) from error
        self._growing[id(self._file)] += data.size

    def finish(self) -> npt.NDArray[np.uint8]:
        """See `Gathering.finish`.

        Raises:
            OlrPgError: 2081 if the disk cannot store the bytes.
        """
        size = self._growing[id(self._file)]
        try:
            return np.frombuffer(self._files.map(self._file, size), np.uint8)
        except OSError as error:
            raise self._files.refused(size, error) from error
        finally:
            self._close()


def _parts(batches: Sequence[ChangeBatch]) -> Iterator[ChangeBatch]:
    """Yield the events of the batches in new batches of about `STORED_BYTES` bytes."""
    together: list[ChangeBatch] = []
    for batch in batches:
        together.append(batch)
        size = sum(map(batch_bytes, together))
        if size >= STORED_BYTES:
            yield from _cut(copied(together), -(-size // STORED_BYTES))
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
    """Implements `transactions.waiting_storage.StoredBatch` in an encrypted file."""

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
            OlrPgError: 2082 if the file is damaged.
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


class _SealedGathering:
    """Implements `transactions.waiting_storage.Gathering` in an encrypted file. `finish` returns
    this file.
    """

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


def _close(file: IO[bytes], growing: dict[int, int]) -> None:
    del growing[id(file)]
    file.close()


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
