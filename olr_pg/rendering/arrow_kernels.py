"""Kernels that write row changes into the buffers of Arrow arrays, in one pass, without Python code
per row.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.datatypes.number import BAD, FINITE, NOT_SHORT, short_integer, significant
from olr_pg.datatypes.outcomes import FRACTION, INFINITY, MALFORMED, OK, OVERFLOW, byte_at
from olr_pg.datatypes.plain import is_utf8
from olr_pg.datatypes.temporal import DAYS_1970_TO_2000, MICROS_PER_SECOND, label_micros
from olr_pg.datatypes.text import ascii_run
from olr_pg.kernels.bytes import copy_forward
from olr_pg.kernels.compile import inlined, kernel
from olr_pg.rendering.json_values import put_u64

if TYPE_CHECKING:
    from olr_pg.transactions.finished_columns import ChangeColumns

U8 = npt.NDArray[np.uint8]
U64 = npt.NDArray[np.uint64]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

XID_BYTES: Final = 40
"""Maximum bytes that are written for the text of an XID. It is more than the text itself, because
digits are written in whole groups.
"""

_SHORT_DIGITS: Final = 18
"""Maximum number of decimal digits for which a value always fits into 64 bits."""

LEFT_ROW: Final = 0
LEFT_VALUE: Final = 1
LEFT_SIZE: Final = 2
"""The number of columns that describe a left-out value: the index of its change in `elements`, and
the number of the value.
"""

_TENS: Final = np.array([10**i for i in range(_SHORT_DIGITS + 1)], np.int64)
_SECONDS_1970_TO_2000: Final = 86_400 * DAYS_1970_TO_2000


class ImageForm(IntEnum):
    """The form in which `write_images_kernel` writes a value into the buffers of its field."""

    LEFT = 0
    """The kernel leaves the value out; Python code converts it afterwards (`arrow_images`). If a
    column has another form, the kernel leaves out only the values that it cannot write in that
    form.
    """
    DECIMAL = 1
    SECONDS = 2
    MICROS = 3
    MICROS_TZ = 4
    UTF8 = 5
    ASCII = 6
    BYTES = 7
    LOB = 8
    """Bytes of a LOB: unlike in other columns, an empty value is not NULL."""


_LEFT = int(ImageForm.LEFT)
_DECIMAL = int(ImageForm.DECIMAL)
_SECONDS = int(ImageForm.SECONDS)
_MICROS = int(ImageForm.MICROS)
_MICROS_TZ = int(ImageForm.MICROS_TZ)
_UTF8 = int(ImageForm.UTF8)
_ASCII = int(ImageForm.ASCII)
_LOB = int(ImageForm.LOB)


class ColumnForms(NamedTuple):
    """The form in which the kernel writes the values of each described column (see `arrow_images`).

    Attributes:
        field: the field of each described column; −1 if it has none.
        form: the `ImageForm` of the column's values.
    """

    field: I32
    form: U8


class ImageRoom(NamedTuple):
    """The buffers of the fields of an image, and their layout.

    Attributes:
        precision, scale: shape (fields); precision and scale of a decimal field.
        word: shape (fields); the index in `words` at which a field's items of fixed width begin.
        end: shape (fields); the index in `ends` at which a field's n + 1 ends begin; −1 if the
            field has none.
        text: shape (fields); the index in `texts` at which the next text or bytes of a field are
            written; the kernel advances it.
        words, ends, texts: the buffers; `words` and `ends` must be 0 at first.
        bits: shape (fields, bytes); bitmap of the rows that have a value; must be 0 at first.
        filled: shape (fields); the number of rows that have a value; must be 0 at first.
    """

    precision: I64
    scale: I64
    word: I64
    end: I64
    text: I64
    words: U64
    ends: I32
    texts: U8
    bits: U8
    filled: I64


@inlined
def _values_of(changes: ChangeColumns, element: int, is_after: bool) -> tuple[np.uint64, np.uint64]:
    """Return the number of the first value of a change's image, and the number after its last
    value.
    """
    first, middle = changes.entry_first[element], changes.entry_after[element]
    if is_after:
        return np.uint64(middle), np.uint64(changes.entry_first[element + 1])
    return np.uint64(first), np.uint64(middle)


@kernel
def measure_images_kernel(
    changes: ChangeColumns, elements: I64, is_after: bool, columns: ColumnForms, count: I64,
    size: I64,
) -> int:  # fmt: skip
    """Measure the values of the before images or after images.

    Args:
        elements: the row changes that are wanted.
        is_after: True for the after images, False for the before images.
        count: shape (fields); gets the maximum number of values that the kernel will write for each
            field.
        size: shape (fields); gets the bytes of these values.

    Returns:
        The minimum number of values that the kernel will leave out.
    """
    left = 0
    for row in range(elements.size):
        first, end = _values_of(changes, elements[row], is_after)
        for value in range(first, end):
            number = np.uint64(changes.value_column[value])
            field = columns.field[number]
            if field < 0:
                continue
            if columns.form[number] == _LEFT:
                left += 1
            else:
                count[field] += 1
                size[field] += max(changes.value_length[value], 0)
    return left


@inlined
def _put(
    changes: ChangeColumns, value: int, form: int, room: ImageRoom, field: int, row: int
) -> bool:
    """Write a value that is not NULL. Return False if the value must be left out."""
    data, start = changes.data, changes.value_offset[value]
    size = changes.value_length[value]
    if form == _DECIMAL:
        low, high, outcome = decimal(data, start, size, room.precision[field], room.scale[field])
        at = room.word[field] + 2 * row
        room.words[at], room.words[at + 1] = low, high
        return outcome == OK
    if _SECONDS <= form <= _MICROS_TZ:
        label = size - 2 if form == _MICROS_TZ else size
        if label != 7 and label != 11:
            return False
        moved, micros, rest = label_micros(data, start, label)
        if form == _SECONDS:
            rest, micros = micros % MICROS_PER_SECOND, micros // MICROS_PER_SECOND
            micros += _SECONDS_1970_TO_2000
        else:
            micros += _SECONDS_1970_TO_2000 * MICROS_PER_SECOND
        room.words[room.word[field] + row] = np.uint64(np.int64(micros))
        return moved == 0 and rest == 0
    if form == _UTF8 and not is_utf8(data, start, start + size):
        return False
    if form == _ASCII and ascii_run(data, start, start + size) != start + size:
        return False
    at = room.text[field]
    room.text[field] = copy_forward(room.texts, at, data, start, start + size)
    room.ends[room.end[field] + row + 1] = size
    return True


@kernel
def write_images_kernel(
    changes: ChangeColumns, elements: I64, is_after: bool, columns: ColumnForms, room: ImageRoom,
    left: I64,
) -> int:  # fmt: skip
    """Write the values of the before images or after images into the buffers of the fields.

    Args:
        elements, is_after: see `measure_images_kernel`.
        left: shape (m, `LEFT_SIZE`); gets the values that are left out.

    Returns:
        The number of values that are left out; −1 if `left` is too small for them.
    """
    count = 0
    for row in range(elements.size):
        first, end = _values_of(changes, elements[row], is_after)
        for back in range(end - first):
            value = int(end) - 1 - back  # if a field has two values, the last one is valid
            number = np.uint64(changes.value_column[value])
            field = int(columns.field[number])
            form, size = columns.form[number], changes.value_length[value]
            if field < 0 or size < 0 or (size == 0 and form != _LOB and form != _LEFT):
                continue
            bit = np.uint8(1 << (row & 7))
            if room.bits[field, row >> 3] & bit:
                continue
            if form != _LEFT and _put(changes, value, form, room, field, row):
                room.bits[field, row >> 3] |= bit
                room.filled[field] += 1
                continue
            if count == len(left):
                return -1
            left[count, LEFT_ROW] = row
            left[count, LEFT_VALUE] = value
            count += 1
    for field in range(room.end.size):
        if room.end[field] >= 0:
            begin = room.end[field]
            for at in range(begin, begin + elements.size):
                room.ends[at + 1] += room.ends[at]
    return count


@kernel
def xid_texts_kernel(xid: U64, out: U8, end: I32) -> None:
    """Write XIDs as text, as `format_xid` does.

    Args:
        xid: the packed XIDs.
        out: gets the texts, one after the other; must have room for `XID_BYTES` for each.
        end: gets 0, and then the end of each text in `out`.
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
    """Write values one after the other. `end` gets 0, and then the end of each value in `out`."""
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
    """Multiply a number of 128 bits by `factor`, which is at most 100, and add a digit."""
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    times = np.uint64(factor)
    a = (low & mask) * times + np.uint64(digit)
    b = (low >> half) * times + (a >> half)
    return (b << half) | (a & mask), high * times + (b >> half)


