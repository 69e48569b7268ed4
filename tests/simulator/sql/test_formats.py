"""Formats of dates, numbers and intervals, as the SQL Language Reference lists them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.sql.formats import (
    interval_of,
    interval_text,
    literal_moment,
    moment_text,
    number_format,
    parsed_moment,
    zone_minutes,
)
from olr_pg.simulator.sql.typed_values import Duration, Months, Timestamp, Zoned

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
