"""VARCHAR2, CHAR, NVARCHAR2, NCHAR and LONG values: conversion between bytes of a character set,
Python text and UTF-8.

Most text is already valid UTF-8 without U+0000. A column whose text needs no conversion is not
copied. Kernels convert text in single-byte sets and in AL16UTF16. All other rows (undecodable
bytes, U+0000, multi-byte sets, CESU-8) are converted in Python, once per distinct value, by the
policies of values-and-lobs §2.4 and type-mapping §4.6.
"""

from __future__ import annotations

import codecs
import re
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from olr_pg.datatypes.columns import ValueColumn, nulls, oracle_nulls, replace_rows
from olr_pg.datatypes.outcomes import byte_at, printed
from olr_pg.datatypes.policies import DEFAULT_POLICIES, Counters, Policies
from olr_pg.errors import Code, OlrPgError
from olr_pg.kernels.compile import inlined_kernel, kernel

if TYPE_CHECKING:
    from olr_pg.datatypes.charsets import Charset

    Bytes = npt.NDArray[np.uint8]
    Longs = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]

_REPLACEMENT: Final = "\ufffd"
_NUL: Final = "\x00"
_ONES: Final = np.uint64(0x0101010101010101)
_TOPS: Final = np.uint64(0x8080808080808080)
_CESU_PAIR: Final = re.compile(rb"\xed[\xa0-\xaf][\x80-\xbf]\xed[\xb0-\xbf][\x80-\xbf]")
_TWO_BYTE: Final = re.compile(rb"[\x81-\xfe].|.", re.DOTALL)
_CHARACTERS: Final = {
    "euc_jp": re.compile(rb"\x8f..|[\x80-\xff].|.", re.DOTALL),
    "cp932": re.compile(rb"[\x81-\x9f\xe0-\xfc].|.", re.DOTALL),
}


# --- one value -----------------------------------------------------------------------------------


def decode_text_by_policy(
    raw: bytes, charset: Charset, policies: Policies = DEFAULT_POLICIES
) -> tuple[str, bool]:
    """Decode bytes. Returns (text, whether bytes were undecodable). U+0000 is kept.

    Raises:
        OlrPgError: 2051, bytes are undecodable, and the policy makes this an error.
    """
    text, bad = _decode(raw, charset, "strict")
    if not bad:
        return text, False
    if policies.undecodable == "error":
        raise OlrPgError(Code.TEXT_UNDECODABLE, f"{charset.name} {printed(raw)}")
    errors = "replace" if policies.undecodable == "replace" else "backslashreplace"
    return _decode(raw, charset, errors)[0], True


def encode_text(text: str, charset: Charset) -> bytes:
    """Encode `text` as the bytes of a character set.

    Raises:
        OlrPgError: 2058, the set does not contain a character.
    """
    try:
        raw = _encode(text, charset)
    except UnicodeEncodeError as error:
        raise OlrPgError(
            Code.VALUE_NOT_EXPRESSIBLE_IN_ORACLE,
            f"{error.object[error.start]!r} is not in {charset.name}",
        ) from error
    if charset.structure == "multi-byte" and _decode(raw, charset, "strict") != (text, False):
        raise OlrPgError(
            Code.VALUE_NOT_EXPRESSIBLE_IN_ORACLE,
            f"not every character is in {charset.name}: {text!r}",
        )
    return raw


def _encode(text: str, charset: Charset) -> bytes:
    if charset.structure == "single-byte":
        return codecs.charmap_encode(text, "strict", _encoding_table(charset.table))[0]
    if charset.structure == "cesu-8":
        units = text.encode("utf-16-be")
        pairs = (
            units[i : i + 2].decode("utf-16-be", "surrogatepass") for i in range(0, len(units), 2)
        )
        return "".join(pairs).encode("utf-8", "surrogatepass")
    special = {char: raw for raw, char in charset.overrides}
    if special.keys() & set(text):
        return b"".join(special.get(char) or char.encode(charset.codec) for char in text)
    return text.encode(charset.codec)


@cache
def _encoding_table(table: str) -> dict[int, int]:
    return {ord(char): byte for byte, char in reversed(list(enumerate(table))) if char != "\ufffe"}


