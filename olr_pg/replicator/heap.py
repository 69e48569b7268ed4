"""How a process that decodes keeps its memory."""

from __future__ import annotations

import ctypes
from typing import Final

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_KEPT: Final = 256 << 20


def keep_freed_memory() -> None:
    """Use again what was freed; without glibc nothing happens.

    The tables of one window are as large as those of the next. By default glibc gives what is large
    back to the kernel at once, which clears the same pages again and again: a fifth of the time
    that a bulk load takes to decode.
    """
    mallopt(_M_MMAP_THRESHOLD, _KEPT)
    mallopt(_M_TRIM_THRESHOLD, _KEPT)


def mallopt(parameter: int, value: int) -> None:
    """Set a parameter of glibc's allocator; without glibc nothing happens."""
    function = getattr(ctypes.CDLL(None), "mallopt", None)
    if function is not None:
        function(parameter, value)
