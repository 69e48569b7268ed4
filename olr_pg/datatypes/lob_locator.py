"""LOB locators: the bytes that a row stores for a LOB column (values-and-lobs §16).

A locator contains a LOB's id and the place of its bytes. The bytes are in the row itself, in
extents of blocks, or in pages. The pages are listed in a header block, in the locator itself, or in
the LOB index. One kernel reads all forms of locators. The kernel was checked with all examples of
values-and-lobs §16.6, which are from a real database.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from olr_pg.errors import Code, OlrPgError
from olr_pg.kernels.compile import kernel

LOCATOR_HEAD: Final = 20
LOB_ID_OFFSET: Final = 10


class LobForm(IntEnum):
    """Where the bytes of a LOB are."""

    EMPTY = 0
    INLINE = 1
    EXTENTS = 2
    HEADER = 3
    POINTERS = 4
    INDEXED = 5
    BFILE = 6


class LobCompression(IntEnum):
    """How the stored bytes of a LOB are compressed (values-and-lobs §22)."""

    NONE = 0
    STREAM = 1
    CHUNK_MAP = 2


class LobText(IntEnum):
    """How the bytes of a character LOB encode text (values-and-lobs §17.1)."""

    BYTES = 0
    UTF16_BE = 1
    UTF16_LE = 2
    CHARSET = 3


FORM: Final = 0
KIND: Final = 1
TEXT: Final = 2
LENGTH: Final = 3
STORED: Final = 4
COMPRESSION: Final = 5
START: Final = 6
SIZE: Final = 7
COUNT: Final = 8
REST: Final = 9
LOB_ID: Final = 10
FACTS: Final = 11
"""The size of the array that `read_locator` fills. The constants above are the indexes in it."""

_EMPTY = int(LobForm.EMPTY)
_INLINE = int(LobForm.INLINE)
_EXTENTS = int(LobForm.EXTENTS)
_HEADER = int(LobForm.HEADER)
_POINTERS = int(LobForm.POINTERS)
_INDEXED = int(LobForm.INDEXED)
_BFILE = int(LobForm.BFILE)

_NONE = int(LobCompression.NONE)
_STREAM = int(LobCompression.STREAM)
_CHUNK_MAP = int(LobCompression.CHUNK_MAP)

_UTF16_BE = int(LobText.UTF16_BE)
_UTF16_LE = int(LobText.UTF16_LE)
_CHARSET = int(LobText.CHARSET)

_CLOB_KIND = 2
_NCLOB_KIND = 4
_BFILE_KIND = 8

_OK = 0
_TOO_SHORT = 1
_WRONG_LENGTH = 2
_UNKNOWN_FORM = 3
_WRONG_ID = 4

_REASONS: Final = {
    _TOO_SHORT: "it is shorter than its parts",
    _WRONG_LENGTH: "its inode's length is wrong",
    _UNKNOWN_FORM: "its inode is of an unknown form",
    _WRONG_ID: "its LOB id does not begin with 00000001",
}


@dataclass(frozen=True, slots=True)
class Locator:
    """The content of a LOB locator.

    Attributes:
        lob_id: 10 bytes.
        kind: 1 BLOB, 2 CLOB, 4 NCLOB, 8 BFILE.
        text: the encoding of a CLOB or NCLOB.
        length: bytes of the value; −1 if the locator does not contain the length (`POINTERS`: it
            depends on the page size; `INDEXED`: it is in the index).
        stored: bytes of the stored form if the value is compressed; else `length`.
        start, size: where the inline bytes, the extent list or the page pointers are in the
            locator.
        count: the number of extents or of full pages; for `HEADER`, the address of the header
            block.
        rest: the number of bytes in the last page, which is not full (`POINTERS`).
    """

    form: LobForm
    lob_id: bytes
    kind: int
    text: LobText
    length: int
    stored: int
    compression: LobCompression
    start: int
    size: int
    count: int
    rest: int


@kernel
def number_be(data: Any, at: int, size: int) -> int:
    """Read an unsigned big-endian number of `size` bytes (at most 7) at `at`."""
    value = 0
    for i in range(size):
        value = value << 8 | int(np.int64(data[at + i]))
    return value


@kernel
def lob_number(data: Any, at: int) -> int:
    """Return the part of a LOB id that differs between LOBs: the 6 bytes after ``00 00 00 01``."""
    return number_be(data, at + 4, 6)


@kernel
def read_locator(data: Any, at: int, length: int, facts: Any) -> int:
    """Read a locator into `facts`, an array of `FACTS` numbers; offsets are relative to the start
    of `data`. Returns 0, or a number that stands for the reason of the failure (`_REASONS`).
    """
    for i in range(FACTS):
        facts[i] = 0
    if length < LOCATOR_HEAD:
        return _TOO_SHORT
    kind = int(data[at + 4]) & 0x0F
    flags, storage = int(data[at + 6]), int(data[at + 7])
    facts[KIND] = kind
    facts[LOB_ID] = lob_number(data, at + LOB_ID_OFFSET)
    if kind == _BFILE_KIND:
        facts[FORM] = _BFILE
        return _OK
    if kind in (_CLOB_KIND, _NCLOB_KIND):
        facts[TEXT] = _CHARSET
        if storage & 0x40:
            facts[TEXT] = _UTF16_LE
        elif flags & 0x80 or kind == _NCLOB_KIND:
            facts[TEXT] = _UTF16_BE
    if number_be(data, at + LOB_ID_OFFSET, 4) != 1:
        return _WRONG_ID
    if not data[at + 5] & 0x04:
        facts[FORM] = _INDEXED
        facts[LENGTH] = -1
        return _OK
    if length < LOCATOR_HEAD + 4 or number_be(data, at + LOCATOR_HEAD, 2) != length - LOCATOR_HEAD:
        return _WRONG_LENGTH
    if storage & 0x80:
        return _read_securefile(data, at, length, facts)
    return _read_basicfile(data, at, length, facts)


@kernel
def _read_basicfile(data: Any, at: int, length: int, facts: Any) -> int:
    if length < 36:
        return _TOO_SHORT
    flags = int(data[at + 22])
    if flags & 0x01:
        size = number_be(data, at + 28, 2)
        if size != length - 36:
            return _WRONG_LENGTH
        facts[FORM] = _INLINE if size > 0 else _EMPTY
        facts[LENGTH] = size
        facts[STORED] = size
        facts[START] = at + 36
        facts[SIZE] = size
        return _OK
    if not flags & 0x04 or (length - 36) & 3:
        return _UNKNOWN_FORM
    facts[COUNT] = number_be(data, at + 24, 4)
    facts[REST] = number_be(data, at + 28, 2)
    facts[FORM] = _POINTERS if facts[COUNT] > 0 or facts[REST] > 0 else _EMPTY
    facts[LENGTH] = 0 if facts[FORM] == _EMPTY else -1
    facts[START] = at + 36
    facts[SIZE] = length - 36
    return _OK


@kernel
def _read_securefile(data: Any, at: int, length: int, facts: Any) -> int:
    options, end = int(data[at + 23]), at + length
    p = at + (25 if options & 0x40 else 24)
    extra = 0
    if options & 0x02:
        if p + 2 > end:
            return _TOO_SHORT
        extra = number_be(data, p, 2)
        p += 2
    if p + 2 > end:
        return _TOO_SHORT
    body = number_be(data, p, 2)
    p += 2
    if p + extra + body != end:
        return _WRONG_LENGTH
    if extra > 1:
        width = (int(data[p + 2]) & 3) + 1 if extra >= 3 else 0
        if width == 0 or 3 + width > extra:
            return _TOO_SHORT
        facts[STORED] = number_be(data, p + 3, width)
        facts[COMPRESSION] = _CHUNK_MAP if int(data[p + 1]) & 0x02 else _STREAM
    return _read_body(data, p + extra, end, int(data[at + 22]) & 0x08 != 0, facts)


@kernel
def _read_body(data: Any, p: int, end: int, in_row: bool, facts: Any) -> int:
    if p + 2 > end:
        return _TOO_SHORT
    form, wide = int(data[p]), (int(data[p]) & 7) + 1
    version = (int(data[p + 1]) & 0x0F) + 1
    p += 2
    if p + wide + version > end:
        return _TOO_SHORT
    facts[LENGTH] = number_be(data, p, wide)
    p += wide + version
    if facts[COMPRESSION] == _NONE or not form & 0x10:
        facts[COMPRESSION] = _NONE
        facts[STORED] = facts[LENGTH]
    if facts[LENGTH] == 0:
        return _OK
    if in_row or not form & 0x60:
        return _read_inline(data, p, end, form, facts)
    if form & 0x40:
        if p + 4 != end:
            return _WRONG_LENGTH
        facts[FORM] = _HEADER
        facts[COUNT] = number_be(data, p, 4)
        return _OK
    if p >= end:
        return _TOO_SHORT
    facts[FORM] = _EXTENTS
    facts[COUNT] = int(data[p]) + 1
    facts[START] = p + 1
    facts[SIZE] = end - p - 1
    return _check_extents(data, p + 1, end, facts[COUNT], form & 0x10 != 0)


@kernel
def _read_inline(data: Any, p: int, end: int, form: int, facts: Any) -> int:
    facts[FORM] = _INLINE
    if form & 0x10:
        if p + 2 > end:
            return _TOO_SHORT
        facts[STORED] = number_be(data, p, 2)
        facts[COMPRESSION] = _STREAM
        p += 2
    if end - p != facts[STORED]:
        return _WRONG_LENGTH
    facts[START] = p
    facts[SIZE] = end - p
    return _OK


@kernel
def extent_at(data: Any, p: int, end: int, compressed: bool) -> tuple[int, int, int]:
    """Read the extent at `p`. Returns (first block, number of blocks, position of the next extent).
    The number of blocks is −1 if the extent is truncated.
    """
    if p + 6 > end:
        return 0, -1, p
    flag = int(data[p])
    first = number_be(data, p + 1, 4)
    p += 5
    wide = 2 if flag & 0x20 else 1
    if p + wide > end:
        return 0, -1, p
    blocks = number_be(data, p, wide)
    p += wide
    if compressed:
        p += (flag & 3) + 1
    return first, blocks, p


@kernel
def _check_extents(data: Any, p: int, end: int, count: int, compressed: bool) -> int:
    for _ in range(count):
        _, blocks, p = extent_at(data, p, end, compressed)
        if blocks < 0 or p > end:
            return _TOO_SHORT
    return _OK if p == end else _WRONG_LENGTH


def decode_locator(raw: bytes) -> Locator:
    """Decode the bytes of a LOB column.

    Raises:
        OlrPgError: 2122, the bytes are not a locator.
    """
    # Copied: a kernel is compiled a second time for an array that cannot be written to.
    data: npt.NDArray[np.uint8] = np.frombuffer(bytearray(raw), np.uint8)
    facts = np.zeros(FACTS, np.int64)
    status = read_locator(data, 0, len(raw), facts)
    if status:
        raise OlrPgError(Code.LOB_LOCATOR_MALFORMED, f"{_REASONS[status]}: {raw[:64].hex()}")
    return Locator(
        LobForm(int(facts[FORM])),
        raw[LOB_ID_OFFSET:LOCATOR_HEAD],
        int(facts[KIND]),
        LobText(int(facts[TEXT])),
        int(facts[LENGTH]),
        int(facts[STORED]),
        LobCompression(int(facts[COMPRESSION])),
        int(facts[START]),
        int(facts[SIZE]),
        int(facts[COUNT]),
        int(facts[REST]),
    )