def _decode(raw: bytes, charset: Charset, errors: str) -> tuple[str, bool]:
    """Decode with the error handler `errors`. Returns (text, False), or ("", True) if `errors` is
    ``strict`` and bytes are undecodable.
    """
    try:
        if charset.structure == "single-byte":
            return codecs.charmap_decode(raw, errors, charset.table)[0], False
        if charset.codec == "utf-8":
            return _decode_utf8(raw, errors), False
        if charset.overrides and _overridden(charset).search(raw):
            return _decode_overridden(raw, charset, errors), False
        return raw.decode(charset.codec, errors), False
    except UnicodeDecodeError:
        return "", True


@cache
def _overridden(charset: Charset) -> re.Pattern[bytes]:
    """Return a pattern that matches what Oracle decodes in another way than the codec."""
    return re.compile(b"|".join(re.escape(key) for key, _ in charset.overrides), re.DOTALL)


def _decode_utf8(raw: bytes, errors: str) -> str:
    """Decode UTF-8 that may contain CESU-8 surrogate pairs. Text in UTF8 always has such pairs for
    supplementary characters, text in AL32UTF8 sometimes (values-and-lobs §2.2).
    """
    if b"\xed" not in raw:
        return raw.decode("utf-8", errors)
    return _CESU_PAIR.sub(_four_bytes, raw).decode("utf-8", errors)


def _four_bytes(pair: re.Match[bytes]) -> bytes:
    units = pair[0].decode("utf-8", "surrogatepass").encode("utf-16-be", "surrogatepass")
    return units.decode("utf-16-be").encode("utf-8")


def _decode_overridden(raw: bytes, charset: Charset, errors: str) -> str:
    special = dict(charset.overrides)
    parts: list[str] = []
    plain_from = 0
    for match in _CHARACTERS.get(charset.codec, _TWO_BYTE).finditer(raw):
        char = special.get(match[0])
        if char is not None:
            parts += raw[plain_from : match.start()].decode(charset.codec, errors), char
            plain_from = match.end()
    parts.append(raw[plain_from:].decode(charset.codec, errors))
    return "".join(parts)


# --- columns -------------------------------------------------------------------------------------


class _Cleaner:
    """Converts the values that no kernel converts, and counts the changes by policies."""

    def __init__(self, charset: Charset, policies: Policies) -> None:
        self._charset = charset
        self._policies = policies
        self.undecodable: set[bytes] = set()
        self.with_nul: set[bytes] = set()

    def utf8(self, raw: bytes) -> bytes:
        """Return the text of a value as UTF-8 that PostgreSQL accepts."""
        text, bad = decode_text_by_policy(raw, self._charset, self._policies)
        if bad:
            self.undecodable.add(raw)
        if _NUL in text:
            self.with_nul.add(raw)
            if self._policies.nul == "error":
                raise OlrPgError(Code.TEXT_HAS_NUL, f"{self._charset.name} {printed(raw)}")
            text = text.replace(_NUL, "" if self._policies.nul == "remove" else _REPLACEMENT)
        return text.encode("utf-8")


def text_to_utf8(
    values: ValueColumn, charset: Charset, policies: Policies = DEFAULT_POLICIES
) -> tuple[ValueColumn, Counters]:
    """Convert text of any character set to UTF-8 that PostgreSQL accepts: valid and without U+0000.

    The result may share the buffer of `values`.
    """
    values = oracle_nulls(values)
    clean, rows = _by_kernel(values, charset)
    if not len(rows):
        return clean, Counters()
    cleaner = _Cleaner(charset, policies)
    result = replace_rows(clean, rows, values, cleaner.utf8)
    return result, Counters(
        undecodable=_occurrences(values, rows, cleaner.undecodable),
        nul=_occurrences(values, rows, cleaner.with_nul),
    )


def text_with_nul(values: ValueColumn, charset: Charset) -> ValueColumn:
    """Convert text of any character set to UTF-8 and keep U+0000.

    The result may share the buffer of `values`.
    """
    clean, rows = _by_kernel(values, charset)
    if not len(rows):
        return clean
    return replace_rows(
        clean, rows, values, lambda raw: decode_text_by_policy(raw, charset)[0].encode()
    )


def _by_kernel(values: ValueColumn, charset: Charset) -> tuple[ValueColumn, Longs]:
    """Convert values with kernels. Returns the column, and the indexes of the rows that were not
    converted.
    """
    dirty = np.zeros(len(values.length), np.bool_)
    if charset.structure in ("utf-8", "cesu-8"):
        clean = values
        utf8_kernel(*values, dirty)
    elif charset.structure == "single-byte":
        clean = _from_single_byte(values, charset, dirty)
    elif charset.structure == "utf-16-be":
        clean = _from_utf16(values, dirty)
    else:
        clean = values
        ascii_kernel(*values, charset.ascii_superset, dirty)
    return clean, np.flatnonzero(dirty)


