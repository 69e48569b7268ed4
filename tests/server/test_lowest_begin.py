"""The sliding minimum of begin SCNs against a plain list."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from olr_pg.ordering.ready_transactions import joined
from olr_pg.server.queue import LowestBegin, lower_of
from tests.server.test_queue import transaction

STEPS = st.lists(
    st.lists(st.integers(1, 9), min_size=1, max_size=4) | st.integers(0, 4), max_size=12
)


@given(STEPS, st.integers(0, 5))
def test_it_is_the_minimum_of_what_is_left(steps: list[list[int] | int], dropping: int) -> None:
    lowest, model = LowestBegin(), list[int]()
    for step in steps:
        if isinstance(step, int):
            count = min(step, len(model))
            lowest.drop(count)
            del model[:count]
        else:
            lowest.put(joined([transaction(1, begin, 20) for begin in step]))
            model += step
        gone = min(dropping, len(model))
        assert lowest.lowest(gone) == min(model[gone:], default=None)


def test_roughly_the_lowest_stands_until_the_last_is_dropped() -> None:
    lowest = LowestBegin()
    lowest.put(joined([transaction(1, begin, 20) for begin in (3, 8)]), roughly=True)
    lowest.drop(1)
    assert lowest.lowest() == 3
    lowest.drop(1)
    assert lowest.lowest() is None


def test_the_lower_of_two_where_there_are_two() -> None:
    assert (lower_of(3, 2), lower_of(2, 3)) == (2, 2)
    assert (lower_of(None, 3), lower_of(3, None), lower_of(None, None)) == (3, 3, None)
