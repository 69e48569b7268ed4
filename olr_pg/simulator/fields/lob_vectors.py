"""Fields of the change vectors that write LOB pages and lists (values-and-lobs §18–§23).

26.6 and 11.17 have the layout of real vectors; the others have the layout that the page describes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.simulator.fields.lob_layout import PAGE, SECURE_OVERHEAD, lob_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.simulator.fields.redo_format import RedoFormat

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
