"""Kernels that convert NUMBER values to decimal text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from olr_pg.datatypes.number import LENGTH_MAX, NEGATIVE_BIAS, POSITIVE_BIAS, ZERO
from olr_pg.datatypes.number_kernels import (
    AS_ERROR,
    BAD,
    FINITE,
    KEEP,
    MINUS_INFINITY,
    NULL,
    significant,
)
from olr_pg.datatypes.outcomes import INFINITY, MALFORMED, OK, byte_at
from olr_pg.kernels.compile import kernel

if TYPE_CHECKING:
    import numpy.typing as npt

    Bytes = npt.NDArray[np.uint8]
    Longs = npt.NDArray[np.int64]

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
