"""The values that SQL computes with, their conversions, and the formats of TO_CHAR and TO_DATE.

NULL is None, and so is an empty text. A NUMBER is a Decimal, VARCHAR2 a str, RAW bytes,
BINARY_DOUBLE a float; the others are the types below. Conditions are True, False or None (unknown).
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Context, Decimal, DecimalException
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from olr_pg.simulator.fields.cells import Moment
from olr_pg.simulator.ora_error import OraError

if TYPE_CHECKING:
    from collections.abc import Sequence


NUMBER_DIGITS: Final = 38
ARITHMETIC: Final = Context(prec=40, rounding=ROUND_HALF_UP)
"""Arithmetic with 40 digits, the maximum of a NUMBER in calculations (SQL Language Reference,
NUMBER).
"""

SECOND: Final = 10**9
DAY: Final = 86_400 * SECOND
_MONTHS_OF_YEAR: Final = 12
_NUMBER_MAX: Final = 126
"""Maximum number of decimal digits before the point."""


class Fixed(str):
    """A CHAR, or a text literal: two of these are compared without trailing blanks."""

    __slots__ = ()


class Clob(str):
    """A CLOB or NCLOB; an empty one is not NULL."""

    __slots__ = ()


class Blob(bytes):
    """A BLOB; an empty one is not NULL."""

    __slots__ = ()


class Single(float):
    """A BINARY_FLOAT."""

    __slots__ = ()


class DateValue(NamedTuple):
    """A DATE, in seconds since the first day of year 1."""

    seconds: int


class Timestamp(NamedTuple):
    """A TIMESTAMP, in nanoseconds since the first day of year 1."""

    nanoseconds: int


class Zoned(NamedTuple):
    """A TIMESTAMP WITH TIME ZONE: UTC in nanoseconds, and the offset in minutes."""

    nanoseconds: int
    offset: int


class Months(NamedTuple):
    """An INTERVAL YEAR TO MONTH."""

    months: int


class Duration(NamedTuple):
    """An INTERVAL DAY TO SECOND."""

    nanoseconds: int


Value = Any
"""A value of one of the types above, or None."""


# --- calendar ---


def days_of(year: int, month: int, day: int) -> int:
    """Return the days since the first day of year 1; there is no year 0: -1 comes before 1."""
    year = year + 1 if year < 0 else year
    year -= month <= 2
    era, in_era = divmod(year, 400)
    in_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + in_era * 365 + in_era // 4 - in_era // 100 + in_year - 306


def date_of(days: int) -> tuple[int, int, int]:
    """Return year, month and day, `days` after the first day of year 1."""
    era, in_era = divmod(days + 306, 146_097)
    year = (in_era - in_era // 1460 + in_era // 36_524 - in_era // 146_096) // 365
    in_year = in_era - (365 * year + year // 4 - year // 100)
    month = (5 * in_year + 2) // 153
    day = in_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    year += era * 400 + (month <= 2)
    return (year if year > 0 else year - 1), month, day


def moment_of(nanoseconds: int) -> Moment:
    """Return the calendar fields of a moment."""
    days, rest = divmod(nanoseconds, DAY)
    seconds, nanosecond = divmod(rest, SECOND)
    hour, minute, second = seconds // 3600, seconds // 60 % 60, seconds % 60
    return Moment(*date_of(days), hour, minute, second, nanosecond)


def nanoseconds_of(moment: Moment) -> int:
    """Return the nanoseconds since the first day of year 1.

    Raises:
        OraError: ORA-01839, ORA-01841, ORA-01843 or ORA-01847, the day does not exist.
    """
    if not -4712 <= moment.year <= 9999 or moment.year == 0:
        raise OraError(1841, "(full) year must be between -4713 and +9999, and not be 0")
    if not 1 <= moment.month <= _MONTHS_OF_YEAR:
        raise OraError(1843, "not a valid month")
    if not 1 <= moment.day <= 31:
        raise OraError(1847, "day of month must be between 1 and last day of month")
    days = days_of(moment.year, moment.month, moment.day)
    if date_of(days) != (moment.year, moment.month, moment.day):
        raise OraError(1839, "date not valid for month specified")
    seconds = (moment.hour * 60 + moment.minute) * 60 + moment.second
    return days * DAY + seconds * SECOND + moment.nanosecond


def as_nanoseconds(value: Value) -> int | None:
    """Return the moment of a DATE or TIMESTAMP in nanoseconds; None for values of other types."""
    if isinstance(value, DateValue):
        return value.seconds * SECOND
    return value.nanoseconds if isinstance(value, Timestamp | Zoned) else None


def in_year_range(nanoseconds: int) -> int:
    """Return the moment; check that its year is in Oracle's range.

    Raises:
        OraError: ORA-01841, the year is out of range.
    """
    moment_year = date_of(nanoseconds // DAY)[0]
    if not -4712 <= moment_year <= 9999:
        raise OraError(1841, "(full) year must be between -4713 and +9999, and not be 0")
    return nanoseconds


# --- conversions ---


def null_if_empty(value: Value) -> Value:
    """Return None for an empty text or RAW, which is NULL in Oracle; LOBs may be empty."""
    if isinstance(value, Clob | Blob) or value is None:
        return value
    return None if isinstance(value, str | bytes) and not value else value


def to_number(value: Value) -> Decimal | float | None:
    """Convert to a number; a binary float stays a float.

    Raises:
        OraError: ORA-01722, the text is not a number.
    """
    if value is None or isinstance(value, Decimal | float):
        return value
    if isinstance(value, str):
        try:
            found = Decimal(value.strip())
        except DecimalException:
            raise OraError(1722, "invalid number") from None
        if found.is_finite():
            return bounded(found)
    raise OraError(
        1722 if isinstance(value, str) else 932,
        "invalid number"
        if isinstance(value, str)
        else f"inconsistent datatypes: expected NUMBER got {type_name(value)}",
    )


def bounded(value: Decimal) -> Decimal:
    """Round a number to the precision of NUMBER.

    Raises:
        OraError: ORA-01426, the number is too large.
    """
    value = ARITHMETIC.plus(value)
    if value and value.adjusted() >= _NUMBER_MAX:
        raise OraError(1426, "numeric overflow")
    return Decimal(0) if not value or value.adjusted() < -130 else value


def number_text(value: Decimal) -> str:
    """Return a number as TO_CHAR writes it, without a zero before the point."""
    digits = f"{value.normalize(ARITHMETIC):f}" if value else "0"
    sign, digits = ("-", digits[1:]) if digits.startswith("-") else ("", digits)
    return sign + (digits[1:] if digits.startswith("0.") else digits)


def type_name(value: Value) -> str:
    """Return the name of a value's type, as in Oracle's error messages."""
    names = (
        (Fixed, "CHAR"), (Clob, "CLOB"), (Blob, "BLOB"), (str, "CHAR"), (bytes, "BINARY"),
        (Decimal, "NUMBER"), (Single, "BINARY_FLOAT"), (float, "BINARY_DOUBLE"),
        (DateValue, "DATE"), (Timestamp, "TIMESTAMP"), (Zoned, "TIMESTAMP WITH TIME ZONE"),
        (Months, "INTERVAL YEAR TO MONTH"), (Duration, "INTERVAL DAY TO SECOND"),
    )  # fmt: skip
    return next((name for kind, name in names if isinstance(value, kind)), "-")


def mismatch(wanted: str, value: Value) -> OraError:
    """Return the error for a value of a wrong type."""
    return OraError(932, f"inconsistent datatypes: expected {wanted} got {type_name(value)}")


# --- arithmetic ---


def negate(value: Value) -> Value:
    """Return the value with the opposite sign."""
    if value is None:
        return None
    if isinstance(value, Months):
        return Months(-value.months)
    if isinstance(value, Duration):
        return Duration(-value.nanoseconds)
    number = to_number(value)
    assert number is not None
    return -number if isinstance(number, float) else ARITHMETIC.minus(number)


def add(left: Value, right: Value) -> Value:
    """Add two values; the sum of a moment and a number is a DATE."""
    if left is None or right is None:
        return None
    if as_nanoseconds(left) is not None:
        return _moved(left, right)
    if as_nanoseconds(right) is not None:
        return _moved(right, left)
    if isinstance(left, Months) and isinstance(right, Months):
        return Months(left.months + right.months)
    if isinstance(left, Duration) and isinstance(right, Duration):
        return Duration(left.nanoseconds + right.nanoseconds)
    return calculated("+", left, right)


def subtract(left: Value, right: Value) -> Value:
    """Subtract the second value from the first: two DATEs give a number of days, other types of
    dates and times give an interval.
    """
    if left is None or right is None:
        return None
    one, other = as_nanoseconds(left), as_nanoseconds(right)
    if one is not None and other is not None:
        if isinstance(left, DateValue) and isinstance(right, DateValue):
            return ARITHMETIC.divide(Decimal(left.seconds - right.seconds), Decimal(86_400))
        return Duration(one - other)
    if one is not None or isinstance(left, Months | Duration):
        return add(left, negate(right))
    return calculated("-", left, right)


def _moved(moment: Value, by: Value) -> Value:
    if isinstance(by, Months):
        return shifted(moment, by.months, exact=True)
    nanoseconds = as_nanoseconds(moment)
    assert nanoseconds is not None
    if isinstance(by, Duration):
        new = in_year_range(nanoseconds + by.nanoseconds)
        return _like(moment, new)
    days = to_number(by)
    assert days is not None
    seconds = int((Decimal(days) * 86_400).to_integral_value(ROUND_HALF_UP))
    whole = nanoseconds // SECOND
    if isinstance(moment, Zoned):
        whole += moment.offset * 60
    return DateValue(in_year_range((whole + seconds) * SECOND) // SECOND)


def _like(moment: Value, nanoseconds: int) -> Value:
    if isinstance(moment, DateValue):
        return DateValue(nanoseconds // SECOND)
    if isinstance(moment, Zoned):
        return Zoned(nanoseconds, moment.offset)
    return Timestamp(nanoseconds)


def shifted(moment: Value, months: int, *, exact: bool = False) -> Value:
    """Add months to a moment.

    Args:
        exact: whether it is an error if the new month lacks the day, as for intervals. If False,
            the rules of ADD_MONTHS apply: the result is the last day of the new month if this month
            lacks the day, or if the given day is the last one of its month.

    Raises:
        OraError: ORA-01839, the day does not exist.
    """
    nanoseconds = as_nanoseconds(moment)
    assert nanoseconds is not None
    days, rest = divmod(nanoseconds, DAY)
    year, month, day = date_of(days)
    was_last = date_of(days + 1)[2] == 1
    astronomical = year + 1 if year < 0 else year
    total = astronomical * _MONTHS_OF_YEAR + month - 1 + months
    year, month = total // _MONTHS_OF_YEAR, total % _MONTHS_OF_YEAR + 1
    year = year - 1 if year <= 0 else year
    following = (year, month + 1) if month < _MONTHS_OF_YEAR else (year + 1 or 1, 1)
    last = days_of(*following, 1) - days_of(year, month, 1)
    if exact and day > last:
        raise OraError(1839, "date not valid for month specified")
    day = last if not exact and (was_last or day > last) else day
    return _like(moment, in_year_range(days_of(year, month, day) * DAY + rest))


def calculated(sign: str, left: Value, right: Value) -> Value:
    """Add, subtract, multiply or divide numbers.

    Raises:
        OraError: ORA-01476, division by zero; ORA-01426, the result is too large.
    """
    if left is None or right is None:
        return None
    if isinstance(left, Duration) and sign in "*/":
        factor = Decimal(to_number(right) or 0)
        product = left.nanoseconds * factor if sign == "*" else left.nanoseconds / factor
        return Duration(int(product))
    one, other = to_number(left), to_number(right)
    assert one is not None
    assert other is not None
    if isinstance(one, float) or isinstance(other, float):
        return _calculated_float(sign, float(one), float(other))
    if sign == "/" and not other:
        raise OraError(1476, "divisor is equal to zero")
    do = {"+": ARITHMETIC.add, "-": ARITHMETIC.subtract, "*": ARITHMETIC.multiply,
          "/": ARITHMETIC.divide}[sign]  # fmt: skip
    return bounded(do(one, other))


def _calculated_float(sign: str, one: float, other: float) -> float:
    if sign == "/":
        if other:
            return one / other
        return float("nan") if not one or one != one else float("inf") * one
    return {"+": one + other, "-": one - other, "*": one * other}[sign]


# --- comparison ---


def compared(left: Value, right: Value) -> int | None:
    """Compare two values; return a negative number, 0 or a positive number, None if one is NULL.

    Raises:
        OraError: ORA-00932, the two values cannot be compared.
    """
    if left is None or right is None:
        return None
    one, other = _comparable(left, right)
    return int(one > other) - int(one < other)


def _comparable(left: Value, right: Value) -> tuple[Any, Any]:
    if isinstance(left, Clob | Blob) or isinstance(right, Clob | Blob):
        raise mismatch("-", left if isinstance(left, Clob | Blob) else right)
    if isinstance(left, Decimal | float) or isinstance(right, Decimal | float):
        return _ordered(to_number(left)), _ordered(to_number(right))
    if isinstance(left, str) and isinstance(right, str):
        if isinstance(left, Fixed) and isinstance(right, Fixed):
            return left.rstrip(" "), right.rstrip(" ")
        return str(left), str(right)
    if isinstance(left, bytes) or isinstance(right, bytes):
        return _as_raw(left), _as_raw(right)
    one, other = as_nanoseconds(left), as_nanoseconds(right)
    if one is not None and other is not None:
        return one, other
    if type(left) is type(right):
        return left, right
    raise mismatch(type_name(left), right)


def _ordered(number: Decimal | float | None) -> Any:
    """Return a sort key for a number: NaN is equal to itself, and above all other numbers."""
    assert number is not None
    return (1, 0) if number != number else (0, number)


def _as_raw(value: Value) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        try:
            return bytes.fromhex(value)
        except ValueError:
            raise OraError(1465, "invalid hex number") from None
    raise mismatch("BINARY", value)


def key_of(value: Value) -> Any:
    """Return a hashable key; keys are equal if GROUP BY treats the values as equal."""
    if isinstance(value, Fixed):
        return value.rstrip(" ")
    if isinstance(value, float):
        return "NaN" if value != value else Decimal(value)
    if isinstance(value, Clob | Blob):
        raise mismatch("-", value)
    nanoseconds = as_nanoseconds(value)
    return value if nanoseconds is None else ("moment", nanoseconds)


DATE_FORMAT: Final = "DD-MON-RR"
TIMESTAMP_FORMAT: Final = "DD-MON-RR HH.MI.SSXFF AM"
ZONED_FORMAT: Final = TIMESTAMP_FORMAT + " TZR"
"""NLS_DATE_FORMAT and the other default formats of the territory AMERICA."""

_MONTHS: Final = [
    "JANUARY",
    "FEBRUARY",
    "MARCH",
    "APRIL",
    "MAY",
    "JUNE",
    "JULY",
    "AUGUST",
    "SEPTEMBER",
    "OCTOBER",
    "NOVEMBER",
    "DECEMBER",
]
_DAYS: Final = "MONDAY TUESDAY WEDNESDAY THURSDAY FRIDAY SATURDAY SUNDAY".split()  # noqa: SIM905
_ELEMENT: Final = re.compile(
    r'"[^"]*"|SYYYY|YYYY|RRRR|YY|RR|MONTH|MON|MM|DDD|DD|DAY|DY|D|HH24|HH12|HH|MI|SSSSS|SS|FF\d?'
    r"|X|AM|PM|TZH|TZM|TZR|J|FM|Q|.",
    re.IGNORECASE | re.DOTALL,
)
_CENTURY: Final = 50
_JULIAN: Final = 1_721_426
"""Julian day of the first day of year 1."""


@lru_cache
def _elements(form: str) -> tuple[str, ...]:
    return tuple(_ELEMENT.findall(form))


def moment_text(value: Value, form: str | None = None) -> str:
    """Return a moment as text, in a format or in the default format of its type.

    Raises:
        OraError: ORA-01821, an element of the format is not supported.
    """
    nanoseconds = as_nanoseconds(value)
    assert nanoseconds is not None
    offset = value.offset if isinstance(value, Zoned) else 0
    moment = moment_of(nanoseconds + offset * 60 * SECOND)
    default = DATE_FORMAT if isinstance(value, DateValue) else TIMESTAMP_FORMAT
    form = form or (ZONED_FORMAT if isinstance(value, Zoned) else default)
    digits = 6 if default == TIMESTAMP_FORMAT else 0
    return "".join(
        _element_text(one, moment, offset, nanoseconds, digits) for one in _elements(form)
    )


def _element_text(element: str, at: Moment, offset: int, nanoseconds: int, digits: int) -> str:
    if element.startswith('"'):
        return element[1:-1]
    upper = element.upper()
    if upper.startswith("FF"):
        return f"{at.nanosecond:09d}"[: int(upper[2:] or digits)]
    sign = "-" if offset < 0 else "+"
    weekday = nanoseconds // DAY % 7
    numbers = {
        "YYYY": f"{abs(at.year):04d}", "RRRR": f"{abs(at.year):04d}",
        "SYYYY": f"{'-' if at.year < 0 else ' '}{abs(at.year):04d}",
        "YY": f"{abs(at.year) % 100:02d}", "RR": f"{abs(at.year) % 100:02d}",
        "MM": f"{at.month:02d}", "DD": f"{at.day:02d}", "HH24": f"{at.hour:02d}",
        "HH": f"{(at.hour - 1) % 12 + 1:02d}", "HH12": f"{(at.hour - 1) % 12 + 1:02d}",
        "MI": f"{at.minute:02d}", "SS": f"{at.second:02d}", "X": ".", "FM": "",
        "SSSSS": f"{(at.hour * 60 + at.minute) * 60 + at.second:05d}",
        "TZH": f"{sign}{abs(offset) // 60:02d}", "TZM": f"{abs(offset) % 60:02d}",
        "TZR": f"{sign}{abs(offset) // 60:02d}:{abs(offset) % 60:02d}",
        "J": f"{nanoseconds // DAY + _JULIAN:07d}", "Q": str((at.month + 2) // 3),
        "D": str((weekday + 1) % 7 + 1),
    }  # fmt: skip
    if upper in numbers:
        return numbers[upper]
    words = {
        "MON": _MONTHS[at.month - 1][:3], "MONTH": _MONTHS[at.month - 1].ljust(9),
        "DY": _DAYS[weekday][:3], "DAY": _DAYS[weekday].ljust(9),
        "AM": "PM" if at.hour >= 12 else "AM", "PM": "PM" if at.hour >= 12 else "AM",
    }  # fmt: skip
    if upper in words:
        word = words[upper]
        if element[0].islower():
            return word.lower()
        return word.capitalize() if element[1:].islower() else word
    if element.isalnum():
        raise OraError(1821, f"date format not recognized here: {element}")
    return element


class _Read:
    """The fields of a moment that were read from a text so far."""

    def __init__(self) -> None:
        self.year, self.month, self.day = 1, 1, 1
        self.hour = self.minute = self.second = self.nanosecond = 0
        self.is_afternoon: bool | None = None
        self.zone: list[str] = []
        self.is_negative = False


_NUMBERS: Final = {
    "YYYY": (4, "year"), "SYYYY": (4, "year"), "RRRR": (4, "year"), "YY": (2, "year"),
    "RR": (2, "year"), "MM": (2, "month"), "DD": (2, "day"), "HH24": (2, "hour"),
    "HH": (2, "hour"), "HH12": (2, "hour"), "MI": (2, "minute"), "SS": (2, "second"),
}  # fmt: skip


def parsed_moment(text: str, form: str) -> tuple[int, int]:
    """Parse a moment by a format; return its local nanoseconds, and its offset in minutes.

    Raises:
        OraError: ORA-01830, ORA-01840, ORA-01843 and others: the text does not fit.
    """
    read, rest = _Read(), text.strip()
    for element in _elements(form):
        rest = _take_element(element, rest, read)
    if rest:
        raise OraError(1830, "date format picture ends before converting entire input string")
    if read.is_afternoon is not None:
        read.hour = read.hour % 12 + 12 * read.is_afternoon
    if not (read.hour < 24 and read.minute < 60 and read.second < 60):
        raise OraError(1850, "hour must be between 0 and 23, minute and second below 60")
    moment = Moment(
        *(-read.year if read.is_negative else read.year, read.month, read.day),
        *(read.hour, read.minute, read.second, read.nanosecond),
    )
    return nanoseconds_of(moment), zone_minutes("".join(read.zone))


def _take_element(element: str, rest: str, read: _Read) -> str:  # noqa: C901
    upper = element.upper()
    if upper == "FM":
        return rest
    if upper in ("TZH", "TZM", "TZR"):
        match = re.match(r"UTC|[+-]?\d{1,2}(:\d{2})?" if upper == "TZR" else r"[+-]?\d{1,2}", rest)
        if match is None:
            raise OraError(1882, "timezone region not found here")
        read.zone.append((":" if upper == "TZM" else "") + match[0])
        return rest[match.end() :]
    if upper in _NUMBERS:
        size, name = _NUMBERS[upper]
        match = re.match(rf"\s*([+-]?)(\d{{1,{size}}})", rest)
        if match is None:
            raise OraError(1840, "input value not long enough for date format")
        number = int(match[2])
        if upper in ("RR", "RRRR") and len(match[2]) <= 2:
            number += 2000 if number < _CENTURY else 1900
        elif upper == "YY":
            number += 2000
        if name == "year":
            read.is_negative = match[1] == "-"
        setattr(read, name, number)
        return rest[match.end() :]
    if upper.startswith("FF"):
        match = re.match(r"\d{0,9}", rest)
        assert match is not None
        read.nanosecond = int(match[0].ljust(9, "0"))
        return rest[match.end() :]
    if upper in ("MON", "MONTH"):
        for number, name in enumerate(_MONTHS, 1):
            for known in (name, name[:3]):
                if rest.upper().startswith(known):
                    read.month = number
                    return rest[len(known) :]
        raise OraError(1843, "not a valid month")
    if upper in ("AM", "PM"):
        read.is_afternoon = rest[:2].upper() == "PM"
        return rest[2:]
    if upper == "X":
        return rest.removeprefix(".")
    if element.isalnum():
        raise OraError(1821, f"date format not recognized here: {element}")
    return rest[1:] if rest and not rest[0].isalnum() else rest


def zone_minutes(text: str) -> int:
    """Return the offset of a time zone such as +02:00, in minutes; 0 for an empty text.

    Raises:
        OraError: ORA-01882, the text is not an offset.
    """
    if text in ("", "UTC", "GMT", "Z"):
        return 0
    match = re.fullmatch(r"([+-]?)(\d{1,2})(?::(\d{2}))?", text.strip())
    if match is None:
        raise OraError(1882, f"timezone region not found here: {text}")
    minutes = int(match[2]) * 60 + int(match[3] or 0)
    return -minutes if match[1] == "-" else minutes


_LITERAL: Final = re.compile(
    r"\s*(?P<date>[+-]?\d{1,4}-\d{1,2}-\d{1,2})(?:[ T](?P<time>\d{1,2}:\d{1,2}(?::\d{1,2})?)"
    r"(?:\.(?P<fraction>\d{1,9}))?)?\s*(?P<zone>[+-]\d{1,2}:\d{2}|UTC|Z)?\s*"
)


def literal_moment(text: str) -> Value:
    """Return the TIMESTAMP of a literal, with a time zone if the text has one.

    Raises:
        OraError: ORA-01861, the text is not a moment.
    """
    match = _LITERAL.fullmatch(text)
    if match is None:
        raise OraError(1861, "literal does not match format string")
    sign = -1 if match["date"].startswith("-") else 1
    year, month, day = map(int, match["date"].lstrip("+-").split("-"))
    hour, minute, second = (*map(int, (match["time"] or "0:0:0").split(":")), 0)[:3]
    nanosecond = int((match["fraction"] or "").ljust(9, "0"))
    local = nanoseconds_of(Moment(sign * year, month, day, hour, minute, second, nanosecond))
    if match["zone"]:
        offset = zone_minutes(match["zone"])
        return Zoned(local - offset * 60 * SECOND, offset)
    return Timestamp(local)


def interval_of(text: str, unit: str) -> Value:
    """Return the interval of a literal; `unit` is for example DAY, or DAY TO SECOND.

    Raises:
        OraError: ORA-01867, the text is not an interval.
    """
    first, _, last = unit.upper().partition(" TO ")
    first, last = first.split("(")[0].strip(), (last or first).split("(")[0].strip()
    sign = -1 if text.strip().startswith("-") else 1
    separators = r"-" if first in ("YEAR", "MONTH") else r"[ :]"
    parts = [one for one in re.split(separators, text.strip().lstrip("+-")) if one]
    units = ("YEAR", "MONTH") if first in ("YEAR", "MONTH") else ("DAY", "HOUR", "MINUTE", "SECOND")
    if first not in units or last not in units:
        raise OraError(1867, "the interval is invalid")
    wanted = units[units.index(first) : units.index(last) + 1]
    if len(parts) != len(wanted) or not all(re.fullmatch(r"\d+(\.\d*)?", one) for one in parts):
        raise OraError(1867, "the interval is invalid")
    return _interval(sign, dict(zip(wanted, map(Decimal, parts), strict=True)))


def _interval(sign: int, amounts: dict[str, Decimal]) -> Value:
    if "YEAR" in amounts or "MONTH" in amounts:
        months = 12 * amounts.get("YEAR", Decimal(0)) + amounts.get("MONTH", Decimal(0))
        return Months(sign * int(months))
    sizes = {"DAY": 86_400, "HOUR": 3600, "MINUTE": 60, "SECOND": 1}
    seconds = sum((sizes[unit] * amount for unit, amount in amounts.items()), Decimal(0))
    return Duration(sign * int(seconds * SECOND))


def interval_text(value: Value) -> str:
    """Return an interval as text, as TO_CHAR does."""
    if isinstance(value, Months):
        years, months = divmod(abs(value.months), 12)
        return f"{'-' if value.months < 0 else '+'}{years:02d}-{months:02d}"
    assert isinstance(value, Duration)
    seconds, nanosecond = divmod(abs(value.nanoseconds), SECOND)
    days, seconds = divmod(seconds, 86_400)
    sign = "-" if value.nanoseconds < 0 else "+"
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{sign}{days:02d} {clock}.{nanosecond // 1000:06d}"


def text_of(value: Value) -> str | None:
    """Return a value as text, in the way of an implicit conversion."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Decimal):
        return number_text(value)
    if isinstance(value, float):
        return f"{value:.17E}"
    if isinstance(value, bytes):
        return value.hex().upper()
    if isinstance(value, Months | Duration):
        return interval_text(value)
    return moment_text(value)


