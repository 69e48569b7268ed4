"""Dates and timestamps in both directions, judged by PostgreSQL."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.datatypes import temporal
from olr_pg.datatypes.columns import column_of
from olr_pg.datatypes.policies import Policies
from olr_pg.datatypes.temporal import (
    DateTime,
    TemporalForm,
    Zone,
    ZonedDateTime,
    civil_date,
    civil_days,
    decode_date,
    decode_timestamp,
    decode_timestamp_tz,
    encode_date,
    encode_timestamp,
    local_isoformat,
    temporal_to_date,
    temporal_to_micros,
    temporal_to_timestamp,
)
from olr_pg.errors import OlrPgError
from olr_pg.kernels.compile import uncompiled
from tests.datatypes.zoned_timestamps import encode_timestamp_tz

if TYPE_CHECKING:
    from collections.abc import Callable

# values-and-lobs §5
DATES = [
    ("787e0307022d28", "2026-03-07T01:44:39", "2026-03-07 01:44:39"),
    ("787d081b010101", "2025-08-27T00:00:00", "2025-08-27 00:00:00"),
    ("787c0814011f23", "2024-08-20T00:30:34", "2024-08-20 00:30:34"),
    ("64650101010101", "0001-01-01T00:00:00", "0001-01-01 00:00:00"),
    ("64630101010101", "-0001-01-01T00:00:00", "0001-01-01 00:00:00 BC"),
    ("63640101010101", "-0100-01-01T00:00:00", "0100-01-01 00:00:00 BC"),
    ("35580101010101", "-4712-01-01T00:00:00", "4712-01-01 00:00:00 BC"),
    ("c7c70c1f183c3c", "9999-12-31T23:59:59", "9999-12-31 23:59:59"),
]
# values-and-lobs §6.1
TIMESTAMPS = [
    ("787e010814142f38acc618", "2026-01-08T19:19:46.950847", "2026-01-08 19:19:46.950847"),
    ("787e01140a38073661b120", "2026-01-20T09:55:06.912372", "2026-01-20 09:55:06.912372"),
    ("787e03020c0f0b3936b698", "2026-03-02T11:14:10.959887", "2026-03-02 11:14:10.959887"),
    ("7873071f093807095c58d8", "2015-07-31T08:55:06.157047", "2015-07-31 08:55:06.157047"),
    ("787d081b010101", "2025-08-27T00:00:00", "2025-08-27 00:00:00"),
    ("7864010101010100000001", "2000-01-01T00:00:00.000000001", "2000-01-01 00:00:00"),
    ("c7c70c1f183c3c3b9ac9ff", "9999-12-31T23:59:59.999999999", "9999-12-31 23:59:59.999999"),
]
# values-and-lobs §7.2
ZONED = [
    ("77c70a1e050101000000000d3c", "1999-10-29T21:00:00-07:00", "1999-10-30 04:00:00+00", -420),
    ("77c70a1e05010100000000899c", "1999-10-30T04:00:00Z", "1999-10-30 04:00:00+00", 615),
    (
        "787e010814142f38acc618143c",
        "2026-01-08T19:19:46.950847+00:00",
        "2026-01-08 19:19:46.950847+00",
        0,
    ),
    (
        "787e010814142f38acc618195a",
        "2026-01-09T00:49:46.950847+05:30",
        "2026-01-08 19:19:46.950847+00",
        330,
    ),
    (
        "787e010814142f38acc618111e",
        "2026-01-08T15:49:46.950847-03:30",
        "2026-01-08 19:19:46.950847+00",
        -210,
    ),
    (
        "787e010814142f38acc6188638",
        "2026-01-08T19:19:46.950847Z",
        "2026-01-08 19:19:46.950847+00",
        398,
    ),
    (
        "787e010814142f38acc6188190",
        "2026-01-08T19:19:46.950847Z",
        "2026-01-08 19:19:46.950847+00",
        100,
    ),
    (
        "787e010814142f38acc618d004",
        "2026-01-08T19:19:46.950847Z",
        "2026-01-08 19:19:46.950847+00",
        5121,
    ),
    # values-and-lobs §5: the local time is in Oracle's range, UTC is not
    ("c8640101053c3c000000000f3c", "9999-12-31T23:59:59-05:00", "10000-01-01 04:59:59+00", -300),
    ("c8640101053c3c000000008190", "10000-01-01T04:59:59Z", "10000-01-01 04:59:59+00", 100),
    ("35570c1f18010100000000153c", "-4712-01-01T00:00:00+01:00", "4713-12-31 23:00:00+00 BC", 60),
]

datetimes = st.builds(
    lambda when, nanos: DateTime(
        when.year, when.month, when.day, when.hour, when.minute, when.second, nanos
    ),
    st.datetimes(min_value=datetime(1600, 1, 1)),  # noqa: DTZ001
    st.integers(0, 999_999_999) | st.just(0),
)


@pytest.mark.parametrize(("raw", "text", "_printed"), DATES)
def test_dates(raw: str, text: str, _printed: str) -> None:
    value = decode_date(bytes.fromhex(raw))
    assert value.isoformat() == text
    assert encode_date(value).hex() == raw


@pytest.mark.parametrize(("raw", "text", "_printed"), TIMESTAMPS)
def test_timestamps(raw: str, text: str, _printed: str) -> None:
    value = decode_timestamp(bytes.fromhex(raw))
    assert value.isoformat() == text
    assert encode_timestamp(value).hex() == raw


@pytest.mark.parametrize(("raw", "text", "_printed", "zone"), ZONED)
def test_timestamps_with_time_zone(raw: str, text: str, _printed: str, zone: int) -> None:
    value = decode_timestamp_tz(bytes.fromhex(raw))
    assert value.isoformat() == text
    assert zone in value.zone
    assert encode_timestamp_tz(value).hex() == raw


def test_postgresql_prints_the_examples(judge: Callable[..., list[str | None]]) -> None:
    dates, _ = temporal_to_timestamp(
        column_of([*(bytes.fromhex(raw) for raw, _, _ in DATES), None]), TemporalForm.DATE
    )
    assert judge("timestamp(0)", dates) == [*(printed for _, _, printed in DATES), None]
    stamps, counters = temporal_to_timestamp(
        column_of([bytes.fromhex(raw) for raw, _, _ in TIMESTAMPS]), TemporalForm.TIMESTAMP
    )
    assert judge("timestamp(6)", stamps) == [printed for _, _, printed in TIMESTAMPS]
    assert counters.truncated == 2
    zoned, _ = temporal_to_timestamp(
        column_of([bytes.fromhex(raw) for raw, _, _, _ in ZONED]), TemporalForm.TIMESTAMP_TZ
    )
    assert judge("timestamptz(6)", zoned) == [printed for _, _, printed, _ in ZONED]


def test_postgresql_reads_every_label_as_it_is(judge: Callable[..., list[str | None]]) -> None:
    random = np.random.default_rng(5)
    labels = [
        DateTime(year, month, int(random.integers(1, 29)), int(random.integers(24)))
        for year in [*range(-4712, 0, 31), *range(1, 10_000, 37)]
        for month in range(1, 13)
    ]
    values, _ = temporal_to_timestamp(column_of(map(encode_date, labels)), TemporalForm.DATE)
    assert judge("timestamp", values) == [
        f"{abs(v.year):04d}-{v.month:02d}-{v.day:02d} {v.hour:02d}:00:00"
        + (" BC" if v.year < 0 else "")
        for v in labels
    ]


def test_the_documented_binary_form() -> None:
    values, _ = temporal_to_timestamp(
        column_of([bytes.fromhex("787e0307022d28"), None, b""]), TemporalForm.DATE
    )
    assert values.values() == [bytes.fromhex("0002ef6414d9afc0"), None, None]


@given(datetimes)
def test_round_trip(value: DateTime) -> None:
    assert decode_timestamp(encode_timestamp(value)) == value
    assert decode_date(encode_date(value)) == value._replace(nanosecond=0)


@given(datetimes, st.integers(-779, 840) | st.none(), st.integers(1, 8191))
def test_round_trip_with_zone(value: DateTime, minutes: int | None, region: int) -> None:
    zoned = ZonedDateTime(value, Zone(minutes, None if minutes is not None else region))
    assert decode_timestamp_tz(encode_timestamp_tz(zoned)) == zoned


@given(st.datetimes(min_value=datetime(1600, 1, 2), max_value=datetime(9999, 12, 30)))  # noqa: DTZ001
def test_local_time_of_an_offset(when: datetime) -> None:
    utc = when.replace(microsecond=0)
    value = DateTime(utc.year, utc.month, utc.day, utc.hour, utc.minute, utc.second)
    local = utc + timedelta(hours=-3, minutes=-30)
    assert ZonedDateTime(value, Zone(-210)).isoformat() == local.isoformat() + "-03:30"


@pytest.mark.parametrize(
    "raw",
    [
        "787e0307022d",
        "787e0307022d2800",
        "787e0d07022d28",
        "787e0007022d28",
        "787e0320022d28",
        "787e021e022d28",
        "787e021d010101",
        "787e041f010101",
        "787e0307192d28",
        "787e0300022d28",
        "787e0307002d28",
        "787e0307023d28",
        "787e0307020028",
        "787e0307022d3d",
        "787e0307022d00",
        "787e0307003d28",
        "787e03070201ff",
        "c8650101010101",
        "c8640102010101",
        "c8640201010101",
        "35570c1e010101",
        "3557010f010101",
        "64000101010101",
        "34640101010101",
        "78630101010101",
        "787e010814142f3b9aca00",
    ],
)
def test_malformed_bytes_are_refused(raw: str) -> None:
    with pytest.raises(OlrPgError, match="OLR-02050"):
        decode_timestamp(bytes.fromhex(raw))
    values = column_of([None, bytes.fromhex(raw)])
    with pytest.raises(OlrPgError, match="OLR-02050") as caught:
        temporal_to_timestamp(values, TemporalForm.TIMESTAMP)
    assert caught.value.where["row"] == 1


def nulls_or_code(raws: list[bytes], form: TemporalForm) -> list[bool] | int:
    """Which results are NULL, or the code of the error."""
    try:
        values, _ = temporal_to_timestamp(column_of(raws), form)
    except OlrPgError as error:
        return error.code
    return [value is None for value in values.values()]


@pytest.mark.parametrize("size", sorted(set(range(15)) - {9, 13}))
def test_a_zoned_timestamp_has_9_or_13_bytes(size: int) -> None:
    raw = bytes.fromhex("78640101010101 000003e8 143c 143c 14")[:size]
    with pytest.raises(OlrPgError, match="OLR-02050"):
        decode_timestamp_tz(raw)


@pytest.mark.parametrize("zone", ["243c", "043c", "003c", "7f3c"])
def test_an_offset_of_16_hours_is_refused(zone: str) -> None:
    with pytest.raises(OlrPgError, match="OLR-02050"):
        decode_timestamp_tz(bytes.fromhex("78640101010101" + zone))


@given(st.lists(st.binary(max_size=14)), st.sampled_from(TemporalForm))
def test_any_bytes_give_a_value_or_a_documented_error(
    raws: list[bytes], form: TemporalForm
) -> None:
    assert nulls_or_code(raws, form) in (2050, [not raw for raw in raws])


def test_days_are_those_of_the_gregorian_calendar() -> None:
    """Against Python's, around every end of February and of a year; and 400 years repeat."""
    first = date(2000, 1, 1).toordinal()
    days, civil = uncompiled(civil_days), uncompiled(civil_date)
    for year in range(1, 10_000):
        for month, day in ((1, 1), (2, 28), (3, 1), (7, 31), (12, 31)):
            given = date(year, month, day).toordinal() - first
            if year % 100 in (0, 4, 96, 99) or month == 3:
                assert days(year, month, day) == given
                assert civil(given) == (year, month, day)
    for year in range(-4711, 1):
        later = days(year + 4800, 2, 28) - 12 * 146_097
        assert days(year, 2, 28) == later
        assert civil(later) == (year, 2, 28)
    assert [civil(days(2000, 2, 29) + 146_097 * era) for era in range(-16, 4)] == [
        (2000 + 400 * era, 2, 29) for era in range(-16, 4)
    ]


