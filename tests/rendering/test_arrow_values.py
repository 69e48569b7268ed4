"""Columns of values as Arrow arrays: what the conversion of one value says, for every type."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from olr_pg.datatypes.binary_float import encode_binary_float
from olr_pg.datatypes.columns import column_of
from olr_pg.datatypes.mapping import OracleType
from olr_pg.datatypes.number import encode_number
from olr_pg.dictionary.model import Column, Database
from olr_pg.errors import OlrPgError
from olr_pg.rendering.arrow_types import arrow_type
from olr_pg.rendering.arrow_values import arrow_converter

DATABASE = Database("DB")


def column(code: int, **facts: Any) -> Column:
    return Column("C", 1, 1, 1, code, 22, **facts)


def array(of: Column, *values: bytes | None) -> list[Any]:
    kind = arrow_type(of)
    made = arrow_converter(of, kind, DATABASE)(column_of(values))
    made.validate(full=True)
    assert made.type == kind
    return made.to_pylist()


@given(st.integers(1, 38), st.data())
def test_decimals_are_exact(precision: int, data: st.DataObject) -> None:
    scale = data.draw(st.integers(0, precision))
    limit = 10**precision - 1
    units = data.draw(st.lists(st.integers(-limit, limit), min_size=1, max_size=5))
    values = [Decimal(f"{unit}e-{scale}") for unit in units]
    of = column(OracleType.NUMBER, precision=precision, scale=scale)
    assert array(of, *map(encode_number, values), None) == [*values, None]


@given(st.decimals(allow_nan=False, min_value=-1000, max_value=1000, places=3))
@example(Decimal("99.95"))
def test_what_a_decimal_does_not_hold_is_refused(value: Decimal) -> None:
    of = column(OracleType.NUMBER, precision=3, scale=1)
    fits = value == round(value, 1) and abs(value) < 100
    if fits:
        assert array(of, encode_number(value)) == [value]
        return
    with pytest.raises(OlrPgError) as caught:
        array(of, b"\x80", encode_number(value))
    assert caught.value.where["row"] == 1


def test_an_infinity_is_no_decimal_but_a_text() -> None:
    of = column(OracleType.NUMBER, precision=3, scale=1)
    with pytest.raises(OlrPgError):
        array(of, b"\x00")
    assert array(column(OracleType.NUMBER), b"\x00", b"\x80", None) == ["-Infinity", "0", None]


@pytest.mark.parametrize("binary_digits", [1, 24, 63, 126])
def test_a_float_is_text_because_its_precision_is_in_binary_digits(binary_digits: int) -> None:
    of = column(OracleType.NUMBER, precision=binary_digits, scale=None)
    values = [encode_number(Decimal(text)) for text in ("0.5", "-1e-120", "9e125")]
    assert array(of, *values, None) == ["0.5", f"{Decimal('-1e-120'):f}", "9" + "0" * 125, None]


def test_a_long_raw_is_bytes() -> None:
    assert array(column(OracleType.LONG_RAW), b"\0\xff", None) == [b"\0\xff", None]


@given(st.lists(st.none() | st.text(min_size=1), max_size=6))
def test_text_is_kept_whole(texts: list[str | None]) -> None:
    for charset, codec in ((873, "utf-8"), (2000, "utf-16-be")):
        of = column(OracleType.VARCHAR2, charset_id=charset, charset_form=None)
        values = [None if text is None else text.encode(codec) for text in texts]
        assert array(of, *values) == texts


def test_an_empty_lob_is_no_null() -> None:
    assert array(column(OracleType.CLOB, charset_id=873), b"", None, b"a") == ["", None, "a"]
    assert array(column(OracleType.BLOB), b"", None, b"a") == [b"", None, b"a"]
    assert array(column(OracleType.RAW), b"", None, b"a") == [None, None, b"a"]


def test_labels_of_nanoseconds_are_text() -> None:
    of = column(OracleType.TIMESTAMP, scale=9)
    label = bytes((120, 126, 3, 7, 2, 45, 40))
    made = array(of, None, label + (5).to_bytes(4, "big"), None, label)
    assert made == [None, "2026-03-07T01:44:39.000000005", None, "2026-03-07T01:44:39"]
    with pytest.raises(OlrPgError) as caught:
        array(of, None, label, b"abc")
    assert caught.value.where["row"] == 2
    zoned = replace(of, type_code=OracleType.TIMESTAMP_TZ)
    assert array(zoned, label + bytes(4) + b"\x15\x3c") == ["2026-03-07T02:44:39+01:00"]


@given(st.lists(st.floats(allow_nan=False), max_size=5))
def test_doubles_are_themselves(values: list[float]) -> None:
    raw = [encode_binary_float(value, 8) for value in values]
    assert array(column(OracleType.BINARY_DOUBLE), *raw, None) == [*values, None]


def test_rare_types_are_as_the_lines_have_them() -> None:
    assert array(column(OracleType.BOOLEAN), b"\1", b"\0", None) == [True, False, None]
    months = column(OracleType.INTERVAL_YM)
    assert array(months, b"\x80\0\0\x03\x43", None) == ["P3Y7M", None]
    assert pa.types.is_string(arrow_type(months))
