"""Reads a member of an online log directly from its storage, because another machine may write it.

This machine's page cache can contain outdated blocks; on a network mount, for seconds. So the file
is read with aligned direct I/O. If the file system does not support that, the cached pages are
dropped before each read. The file is never mapped.
"""

from __future__ import annotations

import mmap
import os
import stat
from abc import ABC, abstractmethod
from errno import EINVAL
from pathlib import Path
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from olr_pg.errors import Code, OlrPgError, system_reason
from olr_pg.files.system_errors import advice
from olr_pg.redo.format.file_fields import BLOCK_LARGE, FIRST_DATA_BLOCK
from olr_pg.redo.header import PROBE_BYTES, LogHeader, parse_log_header, probe_geometry

ALIGNMENT: Final = 4096
"""Alignment of the offset, the size and the memory of a direct read; every disk accepts this
alignment.
"""

READ_BYTES: Final = 4 << 20
"""Maximum bytes per system call."""

_DIRECT: Final = getattr(os, "O_DIRECT", 0)


class OnlineMember(ABC):
    """A member of a group of online logs, open for reading while Oracle writes it.

    Attributes:
        path: the path of the member, as the caller gave it.
    """

    path: str

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Close the file."""

    @property
    @abstractmethod
    def is_replaced(self) -> bool:
        """Return whether the path may now lead to another file, or to no file. If so, the caller
        must open the file again.
        """

    @abstractmethod
    def read(self, offset: int, size: int) -> npt.NDArray[np.uint8]:
        """Read `size` bytes from `offset` on; fewer only at the end of the file.

        Raises:
            OlrPgError: 2002, the file cannot be read.
        """

    def read_start(self) -> npt.NDArray[np.uint8]:
        """Read the beginning of the file, enough for blocks 0 and 1 of any block size.

        Raises:
            OlrPgError: 2002, the file cannot be read.
        """
        return self.read(0, FIRST_DATA_BLOCK * BLOCK_LARGE)

    def read_header(
        self, start: npt.NDArray[np.uint8] | None = None
    ) -> tuple[LogHeader, npt.NDArray[np.uint8]]:
        """Read and validate blocks 0 and 1; return the header and these blocks.

        Args:
            start: the result of `read_start`; None to call it here.

        Raises:
            OlrPgError: 2002 to 2008, see `parse_log_header`. If Oracle is just writing the header,
                the error is 2005.
        """
        blocks = self.read_start() if start is None else start
        data = blocks.tobytes()
        block_size, _ = probe_geometry(data[:PROBE_BYTES], path=self.path)
        one, two = block_size, FIRST_DATA_BLOCK * block_size
        return parse_log_header(data[:one], data[one:two], path=self.path), blocks[:two]


class OnlineFile(OnlineMember):
    """A member that is mounted on this host.

    Attributes:
        direct: whether the file is read with direct I/O.

    Raises:
        OlrPgError: 2002, the file cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.direct = bool(_DIRECT)
        try:
            self._handle = self._open(_DIRECT)
        except OSError as error:
            if error.errno != EINVAL or not _DIRECT:
                raise self._unreadable(error) from error
            self._handle = self._open_cached()
        self._buffer = mmap.mmap(-1, READ_BYTES + ALIGNMENT)
        found = os.fstat(self._handle)
        self._place = found.st_dev, found.st_ino
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISBLK(found.st_mode)):
            self.close()
            raise OlrPgError(
                Code.LOG_UNREADABLE, "the path does not name a regular file", file=path
            )

    def _open(self, flags: int) -> int:
        return os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | flags)

    def _open_cached(self) -> int:
        self.direct = False
        try:
            return self._open(0)
        except OSError as error:
            raise self._unreadable(error) from error

    def close(self) -> None:
        """Close the file."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    @property
    def is_replaced(self) -> bool:
        """See `OnlineMember.is_replaced`."""
        try:
            found = Path(self.path).stat()
        except OSError:
            return True
        return (found.st_dev, found.st_ino) != self._place

    def read(self, offset: int, size: int) -> npt.NDArray[np.uint8]:
        """See `OnlineMember.read`.

        Raises:
            OlrPgError: 2002, the file cannot be read.
        """
        parts = []
        while size > 0:
            part = self._read_once(offset, min(size, READ_BYTES))
            if not part.size:
                break
            parts.append(part)
            offset += part.size
            size -= part.size
        return np.concatenate(parts) if parts else np.empty(0, np.uint8)

    def _read_once(self, offset: int, size: int) -> npt.NDArray[np.uint8]:
        begin = offset // ALIGNMENT * ALIGNMENT
        length = -(-(offset + size - begin) // ALIGNMENT) * ALIGNMENT
        try:
            count = self._pread(begin, length)
        except OSError as error:
            if error.errno != EINVAL or not self.direct:
                raise self._unreadable(error) from error
            # On some file systems, a file can be opened with O_DIRECT, but reading it fails.
            os.close(self._handle)
            self._handle = self._open_cached()
            return self._read_once(offset, size)
        data = np.frombuffer(self._buffer, np.uint8, max(0, min(count, length)))
        return data[offset - begin : offset - begin + size].copy()

    def _pread(self, begin: int, length: int) -> int:
        if not self.direct:
            os.posix_fadvise(self._handle, begin, length, os.POSIX_FADV_DONTNEED)
        return os.preadv(self._handle, [memoryview(self._buffer)[:length]], begin)

    def _unreadable(self, error: OSError) -> OlrPgError:
        code = Code.LOG_UNREADABLE
        return OlrPgError(code, system_reason(error), action=advice(error), file=self.path)
