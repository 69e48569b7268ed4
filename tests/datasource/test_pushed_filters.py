"""Bounds let through what the conditions do; what they say of other columns is left to Spark."""

from __future__ import annotations

from datetime import datetime

import pytest
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from olr_pg.datasource.pushed_filters import bounds_of
from olr_pg.datasource.redo_split import Bounds
from olr_pg.scalars import encode_redo_time

SCN = ("commit_scn",)
NOON = datetime(2026, 3, 1, 12)  # noqa: DTZ001 - redo has no zone


@pytest.mark.parametrize(
    ("filters", "bounds"),
    [
        ([], Bounds()),
        ([EqualTo(SCN, 7)], Bounds(first_scn=7, last_scn=7)),
        ([GreaterThan(SCN, 7), LessThan(SCN, 9)], Bounds(first_scn=7, last_scn=9)),
        ([In(SCN, (9, 7, 8))], Bounds(first_scn=7, last_scn=9)),
        ([IsNotNull(SCN), Not(EqualTo(SCN, 7)), EqualTo(("op",), "delete")], Bounds()),
        ([GreaterThanOrEqual(SCN, -7)], Bounds()),
        (
            [GreaterThanOrEqual(("commit_time",), NOON)],
            Bounds(first_time=encode_redo_time(NOON)),
        ),
        (
            [LessThanOrEqual(("commit_time",), NOON.replace(microsecond=5))],
            Bounds(last_time=encode_redo_time(NOON)),
        ),
        ([GreaterThan(("commit_time",), NOON.replace(year=1900))], Bounds()),
        ([GreaterThan(("commit_time",), "2026")], Bounds()),
    ],
)
def test_conditions_on_commits_become_bounds(filters: list[Filter], bounds: Bounds) -> None:
    assert bounds_of(filters) == bounds


def test_what_nothing_fits_is_never_read() -> None:
    assert not bounds_of([LessThan(SCN, -1)]).overlap(Bounds())
