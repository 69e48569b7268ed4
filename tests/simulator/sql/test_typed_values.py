"""Calendar, arithmetic and comparison of SQL's values, with the examples of Oracle's reference."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.sql.typed_values import (
    DAY,
    DateValue,
    Duration,
    Fixed,
    Months,
    Timestamp,
    Zoned,
    add,
    calculated,
    compared,
    date_of,
    days_of,
    interval_of,
    interval_text,
    literal_moment,
    moment_text,
    number_format,
    number_text,
    parsed_moment,
    shifted,
    subtract,
    zone_minutes,
)

NAN = float("nan")


@given(st.dates())
def test_days_are_those_of_the_calendar(day: datetime.date) -> None:
    days = day.toordinal() - 1
    assert days_of(day.year, day.month, day.day) == days
    assert date_of(days) == (day.year, day.month, day.day)


@given(st.integers(-1_721_000, 3_652_058))
def test_days_before_the_year_one_come_back(days: int) -> None:
    assert days_of(*date_of(days)) == days


def test_there_is_no_year_zero() -> None:
    assert date_of(-1) == (-1, 12, 31)


def date(year: int, month: int, day: int) -> DateValue:
    return DateValue(days_of(year, month, day) * 86_400)


@pytest.mark.parametrize(
    ("before", "months", "after"),
    [
        ((2020, 1, 31), 1, (2020, 2, 29)),
        ((2020, 2, 29), 12, (2021, 2, 28)),
        ((2021, 2, 28), 12, (2022, 2, 28)),
        ((2021, 4, 30), 1, (2021, 5, 31)),
        ((2021, 3, 31), -1, (2021, 2, 28)),
    ],
)
def test_add_months_keeps_last_days(before: Any, months: int, after: Any) -> None:
    assert shifted(date(*before), months) == date(*after)


def test_an_interval_of_months_needs_the_day_to_exist() -> None:
    with pytest.raises(OraError, match="ORA-01839"):
        add(date(2021, 1, 31), Months(1))


def test_arithmetic_of_moments() -> None:
    day = date(2024, 2, 29)
    assert subtract(date(2024, 3, 1), day) == 1
    assert add(day, Decimal("0.5")) == DateValue(day.seconds + 43_200)
    moment = Timestamp(day.seconds * 10**9 + 5)
    assert subtract(moment, day) == Duration(5)
    assert add(moment, Decimal(1)) == date(2024, 3, 1)  # a number makes a DATE of it
    assert add(moment, Duration(DAY)) == Timestamp(moment.nanoseconds + DAY)


def test_numbers() -> None:
    assert calculated("/", Decimal(1), Decimal(3)) == Decimal("0." + "3" * 40)
    with pytest.raises(OraError, match="ORA-01476"):
        calculated("/", Decimal(1), Decimal(0))
    assert calculated("/", 1.0, 0.0) == float("inf")
    assert calculated("+", None, Decimal(1)) is None
    assert [number_text(Decimal(one)) for one in ("0.5", "-0.25", "100", "0")] == [
        ".5", "-.25", "100", "0",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("left", "right", "sign"),
    [
        (Fixed("a  "), Fixed("a"), 0),
        ("a  ", Fixed("a"), 1),
        ("12", Decimal(12), 0),
        (NAN, NAN, 0),
        (NAN, float("inf"), 1),
        (b"\x01", "01", 0),
        (None, 1, None),
        (DateValue(1), Timestamp(10**9), 0),
    ],
)
def test_comparison(left: Any, right: Any, sign: int | None) -> None:
    assert compared(left, right) == sign


def test_types_that_cannot_be_compared() -> None:
    with pytest.raises(OraError, match="ORA-00932"):
        compared(DateValue(1), Decimal(1))
    with pytest.raises(OraError, match="ORA-01722"):
        compared("x", Decimal(1))


MOMENT = literal_moment("2024-02-29 15:04:05.678901")


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("YYYY-MM-DD HH24:MI:SS.FF3", "2024-02-29 15:04:05.678"),
        ("DD-MON-RR HH:MI AM", "29-FEB-24 03:04 PM"),
        ("Day, Month", "Thursday , February "),
        ('"week" D Q J', "week 5 1 2460370"),
        ("SSSSS", "54245"),
    ],
)
def test_moments_are_written(form: str, text: str) -> None:
    assert moment_text(MOMENT, form) == text


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("2024-02-29 15:04:05.678901", "YYYY-MM-DD HH24:MI:SS.FF"),
        ("29-FEB-24 03.04.05.678901 PM", "DD-MON-RR HH.MI.SSXFF AM"),
        ("20240229150405678901", "YYYYMMDDHH24MISSFF6"),
    ],
)
def test_moments_are_read(text: str, form: str) -> None:
    assert parsed_moment(text, form) == (MOMENT.nanoseconds, 0)


@pytest.mark.parametrize(
    ("text", "form", "code"),
    [
        ("2024-02-30", "YYYY-MM-DD", 1839),
        ("2024-13-01", "YYYY-MM-DD", 1843),
        ("2024-01-01 more", "YYYY-MM-DD", 1830),
        ("2024", "YYYY-MM-DD", 1840),
        ("0000-01-01", "YYYY-MM-DD", 1841),
        ("2024-01-01 25", "YYYY-MM-DD HH24", 1850),
    ],
)
def test_moments_that_are_none(text: str, form: str, code: int) -> None:
    with pytest.raises(OraError) as caught:
        parsed_moment(text, form)
    assert caught.value.code == code


def test_zones() -> None:
    assert [zone_minutes(one) for one in ("+02:00", "-03:30", "UTC", "")] == [120, -210, 0, 0]
    zoned = literal_moment("2024-01-01 00:30:00 +01:00")
    assert isinstance(zoned, Zoned)
    assert moment_text(zoned, "YYYY-MM-DD HH24:MI TZH:TZM") == "2024-01-01 00:30 +01:00"
    assert isinstance(literal_moment("2024-01-01"), Timestamp)


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("1-2", "YEAR TO MONTH", Months(14)),
        ("-3", "MONTH", Months(-3)),
        ("1 02:03:04.5", "DAY TO SECOND", Duration(93_784_500_000_000)),
        ("-90", "SECOND", Duration(-90_000_000_000)),
        ("2", "HOUR(2)", Duration(7_200_000_000_000)),
    ],
)
def test_intervals(text: str, unit: str, value: Months | Duration) -> None:
    assert interval_of(text, unit) == value


def test_intervals_are_written() -> None:
    assert interval_text(Months(-14)) == "-01-02"
    assert interval_text(Duration(93_784_500_000_000)) == "+01 02:03:04.500000"
    with pytest.raises(OraError, match="ORA-01867"):
        interval_of("1:2", "YEAR TO MONTH")


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        ("1234.567", "9,999.99", " 1,234.57"),
        ("-1", "999", "  -1"),
        ("0.5", "0.99", " 0.50"),
        ("0.5", "9.99", "  .50"),
        ("12345", "999", "####"),
        ("7", "000", " 007"),
        ("1.5", "FM990.99", "1.5"),
        ("0.25", "TM9", ".25"),
    ],
)
def test_numbers_are_written(value: str, form: str, text: str) -> None:
    assert number_format(Decimal(value), form) == text
