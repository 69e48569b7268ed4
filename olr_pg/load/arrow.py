"""Converts Arrow arrays to Oracle's internal form, so that loaded values use the same encoders as
replicated ones.

The Arrow types of each Oracle type:

| Oracle | Arrow |
| --- | --- |
| NUMBER, FLOAT | decimals, integers, strings of decimal text; no floats, which are not exact |
| VARCHAR2, CHAR, LONG, CLOB and the national ones, ROWID, UROWID, JSON, XMLTYPE | strings |
| RAW, LONG RAW, BLOB | binary |
| DATE | dates, timestamps without zone, strings in ISO 8601 |
| TIMESTAMP | timestamps without zone, strings in ISO 8601 |
| TIMESTAMP WITH (LOCAL) TIME ZONE | timestamps in UTC, strings in ISO 8601 with an offset |
| INTERVAL | strings in ISO 8601 or as Oracle writes them; day to second also durations |
| BINARY_FLOAT, BINARY_DOUBLE | floats |
| BOOLEAN | booleans |
| VECTOR | lists of numbers, strings ``[1,2]``, with the format before it: ``FLOAT32[1,2]`` |

For every other type, binary arrays must contain Oracle's internal form. Strings in Arrow are always
UTF-8, so the column is described as UTF-8, whatever the character set of the database is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import orjson
import pyarrow as pa

from olr_pg.datatypes.columns import ValueColumn, column_of, fixed_width
from olr_pg.datatypes.interval import DaySecond, YearMonth, encode_day_second, encode_year_month
from olr_pg.datatypes.mapping import CHARACTER_TYPES, OracleType, oracle_type_name
from olr_pg.datatypes.outcomes import Outcome, check, quoted_text
from olr_pg.datatypes.vector import VectorFormat, VectorValue, encode_vector
from olr_pg.dictionary.true_charsets import is_explicit
from olr_pg.errors import Code, OlrPgError
from olr_pg.load.arrow_oracle_forms import (
    DIGITS_MAX,
    NO_ZONE,
    NUMBER_BYTES,
    TO_UTC,
    integer_number_kernel,
    number_kernel,
    ticks_kernel,
    time_text_kernel,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from olr_pg.dictionary.model import Column

    Array = Any
    """A `pyarrow.Array`; pyarrow's type stubs lack many of its methods."""
    Convert = Callable[[Array], ValueColumn]
    Plan = Callable[[Column, pa.DataType], "ArrowColumn | None"]

_ISO: Final = re.compile(
    r"(-?)P(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)D)?"
    r"(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?\d+)(?:\.(\d{1,9}))?S)?)?"
)
_YEAR_MONTH: Final = re.compile(r"([+-]?)(\d+)-(\d+)")
_DAY_SECOND: Final = re.compile(r"([+-]?)(\d+) (\d+):(\d+):(\d+)(?:\.(\d{1,9}))?")


def year_month_bytes(text: str) -> bytes:
    """Convert ``P-3Y-7M`` or ``-03-07`` to INTERVAL YEAR TO MONTH.

    Raises:
        OlrPgError: 5102, the text has another format.
    """
    if found := _YEAR_MONTH.fullmatch(text):
        sign, years, months = found.groups()
        return encode_year_month(YearMonth(_signed(sign, 12 * int(years) + int(months))))
    if (found := _ISO.fullmatch(text)) and not any(found.groups()[3:]):
        sign, iso_years, iso_months = found.groups()[:3]
        total = 12 * int(iso_years or 0) + int(iso_months or 0)
        return encode_year_month(YearMonth(_signed(sign, total)))
    raise OlrPgError(Code.TABLE_DATA_VALUE_UNFIT, f"not an INTERVAL YEAR TO MONTH: {text!r}")


def day_second_bytes(text: str) -> bytes:
    """Convert ``P-1DT-2H-3M-4.5S`` or ``-01 02:03:04.5`` to INTERVAL DAY TO SECOND.

    Raises:
        OlrPgError: 5102, the text has another format.
    """
    if found := _DAY_SECOND.fullmatch(text):
        sign, days, hours, minutes, seconds, fraction = found.groups()
        total = _nanoseconds(days, hours, minutes, seconds, fraction)
        return encode_day_second(DaySecond(_signed(sign, total)))
    if (found := _ISO.fullmatch(text)) and not any(found.groups()[1:3]):
        sign, _, _, *parts = found.groups()
        return encode_day_second(DaySecond(_signed(sign, _nanoseconds(*parts))))
    raise OlrPgError(Code.TABLE_DATA_VALUE_UNFIT, f"not an INTERVAL DAY TO SECOND: {text!r}")


