"""Starts work in advance in an executor, for a limited number of items, and yields the results in
the order of the items.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable
    from concurrent.futures import Future

T = TypeVar("T")
R = TypeVar("R")


def in_order(
    items: Iterable[T],
    submit: Callable[[T], Future[R]],
    window: int | Callable[[], int],
) -> Generator[tuple[T, R], None, None]:
    """Yield each item with the result of its work, in order. If the work raised an error, raise it.
    If the generator is closed or fails, work that has not begun is cancelled.

    Args:
        submit: starts the work for an item.
        window: maximum number of items whose work was started and whose result was not yielded yet;
            or a function that returns this number, which is called before each result.
    """
    size = window if callable(window) else lambda: window
    todo = iter(items)
    under_way: deque[tuple[T, Future[R]]] = deque()
    try:
        while True:
            under_way.extend((item, submit(item)) for item in islice(todo, size() - len(under_way)))
            if not under_way:
                return
            result = under_way[0][1].result()
            yield under_way.popleft()[0], result
    finally:
        for _, future in under_way:
            future.cancel()
