"""Converts numbers and dates of Arrow arrays to Oracle's internal form (values-and-lobs §3, §5–§7).

A kernel stops at the first row that it cannot convert and returns ``(row, outcome)``, or ``(-1,
0)`` if it has converted all rows. The outcomes are defined in `datatypes.outcomes`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from olr_pg.datatypes.outcomes import Outcome, byte_at
from olr_pg.datatypes.temporal import DAYS_1970_TO_2000, civil_date, civil_days
from olr_pg.kernels.compile import inlined, kernel

if TYPE_CHECKING:
    import numpy.typing as npt

    U8 = npt.NDArray[np.uint8]
    I64 = npt.NDArray[np.int64]

NUMBER_BYTES: Final = 22
"""Maximum bytes of a NUMBER: exponent, 20 base-100 digits, terminator."""

DIGITS_MAX: Final = 40
"""Maximum decimal digits of a NUMBER, which has 20 digits of base 100."""

NO_ZONE: Final = 0
TO_UTC: Final = 1

_PAIRS_MAX: Final = 20
_EXPONENT_MIN: Final = -65
_EXPONENT_MAX: Final = 62
_POWER_MAX: Final = 1000
_MALFORMED: Final = int(Outcome.MALFORMED)
_OVERFLOW: Final = int(Outcome.OVERFLOW)
_FRACTION: Final = int(Outcome.FRACTION)
_PRECISION: Final = int(Outcome.PRECISION)
_MINUS: Final = ord("-")
_PLUS: Final = ord("+")
_POINT: Final = ord(".")
_ZERO: Final = ord("0")
_NINE: Final = ord("9")
_UPPER_E: Final = ord("E")
_INFINITY: Final = np.frombuffer(b"INFINITY", np.uint8)
_SHORT_INFINITY: Final = len("INF")
_TILDE: Final = ord("~")
_COLON: Final = ord(":")
_UPPER_T: Final = ord("T")
_UPPER_Z: Final = ord("Z")
_UPPER_A: Final = ord("A")
_BLANK: Final = ord(" ")
_REGION: Final = 10_000
_UTC_HIGH: Final = 0x80 | 28 >> 6
_UTC_LOW: Final = (28 & 0x3F) << 2
"""The two bytes represent the region Etc/UTC. PostgreSQL stores no region, so it is not visible in
the result (values-and-lobs §7.2, appendix A).
"""
_YEAR_MIN: Final = -4712
_YEAR_MAX: Final = 9999
_YEAR_TEXT_MAX: Final = 15_499
"""Maximum year whose century fits into a byte."""
_DAY: Final = 86_400


@kernel
def number_kernel(
    data: U8, offset: I64, length: I64, digits: U8, out: U8, out_length: I64
) -> tuple[int, int]:
    """Convert decimal text to NUMBER; value i begins at ``22 · i`` of `out`.

    Args:
        digits: a work buffer of `DIGITS_MAX` + 2 bytes.
        out: 22 bytes per value.
        out_length: the length of each value; −1 for NULL.
    """
    for row in range(len(length)):
        out_length[row] = -1
        if length[row] <= 0:
            continue
        at, end = offset[row], offset[row] + length[row]
        negative = data[at] == _MINUS
        if negative or data[at] == _PLUS:
            at += 1
        base = row * 22
        if _is_infinite(data, at, end):
            out[base] = 0 if negative else 0xFF
            out[base + 1] = 0x65
            out_length[row] = 1 if negative else 2
            continue
        count, scale, seen, point = 0, 0, False, False
        while at < end:
            char = byte_at(data, at)
            if _ZERO <= char <= _NINE:
                seen = True
                scale += point
                if count == DIGITS_MAX and char != _ZERO:
                    return row, _PRECISION
                if count == DIGITS_MAX:
                    scale -= 1
                elif count or char != _ZERO:
                    digits[count] = char - _ZERO
                    count += 1
            elif char == _POINT and not point:
                point = True
            else:
                break
            at += 1
        power, at = _exponent(data, at, end)
        if not seen or at != end:
            return row, _MALFORMED
        outcome = _put_number(digits, count, power - scale, negative, out, base, out_length, row)
        if outcome:
            return row, outcome
    return -1, 0


@kernel
def integer_number_kernel(items: I64, null: U8, scale: int, out: U8, out_length: I64) -> None:
    """Convert integers · 10^−scale to NUMBER; value i begins at ``22 · i`` of `out`.

    Args:
        null: 1 if the value is NULL.
        scale: the scale of a number with at most 38 digits.
        out: 22 bytes per value.
        out_length: the length of each value; −1 for NULL.
    """
    zero, ten, hundred = np.uint64(0), np.uint64(10), np.uint64(100)
    shift = scale & 1
    for row in range(len(items)):
        out_length[row] = -1
        if null[row]:
            continue
        base, negative = row * 22, items[row] < 0
        rest = zero - np.uint64(items[row]) if negative else np.uint64(items[row])
        if rest == zero:
            out[base] = 0x80
            out_length[row] = 1
            continue
        # Write the base-100 digits backwards from the end of the buffer, beginning with the lowest.
        # Trailing zero digits are not stored.
        pair = (rest % ten) * ten if shift else rest % hundred
        rest = rest // ten if shift else rest // hundred
        exponent, end = -((scale + shift) >> 1), base + 22
        at = end
        while True:
            if pair or at < end:
                at -= 1
                out[at] = np.uint64(101) - pair if negative else pair + np.uint64(1)
            else:
                exponent += 1
            if rest == zero:
                break
            pair, rest = rest % hundred, rest // hundred
        pairs = end - at
        exponent += pairs - 1
        out[base] = 62 - exponent if negative else 193 + exponent
        for i in range(pairs):
            out[base + 1 + i] = out[at + i]
        out_length[row] = pairs + 1
        if negative:  # fewer than 20 base-100 digits, so a terminator follows
            out[base + 1 + pairs] = 102
            out_length[row] += 1


@inlined
def _is_infinite(data: U8, at: int, end: int) -> bool:
    """Return whether the whole text is ``Infinity`` or ``Inf``, in upper or lower case, or ``~``,
    which TO_CHAR writes for infinity.
    """
    size = end - at
    if size == 1:
        return bool(data[at] == _TILDE)
    if size not in (_SHORT_INFINITY, _INFINITY.size):
        return False
    for i in range(size):  # noqa: SIM110 - compiled as a loop
        if (data[at + i] & 0xDF) != _INFINITY[i]:
            return False
    return True


@inlined
def _exponent(data: U8, at: int, end: int) -> tuple[int, int]:
    """Read the power of ten after ``E``; return it and the position after it."""
    if at + 1 >= end or (data[at] & 0xDF) != _UPPER_E:
        return 0, at
    at += 1
    down = data[at] == _MINUS
    if down or data[at] == _PLUS:
        at += 1
    power, first = 0, at
    while at < end and _ZERO <= data[at] <= _NINE and power < _POWER_MAX:
        power = power * 10 + byte_at(data, at) - _ZERO
        at += 1
    # -1 if no digit follows: the number is malformed.
    return -power if down else power, at if at > first else -1


@inlined
def _put_number(
    digits: U8, count: int, power: int, negative: bool, out: U8, base: int, size: I64, row: int
) -> int:
    """Write the NUMBER ± `digits` · 10^`power`, where `digits` is an integer of `count` digits.
    Return the outcome.
    """
    while count and digits[count - 1] == 0:
        count -= 1
        power += 1
    if count == 0:
        out[base] = 0x80
        size[row] = 1
        return 0
    if power & 1:
        digits[count] = 0
        count += 1
        power -= 1
    odd = count & 1
    pairs = (count + odd) >> 1
    exponent = (power >> 1) + pairs - 1
    if exponent > _EXPONENT_MAX:
        return _OVERFLOW
    if pairs > _PAIRS_MAX or exponent < _EXPONENT_MIN:
        return _PRECISION
    out[base] = 62 - exponent if negative else 193 + exponent
    at = -odd
    for i in range(pairs):
        high = byte_at(digits, at) if at >= 0 else 0
        digit = high * 10 + byte_at(digits, at + 1)
        out[base + 1 + i] = 101 - digit if negative else digit + 1
        at += 2
    size[row] = pairs + 1
    if negative and pairs < _PAIRS_MAX:
        out[base + 1 + pairs] = 102
        size[row] += 1
    return 0


@inlined
def _put_label(
    year: int, month: int, day: int, second: int, nanosecond: int, width: int, out: U8, at: int
) -> None:
    """Write a date and a second of the day in 7, 11 or 13 bytes."""
    sign = -1 if year < 0 else 1
    out[at] = sign * (abs(year) // 100) + 100
    out[at + 1] = sign * (abs(year) % 100) + 100
    out[at + 2] = month
    out[at + 3] = day
    out[at + 4] = second // 3600 + 1
    out[at + 5] = second // 60 % 60 + 1
    out[at + 6] = second % 60 + 1
    if width > 7:
        out[at + 7] = nanosecond >> 24
        out[at + 8] = nanosecond >> 16 & 0xFF
        out[at + 9] = nanosecond >> 8 & 0xFF
        out[at + 10] = nanosecond & 0xFF
    if width > 11:
        out[at + 11] = 20
        out[at + 12] = 60


@inlined
def _put_time(days: int, second: int, nanosecond: int, width: int, out: U8, at: int) -> bool:
    """Write a date, given in days since 1970 (proleptic Gregorian), and a second of the day; return
    False if the date is out of range.
    """
    year, month, day = civil_date(days - DAYS_1970_TO_2000)
    if year <= 0:
        year -= 1
    # As in `temporal.date_days`, the days before the first and after the last year are in range.
    if year < _YEAR_MIN and (year < _YEAR_MIN - 1 or month != 12 or day != 31):
        return False
    if year > _YEAR_MAX and (year > _YEAR_MAX + 1 or month != 1 or day != 1):
        return False
    _put_label(year, month, day, second, nanosecond, width, out, at)
    return True


@kernel
def ticks_kernel(ticks: I64, null: U8, per_second: int, width: int, out: U8) -> tuple[int, int]:
    """Convert ticks since 1970 to DATE, to TIMESTAMP, or to TIMESTAMP WITH TIME ZONE in UTC.

    Args:
        null: 1 if the value is NULL.
        per_second: number of ticks per second, a power of ten up to 10^9.
        width: 7, 11 or 13 bytes per value.
    """
    nanoseconds = 1_000_000_000 // per_second
    for row in range(len(ticks)):
        if null[row]:
            continue
        second = ticks[row] // per_second
        nanosecond = (ticks[row] - second * per_second) * nanoseconds
        if nanosecond and width == 7:
            return row, _FRACTION
        days = second // _DAY
        if not _put_time(days, second - days * _DAY, nanosecond, width, out, row * width):
            return row, _MALFORMED
    return -1, 0


@inlined
def _digits(data: U8, at: int, end: int, count: int) -> int:
    """Return the number that the `count` digits at `at` form; −1 if there are fewer digits."""
    if at + count > end:
        return -1
    value = 0
    for i in range(at, at + count):
        char = byte_at(data, i)
        if char < _ZERO or char > _NINE:
            return -1
        value = value * 10 + char - _ZERO
    return value


@inlined
def _marked(data: U8, at: int) -> bool:
    """Return whether the separators between the digits of a date and time are right."""
    date = data[at + 4] == _MINUS and data[at + 7] == _MINUS
    clock = data[at + 13] == _COLON and data[at + 16] == _COLON
    blank = data[at + 10] == _BLANK or data[at + 10] == _UPPER_T
    return bool(date) and bool(clock) and bool(blank)


@inlined
def _fraction(data: U8, at: int, end: int) -> tuple[int, int]:
    """Return the nanoseconds of the fraction ``.fff`` and the position after it. The nanoseconds
    are −1 if the fraction has more than nine digits.
    """
    if at >= end or data[at] != _POINT:
        return 0, at
    at += 1
    nanosecond, unit = 0, 1_000_000_000
    while at < end and _ZERO <= data[at] <= _NINE:
        unit //= 10
        if unit == 0:
            return -1, at
        nanosecond += (byte_at(data, at) - _ZERO) * unit
        at += 1
    return nanosecond, at


@inlined
def _zone(data: U8, at: int, end: int) -> tuple[int, int, int]:
    """Read ``Z``, ``±HH:MM``, or ``Z`` followed by a zone. After ``Z``, the date and time are in
    UTC, and the zone is the one that the value is stored with.

    Returns:
        (shift, zone, place). `shift`: minutes by which the date and time are ahead of UTC. `zone`:
        offset in minutes; `_REGION` for ``Z`` alone or with a region's name. `place`: the position
        after the zone; `at` if the text has no zone, −1 if the zone is malformed.
    """
    if at >= end:
        return 0, 0, at
    in_utc = data[at] == _UPPER_Z
    if in_utc:
        at += 1
        if at == end or _UPPER_A <= (data[at] & 0xDF) <= _UPPER_Z:
            return 0, _REGION, end
    if data[at] != _PLUS and data[at] != _MINUS:
        return 0, 0, -1
    hours, minutes = _digits(data, at + 1, end, 2), _digits(data, at + 4, end, 2)
    if min(hours, minutes) < 0 or data[at + 3] != _COLON or hours > 15 or minutes > 59:
        return 0, 0, -1
    offset = hours * 60 + minutes
    offset = -offset if data[at] == _MINUS else offset
    return 0 if in_utc else offset, offset, at + 6


@kernel
def time_text_kernel(
    data: U8, offset: I64, length: I64, zone: int, width: int, out: U8
) -> tuple[int, int]:
    """Convert ``[-]YYYY-MM-DD[T ]HH:MM:SS[.fffffffff][zone]`` to the forms of `ticks_kernel`.

    A date that does not exist, such as 0000-00-00, keeps its fields, like the bytes that Oracle
    stores for it.

    Args:
        zone: with `NO_ZONE` a text with a zone is refused. With `TO_UTC` a zone is required, and
            the value is converted to UTC.
        width: 7, 11 or 13 bytes per value; only 13 bytes contain the zone.
    """
    for row in range(len(length)):
        if length[row] <= 0:
            continue
        at, end = offset[row], offset[row] + length[row]
        before = data[at] == _MINUS
        at += before
        is_wide = at + 4 < end and _ZERO <= data[at + 4] <= _NINE  # the year 10000
        year = _digits(data, at, end, 5 if is_wide else 4)
        at += is_wide
        month = _digits(data, at + 5, end, 2)
        day, hour = _digits(data, at + 8, end, 2), _digits(data, at + 11, end, 2)
        minute, second = _digits(data, at + 14, end, 2), _digits(data, at + 17, end, 2)
        if min(year, month, day, hour, minute, second) < 0:
            return row, _MALFORMED
        if not _marked(data, at):
            return row, _MALFORMED
        at += 19
        nanosecond, at = _fraction(data, at, end)
        if nanosecond < 0:
            return row, _PRECISION
        shift, offset_of_zone, next_at = _zone(data, at, end)
        zoned = next_at != at
        at = next_at
        if at != end or zoned != (zone == TO_UTC):
            return row, _MALFORMED
        if nanosecond and width == 7:
            return row, _FRACTION
        year = -year if before else year
        clock = hour * 3600 + minute * 60 + second
        base = row * width
        if shift:
            fits = 1 <= month <= 12 and 1 <= day <= 31 and year != 0
            if not fits or hour > 23 or minute > 59 or second > 59:
                return row, _MALFORMED
            # Oracle has no year 0 (−1 is 1 BC), so years before Christ are increased by one. An
            # earlier year than Oracle's first is limited, and refused below.
            civil_year = max(year, _YEAR_MIN - 1) + (1 if before else 0)
            days = civil_days(civil_year, month, day) + DAYS_1970_TO_2000
            instant = days * _DAY + clock - shift * 60
            days = instant // _DAY
            if not _put_time(days, instant - days * _DAY, nanosecond, width, out, base):
                return row, _MALFORMED
        elif year > _YEAR_TEXT_MAX:
            return row, _MALFORMED
        else:
            # Copy the date as it is, without counting days: 29 February 1500 exists in Oracle, but
            # not in the proleptic Gregorian calendar. Also copy a date that does not exist: the
            # policy `invalid_date` decides about it when the bytes are converted.
            _put_label(year, month, day, clock, nanosecond, width, out, base)
            out[base + 4], out[base + 5], out[base + 6] = hour + 1, minute + 1, second + 1
        if width == 13 and offset_of_zone == _REGION:
            out[base + 11], out[base + 12] = _UTC_HIGH, _UTC_LOW
        elif width == 13:
            sign = -1 if offset_of_zone < 0 else 1
            out[base + 11] = 20 + sign * (abs(offset_of_zone) // 60)
            out[base + 12] = 60 + sign * (abs(offset_of_zone) % 60)
    return -1, 0
