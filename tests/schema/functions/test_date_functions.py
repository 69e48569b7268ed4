"""Formats of dates: the same in PostgreSQL, or refused."""

from __future__ import annotations

import pytest

from olr_pg.schema.functions.date_formats import plain_moment, read_format, shown_format
from olr_pg.schema.translating import UntranslatableError


@pytest.mark.parametrize(
    ("form", "wanted"),
    [
        ("YYYY-MM-DD HH24:MI:SS", "YYYY-MM-DD HH24:MI:SS"),
        ("HH24:MI:SS.FF", "HH24:MI:SS.FF3"),
        ("rrrr/mm", "YYYY/MM"),
        ("fmMonth DD, YYYY", "FMMonth FMDD, FMYYYY"),
        ("FMDD.FMMM", "FMDD.MM"),
        ('YYYY"-Q"Q', 'YYYY"-Q"Q'),
        ("DDth", "DDTH"),
        ("ddTH", "DDth"),
        ("Ddth", "DDth"),
        ("hh am", "HH12 am"),
        ("HH:MI AM", "HH12:MI AM"),
    ],
)
def test_formats_that_are_shown(form: str, wanted: str) -> None:
    assert shown_format(form, 3) == wanted


@pytest.mark.parametrize(
    "form", ["DL", "DD ~ MM", "YEAR", "DDSP", "mONTH", "TZR", "FX", "SSSSS", "Am", "Ad", "Rm"]
)
def test_formats_that_are_refused(form: str) -> None:
    with pytest.raises(UntranslatableError):
        shown_format(form)


def test_what_a_date_lacks_comes_from_today() -> None:
    assert read_format("DD-MM-YYYY").missing == ""
    assert read_format("YYYY").missing == "MM-"
    assert read_format("HH24:MI").missing == "YYYY-MM-"
    assert read_format("DDMM").missing == "YYYY-"
    assert read_format("J").missing == ""
    assert read_format("FMSYYYY-MM-DD HH24").missing == ""


@pytest.mark.parametrize(
    "form", ["D", "DAY", "IW", "Q", "DDTH", "YYY", "SYYYY", "SYYYYMMDD", "DD.MM.SYYYY"]
)
def test_formats_that_no_date_is_read_in(form: str) -> None:
    with pytest.raises(UntranslatableError):
        read_format(form)


def test_plain_literals_are_read_at_once() -> None:
    assert plain_moment("31.01.2026", "DD.MM.YYYY") == "2026-01-31 00:00:00"
    assert plain_moment("2026-01-31 13:30", "YYYY-MM-DD HH24:MI") == "2026-01-31 13:30:00"
    assert plain_moment("31-JAN-26", "DD-MON-RR") is None
