"""Row changes to the buffers of Arrow arrays: one pass per column, no Python per row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from olr_pg.datatypes.number_kernels import BAD, FINITE, NULL, significant
from olr_pg.datatypes.outcomes import FRACTION, INFINITY, MALFORMED, OK, OVERFLOW, byte_at
from olr_pg.kernels.bytes import copy_forward
from olr_pg.kernels.compile import inlined, kernel
from olr_pg.rendering.json_values import put_u64

if TYPE_CHECKING:
    from olr_pg.transactions.change_columns import ChangeColumns

    U8 = npt.NDArray[np.uint8]
    U64 = npt.NDArray[np.uint64]
    I32 = npt.NDArray[np.int32]
    I64 = npt.NDArray[np.int64]

XID_BYTES: Final = 40
"""More than a text has, whose digits are written in whole groups."""

_SHORT_DIGITS: Final = 18
"""Decimal digits of a value that 64 bits hold."""


@inlined
def _first_value(changes: ChangeColumns, element: int, is_after: bool) -> int:
    return int(changes.entry_after[element] if is_after else changes.entry_first[element])


@inlined
def _values_end(changes: ChangeColumns, element: int, is_after: bool) -> int:
    return int(changes.entry_first[element + 1] if is_after else changes.entry_after[element])


@kernel
def count_values_kernel(
    changes: ChangeColumns, elements: I64, is_after: bool, field_of: I32, count: I64
) -> None:
    """Count the values of one image by field.

    Args:
        elements: the row changes that are wanted.
        is_after: whether the image is the one after the change.
        field_of: of each described column; −1 where it has none.
        count: shape (fields + 1); those of field f are added at f + 1.
    """
    for row in range(elements.size):
        element = elements[row]
        for value in range(
            np.uint64(_first_value(changes, element, is_after)),
            np.uint64(_values_end(changes, element, is_after)),
        ):
            field = field_of[np.uint64(changes.value_column[value])]
            if field >= 0:
                count[field + 1] += 1


@kernel
def place_values_kernel(
    changes: ChangeColumns, elements: I64, is_after: bool, field_of: I32, place: I64,
    row_of: I64, column: I32, offset: I64, length: I64,
) -> None:  # fmt: skip
    """Collect the values of one image, those of a field behind each other.

    Args:
        elements, is_after, field_of: as of `count_values_kernel`.
        place: shape (fields); where the values of each go; moved on.
        row_of: of each value, the place of its change among the elements.
        column, offset, length: of each value.
    """
    for row in range(elements.size):
        element = elements[row]
        for value in range(
            np.uint64(_first_value(changes, element, is_after)),
            np.uint64(_values_end(changes, element, is_after)),
        ):
            number = changes.value_column[value]
            field = field_of[np.uint64(number)]
            if field < 0:
                continue
            at = np.uint64(place[np.uint64(field)])
            place[np.uint64(field)] += 1
            row_of[at], column[at] = row, number
            offset[at], length[at] = changes.value_offset[value], changes.value_length[value]


@kernel
def xid_texts_kernel(xid: U64, out: U8, end: I32) -> None:
    """Write XIDs as `format_xid` does; `out` has room for `XID_BYTES` of each.

    Args:
        xid: packed.
        out: takes the texts, one behind the other.
        end: has one more, the first is 0.
    """
    at = 0
    end[0] = 0
    for row in range(xid.size):
        at = put_u64(xid[row] >> np.uint64(48), out, at)
        out[at] = 46
        at = put_u64((xid[row] >> np.uint64(32)) & np.uint64(0xFFFF), out, at + 1)
        out[at] = 46
        at = put_u64(xid[row] & np.uint64(0xFFFFFFFF), out, at + 1)
        end[row + 1] = at


@kernel
def join_kernel(data: U8, offset: I64, length: I64, out: U8, end: I32) -> None:
    """Write values one behind the other; `end` has one more, the first is 0."""
    at = 0
    end[0] = 0
    for row in range(length.size):
        if length[row] > 0:
            at = copy_forward(out, at, data, offset[row], offset[row] + length[row])
        end[row + 1] = at


@inlined
def _times_add(
    low: np.uint64, high: np.uint64, factor: int, digit: int
) -> tuple[np.uint64, np.uint64]:
    """Multiply a number of 128 bits by at most 100, and add a digit."""
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    times = np.uint64(factor)
    a = (low & mask) * times + np.uint64(digit)
    b = (low >> half) * times + (a >> half)
    return (b << half) | (a & mask), high * times + (b >> half)


@inlined
def _short(data: U8, first: int, count: int, sign: int, power: int) -> int:
    """Return a value of at most `_SHORT_DIGITS` digits, in units of the decimal."""
    bias, value = -1 if sign > 0 else 101, 0
    for i in range(first, first + count - 1):
        value = value * 100 + sign * byte_at(data, i) + bias
    last = sign * byte_at(data, first + count - 1) + bias
    if power < 0:
        return sign * (value * 10 + last // 10)
    value = value * 100 + last
    for _ in range(power):
        value *= 10
    return sign * value


@inlined
def _long(data: U8, first: int, count: int, sign: int, power: int) -> tuple[np.uint64, np.uint64]:
    """Return the same of any value as two words, the low one first."""
    bias = -1 if sign > 0 else 101
    low = high = np.uint64(0)
    for i in range(first, first + count - 1):
        low, high = _times_add(low, high, 100, sign * byte_at(data, i) + bias)
    last = sign * byte_at(data, first + count - 1) + bias
    if power < 0:
        low, high = _times_add(low, high, 10, last // 10)
    else:
        low, high = _times_add(low, high, 100, last)
        for _ in range(power):
            low, high = _times_add(low, high, 10, 0)
    if sign > 0:
        return low, high
    low = ~low + np.uint64(1)
    return low, ~high + (np.uint64(1) if low == np.uint64(0) else np.uint64(0))


@kernel
def decimals_kernel(
    data: U8, offset: I64, length: I64, precision: int, scale: int, out: U64
) -> tuple[int, int]:
    """Convert NUMBER → decimal128 in units of 10^−scale.

    Args:
        data, offset, length: of `ValueColumn`.
        precision, scale: of the decimal.
        out: shape (n, 2); the low and the high word of each.

    Returns:
        (row, outcome): the value that is none, or that such a decimal cannot hold.
    """
    for row in range(length.size):
        out[row, 0] = out[row, 1] = np.uint64(0)
        kind, sign, first, count, exponent = significant(data, offset[row], length[row])
        if kind == NULL or (kind == FINITE and count == 0):
            continue
        if kind != FINITE:
            return row, MALFORMED if kind == BAD else INFINITY
        bias = -1 if sign > 0 else 101
        power = 2 * (exponent - count + 1) + scale  # of ten, that the digits are multiplied by
        last = sign * byte_at(data, first + count - 1) + bias
        if power < -1 or (power == -1 and last % 10 != 0):
            return row, FRACTION
        digits = 2 * count + power - (1 if sign * byte_at(data, first) + bias < 10 else 0)
        if digits > precision:
            return row, OVERFLOW
        if digits <= _SHORT_DIGITS:
            value = _short(data, first, count, sign, power)
            out[row, 0] = np.uint64(np.int64(value))
            out[row, 1] = ~np.uint64(0) if value < 0 else np.uint64(0)
        else:
            out[row, 0], out[row, 1] = _long(data, first, count, sign, power)
    return -1, OK