@inlined
def _short(data: U8, first: int, count: int, sign: int, power: int) -> int:
    """Return a value of at most `_SHORT_DIGITS` digits as an integer, in units of 10^−scale."""
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
    """Return a value of any number of digits as an integer of two words, the low word first."""
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


@inlined
def decimal(
    data: U8, start: int, length: int, precision: int, scale: int
) -> tuple[np.uint64, np.uint64, int]:
    """Convert a NUMBER that is not NULL to a decimal of 128 bits. Return (low word, high word,
    outcome).
    """
    nothing = np.uint64(0)
    if scale == 0:
        value = short_integer(data, start, length)
        if value != NOT_SHORT and (
            precision >= _SHORT_DIGITS or -_TENS[precision] < value < _TENS[precision]
        ):
            return np.uint64(np.int64(value)), ~nothing if value < 0 else nothing, OK
    kind, sign, first, count, exponent = significant(data, start, length)
    if kind != FINITE:
        return nothing, nothing, MALFORMED if kind == BAD else INFINITY
    if count == 0:
        return nothing, nothing, OK
    bias = -1 if sign > 0 else 101
    power = 2 * (exponent - count + 1) + scale  # the digits are multiplied by 10^power
    last = sign * byte_at(data, first + count - 1) + bias
    if power < -1 or (power == -1 and last % 10 != 0):
        return nothing, nothing, FRACTION
    digits = 2 * count + power - (1 if sign * byte_at(data, first) + bias < 10 else 0)
    if digits > precision:
        return nothing, nothing, OVERFLOW
    if digits > _SHORT_DIGITS:
        low, high = _long(data, first, count, sign, power)
        return low, high, OK
    value = _short(data, first, count, sign, power)
    return np.uint64(np.int64(value)), ~nothing if value < 0 else nothing, OK


@kernel
def decimals_kernel(
    data: U8, offset: I64, length: I64, precision: int, scale: int, out: U64
) -> tuple[int, int]:
    """Convert NUMBER to decimal128 in units of 10^−scale.

    Args:
        data, offset, length: as in `ValueColumn`.
        precision, scale: precision and scale of the decimal type.
        out: shape (n, 2); gets the low and the high word of each value.

    Returns:
        (row, outcome) of the first value that is malformed or does not fit into the decimal type;
        (−1, OK) if there is none.
    """
    for row in range(length.size):
        out[row, 0] = out[row, 1] = np.uint64(0)
        if length[row] <= 0:
            continue
        low, high, outcome = decimal(data, offset[row], length[row], precision, scale)
        if outcome != OK:
            return row, outcome
        out[row, 0], out[row, 1] = low, high
    return -1, OK
