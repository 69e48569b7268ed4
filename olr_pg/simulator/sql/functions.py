"""The SQL functions of the stand-in, by name. Their first argument is the `Context`.

Facts: Oracle's SQL Language Reference, Functions.

An aggregate function computes a value from the arguments of all rows of a group.
"""

from __future__ import annotations

import hashlib
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from decimal import Context as DecimalContext
from inspect import signature
from typing import TYPE_CHECKING, Any, Final

from olr_pg.simulator.fields.cells import bytes_text, text_bytes
from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.sql.sql_columns import Declared, SqlColumn, convert_to
from olr_pg.simulator.sql.typed_values import (
    DATE_FORMAT,
    DAY,
    SECOND,
    TIMESTAMP_FORMAT,
    Blob,
    Clob,
    DateValue,
    Duration,
    Months,
    Timestamp,
    Value,
    Zoned,
    add,
    as_nanoseconds,
    bounded,
    calculated,
    compared,
    days_of,
    interval_of,
    key_of,
    literal_moment,
    moment_of,
    moment_text,
    null_if_empty,
    number_format,
    parsed_moment,
    shifted,
    text_of,
    to_number,
    zone_minutes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from olr_pg.simulator.sql.name_scopes import Context

    Function = Callable[..., Value]

_WIDE: Final = 10**60


def _strict(function: Function) -> Function:
    """Return a function that is NULL if an argument is NULL, and otherwise calls `function`."""

    def called(context: Context | None, *arguments: Value) -> Value:
        return None if any(one is None for one in arguments) else function(*arguments)

    _INNER[called] = function
    return called


_INNER: Final[dict[Any, Any]] = {}
"""The wrapped function of each function that `_strict` returned; it has no context argument."""


def takes(function: Function, count: int) -> bool:
    """Return whether a function can be called with `count` arguments."""
    inner = _INNER.get(function)
    try:
        signature(inner or function).bind(*[None] * (count + (inner is None)))
    except TypeError:
        return False
    return True


def _decimal(value: Value) -> Decimal:
    number = to_number(value)
    return Decimal(repr(float(number))) if isinstance(number, float) else number or Decimal(0)


def _integer(value: Value) -> int:
    return int(_decimal(value).to_integral_value(ROUND_DOWN))


def plain_text(value: Value) -> str:
    """Return a value as text; empty for NULL."""
    text = text_of(value)
    return "" if text is None else str(text)


def _like_text(value: Value, text: str) -> Value:
    return Clob(text) if isinstance(value, Clob) else text


# --- any type ---


def _decode(_: Context, subject: Value, *rest: Value) -> Value:
    for at in range(0, len(rest) - 1, 2):
        both_null = subject is None and rest[at] is None
        if both_null or compared(subject, rest[at]) == 0:
            return rest[at + 1]
    return rest[-1] if len(rest) % 2 else None


def _extreme(sign: int) -> Function:
    def found(first: Value, *others: Value) -> Value:
        best = first
        for one in others:
            if (compared(one, best) or 0) * sign > 0:
                best = one
        return best

    return _strict(found)


# --- numbers ---


def _rounded(mode: str) -> Function:
    def rounded(value: Value, digits: Value = Decimal(0)) -> Value:
        if as_nanoseconds(value) is not None:
            return _cut_moment(value, "DD" if isinstance(digits, Decimal) else digits, mode)
        number, places = _decimal(value), _integer(digits)
        return bounded(number.quantize(Decimal(1).scaleb(-places), mode, _context()))

    return _strict(rounded)


def _context() -> Any:
    return DecimalContext(prec=200)


def _cut_moment(value: Value, form: Value, mode: str) -> Value:
    nanoseconds = as_nanoseconds(value)
    assert nanoseconds is not None
    moment = moment_of(nanoseconds)
    unit = str(form).upper()
    if mode != ROUND_DOWN and unit != "DD":
        raise OraError(
            1898, "too many precision specifiers: the simulator only rounds dates to days"
        )
    starts = {
        "DD": nanoseconds // DAY * DAY, "J": nanoseconds // DAY * DAY,
        "HH": nanoseconds // (3600 * SECOND) * 3600 * SECOND,
        "HH24": nanoseconds // (3600 * SECOND) * 3600 * SECOND,
        "MI": nanoseconds // (60 * SECOND) * 60 * SECOND,
        "MM": days_of(moment.year, moment.month, 1) * DAY,
        "MON": days_of(moment.year, moment.month, 1) * DAY,
        "MONTH": days_of(moment.year, moment.month, 1) * DAY,
        "YYYY": days_of(moment.year, 1, 1) * DAY, "YEAR": days_of(moment.year, 1, 1) * DAY,
        "YY": days_of(moment.year, 1, 1) * DAY,
        "Q": days_of(moment.year, (moment.month - 1) // 3 * 3 + 1, 1) * DAY,
    }  # fmt: skip
    if unit not in starts:
        raise OraError(1821, "date format not recognized here")
    at = starts[unit]
    if mode != ROUND_DOWN and nanoseconds - at >= DAY // 2:
        at += DAY
    return DateValue(at // SECOND)


def _mod(one: Value, other: Value) -> Value:
    number, divisor = _decimal(one), _decimal(other)
    if not divisor:
        return number
    return number - divisor * (number / divisor).to_integral_value(ROUND_DOWN)


def _power(one: Value, other: Value) -> Value:
    return bounded(_decimal(one) ** _decimal(other))


def _whole(mode: str) -> Function:
    return _strict(lambda value: _decimal(value).to_integral_value(mode))


# --- texts ---


def _substr(value: Value, start: Value, length: Value = Decimal(_WIDE)) -> Value:
    text, at, count = plain_text(value), _integer(start), _integer(length)
    begin = at - 1 if at > 0 else max(at + len(text), 0) if at < 0 else 0
    if count < 1 or (at < 0 and -at > len(text)):
        return None
    return _like_text(value, text[begin : begin + count])


def _instr(value: Value, part: Value, start: Value = Decimal(1), nth: Value = Decimal(1)) -> Value:
    text, wanted, at, count = plain_text(value), plain_text(part), _integer(start), _integer(nth)
    if at < 0:
        places = [n for n in range(len(text)) if text.startswith(wanted, n)]
        found = [n for n in reversed(places) if n <= len(text) + at]
    else:
        found = [n for n in range(at - 1, len(text)) if text.startswith(wanted, n)]
    return Decimal(found[count - 1] + 1) if len(found) >= count else Decimal(0)


def _pad(left: bool) -> Function:
    def padded(value: Value, length: Value, marks: Value = " ") -> Value:
        text, size, fill = plain_text(value), _integer(length), plain_text(marks)
        if size < 1:
            return None
        missing = size - len(text)
        if missing <= 0:
            return text[:size]
        added = (fill * (missing // len(fill) + 1))[:missing]
        return _like_text(value, added + text if left else text + added)

    return _strict(padded)


def trimmed(value: Value, marks: Value, side: str) -> Value:
    """Remove the characters `marks` from one end or both ends."""
    if value is None or marks is None:
        return None
    text, cut = plain_text(value), plain_text(marks)
    text = text.lstrip(cut) if side in ("BOTH", "LEADING") else text
    return null_if_empty(text.rstrip(cut) if side in ("BOTH", "TRAILING") else text)


def _replace(_: Context, value: Value, old: Value, new: Value = None) -> Value:
    if value is None or old is None:
        return value
    return _like_text(value, plain_text(value).replace(plain_text(old), plain_text(new)))


def _translate(value: Value, old: Value, new: Value) -> Value:
    marks = plain_text(old)
    others = plain_text(new).ljust(len(marks), "\0")
    table = dict(zip(reversed(marks), reversed(others[: len(marks)]), strict=True))
    return "".join(table.get(one, one) for one in plain_text(value)).replace("\0", "")


def _initcap(value: Value) -> Value:
    out, begins = list[str](), True
    for letter in plain_text(value):
        out.append(letter.upper() if begins else letter.lower())
        begins = not letter.isalnum()
    return "".join(out)


def _length(value: Value) -> Value:
    if isinstance(value, Blob):
        return Decimal(len(value))
    return Decimal(len(plain_text(value)))


def _lob_length(value: Value) -> Value:
    if isinstance(value, bytes):
        return Decimal(len(value))
    return Decimal(len(plain_text(value).encode("utf-16-be", "surrogatepass")) // 2)


def _lob_substr(value: Value, amount: Value = Decimal(32_767), offset: Value = Decimal(1)) -> Value:
    begin = _integer(offset) - 1
    part = value[begin : begin + _integer(amount)]
    return bytes(part) if isinstance(value, bytes) else str(part)


# --- conversions ---


def _to_char(value: Value, form: Value = None) -> Value:
    if isinstance(value, Clob):
        return str(value)
    if form is None:
        return text_of(value)
    if isinstance(value, Decimal | float):
        return number_format(_decimal(value), plain_text(form))
    if isinstance(value, Months | Duration):
        return text_of(value)
    if as_nanoseconds(value) is not None:
        return moment_text(value, plain_text(form))
    return text_of(value)


def _to_moment(make: Callable[[int, int], Value], default: str) -> Function:
    def moment(value: Value, form: Value = None) -> Value:
        nanoseconds = as_nanoseconds(value)
        if nanoseconds is not None:
            offset = value.offset if isinstance(value, Zoned) else 0
            return make(nanoseconds + offset * 60 * SECOND, offset)
        return make(
            *parsed_moment(plain_text(value), plain_text(form) if form is not None else default)
        )

    return _strict(moment)


def _zoned(local: int, offset: int) -> Value:
    return Zoned(local - offset * 60 * SECOND, offset)


def _to_numeric(value: Value, form: Value = None) -> Value:
    text = plain_text(value)
    if form is not None:
        text = text.replace(",", "").replace("$", "").strip()
    return to_number(text)


def _cast(kind: str, *numbers: int) -> Function:
    declared = Declared(kind, numbers)
    return lambda _, value: convert_to(declared, value)


def _unistr(value: Value) -> Value:
    text, out, at = plain_text(value), list[str](), 0
    while at < len(text):
        if text[at] != "\\":
            out.append(text[at])
        elif text[at + 1 : at + 2] == "\\":
            out.append("\\")
            at += 1
        else:
            out.append(chr(int(text[at + 1 : at + 5], 16)))
            at += 4
        at += 1
    return "".join(out).encode("utf-16", "surrogatepass").decode("utf-16")


def _chr(value: Value) -> Value:
    number = _integer(value)
    if number < 128:
        return chr(number)
    return number.to_bytes((number.bit_length() + 7) // 8).decode()


def _hex_to_raw(value: Value) -> Value:
    return SqlColumn("", Declared("RAW", (32_767,))).converted(plain_text(value), "")


def _extract(_: Context, field: str, value: Value) -> Value:
    if value is None:
        return None
    if isinstance(value, Months):
        sign = -1 if value.months < 0 else 1
        years, months = divmod(abs(value.months), 12)
        return Decimal(sign * {"YEAR": years, "MONTH": months}[field])
    if isinstance(value, Duration):
        sign, seconds = (-1 if value.nanoseconds < 0 else 1), abs(value.nanoseconds) // SECOND
        parts = {
            "DAY": seconds // 86_400,
            "HOUR": seconds // 3600 % 24,
            "MINUTE": seconds // 60 % 60,
        }
        whole = Decimal(parts.get(field, seconds % 60))
        if field == "SECOND":
            whole += Decimal(abs(value.nanoseconds) % SECOND) / SECOND
        return sign * whole
    nanoseconds = as_nanoseconds(value)
    if nanoseconds is None:
        raise OraError(30076, "invalid extract field for extract source")
    moment = moment_of(nanoseconds)
    if field == "SECOND":
        return Decimal(moment.second) + Decimal(moment.nanosecond) / SECOND
    return Decimal(getattr(moment, field.lower()))


def _months_between(one: Value, other: Value) -> Value:
    first, second = (moment_of(as_nanoseconds(at) or 0) for at in (one, other))
    months = (first.year - second.year) * 12 + first.month - second.month
    lasts = all(moment_of((as_nanoseconds(at) or 0) + DAY).day == 1 for at in (one, other))
    if first.day == second.day or lasts:
        return Decimal(months)
    seconds = (first.day - second.day) * 86_400
    for weight, name in ((3600, "hour"), (60, "minute"), (1, "second")):
        seconds += weight * (getattr(first, name) - getattr(second, name))
    return bounded(Decimal(months) + Decimal(seconds) / (31 * 86_400))


def _last_day(value: Value) -> Value:
    nanoseconds = as_nanoseconds(value)
    assert nanoseconds is not None
    moment = moment_of(nanoseconds)
    following = (moment.year, moment.month + 1) if moment.month < 12 else (moment.year + 1 or 1, 1)
    days = days_of(*following, 1) - 1
    return DateValue((days * DAY + nanoseconds % DAY) // SECOND)


def _interval(value: Value, unit: Value) -> Value:
    name, number = plain_text(unit).upper(), _decimal(value)
    if name in ("YEAR", "MONTH"):
        return Months(int((number * (12 if name == "YEAR" else 1)).to_integral_value()))
    sizes = {"DAY": 86_400, "HOUR": 3600, "MINUTE": 60, "SECOND": 1}
    if name not in sizes:
        raise OraError(1760, "illegal argument for function")
    return Duration(int((number * sizes[name] * SECOND).to_integral_value(ROUND_HALF_UP)))


def _bitand(one: Value, other: Value) -> Value:
    return Decimal(_integer(one) & _integer(other))


def _standard_hash(value: Value, method: Value = "SHA1") -> Value:
    content = value if isinstance(value, bytes) else plain_text(value).encode()
    return hashlib.new(plain_text(method), content, usedforsecurity=False).digest()


def _context_value(context: Context, namespace: Value, name: Value) -> Value:
    del namespace
    return context.user if plain_text(name).upper() in ("SESSION_USER", "CURRENT_SCHEMA") else None


def _first(_: Context, *values: Value) -> Value:
    return next((one for one in values if one is not None), None)


FUNCTIONS: Final[dict[str, Function]] = {
    "NVL": _first,
    "COALESCE": _first,
    "NVL2": lambda _, value, one, other: other if value is None else one,
    "NULLIF": lambda _, one, other: None if compared(one, other) == 0 else one,
    "DECODE": _decode,
    "GREATEST": _extreme(1),
    "LEAST": _extreme(-1),
    "ABS": _strict(lambda value: _decimal(value).copy_abs()),
    "SIGN": _strict(lambda value: Decimal((_decimal(value) > 0) - (_decimal(value) < 0))),
    "MOD": _strict(_mod),
    "ROUND": _rounded(ROUND_HALF_UP),
    "TRUNC": _rounded(ROUND_DOWN),
    "CEIL": _whole(ROUND_CEILING),
    "FLOOR": _whole(ROUND_FLOOR),
    "POWER": _strict(_power),
    "SQRT": _strict(lambda value: bounded(_decimal(value).sqrt())),
    "BITAND": _strict(_bitand),
    "UPPER": _strict(lambda value: _like_text(value, plain_text(value).upper())),
    "LOWER": _strict(lambda value: _like_text(value, plain_text(value).lower())),
    "INITCAP": _strict(_initcap),
    "LENGTH": _strict(_length),
    "LENGTHB": _strict(lambda value: Decimal(len(text_bytes(plain_text(value))))),
    "SUBSTR": _strict(_substr),
    "INSTR": _strict(_instr),
    "REPLACE": _replace,
    "TRANSLATE": _strict(_translate),
    "LTRIM": lambda _, value, marks=" ": trimmed(value, marks, "LEADING"),
    "RTRIM": lambda _, value, marks=" ": trimmed(value, marks, "TRAILING"),
    "LPAD": _pad(left=True),
    "RPAD": _pad(left=False),
    "CONCAT": lambda _, one, other: null_if_empty(plain_text(one) + plain_text(other)),
    "CHR": _strict(_chr),
    "ASCII": _strict(lambda value: Decimal(int.from_bytes(plain_text(value)[0].encode()))),
    "UNISTR": _strict(_unistr),
    "TO_CHAR": _strict(_to_char),
    "TO_NCHAR": _strict(_to_char),
    "TO_NUMBER": _strict(_to_numeric),
    "TO_DATE": _to_moment(lambda local, _: DateValue(local // SECOND), DATE_FORMAT),
    "TO_TIMESTAMP": _to_moment(lambda local, _: Timestamp(local), TIMESTAMP_FORMAT),
    "TO_TIMESTAMP_TZ": _to_moment(_zoned, TIMESTAMP_FORMAT + " TZR"),
    "TO_CLOB": _cast("CLOB"),
    "TO_NCLOB": _cast("NCLOB"),
    "TO_BLOB": _cast("BLOB"),
    "TO_BINARY_FLOAT": _cast("BINARY_FLOAT"),
    "TO_BINARY_DOUBLE": _cast("BINARY_DOUBLE"),
    "HEXTORAW": _strict(_hex_to_raw),
    "RAWTOHEX": _strict(lambda value: text_of(value)),
    "UTL_RAW.CAST_TO_RAW": _strict(lambda value: text_bytes(plain_text(value))),
    "UTL_RAW.CAST_TO_VARCHAR2": _strict(bytes_text),
    "EMPTY_CLOB": lambda _: Clob(""),
    "EMPTY_BLOB": lambda _: Blob(b""),
    "DBMS_LOB.GETLENGTH": _strict(_lob_length),
    "DBMS_LOB.SUBSTR": _strict(_lob_substr),
    "DATE": _strict(lambda text: DateValue(literal_moment(text)[0] // SECOND)),
    "TIMESTAMP": _strict(literal_moment),
    "ADD_MONTHS": _strict(lambda value, count: shifted(
        DateValue((as_nanoseconds(value) or 0) // SECOND), _integer(count)
    )),
    "MONTHS_BETWEEN": _strict(_months_between),
    "LAST_DAY": _strict(_last_day),
    "EXTRACT": _extract,
    "NUMTODSINTERVAL": _strict(_interval),
    "NUMTOYMINTERVAL": _strict(_interval),
    "TO_DSINTERVAL": _strict(lambda text: interval_of(text, "DAY TO SECOND")),
    "TO_YMINTERVAL": _strict(lambda text: interval_of(text, "YEAR TO MONTH")),
    "FROM_TZ": _strict(lambda at, zone: _zoned(at.nanoseconds, zone_minutes(zone))),
    "SYS_EXTRACT_UTC": _strict(lambda at: Timestamp(at.nanoseconds)),
    "ROWIDTOCHAR": _strict(lambda value: value),
    "CHARTOROWID": _strict(lambda value: value),
    "STANDARD_HASH": _strict(_standard_hash),
    "SYS_CONTEXT": _context_value,
    "TIMESTAMP_TO_SCN": lambda context, _: Decimal(context.scn()),
    "DBMS_FLASHBACK.GET_SYSTEM_CHANGE_NUMBER": lambda context: Decimal(context.scn()),
}  # fmt: skip


def _sum(rows: Sequence[tuple[Value, ...]]) -> Value:
    total: Value = None
    for (value,) in rows:
        if value is not None:
            total = to_number(value) if total is None else add(total, to_number(value))
    return total


def _average(rows: Sequence[tuple[Value, ...]]) -> Value:
    count = sum(value is not None for (value,) in rows)
    return calculated("/", _sum(rows), Decimal(count)) if count else None


def _best(sign: int) -> Callable[[Sequence[tuple[Value, ...]]], Value]:
    def found(rows: Sequence[tuple[Value, ...]]) -> Value:
        best: Value = None
        for (value,) in rows:
            if value is not None and (best is None or (compared(value, best) or 0) * sign > 0):
                best = value
        return best

    return found


def _count(rows: Sequence[tuple[Value, ...]]) -> Value:
    return Decimal(sum(not row or row[0] is not None for row in rows))


def _list(rows: Sequence[tuple[Value, ...]]) -> Value:
    texts = [plain_text(value) for value, _ in rows if value is not None]
    separator = plain_text(rows[0][1]) if rows else ""
    return null_if_empty(separator.join(texts))


AGGREGATES: Final[dict[str, Callable[[Sequence[tuple[Value, ...]]], Value]]] = {
    "COUNT": _count,
    "SUM": _sum,
    "AVG": _average,
    "MIN": _best(-1),
    "MAX": _best(1),
    "LISTAGG": _list,
}


def distinct_rows(rows: Sequence[tuple[Value, ...]]) -> list[tuple[Value, ...]]:
    """Return rows without duplicates."""
    found: dict[Any, tuple[Value, ...]] = {}
    for row in rows:
        found.setdefault(tuple(map(key_of, row)), row)
    return list(found.values())
