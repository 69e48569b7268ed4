"""Intervals as text, judged by the codecs of `datatypes`."""

from __future__ import annotations

import pytest

from olr_pg.datatypes.interval import DaySecond, YearMonth, decode_day_second, decode_year_month
from olr_pg.errors import OlrPgError
from olr_pg.load.intervals import day_second_bytes, year_month_bytes

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
