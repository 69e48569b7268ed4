"""Kernels that convert the digits of NUMBER values to integers, numeric and floats.

The kernels read the *significant digits* of a value: its base-100 digits without zeros at either
end. So all stored forms of a number give the same result. With the n base-100 digits d[0] … d[n −
1] and the base-100 exponent E, the value is ± Σ d[i] · 100^(E − i).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from olr_pg.datatypes.number import LENGTH_MAX, NEGATIVE_BIAS, POSITIVE_BIAS, TERMINATOR, ZERO
from olr_pg.datatypes.outcomes import FRACTION, INFINITY, MALFORMED, OK, OVERFLOW, byte_at
from olr_pg.kernels.compile import inlined_kernel, kernel

if TYPE_CHECKING:
    Bytes = npt.NDArray[np.uint8]
    Shorts = npt.NDArray[np.uint16]
    Longs = npt.NDArray[np.int64]

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
