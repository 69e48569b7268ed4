"""Configures when the C library returns freed memory to the system, depending on the process's
work.
"""

from __future__ import annotations

import ctypes
from typing import Final

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_KEPT: Final = 1 << 30
"""More than the tables of a split of a bulk load, which exceed 256 MiB; other limits apply to a
worker's memory.
"""

_GIVEN_BACK: Final = 4 << 20


def keep_freed_memory() -> None:
    """Keep freed memory for reuse; has no effect without glibc.

    The tables of consecutive windows have the same size. By default glibc returns large blocks to
    the kernel at once, which then clears the same pages again and again: a fifth of the time for
    decoding a bulk load.
    """
    mallopt(_M_MMAP_THRESHOLD, _KEPT)
    mallopt(_M_TRIM_THRESHOLD, _KEPT)


def give_back_large_memory() -> None:
    """Return large blocks to the kernel when they are freed; has no effect without glibc.

    Batches differ in size. By default glibc raises its threshold with each larger block freed, and
    then keeps up to twice that per thread: 40 MiB while a bulk load is applied.
    """
    mallopt(_M_MMAP_THRESHOLD, _GIVEN_BACK)


def mallopt(parameter: int, value: int) -> None:
    """Set a parameter of glibc's allocator; has no effect without glibc."""
    function = getattr(ctypes.CDLL(None), "mallopt", None)
    if function is not None:
        function(parameter, value)
