"""Conversion of columns of NUMBER values to PostgreSQL's types."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Final

import numpy as np

from olr_pg.datatypes.binary_float import shortest
from olr_pg.datatypes.boolean import flag_numbers, no_flag
from olr_pg.datatypes.columns import ValueColumn, fixed_width, nulls
from olr_pg.datatypes.number import decode_number
from olr_pg.datatypes.number_kernels import (
    AS_ERROR,
    AS_NULL,
    KEEP,
    floats_kernel,
    integers_kernel,
    numeric_kernel,
)
from olr_pg.datatypes.number_text import text_kernel, text_size_kernel
from olr_pg.datatypes.outcomes import Outcome, check, fail
from olr_pg.datatypes.policies import DEFAULT_POLICIES, Counters, Policies

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
