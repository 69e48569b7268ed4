"""Random expressions of Oracle's SQL with their values, by Oracle's documentation in plain Python.

It shares nothing with the translator: each function is written from its page of the SQL Language
Reference. A text is a `str` that is never empty (an empty one is NULL), a CHAR has its blanks, a
NUMBER is a `Decimal`, a DATE a `datetime`, NULL is None.
"""

# ruff: noqa: DTZ001 - a DATE has no time zone
from __future__ import annotations

import calendar
import json
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import (
    ROUND_CEILING,
    ROUND_DOWN,
    ROUND_FLOOR,
    ROUND_HALF_EVEN,
    ROUND_HALF_UP,
    Decimal,
    localcontext,
)
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

Row = dict[str, Any]

ROWS: tuple[Row, ...] = (
    {
        "a": "Oracle Corp", "b": "x", "c": "ab ", "d": datetime(2026, 1, 31, 13, 30),
        "e": datetime(2025, 11, 30), "n": Decimal("0.5"), "i": Decimal(7), "price": Decimal("12.5"),
    },
    {
        "a": None, "b": None, "c": None, "d": None, "e": None, "n": None, "i": Decimal(0),
        "price": None,
    },
    {
        "a": "  pad ", "b": "a-b", "c": "xyz", "d": datetime(2024, 2, 29),
        "e": datetime(2024, 1, 29, 12), "n": Decimal("-3.25"), "i": Decimal(-5),
        "price": Decimal(0),
    },
)  # fmt: skip
"""The rows of `shop_relations.MAKE`."""


@dataclass(frozen=True)
class Made:
    """An expression: its text, and what gives its value of a row.

    Attributes:
        is_char: its values are of a CHAR, or it is a literal.
        is_json: it is the call of a function that gives JSON.
    """

    text: str
    value: Callable[[Row], Any]
    is_char: bool = False
    is_json: bool = False


def _strict(function: Callable[..., Any]) -> Callable[..., Any]:
    """NULL where any argument is; an empty text is NULL."""

    def call(*values: Any) -> Any:
        if any(value is None for value in values):
            return None
        found = function(*values)
        return None if found == "" else found

    return call


def _call(name: str, function: Callable[..., Any], *parts: Made) -> Made:
    text = f"{name}({', '.join(part.text for part in parts)})"
    return Made(text, lambda row: function(*(part.value(row) for part in parts)))


# Texts.


def number_text(value: Decimal) -> str:
    """Write a number as TO_CHAR does without a format."""
    text = format(value.normalize(), "f") if value else "0"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def _joined(*values: Any) -> str | None:
    texts = [number_text(v) if isinstance(v, Decimal) else v for v in values if v is not None]
    return "".join(texts) or None


def _cut(value: Decimal) -> int:
    return int(value.to_integral_value(ROUND_DOWN))


def _substr(text: str, start: Decimal, length: Decimal | None = None) -> str | None:
    at, many = _cut(start), len(text) if length is None else _cut(length)
    at = len(text) + at if at < 0 else max(at - 1, 0)
    return text[at : at + many] if at >= 0 and many >= 1 else None


def _instr(text: str, wanted: str, start: Decimal, nth: Decimal) -> Decimal:
    at, left = _cut(start), _cut(nth)
    if at == 0:
        return Decimal(0)
    last = len(text) - len(wanted) + 1
    places = range(at, last + 1) if at > 0 else range(len(text) + at + 1, 0, -1)
    for place in places:
        if 1 <= place <= last and text[place - 1 : place - 1 + len(wanted)] == wanted:
            left -= 1
            if left == 0:
                return Decimal(place)
    return Decimal(0)


def _pad(text: str, wide: Decimal, fill: str, *, left: bool) -> str | None:
    size = _cut(wide)
    if size < 1:
        return None
    more = (fill * size)[: max(size - len(text), 0)]
    return text[:size] if not more else (more + text if left else text + more)


def _replaced(text: str | None, wanted: str | None, new: str | None) -> str | None:
    if text is None or wanted is None:
        return text
    return text.replace(wanted, new or "") or None


def _translated(text: str, old: str, new: str) -> str:
    to = dict[str, str]()
    for at, letter in enumerate(old):
        to.setdefault(letter, new[at] if at < len(new) else "")
    return "".join(to.get(letter, letter) for letter in text)


def _initcap(text: str) -> str:
    out, begins = "", True
    for letter in text:
        out += letter.upper() if begins else letter.lower()
        begins = not letter.isalnum()
    return out


# Numbers.


def _round(value: Decimal, digits: Decimal, how: str = ROUND_HALF_UP) -> Decimal:
    with localcontext() as context:
        context.prec = 60
        unit = Decimal(1).scaleb(-_cut(digits))
        return (value / unit).to_integral_value(how) * unit


