"""Cells to the bytes that a row stores.

Facts: values-and-lobs Part A (NUMBER, DATE, TIMESTAMP). The printed forms are in `truth`, made from
the same cells and not from these bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.kernels.compile import part
from olr_pg.simulator.named.calendar import put_date
from olr_pg.simulator.named.instance_memory import (
    AREA_COUNT,
    AREA_END,
    AREA_FIELDS,
    AREA_SIZES,
    C_KIND,
    C_POOL,
    C_SCALE,
    KIND_DATE,
    KIND_NUMBER,
    KIND_TIMESTAMP,
    NULL,
    POOL_RAW_AT,
    POOL_RAW_SIZE,
    VALUE_AT,
)
from olr_pg.simulator.named.put import copy, put_be32

if TYPE_CHECKING:
    from olr_pg.simulator.named.put import Bytes, Ints

MICROSECONDS: Final = 1_000_000
SHORT_VALUE: Final = 250


@part
def put_number(m: Ints, d: Bytes, at: int, value: int, scale: int) -> int:
    """Write the NUMBER `value` / 10 ** `scale`, of at most 17 digits; return its size."""
    if value == 0:
        d[at] = 0x80
        return 1
    negative = value < 0
    rest = -value if negative else value
    exponent = scale
    if exponent & 1:
        rest *= 10
        exponent += 1
    while rest % 100 == 0:
        rest //= 100
        exponent -= 2
    scratch, count = m[VALUE_AT], 0
    while rest > 0:
        d[scratch + count] = rest % 100
        rest //= 100
        count += 1
    high = count - 1 - exponent // 2
    d[at] = 62 - high if negative else 193 + high
    for i in range(count):
        pair = d[scratch + count - 1 - i]
        d[at + 1 + i] = 101 - pair if negative else pair + 1
    if not negative:
        return count + 1
    d[at + 1 + count] = 102
    return count + 2


@part
def put_cell(m: Ints, d: Bytes, at: int, column: int, cell: int) -> int:
    """Write the stored bytes of a cell that is not NULL; return their number."""
    kind = m[C_KIND + column]
    if kind == KIND_NUMBER:
        return put_number(m, d, at, cell, m[C_SCALE + column])
    if kind == KIND_DATE:
        put_date(d, at, cell)
        return 7
    if kind == KIND_TIMESTAMP:
        put_date(d, at, cell // MICROSECONDS)
        fraction = cell % MICROSECONDS
        if fraction == 0:
            return 7
        put_be32(d, at + 7, fraction * 1000)
        return 11
    entry = m[C_POOL + column] + cell
    size = m[m[POOL_RAW_SIZE] + entry]
    copy(d, at, m[m[POOL_RAW_AT] + entry], size)
    return int(size)


@part
def add_cell(m: Ints, d: Bytes, area: int, column: int, cell: int) -> int:
    """Add a field with the cell, empty for NULL; return the bytes that it takes in a row."""
    at, count = m[AREA_END + area], m[AREA_COUNT + area]
    m[AREA_COUNT + area] = count + 1
    place = area * AREA_FIELDS + count
    if cell == NULL:
        m[AREA_SIZES + place] = 0
        return 1
    size = put_cell(m, d, at, column, cell)
    end = at + (size + 3 & ~3)
    for i in range(at + size, end):
        d[i] = 0
    m[AREA_SIZES + place] = size
    m[AREA_END + area] = end
    return size + 1 if size <= SHORT_VALUE else size + 3
