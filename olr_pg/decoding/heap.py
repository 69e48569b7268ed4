"""Configures when the C library returns freed memory to the operating system. The best setting
depends on the work of the process.
"""

from __future__ import annotations

import ctypes
import os
from typing import Final

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_KEPT: Final = 1 << 30
"""Bytes of freed memory that may be kept. This amount is more than the tables for a split of a bulk
load need (over 256 MiB). The memory of a worker has other limits.
"""

_GIVEN_BACK: Final = 4 << 20


def keep_freed_memory() -> None:
    """Keep freed memory for reuse. The call has no effect without glibc.

    The tables of consecutive windows have the same size. By default, glibc returns large blocks to
    the kernel when they are freed, and the kernel clears the pages before each reuse. Clearing
    takes a fifth of the time for decoding a bulk load.

    Arrow uses the same heap if this function is called before Arrow's first allocation. Arrow's own
    allocator would return freed memory after 10 ms, which takes a tenth of the time for writing
    Parquet files.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    share_one_heap()
    mallopt(_M_MMAP_THRESHOLD, _KEPT)
    mallopt(_M_TRIM_THRESHOLD, _KEPT)


def share_one_heap() -> None:
    """Let all threads of this process allocate memory from one heap. The call has no effect without
    glibc, or after another thread has allocated memory.

    By default, glibc makes a heap for each thread, whose blocks are at most 64 MiB. glibc maps a
    larger block separately, and returns unused memory of such a heap at once, so that the kernel
    clears the same pages again and again. Memory that was freed in the heap of one thread cannot be
    used by other threads.
    """
    mallopt(_M_ARENA_MAX, 1)


def give_back_large_memory() -> None:
    """Return large blocks to the kernel when they are freed. The call has no effect without glibc.

    The sizes of batches differ. By default, when a block larger than glibc's threshold is freed,
    glibc raises the threshold to its size, and then keeps up to twice as much freed memory per
    thread: 40 MiB while a bulk load is applied.
    """
    mallopt(_M_MMAP_THRESHOLD, _GIVEN_BACK)


def mallopt(parameter: int, value: int) -> None:
    """Set a parameter of glibc's allocator. The call has no effect without glibc."""
    function = getattr(ctypes.CDLL(None), "mallopt", None)
    if function is not None:
        function(parameter, value)
