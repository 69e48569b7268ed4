"""Values as JSON text by the kernel: what it writes is what the conversion in Python gives."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from olr_pg.datatypes.binary_float import encode_binary_float
from olr_pg.datatypes.columns import column_of
from olr_pg.datatypes.json_values import json_converter
from olr_pg.datatypes.mapping import OracleType
from olr_pg.datatypes.number import encode_number
from olr_pg.dictionary.model import Database
from olr_pg.errors import OlrPgError
from olr_pg.kernels.compile import uncompiled
from olr_pg.rendering.json_forms import JsonForm, character_table, value_form
from olr_pg.rendering.json_values import put_values_kernel, room_of
from olr_pg.wire.elements import ColumnValue

if TYPE_CHECKING:
    from collections.abc import Sequence

DATABASE = Database("DB", charset="WE8MSWIN1252", timezone="+02:00")


def of_type(code: int, charset_id: int | None = None, form: int | None = None) -> ColumnValue:
    return ColumnValue("C", code, charset_id=charset_id, charset_form=form)


UTF8 = of_type(OracleType.VARCHAR2, 873, None)
CESU8 = of_type(OracleType.VARCHAR2, 871, None)
SINGLE = of_type(OracleType.VARCHAR2, None, 1)
UTF16 = of_type(OracleType.VARCHAR2, 2000, 2)
MULTI = of_type(OracleType.VARCHAR2, 852, None)
TEXTS = (UTF8, CESU8, SINGLE, UTF16, MULTI)


def written(column: ColumnValue, values: Sequence[bytes]) -> list[bytes | None]:
    """What the kernel writes for each of the values; None for what it leaves."""
    form = value_form(column, DATABASE)
    table = character_table(form.table or "\ufffe" * 256)
    data = column_of(values)
    room = uncompiled(room_of)
    out = np.zeros(sum(room(len(value)) for value in values) + 64, np.uint8)
    end = np.zeros(len(values), np.int64)
    put_values_kernel(*data, int(form.form), table.text, table.size, out, end)
    found: list[bytes | None] = []
    at = 0
    for place in end.tolist():
        found.append(None if place < 0 else out[at:place].tobytes())
        at = max(at, place)
    return found


def expected(column: ColumnValue, value: bytes) -> bytes | None:
    """What Python gives; None where it is no value."""
    convert = json_converter(
        column.described(), charset=DATABASE.charset, timezone=DATABASE.timezone
    )
    try:
        return orjson.dumps(convert(value))
    except OlrPgError:
        return None


def check(column: ColumnValue, *values: bytes) -> list[bytes | None]:
    """Whatever the kernel writes is what Python gives; it leaves what is no value."""
    kernel = written(column, values)
    for value, text in zip(values, kernel, strict=True):
        if text is not None:
            assert text == expected(column, value), value.hex()
    return kernel


ANY_BYTES = st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=8)


@pytest.mark.parametrize("column", TEXTS)
@given(ANY_BYTES)
def test_any_bytes_as_text(column: ColumnValue, values: list[bytes]) -> None:
    check(column, *values)


@given(st.lists(st.text(min_size=1, max_size=40), min_size=1, max_size=8))
@example(['a"b\\c/\b\t\n\f\r\x00\x01\x1f\x7f', "12345678", '1234567"', "ä" * 8, "\U0001f600"])
def test_text_of_unicode_sets_is_never_left(texts: list[str]) -> None:
    utf8 = [text.encode() for text in texts]
    utf16 = [text.encode("utf-16-be") for text in texts]
    plain = [orjson.dumps(text) for text in texts]
    assert check(UTF8, *utf8) == plain
    assert check(UTF16, *utf16) == plain


@given(st.text(st.characters(max_codepoint=0x7F), min_size=1, max_size=60))
def test_ascii_is_the_same_in_every_set(text: str) -> None:
    for column in (UTF8, CESU8, SINGLE, MULTI):
        (found,) = check(column, text.encode())
        assert found == orjson.dumps(text) or (column is MULTI and "\0" in text)


def test_surrogate_pairs_are_left() -> None:
    assert check(CESU8, bytes.fromhex("eda0bdedb880")) == [None]
    assert check(UTF16, b"\xd8\x00", b"\xdc\x00\x00a", b"\xd8\x00\x00a", b"a") == [None] * 4


def test_bytes_without_a_character_are_left() -> None:
    assert check(of_type(OracleType.VARCHAR2, 1), b"\x81", b"a") == [None, b'"a"']
    assert check(SINGLE, b"\x80") == ['"€"'.encode()]


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**60), max_value=10**60))
@example(Decimal("1e125"))
@example(Decimal("-1e-120"))
@example(Decimal(0))
def test_numbers(value: Decimal) -> None:
    column = of_type(OracleType.NUMBER)
    try:
        raw = encode_number(value)
    except OlrPgError:
        return
    assert check(column, raw) == [expected(column, raw)]


@given(ANY_BYTES)
@example([b"\x00", b"\xff\x65", b"\x80", b"\x80\x01", b"\x3e\x65", b"\xc1", b"\xc1\x00"])
def test_any_bytes_as_a_number(values: list[bytes]) -> None:
    column = of_type(OracleType.NUMBER)
    assert check(column, *values) == [expected(column, value) for value in values]


FIELD = st.integers(0, 70)
LABEL = st.builds(
    lambda year, fields: bytes([100 + year // 100, 100 + year % 100, *fields]),
    st.integers(0, 9999),
    st.tuples(*[st.integers(1, high) for high in (12, 31, 24, 60, 60)]),
)
LABELS = st.one_of(LABEL, st.lists(FIELD, min_size=7, max_size=7).map(bytes), st.binary(max_size=7))
FRACTION = st.one_of(
    st.just(b""), st.integers(0, 10**9).map(lambda n: n.to_bytes(4, "big")), st.binary(max_size=5)
)
ZONE = st.one_of(st.binary(min_size=2, max_size=2), st.just(b"\x14\x3c"), st.just(b"\x19\x5a"))


@given(LABELS, FRACTION)
@example(bytes((100, 100, 1, 1, 1, 1, 1)), b"")
@example(bytes((53, 88, 1, 1, 1, 1, 1)), b"")
@example(bytes((200, 100, 1, 1, 1, 1, 1)), b"")
@example(bytes((115, 182, 2, 29, 1, 1, 1)), b"")
def test_dates_and_timestamps(label: bytes, fraction: bytes) -> None:
    for code in (OracleType.DATE, OracleType.TIMESTAMP):
        column = of_type(code)
        value = label + fraction or b"x"
        (found,) = check(column, value)
        text = expected(column, value)
        assert found == text or (text is not None and text.startswith(b'"10000-'))


@given(LABELS, FRACTION, ZONE)
@example(bytes((100, 101, 1, 1, 1, 1, 1)), b"", b"\x05\x3c")
@example(bytes((199, 199, 12, 31, 24, 1, 1)), b"", b"\x19\x5a")
def test_timestamps_with_time_zone(label: bytes, fraction: bytes, zone: bytes) -> None:
    column = of_type(OracleType.TIMESTAMP_TZ)
    (found,) = check(column, label + fraction + zone)
    text = expected(column, label + fraction + zone)
    assert found == text or (text is not None and text.startswith(b'"10000-'))


@given(st.floats(width=32), st.floats())
@example(0.1, 0.1)
@example(16777216.0, 1e15)
@example(0.0, -0.0)
@example(123456.0, 123456789.25)
def test_binary_floats(single: float, double: float) -> None:
    check(of_type(OracleType.BINARY_FLOAT), encode_binary_float(single, 4), b"abc")
    check(of_type(OracleType.BINARY_DOUBLE), encode_binary_float(double, 8), b"abc")


@given(st.integers(-(10**14), 10**14), st.integers(0, 10))
def test_short_decimals(number: int, places: int) -> None:
    column = of_type(OracleType.BINARY_DOUBLE)
    value = number / 10**places
    raw = encode_binary_float(value, 8)
    (found,) = check(column, raw)
    assert abs(value) < 0.001 or found == expected(column, raw)


def test_booleans_and_hex() -> None:
    assert check(of_type(OracleType.BOOLEAN), b"\0", b"\1", b"\2") == [b"false", b"true", None]
    assert check(of_type(OracleType.RAW), b"\x00\xfe", b"a" * 9) == [
        b'"00fe"',
        b'"616161616161616161"',
    ]


def test_forms_that_no_kernel_has_are_left() -> None:
    for code in (OracleType.INTERVAL_YM, OracleType.JSON, OracleType.ROWID):
        assert value_form(of_type(code), DATABASE).form is JsonForm.LEFT
        assert written(of_type(code), [b"a"]) == [None]
