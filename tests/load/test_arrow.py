"""Arrow arrays in Oracle's internal form, judged by the codecs of `datatypes`."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.datatypes.binary_float import encode_binary_float
from olr_pg.datatypes.interval import DaySecond, YearMonth, decode_day_second, decode_year_month
from olr_pg.datatypes.number import decode_number, encode_number
from olr_pg.datatypes.temporal import (
    DateTime,
    decode_date,
    decode_timestamp,
    decode_timestamp_tz,
    encode_timestamp,
)
from olr_pg.datatypes.vector import VectorFormat, VectorValue, decode_vector, encode_vector
from olr_pg.dictionary.model import Column
from olr_pg.errors import Code, OlrPgError
from olr_pg.load.arrow import arrow_column, day_second_bytes, year_month_bytes

NUMBER, DATE, TIMESTAMP, TIMESTAMP_TZ, LOCAL = 2, 12, 180, 181, 231


def column(code: int, **facts: Any) -> Column:
    return Column("C", 1, 1, 1, code, 10, **facts)


def internal(code: int, array: Any, **facts: Any) -> list[bytes | None]:
    return arrow_column(column(code, **facts), array.type).convert(array).values()


def numbers(digits: int, places: int) -> st.SearchStrategy[Decimal]:
    return st.builds(
        lambda whole, scale: Decimal(whole).scaleb(-scale),
        st.integers(-(10**digits) + 1, 10**digits - 1),
        st.integers(0, places),
    )


@given(st.lists(numbers(38, 20)))
def test_numbers_from_text_are_what_the_codec_writes(values: list[Decimal]) -> None:
    texts = [f"{value:f}" for value in values]
    assert internal(NUMBER, pa.array(texts, pa.string())) == [encode_number(v) for v in values]


@given(st.lists(st.one_of(st.none(), numbers(20, 6))))
def test_numbers_from_decimals_and_integers(values: list[Decimal | None]) -> None:
    expected = [None if v is None else encode_number(v) for v in values]
    assert internal(NUMBER, pa.array(values, pa.decimal128(38, 6))) == expected
    whole = [None if v is None else int(v) % 10**18 for v in values]
    expected = [None if v is None else encode_number(v) for v in whole]
    assert internal(NUMBER, pa.array(whole, pa.int64())) == expected


@given(
    st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.integers(-999, 999))),
    st.integers(-3, 38),
)
def test_decimals_of_64_bits_at_any_scale(whole: list[int | None], scale: int) -> None:
    values = [None if v is None else Decimal(v).scaleb(-scale) for v in whole]
    expected = [None if v is None else encode_number(v) for v in values]
    array: Any = pa.array([None, *values, None], pa.decimal128(38, scale))
    assert internal(NUMBER, array) == [None, *expected, None]
    assert internal(NUMBER, array.slice(1, len(values))) == expected
    if not scale:
        assert internal(NUMBER, pa.array(whole, pa.int64())) == expected


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("1e125", "1" + "0" * 125),
        ("-1.5E-3", "-0.0015"),
        ("+7", "7"),
        (".5", "0.5"),
        ("0.000", "0"),
        ("000120", "120"),
        ("1E-130", "0." + "0" * 129 + "1"),
        ("9" * 40, "9" * 40),
        ("12" + "0" * 60, "12" + "0" * 60),
        ("0." + "0" * 60 + "5" + "0" * 60, "0." + "0" * 60 + "5"),
        ("Infinity", "Infinity"),
        ("-inf", "-Infinity"),
        ("~", "Infinity"),
        ("-~", "-Infinity"),
        ("+INF", "Infinity"),
        ("iNfInItY", "Infinity"),
    ],
)
def test_odd_texts_of_numbers(text: str, plain: str) -> None:
    (raw,) = internal(NUMBER, pa.array([text]))
    assert raw is not None
    assert decode_number(raw) == plain


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "1x", "1..2", "-", ".", "1e", "1e+", "1e126", "1E-131", "1 ", "9" * 41),
        *("I", "in", "i7", "inch", "infinite", "Infinity ", "~1", "~~", "~inf", "-~9", "INVALID"),
    ],
)
def test_text_that_is_no_number(text: str) -> None:
    if not text:
        assert internal(NUMBER, pa.array([text])) == [None]
        return
    with pytest.raises(OlrPgError) as caught:
        internal(NUMBER, pa.array(["1", text]))
    assert caught.value.code in (2050, 2053, 5102)
    assert caught.value.where["row"] == 1


MOMENTS = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31))  # noqa: DTZ001 - labels


@pytest.mark.parametrize("text", ["9" * 41, "1" * 60, "0." + "7" * 41, "1" + "0" * 40 + "1"])
def test_too_many_digits_are_told_as_such(text: str) -> None:
    for array in (pa.array([text]), pa.array(["1", None, text])):
        with pytest.raises(OlrPgError) as caught:
            internal(NUMBER, array)
        assert caught.value.code == Code.TABLE_DATA_VALUE_UNFIT
        assert "more than the 40 digits of a NUMBER" in caught.value.detail
        assert text not in caught.value.detail


def label(when: datetime) -> DateTime:
    clock = (when.hour, when.minute, when.second, when.microsecond * 1000)
    return DateTime(when.year, when.month, when.day, *clock)


@given(st.lists(MOMENTS, min_size=1))
def test_timestamps(moments: list[datetime]) -> None:
    found = internal(TIMESTAMP, pa.array(moments, pa.timestamp("us")), scale=6)
    assert [decode_timestamp(raw or b"") for raw in found] == [label(when) for when in moments]
    texts = [when.isoformat(" ") for when in moments]
    assert internal(TIMESTAMP, pa.array(texts), scale=6) == found
    zoned = pa.array([when.replace(tzinfo=UTC) for when in moments], pa.timestamp("us", "UTC"))
    in_utc = internal(TIMESTAMP_TZ, zoned, scale=6)
    assert [decode_timestamp_tz(raw or b"").utc for raw in in_utc] == [label(w) for w in moments]
    assert internal(LOCAL, zoned, scale=6) == found
    days = pa.array([when.date() for when in moments], pa.date32())
    assert [decode_date(raw or b"").day for raw in internal(DATE, days)] == [w.day for w in moments]


@given(
    st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31)),  # noqa: DTZ001 - labels
    st.integers(-12 * 60, 14 * 60),
)
def test_a_text_with_an_offset_keeps_instant_and_zone(when: datetime, minutes: int) -> None:
    sign, (hours, rest) = "-" if minutes < 0 else "+", divmod(abs(minutes), 60)
    text = f"{when.isoformat()}{sign}{hours:02d}:{rest:02d}"
    (raw,) = internal(TIMESTAMP_TZ, pa.array([text]), scale=6)
    assert raw is not None
    decoded = decode_timestamp_tz(raw)
    assert decoded.utc == label(when - timedelta(minutes=minutes))
    assert decoded.zone.offset_minutes == minutes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-4712-01-01T00:00:00", DateTime(-4712, 1, 1)),
        ("-0001-12-31 23:59:59.123456789", DateTime(-1, 12, 31, 23, 59, 59, 123_456_789)),
        ("1500-02-29T01:02:03.5", DateTime(1500, 2, 29, 1, 2, 3, 500_000_000)),
        ("9999-12-31T23:59:59.999999999", DateTime(9999, 12, 31, 23, 59, 59, 999_999_999)),
    ],
)
def test_labels_beyond_pythons_calendar(text: str, expected: DateTime) -> None:
    assert internal(TIMESTAMP, pa.array([text])) == [encode_timestamp(expected).ljust(11, b"\0")]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (TIMESTAMP, "2026-01-01"),
        (TIMESTAMP, "2026-01-01T00:00:00Z"),
        (TIMESTAMP, "2026-01-01T00:00:00.1234567890"),
        (TIMESTAMP_TZ, "2026-01-01T00:00:00"),
        (TIMESTAMP_TZ, "2026-01-01T00:00:00+1:00"),
        (TIMESTAMP_TZ, "2026-01-01T00:00:00Z+1:00"),
        (TIMESTAMP_TZ, "2026-01-01T00:00:00Z "),
        (DATE, "2026-01-01T00:00:00.5"),
        (DATE, "99999-01-01T00:00:00"),
        (DATE, "2026-x1-01T00:00:00"),
    ],
)
def test_text_that_is_no_time(code: int, text: str) -> None:
    with pytest.raises(OlrPgError) as caught:
        internal(code, pa.array([text]))
    assert caught.value.code in (2050, 2057)


@pytest.mark.parametrize("text", ["-9999-01-01T00:00:00+01:00", "-4713-12-31T00:30:00+01:00"])
def test_a_year_before_oracles_first(text: str) -> None:
    with pytest.raises(OlrPgError) as caught:
        internal(TIMESTAMP_TZ, pa.array([text]))
    assert caught.value.code == 2050
    assert repr(text) in str(caught.value)


def test_a_date_with_a_fraction_of_a_second_is_refused() -> None:
    with pytest.raises(OlrPgError) as caught:
        internal(DATE, pa.array([1], pa.timestamp("ms")))
    assert caught.value.code == 2057


@given(st.lists(st.timedeltas(timedelta(-99_999), timedelta(99_999)), min_size=1))
def test_durations(values: list[timedelta]) -> None:
    found = internal(183, pa.array(values, pa.duration("us")))
    nanos = [DaySecond(value // timedelta(microseconds=1) * 1000) for value in values]
    assert [decode_day_second(raw or b"") for raw in found] == nanos
    assert internal(183, pa.array([value.isoformat() for value in nanos])) == found
    assert internal(183, pa.array([str(value) for value in nanos])) == found


def test_intervals_of_months() -> None:
    found = internal(182, pa.array(["P-3Y-7M", "-03-07", None, "P0M", "+999999999-11"]))
    totals = [None if raw is None else decode_year_month(raw).total for raw in found]
    assert totals == [-43, -43, None, 0, 999_999_999 * 12 + 11]


@pytest.mark.parametrize(("code", "text"), [(182, "P1D"), (182, "P"), (183, "P1Y"), (183, "1 day")])
def test_text_that_is_no_interval(code: int, text: str) -> None:
    if text == "P":
        assert internal(code, pa.array([text])) == internal(code, pa.array(["P0M"]))
        return
    with pytest.raises(OlrPgError) as caught:
        internal(code, pa.array([text]))
    assert caught.value.code == 5102


@pytest.mark.parametrize(
    ("code", "width", "kind"), [(100, 4, pa.float32()), (101, 8, pa.float64())]
)
def test_floats(code: int, width: int, kind: Any) -> None:
    values = [0.0, -0.0, 1.5, -1.5, float("inf"), float("-inf"), float("nan"), None]
    expected = [None if value is None else encode_binary_float(value, width) for value in values]
    assert internal(code, pa.array(values, kind)) == expected


def test_vectors_from_lists_and_text() -> None:
    for array in (pa.array([[1.5, -2.0], None]), pa.array(["[1.5, -2]", None])):
        one, none = internal(127, array)
        assert none is None
        assert one is not None
        assert decode_vector(one).dense().tolist() == [1.5, -2.0]


FORMATS = {
    VectorFormat.FLOAT32: (np.float32, st.floats(width=32, allow_nan=False, allow_infinity=False)),
    VectorFormat.FLOAT64: (np.float64, st.floats(allow_nan=False, allow_infinity=False)),
    VectorFormat.INT8: (np.int8, st.integers(-128, 127)),
    VectorFormat.BINARY: (np.uint8, st.integers(0, 255)),
}


@given(st.data(), st.sampled_from(list(FORMATS)), st.booleans())
def test_vectors_as_oracle_prints_them_are_those_of_their_format(
    data: st.DataObject, form: VectorFormat, sparse: bool
) -> None:
    dtype, elements = FORMATS[form]
    values = np.array(data.draw(st.lists(elements, min_size=1, max_size=9)), dtype)
    places = np.arange(len(values), dtype=np.int64) * 2 if sparse else None
    dimensions = 2 * len(values) if sparse else len(values)
    if form is VectorFormat.BINARY:
        dimensions, places = 8 * len(values), None
    # What FROM_VECTOR writes: nine digits of a FLOAT32, seventeen of a FLOAT64.
    digits = {VectorFormat.FLOAT32: 8, VectorFormat.FLOAT64: 16}.get(form, 1)
    printed = [f"{float(value):.{digits}E}" for value in values]
    if form in (VectorFormat.INT8, VectorFormat.BINARY):
        printed = [str(value) for value in values]
    text = f"[{','.join(printed)}]"
    if places is not None:
        text = f"[{dimensions},[{','.join(map(str, places))}],{text}]"
    wanted = encode_vector(VectorValue(form, dimensions, values, places))
    assert internal(127, pa.array([f"{form.name}{text}", None])) == [wanted, None]


def test_a_vector_of_floats_is_one_of_float32() -> None:
    (raw,) = internal(127, pa.array([[1.1]], pa.list_(pa.float32())))
    assert raw == encode_vector(VectorValue(VectorFormat.FLOAT32, 1, np.array([1.1], "f4")))


@pytest.mark.parametrize("text", ["", "1", "FLOAT16[1]", "INT8[300]", "[1,", '["x"]', "FLOAT32[]"])
def test_text_that_is_no_vector(text: str) -> None:
    with pytest.raises(OlrPgError) as caught:
        internal(127, pa.array([text]))
    assert caught.value.code in (2058, 5102)


def test_slices_nulls_and_every_layout_of_strings() -> None:
    texts = ["", "a", None, "żółć", "b" * 40, None]
    for kind in (
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int8(), pa.string()),
    ):
        array = pa.array(texts).cast(kind)
        for first in range(len(texts)):
            expected = [None if t is None else t.encode() for t in texts[first:]]
            assert internal(112, array.slice(first)) == expected
    fixed = pa.array([b"ab", None, b"cd"], pa.binary(2))
    assert internal(23, fixed.slice(1)) == [None, b"cd"]
    flags = pa.array([True, None, False, True])
    assert internal(252, flags.slice(1)) == [None, b"\0", b"\1"]
    assert internal(NUMBER, pa.nulls(2)) == [None, None]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (NUMBER, pa.float64()),
        (1, pa.int32()),
        (23, pa.string()),
        (113, pa.string()),
        (112, pa.binary()),
        (TIMESTAMP, pa.timestamp("us", "UTC")),
        (TIMESTAMP_TZ, pa.timestamp("us")),
        (100, pa.float64()),
        (252, pa.int8()),
    ],
)
def test_types_that_do_not_fit_are_refused(code: int, kind: Any) -> None:
    with pytest.raises(OlrPgError) as caught:
        arrow_column(column(code), kind)
    assert caught.value.code == 5101


def test_binary_holds_the_internal_form() -> None:
    raw = [encode_number(Decimal("-12.5")), None]
    assert internal(NUMBER, pa.array(raw, pa.binary())) == raw
    assert internal(DATE, pa.array([date(2026, 3, 7)])) == [bytes([120, 126, 3, 7, 1, 1, 1])]
    assert np.array(internal(182, pa.array([b"\x80\0\0\1\x3c"]))).tolist() == [b"\x80\0\0\1\x3c"]


HOUR = 3_600 * 10**9


@pytest.mark.parametrize(
    ("text", "months"),
    [("P-3Y-7M", -43), ("-P3Y7M", -43), ("-03-07", -43), ("+10-11", 131), ("P5M", 5), ("P2Y", 24)],
)
def test_years_and_months(text: str, months: int) -> None:
    assert decode_year_month(year_month_bytes(text)) == YearMonth(months)


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("P1DT2H", 26 * HOUR),
        ("PT-0.5S", -(10**9) // 2),
        ("-01 02:00:00.000000001", -26 * HOUR - 1),
        ("+00 00:00:00.5", 10**9 // 2),
        ("P-1DT-2H-3M-4.5S", -26 * HOUR - 184_500_000_000),
    ],
)
def test_days_and_seconds(text: str, nanoseconds: int) -> None:
    assert decode_day_second(day_second_bytes(text)) == DaySecond(nanoseconds)


@pytest.mark.parametrize("text", ["P1D", "1", "03-", "P1Y2D", "", "P1.5Y"])
def test_what_is_no_interval_of_months(text: str) -> None:
    if text == "":
        text = "-"
    with pytest.raises(OlrPgError) as caught:
        year_month_bytes(text)
    assert caught.value.code == 5102


@pytest.mark.parametrize("text", ["P1M", "P1Y", "01 02:03", "PT1.1234567890S"])
def test_what_is_no_interval_of_days(text: str) -> None:
    with pytest.raises(OlrPgError) as caught:
        day_second_bytes(text)
    assert caught.value.code == 5102