def label_of(raw: str, form: TemporalForm) -> tuple[int, int, int]:
    """(µs, how many moved, how many were cut) of one value."""
    micros, null, counters = temporal_to_micros(column_of([bytes.fromhex(raw)]), form)
    assert not null[0]
    return int(micros[0]), counters.calendar, counters.truncated


def test_the_microseconds_of_a_label() -> None:
    """By hand, from 2000-01-01 00:00:00 (values-and-lobs §5, §6.1)."""
    day = 86_400_000_000
    assert label_of("78640101010101", TemporalForm.DATE) == (0, 0, 0)
    assert label_of("78640102020202", TemporalForm.DATE) == (day + 3_661_000_000, 0, 0)
    assert label_of("77c70c1f183c3c", TemporalForm.DATE) == (-1_000_000, 0, 0)
    stamp = TemporalForm.TIMESTAMP
    assert label_of("7864010101010100000001", stamp) == (0, 0, 1)
    assert label_of("78640101010101000003e8", stamp) == (1, 0, 0)
    assert label_of("786401010101013b9ac9ff", stamp) == (999_999, 0, 1)
    assert label_of("786401010101010f424000", stamp) == (256_000, 0, 0)
    zoned = TemporalForm.TIMESTAMP_TZ
    assert label_of("78640101010101000003e8143c", zoned) == (1, 0, 0)
    assert label_of("78640101010102143c", zoned) == (1_000_000, 0, 0)
    for raw, form in (
        ("7864010101010100000000", TemporalForm.DATE),
        ("78640101010101143c", stamp),
        ("78640101010101", zoned),
        ("78640101010101000003e8", zoned),
        ("7864010101010100", stamp),
    ):
        with pytest.raises(OlrPgError, match="OLR-02050"):
            label_of(raw, form)


