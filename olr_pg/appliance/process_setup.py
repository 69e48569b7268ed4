"""Tunes a process of ``olr-pg``: thread switching, garbage collection, memory arenas."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from typing import Final

from olr_pg.decoding.heap import mallopt

_SWITCH_SECONDS: Final = 0.0005
"""Python's thread switch interval. The threads that receive, serve, prepare and apply hand over to
each other thousands of times a second; with Python's default of 5 ms they would wait.
"""

_GC_THRESHOLDS: Final = (20_000, 20, 50)
"""Python would look for cycles after every 700 new objects; transactions create thousands of
objects without cycles.
"""

_OF_A_START: Final = 500_000
"""More objects than any command has after its start. All of them stay alive; searching them for
cycles would take a tenth of the start time.
"""

_M_ARENA_MAX: Final = -8
_ARENAS: Final = 2
"""Maximum number of malloc arenas. By default every thread gets one, whose freed memory the others
cannot use.
"""


def tune_process() -> None:
    """Apply the settings for a process with many threads; without glibc, only Python's."""
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
    """End the start phase, at the first garbage collection."""
    gc.callbacks.remove(_collect_often)
    gc.set_threshold(*_GC_THRESHOLDS)