def _mod(value: Decimal, by: Decimal) -> Decimal:
    return value if by == 0 else value - by * (value / by).to_integral_value(ROUND_DOWN)


def _nines(value: Decimal, form: str) -> str:
    """TO_CHAR with a format of nines and zeros and a point."""
    whole, _, part = form.partition(".")
    rounded = _round(value, Decimal(len(part)))
    digits, _, rest = format(abs(rounded), "f").partition(".")
    zeros = len(whole) - whole.index("0") if "0" in whole else 0
    digits = ("" if digits == "0" and part else digits).rjust(zeros, "0")
    if len(digits) > len(whole):
        return "#" * (len(form) + 1)
    shown = digits + (f".{rest.ljust(len(part), '0')[: len(part)]}" if part else "")
    return (("-" if rounded < 0 else " ") + shown).rjust(len(form) + 1)


# Dates.


def _month_days(year: int, month: int) -> int:
    return calendar.monthrange(year, month)[1]


def _last_day(day: datetime) -> datetime:
    return day.replace(day=_month_days(day.year, day.month))


def _add_months(day: datetime, months: Decimal) -> datetime:
    number = day.year * 12 + day.month - 1 + _cut(months)
    year, month = number // 12, number % 12 + 1
    most = _month_days(year, month)
    is_last = day.day == _month_days(day.year, day.month)
    return day.replace(year=year, month=month, day=most if is_last else min(day.day, most))


def _months_between(one: datetime, other: datetime) -> Decimal:
    months = Decimal((one.year - other.year) * 12 + one.month - other.month)
    if one.day == other.day or (one == _last_day(one) and other == _last_day(other)):
        return months
    if _last_day(one).day == one.day and _last_day(other).day == other.day:
        return months
    seconds = [(day - day.replace(day=1, hour=0, minute=0)).total_seconds() for day in (one, other)]
    return months + (Decimal(seconds[0]) - Decimal(seconds[1])) / 86400 / 31


def _midnight(day: datetime) -> datetime:
    return day.replace(hour=0, minute=0)