def _signed(sign: str, total: int) -> int:
    return -total if sign == "-" else total


def _nanoseconds(
    days: str | None,
    hours: str | None,
    minutes: str | None,
    seconds: str | None,
    fraction: str | None,
) -> int:
    clock = int(days or 0) * 24 + int(hours or 0)
    total = (clock * 60 + int(minutes or 0)) * 60 + int(seconds or 0)
    part = int((fraction or "").ljust(9, "0"))
    # The fraction has the sign of the seconds. For a negative value between −1 and 0, only the text
    # "-0" shows the sign.
    return total * 1_000_000_000 + (-part if (seconds or "").startswith("-") else part)


UTF8_CHARSET: Final = 873
"""AL32UTF8."""

_TICKS: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_DATE_BYTES: Final = 7
_TIMESTAMP_BYTES: Final = 11
_ZONED_BYTES: Final = 13
_SECONDS_OF_DAY: Final = 86_400


@dataclass(frozen=True, slots=True)
class ArrowColumn:
    """Converts the arrays of one column into Oracle's internal form.

    Attributes:
        described: the column's description for the encoder; it can differ from the description in
            the dictionary.
        convert: converts an array to values.
        in_utc: whether the values are in UTC, regardless of DBTIMEZONE.
    """

    described: Column
    convert: Convert
    in_utc: bool = False


def arrow_column(column: Column, kind: pa.DataType) -> ArrowColumn:
    """Return the conversion from arrays of `kind` to values of `column`.

    Raises:
        OlrPgError: 5101, arrays of `kind` cannot be converted to values of `column`.
    """
    if pa.types.is_dictionary(kind):
        inner = arrow_column(column, kind.value_type)
        return replace(inner, convert=lambda array: inner.convert(array.dictionary_decode()))
    if pa.types.is_null(kind):
        return ArrowColumn(column, _nothing)
    code = OracleType(column.type_code)
    found = _text(column, code, kind) or _PLANS.get(code, _unknown)(column, kind)
    if found is None and _is_bytes(kind) and code not in _AS_TEXT:
        found = ArrowColumn(column, value_column)
    if found is None:
        raise OlrPgError(
            Code.TABLE_DATA_TYPE_UNFIT,
            f"{oracle_type_name(column)} from Arrow's {kind}",
            column=column.name,
        )
    return found


# --- buffers -------------------------------------------------------------------------------------


def null_mask(array: Array) -> npt.NDArray[np.bool_]:
    """Return for each element whether it is NULL."""
    if array.null_count == 0:
        return np.zeros(len(array), np.bool_)
    return np.asarray(array.is_null().to_numpy(zero_copy_only=False), np.bool_)


def value_column(array: Array) -> ValueColumn:
    """Return the values of a string or binary array. The bytes are copied to a writable buffer.

    The copy is needed because the kernels would be compiled a second time for read-only buffers.
    """
    if pa.types.is_fixed_size_binary(array.type):
        array = array.cast(pa.binary())
    elif array.type in (pa.string_view(), pa.binary_view()):
        array = array.cast(pa.large_binary())
    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    _, ends_buffer, data_buffer = array.buffers()
    if len(array) == 0 or ends_buffer is None:
        return _nothing(array)
    every = np.frombuffer(ends_buffer, np.int64 if wide else np.int32)
    ends = every[array.offset : array.offset + len(array) + 1].astype(np.int64)
    first, last = int(ends[0]), int(ends[-1])
    data = np.zeros(0, np.uint8)
    if data_buffer is not None:
        data = np.frombuffer(data_buffer, np.uint8)[first:last].copy()
    length = np.where(null_mask(array), np.int64(-1), np.diff(ends))
    return ValueColumn(data, ends[:-1] - first, length)


def _nothing(array: Array) -> ValueColumn:
    """Return a column of NULLs with as many values as the array has elements."""
    zero = np.zeros(len(array), np.int64)
    return ValueColumn(np.zeros(0, np.uint8), zero, zero - 1)