def _occurrences(values: ValueColumn, rows: Longs, changed: set[bytes]) -> int:
    return sum(values.value(row) in changed for row in rows.tolist()) if changed else 0


def strip_blanks(values: ValueColumn) -> ValueColumn:
    """Remove the trailing blanks of UTF-8 values, for CHAR columns that become text or varchar."""
    length = values.length.copy()
    strip_kernel(values.data, values.offset, length)
    return values._replace(length=length)


def _from_single_byte(values: ValueColumn, charset: Charset, dirty: Flags) -> ValueColumn:
    if charset.ascii_superset:
        ascii_kernel(*values, True, dirty)
        if not dirty.any():
            return values
        dirty[:] = False
    size, encoded = _utf8_table(charset.table)
    length = np.empty_like(values.length)
    total = single_byte_size_kernel(*values, size, length, dirty)
    out, offset = np.empty(total, np.uint8), np.empty_like(values.offset)
    single_byte_kernel(*values, size, encoded, out, offset, length)
    return ValueColumn(out, offset, length)


@cache
def _utf8_table(table: str) -> tuple[Bytes, Bytes]:
    """Return for each of the 256 bytes (size of its character in UTF-8, the UTF-8 bytes). The size
    is 0 for U+0000 and for a byte without a character.
    """
    size, encoded = np.zeros(256, np.uint8), np.zeros((256, 4), np.uint8)
    for byte, char in enumerate(table):
        if char not in ("\ufffe", _NUL):
            raw = char.encode("utf-8")
            size[byte] = len(raw)
            encoded[byte, : len(raw)] = list(raw)
    return size, encoded


