"""Tells the C library when to give freed memory back to the system, by what a process does."""

from __future__ import annotations

import ctypes
from typing import Final

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_KEPT: Final = 1 << 30
"""More than the tables of a split of a bulk load, which are more than 256 MiB; what a worker uses
at a time is bounded elsewhere."""

_GIVEN_BACK: Final = 4 << 20


def keep_freed_memory() -> None:
    """Use again what was freed; without glibc nothing happens.

    The tables of one window are as large as those of the next. By default glibc gives what is large
    back to the kernel at once, which clears the same pages again and again: a fifth of the time
    that a bulk load takes to decode.
    """
    mallopt(_M_MMAP_THRESHOLD, _KEPT)
    mallopt(_M_TRIM_THRESHOLD, _KEPT)


def give_back_large_memory() -> None:
    """Give what is large back to the kernel once it is freed; without glibc nothing happens.

    Batches differ in size. By default glibc does so only until it has freed something larger, and
    then keeps up to twice that, for each of several threads: 40 MiB while a bulk load is applied.
    """
    mallopt(_M_MMAP_THRESHOLD, _GIVEN_BACK)


def mallopt(parameter: int, value: int) -> None:
    """Set a parameter of glibc's allocator; without glibc nothing happens."""
    function = getattr(ctypes.CDLL(None), "mallopt", None)
    if function is not None:
        function(parameter, value)
