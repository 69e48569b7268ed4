"""The formats of TO_CHAR, TO_DATE and similar functions."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from olr_pg.simulator.fields.cells import Moment
from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.sql.typed_values import (
    DAY,
    SECOND,
    DateValue,
    Duration,
    Months,
    Timestamp,
    Value,
    Zoned,
    as_nanoseconds,
    moment_of,
    nanoseconds_of,
    number_text,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

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