def _trunc_date(day: datetime, unit: str) -> datetime:
    at = _midnight(day)
    if unit == "YYYY":
        return at.replace(month=1, day=1)
    if unit == "Q":
        return at.replace(month=(at.month - 1) // 3 * 3 + 1, day=1)
    if unit == "MM":
        return at.replace(day=1)
    if unit == "IW":
        return at - timedelta(days=at.weekday())
    if unit == "D":
        return at - timedelta(days=at.isoweekday() % 7)
    if unit == "W":
        return at - timedelta(days=(at.day - 1) % 7)
    if unit == "CC":
        return at.replace(year=(at.year - 1) // 100 * 100 + 1, month=1, day=1)
    if unit == "IYYY":
        return datetime.fromisocalendar(at.isocalendar().year, 1, 1)
    if unit == "WW":
        return at - timedelta(days=(at.timetuple().tm_yday - 1) % 7)
    return day.replace(minute=0) if unit == "HH24" else at


def _round_date(day: datetime, unit: str) -> datetime:
    begin = _trunc_date(day, unit)
    if unit == "YYYY":
        return begin.replace(year=begin.year + 1) if day.month > 6 else begin
    if unit == "MM":
        return _add_months(begin, Decimal(1)) if day.day > 15 else begin
    if unit == "Q":
        second = _add_months(begin, Decimal(1)).replace(day=16)
        return _add_months(begin, Decimal(3)) if day >= second else begin
    if unit in ("IW", "D"):
        return begin + timedelta(days=7) if day - begin >= timedelta(days=3.5) else begin
    if unit == "HH24":
        return begin + timedelta(hours=1) if day.minute >= 30 else begin
    return begin + timedelta(days=1) if day.hour >= 12 else begin


ROMAN = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII")


def _ordinal(number: int) -> str:
    ends = {1: "ST", 2: "ND", 3: "RD"}
    return "TH" if number // 10 == 1 else ends.get(number % 10, "TH")


def _date_text(day: datetime, form: str) -> str:
    week = (day.timetuple().tm_yday - 1) // 7 + 1
    return {
        "YYYY-MM-DD HH24:MI:SS": day.strftime("%Y-%m-%d %H:%M:%S"),
        "DD-MON-YY": day.strftime("%d-%b-%y").upper(),
        "Day": day.strftime("%A").ljust(9),
        "FMDay, DD Month": f"{day:%A}, {day.day} {day:%B}",
        "D": str(day.isoweekday() % 7 + 1),
        "DDD": f"{day.timetuple().tm_yday:03}",
        "WW": f"{week:02}",
        "W": str((day.day - 1) // 7 + 1),
        "IW": f"{day.isocalendar().week:02}",
        "Q": str((day.month - 1) // 3 + 1),
        "HH:MI AM": f"{(day.hour - 1) % 12 + 1:02}:{day:%M} {'PM' if day.hour > 11 else 'AM'}",
        "SSSSS": f"{day.hour * 3600 + day.minute * 60:05}",
        "J": str(day.toordinal() + 1721425),
        "CC": str((day.year - 1) // 100 + 1),
        "RR": f"{day:%y}",
        "MONTH": day.strftime("%B").upper().ljust(9),
        "Dy": day.strftime("%a"),
        "RM": ROMAN[day.month - 1].ljust(4),
        "IYYY-IW": f"{day.isocalendar().year}-{day.isocalendar().week:02}",
        "FMMonth DD, YYYY": f"{day:%B} {day.day}, {day.year}",
        'YYYY"-Q"Q': f"{day.year}-Q{(day.month - 1) // 3 + 1}",
        "DDTH": f"{day.day:02}{_ordinal(day.day)}",
    }[form]


# Regular expressions, whose patterns find the same by POSIX and in Python.


PATTERNS = {
    "[aeiou]": "[aeiou]",
    "a+": "a+",
    "[[:alpha:]]+": "[A-Za-z]+",
    " +": " +",
    "[^a-z]": "[^a-z]",
    "(.)b": "(.)b",
    "x|y": "x|y",
    "[[:digit:]]{1,2}": "[0-9]{1,2}",
    "^.": "^.",
    "-?[a-z]$": "-?[a-z]$",
}


def _matches(text: str, pattern: str, start: Decimal, flags: str) -> list[re.Match[str]]:
    found = re.compile(PATTERNS[pattern], re.IGNORECASE if "i" in flags else 0)
    return list(found.finditer(text, int(start) - 1))


def _regexp_replace(*values: Any) -> str | None:
    text, pattern, new, start, nth, flags = values
    if text is None:
        return None
    found = _matches(text, pattern, start, flags)
    wanted = found if nth == 0 else found[int(nth) - 1 : int(nth)]
    for one in reversed(wanted):
        text = text[: one.start()] + (new or "") + text[one.end() :]
    return text or None


def _regexp_substr(text: str, pattern: str, start: Decimal, nth: Decimal, flags: str) -> Any:
    found = _matches(text, pattern, start, flags)
    return found[int(nth) - 1][0] if int(nth) <= len(found) else None


def _regexp_instr(
    text: str, pattern: str, start: Decimal, nth: Decimal, end: Decimal, flags: str
) -> Decimal:
    found = _matches(text, pattern, start, flags)
    if int(nth) > len(found):
        return Decimal(0)
    one = found[int(nth) - 1]
    return Decimal((one.end() if end else one.start()) + 1)


def _soundex(text: str) -> str | None:
    codes = {
        letter: str(number)
        for number, letters in enumerate(("BFPV", "CGJKQSXZ", "DT", "L", "MN", "R"), 1)
        for letter in letters
    }
    letters = [letter for letter in text.upper() if "A" <= letter <= "Z"]
    if not letters:
        return None
    found, before = letters[0], codes.get(letters[0], "")
    for letter in letters[1:]:
        if letter in "HW":
            continue  # they part no letters of one number
        code = codes.get(letter, "")
        if code and code != before:
            found += code
        before = code
    return found[:4].ljust(4, "0")


NUMERAL = re.compile(r" *[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)? *")


def _signed(value: Decimal, form: str) -> str:
    """TO_CHAR with a sign at one end, in brackets, or with a dollar."""
    rounded = int(_round(value, Decimal(0)))
    sign, digits = "-" if rounded < 0 else "", str(abs(rounded))
    if len(digits) > 3:
        return "#" * (5 if "PR" in form or form.startswith("$") else 4)
    return {
        "S999": ((sign or "+") + digits).rjust(4),
        "999S": digits.rjust(3) + (sign or "+"),
        "999MI": digits.rjust(3) + (sign or " "),
        "999PR": (f"<{digits}>" if sign else f" {digits} ").rjust(5),
        "FM999": sign + digits,
        "$999": f"{sign}${digits}".rjust(5),
    }[form]


def _json_text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, Decimal):
        return format(value.normalize(), "f") if value else "0"
    return json.dumps(value)


def _json_part(made: Made, row: Row) -> str:
    """Write a part of generated JSON: JSON that a function has made is not quoted again."""
    value = made.value(row)
    return str(value) if made.is_json and value is not None else _json_text(value)


def _bucket(value: Decimal, low: Decimal, high: Decimal, many: Decimal) -> Decimal:
    if low > high:  # the buckets count down
        value, low, high = -value, -low, -high
    if value < low:
        return Decimal(0)
    if value >= high:
        return many + 1
    return Decimal(int((value - low) * many / (high - low))) + 1


def _remainder(value: Decimal, by: Decimal) -> Decimal:
    return value - by * (value / by).to_integral_value(ROUND_HALF_EVEN)


def _interval_part(later: datetime, earlier: datetime, part: str) -> Decimal:
    seconds = int((later - earlier).total_seconds())
    sign, seconds = (-1 if seconds < 0 else 1), abs(seconds)
    found = {"DAY": seconds // 86400, "HOUR": seconds // 3600 % 24, "MINUTE": seconds // 60 % 60}
    return Decimal(sign * found[part])


ZONES = {"GMT": 0, "AST": -4, "EST": -5, "CST": -6, "PDT": -7, "PST": -8, "HST": -10}
DAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")


def _next_day(day: datetime, name: str) -> datetime:
    ahead = (DAYS.index(name) - day.weekday() - 1) % 7 + 1
    return day + timedelta(days=ahead)


DATE_FORMATS = (
    *("YYYY-MM-DD HH24:MI:SS", "DD-MON-YY", "Day", "FMDay, DD Month", "D", "DDD", "WW", "W", "IW"),
    *("Q", "HH:MI AM", "SSSSS", "J", "CC", "RR", "MONTH", "Dy", "RM", "IYYY-IW"),
    *("FMMonth DD, YYYY", 'YYYY"-Q"Q', "DDTH"),
)


class Expressions:
    """Draws expressions."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def _column(self, *names: str) -> Made:
        name = self._random.choice(names)
        return Made(name, lambda row: row[name], is_char=name == "c")

    def _whole(self, least: int, most: int) -> Made:
        number = self._random.randint(least, most)
        return Made(str(number), lambda _row: Decimal(number))

    def _literal(self, *texts: str) -> Made:
        text = self._random.choice(texts)
        return Made(f"'{text}'", lambda _row: text or None, is_char=True)

    def text(self, depth: int = 3) -> Made:
        """Draw an expression that is a text."""
        if depth == 0:
            return self._random.choice(
                (self._column("a", "b", "c"), self._literal("", "a", " ", "Ora", "b-", "xy "))
            )
        return self._random.choice(self._texts())(depth - 1)

    def _texts(self) -> list[Callable[[int], Made]]:
        def text(d: int) -> Made:
            return self.text(self._random.randint(0, d))

        def number(d: int) -> Made:
            return self.number(self._random.randint(0, d))

        def named(name: str, function: Callable[[str], str]) -> Callable[[int], Made]:
            return lambda d: _call(name, _strict(function), text(d))

        def joined(d: int) -> Made:
            # Of quotients PostgreSQL has fewer digits: numbers here are those of columns.
            one, other = self._random.choice((text, lambda _d: number(0)))(d), text(d)
            return Made(
                f"({one.text} || {other.text})",
                lambda row: _joined(one.value(row), other.value(row)),
            )

        def padded(name: str, *, left: bool) -> Callable[[int], Made]:
            pad = _strict(lambda value, wide, fill: _pad(value, wide, fill, left=left))
            return lambda d: _call(
                name, pad, text(d), self._whole(-1, 12), self._literal("*", "ab", " ")
            )

        def nvl2(d: int) -> Made:
            return _call("NVL2", lambda v, y, n: n if v is None else y, text(d), text(d), text(d))

        def formatted(d: int) -> Made:
            form = self._random.choice(("9999", "0999", "99.9", "990.00", "9.99"))
            shown = _strict(lambda value, form: _nines(value, form))
            return _call("TO_CHAR", shown, number(d), Made(f"'{form}'", lambda _row: form))

        def date_text(d: int) -> Made:
            form = self._random.choice(DATE_FORMATS)
            shown = Made(f"'{form}'", lambda _row: form)
            return _call("TO_CHAR", _strict(_date_text), self.date(d), shown)

        def case(d: int) -> Made:
            test, yes, no = self.condition(d), text(d), text(d)
            return Made(
                f"CASE WHEN {test.text} THEN {yes.text} ELSE {no.text} END",
                lambda row: yes.value(row) if test.value(row) else no.value(row),
            )

        return [
            joined, joined, formatted, date_text, nvl2, case,
            named("UPPER", str.upper), named("LOWER", str.lower), named("INITCAP", _initcap),
            named("TRIM", lambda value: value.strip(" ")),
            named("LTRIM", lambda value: value.lstrip(" ")),
            padded("LPAD", left=True), padded("RPAD", left=False),
            lambda d: _call("SUBSTR", _strict(_substr), text(d), number(d)),
            lambda d: _call("SUBSTR", _strict(_substr), text(d), number(d), number(d)),
            lambda d: _call("REPLACE", _replaced, text(d), text(d), text(d)),
            lambda d: _call(
                "TRANSLATE", _strict(_translated), text(d), self._literal("abO", " -"),
                self._literal("x", "12"),
            ),
            lambda d: _call("RTRIM", _strict(lambda v, s: v.rstrip(s)), text(d),
                            self._literal("p", " b", "-")),
            lambda d: _call("NVL", lambda v, o: o if v is None else v, text(d), text(d)),
            *self._newer_texts(),
        ]  # fmt: skip

    def _pattern(self) -> Made:
        pattern = self._random.choice([*PATTERNS])
        return Made(f"'{pattern}'", lambda _row: pattern)

    def _flags(self) -> Made:
        flags = self._random.choice(("c", "i"))
        return Made(f"'{flags}'", lambda _row: flags)

    def _newer_texts(self) -> list[Callable[[int], Made]]:
        def text(d: int) -> Made:
            return self.text(self._random.randint(0, d))

        def replaced(d: int) -> Made:
            parts = (text(d), self._pattern(), self._literal("", "-", "<x>"), self._whole(1, 2),
                     self._whole(0, 2), self._flags())  # fmt: skip
            return _call("REGEXP_REPLACE", _regexp_replace, *parts)

        def found(d: int) -> Made:
            parts = (text(d), self._pattern(), self._whole(1, 2), self._whole(1, 2), self._flags())
            return _call("REGEXP_SUBSTR", _strict(_regexp_substr), *parts)

        def signed(d: int) -> Made:
            form = self._random.choice(("S999", "999S", "999MI", "999PR", "FM999", "$999"))
            shown = Made(f"'{form}'", lambda _row: form)
            return _call(
                "TO_CHAR", _strict(_signed), self.number(self._random.randint(0, d)), shown
            )

        def made_object(d: int) -> Made:
            one, other = text(d), self.number(0)
            return Made(
                f"JSON_OBJECT('k' VALUE {one.text}, 'n' VALUE {other.text})",
                lambda row: f'{{"k":{_json_part(one, row)},"n":{_json_part(other, row)}}}',
                is_json=True,
            )

        def made_array(d: int) -> Made:
            one, other = text(d), self.number(0)

            def value(row: Row) -> str:
                kept = [part for part in (one, other) if part.value(row) is not None]
                return f"[{','.join(_json_part(part, row) for part in kept)}]"

            return Made(f"JSON_ARRAY({one.text}, {other.text})", value, is_json=True)

        def read(d: int) -> Made:
            one = text(d)
            return Made(
                f"JSON_VALUE(JSON_OBJECT('k' VALUE {one.text}), '$.k')",
                lambda row: None if one.is_json else one.value(row),  # no scalar
            )

        def queried(d: int) -> Made:
            one = text(d)
            return Made(
                f"JSON_QUERY(JSON_OBJECT('k' VALUE {one.text}), '$.k' WITH WRAPPER)",
                lambda row: f"[{_json_part(one, row)}]",
                is_json=True,
            )

        def trimmed(d: int) -> Made:
            one = text(d)
            where, letter = (
                self._random.choice(("LEADING", "TRAILING")),
                self._random.choice("Oa b"),
            )
            cut = _strict(lambda v: v.lstrip(letter) if where == "LEADING" else v.rstrip(letter))
            return Made(
                f"TRIM({where} '{letter}' FROM {one.text})", lambda row: cut(one.value(row))
            )

        def kept(d: int) -> Made:
            one, other = text(d), text(d)

            def value(row: Row) -> Any:
                x, y = one.value(row), other.value(row)
                is_same = (
                    x is not None
                    and y is not None
                    and (
                        x.rstrip(" ") == y.rstrip(" ") if one.is_char and other.is_char else x == y
                    )
                )
                return None if is_same else x

            return Made(f"NULLIF({one.text}, {other.text})", value)

        return [
            replaced, found, signed, made_object, made_array, read, queried, trimmed, kept,
            lambda d: _call("SOUNDEX", _strict(_soundex), text(d)),
        ]  # fmt: skip

    def number(self, depth: int = 3) -> Made:
        """Draw an expression that is a number."""
        if depth == 0:
            return self._random.choice((self._column("n", "i", "price"), self._whole(-3, 9)))
        return self._random.choice(self._numbers())(depth - 1)

    def _numbers(self) -> list[Callable[[int], Made]]:
        def number(d: int) -> Made:
            return self.number(self._random.randint(0, d))

        def text(d: int) -> Made:
            return self.text(self._random.randint(0, d))

        def calculated(sign: str, function: Callable[[Any, Any], Any]) -> Callable[[int], Made]:
            def make(d: int) -> Made:
                one, other = number(d), number(d)
                return Made(
                    f"({one.text} {sign} {other.text})",
                    lambda row: _strict(function)(one.value(row), other.value(row)),
                )

            return make

        def days(d: int) -> Made:
            one, other = self.date(d), self.date(d)

            def between(later: datetime, earlier: datetime) -> Decimal:
                return Decimal(int((later - earlier).total_seconds())) / 86400

            return Made(
                f"({one.text} - {other.text})",
                lambda row: _strict(between)(one.value(row), other.value(row)),
            )

        def rounded(name: str, how: str) -> Callable[[int], Made]:
            cut = _strict(lambda value, digits: _round(value, digits, how))
            return lambda d: _call(name, cut, number(d), self._whole(-2, 2))

        def whole(name: str, how: str) -> Callable[[int], Made]:
            return lambda d: _call(name, _strict(lambda v: v.to_integral_value(how)), number(d))

        def part(d: int) -> Made:
            name = self._random.choice(("YEAR", "MONTH", "DAY"))
            day = self.date(d)
            taken = _strict(lambda value: Decimal(getattr(value, name.lower())))
            return Made(f"EXTRACT({name} FROM {day.text})", lambda row: taken(day.value(row)))

        return [
            calculated("+", lambda x, y: x + y), calculated("-", lambda x, y: x - y),
            calculated("*", lambda x, y: x * y), days, part,
            rounded("ROUND", ROUND_HALF_UP), rounded("TRUNC", ROUND_DOWN),
            whole("CEIL", ROUND_CEILING), whole("FLOOR", ROUND_FLOOR),
            lambda d: _call("MOD", _strict(_mod), number(d), number(d)),
            lambda d: _call("ABS", _strict(abs), number(d)),
            lambda d: _call("SIGN", _strict(lambda v: Decimal((v > 0) - (v < 0))), number(d)),
            lambda d: _call("LENGTH", _strict(lambda v: Decimal(len(v))), text(d)),
            lambda d: _call("INSTR", _strict(_instr), text(d), text(d), self._whole(-4, 4),
                            self._whole(1, 3)),
            lambda d: _call("GREATEST", _strict(max), number(d), number(d)),
            lambda d: _call("LEAST", _strict(min), number(d), number(d)),
            lambda d: _call("NVL", lambda v, o: o if v is None else v, number(d), number(d)),
            lambda d: _call("NULLIF", lambda v, o: None if v == o else v, self._column("i", "n"),
                            number(d)),
            lambda d: _call("DECODE", lambda v, w, x, y: x if v == w else y, number(d), number(d),
                            number(d), number(d)),
            lambda d: _call("MONTHS_BETWEEN", _strict(_months_between), self.date(d), self.date(d)),
            *self._newer_numbers(),
        ]  # fmt: skip

    def _newer_numbers(self) -> list[Callable[[int], Made]]:
        def number(d: int) -> Made:
            return self.number(self._random.randint(0, d))

        def text(d: int) -> Made:
            return self.text(self._random.randint(0, d))

        def bucket(d: int) -> Made:
            low, high = self._random.sample(range(-4, 9), 2)
            ends = (self._whole(end, end) for end in (low, high))
            return _call("WIDTH_BUCKET", _strict(_bucket), number(d), *ends, self._whole(1, 5))

        def counted(d: int) -> Made:
            parts = (text(d), self._pattern(), self._whole(1, 2), self._flags())
            count = _strict(lambda *values: Decimal(len(_matches(*values))))
            return _call("REGEXP_COUNT", count, *parts)

        def placed(d: int) -> Made:
            parts = (text(d), self._pattern(), self._whole(1, 2), self._whole(1, 2),
                     self._whole(0, 1), self._flags())  # fmt: skip
            return _call("REGEXP_INSTR", _strict(_regexp_instr), *parts)

        def apart(d: int) -> Made:
            one, other = self.date(d), self.date(d)
            name = self._random.choice(("DAY", "HOUR", "MINUTE"))
            between = _strict(lambda x, y: _interval_part(x, y, name))
            days = " - ".join(f"CAST({one.text} AS TIMESTAMP)" for one in (one, other))
            return Made(
                f"EXTRACT({name} FROM ({days}))",
                lambda row: between(one.value(row), other.value(row)),
            )

        def hour(d: int) -> Made:
            day = self.date(d)
            taken = _strict(lambda value: Decimal(value.hour))
            return Made(
                f"EXTRACT(HOUR FROM CAST({day.text} AS TIMESTAMP))",
                lambda row: taken(day.value(row)),
            )

        def is_numeral(d: int) -> Made:
            one = text(d)
            return Made(
                f"VALIDATE_CONVERSION({one.text} AS NUMBER)",
                lambda row: Decimal(
                    one.value(row) is None or bool(NUMERAL.fullmatch(one.value(row)))
                ),
            )

        def with_default(d: int) -> Made:
            one, number = text(d), self._whole(-1, 3)

            def value(row: Row) -> Any:
                given = one.value(row)
                if given is None:
                    return None
                return Decimal(given.strip()) if NUMERAL.fullmatch(given) else number.value(row)

            return Made(f"TO_NUMBER({one.text} DEFAULT {number.text} ON CONVERSION ERROR)", value)

        def read(d: int) -> Made:
            one = self._random.choice((self.number(0), self._whole(-9, 99)))
            return Made(
                f"JSON_VALUE(JSON_OBJECT('n' VALUE {one.text}), '$.n' RETURNING NUMBER)",
                lambda row: one.value(row),
            )

        def chosen(d: int) -> Made:
            test, yes, no = self.condition(d), number(d), number(d)
            return Made(
                f"CASE WHEN {test.text} THEN {yes.text} ELSE {no.text} END",
                lambda row: yes.value(row) if test.value(row) else no.value(row),
            )

        return [
            bucket, counted, placed, apart, hour, is_numeral, with_default, read, chosen,
            lambda d: _call("NANVL", _strict(lambda v, _o: v), number(d), self._whole(0, 1)),
            lambda d: _call("REMAINDER", _strict(_remainder), number(d), self._whole(2, 5)),
            lambda d: _call("POWER", _strict(lambda v, n: v ** int(n) if n else Decimal(1)),
                            self.number(0), self._whole(0, 3)),
            lambda d: _call("BITAND", _strict(lambda x, y: Decimal(int(x) & int(y))),
                            self._whole(-5, 40), self._whole(-5, 40)),
            lambda d: _call("LENGTHB", _strict(lambda v: Decimal(len(v.encode()))), text(d)),
            lambda d: _call("ASCII", _strict(lambda v: Decimal(ord(v[0]))), text(d)),
        ]  # fmt: skip

    def date(self, depth: int = 2) -> Made:
        """Draw an expression that is a date."""
        if depth <= 0:
            day = datetime(2023, 1, 1) + timedelta(days=self._random.randint(0, 1500))
            literal = Made(f"DATE '{day:%Y-%m-%d}'", lambda _row: day)
            return self._random.choice((self._column("d", "e"), literal))
        inner = self.date(depth - 1)
        units = ("YYYY", "Q", "MM", "IW", "D", "W", "WW", "HH24", "DD", "CC", "IYYY")
        unit = self._random.choice(units)
        by = self._random.choice(("YYYY", "Q", "MM", "DD", "IW", "D", "HH24"))
        name, zone, other = (self._random.choice([*names]) for names in (DAYS, ZONES, ZONES))
        span, minutes = self._random.choice((("DAY", 1440), ("HOUR", 60), ("MINUTE", 1)))
        shifted = _strict(lambda day: day + timedelta(hours=ZONES[other] - ZONES[zone]))
        later = _strict(lambda day, n: day + timedelta(minutes=minutes * int(n)))
        begin = _strict(lambda day, n: _add_months(_trunc_date(day, "MM"), n))
        form = "YYYY-MM-DD HH24:MI"
        moved = self._whole(-40, 40)
        return self._random.choice((
            _call("ADD_MONTHS", _strict(_add_months), inner, moved),
            _call("LAST_DAY", _strict(_last_day), inner),
            _call("TRUNC", _strict(_trunc_date), inner, Made(f"'{unit}'", lambda _row: unit)),
            _call("ROUND", _strict(_round_date), inner, Made(f"'{by}'", lambda _row: by)),
            Made(
                f"({inner.text} + {moved.text})",
                lambda row: _strict(lambda day, n: day + timedelta(days=int(n)))(
                    inner.value(row), moved.value(row)
                ),
            ),
            Made(
                f"({inner.text} + NUMTODSINTERVAL({moved.text}, '{span}'))",
                lambda row: later(inner.value(row), moved.value(row)),
            ),
            Made(
                f"(TRUNC({inner.text}, 'MM') + NUMTOYMINTERVAL({moved.text}, 'MONTH'))",
                lambda row: begin(inner.value(row), moved.value(row)),
            ),
            Made(f"({inner.text} + INTERVAL '3 4:05' DAY TO MINUTE)",
                 lambda row: _strict(lambda day: day + timedelta(days=3, hours=4, minutes=5))(
                     inner.value(row))),
            Made(f"NEXT_DAY({inner.text}, '{name}')",
                 lambda row: _strict(_next_day)(inner.value(row), name)),
            Made(f"NEW_TIME({inner.text}, '{zone}', '{other}')",
                 lambda row: shifted(inner.value(row))),
            Made(f"TO_DATE(TO_CHAR({inner.text}, '{form}'), '{form}')", inner.value),
            _call("GREATEST", _strict(max), inner, self.date(depth - 2)),
        ))  # fmt: skip

    def condition(self, depth: int = 1) -> Made:
        """Draw a condition; its value is None where it is unknown."""
        kind = self._random.choice(("number", "text", "null", "date", "more", "more"))
        if kind == "more":
            return self._newer_condition(depth)
        if kind == "null":
            text = self.text(depth)
            return Made(f"{text.text} IS NULL", lambda row: text.value(row) is None)
        one, other = (getattr(self, kind)(min(depth, 1)) for _ in range(2))
        sign, test = self._random.choice((("=", lambda x, y: x == y), ("<>", lambda x, y: x != y)))

        def value(row: Mapping[str, Any]) -> Any:
            x, y = one.value(row), other.value(row)
            if x is not None and y is not None and one.is_char and other.is_char:
                x, y = x.rstrip(" "), y.rstrip(" ")
            return _strict(test)(x, y)

        return Made(f"{one.text} {sign} {other.text}", value)

    def _newer_condition(self, depth: int) -> Made:
        number, low, high = self.number(depth), self._whole(-3, 2), self._whole(2, 9)
        text, pattern, flags = self.text(depth), self._pattern(), self._flags()
        inner = self.condition(depth - 1) if depth else self._null_test()

        def between(row: Row) -> Any:
            found = number.value(row)
            return None if found is None else low.value(row) <= found <= high.value(row)

        def among(row: Row) -> Any:
            found = number.value(row)
            return None if found is None else found in (low.value(row), high.value(row))

        def like(row: Row) -> Any:
            return _strict(lambda value: "a" in value[1:])(text.value(row))

        def matches(row: Row) -> Any:
            found = _strict(
                lambda v: bool(_matches(v, pattern.value(row), Decimal(1), flags.value(row)))
            )
            return found(text.value(row))

        return self._random.choice((
            Made(f"{number.text} BETWEEN {low.text} AND {high.text}", between),
            Made(f"{number.text} IN ({low.text}, {high.text})", among),
            Made(f"{text.text} LIKE '_%a%'", like),
            Made(f"REGEXP_LIKE({text.text}, {pattern.text}, {flags.text})", matches),
            Made(f"NOT ({inner.text})",
                 lambda row: None if inner.value(row) is None else not inner.value(row)),
            Made(f"LNNVL({inner.text})", lambda row: not inner.value(row)),
            Made(f"{number.text} > ALL ({low.text}, {high.text})",
                 lambda row: _strict(lambda v: v > low.value(row) and v > high.value(row))(
                     number.value(row))),
        ))  # fmt: skip

    def _null_test(self) -> Made:
        one = self._column("a", "n", "d")
        return Made(f"{one.text} IS NOT NULL", lambda row: one.value(row) is not None)

    def aggregate(self) -> tuple[str, Callable[[list[Row]], Any]]:
        """Draw an aggregate of rows, which are ordered by `i` where an order counts."""
        text, number, kept = self.text(1), self.number(1), self._column("n", "price")

        def numbers(rows: list[Row]) -> list[Decimal]:
            return [v for row in rows if (v := number.value(row)) is not None]

        def listed(rows: list[Row]) -> str | None:
            found = [text.value(row) for row in sorted(rows, key=lambda row: row["i"])]
            return ";".join(one for one in found if one is not None) or None

        def mean(rows: list[Row]) -> Decimal | None:
            found = numbers(rows)
            return sum(found, Decimal(0)) / len(found) if found else None

        def variance(rows: list[Row]) -> Decimal | None:
            found = numbers(rows)
            if len(found) < 2:
                return Decimal(0) if found else None
            middle = sum(found, Decimal(0)) / len(found)
            return sum(((v - middle) ** 2 for v in found), Decimal(0)) / (len(found) - 1)

        def median(rows: list[Row]) -> Decimal | None:
            found = sorted(numbers(rows))
            half = len(found) // 2
            if not found:
                return None
            return found[half] if len(found) % 2 else (found[half - 1] + found[half]) / 2

        def extreme(rows: list[Row]) -> Any:
            keys = [v for row in rows if (v := kept.value(row)) is not None]
            first = [row for row in rows if kept.value(row) == min(keys, default=None)]
            found = numbers(first)
            return max(found, default=None)

        return self._random.choice((
            (f"LISTAGG({text.text}, ';') WITHIN GROUP (ORDER BY i)", listed),
            (f"SUM({number.text})", lambda rows: sum(f) if (f := numbers(rows)) else None),
            (f"AVG({number.text})", mean),
            (f"COUNT({text.text})",
             lambda rows: Decimal(sum(text.value(row) is not None for row in rows))),
            (f"COUNT(DISTINCT {number.text})", lambda rows: Decimal(len(set(numbers(rows))))),
            (f"MIN({number.text})", lambda rows: min(numbers(rows), default=None)),
            (f"VARIANCE({number.text})", variance),
            (f"MEDIAN({number.text})", median),
            (f"MAX({number.text}) KEEP (DENSE_RANK FIRST ORDER BY {kept.text})", extreme),
        ))  # fmt: skip
