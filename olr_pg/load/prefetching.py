"""Making the next item while the last one is used: a thread that is one ahead.

A task of a load waits for the server while it sends rows, and the server for the task while that
encodes some. Both take about as long, and what encodes (kernels, Arrow) lets other threads run.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Generator

T = TypeVar("T")


def prefetched(items: Generator[T, None, None]) -> Generator[T, None, None]:
    """Yield items, each made in another thread while the caller has the one before.

    Args:
        items: runs in that thread alone; what it raises is raised here, in its place. It is closed
            at the end, and where the caller wants no more.
    """
    with closing(items), ThreadPoolExecutor(1, "load-ahead") as maker:
        following = maker.submit(next, items, None)
        while (item := following.result()) is not None:
            following = maker.submit(next, items, None)
            yield item
