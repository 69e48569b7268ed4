"""The bytes of LOB locators and LOB index rows (values-and-lobs §16, §19, §26), and the fields of
the change vectors that write LOB pages and lists (values-and-lobs §18–§23).

The vectors 26.6 and 11.17 have the layout of real ones; the other vectors have the layout that
values-and-lobs describes.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.simulator.fields.redo_format import RedoFormat

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


COMMON_REDO: Final = 0
COMMON_UNDO: Final = 1
COMMON_IMAGE: Final = 6
TYPE_HEADER: Final = 0x10
TYPE_DATA: Final = 0x20

LOB_BLOCK: Final = b"\x28"
"""Type of a BASICFILE LOB's block in a tablespace with automatic segment space management."""

OPERATION_WRITE: Final = 0x02
OPERATION_TRIM: Final = 0x66
OPERATION_ERASE: Final = 0x68


def kdli_common(redo: RedoFormat, op: int, kind: int, dba: int, *, page: int = PAGE) -> bytes:
    """Encode the KDLI common field of 12 bytes; `page` is the payload of a block in bytes."""
    return redo.pack("BBBBHHI", op, kind, 2, 0, page, 128, dba)


def load_data_item(redo: RedoFormat, number: int, size: int) -> bytes:
    """Encode the load data item of 56 bytes; the next field has `size` bytes of payload."""
    return b"\x04\0" + bytes(10) + lob_id(number) + bytes(30) + redo.pack("I", size)


def direct_load_item(
    redo: RedoFormat, scn: int, xid: bytes, dataobj: int, *, block: int = PAGE + SECURE_OVERHEAD
) -> bytes:
    """Encode the fpload item of 32 bytes."""
    head = redo.pack("BBHI", 0x0B, 0, 0, block)
    return head + redo.scn8(scn) + xid + redo.pack("II", dataobj, 0)


def logged_item(redo: RedoFormat, xid: bytes, table: int, column: int) -> bytes:
    """Encode the suplog item of 24 bytes; `column` counts from 1."""
    return b"\x09\0\0\0" + xid + redo.pack("IHHI", table, 1, column, 0)


def info_item(number: int) -> bytes:
    """Encode the info item, which names the LOB."""
    return b"\x01" + lob_id(number) + bytes(6)


def fill_item(redo: RedoFormat, offset: int, content: bytes, *, page: int = PAGE) -> bytes:
    """Encode the fill item: bytes at an offset of the page."""
    return redo.pack("BBHHH", 6, 0, offset, page, len(content)) + content


def zero_item(redo: RedoFormat, offset: int, size: int) -> bytes:
    """Encode the zero item: `size` zeros at an offset of the page."""
    return redo.pack("BBHHH", 5, 0, offset, size, 0)


def _runs(redo: RedoFormat, runs: Sequence[tuple[int, int]]) -> bytes:
    return b"".join(redo.pack("BBHI", 0, 0, count, first) for first, count in runs)


def list_item(redo: RedoFormat, runs: Sequence[tuple[int, int]]) -> bytes:
    """Encode the lmap item: the whole list of a block, with entries of (first block, blocks)."""
    return redo.pack("BBHI", 7, 0, 0, len(runs)) + _runs(redo, runs)


def list_part_item(redo: RedoFormat, start: int, runs: Sequence[tuple[int, int]]) -> bytes:
    """Encode the almap item: entries of a list from `start` on."""
    return redo.pack("BBHII", 0x0D, 0, 0, len(runs), start) + _runs(redo, runs)


def header_item(redo: RedoFormat, number: int, length: int, lists: Sequence[int]) -> bytes:
    """Encode the load LHB item: a LOB header block with up to four list blocks."""
    item = bytearray(112)
    item[0] = 0x0C
    item[12:22] = lob_id(number)
    item[32:36] = redo.pack("I", length)
    item[64:80] = redo.pack("IIII", *(list(lists) + [0] * 4)[:4])
    return bytes(item)


def long_field(redo: RedoFormat, dataobj: int, number: int, page: int, payload: bytes) -> bytes:
    """Encode the first field of a 19.1 with page number `page` of a BASICFILE LOB, without padding.

    The second field of the 19.1 is the type of the block, here `LOB_BLOCK`.
    """
    head = redo.pack("I", dataobj) + lob_id(number) + bytes(2)
    return head + redo.pack("IHHIII", 1, 0, 0, page, 0, 0) + payload


def operation_fields(
    redo: RedoFormat,
    code: int,
    xid: bytes,
    number: int,
    *,
    column: int,
    table: int,
    size: int,
    offset: int = 1,
    page: int = PAGE,
) -> list[bytes]:
    """Encode the fields of an 11.17 of kind 1; `column` and `offset` count from 1."""
    third = bytes((code, 0, 0, 0)) + xid + lob_id(number)
    third += redo.pack("HIIII", column, offset, page, size, table) + bytes(40)
    return [bytes(16), b"\1", third, bytes(8)]
