"""Stores rows on disk, in an unlinked file, while there is not enough memory for them.

The operating system deletes the file when the process closes it or ends, even if it is killed; a
restart does not need it. If a key is set (`files.sealed`), all rows in it are encrypted. Encrypted
data cannot be mapped, so ranges of the file are read into memory.

The file consists of pieces of at most 1 MiB. Each piece is encrypted separately; without a key, it
gets a checksum instead. The positions of the pieces and the checksums are kept in memory. So a
reader detects a piece that was altered, moved or truncated, or pages that the system could not
write to the disk. After such a failure, a file system can return zeros for them without an error.
"""

from __future__ import annotations

import io
import threading
import weakref
import zlib
from bisect import bisect_right
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from olr_pg.errors import Code, OlrPgError, system_reason
from olr_pg.files.positioned import fill_from, read_at, write_at
from olr_pg.files.sealed import Records, SealError, nameless_file
from olr_pg.files.system_errors import advice_unless_full

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PIECE_BYTES: Final = 1 << 20
"""Maximum bytes of a piece. A whole piece is read even if only a few of its bytes are needed."""

SHARED_PART: Final = 16
"""A file that is shared by many transactions gets no more rows when it contains one 16th of all
waiting bytes. So there are at most a few dozen files, and the disk space of each becomes free soon.
"""

_TOGETHER: Final = 64 << 10
"""Smaller pieces of data are collected in memory up to this size, because to write a piece takes
some microseconds.
"""


class WaitingUse(NamedTuple):
    """Describes the use of a file, for its name and for error messages.

    Attributes:
        prefix: the beginning of the file's name before it is unlinked.
        unwritable: the error code if the rows cannot be written.
        damaged: the error code if the rows cannot be read, or are damaged.
    """

    prefix: str
    unwritable: Code
    damaged: Code


