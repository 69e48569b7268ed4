"""Converts columns of Oracle values to Arrow arrays of the types that `arrow_type` returns."""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from olr_pg.datatypes.binary_float import binary_float_to_float
from olr_pg.datatypes.charsets import column_charset, lob_charset
from olr_pg.datatypes.columns import ValueColumn, nulls, per_distinct
from olr_pg.datatypes.json_values import json_converter
from olr_pg.datatypes.mapping import CHARACTER_TYPES, LOB_TYPES, OracleType
from olr_pg.datatypes.number import number_to_text
from olr_pg.datatypes.outcomes import check
from olr_pg.datatypes.policies import Policies
from olr_pg.datatypes.temporal import (
    DAYS_1970_TO_2000,
    MICROS_PER_SECOND,
    TEMPORAL_FORMS,
    TemporalForm,
    temporal_to_micros,
)
from olr_pg.datatypes.text import text_with_nul
from olr_pg.errors import Code, OlrPgError
from olr_pg.kernels.bytes import FORWARD
from olr_pg.rendering.arrow_kernels import ImageForm, decimals_kernel, join_kernel
from olr_pg.rendering.arrow_types import arrow_type
from olr_pg.rendering.json_forms import JsonForm, character_table
from olr_pg.rendering.json_values import LABEL_BYTES, put_values_kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.dictionary.model import Column, Database

    Array = pa.Array[Any]
    Convert = Callable[[ValueColumn], Array]

_arrow: Any = pa
"""pyarrow without type checks, for functions that its type stubs describe incompletely."""

_SECONDS_1970_TO_2000: Final = 86_400 * DAYS_1970_TO_2000
_BYTES_MAX: Final = (1 << 31) - 1
_NO_LOSS: Final = Policies(fraction="error")
_NO_TABLE: Final = character_table("\ufffe" * 256)


def arrow_converter(column: Column, kind: pa.DataType, database: Database) -> Convert:
    """Return the function that converts a column's values to `kind`, the type that `arrow_type`
    returns for the column.

    Args:
        column: the column, with the type in which its values are delivered.
        kind: the type of the arrays.
        database: the database from which the values come.

    Returns:
        A function that converts a column of values. The function raises OlrPgError 2050, 2051 or
        2053 for an invalid value; the error has the value's `row`.

    Raises:
        OlrPgError: 2056, the column's character set has no decoder.
    """
    code = column.type_code
    if pa.types.is_decimal(kind):
        return partial(_decimals, kind)
    if pa.types.is_timestamp(kind):
        return partial(_times, kind, TEMPORAL_FORMS[code])
    if pa.types.is_floating(kind):
        return partial(_floats, kind)
    if pa.types.is_boolean(kind):
        return partial(_booleans, column, database)
    if pa.types.is_binary(kind):
        return partial(_bytes, kind, code in LOB_TYPES)
    if code == OracleType.NUMBER:
        return lambda values: variable_array(kind, number_to_text(values)[0])
    if code in (OracleType.TIMESTAMP, OracleType.TIMESTAMP_TZ):
        return partial(_time_text, JsonForm[OracleType(code).name])
    if code in CHARACTER_TYPES:
        charset = column_charset(
            column.charset_form, column.charset_id, database.charset, database.ncharset
        )
        return lambda values: variable_array(kind, text_with_nul(_of_rows(values), charset))
    if code == OracleType.CLOB:
        content = lob_charset(column.charset_form, column.charset_id, database.charset)
        return lambda values: variable_array(kind, text_with_nul(values, content))
    return partial(_printed, column, database)


_WHOLE: Final = pa.decimal128(38, 0)
_BYTE_TYPES: Final = frozenset({OracleType.RAW, OracleType.LONG_RAW, OracleType.BLOB})


