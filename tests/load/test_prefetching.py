"""The next item is made while the last one is used, and nothing is left behind."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from olr_pg.load.prefetching import prefetched

if TYPE_CHECKING:
    from collections.abc import Generator

PATIENCE_SECONDS = 60


def test_the_next_one_is_made_meanwhile() -> None:
    second = threading.Event()

    def items() -> Generator[int, None, None]:
        yield 1
        second.set()
        yield 2

    made = prefetched(items())
    assert next(made) == 1
    assert second.wait(PATIENCE_SECONDS)
    assert list(made) == [2]


def test_what_fails_fails_in_its_place() -> None:
    def items() -> Generator[int, None, None]:
        yield 1
        raise ValueError("the second")

    made = prefetched(items())
    assert next(made) == 1
    with pytest.raises(ValueError, match="the second"):
        next(made)


def test_it_ends_where_no_more_is_wanted() -> None:
    ended = list[str]()

    def items() -> Generator[int, None, None]:
        try:
            while True:
                yield 1
        finally:
            ended.append("closed")

    made = prefetched(items())
    next(made)
    made.close()
    assert ended == ["closed"]
    assert not [one for one in threading.enumerate() if one.name.startswith("load-ahead")]