def _items(array: Array, dtype: str) -> npt.NDArray[Any]:
    """Return a view of an array's fixed-width items; the contents of NULL items are undefined."""
    data = array.buffers()[1]
    if data is None:
        return np.zeros(len(array), dtype)
    items: npt.NDArray[Any] = np.frombuffer(data, dtype)[array.offset : array.offset + len(array)]
    return items.copy()


# --- kinds ---------------------------------------------------------------------------------------


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view()


def _is_bytes(kind: pa.DataType) -> bool:
    return (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
        or kind == pa.binary_view()
    )


_LARGE_TEXT: Final = frozenset({OracleType.CLOB, OracleType.BLOB, OracleType.JSON})
_ADDRESSES: Final = frozenset({OracleType.ROWID, OracleType.UROWID})
_AS_TEXT: Final = CHARACTER_TYPES | {OracleType.CLOB}


def _text(column: Column, code: OracleType, kind: pa.DataType) -> ArrowColumn | None:
    """Return the conversion for types whose values are text, and describe the column as UTF-8.
    Text that was read as bytes has the column's own character set.
    """
    if is_explicit(column) and code in _AS_TEXT and _is_bytes(kind):
        return ArrowColumn(column, value_column)
    if not _is_text(kind):
        return None
    described = replace(column, charset_id=UTF8_CHARSET, charset_form=None)
    if code in CHARACTER_TYPES:
        return ArrowColumn(described, value_column)
    if code in _ADDRESSES:
        return ArrowColumn(replace(described, type_code=OracleType.VARCHAR2), value_column)
    if code in _LARGE_TEXT and (code is not OracleType.BLOB or column.xml):
        return ArrowColumn(replace(described, type_code=OracleType.CLOB), value_column)
    return None


def _unknown(column: Column, kind: pa.DataType) -> ArrowColumn | None:
    del column, kind
    return None


def _number(column: Column, kind: pa.DataType) -> ArrowColumn | None:
    if _is_text(kind):
        return ArrowColumn(column, _number_bytes)
    if pa.types.is_decimal128(kind):
        scale: int = getattr(kind, "scale", 0)
        return ArrowColumn(column, partial(_decimal_bytes, scale=scale))
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return ArrowColumn(column, _integer_bytes)
    if pa.types.is_decimal(kind) or pa.types.is_integer(kind):
        return ArrowColumn(column, _printed_number_bytes)
    return None


def _integer_bytes(array: Array) -> ValueColumn:
    return _scaled_bytes(_items(array.cast(pa.int64()), "i8"), null_mask(array), 0)


def _decimal_bytes(array: Array, *, scale: int) -> ValueColumn:
    """Convert decimals; read only the low words if every value fits into its low word."""
    data, null = array.buffers()[1], null_mask(array)
    if data is None:
        return _nothing(array)
    words = np.frombuffer(data, np.int64)[2 * array.offset : 2 * (array.offset + len(array))]
    low, high = words[::2], words[1::2]
    if ((low >> 63 == high) | null).all():
        return _scaled_bytes(np.ascontiguousarray(low), null, scale)
    return _printed_number_bytes(array)


def _scaled_bytes(
    items: npt.NDArray[np.int64], null: npt.NDArray[np.bool_], scale: int
) -> ValueColumn:
    count = len(items)
    out, length = np.empty(count * NUMBER_BYTES, np.uint8), np.empty(count, np.int64)
    integer_number_kernel(items, null.view(np.uint8), scale, out, length)
    return ValueColumn(out, np.arange(count, dtype=np.int64) * NUMBER_BYTES, length)


def _printed_number_bytes(array: Array) -> ValueColumn:
    return _number_bytes(array.cast(pa.string()))


def _number_bytes(array: Array) -> ValueColumn:
    text = value_column(array)
    count = len(text.length)
    out, length = np.empty(count * NUMBER_BYTES, np.uint8), np.empty(count, np.int64)
    scratch = np.empty(DIGITS_MAX + 2, np.uint8)
    row, outcome = number_kernel(*text, scratch, out, length)
    if row >= 0 and outcome == Outcome.PRECISION:
        raise OlrPgError(
            Code.TABLE_DATA_VALUE_UNFIT,
            f"text to NUMBER: the value has more than the {DIGITS_MAX} digits of a NUMBER",
            row=row,
        )
    check(row, outcome, text, "text to NUMBER", quoted_text)
    return ValueColumn(out, np.arange(count, dtype=np.int64) * NUMBER_BYTES, length)