def converter_into(column: Column, kind: pa.DataType, database: Database) -> Convert:
    """Return the function that converts a column's values to any type that can represent them.

    Args:
        column: the column, as the messages with its values describe it.

    Returns:
        A function as from `arrow_converter`; it may also raise OlrPgError 2057, if a time has more
        digits than microseconds, and pa.ArrowException.

    Raises:
        OlrPgError: 2056, the column's character set has no decoder.
    """
    code = column.type_code
    is_number = code == OracleType.NUMBER
    if (
        pa.types.is_string(kind)
        or (pa.types.is_decimal(kind) and is_number)
        or (pa.types.is_timestamp(kind) and _is_time(code, with_zone=kind.tz is not None))
        or (pa.types.is_binary(kind) and code in _BYTE_TYPES)
        or kind == arrow_type(column)
    ):
        return arrow_converter(column, kind, database)
    # For any other type, convert the values to exact numbers or text; Arrow casts these to the
    # type.
    between = _WHOLE if is_number and pa.types.is_integer(kind) else pa.string()
    convert = arrow_converter(column, between, database)
    if pa.types.is_decimal(kind):
        return lambda values: _decimals_of_text(kind, convert(values))
    if pa.types.is_floating(kind):
        return lambda values: _floats_of_text(kind, convert(values))
    return lambda values: convert(values).cast(kind)


def image_form(column: Column, kind: pa.DataType, database: Database) -> ImageForm:
    """Return the form in which the kernel writes a column's common values to an array of `kind`.

    Args:
        column: the column, as the messages with its values describe it.
    """
    code = column.type_code
    if pa.types.is_decimal128(kind):
        return ImageForm.DECIMAL if code == OracleType.NUMBER else ImageForm.LEFT
    if pa.types.is_timestamp(kind) and _is_time(code, with_zone=kind.tz is not None):
        if pa.types.is_string(arrow_type(column)):
            return ImageForm.LEFT  # values can have nanoseconds
        if kind.unit == "s":
            return ImageForm.SECONDS
        if kind.unit == "us":
            return ImageForm.MICROS if kind.tz is None else ImageForm.MICROS_TZ
    if pa.types.is_binary(kind) and code in _BYTE_TYPES:
        return ImageForm.LOB if code in LOB_TYPES else ImageForm.BYTES
    if pa.types.is_string(kind) and code in CHARACTER_TYPES:
        return _text_form(column, database)
    return ImageForm.LEFT


def _text_form(column: Column, database: Database) -> ImageForm:
    try:
        charset = column_charset(
            column.charset_form, column.charset_id, database.charset, database.ncharset
        )
    except OlrPgError:
        return ImageForm.LEFT  # the slower conversion raises the error, with its place
    if charset.structure in ("utf-8", "cesu-8"):
        return ImageForm.UTF8
    return ImageForm.ASCII if charset.ascii_superset else ImageForm.LEFT


def _is_time(code: int, *, with_zone: bool) -> bool:
    if with_zone:
        return code == OracleType.TIMESTAMP_TZ
    return code in (OracleType.DATE, OracleType.TIMESTAMP)


def validity(null: npt.NDArray[np.bool_]) -> Any:
    """Return Arrow's bitmap of the values that are not NULL; None if no value is NULL."""
    if not null.any():
        return None
    return _arrow.py_buffer(np.packbits(~null, bitorder="little"))


def fixed_array(kind: pa.DataType, items: npt.NDArray[Any], null: npt.NDArray[np.bool_]) -> Array:
    """Build an array of items of fixed width without copying them."""
    data = _arrow.py_buffer(np.ascontiguousarray(items))
    return pa.Array.from_buffers(kind, len(null), [validity(null), data])


def variable_array(kind: pa.DataType, values: ValueColumn) -> Array:
    """Build an array of strings or bytes; a value of length −1 is NULL."""
    size = int(np.maximum(values.length, 0).sum())
    if size > _BYTES_MAX:
        raise OlrPgError(
            Code.VALUE_OUT_OF_RANGE, f"{size} bytes are too many for an Arrow array", row=0
        )
    out, end = np.empty(size + FORWARD, np.uint8), np.empty(len(values.length) + 1, np.int32)
    join_kernel(values.data, values.offset, values.length, out, end)
    buffers = [validity(values.length < 0), _arrow.py_buffer(end), _arrow.py_buffer(out[:size])]
    return pa.Array.from_buffers(kind, len(values.length), buffers)


