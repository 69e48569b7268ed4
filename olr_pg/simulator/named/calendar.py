"""Civil dates in kernels: days since 1970 to year, month and day; redo times; stored dates.

Facts: redo-format §0.3 (time), values-and-lobs §3 (DATE).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.kernels.compile import part
from olr_pg.simulator.named.instance_memory import CLOCK, ZONE

if TYPE_CHECKING:
    from olr_pg.simulator.named.put import Bytes, Ints

DAY: Final = 86_400


@part
def civil(days: int) -> int:
    """Year, month and day of a day since 1970, as year · 10,000 + month · 100 + day.

    The proleptic Gregorian calendar from year 1 on, counted in 400-year cycles from 1 March. Not
    `datatypes.temporal.civil_date`: the model shares no arithmetic with what it tests.
    """
    shifted = days + 719_468
    era = shifted // 146_097
    of_era = shifted - era * 146_097
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    year = year_of_era + era * 400 + (1 if month <= 2 else 0)
    return year * 10_000 + month * 100 + day


@part
def redo_time(m: Ints) -> int:
    """Return the host's local time as redo has it."""
    seconds = m[CLOCK] // 1000 + m[ZONE]
    date = civil(seconds // DAY)
    months = (date // 10_000 - 1988) * 12 + date // 100 % 100 - 1
    return int((months * 31 + date % 100 - 1) * DAY + seconds % DAY)


@part
def put_date(d: Bytes, at: int, seconds: int) -> None:
    """Write the 7 bytes of a DATE."""
    date = civil(seconds // DAY)
    second = seconds % DAY
    d[at] = date // 1_000_000 + 100
    d[at + 1] = date // 10_000 % 100 + 100
    d[at + 2] = date // 100 % 100
    d[at + 3] = date % 100
    d[at + 4] = second // 3600 + 1
    d[at + 5] = second // 60 % 60 + 1
    d[at + 6] = second % 60 + 1