@pytest.mark.parametrize(
    ("year", "is_leap", "moves"),
    [
        ("6464", True, 0), ("6465", False, 0), ("6468", True, 0), ("6564", True, 1),
        ("6864", True, 0), ("7364", True, 1), ("7464", True, 0), ("73b4", True, 0),
        ("7764", False, 0), ("7864", True, 0), ("77c7", False, 0), ("645f", True, 0),
        ("6363", True, 1), ("6063", True, 0), ("6460", True, 1), ("6461", False, 0),
    ],
)  # fmt: skip
def test_the_29_of_february(year: str, is_leap: bool, moves: int) -> None:
    """Of 1 BC, 1, 4, 100, …, 1999, 5, 101, 401, 4 and 3 BC (values-and-lobs §5)."""
    raw = year + "021d010101"
    if not is_leap:
        with pytest.raises(OlrPgError, match="OLR-02050"):
            label_of(raw, TemporalForm.DATE)
        return
    assert label_of(raw, TemporalForm.DATE)[1] == moves


@pytest.mark.parametrize("month", range(1, 13))
def test_the_last_day_of_a_month(month: int) -> None:
    days = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]
    form = TemporalForm.DATE
    first = label_of(f"787d{month:02x}01010101", form)[0]
    assert (
        label_of(f"787d{month:02x}{days:02x}010101", form)[0] == first + (days - 1) * 86_400_000_000
    )
    with pytest.raises(OlrPgError, match="OLR-02050"):
        label_of(f"787d{month:02x}{days + 1:02x}010101", form)


