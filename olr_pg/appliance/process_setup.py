"""Tunes a process of ``olr-pg``: thread switching, garbage collection, memory arenas."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from typing import Final

from olr_pg.decoding.heap import share_one_heap

_SWITCH_SECONDS: Final = 0.0005
"""Python's thread switch interval. The threads that receive, serve, prepare and apply changes pass
work to each other thousands of times a second. With Python's default interval of 5 ms they would
mostly wait.
"""

_GC_THRESHOLDS: Final = (20_000, 20, 50)
"""Thresholds of Python's garbage collection. By default, Python searches for reference cycles after
every 700 new objects; transactions create thousands of objects without cycles.
"""

_OF_A_START: Final = 500_000
"""The first threshold during the start of a process: more objects than any command has after its
start. All of these objects stay alive, and searching them for cycles would take a tenth of the
start time.
"""


def tune_process() -> None:
    """Apply the settings for a process with many threads. Without glibc, only the settings of
    Python are applied.
    """
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.set_threshold(_OF_A_START, *_GC_THRESHOLDS[1:])
    gc.callbacks.append(_collect_often)
    # While the interpreter ends, it searches all imported objects for cycles twice, which takes a
    # fifth of the time of a short command. It skips frozen objects.
    atexit.register(gc.freeze)
    # OpenBLAS starts threads when NumPy is imported, and they use a core for a while, although this
    # program does not need them.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    share_one_heap()


def _collect_often(_phase: str, _info: object) -> None:
    """Set the usual thresholds at the first garbage collection, which ends the start phase."""
    gc.callbacks.remove(_collect_often)
    gc.set_threshold(*_GC_THRESHOLDS)
