"""Produces the next item in another thread while the caller uses the current one.

Without this, a task of a load would wait for the server while sending rows, and the server would
wait while the task encodes. Sending and encoding take about the same time, and encoding (kernels,
Arrow) releases the interpreter lock, so they can run at the same time.
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
        items: the generator; it runs only in the other thread. An exception of the generator is
            raised to the caller, after the items before it. The generator is closed at the end, and
            also if the caller stops early.
    """
    with closing(items), ThreadPoolExecutor(1, "load-ahead") as maker:
        following = maker.submit(next, items, None)
        while (item := following.result()) is not None:
            following = maker.submit(next, items, None)
            yield item
