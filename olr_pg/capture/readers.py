"""Reads log files: the header, a range of blocks, or the whole file as a mapping.

A log at a URL and an encrypted copy (`files.sealed`) cannot be mapped; they are read in ranges. An
error of a read is an exception. But if a mapped file is truncated, or deleted on the server of a
network mount, or its disk fails, an access to it ends the process with a signal, without a message.
So the appliance's own process, `dump` and the data source read logs in ranges. `decode`, and
processes that decode for another process, map logs. They ask the system for the needed pages first,
so that a page that cannot be read is an error.

The copy of a log that Oracle was writing (a current log) is decoded up to its last complete LWN
group by ``olr-pg decode``. If Oracle reused the file of a closed log while it was copied, the copy
is ignored.

Oracle does not write logs that are compressed with a tool, and olr_pg does not decode them. But a
directory of logs often contains some, because scripts compress old archived logs. A compressed log
must not be skipped like a file that is not a redo log. If the compressed log is the first or the
last log, no gap shows that its changes are missing. So the beginning of the file is decompressed.
The beginning shows whether the file is a log, and which log.
"""

from __future__ import annotations

import bz2
import errno
import lzma
import mmap
import os
import stat
import struct
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from typing import Final, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import structlog

from olr_pg.capture.archived_log import ArchivedLog
from olr_pg.capture.object_storage import RangeReader, is_url
from olr_pg.errors import Code, OlrPgError, system_reason
from olr_pg.files.positioned import fill_from, read_at
from olr_pg.files.sealed import SealedReader, is_sealed
from olr_pg.files.system_errors import advice
from olr_pg.redo.format.file_fields import BLOCK, BLOCK_SIZES, BLOCK_TYPES, FIRST_DATA_BLOCK
from olr_pg.redo.header import PROBE_BYTES, LogHeader, parse_log_header, probe_geometry
from olr_pg.redo.log_end import find_end, sound_blocks

Start = Callable[[bytes, int], bytes]
"""A function that returns the first bytes of the content, up to a number. The function's input is
the first bytes of the file, which usually do not contain the whole file.
"""

PEEK_BYTES: Final = 5 << 20
"""Bytes of a compressed file that are read to see the beginning of its content. A block of lz4 has
up to 4 MiB, and can be decompressed only as a whole.
"""

_ZIP_NAMES: Final = struct.Struct("<26x2H")
"""Lengths of the name and of the extra field in the header of a member of a zip file (PKWARE's
APPNOTE.TXT, "Local file header").
"""
_ZIP_METHOD: Final = slice(8, 10)
_STORED: Final = b"\0\0"


class Compression(NamedTuple):
    """A compression format.

    Attributes:
        magic: the first bytes of each file in this format.
        command: the command that decompresses a file in this format.
        start: returns the first bytes of the content; None if this process cannot decompress the
            format.
    """

    name: str
    magic: bytes
    command: str
    start: Start | None = None


def _of_gzip(data: bytes, size: int) -> bytes:
    return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16).decompress(data, size)


def _of_bzip2(data: bytes, size: int) -> bytes:
    return bz2.BZ2Decompressor().decompress(data, size)


def _of_xz(data: bytes, size: int) -> bytes:
    return lzma.LZMADecompressor().decompress(data, size)


def _of_zip(data: bytes, size: int) -> bytes:
    begin = _ZIP_NAMES.size + sum(_ZIP_NAMES.unpack_from(data))
    if data[_ZIP_METHOD] == _STORED:
        return data[begin : begin + size]
    return zlib.decompressobj(wbits=-zlib.MAX_WBITS).decompress(data[begin:], size)


def _by_arrow(name: Literal["zstd", "lz4"]) -> Start:
    def start(data: bytes, size: int) -> bytes:
        import pyarrow as pa

        with pa.CompressedInputStream(pa.BufferReader(data), name) as stream:
            return bytes(stream.read(size))

    return start


_KNOWN: Final = (
    Compression("gzip", b"\x1f\x8b", "gunzip", _of_gzip),
    Compression("compress", b"\x1f\x9d", "uncompress"),
    Compression("zstd", b"\x28\xb5\x2f\xfd", "unzstd", _by_arrow("zstd")),
    Compression("bzip2", b"BZh", "bunzip2", _of_bzip2),
    Compression("xz", b"\xfd7zXZ\0", "unxz", _of_xz),
    Compression("lz4", b"\x04\x22\x4d\x18", "unlz4", _by_arrow("lz4")),
    Compression("lzip", b"LZIP", "lzip -d"),
    Compression("lzop", b"\x89LZO", "lzop -d"),
    Compression("zip", b"PK\x03\x04", "unzip", _of_zip),
    Compression("7-Zip", b"7z\xbc\xaf\x27\x1c", "7z x"),
)


