"""Tunes a process of ``olr-pg``: turns of its threads, collection of garbage, its heaps."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from typing import Final

from olr_pg.decoding.heap import mallopt

_SWITCH_SECONDS: Final = 0.0005
"""A thread that waits for the interpreter asks for it after this. Receiving, serving, preparing and
applying hand over to each other thousands of times a second: with Python's 5 ms they wait."""

_GC_THRESHOLDS: Final = (20_000, 20, 50)
"""Python would look for cycles at every 700 new objects: transactions come by the thousand, and
have none."""

_OF_A_START: Final = 500_000
"""More objects than any command begins with. All of them stay: looking through them for cycles is a
tenth of the time until a command begins."""

_M_ARENA_MAX: Final = -8
_ARENAS: Final = 2
"""By default every thread gets a heap of its own, and what it freed is of no use to the others."""


def tune_process() -> None:
    """Set what suits a process of many threads; without glibc only what Python knows."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.set_threshold(_OF_A_START, *_GC_THRESHOLDS[1:])
    gc.callbacks.append(_collect_often)
    # The interpreter looks for cycles twice while it ends, among all that was ever imported: a
    # fifth of the time of a short command. What is frozen it passes over.
    atexit.register(gc.freeze)
    # OpenBLAS starts its threads with NumPy, and they spin for a while; nothing here uses them.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    mallopt(_M_ARENA_MAX, _ARENAS)


def _collect_often(_phase: str, _info: object) -> None:
    """End the time of the start: it is the first collection."""
    gc.callbacks.remove(_collect_often)
    gc.set_threshold(*_GC_THRESHOLDS)
