"""Bytes of large transactions in files: what does not fit in memory waits on disk.

A file is mapped into memory and has no name any more from the start, so it goes with the last use
of its bytes, also when the process is killed. While a mapping is used its pages stay resident until
somebody needs the memory; a thread gives them back early and often, so that the process never looks
larger than it is, and other programs keep theirs.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import threading
import weakref
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from olr_pg.errors import OlrPgError

if TYPE_CHECKING:
    from pathlib import Path

FILE_BYTES_MIN: Final = 16 << 20
"""What is smaller stays in memory."""

_RELEASE_SECONDS: Final = 0.03


class SpillFiles:
    """A `transactions.storage.Storage` in a directory.

    Args:
        directory: where the files are; made when first needed.
        memory_max: bytes that may wait in memory for the end of their transactions.
        file_bytes_min: bytes from which on one piece goes into a file of its own.
        disk_max: bytes of files at a time, None = what the disk has.

    Attributes:
        disk_max: the limit.
        spilled_bytes: how many bytes of files were made so far.
    """

    def __init__(
        self,
        directory: Path,
        memory_max: int,
        file_bytes_min: int = FILE_BYTES_MIN,
        disk_max: int | None = None,
    ) -> None:
        self._directory = directory
        self.memory_max = memory_max
        self._file_bytes_min = file_bytes_min
        self.disk_max = disk_max
        self._released = _Release()
        self.spilled_bytes = 0

    @property
    def waiting_bytes(self) -> int:
        """See `Storage.waiting_bytes`: of the files that are still in use."""
        return self._released.mapped_bytes

    def allocate(self, size: int) -> npt.NDArray[np.uint8]:
        """Room in memory, or in a file where it is much.

        Raises:
            OlrPgError: 2081.
        """
        return np.empty(size, np.uint8) if size < self._file_bytes_min else self.spill(size)

    def spill(self, size: int) -> npt.NDArray[np.uint8]:
        """Room in a file.

        Raises:
            OlrPgError: 2081 the file cannot be made or there is no space for it, 1097 the limit is
                reached: what waits is mostly open, so that waiting for it would be for ever.
        """
        waiting = self.waiting_bytes
        if self.disk_max is not None and waiting + size > self.disk_max:
            raise OlrPgError(
                1097,
                f"{size} bytes more than the {waiting} that are there",
                limit=self.disk_max,
                directory=str(self._directory),
            )
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self._directory, prefix="spill-") as file:
                # Reserved now: a full disk would be a crash when the pages are written.
                os.posix_fallocate(file.fileno(), 0, size)
                mapping = mmap.mmap(file.fileno(), size)
        except OSError as error:
            raise OlrPgError(
                2081, f"{size} bytes: {error.strerror or error}", directory=str(self._directory)
            ) from error
        self.spilled_bytes += size
        self._released.add(mapping)
        return np.frombuffer(mapping, np.uint8)


class _Release:
    """Gives the pages of mappings back to the kernel while they are in use; their bytes stay."""

    def __init__(self) -> None:
        self._mappings: list[weakref.ref[mmap.mmap]] = []
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def mapped_bytes(self) -> int:
        """Bytes of the mappings that are not gone yet."""
        with self._lock:
            mappings = [one() for one in self._mappings]
        return sum(len(mapping) for mapping in mappings if mapping is not None)

    def add(self, mapping: mmap.mmap) -> None:
        """One more mapping, until it is gone."""
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
        """Whether there are mappings still; the thread ends where there are none."""
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
