"""Work ahead: results in order, no more begun than a window, and nothing left under way."""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import closing

import pytest

from olr_pg.ordered_window import in_order


class Given(Future[str]):
    """A future that knows whether somebody gave it up, even if it had ended already."""

    is_given_up = False

    def cancel(self) -> bool:
        self.is_given_up = True
        return super().cancel()


class Work:
    """Futures that the test ends by hand."""

    def __init__(self) -> None:
        self.begun: dict[int, Given] = {}

    def submit(self, item: int) -> Future[str]:
        self.begun[item] = Given()
        if item < 3:
            self.begun[item].set_result(f"result {item}")
        return self.begun[item]


def test_results_come_in_order_with_a_bounded_number_under_way() -> None:
    work = Work()
    with closing(in_order(range(9), work.submit, 3)) as results:
        assert next(results) == (0, "result 0")
        assert list(work.begun) == [0, 1, 2]
        assert next(results) == (1, "result 1")
        assert list(work.begun) == [0, 1, 2, 3]


def test_the_number_under_way_may_grow() -> None:
    work, window = Work(), 1
    with closing(in_order(range(9), work.submit, lambda: window)) as results:
        next(results)
        assert list(work.begun) == [0]
        window = 3
        assert next(results) == (1, "result 1")
        assert list(work.begun) == [0, 1, 2, 3]


def test_closing_gives_up_what_is_under_way() -> None:
    work = Work()
    with closing(in_order(range(9), work.submit, 5)) as results:
        next(results)
    assert [item for item, future in work.begun.items() if future.cancelled()] == [3, 4]


def test_a_failure_is_raised_in_its_place_and_the_rest_is_given_up() -> None:
    work = Work()
    results = in_order(range(2, 9), work.submit, 3)
    assert next(results) == (2, "result 2")
    work.begun[3].set_exception(ValueError("the second"))
    with pytest.raises(ValueError, match="the second"):
        next(results)
    assert [item for item, future in work.begun.items() if future.is_given_up] == [3, 4, 5]


def test_nothing_is_begun_of_nothing() -> None:
    assert not list(in_order([], Work().submit, 3))
