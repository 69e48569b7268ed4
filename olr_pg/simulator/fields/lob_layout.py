"""The bytes of LOB locators and LOB index rows (values-and-lobs §16, §19, §26)."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

SECURE_OVERHEAD: Final = 132
BASIC_OVERHEAD: Final = 60
"""Bytes of a block that are not payload (values-and-lobs §18.4)."""

PAGE: Final = 8192 - SECURE_OVERHEAD
BASIC_PAGE: Final = 8192 - BASIC_OVERHEAD
POINTERS_MAX: Final = 12
"""Maximum number of page addresses in a BASICFILE locator."""

BLOB, CLOB, NCLOB = 1, 2, 4


def lob_id(number: int) -> bytes:
    """Encode a LOB id."""
    return b"\0\0\0\1" + number.to_bytes(6)


def locator_head(
    kind: int, number: int, *, secure: bool, inode: bool = True, wide: bool = True
) -> bytes:
    """Encode the first 20 bytes of a locator; `wide` for a CLOB of a multi-byte database."""
    character = 2 if kind != BLOB and wide else 1
    flags = 0x80 if kind != BLOB and wide else 0
    return (
        struct.pack(">HHBBBBH", 0x70, 1, kind, 0x0C if inode else 0x08, flags,
                    0x80 if secure else 0, character) + lob_id(number)
    )  # fmt: skip


def width_of(number: int) -> int:
    """Return the number of bytes that a number needs, at least 1."""
    return max(1, (number.bit_length() + 7) // 8)


def _secure_inode(inode: bytes, flags: int) -> bytes:
    return struct.pack(">HBBH", len(inode) + 6, flags, 0x90, len(inode)) + inode


def secure_in_row(
    kind: int, number: int, content: bytes, version: int = 1, *, wide: bool = True
) -> bytes:
    """Encode a SECUREFILE locator that contains the value (values-and-lobs §26)."""
    size = width_of(len(content))
    inode = bytes((size - 1, 0)) + len(content).to_bytes(size) + bytes((version,)) + content
    return locator_head(kind, number, secure=True, wide=wide) + _secure_inode(inode, 0x48)


def secure_extents(
    kind: int,
    number: int,
    length: int,
    extents: Sequence[tuple[int, int]],
    version: int = 1,
    *,
    page: int = PAGE,
    wide: bool = True,
) -> bytes:
    """Encode a SECUREFILE locator with extents of (first block, number of blocks)."""
    size = width_of(length)
    left, listed = length, b""
    for first, blocks in extents:
        own = min(left, blocks * page)
        left -= own
        listed += bytes((width_of(own) - 1,)) + first.to_bytes(4) + bytes((blocks,))
    inode = bytes((0x20 | size - 1, 0)) + length.to_bytes(size) + bytes((version,))
    inode += bytes((len(extents) - 1,)) + listed
    return locator_head(kind, number, secure=True, wide=wide) + _secure_inode(inode, 0x40)


def secure_header(
    kind: int, number: int, length: int, dba: int, version: int = 1, *, wide: bool = True
) -> bytes:
    """Encode a SECUREFILE locator with the address of a header block."""
    size = width_of(length)
    inode = bytes((0x40 | size - 1, 0)) + length.to_bytes(size)
    inode += bytes((version,)) + dba.to_bytes(4)
    return locator_head(kind, number, secure=True, wide=wide) + _secure_inode(inode, 0x40)


def basic_in_row(kind: int, number: int, content: bytes, *, wide: bool = True) -> bytes:
    """Encode a BASICFILE locator that contains the value."""
    return (
        locator_head(kind, number, secure=False, wide=wide)
        + struct.pack(">HBBIH6s", len(content) + 16, 9, 0, 0, len(content), b"\0\0\0\0\0\1")
        + content
    )


def basic_pointers(
    kind: int,
    number: int,
    length: int,
    pages: Sequence[int],
    *,
    page: int = BASIC_PAGE,
    wide: bool = True,
) -> bytes:
    """Encode a BASICFILE locator with the addresses of the value's first pages."""
    listed = b"".join(dba.to_bytes(4) for dba in pages)
    full, rest = divmod(length, page)
    return (
        locator_head(kind, number, secure=False, wide=wide)
        + struct.pack(">HBBIH6s", len(listed) + 16, 4, 0, full, rest, b"\0\0\0\0\0\1")
        + listed
    )


def basic_outside(kind: int, number: int, *, wide: bool = True) -> bytes:
    """Encode the 20-byte locator of a BASICFILE LOB that is never stored in the row."""
    return locator_head(kind, number, secure=False, inode=False, wide=wide)


def index_data(number: int, length: int, blocks: Sequence[int], *, page: int = BASIC_PAGE) -> bytes:
    """Encode the 32 bytes of the LOB index row of page `number`."""
    listed = b"".join(block.to_bytes(4) for block in blocks)
    if number:
        return listed.ljust(32, b"\0")
    full, rest = divmod(length, page)
    return (struct.pack(">IIH6s", 0, full, rest, b"\0\0\0\0\0\1") + listed).ljust(32, b"\0")


def index_key(number: int, page: int) -> bytes:
    """Encode the 16 bytes of a LOB index key."""
    return b"\x0a" + lob_id(number) + b"\x04" + page.to_bytes(4)