def _of_rows(values: ValueColumn) -> ValueColumn:
    """Return the column with empty values marked as NULL: in a row, an empty value is NULL."""
    return values._replace(length=np.where(nulls(values), np.int64(-1), values.length))


def _decimals(kind: Any, values: ValueColumn) -> Array:
    out = np.empty((len(values.length), 2), np.uint64)
    row, outcome = decimals_kernel(*values, kind.precision, kind.scale, out)
    check(row, outcome, values, f"NUMBER to {kind}")
    return fixed_array(kind, out, nulls(values))


def _decimals_of_text(kind: pa.DataType, texts: Array) -> Array:
    texts.cast(kind)  # checks the form of the numbers; but a number that is too large can wrap
    return pa.array([text and Decimal(text) for text in texts.to_pylist()], kind)


def _floats_of_text(kind: pa.DataType, texts: Array) -> Array:
    """Cast texts to floating-point numbers. Arrow's cast alone makes numbers that are too large
    infinite.
    """
    found = texts.cast(kind)
    for row in np.flatnonzero(np.isinf(found.to_numpy(zero_copy_only=False))).tolist():
        text = texts[row].as_py()
        if any(map(str.isdigit, text)):
            raise OlrPgError(Code.VALUE_OUT_OF_RANGE, f"{text} to {kind}", row=row)
    return found


def _times(kind: Any, form: TemporalForm, values: ValueColumn) -> Array:
    micros, null, _ = temporal_to_micros(values, form, _NO_LOSS)
    if kind.unit == "s":
        return fixed_array(kind, micros // MICROS_PER_SECOND + _SECONDS_1970_TO_2000, null)
    return fixed_array(kind, micros + _SECONDS_1970_TO_2000 * MICROS_PER_SECOND, null)


def _floats(kind: pa.DataType, values: ValueColumn) -> Array:
    width = kind.bit_width // 8
    items, _ = binary_float_to_float(_of_rows(values), width, width)
    return fixed_array(kind, items.data.view(f">f{width}").astype(f"<f{width}"), items.length < 0)


def _bytes(kind: pa.DataType, is_lob: bool, values: ValueColumn) -> Array:
    return variable_array(kind, values if is_lob else _of_rows(values))


def _time_text(form: JsonForm, values: ValueColumn) -> Array:
    """Convert times with nanoseconds to the text that the JSON Lines contain."""
    out = np.empty((LABEL_BYTES + 8) * (len(values.length) + 1), np.uint8)
    end, null = np.empty(len(values.length), np.int64), nulls(values)
    present = np.flatnonzero(~null)
    some = ValueColumn(values.data, values.offset[present], values.length[present])
    ends = end[: len(present)]
    put_values_kernel(*some, int(form), _NO_TABLE.text, _NO_TABLE.size, out, ends)
    bad = np.flatnonzero(ends < 0)
    if len(bad):
        check(int(present[bad[0]]), 1, values, form.name.replace("_", " "))
    offset, length = np.zeros(len(null), np.int64), np.full(len(null), -1, np.int64)
    begins = np.append(0, ends[:-1]) if len(ends) else ends
    # Take the text between the quotation marks that the kernel writes.
    offset[present], length[present] = begins + 1, ends - begins - 2
    return variable_array(pa.string(), ValueColumn(out, offset, length))


def _booleans(column: Column, database: Database, values: ValueColumn) -> Array:
    texts = per_distinct(values, _text_converter(column, database)).values()
    return pa.array([None if text is None else text == b"true" for text in texts], pa.bool_())


def _printed(column: Column, database: Database, values: ValueColumn) -> Array:
    """Convert values of rare types, one by one, to the text that the JSON Lines contain."""
    convert = _text_converter(column, database)
    return variable_array(pa.string(), per_distinct(values, convert))


def _text_converter(column: Column, database: Database) -> Callable[[bytes], bytes]:
    convert = json_converter(
        column, charset=database.charset, ncharset=database.ncharset, timezone=database.timezone
    )

    def text(raw: bytes) -> bytes:
        value = convert(raw)
        return value.encode() if isinstance(value, str) else orjson.dumps(value)

    return text
