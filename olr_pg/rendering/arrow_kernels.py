"""Parsed messages to the buffers of Arrow arrays: one pass per column, no Python per row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from olr_pg.applier.received.parse import read_u16, read_u32
from olr_pg.datatypes.number_kernels import BAD, FINITE, NULL, significant
from olr_pg.datatypes.outcomes import FRACTION, INFINITY, MALFORMED, OK, OVERFLOW, byte_at
from olr_pg.kernels.bytes import copy_forward
from olr_pg.kernels.compile import inlined, kernel
from olr_pg.rendering.json_values import put_u64

if TYPE_CHECKING:
    U8 = npt.NDArray[np.uint8]
    U32 = npt.NDArray[np.uint32]
    U64 = npt.NDArray[np.uint64]
    I32 = npt.NDArray[np.int32]
    I64 = npt.NDArray[np.int64]

XID_BYTES: Final = 40
"""More than a text has, whose digits are written in whole groups."""

_SHORT_DIGITS: Final = 18
"""Decimal digits of a value that 64 bits hold."""


@kernel
def commit_times_kernel(data: U8, big: bool, out: U32) -> int:
    """Collect the redo times of the Commits in whole messages; return how many."""
    at = count = 0
    while data.size - at >= 35:
        size = int(np.int64(read_u32(data, at, big)))
        if data[at + 6] == 2:
            out[count] = read_u32(data, at + 31, big)
            count += 1
        at += 4 + size
    return count


@kernel
def number_rows_kernel(
    kind: I32, layout: I32, transaction: int, position: int, out: I32, out_position: I32
) -> tuple[int, int]:
    """Give row changes the numbers of their transactions, and their places in these.

    Args:
        kind, layout: of `Answers`.
        transaction: how many Commits came before.
        position: how many row changes of the open transaction came before.
        out: of each answer, its transaction's number.
        out_position: of each row change, its place in its transaction.

    Returns:
        (transaction, position) behind them.
    """
    for i in range(kind.size):
        out[i], out_position[i] = transaction, position
        if layout[i] >= 0:
            position += 1
        elif kind[i] == 2:
            transaction += 1
            position = 0
        elif kind[i] == 1:
            position = 0
    return transaction, position


@kernel
def gather_kernel(
    entry_first: I64,
    value_offset: I64,
    value_length: I64,
    layout: I32,
    elements: I64,
    entry: I32,
    offset: I64,
    length: I64,
) -> None:
    """Collect the values of one column.

    Args:
        entry_first, value_offset, value_length, layout: of `Answers`.
        entry: by layout, which of its values it is; −1 where it has none.
        offset, length: shape (elements); length −1 where there is none.
    """
    for row in range(elements.size):
        element = elements[row]
        which = entry[layout[element]]
        offset[row], length[row] = 0, -1
        if which >= 0:
            value = entry_first[element] + which
            offset[row], length[row] = value_offset[value], value_length[value]


@kernel
def sessions_kernel(
    data: U8, body: I64, elements: I64, big: bool, session: I64, serial: I64
) -> None:
    """Read the sessions of Begins.

    Args:
        data, body: of `Answers`.
        big: byte order of the messages.
        session, serial: shape (elements).
    """
    for row in range(elements.size):
        at = body[elements[row]]
        session[row] = np.int64(read_u32(data, at + 31, big))
        serial[row] = np.int64(read_u16(data, at + 29, big))


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
def row_ids_kernel(data: U8, body: I64, elements: I64, offset: I64, length: I64) -> None:
    """Find the ROWIDs of row changes."""
    for row in range(elements.size):
        at = body[elements[row]]
        offset[row] = at + 36 + byte_at(data, at + 33) + byte_at(data, at + 34)
        length[row] = byte_at(data, at + 35)


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