def _temporal(width: int, *, zoned: bool, in_utc: bool = False) -> Plan:
    def plan(column: Column, kind: pa.DataType) -> ArrowColumn | None:
        if _is_text(kind):
            zone = TO_UTC if zoned else NO_ZONE
            return ArrowColumn(column, partial(_from_text, zone=zone, width=width), in_utc)
        if pa.types.is_timestamp(kind) and (kind.tz is not None) == zoned:
            per_second = _TICKS[kind.unit]
            return ArrowColumn(column, partial(_ticks, per_second=per_second, width=width), in_utc)
        if pa.types.is_date32(kind) and not zoned:
            return ArrowColumn(column, partial(_days, width=width))
        return None

    return plan


def _from_text(array: Array, *, zone: int, width: int) -> ValueColumn:
    text = value_column(array)
    out = np.empty(len(array) * width, np.uint8)
    row, outcome = time_text_kernel(*text, zone, width, out)
    check(row, outcome, text, "text to date and time", quoted_text)
    return _equally_wide(out, width, text.length <= 0)


def _ticks(array: Array, *, per_second: int, width: int) -> ValueColumn:
    return _from_ticks(_items(array, "i8"), null_mask(array), per_second, width)


def _days(array: Array, *, width: int) -> ValueColumn:
    seconds = _items(array, "i4").astype(np.int64) * _SECONDS_OF_DAY
    return _from_ticks(seconds, null_mask(array), 1, width)


def _from_ticks(
    ticks: npt.NDArray[np.int64], null: npt.NDArray[np.bool_], per_second: int, width: int
) -> ValueColumn:
    out = np.empty(len(ticks) * width, np.uint8)
    row, outcome = ticks_kernel(ticks, null.view(np.uint8), per_second, width, out)
    printed = ValueColumn(
        ticks.view(np.uint8),
        np.arange(len(ticks), dtype=np.int64) * 8,
        np.full(len(ticks), 8, np.int64),
    )
    check(row, outcome, printed, "timestamp to date and time")
    return _equally_wide(out, width, null)


def _equally_wide(
    data: npt.NDArray[np.uint8], width: int, null: npt.NDArray[np.bool_]
) -> ValueColumn:
    offset = np.arange(len(null), dtype=np.int64) * width
    return ValueColumn(data, offset, np.where(null, np.int64(-1), np.int64(width)))


def _binary_float(width: int) -> Plan:
    def plan(column: Column, kind: pa.DataType) -> ArrowColumn | None:
        if kind == (pa.float32() if width == 4 else pa.float64()):
            return ArrowColumn(column, partial(_float_bytes, width=width))
        return None

    return plan


def _float_bytes(array: Array, *, width: int) -> ValueColumn:
    """Convert IEEE floats to Oracle's form, whose bytes sort like the numbers. −0 becomes 0, and
    every NaN becomes the same NaN (values-and-lobs §8).
    """
    numbers = _items(array, f"f{width}") + 0  # adding 0 changes −0 to 0
    numbers[np.isnan(numbers)] = np.nan
    bits = numbers.view(f"u{width}")
    top = bits.dtype.type(1 << (8 * width - 1))
    ordered = np.where(bits & top, ~bits, bits | top).astype(f">u{width}")
    return fixed_width(ordered, null_mask(array))


def _boolean(column: Column, kind: pa.DataType) -> ArrowColumn | None:
    if not pa.types.is_boolean(kind):
        return None

    def convert(array: Array) -> ValueColumn:
        items = np.asarray(array.fill_null(False).to_numpy(zero_copy_only=False), np.uint8)
        return fixed_width(items, null_mask(array))

    return ArrowColumn(column, convert)


def _interval(text_bytes: Callable[[str], bytes]) -> Plan:
    def convert(array: Array) -> ValueColumn:
        distinct = array.dictionary_encode()
        made = [
            None if text is None else text_bytes(text) for text in distinct.dictionary.to_pylist()
        ]
        places = distinct.indices.to_pylist()
        return column_of([None if place is None else made[place] for place in places])

    def plan(column: Column, kind: pa.DataType) -> ArrowColumn | None:
        if _is_text(kind):
            return ArrowColumn(column, convert)
        if pa.types.is_duration(kind) and column.type_code == OracleType.INTERVAL_DS:
            return ArrowColumn(column, partial(_durations, per_second=_TICKS[kind.unit]))
        return None

    return plan


