"""Provides a clock that never jumps, even if the machine's clock is changed.

A machine's clock is corrected from time to time, perhaps by an hour. Ages, lags and rates are
differences of two times. If the clock was changed between the two times, a table that is behind
would show no lag for an hour, or a lag that is an hour too long. So a steady time is the Unix time
at the start of the process plus the time since then, including time in which the machine was
suspended. To show such a time to people, or to compare it with the time of a file, add
`clock_shift`.
"""

from __future__ import annotations

import time
from typing import Final

SHIFT_SECONDS_MIN: Final = 0.5
"""A smaller difference between the two clocks is ignored, because they are read one after the
other.
"""

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