def number_format(value: Decimal, form: str) -> str:
    """Return a number as text, in a format of 9, 0, a point, commas and FM.

    Raises:
        OraError: ORA-01481, an element of the format is not supported.
    """
    upper = form.upper()
    if upper in ("TM", "TM9"):
        return number_text(value)
    fills = not upper.startswith("FM")
    body = upper.removeprefix("FM").replace("D", ".").replace("G", ",")
    if not re.fullmatch(r"[90,]*(\.[90]*)?", body):
        raise OraError(1481, f"invalid number format model here: {form}")
    whole, _, fraction = body.partition(".")
    rounded = f"{abs(value):.{len(fraction)}f}"
    digits, _, decimals = rounded.partition(".")
    digits = "" if digits == "0" and "0" not in whole and fraction else digits
    places = [at for at in whole if at in "90"]
    if len(digits) > len(places):
        return "#" * (len(body) + 1)
    text = _filled(whole, digits.rjust(len(places)))
    if not fills and "0" not in fraction:
        decimals = decimals.rstrip("0")
    text = text + ("." + decimals if fraction else "")
    sign = "-" if value < 0 else ""
    stripped = text.lstrip(" ")
    return sign + stripped if not fills else (sign + stripped).rjust(len(body) + 1)


def _filled(whole: str, digits: Sequence[str]) -> str:
    """Return the integer part of a format, filled with digits."""
    out, at, begun = list[str](), 0, False
    for place in whole:
        if place == ",":
            out.append("," if begun else " ")
            continue
        digit = digits[at]
        at += 1
        if digit == " " and (place == "0" or begun):
            digit = "0"
        begun = begun or digit != " "
        out.append(digit)
    return "".join(out)
