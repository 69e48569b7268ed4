"""The values that SQL computes with.

NULL is None, and so is an empty text. A NUMBER is a Decimal, VARCHAR2 a str, RAW bytes,
BINARY_DOUBLE a float; the others are the types below. Conditions are True, False or None (unknown).
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal, DecimalException
from typing import Any, Final, NamedTuple

from olr_pg.simulator.fields.cells import Moment
from olr_pg.simulator.ora_error import OraError

NUMBER_DIGITS: Final = 38
ARITHMETIC: Final = Context(prec=40, rounding=ROUND_HALF_UP)
"""Arithmetic with 40 digits, the maximum of a NUMBER in calculations (SQL Language Reference,
NUMBER).
"""

SECOND: Final = 10**9
DAY: Final = 86_400 * SECOND
_MONTHS: Final = 12
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
    if not 1 <= moment.month <= _MONTHS:
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
    total = astronomical * _MONTHS + month - 1 + months
    year, month = total // _MONTHS, total % _MONTHS + 1
    year = year - 1 if year <= 0 else year
    following = (year, month + 1) if month < _MONTHS else (year + 1 or 1, 1)
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
        OraError: ORA-00932, they cannot be compared.
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
