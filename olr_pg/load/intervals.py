"""Parses intervals: ISO 8601 durations, and the format of Oracle's TO_CHAR."""

from __future__ import annotations

import re
from typing import Final

from olr_pg.datatypes.interval import DaySecond, YearMonth, encode_day_second, encode_year_month
from olr_pg.errors import Code, OlrPgError

_ISO: Final = re.compile(
    r"(-?)P(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)D)?"
    r"(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?\d+)(?:\.(\d{1,9}))?S)?)?"
)
_YEAR_MONTH: Final = re.compile(r"([+-]?)(\d+)-(\d+)")
_DAY_SECOND: Final = re.compile(r"([+-]?)(\d+) (\d+):(\d+):(\d+)(?:\.(\d{1,9}))?")


def year_month_bytes(text: str) -> bytes:
    """Convert ``P-3Y-7M`` or ``-03-07`` to INTERVAL YEAR TO MONTH.

    Raises:
        OlrPgError: 5102, the text has another format.
    """
    if found := _YEAR_MONTH.fullmatch(text):
        sign, years, months = found.groups()
        return encode_year_month(YearMonth(_signed(sign, 12 * int(years) + int(months))))
    if (found := _ISO.fullmatch(text)) and not any(found.groups()[3:]):
        sign, iso_years, iso_months = found.groups()[:3]
        total = 12 * int(iso_years or 0) + int(iso_months or 0)
        return encode_year_month(YearMonth(_signed(sign, total)))
    raise OlrPgError(Code.TABLE_DATA_VALUE_UNFIT, f"not an INTERVAL YEAR TO MONTH: {text!r}")


def day_second_bytes(text: str) -> bytes:
    """Convert ``P-1DT-2H-3M-4.5S`` or ``-01 02:03:04.5`` to INTERVAL DAY TO SECOND.

    Raises:
        OlrPgError: 5102, the text has another format.
    """
    if found := _DAY_SECOND.fullmatch(text):
        sign, days, hours, minutes, seconds, fraction = found.groups()
        total = _nanoseconds(days, hours, minutes, seconds, fraction)
        return encode_day_second(DaySecond(_signed(sign, total)))
    if (found := _ISO.fullmatch(text)) and not any(found.groups()[1:3]):
        sign, _, _, *parts = found.groups()
        return encode_day_second(DaySecond(_signed(sign, _nanoseconds(*parts))))
    raise OlrPgError(Code.TABLE_DATA_VALUE_UNFIT, f"not an INTERVAL DAY TO SECOND: {text!r}")


def _signed(sign: str, total: int) -> int:
    return -total if sign == "-" else total


def _nanoseconds(
    days: str | None,
    hours: str | None,
    minutes: str | None,
    seconds: str | None,
    fraction: str | None,
) -> int:
    clock = int(days or 0) * 24 + int(hours or 0)
    total = (clock * 60 + int(minutes or 0)) * 60 + int(seconds or 0)
    part = int((fraction or "").ljust(9, "0"))
    # The fraction has the sign of the seconds. For a negative value between −1 and 0, only the text
    # "-0" shows the sign.
    return total * 1_000_000_000 + (-part if (seconds or "").startswith("-") else part)
