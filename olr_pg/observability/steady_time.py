"""Time that goes on evenly, whatever somebody does to the machine's clock.

A clock is put right now and then: by an hour, where it was set wrongly. Ages, lags and rates are
differences of two moments. Read from such a clock, a table that is behind would have no lag for an
hour, or an hour of it that there never was. So moments here are seconds of Unix time as of the
process's beginning, and what has passed since; the time in which a machine was suspended counts.
Whoever shows such a moment to people, or compares it with the time of a file, adds `clock_shift`.
"""

from __future__ import annotations

import time
from typing import Final

SHIFT_SECONDS_MIN: Final = 0.5
"""What two clocks may differ by that nobody has moved: they are read one after the other."""

_AHEAD: Final = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


def steady_time() -> float:
    """Return the seconds of Unix time, had nobody moved the clock since the process began."""
    return _AHEAD + time.clock_gettime(time.CLOCK_BOOTTIME)


def clock_shift() -> float:
    """Return by how many seconds the clock was moved since the process began; mostly 0."""
    shift = time.time() - steady_time()
    return shift if abs(shift) >= SHIFT_SECONDS_MIN else 0.0
