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
    add,
    calculated,
    compared,
    date_of,
    days_of,
    number_text,
    shifted,
    subtract,
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
