"""INTERVAL YEAR TO MONTH and INTERVAL DAY TO SECOND values (values-and-lobs §9, type-mapping
§4.5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from olr_pg.datatypes.columns import ValueColumn, fixed_width, nulls
from olr_pg.datatypes.outcomes import (
    MALFORMED,
    OK,
    OVERFLOW,
    PRECISION,
    byte_at,
    check,
    malformed,
)
from olr_pg.datatypes.policies import DEFAULT_POLICIES, Counters, Policies
from olr_pg.errors import Code, OlrPgError
from olr_pg.kernels.compile import kernel

if TYPE_CHECKING:
    import numpy.typing as npt

    Bytes = npt.NDArray[np.uint8]
    Longs = npt.NDArray[np.int64]

_BIAS: Final = 1 << 31
_FIELD_BIAS: Final = 60
_YEARS_MAX: Final = 999_999_999
_DAYS_MAX: Final = 999_999_999
_NANOS_PER_SECOND: Final = 10**9
PG_INTERVAL: Final = np.dtype([("micros", ">i8"), ("days", ">i4"), ("months", ">i4")])
"""PostgreSQL's binary interval: three parts, each with its own sign."""


class YearMonth(NamedTuple):
    """An INTERVAL YEAR TO MONTH.

    Attributes:
        total: months, negative for negative intervals.
    """

    total: int

    def isoformat(self) -> str:
        """Write an ISO 8601 duration such as ``P3Y7M``. Each part carries the sign; zero is
        ``P0M``.
        """
        years, months = divmod(abs(self.total), 12)
        sign = "-" if self.total < 0 else ""
        text = (f"{sign}{years}Y" if years else "") + (f"{sign}{months}M" if months else "")
        return f"P{text or '0M'}"

    def __str__(self) -> str:
        years, months = divmod(abs(self.total), 12)
        return f"{'-' if self.total < 0 else '+'}{years}-{months:02d}"


class DaySecond(NamedTuple):
    """An INTERVAL DAY TO SECOND.

    Attributes:
        total: nanoseconds, negative for negative intervals.
    """

    total: int

    @property
    def parts(self) -> tuple[int, int, int, int, int]:
        """Return (days, hours, minutes, seconds, nanoseconds) of the absolute value."""
        seconds, nanos = divmod(abs(self.total), _NANOS_PER_SECOND)
        days, rest = divmod(seconds, 86_400)
        hours, rest = divmod(rest, 3600)
        return days, hours, *divmod(rest, 60), nanos

    def isoformat(self) -> str:
        """Write an ISO 8601 duration such as ``P1DT2H3M4.5S``. Each part carries the sign; zero is
        ``PT0S``.
        """
        days, hours, minutes, seconds, nanos = self.parts
        sign = "-" if self.total < 0 else ""
        date = f"{sign}{days}D" if days else ""
        second = f"{seconds}.{nanos:09d}".rstrip("0") if nanos else str(seconds)
        clock = "".join(
            f"{sign}{amount}{unit}"
            for amount, unit in ((hours, "H"), (minutes, "M"), (second, "S"))
            if amount not in (0, "0")
        )
        if not date and not clock:
            return "PT0S"
        return f"P{date}T{clock}" if clock else f"P{date}"

    def __str__(self) -> str:
        days, hours, minutes, seconds, nanos = self.parts
        sign = "-" if self.total < 0 else "+"
        return f"{sign}{days} {hours:02d}:{minutes:02d}:{seconds:02d}.{nanos:09d}"


# --- one value -----------------------------------------------------------------------------------


def decode_year_month(raw: bytes) -> YearMonth:
    """Decode an INTERVAL YEAR TO MONTH of 5 bytes.

    Raises:
        OlrPgError: 2050, the bytes are malformed.
    """
    if len(raw) != 5 or not 49 <= raw[4] <= 71:
        raise malformed("INTERVAL YEAR TO MONTH", raw)
    years = int.from_bytes(raw[:4], "big") - _BIAS
    if abs(years) > _YEARS_MAX:
        raise malformed("INTERVAL YEAR TO MONTH", raw)
    return YearMonth(12 * years + raw[4] - _FIELD_BIAS)


def encode_year_month(value: YearMonth) -> bytes:
    """Encode an INTERVAL YEAR TO MONTH as its 5 bytes.

    Raises:
        OlrPgError: 2058, more than 999,999,999 years.
    """
    years, months = divmod(abs(value.total), 12)
    if years > _YEARS_MAX:
        raise OlrPgError(
            Code.VALUE_NOT_EXPRESSIBLE_IN_ORACLE, f"beyond INTERVAL YEAR TO MONTH: {value}"
        )
    sign = -1 if value.total < 0 else 1
    return (sign * years + _BIAS).to_bytes(4, "big") + bytes([sign * months + _FIELD_BIAS])


