"""LOB locators: the bytes of a LOB column in its row (values-and-lobs §16).

A locator names a LOB and says where its bytes are: in the row itself, in extents of blocks, behind
a header block, behind page pointers, or in the LOB index. One kernel reads all forms; checked on
every example of values-and-lobs §16.6, which are real.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from olr_pg.errors import OlrPgError
from olr_pg.kernels import kernel

LOCATOR_HEAD: Final = 20
LOB_ID_OFFSET: Final = 10
LOB_ID_BYTES: Final = 10


class LobForm(IntEnum):
    """Where a LOB's bytes are."""

    EMPTY = 0
    INLINE = 1
    EXTENTS = 2
    HEADER = 3
    POINTERS = 4
    INDEXED = 5
    BFILE = 6


class LobCompression(IntEnum):
    """How a LOB's stored bytes are to be read (values-and-lobs §22)."""

    NONE = 0
    STREAM = 1
    CHUNK_MAP = 2


class LobText(IntEnum):
    """What a character LOB's bytes are (values-and-lobs §17.1)."""

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
"""How many numbers `read_locator` fills: one per name above."""

_REASONS: Final = {
    1: "it is shorter than its parts",
    2: "its inode's length is wrong",
    3: "its inode is of an unknown form",
    4: "its LOB id does not begin with 00000001",
}


@dataclass(frozen=True, slots=True)
class Locator:
    """What a locator says.

    Attributes:
        lob_id: 10 bytes.
        kind: 1 BLOB, 2 CLOB, 4 NCLOB, 8 BFILE.
        text: what the bytes of a CLOB or NCLOB are.
        length: bytes of the value; −1 where the locator does not tell (`POINTERS`: the length
            depends on the page size; `INDEXED`: the index has it).
        stored: bytes of the compressed form, else `length`.
        start, size: the inline bytes, the extent list or the page pointers, in the locator; for
            `HEADER` the block's address is `count`.
        count: extents, or full pages, or the header block's address.
        rest: bytes in the last, partial page (`POINTERS`).
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
    """The unsigned big-endian number of `size` ≤ 7 bytes at `at`."""
    value = 0
    for i in range(size):
        value = value << 8 | int(np.int64(data[at + i]))
    return value


@kernel
def lob_number(data: Any, at: int) -> int:
    """The part of a LOB id that differs: the 6 bytes behind ``00 00 00 01``."""
    return number_be(data, at + 4, 6)


@kernel
def read_locator(data: Any, at: int, length: int, facts: Any) -> int:
    """Fill `facts` (shape `FACTS`, offsets absolute) from a locator; 0, or why not (`_REASONS`)."""
    for i in range(11):
        facts[i] = 0
    if length < 20:
        return 1
    kind = int(data[at + 4]) & 0x0F
    flags, storage = int(data[at + 6]), int(data[at + 7])
    facts[1] = kind
    facts[10] = lob_number(data, at + 10)
    if kind == 8:
        facts[0] = 6
        return 0
    if kind == 2 or kind == 4:
        facts[2] = 3
        if storage & 0x40:
            facts[2] = 2
        elif flags & 0x80 or kind == 4:
            facts[2] = 1
    if number_be(data, at + 10, 4) != 1:
        return 4
    if not data[at + 5] & 0x04:
        facts[0] = 5
        facts[3] = -1
        return 0
    if length < 24 or number_be(data, at + 20, 2) != length - 20:
        return 2
    if storage & 0x80:
        return _read_securefile(data, at, length, facts)
    return _read_basicfile(data, at, length, facts)


@kernel
def _read_basicfile(data: Any, at: int, length: int, facts: Any) -> int:
    if length < 36:
        return 1
    flags = int(data[at + 22])
    if flags & 0x01:
        size = number_be(data, at + 28, 2)
        if size != length - 36:
            return 2
        facts[0] = 1 if size > 0 else 0
        facts[3] = size
        facts[4] = size
        facts[6] = at + 36
        facts[7] = size
        return 0
    if not flags & 0x04 or (length - 36) & 3:
        return 3
    facts[8] = number_be(data, at + 24, 4)
    facts[9] = number_be(data, at + 28, 2)
    facts[0] = 4 if facts[8] > 0 or facts[9] > 0 else 0
    facts[3] = -1 if facts[0] else 0
    facts[6] = at + 36
    facts[7] = length - 36
    return 0


@kernel
def _read_securefile(data: Any, at: int, length: int, facts: Any) -> int:
    options, end = int(data[at + 23]), at + length
    p = at + (25 if options & 0x40 else 24)
    extra = 0
    if options & 0x02:
        if p + 2 > end:
            return 1
        extra = number_be(data, p, 2)
        p += 2
    if p + 2 > end:
        return 1
    body = number_be(data, p, 2)
    p += 2
    if p + extra + body != end:
        return 2
    if extra > 1:
        width = (int(data[p + 2]) & 3) + 1 if extra >= 3 else 0
        if width == 0 or 3 + width > extra:
            return 1
        facts[4] = number_be(data, p + 3, width)
        facts[5] = 2 if int(data[p + 1]) & 0x02 else 1
    return _read_body(data, p + extra, end, int(data[at + 22]) & 0x08 != 0, facts)


@kernel
def _read_body(data: Any, p: int, end: int, in_row: bool, facts: Any) -> int:
    if p + 2 > end:
        return 1
    form, wide = int(data[p]), (int(data[p]) & 7) + 1
    version = (int(data[p + 1]) & 0x0F) + 1
    p += 2
    if p + wide + version > end:
        return 1
    facts[3] = number_be(data, p, wide)
    p += wide + version
    if facts[5] == 0 or not form & 0x10:
        facts[5] = 0
        facts[4] = facts[3]
    if facts[3] == 0:
        return 0
    if in_row or not form & 0x60:
        return _read_inline(data, p, end, form, facts)
    if form & 0x40:
        if p + 4 != end:
            return 2
        facts[0] = 3
        facts[8] = number_be(data, p, 4)
        return 0
    if p >= end:
        return 1
    facts[0] = 2
    facts[8] = int(data[p]) + 1
    facts[6] = p + 1
    facts[7] = end - p - 1
    return _check_extents(data, p + 1, end, facts[8], form & 0x10 != 0)


@kernel
def _read_inline(data: Any, p: int, end: int, form: int, facts: Any) -> int:
    facts[0] = 1
    if form & 0x10:
        if p + 2 > end:
            return 1
        facts[4] = number_be(data, p, 2)
        facts[5] = 1
        p += 2
    if end - p != facts[4]:
        return 2
    facts[6] = p
    facts[7] = end - p
    return 0


@kernel
def extent_at(data: Any, p: int, end: int, compressed: bool) -> tuple[int, int, int]:
    """(first block, blocks or −1, where the next extent begins) of the extent at `p`."""
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
            return 1
    return 0 if p == end else 2


def decode_locator(raw: bytes) -> Locator:
    """What the bytes of a LOB column say.

    Raises:
        OlrPgError: 2122, they are no locator.
    """
    data: npt.NDArray[np.uint8] = np.frombuffer(raw, np.uint8)
    facts = np.zeros(FACTS, np.int64)
    status = read_locator(data, 0, len(raw), facts)
    if status:
        raise OlrPgError(2122, f"{locator_fault(status)}: {raw[:64].hex()}")
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


def locator_fault(status: int) -> str:
    """Why `read_locator` refused a locator."""
    return _REASONS[status]
