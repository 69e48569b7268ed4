"""A clock that runs evenly, even if the machine's clock is changed.

A clock is corrected from time to time, perhaps by an hour. Ages, lags and rates are differences of
two times. With a changed clock, a table that is behind would show no lag for an hour, or an hour
too much. So times here are Unix time at the start of the process plus the elapsed time, including
time in which the machine was suspended. To show such a time to people, or to compare it with the
time of a file, add `clock_shift`.
"""

from __future__ import annotations

import time
from typing import Final

SHIFT_SECONDS_MIN: Final = 0.5
"""Difference between two unchanged clocks, because they are read one after the other."""

_AHEAD: Final = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


def steady_time() -> float:
    """Return the Unix time in seconds as if the clock had not been changed since the process
    began.
    """
    return _AHEAD + time.clock_gettime(time.CLOCK_BOOTTIME)


def clock_shift() -> float:
    """Return by how many seconds the clock was changed since the process began; usually 0."""
    shift = time.time() - steady_time()
    return shift if abs(shift) >= SHIFT_SECONDS_MIN else 0.0