def decode_day_second(raw: bytes) -> DaySecond:
    """Decode an INTERVAL DAY TO SECOND of 11 bytes.

    Raises:
        OlrPgError: 2050, the bytes are malformed.
    """
    if len(raw) != 11:
        raise malformed("INTERVAL DAY TO SECOND", raw)
    days = int.from_bytes(raw[:4], "big") - _BIAS
    hours, minutes, seconds = (byte - _FIELD_BIAS for byte in raw[4:7])
    nanos = int.from_bytes(raw[7:], "big") - _BIAS
    within = (
        abs(days) <= _DAYS_MAX
        and abs(hours) <= 23
        and max(abs(minutes), abs(seconds)) <= 59
        and abs(nanos) < _NANOS_PER_SECOND
    )
    if not within:
        raise malformed("INTERVAL DAY TO SECOND", raw)
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    return DaySecond(total * _NANOS_PER_SECOND + nanos)


def encode_day_second(value: DaySecond) -> bytes:
    """Encode an INTERVAL DAY TO SECOND as its 11 bytes.

    Raises:
        OlrPgError: 2058, more than 999,999,999 days.
    """
    days, hours, minutes, seconds, nanos = value.parts
    if days > _DAYS_MAX:
        raise OlrPgError(
            Code.VALUE_NOT_EXPRESSIBLE_IN_ORACLE, f"beyond INTERVAL DAY TO SECOND: {value}"
        )
    sign = -1 if value.total < 0 else 1
    fields = bytes(sign * part + _FIELD_BIAS for part in (hours, minutes, seconds))
    return (
        (sign * days + _BIAS).to_bytes(4, "big")
        + fields
        + (sign * nanos + _BIAS).to_bytes(4, "big")
    )


# --- columns -------------------------------------------------------------------------------------


def year_month_to_interval(values: ValueColumn) -> ValueColumn:
    """Convert INTERVAL YEAR TO MONTH to interval.

    Raises:
        OlrPgError: 2050 malformed; 2053 beyond 178,956,970 years.
    """
    out = np.zeros(len(values.length), PG_INTERVAL)
    months = np.zeros(len(out), np.int64)
    row, outcome = year_month_kernel(*values, months)
    check(row, outcome, values, "INTERVAL YEAR TO MONTH to interval")
    out["months"] = months
    return fixed_width(out, nulls(values))


def day_second_to_interval(
    values: ValueColumn, policies: Policies = DEFAULT_POLICIES
) -> tuple[ValueColumn, Counters]:
    """Convert INTERVAL DAY TO SECOND to interval. Nanoseconds are truncated to microseconds
    (towards zero).

    Raises:
        OlrPgError: 2050 malformed; 2057 the policy forbids to truncate a value.
    """
    out = np.zeros(len(values.length), PG_INTERVAL)
    micros, days = np.zeros(len(out), np.int64), np.zeros(len(out), np.int64)
    row, outcome, cut = day_second_kernel(*values, policies.fraction == "error", micros, days)
    check(row, outcome, values, "INTERVAL DAY TO SECOND to interval")
    out["micros"], out["days"] = micros, days
    return fixed_width(out, nulls(values)), Counters(truncated=cut)


# --- kernels -------------------------------------------------------------------------------------


@kernel
def _biased(data: Bytes, at: int) -> int:
    value = 0
    for i in range(4):
        value = value << 8 | byte_at(data, at + i)
    return value - (1 << 31)


@kernel
def year_month_kernel(data: Bytes, offset: Longs, length: Longs, out: Longs) -> tuple[int, int]:
    """Convert INTERVAL YEAR TO MONTH to months that fit int4. Returns (failed row or −1,
    outcome).
    """
    for row in range(len(length)):
        if length[row] <= 0:
            continue
        at = offset[row]
        if length[row] != 5:
            return row, MALFORMED
        years = _biased(data, at)
        months = byte_at(data, at + 4) - 60
        if abs(years) > 999_999_999 or abs(months) > 11:
            return row, MALFORMED
        total = 12 * years + months
        if total < -(1 << 31) or total >= 1 << 31:
            return row, OVERFLOW
        out[row] = total
    return -1, OK


@kernel
def day_second_kernel(
    data: Bytes,
    offset: Longs,
    length: Longs,
    fraction_error: bool,
    micros: Longs,
    days: Longs,
) -> tuple[int, int, int]:
    """Convert INTERVAL DAY TO SECOND to microseconds and days. Returns (failed row or −1, outcome,
    number of truncated values).
    """
    cut = 0
    for row in range(len(length)):
        if length[row] <= 0:
            continue
        at = offset[row]
        if length[row] != 11:
            return row, MALFORMED, cut
        day, nanos = _biased(data, at), _biased(data, at + 7)
        hours, minutes = byte_at(data, at + 4) - 60, byte_at(data, at + 5) - 60
        seconds = byte_at(data, at + 6) - 60
        if abs(day) > 999_999_999 or abs(hours) > 23 or abs(minutes) > 59 or abs(seconds) > 59:
            return row, MALFORMED, cut
        if abs(nanos) > 999_999_999:
            return row, MALFORMED, cut
        sign = -1 if nanos < 0 else 1
        rest = abs(nanos) % 1000
        if rest:
            if fraction_error:
                return row, PRECISION, cut
            cut += 1
        whole = (hours * 60 + minutes) * 60 + seconds
        micros[row] = whole * 1_000_000 + sign * ((abs(nanos) - rest) // 1000)
        days[row] = day
    return -1, OK, cut
