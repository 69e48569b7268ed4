"""Writes values as JSON text, one at a time, for kernels that write whole rows.

The functions here do not write values that have a rare form or invalid bytes. For such values, the
caller uses `olr_pg.datatypes.json_values`, which handles every form and raises the errors. Both
modules write the same text; tests compare them.

Each `put_…` function writes to `out` from offset `at` on; `out` must have `room_of` the value. The
function returns the offset after the text, or `LEFT`. It may also overwrite bytes after the text.
The overwritten bytes do no harm, because the next value is written over them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from olr_pg.applier.received.integers import read_u64
from olr_pg.datatypes.number import (
    BAD,
    FINITE,
    MINUS_INFINITY,
    significant,
    write_decimal,
)
from olr_pg.datatypes.outcomes import byte_at
from olr_pg.datatypes.temporal import civil_date, date_days
from olr_pg.datatypes.text import ascii_run, utf8_step
from olr_pg.kernels.bytes import store
from olr_pg.kernels.compile import inlined, kernel, part
from olr_pg.rendering.json_forms import ASCII_TABLE, JsonForm

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


_NUMBER = int(JsonForm.NUMBER)
_DATE = int(JsonForm.DATE)
_TIMESTAMP = int(JsonForm.TIMESTAMP)
_TIMESTAMP_TZ = int(JsonForm.TIMESTAMP_TZ)
_UTF8 = int(JsonForm.UTF8)
_SINGLE_BYTE = int(JsonForm.SINGLE_BYTE)
_UTF16 = int(JsonForm.UTF16)
_ASCII = int(JsonForm.ASCII)
_HEX = int(JsonForm.HEX)
_BOOLEAN = int(JsonForm.BOOLEAN)
_FLOAT = int(JsonForm.FLOAT)

_PAIRS: Final = np.array([ord(a) | ord(b) << 8 for a in "0123456789" for b in "0123456789"], "u2")
_TENS: Final = np.array([10**i for i in range(20)], np.uint64)
_POWERS: Final = np.array([10.0**i for i in range(23)], np.float64)

_INFINITY: Final = np.uint64(int.from_bytes(b"Infinity", "little"))
_TRUE: Final = np.uint64(int.from_bytes(b"true", "little"))
_FALSE: Final = np.uint64(int.from_bytes(b"false", "little"))

LABEL_BYTES: Final = 48
NUMBER_BYTES: Final = 192
"""Maximum bytes of the JSON text of a value that is not written as a string of its characters or
hex digits.
"""


@inlined
def room_of(size: int) -> int:
    """Return the maximum number of bytes that the JSON text of a value of `size` bytes can have."""
    return 6 * size + NUMBER_BYTES


@inlined
def put_u64(value: np.uint64, out: U8, at: int) -> int:
    """Write an unsigned integer in decimal digits."""
    digits = 1
    while digits < 20 and value >= _TENS[digits]:
        digits += 1
    place = at + digits
    while value >= np.uint64(100):
        rest = value // np.uint64(100)
        place -= 2
        store(out, place, _PAIRS[value - rest * np.uint64(100)], False)
        value = rest
    if value >= np.uint64(10):
        store(out, place - 2, _PAIRS[value], False)
    else:
        out[place - 1] = np.uint8(value + np.uint64(48))
    return at + digits


@inlined
def _put_pair(value: int, out: U8, at: int) -> int:
    store(out, at, _PAIRS[np.uint64(value)], False)
    return at + 2


@inlined
def _put_infinity(negative: bool, out: U8, at: int) -> int:
    out[at] = 34
    at += 1
    if negative:
        out[at] = 45
        at += 1
    store(out, at, _INFINITY, False)
    out[at + 8] = 34
    return at + 9


@part
def put_number(data: U8, start: int, size: int, out: U8, at: int) -> int:
    """Write a NUMBER with all its digits; write infinities as strings."""
    kind, sign, first, count, exponent = significant(data, start, size)
    if kind == FINITE:
        return at + int(write_decimal(data, first, count, sign, exponent, out, at))
    if kind == BAD:
        return LEFT
    return _put_infinity(kind == MINUS_INFINITY, out, at)


@inlined
def _put_label(
    year: int, month: int, day: int, hour: int, minute: int, second: int, out: U8, at: int
) -> int:
    if year < 0:
        out[at] = 45
        at += 1
        year = -year
    at = _put_pair(year // 100, out, at)
    at = _put_pair(year % 100, out, at)
    out[at] = 45
    at = _put_pair(month, out, at + 1)
    out[at] = 45
    at = _put_pair(day, out, at + 1)
    out[at] = 84
    at = _put_pair(hour, out, at + 1)
    out[at] = 58
    at = _put_pair(minute, out, at + 1)
    out[at] = 58
    return _put_pair(second, out, at + 1)


@inlined
def _put_fraction(nanos: int, out: U8, at: int) -> int:
    """Write the fraction of a second without trailing zeros; write nothing if it is 0."""
    if nanos == 0:
        return at
    out[at] = 46
    rest, end = nanos, at + 10
    for place in range(at + 9, at, -1):
        out[place] = 48 + rest % 10
        rest //= 10
    while out[end - 1] == 48:
        end -= 1
    return end


@inlined
def _nanos(data: U8, at: int, size: int) -> int:
    if size == 7:
        return 0
    return (
        byte_at(data, at + 7) << 24
        | byte_at(data, at + 8) << 16
        | byte_at(data, at + 9) << 8
        | byte_at(data, at + 10)
    )


@part
def put_date(data: U8, start: int, size: int, out: U8, at: int) -> int:
    """Write a date of 7 or 11 bytes as ISO 8601, without quotes."""
    moved, _ = date_days(data, start)
    nanos = _nanos(data, start, size)
    if moved < 0 or nanos > 999_999_999:
        return LEFT
    year = (byte_at(data, start) - 100) * 100 + byte_at(data, start + 1) - 100
    if year > 9999:
        return LEFT
    at = _put_label(
        year if year != 0 else -1,
        byte_at(data, start + 2),
        byte_at(data, start + 3),
        byte_at(data, start + 4) - 1,
        byte_at(data, start + 5) - 1,
        byte_at(data, start + 6) - 1,
        out,
        at,
    )
    return _put_fraction(nanos, out, at)


@part
def put_zoned(data: U8, start: int, size: int, out: U8, at: int) -> int:
    """Write a TIMESTAMP WITH TIME ZONE of 9 or 13 bytes in its local time, or in UTC if its time
    zone is a region.
    """
    high, low = byte_at(data, start + size - 2), byte_at(data, start + size - 1)
    offset = (high - 20) * 60 + low - 60
    if high & 0x80 or offset == 0:
        at = put_date(data, start, size - 2, out, at)
        if at < 0:
            return LEFT
        if high & 0x80:
            out[at] = 90
            return at + 1
    else:
        at = _put_moved(data, start, size - 2, offset, out, at)
        if at < 0:
            return LEFT
    out[at] = 45 if offset < 0 else 43
    at = _put_pair(abs(offset) // 60, out, at + 1)
    out[at] = 58
    return _put_pair(abs(offset) % 60, out, at + 1)


@inlined
def _put_moved(data: U8, start: int, size: int, offset: int, out: U8, at: int) -> int:
    """Write a date moved by `offset` minutes, in the proleptic Gregorian calendar."""
    moved, days = date_days(data, start)
    nanos = _nanos(data, start, size)
    if moved < 0 or nanos > 999_999_999 or abs(offset) >= 960:
        return LEFT
    minutes = (byte_at(data, start + 4) - 1) * 60 + byte_at(data, start + 5) - 1 + offset
    days += minutes // 1440
    minutes %= 1440
    year, month, day = civil_date(days)
    if year > 9999 or year < -9998:
        return LEFT
    at = _put_label(
        year if year > 0 else year - 1,
        month,
        day,
        minutes // 60,
        minutes % 60,
        byte_at(data, start + 6) - 1,
        out,
        at,
    )
    return _put_fraction(nanos, out, at)


@inlined
def _ieee(data: U8, start: int, width: int) -> tuple[int, int, int]:
    """Read an IEEE number in the form in which Oracle stores it. Return (sign, mantissa, exponent
    of 2).

    The result is (0, 0, 0) for zeros, infinities, NaN and denormal numbers.
    """
    top = np.uint64(1) << np.uint64(8 * width - 1)
    bits = np.uint64(0)
    for i in range(width):
        bits = bits << np.uint64(8) | np.uint64(data[np.uint64(start + i)])
    bits = bits ^ top if bits & top else bits ^ (top | (top - np.uint64(1)))
    fraction = 52 if width == 8 else 23
    highest = 2047 if width == 8 else 255
    exponent = int(np.int64((bits & (top - np.uint64(1))) >> np.uint64(fraction)))
    if exponent == 0 or exponent == highest:
        return 0, 0, 0
    hidden = np.uint64(1) << np.uint64(fraction)
    mantissa = int(np.int64((bits & (hidden - np.uint64(1))) | hidden))
    return -1 if bits & top else 1, mantissa, exponent - (highest >> 1) - fraction


@part
def put_float(data: U8, start: int, size: int, width: int, out: U8, at: int) -> int:
    """Write a BINARY_FLOAT or BINARY_DOUBLE if a decimal number of few digits represents it;
    otherwise return `LEFT`.

    At most one decimal number of up to 15 digits (6 for a float) reads back as the same binary
    number. The search begins with the fewest decimals, so the first match is the shortest text.
    """
    if size != width:
        return LEFT
    sign, mantissa, exponent = _ieee(data, start, width)
    if sign == 0 or exponent < -100 or exponent > 40:
        return LEFT
    value = np.float64(mantissa) * 2.0**exponent
    limit = 1e15 if width == 8 else 1e6
    if value < 0.001:
        return LEFT
    for decimals in range(16 if width == 8 else 8):
        scaled = value * _POWERS[decimals]
        if scaled >= limit:
            return LEFT
        number = np.int64(scaled + 0.5)
        back = np.float64(number) / _POWERS[decimals]
        if back == value or (width == 4 and np.float64(np.float32(back)) == value):
            return _put_decimal(np.uint64(number), decimals, sign, out, at)
    return LEFT


@inlined
def _put_decimal(number: np.uint64, decimals: int, sign: int, out: U8, at: int) -> int:
    """Write `number` with a decimal point before its last `decimals` digits, and with at least one
    digit after the point.
    """
    if sign < 0:
        out[at] = 45
        at += 1
    whole = number // _TENS[decimals]
    rest = number - whole * _TENS[decimals]
    at = put_u64(whole, out, at)
    out[at] = 46
    end = at + max(decimals, 1)
    for place in range(end, at, -1):
        out[place] = 48 + int(np.int64(rest % np.uint64(10)))
        rest //= np.uint64(10)
    return end + 1


@inlined
def _put_boolean(data: U8, start: int, size: int, out: U8, at: int) -> int:
    if size != 1 or data[start] > 1:
        return LEFT
    if data[start]:
        store(out, at, _TRUE, False)
        return at + 4
    store(out, at, _FALSE, False)
    return at + 5


@inlined
def _put_time(data: U8, start: int, size: int, form: int, out: U8, at: int) -> int:
    out[at] = 34
    if form == _TIMESTAMP_TZ:
        if size != 9 and size != 13:
            return LEFT
        return int(put_zoned(data, start, size, out, at + 1))
    if size != 7 and (form == _DATE or size != 11):
        return LEFT
    return int(put_date(data, start, size, out, at + 1))


@inlined
def is_time(form: int) -> bool:
    """Return whether values of a form are written without the closing quote. The caller writes the
    closing quote, because a suffix may come first.
    """
    return _DATE <= form <= _TIMESTAMP_TZ


@inlined
def put_value(
    data: U8,
    start: int,
    size: int,
    form: int,
    text: U64,
    text_size: U8,
    first: int,
    out: U8,
    at: int,
) -> int:
    """Write a value that is not NULL.

    Args:
        data, start, size: the bytes of the value.
        form: the `JsonForm` of the value.
        text, text_size: the tables of single-byte character sets, one after the other.
        first: the index at which the table of the column's character set begins.
        out, at: where to write. Times are written without their closing quote (`is_time`).
    """
    if form == _NUMBER:
        return int(put_number(data, start, size, out, at))
    if form == _UTF8:
        return int(put_utf8(data, start, size, out, at))
    if is_time(form):
        return _put_time(data, start, size, form, out, at)
    if form == _SINGLE_BYTE:
        return int(put_single_byte(data, start, size, text, text_size, first, out, at))
    if form == _UTF16:
        return int(put_utf16(data, start, size, out, at))
    if form == _HEX:
        return int(put_hex(data, start, size, out, at))
    if form == _ASCII:
        if ascii_run(data, start, start + size) != start + size:
            return LEFT
        return int(put_utf8(data, start, size, out, at))
    if form >= _FLOAT:
        return int(put_float(data, start, size, 4 if form == _FLOAT else 8, out, at))
    if form == _BOOLEAN:
        return _put_boolean(data, start, size, out, at)
    return LEFT


@kernel
def put_values_kernel(
    data: U8,
    offset: npt.NDArray[np.int64],
    length: npt.NDArray[np.int64],
    form: int,
    text: U64,
    text_size: U8,
    out: U8,
    end: npt.NDArray[np.int64],
) -> int:
    """Write a column of values one after the other. `end` gets the end of each text in `out`, or −1
    for a value that Python code must write.
    """
    at = 0
    for row in range(len(length)):
        done = put_value(data, offset[row], length[row], form, text, text_size, 0, out, at)
        if done >= 0 and is_time(form):
            out[done] = 34
            done += 1
        end[row] = done
        at = max(at, done)
    return at
