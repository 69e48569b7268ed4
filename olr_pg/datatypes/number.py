"""Converts NUMBER and FLOAT values, single ones and columns, to PostgreSQL's types and to decimal
text. Oracle stores a NUMBER as an exponent byte and base-100 digits (values-and-lobs §3).

The kernels read the *significant digits* of a value: its base-100 digits without zeros at either
end. So all stored forms of a number give the same result. With the n base-100 digits d[0] … d[n −
1] and the base-100 exponent E, the value is ± Σ d[i] · 100^(E − i).
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from olr_pg.datatypes.binary_float import flag_numbers, no_flag, shortest
from olr_pg.datatypes.columns import ValueColumn, fixed_width, nulls
from olr_pg.datatypes.outcomes import (
    FRACTION,
    INFINITY,
    MALFORMED,
    OK,
    OVERFLOW,
    Outcome,
    byte_at,
    check,
    fail,
    malformed,
)
from olr_pg.datatypes.policies import DEFAULT_POLICIES, Counters, Policies
from olr_pg.errors import Code, OlrPgError
from olr_pg.kernels.compile import inlined_kernel, kernel

if TYPE_CHECKING:
    Bytes = npt.NDArray[np.uint8]
    Longs = npt.NDArray[np.int64]
    Shorts = npt.NDArray[np.uint16]


ZERO: Final = 0x80
POSITIVE_BIAS: Final = 193
NEGATIVE_BIAS: Final = 62
TERMINATOR: Final = 0x66
LENGTH_MAX: Final = 22
_DIGITS_MAX: Final = 20
_EXPONENT_MIN: Final = -65
_EXPONENT_MAX: Final = 62


def decode_number(raw: bytes) -> str:
    """Decode a NUMBER to exact decimal text, without an exponent and without redundant zeros.
    Infinities are ``Infinity`` and ``-Infinity``.

    Raises:
        OlrPgError: 2050, the bytes are not a NUMBER.
    """
    if raw == b"\x00":
        return "-Infinity"
    if raw == b"\xff\x65":
        return "Infinity"
    if raw == b"\x80":
        return "0"
    negative, exponent, digits = _read_digits(raw)
    text = "".join(f"{digit:02d}" for digit in digits)
    point = 2 * (exponent + 1)
    if point <= 0:
        whole, part = "", "0" * -point + text
    else:
        whole, part = text[:point].ljust(point, "0"), text[point:]
    whole, part = whole.lstrip("0") or "0", part.rstrip("0")
    number = f"{whole}.{part}" if part else whole
    return f"-{number}" if negative and number != "0" else number


def _read_digits(raw: bytes) -> tuple[bool, int, list[int]]:
    if not 0 < len(raw) <= LENGTH_MAX:
        raise malformed("NUMBER", raw)
    negative = raw[0] < ZERO
    if negative:
        mantissa = raw[1:-1] if raw[-1] == TERMINATOR else raw[1:]
        digits = [101 - byte for byte in mantissa]
    else:
        digits = [byte - 1 for byte in raw[1:]]
    if not digits or min(digits) < 0 or max(digits) > 99:
        raise malformed("NUMBER", raw)
    return negative, NEGATIVE_BIAS - raw[0] if negative else raw[0] - POSITIVE_BIAS, digits


def encode_number(value: Decimal | int | str) -> bytes:
    """Encode a decimal value as Oracle's bytes. The value is rounded half up to 20 base-100 digits,
    as in Oracle.

    Raises:
        OlrPgError: 2058, the value is not a number, or it is out of range (values-and-lobs §3.4).
    """
    try:
        number = Decimal(value)
    except InvalidOperation as error:
        raise OlrPgError(
            Code.VALUE_NOT_EXPRESSIBLE_IN_ORACLE, f"not a number: {value!r}"
        ) from error
    if number.is_infinite():
        return b"\xff\x65" if number > 0 else b"\x00"
    if number.is_nan():
        raise OlrPgError(Code.VALUE_NOT_EXPRESSIBLE_IN_ORACLE, "NUMBER has no NaN")
    digits, exponent = _base_100(number)
    if not digits or exponent < _EXPONENT_MIN:
        return b"\x80"
    if exponent > _EXPONENT_MAX:
        raise OlrPgError(
            Code.VALUE_NOT_EXPRESSIBLE_IN_ORACLE, f"out of the range of NUMBER: {value}"
        )
    if number > 0:
        return bytes([POSITIVE_BIAS + exponent, *(digit + 1 for digit in digits)])
    terminator = [TERMINATOR] if len(digits) < _DIGITS_MAX else []
    return bytes([NEGATIVE_BIAS - exponent, *(101 - digit for digit in digits), *terminator])


def _base_100(number: Decimal) -> tuple[list[int], int]:
    """Return (base-100 digits without zeros at either end, exponent of the first digit) of a finite
    number.
    """
    _, decimal_digits, scale = number.as_tuple()
    text, power = "".join(map(str, decimal_digits)), int(scale)
    if power % 2:
        text, power = text + "0", power - 1
    text = text.zfill(len(text) + len(text) % 2)
    digits = [int(text[i : i + 2]) for i in range(0, len(text), 2)]
    exponent = power // 2 + len(digits) - 1
    while digits and digits[0] == 0:
        del digits[0]
        exponent -= 1
    if len(digits) > _DIGITS_MAX:
        digits, exponent = _rounded(digits, exponent)
    while digits and digits[-1] == 0:
        del digits[-1]
    return digits, exponent


def _rounded(digits: list[int], exponent: int) -> tuple[list[int], int]:
    kept = int("".join(f"{digit:02d}" for digit in digits[:_DIGITS_MAX]))
    kept += digits[_DIGITS_MAX] >= 50
    text = str(kept)
    text = text.zfill(len(text) + len(text) % 2)
    exponent += len(text) // 2 - _DIGITS_MAX
    return [int(text[i : i + 2]) for i in range(0, len(text), 2)], exponent


NULL: Final = 0
FINITE: Final = 1
PLUS_INFINITY: Final = 2
MINUS_INFINITY: Final = 3
BAD: Final = -1
"""The kinds of NUMBER that `significant` returns, from `NULL` to `BAD`."""

KEEP: Final = 0
AS_NULL: Final = 1
AS_ERROR: Final = 2
"""How the kernels handle an infinite value: `KEEP`, `AS_NULL` or `AS_ERROR`."""

_EXACT_POWER_MAX: Final = 22
_POWERS_OF_TEN: Final = np.array([10.0**i for i in range(_EXACT_POWER_MAX + 1)], np.float64)
NOT_SHORT: Final = -(2**63)
"""The result of `short_integer` for a value that it does not decode."""
_POWERS_OF_HUNDRED: Final = np.array([100**i for i in range(10)], np.int64)


@kernel
def significant(data: Bytes, start: int, length: int) -> tuple[int, int, int, int, int]:
    """Return (kind, sign, position of the first digit, number of digits, exponent) of the NUMBER at
    `start`.

    The number of digits is 0 for zero. A digit is ``byte − 1`` if the sign is 1, and ``101 − byte``
    if it is −1.
    """
    if length <= 0:
        return NULL, 1, start, 0, 0
    head = byte_at(data, start)
    if length == 1:
        if head == ZERO:
            return FINITE, 1, start, 0, 0
        if head == 0:
            return MINUS_INFINITY, -1, start, 0, 0
        return BAD, 1, start, 0, 0
    if length > LENGTH_MAX:
        return BAD, 1, start, 0, 0
    first, end = start + 1, start + length
    if head >= ZERO:
        if length == 2 and head == 0xFF and data[first] == 0x65:
            return PLUS_INFINITY, 1, start, 0, 0
        sign, zero, low, high, exponent = 1, 1, 1, 100, head - POSITIVE_BIAS
    else:
        if data[end - 1] == TERMINATOR:
            end -= 1
        sign, zero, low, high, exponent = -1, 101, 2, 101, NEGATIVE_BIAS - head
    if first == end:
        return BAD, 1, start, 0, 0
    faults = 0  # negative if a byte is out of range: saves branches
    for i in range(first, end):
        digit = byte_at(data, i)
        faults |= (digit - low) | (high - digit)
    if faults < 0:
        return BAD, 1, start, 0, 0
    while end > first and data[end - 1] == zero:
        end -= 1
    while first < end and data[first] == zero:
        first += 1
        exponent -= 1
    # Every stored form of zero gets the sign 1.
    return FINITE, sign if first < end else 1, first, end - first, exponent


@inlined_kernel
def _digit(byte: int, sign: int) -> int:
    return byte - 1 if sign > 0 else 101 - byte


@inlined_kernel
def _integer(
    data: Bytes, first: int, count: int, sign: int, exponent: int
) -> tuple[int, np.uint64]:
    """Return (outcome, absolute value) of an integer below 10^19."""
    if count == 0:
        return OK, np.uint64(0)
    if exponent > 9 or (exponent == 9 and _digit(byte_at(data, first), sign) > 9):
        return OVERFLOW, np.uint64(0)
    if count > exponent + 1:
        return FRACTION, np.uint64(0)
    magnitude = np.uint64(0)
    for i in range(first, first + count):
        magnitude = magnitude * np.uint64(100) + np.uint64(_digit(byte_at(data, i), sign))
    for _ in range(exponent + 1 - count):
        magnitude *= np.uint64(100)
    return OK, magnitude


@inlined_kernel
def short_integer(data: Bytes, start: int, length: int) -> int:
    """Decode a canonical integer below 10^18 in one pass. Returns `NOT_SHORT` for any other
    value.
    """
    if length < 2:
        return NOT_SHORT
    head = byte_at(data, start)
    end = start + length
    if head >= ZERO:
        sign, bias, exponent = 1, -1, head - POSITIVE_BIAS
    else:
        sign, bias, exponent = -1, 101, NEGATIVE_BIAS - head
        if data[end - 1] == TERMINATOR:
            end -= 1
    zeros = exponent + start + 2 - end
    if zeros < 0 or exponent > 8 or end - start < 2:
        return NOT_SHORT
    value = 0
    faults = 0
    for i in range(start + 1, end):
        digit = sign * byte_at(data, i) + bias
        faults |= digit | (99 - digit)
        value = value * 100 + digit
    if faults < 0:
        return NOT_SHORT
    return int(sign * value * _POWERS_OF_HUNDRED[zeros])


@kernel
def integers_kernel(
    data: Bytes,
    offset: Longs,
    length: Longs,
    high: int,
    infinity: int,
    out: Longs,
    null: npt.NDArray[np.bool_],
) -> tuple[int, int, int]:
    """Convert NUMBER to int64 in the range −high − 1 to high. Returns (failed row or −1, outcome,
    number of infinite values).
    """
    infinite = 0
    for row in range(len(length)):
        short = short_integer(data, offset[row], length[row])
        if -high - 1 <= short <= high and short != NOT_SHORT:
            out[row] = short
            continue
        kind, sign, first, count, exponent = significant(data, offset[row], length[row])
        if kind == FINITE:
            outcome, magnitude = _integer(data, first, count, sign, exponent)
            if outcome != OK:
                return row, outcome, infinite
            if magnitude > np.uint64(high):
                if sign > 0 or magnitude != np.uint64(high) + np.uint64(1):
                    return row, OVERFLOW, infinite
                out[row] = -high - 1
            else:
                out[row] = sign * np.int64(magnitude)
        elif kind == BAD:
            return row, MALFORMED, infinite
        elif kind != NULL:
            if infinity == AS_ERROR:
                return row, INFINITY, infinite
            infinite += 1
            null[row] = True
    return -1, OK, infinite


@inlined_kernel
def _big_endian(value: int) -> int:
    return (value & 0xFF) << 8 | (value >> 8) & 0xFF


@inlined_kernel
def _write_numeric(
    data: Bytes, first: int, count: int, sign: int, exponent: int, out: Shorts, at: int
) -> int:
    """Write a finite value as PostgreSQL numeric. Returns its size in 16-bit units, or 0 for a bad
    digit.
    """
    if count == 0:
        for i in range(4):
            out[at + i] = 0
        return 4
    bias = -1 if sign > 0 else 101
    pad = 1 - (exponent & 1)
    end = first + count
    last = sign * byte_at(data, end - 1) + bias
    dscale = -2 * (exponent - count + 1)
    if dscale <= 0:
        dscale = 0
    elif last % 10 == 0:
        dscale -= 1
    out[at] = _big_endian((count + pad + 1) >> 1)
    out[at + 1] = _big_endian(exponent >> 1)
    out[at + 2] = 0 if sign > 0 else 0x40
    out[at + 3] = _big_endian(dscale)
    place = at + 4
    i = first
    faults = last | (99 - last)
    if pad:
        digit = sign * byte_at(data, i) + bias
        faults |= digit | (99 - digit)
        out[place] = _big_endian(digit)
        place += 1
        i += 1
    while i + 1 < end:
        high = sign * byte_at(data, i) + bias
        low = sign * byte_at(data, i + 1) + bias
        faults |= high | (99 - high) | low | (99 - low)
        out[place] = _big_endian(high * 100 + low)
        place += 1
        i += 2
    if i < end:
        out[place] = _big_endian(last * 100)
        place += 1
    return place - at if faults >= 0 else 0


@inlined_kernel
def write_canonical(data: Bytes, start: int, length: int, out: Shorts, at: int) -> int:
    """Write a value in one pass, if it is in canonical form. Returns the result of
    `_write_numeric`, or 0 for any other value.
    """
    if length < 2 or length > 21:
        return 0
    head = byte_at(data, start)
    first, end = start + 1, start + length
    if head >= ZERO:
        sign, zero, exponent = 1, 1, head - POSITIVE_BIAS
    else:
        sign, zero, exponent = -1, 101, NEGATIVE_BIAS - head
        if data[end - 1] == TERMINATOR:
            end -= 1
    if first == end or data[first] == zero or data[end - 1] == zero:
        return 0
    return _write_numeric(data, first, end - first, sign, exponent, out, at)


@kernel
def numeric_kernel(
    data: Bytes,
    offset: Longs,
    length: Longs,
    infinity: int,
    out: Shorts,
    out_offset: Longs,
    out_length: Longs,
) -> tuple[int, int, int, int]:
    """Convert NUMBER to binary numeric, written in 16-bit units. The machine must be little-endian.

    Returns:
        (failed row or −1, outcome, number of infinite values, units written). `out_offset` and
        `out_length` are in bytes.
    """
    at = 0
    infinite = 0
    for row in range(len(length)):
        out_offset[row] = 2 * at
        size = write_canonical(data, offset[row], length[row], out, at)
        if size:
            out_length[row] = 2 * size
            at += size
            continue
        out_length[row] = -1
        kind, sign, first, count, exponent = significant(data, offset[row], length[row])
        if kind == FINITE:
            size = _write_numeric(data, first, count, sign, exponent, out, at)
            out_length[row] = 2 * size
            at += size
        elif kind == BAD:
            return row, MALFORMED, infinite, at
        elif kind != NULL:
            if infinity == AS_ERROR:
                return row, INFINITY, infinite, at
            infinite += 1
            if infinity == KEEP:
                for i in range(4):
                    out[at + i] = 0
                out[at + 2] = 0xD0 if kind == PLUS_INFINITY else 0xF0
                out_length[row] = 8
                at += 4
    return -1, OK, infinite, at


@kernel
def floats_kernel(
    data: Bytes,
    offset: Longs,
    length: Longs,
    infinity: int,
    digits_max: int,
    out: npt.NDArray[np.float64],
    null: npt.NDArray[np.bool_],
    slow: npt.NDArray[np.bool_],
) -> tuple[int, int, int]:
    """Convert NUMBER to float64 if exact arithmetic gives the result; mark all other rows in
    `slow`.
    """
    infinite = 0
    for row in range(len(length)):
        kind, sign, first, count, exponent = significant(data, offset[row], length[row])
        if kind == FINITE:
            power = 2 * (exponent - count + 1)
            if count > digits_max or power > _EXACT_POWER_MAX or power < -_EXACT_POWER_MAX:
                slow[row] = True
                continue
            magnitude = np.int64(0)
            for i in range(first, first + count):
                magnitude = magnitude * 100 + _digit(byte_at(data, i), sign)
            if magnitude > (1 << 53):
                slow[row] = True
            elif power >= 0:
                out[row] = sign * (np.float64(magnitude) * _POWERS_OF_TEN[power])
            else:
                out[row] = sign * (np.float64(magnitude) / _POWERS_OF_TEN[-power])
        elif kind == BAD:
            return row, MALFORMED, infinite
        elif kind != NULL:
            if infinity == AS_ERROR:
                return row, INFINITY, infinite
            infinite += 1
            if infinity == AS_NULL:
                null[row] = True
            else:
                out[row] = np.inf if kind == PLUS_INFINITY else -np.inf
    return -1, OK, infinite


_TENS: Final = np.array([48 + i // 10 for i in range(100)], np.uint8)
_UNITS: Final = np.array([48 + i % 10 for i in range(100)], np.uint8)


@kernel
def text_size_kernel(data: Bytes, offset: Longs, length: Longs) -> int:
    """Return an upper bound for the number of bytes that `text_kernel` writes."""
    total = 0
    for row in range(len(length)):
        if length[row] <= 0:
            continue
        head = int(data[offset[row]])
        exponent = head - POSITIVE_BIAS if head >= ZERO else NEGATIVE_BIAS - head
        digits = 2 * min(length[row], LENGTH_MAX)
        total += 12 + digits + (2 * exponent if exponent > 0 else -2 * exponent)
    return total


@kernel
def write_decimal(
    data: Bytes, first: int, count: int, sign: int, exponent: int, out: Bytes, at: int
) -> int:
    """Write one finite value in decimal and return its size."""
    place = at
    if count == 0:
        out[place] = 48
        return 1
    if sign < 0:
        out[place] = 45
        place += 1
    bias = -1 if sign > 0 else 101
    whole = exponent + 1
    i = first
    end = first + count
    if whole > 0:
        digit = sign * byte_at(data, i) + bias
        if digit >= 10:
            out[place] = _TENS[digit]
            place += 1
        out[place] = _UNITS[digit]
        place += 1
        i += 1
        point = min(first + whole, end)
        while i < point:
            digit = sign * byte_at(data, i) + bias
            out[place] = _TENS[digit]
            out[place + 1] = _UNITS[digit]
            place += 2
            i += 1
        for _ in range(2 * (whole - count)):
            out[place] = 48
            place += 1
    else:
        out[place] = 48
        place += 1
    if i < end:
        out[place] = 46
        place += 1
        for _ in range(-2 * whole):
            out[place] = 48
            place += 1
        while i < end:
            digit = sign * byte_at(data, i) + bias
            out[place] = _TENS[digit]
            out[place + 1] = _UNITS[digit]
            place += 2
            i += 1
        if out[place - 1] == 48:
            place -= 1
    return place - at


@kernel
def _write_infinity(negative: bool, out: Bytes, at: int) -> int:
    place = at
    if negative:
        out[place] = 45
        place += 1
    for i, letter in enumerate((73, 110, 102, 105, 110, 105, 116, 121)):
        out[place + i] = letter
    return place + 8 - at


@kernel
def text_kernel(
    data: Bytes,
    offset: Longs,
    length: Longs,
    infinity: int,
    out: Bytes,
    out_offset: Longs,
    out_length: Longs,
) -> tuple[int, int, int, int]:
    """Convert NUMBER to decimal text. Returns (failed row or −1, outcome, number of infinite
    values, bytes written).
    """
    at = 0
    infinite = 0
    for row in range(len(length)):
        kind, sign, first, count, exponent = significant(data, offset[row], length[row])
        out_offset[row] = at
        out_length[row] = -1
        if kind == FINITE:
            size = write_decimal(data, first, count, sign, exponent, out, at)
            out_length[row] = size
            at += size
        elif kind == BAD:
            return row, MALFORMED, infinite, at
        elif kind != NULL:
            if infinity == AS_ERROR:
                return row, INFINITY, infinite, at
            infinite += 1
            if infinity == KEEP:
                size = _write_infinity(kind == MINUS_INFINITY, out, at)
                out_length[row] = size
                at += size
    return -1, OK, infinite, at


_INFINITY_RULES: Final = {"keep": KEEP, "null": AS_NULL, "error": AS_ERROR}

_PG_NUMERIC_UNITS_MAX: Final = 4 + 11
_FLOAT32_TIE: Final = 1 << 28


def number_to_integers(
    values: ValueColumn, width: int, policies: Policies = DEFAULT_POLICIES
) -> tuple[ValueColumn, Counters]:
    """Convert NUMBER to int2, int4 or int8.

    Args:
        values: NUMBER values.
        width: 2, 4 or 8 bytes.
        policies: `infinity` applies; because integers have no infinity, `keep` is an error here.

    Raises:
        OlrPgError: 2050 malformed, 2053 out of range or infinite, 2057 with a fraction.
    """
    out = np.zeros(len(values.length), np.int64)
    null = nulls(values)
    rule = AS_NULL if policies.infinity == "null" else AS_ERROR
    high = (1 << 8 * width - 1) - 1
    row, outcome, infinite = integers_kernel(*values, high, rule, out, null)
    check(row, outcome, values, f"NUMBER to int{width}")
    return fixed_width(out.astype(f">i{width}"), null), Counters(infinity=infinite)


def number_to_boolean(
    values: ValueColumn, policies: Policies = DEFAULT_POLICIES
) -> tuple[ValueColumn, Counters]:
    """Convert NUMBER to bool: 1 is true and 0 is false, unless `boolean_pairs` contains other
    numbers.

    Raises:
        OlrPgError: 2050 malformed, 2053 neither true nor false, 2057 with a fraction.
    """
    integers, counters = number_to_integers(values, 8, policies)
    number = integers.data.view(">i8")
    known = flag_numbers(policies.boolean_pairs)
    odd = np.flatnonzero((integers.length > 0) & ~np.isin(number, list(known)))
    if len(odd):
        raise no_flag(policies.boolean_pairs, row=int(odd[0]))
    true = np.isin(number, [one for one, is_true in known.items() if is_true])
    return fixed_width(true.astype(np.uint8), integers.length < 0), counters


def number_to_numeric(
    values: ValueColumn, policies: Policies = DEFAULT_POLICIES
) -> tuple[ValueColumn, Counters]:
    """Convert NUMBER to PostgreSQL's binary numeric (type-mapping §3.2), without trailing zeros.

    Raises:
        OlrPgError: 2050 malformed, 2053 infinite where the policy forbids it.
    """
    count = len(values.length)
    out = np.empty(count * _PG_NUMERIC_UNITS_MAX, np.uint16)
    offset, length = np.empty(count, np.int64), np.empty(count, np.int64)
    rule = _INFINITY_RULES[policies.infinity]
    row, outcome, infinite, used = numeric_kernel(*values, rule, out, offset, length)
    check(row, outcome, values, "NUMBER to numeric")
    return ValueColumn(out[:used].view(np.uint8), offset, length), Counters(infinity=infinite)


def number_to_text(
    values: ValueColumn, policies: Policies = DEFAULT_POLICIES
) -> tuple[ValueColumn, Counters]:
    """Convert NUMBER to the text that `decode_number` returns, in ASCII.

    Raises:
        OlrPgError: 2050 malformed, 2053 infinite where the policy forbids it.
    """
    count = len(values.length)
    out = np.empty(text_size_kernel(*values), np.uint8)
    offset, length = np.empty(count, np.int64), np.empty(count, np.int64)
    rule = _INFINITY_RULES[policies.infinity]
    row, outcome, infinite, used = text_kernel(*values, rule, out, offset, length)
    check(row, outcome, values, "NUMBER to text")
    return ValueColumn(out[:used], offset, length), Counters(infinity=infinite)


def number_to_floats(
    values: ValueColumn, width: int, policies: Policies = DEFAULT_POLICIES
) -> tuple[ValueColumn, Counters]:
    """Convert NUMBER to float4 or float8, correctly rounded.

    The kernel converts a value if one multiplication or division of exact doubles gives the result.
    Other values (with many digits, or large powers of ten) are converted one by one from their
    decimal text. A value counts as `inexact` if the shortest decimal text of its float is a
    different number.
    """
    count = len(values.length)
    out, null, slow = np.zeros(count), nulls(values), np.zeros(count, np.bool_)
    rule = _INFINITY_RULES[policies.infinity]
    digits_max = 8 if width == 8 else 3
    row, outcome, infinite = floats_kernel(*values, rule, digits_max, out, null, slow)
    check(row, outcome, values, f"NUMBER to float{width}")
    if width == 4:
        # If the double is exactly between two floats, it is unknown to which of them the decimal
        # value is nearer.
        slow |= (out.view(np.int64) & (2 * _FLOAT32_TIE - 1)) == _FLOAT32_TIE
        slow &= np.isfinite(out) & ~null
    inexact = 0
    for index in np.flatnonzero(slow).tolist():
        text = decode_number(values.value(index) or b"")
        out[index] = float(text) if width == 8 else _nearest_float32(text)
        inexact += Decimal(text) != Decimal(shortest(float(out[index]), width))
    with np.errstate(over="ignore"):
        items = out.astype(f">f{width}")
    over = np.flatnonzero(np.isinf(items) & ~np.isinf(out))
    if len(over):
        fail(int(over[0]), Outcome.OVERFLOW, values, f"NUMBER to float{width}")
    return fixed_width(items, null), Counters(infinity=infinite, inexact=inexact)


def _nearest_float32(text: str) -> float:
    """Return, as a double, the 4-byte float nearest to the decimal `text`."""
    double = float(text)
    if np.float64(double).view(np.int64) & (2 * _FLOAT32_TIE - 1) != _FLOAT32_TIE:
        return double
    exact, middle = Fraction(text), Fraction(double)
    if exact == middle:
        return double
    return float(np.nextafter(double, np.inf if exact > middle else -np.inf))