def _durations(array: Array, *, per_second: int) -> ValueColumn:
    """Convert durations to the 11 bytes of INTERVAL DAY TO SECOND; each part has its own sign
    (values-and-lobs §9).
    """
    ticks = _items(array, "i8")
    size = np.abs(ticks)
    sign = np.where(ticks < 0, np.int64(-1), np.int64(1))
    seconds, rest = size // per_second, size % per_second
    parts = np.empty(
        len(ticks), [("d", ">u4"), ("h", "u1"), ("m", "u1"), ("s", "u1"), ("f", ">u4")]
    )
    parts["d"] = (1 << 31) + sign * (seconds // _SECONDS_OF_DAY)
    parts["h"] = 60 + sign * (seconds % _SECONDS_OF_DAY // 3600)
    parts["m"] = 60 + sign * (seconds // 60 % 60)
    parts["s"] = 60 + sign * (seconds % 60)
    parts["f"] = (1 << 31) + sign * rest * (1_000_000_000 // per_second)
    return fixed_width(parts, null_mask(array))


def _vector(column: Column, kind: pa.DataType) -> ArrowColumn | None:
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if is_list or pa.types.is_fixed_size_list(kind):
        elements: Any = kind
        single = elements.value_type == pa.float32()
        form = VectorFormat.FLOAT32 if single else VectorFormat.FLOAT64
        of_list = partial(_vector_bytes, form=form)
        return ArrowColumn(column, lambda array: column_of(map(of_list, array.to_pylist())))
    if _is_text(kind):
        return ArrowColumn(column, lambda array: column_of(map(_parsed_vector, array.to_pylist())))
    return None


_VECTOR_BITS: Final = {VectorFormat.INT8: "i1", VectorFormat.BINARY: "u1"}


def _parsed_vector(text: str | None) -> bytes | None:
    """Parse ``[1,2]``, or a sparse vector ``[9,[0,3],[1,2]]`` (indexes from 0). A format can
    precede the vector; the default is FLOAT64.
    """
    if text is None:
        return None
    try:
        name, _, rest = text.partition("[")
        form = VectorFormat[name] if name else VectorFormat.FLOAT64
        elements = orjson.loads("[" + rest)
        if len(elements) == 3 and isinstance(elements[1], list):
            return _vector_bytes(elements[2], form, (elements[0], elements[1]))
        return _vector_bytes(elements, form)
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise OlrPgError(Code.TABLE_DATA_VALUE_UNFIT, f"no VECTOR: {text[:80]!r}") from error


def _vector_bytes(
    elements: list[float] | None, form: VectorFormat, sparse: tuple[int, list[int]] | None = None
) -> bytes | None:
    """Return the bytes of a vector in Oracle's form.

    Args:
        sparse: for a sparse vector, the number of dimensions and the indexes of the elements.
    """
    if elements is None:
        return None
    values = np.array(elements, "f8")
    if form in _VECTOR_BITS:
        values = np.array([int(value) for value in elements], _VECTOR_BITS[form])
    if sparse is not None:
        dimensions, places = sparse
        return encode_vector(VectorValue(form, dimensions, values, np.array(places, np.int64)))
    bits = 8 if form is VectorFormat.BINARY else 1
    return encode_vector(VectorValue(form, bits * len(elements), values))


def _binary(column: Column, kind: pa.DataType) -> ArrowColumn | None:
    return ArrowColumn(column, value_column) if _is_bytes(kind) else None


_PLANS: Final[dict[OracleType, Plan]] = {
    OracleType.NUMBER: _number,
    OracleType.RAW: _binary,
    OracleType.LONG_RAW: _binary,
    OracleType.BLOB: _binary,
    OracleType.DATE: _temporal(_DATE_BYTES, zoned=False),
    OracleType.TIMESTAMP: _temporal(_TIMESTAMP_BYTES, zoned=False),
    OracleType.TIMESTAMP_TZ: _temporal(_ZONED_BYTES, zoned=True),
    OracleType.TIMESTAMP_LTZ: _temporal(_TIMESTAMP_BYTES, zoned=True, in_utc=True),
    OracleType.INTERVAL_YM: _interval(year_month_bytes),
    OracleType.INTERVAL_DS: _interval(day_second_bytes),
    OracleType.BINARY_FLOAT: _binary_float(4),
    OracleType.BINARY_DOUBLE: _binary_float(8),
    OracleType.BOOLEAN: _boolean,
    OracleType.VECTOR: _vector,
}