def test_a_julian_leap_day_moves_or_is_refused() -> None:
    raw = encode_date(DateTime(1500, 2, 29))
    assert decode_date(raw).isoformat() == "1500-02-29T00:00:00"
    moved, counters = temporal_to_timestamp(column_of([raw]), TemporalForm.DATE)
    march = encode_date(DateTime(1500, 3, 1))
    assert moved.value(0) == temporal_to_timestamp(column_of([march]), TemporalForm.DATE)[0].value(
        0
    )
    assert counters.calendar == 1
    with pytest.raises(OlrPgError, match="OLR-02057"):
        temporal_to_timestamp(column_of([raw]), TemporalForm.DATE, Policies(calendar="error"))
    with pytest.raises(OlrPgError, match="OLR-02058"):
        encode_date(DateTime(1900, 2, 29))


def test_nanoseconds_are_cut_or_refused() -> None:
    raw = encode_timestamp(DateTime(2026, 1, 1, nanosecond=1_999))
    values, counters = temporal_to_timestamp(column_of([raw]), TemporalForm.TIMESTAMP)
    whole = encode_timestamp(DateTime(2026, 1, 1, nanosecond=1_000))
    expected, untouched = temporal_to_timestamp(column_of([whole]), TemporalForm.TIMESTAMP)
    assert values.value(0) == expected.value(0)
    assert (counters.truncated, untouched.truncated) == (1, 0)
    with pytest.raises(OlrPgError, match="OLR-02057"):
        temporal_to_timestamp(column_of([raw]), TemporalForm.TIMESTAMP, Policies(fraction="error"))