def _from_utf16(values: ValueColumn, dirty: Flags) -> ValueColumn:
    total = int(values.length[~nulls(values)].sum())
    out = np.empty(total // 2 * 3, np.uint8)
    offset, length = np.empty_like(values.offset), np.empty_like(values.length)
    utf16_kernel(*values, out, offset, length, dirty)
    return ValueColumn(out, offset, length)


# --- kernels -------------------------------------------------------------------------------------


@inlined_kernel
def ascii_run(data: Bytes, start: int, end: int) -> int:
    """Return the position of the first byte from `start` on that is not in 0x01 … 0x7F, or `end`.
    Eight bytes are tested at a time.
    """
    at = np.uint64(start)
    stop = np.uint64(end)
    eight = np.uint64(8)
    while at + eight <= stop:
        word = np.uint64(0)
        for i in range(8):
            word |= np.uint64(data[at + np.uint64(i)]) << np.uint64(8 * i)
        # A byte of 0 causes a borrow, which sets its top bit; a byte above 0x7F has its top bit set
        # anyway.
        if (word | (word - _ONES)) & _TOPS:
            break
        at += eight
    while at < stop and np.uint8(data[at] - np.uint8(1)) < 0x7F:
        at += np.uint64(1)
    return int(np.int64(at))


@inlined_kernel
def utf8_step(data: Bytes, at: int, end: int) -> int:
    """Return the size of the UTF-8 character at `at`, or 0 if it is malformed or U+0000."""
    head = data[at]
    if head < 0x80:
        return 1 if head else 0
    if head < 0xC2 or head > 0xF4:
        return 0
    size = 2 if head < 0xE0 else 3 if head < 0xF0 else 4
    if at + size > end:
        return 0
    second = data[at + 1]
    low = 0xA0 if head == 0xE0 else 0x90 if head == 0xF0 else 0x80
    high = 0x9F if head == 0xED else 0x8F if head == 0xF4 else 0xBF
    if second < low or second > high:
        return 0
    for i in range(at + 2, at + size):
        if data[i] & 0xC0 != 0x80:
            return 0
    return size


@kernel
def utf8_kernel(data: Bytes, offset: Longs, length: Longs, dirty: Flags) -> None:
    """Mark in `dirty` the values that PostgreSQL does not accept as UTF-8, because they are
    malformed or contain surrogates or U+0000.
    """
    for row in range(len(length)):
        if length[row] <= 0:
            continue  # skip NULL: its length −1 is an invalid end for `ascii_run`
        at = offset[row]
        end = at + length[row]
        while True:
            at = ascii_run(data, at, end)
            if at >= end:
                break
            step = utf8_step(data, at, end)
            if step == 0:
                dirty[row] = True
                break
            at += step


@kernel
def ascii_kernel(data: Bytes, offset: Longs, length: Longs, usable: bool, dirty: Flags) -> None:
    """Mark in `dirty` the values that are not ASCII or contain U+0000; if `usable` is False, mark
    all values.
    """
    for row in range(len(length)):
        start = offset[row]
        end = start + length[row]
        if length[row] > 0 and not (usable and ascii_run(data, start, end) == end):
            dirty[row] = True


@kernel
def strip_kernel(data: Bytes, offset: Longs, length: Longs) -> None:
    """Remove trailing blanks by reducing `length` in place. A value may become empty."""
    for row in range(len(length)):
        end = offset[row] + length[row]
        while length[row] > 0 and data[end - 1] == 0x20:
            end -= 1
            length[row] -= 1


@kernel
def single_byte_size_kernel(
    data: Bytes, offset: Longs, length: Longs, size: Bytes, out_length: Longs, dirty: Flags
) -> int:
    """Compute the values' sizes in UTF-8, and return their sum. A value that contains a byte of
    `size` 0 is marked in `dirty`, and gets length 0.
    """
    total = 0
    for row in range(len(length)):
        if length[row] < 0:
            out_length[row] = -1
            continue
        start = offset[row]
        count = 0
        for i in range(start, start + length[row]):
            step = int(np.int64(size[data[i]]))
            if step == 0:
                dirty[row] = True
            count += step
        out_length[row] = 0 if dirty[row] else count
        total += out_length[row]
    return total


@kernel
def single_byte_kernel(
    data: Bytes,
    offset: Longs,
    length: Longs,
    size: Bytes,
    encoded: Bytes,
    out: Bytes,
    out_offset: Longs,
    out_length: Longs,
) -> None:
    """Write the values with a positive `out_length` in UTF-8."""
    at = 0
    for row in range(len(length)):
        out_offset[row] = at
        if out_length[row] <= 0:
            continue
        start = offset[row]
        for i in range(start, start + length[row]):
            byte = data[i]
            out[at] = encoded[byte, 0]
            count = int(np.int64(size[byte]))
            for j in range(1, count):
                out[at + j] = encoded[byte, j]
            at += count


@kernel
def utf16_kernel(
    data: Bytes,
    offset: Longs,
    length: Longs,
    out: Bytes,
    out_offset: Longs,
    out_length: Longs,
    dirty: Flags,
) -> int:
    """Convert UTF-16BE to UTF-8. A value that has a lone surrogate, an odd number of bytes, or
    U+0000 is marked in `dirty` and gets length 0.
    """
    at = 0
    for row in range(len(length)):
        out_offset[row] = at
        out_length[row] = -1
        if length[row] < 0:
            continue
        begin = at
        i = offset[row]
        end = i + length[row]
        bad = (length[row] & 1) == 1
        while i < end and not bad:
            code = byte_at(data, i) << 8 | byte_at(data, i + 1)
            i += 2
            if 0xD800 <= code < 0xE000:
                low = 0
                if code < 0xDC00 and i < end:
                    low = byte_at(data, i) << 8 | byte_at(data, i + 1)
                if low < 0xDC00 or low > 0xDFFF:
                    bad = True
                    break
                code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
                i += 2
            if code == 0:
                bad = True
            elif code < 0x80:
                out[at] = code
                at += 1
            elif code < 0x800:
                out[at] = 0xC0 | code >> 6
                out[at + 1] = 0x80 | code & 0x3F
                at += 2
            elif code < 0x10000:
                out[at] = 0xE0 | code >> 12
                out[at + 1] = 0x80 | code >> 6 & 0x3F
                out[at + 2] = 0x80 | code & 0x3F
                at += 3
            else:
                out[at] = 0xF0 | code >> 18
                out[at + 1] = 0x80 | code >> 12 & 0x3F
                out[at + 2] = 0x80 | code >> 6 & 0x3F
                out[at + 3] = 0x80 | code & 0x3F
                at += 4
        if bad:
            at = begin
            dirty[row] = True
        out_length[row] = at - begin
    return at
