"""Formats of dates: the same in PostgreSQL, or refused."""

from __future__ import annotations

import pytest

from olr_pg.schema.date_functions import date_format
from olr_pg.schema.translating import UntranslatableError


def test_formats_that_mean_the_same() -> None:
    assert date_format("YYYY-MM-DD HH24:MI:SS") == "YYYY-MM-DD HH24:MI:SS"
    assert date_format("HH24:MI:SS.FF") == "HH24:MI:SS.FF6"
    assert date_format("RRRR/MM") == "YYYY/MM"


@pytest.mark.parametrize("form", ["DD-MON-RR", "MONTH", "D", "FMDD.MM.YYYY", "DD §"])
def test_formats_that_do_not(form: str) -> None:
    with pytest.raises(UntranslatableError):
        date_format(form)
