"""Writes text as JSON strings, one value at a time, for kernels that write whole rows.

Each `put_…` function writes to `out` from offset `at` on; `out` must be large enough. It returns
the offset after the text, or `LEFT`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from olr_pg.applier.received.integers import read_u64
from olr_pg.datatypes.outcomes import byte_at
from olr_pg.datatypes.text import utf8_step
from olr_pg.kernels.bytes import store
from olr_pg.kernels.compile import inlined, part
from olr_pg.rendering.json_forms import ASCII_TABLE

if TYPE_CHECKING:
    import numpy.typing as npt

    U8 = npt.NDArray[np.uint8]
    U64 = npt.NDArray[np.uint64]

LEFT: Final = -1
"""The result if the kernel cannot write the value, so Python code must write it."""

_HEX_PAIRS: Final = np.array(
    [ord(f"{i:02x}"[0]) | ord(f"{i:02x}"[1]) << 8 for i in range(256)], "u2"
)
_ESCAPED: Final = ASCII_TABLE.text
_ESCAPED_SIZE: Final = ASCII_TABLE.size
_IS_PLAIN: Final = ASCII_TABLE.size == 1
_ONES: Final = np.uint64(0x0101010101010101)
_TOPS: Final = np.uint64(0x8080808080808080)
_BLANKS: Final = np.uint64(0x2020202020202020)
_QUOTES: Final = np.uint64(0x2222222222222222)
_BACKSLASHES: Final = np.uint64(0x5C5C5C5C5C5C5C5C)


@inlined
def _special(word: np.uint64) -> np.uint64:
    """Return 0 if all bytes of a word are ASCII characters that JSON does not escape. Otherwise, at
    least the top bit of the first other byte is set.
    """
    quote, backslash = word ^ _QUOTES, word ^ _BACKSLASHES
    return (
        word | (word - _BLANKS) | ((quote - _ONES) & ~quote) | ((backslash - _ONES) & ~backslash)
    ) & _TOPS


@inlined
def _put_ascii(byte: int, out: U8, at: int) -> int:
    store(out, at, _ESCAPED[np.uint64(byte)], False)
    return at + int(_ESCAPED_SIZE[np.uint64(byte)])


@inlined
def _word_at(data: U8, place: int, left: int) -> np.uint64:
    """Read the next 8 bytes as a word. If fewer than 8 are left, fill the word with blanks."""
    if place + 8 > data.size:
        word = np.uint64(0)
        for i in range(min(left, 8)):
            word |= np.uint64(data[np.uint64(place + i)]) << np.uint64(8 * i)
    else:
        word = read_u64(data, place, False)
    if left < 8:
        kept = (np.uint64(1) << np.uint64(8 * left)) - np.uint64(1)
        word = (word & kept) | (_BLANKS & ~kept)
    return word


@part
def put_utf8(data: U8, start: int, size: int, out: U8, at: int) -> int:
    """Write UTF-8 text as a JSON string; return `LEFT` if it has surrogates or is invalid."""
    out[at] = 34
    at += 1
    place, end = start, start + size
    while place < end:
        left = end - place
        word = _word_at(data, place, left)
        store(out, at, word, False)
        if _special(word) == np.uint64(0):
            step = min(left, 8)
            place += step
            at += step
            continue
        while _IS_PLAIN[np.uint64(byte_at(data, place) & 0x7F)] and byte_at(data, place) < 0x80:
            place += 1  # this byte was already written with its word, above
            at += 1
        while place < end and data[np.uint64(place)] >= 0x80:
            step = utf8_step(data, place, end)
            if step == 0:
                return LEFT
            for i in range(step):
                out[at + i] = data[place + i]
            place += step
            at += step
        if place < end:
            at = _put_ascii(byte_at(data, place), out, at)
            place += 1
    out[at] = 34
    return at + 1


@part
def put_single_byte(
    data: U8, start: int, size: int, text: U64, text_size: U8, first: int, out: U8, at: int
) -> int:
    """Write text of a single-byte character set, whose table begins at `first`, as a JSON
    string.
    """
    out[at] = 34
    at += 1
    for place in range(start, start + size):
        which = np.uint64(first + byte_at(data, place))
        step = int(text_size[which])
        if step == 0:
            return LEFT
        store(out, at, text[which], False)
        at += step
    out[at] = 34
    return at + 1


@inlined
def _put_code_point(code: int, out: U8, at: int) -> int:
    """Write a character that has two or more bytes in UTF-8."""
    if code < 0x800:
        out[at] = 0xC0 | code >> 6
    elif code < 0x10000:
        out[at] = 0xE0 | code >> 12
    else:
        out[at] = 0xF0 | code >> 18
        at += 1
        out[at] = 0x80 | code >> 12 & 0x3F
    if code >= 0x800:
        at += 1
        out[at] = 0x80 | code >> 6 & 0x3F
    out[at + 1] = 0x80 | code & 0x3F
    return at + 2


@part
def put_utf16(data: U8, start: int, size: int, out: U8, at: int) -> int:
    """Write UTF-16BE text as a JSON string; return `LEFT` if it has lone surrogates or is
    invalid.
    """
    if size & 1:
        return LEFT
    out[at] = 34
    at += 1
    place, end = start, start + size
    while place < end:
        code = byte_at(data, place) << 8 | byte_at(data, place + 1)
        place += 2
        if code < 0x80:
            at = _put_ascii(code, out, at)
            continue
        if 0xD800 <= code < 0xE000:
            if code >= 0xDC00 or place >= end:
                return LEFT
            low = byte_at(data, place) << 8 | byte_at(data, place + 1)
            if not 0xDC00 <= low < 0xE000:
                return LEFT
            place += 2
            code = 0x10000 + (code - 0xD800 << 10) + low - 0xDC00
        at = _put_code_point(code, out, at)
    out[at] = 34
    return at + 1


@part
def put_hex(data: U8, start: int, size: int, out: U8, at: int) -> int:
    """Write bytes as a JSON string of lower-case hex digits."""
    out[at] = 34
    at += 1
    for place in range(start, start + size):
        store(out, at, _HEX_PAIRS[np.uint64(byte_at(data, place))], False)
        at += 2
    out[at] = 34
    return at + 1
