"""Values go into the partitions that Oracle's documentation sends them to."""

from __future__ import annotations

from decimal import Decimal

import pytest

from olr_pg.simulator.fields import cells
from olr_pg.simulator.sql.row_store import ListBounds, RangeBounds


@pytest.mark.parametrize(
    ("value", "number"),
    [("-100", 0), ("-10.5", 0), ("-10", 1), ("0", 1), ("0.49", 1), ("0.5", 2), ("1e9", 2)],
)
def test_numbers_by_range(value: str, number: int) -> None:
    bounds = RangeBounds([[cells.number(Decimal(-10)).raw], [cells.number(Decimal("0.5")).raw], []])
    assert bounds(cells.number(Decimal(value))) == number
    assert bounds(None) == 2  # NULL is above all values


def test_above_the_last_bound_there_is_no_partition() -> None:
    bounds = RangeBounds([[cells.text("m", "utf-8").raw]])
    assert bounds(cells.text("lzz", "utf-8")) == 0
    assert bounds(cells.text("m", "utf-8")) == -1
    assert bounds(None) == -1
    assert bounds.may_follow([cells.text("n", "utf-8").raw])
    assert not bounds.may_follow([cells.text("a", "utf-8").raw])


def test_values_by_list() -> None:
    a, b = (cells.text(one, "utf-8") for one in "ab")
    bounds = ListBounds([[a.raw], [None]])
    assert [bounds(one) for one in (a, b, None)] == [0, -1, 1]
    assert ListBounds([[a.raw], []])(b) == 1