def compression_of(start: bytes) -> Compression | None:
    """Return the compression format of a file with these first bytes; None if it is not compressed.

    A redo log begins with a zero byte; no compressed file does.
    """
    return next((one for one in _KNOWN if start.startswith(one.magic)), None)


def content_start(compression: Compression, data: bytes, size: int) -> bytes:
    """Return up to `size` first bytes of the content of a compressed file; fewer or none if they
    cannot be decompressed.

    Args:
        data: the first bytes of the file.
    """
    if compression.start is None:
        return b""
    try:
        return compression.start(data, size)
    except (OSError, ValueError, EOFError, struct.error, zlib.error, lzma.LZMAError):
        return b""  # it is damaged, or ends within `data`


MOVE_AWAY: Final = (
    "If the file is not a log that you need, move it out of the directory of the logs"
)

HEADER_BYTES: Final = 8_192
"""Maximum bytes of the two header blocks; blocks have at most 4 KiB."""

_PROBED: Final = 1 / 8, 1 / 4, 1 / 2, 3 / 4, 7 / 8
"""Where a file without a valid beginning is searched for blocks of a log, as parts of its size."""

_COMPARED_BYTES: Final = 16 << 20
_READ_BYTES: Final = 4 << 20


class LogReader(Protocol):
    """Reads ranges of a log.

    Attributes:
        size: bytes of the log.
    """

    size: int

    def read(self, first: int, size: int) -> bytes:
        """Read up to `size` bytes; fewer only at the end of the file."""

    def read_into(self, out: memoryview, first: int) -> None:
        """Fill `out` with the bytes from offset `first` on."""


class _SealedLog(SealedReader):
    """An encrypted log.

    Raises:
        OlrPgError: 2002, the log cannot be read; the methods raise this error too.
    """

    def __init__(self, path: str) -> None:
        with _coded(path):
            super().__init__(path)

    def read_into(self, out: memoryview, first: int) -> None:
        """See `SealedReader.read_into`."""
        with _coded(self._path):
            super().read_into(out, first)