def test_year_0_counts_as_1_bc() -> None:
    zero, one = bytes.fromhex("64640101010101"), bytes.fromhex("64630101010101")
    values, _ = temporal_to_timestamp(column_of([zero, one]), TemporalForm.DATE)
    assert values.value(0) == values.value(1)
    assert decode_date(zero) == decode_date(one)


@pytest.mark.parametrize(
    ("zone", "utc"),
    [
        ("+00:00", "2026-01-08 19:19:46.950847+00"),
        ("+02:00", "2026-01-08 17:19:46.950847+00"),
        ("-05:30", "2026-01-09 00:49:46.950847+00"),
        ("Europe/Warsaw", "2026-01-08 18:19:46.950847+00"),
    ],
)
def test_local_time_zones(zone: str, utc: str, judge: Callable[..., list[str | None]]) -> None:
    raw = bytes.fromhex("787e010814142f38acc618")
    values, _ = temporal_to_timestamp(column_of([raw]), TemporalForm.TIMESTAMP, Policies(), zone)
    assert judge("timestamptz", values) == [utc]


@given(st.lists(st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1))))  # noqa: DTZ001
def test_regions_follow_their_rules(locals_: list[datetime]) -> None:
    region = ZoneInfo("America/New_York")
    raws = [
        encode_timestamp(DateTime(*when.timetuple()[:6], when.microsecond * 1000))
        for when in locals_
    ]
    values, _ = temporal_to_timestamp(
        column_of(raws), TemporalForm.TIMESTAMP, Policies(), "America/New_York"
    )
    epoch = datetime(2000, 1, 1, tzinfo=UTC)
    # Of an hour that comes twice the first is meant: a value does not say which.
    expected = [
        (when.replace(tzinfo=region, fold=0).astimezone(UTC) - epoch) // timedelta(microseconds=1)
        for when in locals_
    ]
    assert np.frombuffer(values.data, ">i8").tolist() == expected


def test_of_an_hour_that_comes_twice_the_first_is_meant(
    judge: Callable[..., list[str | None]],
) -> None:
    raw = encode_timestamp(DateTime(1954, 9, 26, 1, 0))
    values, _ = temporal_to_timestamp(
        column_of([raw]), TemporalForm.TIMESTAMP, Policies(), "America/New_York"
    )
    assert judge("timestamptz", values) == ["1954-09-26 05:00:00+00"]


def test_local_isoformat() -> None:
    value = DateTime(2026, 7, 1, 12, 30)
    assert local_isoformat(value, "+02:00") == "2026-07-01T12:30:00+02:00"
    assert local_isoformat(value, "Europe/Warsaw") == "2026-07-01T10:30:00Z"
    with pytest.raises(OlrPgError, match="OLR-02059"):
        local_isoformat(value, "Middle/Earth")


def test_date_refuses_a_time_of_day(judge: Callable[..., list[str | None]]) -> None:
    midnight, later = encode_date(DateTime(-44, 3, 15)), encode_date(DateTime(2026, 1, 1, 1))
    values, _ = temporal_to_date(column_of([midnight, None]), TemporalForm.DATE)
    assert judge("date", values) == ["0044-03-15 BC", None]
    with pytest.raises(OlrPgError, match="OLR-02057") as caught:
        temporal_to_date(column_of([midnight, later]), TemporalForm.DATE)
    assert caught.value.where["row"] == 1


@given(st.lists(datetimes, max_size=5))
def test_kernel_agrees_with_its_interpreted_form(labels: list[DateTime]) -> None:
    values = column_of([*map(encode_timestamp, labels), None])
    results = []
    for kernel in (temporal.micros_kernel, temporal.micros_kernel.py_func):  # type: ignore[attr-defined]
        out = np.zeros(len(labels) + 1, np.int64)
        results.append((kernel(*values, 1, False, False, out), out.tolist()))
    assert results[0] == results[1]


def test_values_are_decoded_where_nothing_is_compiled() -> None:
    code = (
        "from olr_pg.datatypes.temporal import decode_timestamp, shifted;"
        "print(shifted(decode_timestamp(bytes.fromhex('787e0b17161f0b')), 3600).isoformat())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "2026-11-23T22:30:10\n"
