"""Recognises files that somebody has compressed with a tool, and redo logs in them.

Oracle does not write such files, and olr_pg does not decode them. But a directory of logs often
contains some, because scripts compress old archived logs. A compressed log must not be skipped like
a file that is not a redo log: if it is the first or the last log, no gap shows that its changes are
missing. So its beginning is decompressed, which shows whether it is a log, and which one.
"""

from __future__ import annotations

import bz2
import lzma
import struct
import zlib
from collections.abc import Callable
from typing import Final, Literal, NamedTuple

Start = Callable[[bytes, int], bytes]
"""A function that returns the first bytes of the content, up to a number. Its input is the first
bytes of the file, which usually do not contain the whole file.
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