class _PlainLog:
    """A log in a file.

    Raises:
        OlrPgError: 2002, the log cannot be read; the methods raise this error too.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        with _open(path) as handle:
            self._handle = os.dup(handle)
            self._close = weakref.finalize(self, os.close, self._handle)
            self.size = os.fstat(self._handle).st_size

    def read(self, first: int, size: int) -> bytes:
        """Read up to `size` bytes; fewer only at the end of the file."""
        with _coded(self._path):
            return read_at(self._handle, max(size, 0), first)

    def read_into(self, out: memoryview, first: int) -> None:
        """Fill `out` with the bytes from offset `first` on.

        Raises:
            OlrPgError: 2002; 2004, the file has become shorter.
        """
        with _coded(self._path):
            count = fill_from(self._handle, [out], first, _READ_BYTES)
        if count < len(out):
            detail = f"the file now ends at offset {first + count}"
            raise OlrPgError(Code.LOG_TRUNCATED, detail, file=self._path)


@contextmanager
def _coded(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        # A ValueError means a zero byte in the path, or an empty file.
        raise OlrPgError(
            Code.LOG_UNREADABLE, system_reason(error), action=advice(error), file=path
        ) from error


def _is_sealed(path: str) -> bool:
    with _coded(path):
        return is_sealed(path)


def is_by_ranges(path: str) -> bool:
    """Return whether a log cannot be mapped, so that it must be read in ranges.

    Raises:
        OlrPgError: 2002, the log cannot be read.
    """
    return is_url(path) or _is_sealed(path)


def range_reader(path: str) -> LogReader:
    """Open a log that is read in ranges.

    Raises:
        OlrPgError: 2002 the log does not exist, 2210 to 2213.
    """
    if is_url(path):
        return RangeReader(path)
    return _SealedLog(path) if _is_sealed(path) else _PlainLog(path)


def read_header(path: str) -> tuple[LogHeader, int]:
    """Return (header, size in bytes) of the log at `path`.

    Raises:
        OlrPgError: 2002 unreadable, 2003–2008 as `parse_log_header`.
    """
    reader = range_reader(path)
    start = reader.read(0, HEADER_BYTES)
    compression = compression_of(start)
    if compression is not None:
        raise _compressed(compression, reader.read(0, PEEK_BYTES), path)
    try:
        return parse_start(start, path), reader.size
    except OlrPgError as error:
        if error.code == Code.NOT_A_REDO_LOG:
            _check_later_blocks(reader, error)
        raise


def _compressed(compression: Compression, data: bytes, path: str) -> OlrPgError:
    """Return the error of a compressed file: 2023 if it is a log, 2003 if it is not, or if its
    content is unknown. An action other than the usual one shows that the content is unknown.

    Args:
        data: the first bytes of the file.
    """
    what = f"the file is compressed with {compression.name}"
    action = (
        f"decompress the file ({compression.command} FILE); olr_pg reads logs only as Oracle"
        f" wrote them. {MOVE_AWAY}"
    )
    content = content_start(compression, data, HEADER_BYTES)
    if not content:
        return OlrPgError(Code.NOT_A_REDO_LOG, what, action=action, file=path)
    try:
        header = parse_start(content, path)
    except OlrPgError as error:
        if error.code == Code.NOT_A_REDO_LOG:
            return OlrPgError(error.code, f"{what}, and {error.detail}", file=path)
        return OlrPgError(Code.LOG_COMPRESSED, what, action=action, file=path)
    place = {
        "thread": header.thread,
        "sequence": header.sequence,
        "resetlogs": header.resetlogs_id,
        "first_scn": header.first_scn,
    }
    if header.next_scn is not None:
        place["next_scn"] = header.next_scn
    return OlrPgError(Code.LOG_COMPRESSED, what, action=action, file=path, **place)


def _check_later_blocks(reader: LogReader, error: OlrPgError) -> None:
    """Check that a file without a valid beginning has no blocks of a redo log in other places.

    Raises:
        OlrPgError: 2005, the file has such a block.
    """
    step = max(BLOCK_SIZES)
    for part in _PROBED:
        at = int(reader.size * part) // step * step
        if at >= HEADER_BYTES:
            _check_no_block(reader.read(at, step), at, error)


def parse_start(start: bytes, path: str) -> LogHeader:
    """Parse the header from the first `HEADER_BYTES` of a log, or fewer if the file is shorter.

    Raises:
        OlrPgError: 2003–2008 as `parse_log_header`.
    """
    probe = start[:PROBE_BYTES]
    if compressed := compression_of(probe):
        raise _compressed(compressed, b"", path)
    if 0 < len(probe) < PROBE_BYTES and probe[0] != 0:
        raise OlrPgError(
            Code.NOT_A_REDO_LOG,
            f"the first {len(probe)} bytes are not the begin of a redo log",
            file=path,
        )
    try:
        block_size, _ = probe_geometry(probe, path=path)
    except OlrPgError as error:
        if error.code == Code.NOT_A_REDO_LOG:
            _check_not_damaged(start, error)
        raise
    end = FIRST_DATA_BLOCK * block_size
    return parse_log_header(start[:block_size], start[block_size:end], path=path)


def _check_not_damaged(start: bytes, error: OlrPgError) -> None:
    """Check that a file without a valid block 0 is not a damaged redo log.

    Other files in a directory of logs are skipped with a warning. A damaged log must not be skipped
    like these: if it is the first or the last log, no gap shows that its changes are missing. The
    name of a file decides nothing, because LOG_ARCHIVE_FORMAT allows any name.

    Args:
        start: the first bytes of the file.
        error: why block 0 is not valid.

    Raises:
        OlrPgError: 2005, a later block is a block of a redo log; 2004, the file begins with zeros
            only, as after a crash of the file system or during some copies.
    """
    _check_no_block(start, 0, error)
    if len(start) == HEADER_BYTES and not any(start):
        raise OlrPgError(
            Code.LOG_TRUNCATED,
            f"the first {HEADER_BYTES} bytes of the file are zero, so the beginning of the log"
            " was never written",
            action=f"{Code.LOG_TRUNCATED.action}. {MOVE_AWAY}",
            file=error.where["file"],
        ) from error


def _check_no_block(data: bytes, at: int, error: OlrPgError) -> None:
    """Raise an error if a file whose block 0 is not valid contains blocks of a redo log.

    Args:
        data: the bytes from offset `at` on.
        error: why block 0 is not valid.

    Raises:
        OlrPgError: 2005, a block belongs to a redo log.
    """
    for size in BLOCK_SIZES:
        for number in range(max(1, at // size), (at + len(data)) // size):
            block = data[number * size - at : number * size - at + BLOCK.size]
            if block[:2] == bytes((1, BLOCK_TYPES[size])) and number in (
                BLOCK.number(block, "number", big=big) for big in (False, True)
            ):
                raise OlrPgError(
                    Code.BLOCK_CORRUPT,
                    f"{error.detail}, but block {number} belongs to a redo log",
                    action=f"{Code.BLOCK_CORRUPT.action}. {MOVE_AWAY}",
                    block=0,
                    file=error.where["file"],
                ) from error


_POPULATE_READ: Final = 22
"""MADV_POPULATE_READ, since Linux 5.14. Python has no name for it yet."""


def map_log(path: str, needed: slice | None = None) -> npt.NDArray[np.uint8]:
    """Map the bytes of a log read-only. The mapping ends when the returned array is freed.

    If the file is deleted or replaced meanwhile, the mapping still has the contents of the old
    file. If the file is *truncated in place*, or its disk fails, after the pages were checked, an
    access to the missing bytes ends the process with a signal. A process that must not end in this
    way uses `read_blocks` or `decoding.joined_logs`.

    Args:
        needed: these bytes are needed: check that the system can read their pages. None to check
            nothing.

    Raises:
        OlrPgError: 2002 the file is missing or cannot be read, 2004 the file is empty.
    """
    if _is_sealed(path):
        sealed = range_reader(path)
        return np.frombuffer(sealed.read(0, sealed.size), np.uint8)
    with _open(path) as handle:
        if os.fstat(handle).st_size == 0:
            raise OlrPgError(Code.LOG_TRUNCATED, "the file is empty", file=path)
        # A ValueError means that the file became empty after its size was read.
        mapping = mmap.mmap(handle, 0, access=mmap.ACCESS_READ)
    if needed is not None:
        _check_pages(mapping, needed, path)
    return np.frombuffer(mapping, np.uint8)


def _check_pages(mapping: mmap.mmap, needed: slice, path: str) -> None:
    """Check that the pages of the needed bytes can be read. An older system cannot tell."""
    start, end, _ = needed.indices(len(mapping))
    begin = start - start % mmap.PAGESIZE
    if end <= start:
        return
    try:
        mapping.madvise(_POPULATE_READ, begin, end - begin)
    except OSError as error:
        if error.errno == errno.EINVAL:
            return
        raise OlrPgError(
            Code.LOG_UNREADABLE,
            f"the bytes from {begin} to {end} cannot all be read: the disk fails, or the file was"
            " truncated",
            file=path,
        ) from error


def read_blocks(log: ArchivedLog, first: int, stop: int) -> npt.NDArray[np.uint8]:
    """Read blocks [first, stop) of a log into memory.

    Args:
        first, stop: block numbers, 0 ≤ first ≤ stop ≤ nab.

    Returns:
        Shape ((stop − first) * block size), read-only.

    Raises:
        OlrPgError: 2002 the file was deleted or cannot be read, 2004 the file ends before block
            `stop`.
    """
    block_size = log.header.block_size
    size, offset = (stop - first) * block_size, first * block_size
    data = range_reader(log.path).read(offset, size)
    if len(data) < size:
        raise OlrPgError(
            Code.LOG_TRUNCATED,
            f"expected blocks {first} to {stop - 1}",
            file=log.path,
            block=first + len(data) // block_size,
        )
    return np.frombuffer(data, np.uint8)


def first_hole(log: ArchivedLog) -> int | None:
    """Return the offset of the first hole in the used blocks of a log; None if there is none, or if
    the file system does not show holes.

    A hole is a range that was never written, and consists of zeros. No used block does.

    Raises:
        OlrPgError: 2002, the file was deleted or cannot be read.
    """
    if is_by_ranges(log.path):
        return None
    with _open(log.path) as handle:
        try:
            at = os.lseek(handle, 0, os.SEEK_HOLE)
        except OSError:
            return None
    return at if at < log.used_bytes else None


def check_blocks(log: ArchivedLog) -> None:
    """Check that every used block is undamaged and belongs to the log; read the whole file.

    A block that was never written consists of zeros, and its checksum is right. So the number and
    the sequence in each block's header are checked too.

    Raises:
        OlrPgError: 2002 the file was deleted or cannot be read, 2004 the file is too short, 2005 a
            block is damaged.
    """
    step = max(1, _COMPARED_BYTES // log.header.block_size)
    for first in range(FIRST_DATA_BLOCK, log.blocks, step):
        end = min(first + step, log.blocks)
        sound, _ = sound_blocks(read_blocks(log, first, end), first, log.header)
        if sound < end:
            raise OlrPgError(
                Code.BLOCK_CORRUPT,
                "the block was never written, is damaged, or belongs to another log",
                file=log.path,
                thread=log.header.thread,
                sequence=log.header.sequence,
                block=sound,
            )


def same_content(one: ArchivedLog, other: ArchivedLog) -> bool:
    """Return whether two logs have the same bytes in every used block.

    Raises:
        OlrPgError: 2002, one of the files was deleted or cannot be read.
    """
    # Ignore the file size in the header, because one file may be a copy of a larger online log.
    if replace(one.header, file_blocks=0) != replace(other.header, file_blocks=0):
        return False
    step = max(1, _COMPARED_BYTES // one.header.block_size)
    # Compare only blocks below `nab`: after them, an archived log can have preallocated space
    # (redo-format §1.6).
    starts = range(FIRST_DATA_BLOCK, one.blocks, step)
    parts = ((at, min(at + step, one.blocks)) for at in starts)
    return all(np.array_equal(read_blocks(one, *part), read_blocks(other, *part)) for part in parts)


@contextmanager
def _open(path: str) -> Iterator[int]:
    """Open a log, and close it when the context ends.

    Raises:
        OlrPgError: 2002, an operation on the log fails, also one of the context.
    """
    with _coded(path):
        # O_NONBLOCK: if the path is a pipe, opening it must not wait for a writer.
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise OlrPgError(
                    Code.LOG_UNREADABLE, "the path does not name a regular file", file=path
                )
            yield handle
        finally:
            os.close(handle)


_log = structlog.get_logger(__name__)


def open_current(path: str) -> ArchivedLog:
    """Open the copy of a log that was current. The result describes its complete LWN groups, as if
    the log still grew.

    Raises:
        OlrPgError: 2002 to 2008, see `read_header`.
    """
    header, size = read_header(path)
    block_size = header.block_size
    data = map_log(path)[FIRST_DATA_BLOCK * block_size : size // block_size * block_size]
    end = find_end(data, FIRST_DATA_BLOCK, header, header.first_scn)
    scn = max(end.scn, header.first_scn)
    return ArchivedLog(path, size, replace(header, nab=end.block, next_scn=scn), grows=True)


def is_overwritten(log: ArchivedLog) -> bool:
    """Return whether Oracle reused the file of a closed log while it was copied.

    Only a file that is longer than its log can be the copy of an online log.
    """
    if log.grows or log.size == log.used_bytes:
        return False
    data = map_log(log.path)[FIRST_DATA_BLOCK * log.header.block_size : log.used_bytes]
    end = find_end(data, FIRST_DATA_BLOCK, log.header, log.header.first_scn)
    if end.block >= log.blocks:
        return False
    _log.warning(
        "ignoring an online log that Oracle overwrote while it was copied",
        file=log.path,
        thread=log.header.thread,
        sequence=log.header.sequence,
    )
    return True


def is_unused(path: str) -> bool:
    """Return whether a file was created for online logs but never used: its block 1 is empty."""
    start = map_log(path)
    block_size, _ = probe_geometry(start[:PROBE_BYTES].tobytes(), path=path)
    return not start[block_size : FIRST_DATA_BLOCK * block_size].any()


def longer(one: ArchivedLog, other: ArchivedLog) -> ArchivedLog:
    """Return the copy of a log that contains more of it; at least one of the two was made while the
    log was current.
    """
    return max(one, other, key=lambda log: (not log.grows, log.blocks))


def up_to_current(logs: Sequence[ArchivedLog]) -> list[ArchivedLog]:
    """Return the logs. If a log was current when it was copied, leave out all later logs of its
    thread.

    A log switch can happen between two copies. So one copy may contain a log that was current when
    it was copied, and another copy may contain the next log.

    Args:
        logs: in stream order.
    """
    kept: list[ArchivedLog] = []
    for _, of_thread in groupby(logs, key=lambda log: log.position[:2]):
        kept.extend(_first_of(of_thread))
    return kept


def _first_of(logs: Iterable[ArchivedLog]) -> Iterable[ArchivedLog]:
    for log in logs:
        yield log
        if log.grows:
            return
