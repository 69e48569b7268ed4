"""Writes values as JSON text, one at a time, for kernels that write whole rows.

The functions here do not write values that have a rare form or invalid bytes. The caller then uses
`olr_pg.datatypes.json_values`, which handles every form and raises the errors. Both modules write
the same text; tests compare them.

Each `put_…` function writes to `out` from offset `at` on; `out` must have `room_of` the value. It
returns the offset after the text, or `LEFT`. It may also overwrite bytes after the text. That does
no harm, because the next value is written over them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from olr_pg.datatypes.number_kernels import (
    BAD,
    FINITE,
    MINUS_INFINITY,
    significant,
)
from olr_pg.datatypes.number_text import write_decimal
from olr_pg.datatypes.outcomes import byte_at
from olr_pg.datatypes.temporal import civil_date, date_days
from olr_pg.datatypes.text import ascii_run
from olr_pg.kernels.bytes import store
from olr_pg.kernels.compile import inlined, kernel, part
from olr_pg.rendering.json_forms import JsonForm
from olr_pg.rendering.json_strings import LEFT, put_hex, put_single_byte, put_utf8, put_utf16

if TYPE_CHECKING:
    U8 = npt.NDArray[np.uint8]
    U64 = npt.NDArray[np.uint64]


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
_DOUBLE = int(JsonForm.DOUBLE)

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
    """Return whether values of a form are written without the closing quote. The caller writes it,
    because a suffix may come first.
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
