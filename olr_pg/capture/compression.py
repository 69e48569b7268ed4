"""Recognises logs that somebody has compressed with a tool, by their first bytes. Oracle itself
does not write such files.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Compression(NamedTuple):
    """A compression format.

    Attributes:
        magic: the first bytes of each file in this format.
        command: the command that decompresses a file in this format.
    """

    name: str
    magic: bytes
    command: str


_KNOWN: Final = (
    Compression("gzip", b"\x1f\x8b", "gunzip"),
    Compression("compress", b"\x1f\x9d", "uncompress"),
    Compression("zstd", b"\x28\xb5\x2f\xfd", "unzstd"),
    Compression("bzip2", b"BZh", "bunzip2"),
    Compression("xz", b"\xfd7zXZ\0", "unxz"),
    Compression("lz4", b"\x04\x22\x4d\x18", "unlz4"),
    Compression("lzip", b"LZIP", "lzip -d"),
    Compression("lzop", b"\x89LZO", "lzop -d"),
    Compression("zip", b"PK\x03\x04", "unzip"),
    Compression("7-Zip", b"7z\xbc\xaf\x27\x1c", "7z x"),
)


def compression_of(start: bytes) -> Compression | None:
    """Return the compression format of a file with these first bytes; None if it is not compressed.

    A redo log begins with a zero byte; no compressed file does.
    """
    return next((one for one in _KNOWN if start.startswith(one.magic)), None)
