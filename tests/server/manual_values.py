"""Values in Oracle's internal form, read by what is published of it, and compared with a truth's.

The protocol leaves values as they stand in the redo; this reads them without the project's code.
"""

from __future__ import annotations

import re
import struct
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Final

CHARSETS: Final = {873: "utf-8", 2000: "utf-16-be", 31: "iso-8859-1", 178: "cp1252"}

_YEARS: Final = re.compile(r"P(?:(-?\d+)Y)?(?:(-?\d+)M)?")
_DAYS: Final = re.compile(r"P(?:(-?\d+)D)?(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?\d+(?:\.\d+)?)S)?)?")
_MOMENT: Final = re.compile(r"([^.]{19})(\.\d+)?([+-]\d\d:\d\d)?")


def is_same(kind: int, charset: int | None, data: bytes, truth: object) -> bool:
    """Whether a value that is not NULL is what the truth says; its numbers are `Decimal`."""
    if kind in (1, 9, 96, 112):
        return data.decode(CHARSETS[charset or 873], "surrogatepass") == truth
    if kind in (23, 113):
        return data.hex() == truth
    if kind == 2:
        return isinstance(truth, Decimal) and number(data) == truth
    if kind in (100, 101):
        return isinstance(truth, Decimal) and binary(data) == _rounded(truth, len(data))
    assert isinstance(truth, str)
    if kind == 182:
        return months(data) == _months_of(truth)
    if kind == 183:
        return seconds(data) == _seconds_of(truth)
    assert kind in (12, 180, 181), kind
    return moment(data) == _moment_of(truth)


def number(data: bytes) -> Decimal:
    """NUMBER: an exponent of 100, then digits of base 100, those of negative ones turned over."""
    if data == b"\x80":
        return Decimal(0)
    positive = data[0] & 0x80 != 0
    exponent = (data[0] & 0x7F) - 65 if positive else (~data[0] & 0x7F) - 65
    digits = [byte - 1 if positive else 101 - byte for byte in data[1:] if positive or byte != 102]
    total = 0
    for digit in digits:
        total = 100 * total + digit
    shift = exponent - len(digits) + 1
    value = Decimal(total).scaleb(2 * shift)
    return value if positive else -value


def binary(data: bytes) -> float:
    """BINARY_FLOAT and BINARY_DOUBLE: big-endian, made to sort as bytes."""
    if data[0] & 0x80:
        plain = bytes((data[0] & 0x7F, *data[1:]))
    else:
        plain = bytes(~byte & 0xFF for byte in data)
    (value,) = struct.unpack(">f" if len(data) == 4 else ">d", plain)
    return float(value)


def _rounded(truth: Decimal, size: int) -> float:
    form = ">f" if size == 4 else ">d"
    (value,) = struct.unpack(form, struct.pack(form, float(truth)))
    return float(value)


def moment(data: bytes) -> tuple[datetime, int, timedelta | None]:
    """DATE and TIMESTAMP (in UTC, with an offset): the moment, nanoseconds, the offset."""
    year = 100 * (data[0] - 100) + data[1] - 100
    when = datetime(year, data[2], data[3], data[4] - 1, data[5] - 1, data[6] - 1)  # noqa: DTZ001
    nanoseconds = int.from_bytes(data[7:11]) if len(data) >= 11 else 0
    if len(data) < 13:
        return when, nanoseconds, None
    assert data[11] & 0x80 == 0, "the zone is a region"
    offset = timedelta(hours=data[11] - 20, minutes=data[12] - 60)
    return when, nanoseconds, offset


def _moment_of(truth: str) -> tuple[datetime, int, timedelta | None]:
    found = _MOMENT.fullmatch(truth)
    assert found, truth
    when = datetime.fromisoformat(found[1])
    nanoseconds = int((found[2] or ".0")[1:].ljust(9, "0"))
    if found[3] is None:
        return when, nanoseconds, None
    sign = -1 if found[3][0] == "-" else 1
    offset = sign * timedelta(hours=int(found[3][1:3]), minutes=int(found[3][4:6]))
    return when - offset, nanoseconds, offset


def months(data: bytes) -> int:
    """INTERVAL YEAR TO MONTH."""
    return 12 * (int.from_bytes(data[:4]) - (1 << 31)) + data[4] - 60


def _months_of(truth: str) -> int:
    found = _YEARS.fullmatch(truth)
    assert found, truth
    return 12 * int(found[1] or 0) + int(found[2] or 0)


def seconds(data: bytes) -> Fraction:
    """INTERVAL DAY TO SECOND."""
    days = int.from_bytes(data[:4]) - (1 << 31)
    nanoseconds = int.from_bytes(data[7:11]) - (1 << 31)
    clock = 3600 * (data[4] - 60) + 60 * (data[5] - 60) + data[6] - 60
    return Fraction(86400 * days + clock) + Fraction(nanoseconds, 10**9)


def _seconds_of(truth: str) -> Fraction:
    found = _DAYS.fullmatch(truth)
    assert found, truth
    days, hours, minutes = (int(part or 0) for part in found.groups()[:3])
    return Fraction(86400 * days + 3600 * hours + 60 * minutes) + Fraction(found[4] or 0)
