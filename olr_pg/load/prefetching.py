"""Produces the next item in another thread while the caller uses the current one.

A task of a load waits for the server while it sends rows, and the server waits for the task while
it encodes. Both take about as long, and encoding (kernels, Arrow) releases the interpreter lock.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Generator

T = TypeVar("T")


def prefetched(items: Generator[T, None, None]) -> Generator[T, None, None]:
    """Yield items; each is produced in another thread while the caller uses the previous one.

    Args:
        items: runs only in that thread; its exceptions are raised here in order. It is closed at
            the end, and if the caller stops early.
    """
    with closing(items), ThreadPoolExecutor(1, "load-ahead") as maker:
        following = maker.submit(next, items, None)
        while (item := following.result()) is not None:
            following = maker.submit(next, items, None)
            yield item