class WaitingRows:
    """A file to which bytes are appended, and from which ranges are read; see the module.

    One thread appends; any thread can read the appended bytes.

    Args:
        directory: the directory of the file, created if it is missing; None for the system's
            directory of temporary files.

    Attributes:
        size: number of bytes that were appended.
        close: releases the disk space; otherwise it is released with the object.

    Raises:
        OlrPgError: `WaitingUse.unwritable`, the file cannot be created.
    """

    def __init__(self, use: WaitingUse, directory: Path | None) -> None:
        self._use = use
        self._directory = directory
        self.size = 0
        self._starts, self._stored, self._checks = [0], [0], list[int]()
        self._together = bytearray()
        self._read_last: tuple[int, memoryview] | None = None
        self._lock = threading.Lock()
        try:
            if directory is not None:
                directory.mkdir(parents=True, exist_ok=True)
            file = nameless_file(directory, use.prefix, buffering=0)
        except OSError as error:
            raise self._unwritable(system_reason(error), error) from error
        self._records = Records()
        self._handle = file.fileno()
        self.close = weakref.finalize(self, file.close)

    def append(self, data: bytes | bytearray | memoryview) -> int:
        """Append bytes; return their offset.

        Raises:
            OlrPgError: `WaitingUse.unwritable`; none of the bytes is appended then, and the file
                can be used further.
        """
        with self._lock:
            first, view = self.size, memoryview(data).cast("B")
            if len(view) < _TOGETHER:
                together = len(self._together)
                self._together += view
                try:
                    if len(self._together) >= _TOGETHER:
                        self._flush()
                except OlrPgError:
                    del self._together[together:]
                    raise
            else:
                if self._together:
                    self._flush()
                self._put(view)
            self.size += len(view)
        return first

    def may_grow(self, waiting: int, least: int) -> bool:
        """Return whether a file that several users share may get more bytes.

        Args:
            waiting: the number of bytes in all files of its kind.
            least: the size up to which the file may always grow.
        """
        return self.size <= max(least, waiting // SHARED_PART)

    def flush(self) -> None:
        """Write the appended bytes that are still collected in memory. A later write error then
        does not affect these bytes.

        Raises:
            OlrPgError: `WaitingUse.unwritable`.
        """
        with self._lock:
            if self._together:
                self._flush()

    def _flush(self) -> None:
        self._put(memoryview(bytes(self._together)))
        self._together = bytearray()

    def _put(self, data: memoryview) -> None:
        """Write all of `data`, or none."""
        count = len(self._checks)
        try:
            self._put_pieces(data)
        except OlrPgError:
            # Later pieces overwrite the pieces that were written.
            del self._starts[count + 1 :], self._stored[count + 1 :], self._checks[count:]
            raise

    def _put_pieces(self, data: memoryview) -> None:
        for at in range(0, len(data), PIECE_BYTES):
            piece = data[at : at + PIECE_BYTES]
            stored = memoryview(self._records.seal(len(self._checks), piece))
            end = self._stored[-1] + len(stored)
            try:
                write_at(self._handle, stored, self._stored[-1])
            except OSError as error:
                reason = f"{len(piece)} bytes: {system_reason(error)}"
                raise self._unwritable(reason, error) from error
            self._starts.append(self._starts[-1] + len(piece))
            self._stored.append(end)
            self._checks.append(0 if self._records.are_sealed else _checksum(piece))

    def read_into(self, out: memoryview, first: int) -> None:
        """Fill `out` with appended bytes, from offset `first` on.

        Raises:
            OlrPgError: `WaitingUse.damaged`; `WaitingUse.unwritable` if collected bytes had to be
                written first and that failed.
        """
        assert first + len(out) <= self.size, "nobody asks for what was not appended"
        self.flush()
        at = 0
        while at < len(out):
            number = bisect_right(self._starts, first + at) - 1
            start, end = self._starts[number], self._starts[number + 1]
            low = first + at - start
            count = min(end - start - low, len(out) - at)
            if count == end - start and not self._records.are_sealed:
                self._read_whole(number, out[at : at + count])
            else:
                out[at : at + count] = self._piece(number)[low : low + count]
            at += count

    def read(self, first: int, size: int) -> memoryview:
        """Return bytes like `read_into`, in a new writable buffer, because kernels accept only
        writable buffers.
        """
        out = memoryview(bytearray(size))
        self.read_into(out, first)
        return out

    def stream(self) -> io.BufferedReader:
        """Return a file object that reads all appended bytes from the beginning."""
        return io.BufferedReader(_Raw(self), _TOGETHER)

    def pieces(self) -> Iterator[memoryview]:
        """Yield all appended bytes from the beginning, in pieces."""
        for first in range(0, self.size, PIECE_BYTES):
            yield self.read(first, min(PIECE_BYTES, self.size - first))

    def _read_whole(self, number: int, out: memoryview) -> None:
        """Read a piece that is not encrypted, without a copy of its bytes."""
        start = self._stored[number]
        try:
            count = fill_from(self._handle, [out], start)
        except OSError as error:
            raise self._error(self._use.damaged, system_reason(error), start) from error
        if count < len(out):
            raise self._error(self._use.damaged, "it is cut off", start)
        if _checksum(out) != self._checks[number]:
            raise self._error(self._use.damaged, "the checksum does not match", start)

    def _piece(self, number: int) -> memoryview:
        """Return a piece. The last piece that was read is cached, for callers that read a few bytes
        at a time.
        """
        last = self._read_last
        if last is not None and last[0] == number:
            return last[1]
        start, end = self._stored[number], self._stored[number + 1]
        if self._records.are_sealed:
            try:
                stored = read_at(self._handle, end - start, start)
                data = memoryview(self._records.open(number, memoryview(stored)))
                if len(stored) < end - start:
                    raise SealError("it is cut off", None)
            except OSError as error:
                raise self._error(self._use.damaged, system_reason(error), start) from error
        else:
            data = memoryview(bytearray(end - start))
            self._read_whole(number, data)
        self._read_last = number, data
        return data

    def _unwritable(self, reason: str, error: OSError) -> OlrPgError:
        failed = self._error(self._use.unwritable, reason)
        action = advice_unless_full(error)
        return OlrPgError(failed.code, failed.detail, action=action, **failed.where)

    def _error(self, code: Code, reason: str, offset: int | None = None) -> OlrPgError:
        directory = None if self._directory is None else str(self._directory)
        return OlrPgError(code, reason, directory=directory, offset=offset)


def _checksum(data: memoryview) -> int:
    """Return the sum of the 8-byte words of a piece, and a CRC of the rest. A CRC of all bytes
    would take more time than to write and read them.
    """
    end = len(data) // 8 * 8
    return int(np.frombuffer(data[:end], np.uint64).sum()) ^ zlib.crc32(data[end:])


class WaitingRange(NamedTuple):
    """A range of the bytes of `WaitingRows`; a `transactions.waiting_storage.StoredBytes`."""

    rows: WaitingRows
    first: int
    size: int

    def read(self, first: int, size: int) -> memoryview:
        """Read a part of the range; `first` counts from its beginning.

        Raises:
            OlrPgError: `WaitingUse.damaged`.
        """
        return self.rows.read(self.first + first, size)


class _Raw(io.RawIOBase):
    """The bytes of `WaitingRows`, for a buffered reader."""

    def __init__(self, rows: WaitingRows) -> None:
        self._rows = rows
        self._at = 0

    def readable(self) -> bool:
        return True

    def readinto(self, out: memoryview) -> int:  # type: ignore[override]
        count = min(len(out), self._rows.size - self._at)
        self._rows.read_into(memoryview(out).cast("B")[:count], self._at)
        self._at += count
        return count
