"""The most common conversions of values, one value at a time, for kernels that convert whole rows.

`plain_form` returns the conversion that a column can use. `write_plain` converts a value, or
returns that the caller must use the column's `Encoder`. The encoder handles every form and every
policy, and reports errors. `write_plain` and the encoder write the same bytes (tests compare them).
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from olr_pg.datatypes.charsets import column_charset
from olr_pg.datatypes.mapping import OracleColumn, OracleType, PgKind
from olr_pg.datatypes.number import NOT_SHORT, short_integer, write_canonical
from olr_pg.datatypes.temporal import label_micros
from olr_pg.datatypes.text import ascii_run, utf8_step
from olr_pg.kernels.bytes import copy_bytes, copy_forward, store
from olr_pg.kernels.compile import inlined

if TYPE_CHECKING:
    from olr_pg.datatypes.convert import DatabaseFacts

    Bytes = npt.NDArray[np.uint8]
    Shorts = npt.NDArray[np.uint16]


class PlainForm(IntEnum):
    """A conversion of `write_plain`."""

    NONE = 0
    INT2 = 1
    INT4 = 2
    INT8 = 3
    NUMERIC = 4
    UTF8 = 5
    ASCII = 6
    BYTES = 7
    TIMESTAMP = 8
    TIMESTAMP_TZ = 9


PLAIN_BYTES_MAX: Final = 32
"""Maximum bytes of a written value with its alignment; not for text and RAW."""

ENCODED: Final = 255
"""A form for `put_field`: the value already has PostgreSQL's form."""

_NULL: Final = -1
_LEFT: Final = -2

_NUMERIC = int(PlainForm.NUMERIC)
_INT8 = int(PlainForm.INT8)
_UTF8 = int(PlainForm.UTF8)
_ASCII = int(PlainForm.ASCII)
_TIMESTAMP = int(PlainForm.TIMESTAMP)
_TIMESTAMP_TZ = int(PlainForm.TIMESTAMP_TZ)

_TEXT: Final = frozenset((OracleType.VARCHAR2, OracleType.VARCHAR))
_TEXT_KINDS: Final = frozenset((PgKind.TEXT, PgKind.VARCHAR, PgKind.BPCHAR))
_NUMBERS: Final = {
    PgKind.INT2: PlainForm.INT2,
    PgKind.INT4: PlainForm.INT4,
    PgKind.INT8: PlainForm.INT8,
    PgKind.NUMERIC: PlainForm.NUMERIC,
}


def plain_form(column: OracleColumn, kind: PgKind, facts: DatabaseFacts) -> PlainForm:
    """Choose the plain conversion of a column to `kind`. Returns `NONE` if there is none.

    Args:
        column: the column that the encoder was made for.
        kind: the encoder's kind.
    """
    code = column.type_code
    if code == OracleType.NUMBER:
        return _NUMBERS.get(kind, PlainForm.NONE)
    if code in (OracleType.DATE, OracleType.TIMESTAMP) and kind is PgKind.TIMESTAMP:
        return PlainForm.TIMESTAMP
    if code == OracleType.TIMESTAMP_TZ and kind is PgKind.TIMESTAMPTZ:
        return PlainForm.TIMESTAMP_TZ
    if code == OracleType.RAW and kind is PgKind.BYTEA:
        return PlainForm.BYTES
    is_text = code in _TEXT and kind in _TEXT_KINDS
    if is_text or (code == OracleType.CHAR and kind is PgKind.BPCHAR):
        charset = column_charset(
            column.charset_form, column.charset_id, facts.charset, facts.ncharset
        )
        if charset.structure in ("utf-8", "cesu-8"):
            return PlainForm.UTF8
        return PlainForm.ASCII if charset.ascii_superset else PlainForm.NONE
    return PlainForm.NONE


@inlined
def _put_integer(value: int, width: int, out: Bytes, at: int) -> int:
    if width == 8:
        store(out, at, np.int64(value), True)
    elif width == 4:
        store(out, at, np.int32(value), True)
    else:
        store(out, at, np.int16(value), True)
    return width


@inlined
def is_utf8(data: Bytes, at: int, end: int) -> bool:
    """Return whether the bytes are UTF-8 that PostgreSQL accepts: no surrogates, no U+0000."""
    while True:
        at = ascii_run(data, at, end)
        if at >= end:
            return True
        step = utf8_step(data, at, end)
        if step == 0:
            return False
        at += step


@inlined
def _put_number(
    data: Bytes, start: int, size: int, form: int, out: Bytes, shorts: Shorts, at: int
) -> int:
    is_zero = size == 1 and data[start] == 0x80
    if form == _NUMERIC:
        if not is_zero:
            units = write_canonical(data, start, size, shorts, at >> 1)
            return 2 * units if units else _LEFT
        return _put_integer(0, 8, out, at)
    value = 0 if is_zero else short_integer(data, start, size)
    if value == NOT_SHORT:
        return _LEFT
    width = 1 << form
    if form < _INT8 and not -(1 << (8 * width - 1)) <= value < 1 << (8 * width - 1):
        return _LEFT
    return _put_integer(value, width, out, at)


@inlined
def write_plain(
    data: Bytes, start: int, size: int, form: int, out: Bytes, shorts: Shorts, at: int
) -> int:
    """Write the value of `size` bytes at `start`. Returns the number of bytes written, −1 for NULL,
    or −2 if the caller must use the encoder.

    Args:
        form: `PlainForm`.
        out: must have space for the value: its size for text and RAW, else `PLAIN_BYTES_MAX`.
        shorts: the memory of `out` as 16-bit units, in which a numeric is written.
        at: the position to write to; must be an even number if `form` is `NUMERIC`. Bytes after the
            value can be overwritten, so write values in ascending order.
    """
    if size <= 0:
        return _NULL
    if form <= _NUMERIC:
        return _put_number(data, start, size, form, out, shorts, at)
    if form >= _TIMESTAMP:
        label = size - 2 if form == _TIMESTAMP_TZ else size
        if label != 7 and label != 11:
            return _LEFT
        moved, micros, rest = label_micros(data, start, label)
        if moved != 0 or rest != 0:
            return _LEFT
        return _put_integer(micros, 8, out, at)
    if form == _UTF8 and not is_utf8(data, start, start + size):
        return _LEFT
    if form == _ASCII and ascii_run(data, start, start + size) != start + size:
        return _LEFT
    copy_forward(out, at, data, start, start + size)
    return size


@inlined
def put_field(
    data: Bytes, start: int, size: int, form: int, out: Bytes, shorts: Shorts, at: int
) -> int:
    """Write a field of a row in PostgreSQL's form: its size, then its value. Returns the end of the
    field, or −2 if the caller must use the encoder.

    Args:
        size: the value's size; NULL if it is negative.
        form: `PlainForm`, or `ENCODED`.
        out: must have space for the field, and after all fields for twice `PLAIN_BYTES_MAX` bytes.
        shorts: the memory of `out` as 16-bit units, in which a numeric is written.
    """
    place = at + 4
    if form == ENCODED:
        size = max(size, _NULL)
        if size > 0:
            copy_forward(out, place, data, start, start + size)
    else:
        scratch = (out.size - 2 * PLAIN_BYTES_MAX) & ~1
        if form == _NUMERIC and place & 1:
            place = scratch
        size = write_plain(data, start, size, form, out, shorts, place)
        if size == _LEFT:
            return _LEFT
        if place == scratch:
            copy_bytes(out, at + 4, out, scratch, scratch + max(size, 0))
    store(out, at, np.int32(size), True)
    return at + 4 + max(size, 0)
