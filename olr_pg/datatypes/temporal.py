"""DATE, TIMESTAMP, TIMESTAMP WITH TIME ZONE and WITH LOCAL TIME ZONE values (values-and-lobs
§5–§7).

Years are numbered as in Oracle: 1 is AD 1, −1 is 1 BC, and there is no year 0. If the stored year
is 0, which date arithmetic can produce, it counts as 1 BC. A *label* is a date and time as written,
without a zone. The conversion keeps labels: year, month and day are the same in PostgreSQL's
proleptic Gregorian calendar. The only exception is a 29 February that exists in the Julian but not
in the Gregorian calendar: it becomes 1 March (type-mapping §4.3).
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import numpy.typing as npt

from olr_pg.datatypes.columns import ValueColumn, fixed_width, nulls
from olr_pg.datatypes.mapping import OracleType
from olr_pg.datatypes.outcomes import (
    CALENDAR,
    MALFORMED,
    OK,
    PRECISION,
    Outcome,
    byte_at,
    check,
    fail,
    malformed,
    printed,
)
from olr_pg.datatypes.policies import DEFAULT_POLICIES, Counters, Policies
from olr_pg.errors import Code, OlrPgError
from olr_pg.kernels.compile import inlined_kernel, kernel, uncompiled

if TYPE_CHECKING:
    Bytes = npt.NDArray[np.uint8]
    Longs = npt.NDArray[np.int64]

DAYS_1970_TO_2000: Final = 10_957
MICROS_PER_SECOND: Final = 1_000_000
MICROS_PER_DAY: Final = 86_400 * MICROS_PER_SECOND
_NANOS_MAX: Final = 999_999_999
_OFFSET: Final = re.compile(r"([+-])(\d{1,2}):(\d{2})")
_QUARTER_HOUR: Final = 15 * 60 * MICROS_PER_SECOND
_EPOCH: Final = datetime(2000, 1, 1)  # noqa: DTZ001 - a label; the zone is what is looked up


class TemporalForm(IntEnum):
    """The stored layout of a temporal type."""

    DATE = 0
    TIMESTAMP = 1
    TIMESTAMP_TZ = 2


TEMPORAL_FORMS: Final[dict[int, TemporalForm]] = {
    OracleType.DATE: TemporalForm.DATE,
    OracleType.TIMESTAMP: TemporalForm.TIMESTAMP,
    OracleType.TIMESTAMP_LTZ: TemporalForm.TIMESTAMP,
    OracleType.TIMESTAMP_TZ: TemporalForm.TIMESTAMP_TZ,
}
"""The stored layout of each Oracle type that contains a date."""

_DATE = int(TemporalForm.DATE)
_WITH_ZONE = int(TemporalForm.TIMESTAMP_TZ)


class DateTime(NamedTuple):
    """A stored date and time: a calendar label without a zone.

    Attributes:
        year: numbered as in Oracle, −4712 … 9999; negative means BC. In UTC, or in DBTIMEZONE, a
            value can be up to a day outside of these years (`date_days`).
        nanosecond: 0 … 999,999,999.
    """

    year: int
    month: int
    day: int
    hour: int = 0
    minute: int = 0
    second: int = 0
    nanosecond: int = 0

    def isoformat(self) -> str:
        """Return text such as ``2026-03-07T01:44:39.5``, without trailing zeros in the fraction.
        The year ``-0001`` is 1 BC.
        """
        sign = "-" if self.year < 0 else ""
        text = (
            f"{sign}{abs(self.year):04d}-{self.month:02d}-{self.day:02d}"
            f"T{self.hour:02d}:{self.minute:02d}:{self.second:02d}"
        )
        if not self.nanosecond:
            return text
        return f"{text}.{self.nanosecond:09d}".rstrip("0")


class Zone(NamedTuple):
    """The zone of a TIMESTAMP WITH TIME ZONE: an offset in minutes or a region id."""

    offset_minutes: int | None
    region: int | None = None


class ZonedDateTime(NamedTuple):
    """A TIMESTAMP WITH TIME ZONE: the instant in UTC and the zone that it was written in."""

    utc: DateTime
    zone: Zone

    def isoformat(self) -> str:
        """Return ISO 8601 text: local time with ``+HH:MM`` if the zone is an offset, UTC with ``Z``
        if it is a region.

        For a region, the local time depends on the version of Oracle's time zone file, but UTC does
        not.
        """
        if self.zone.offset_minutes is None:
            return self.utc.isoformat() + "Z"
        sign = "-" if self.zone.offset_minutes < 0 else "+"
        hours, minutes = divmod(abs(self.zone.offset_minutes), 60)
        seconds = self.zone.offset_minutes * 60
        local = shifted(self.utc, seconds) if seconds else self.utc
        return f"{local.isoformat()}{sign}{hours:02d}:{minutes:02d}"


# --- one value -----------------------------------------------------------------------------------


def decode_date(raw: bytes) -> DateTime:
    """Decode a DATE of 7 bytes.

    Raises:
        OlrPgError: 2050, the bytes are not a DATE.
    """
    if len(raw) != 7 or not _is_date(raw):
        raise malformed("DATE", raw)
    return _fields(raw, 0)


def decode_timestamp(raw: bytes) -> DateTime:
    """Decode a TIMESTAMP or TIMESTAMP WITH LOCAL TIME ZONE of 7 or 11 bytes.

    Raises:
        OlrPgError: 2050, the bytes are not a TIMESTAMP.
    """
    if len(raw) not in (7, 11) or not _is_date(raw[:7]):
        raise malformed("TIMESTAMP", raw)
    nanosecond = int.from_bytes(raw[7:], "big")
    if nanosecond > _NANOS_MAX:
        raise malformed("TIMESTAMP", raw)
    return _fields(raw, nanosecond)


def decode_timestamp_tz(raw: bytes) -> ZonedDateTime:
    """Decode a TIMESTAMP WITH TIME ZONE of 13 bytes. A form of 9 bytes, without a fraction, is
    accepted too.

    Raises:
        OlrPgError: 2050, the bytes are malformed.
    """
    if len(raw) not in (9, 13):
        raise malformed("TIMESTAMP WITH TIME ZONE", raw)
    high, low = raw[-2:]
    zone = (
        Zone(None, (high & 0x7F) << 6 | low >> 2)
        if high & 0x80
        else Zone((high - 20) * 60 + low - 60)
    )
    if zone.offset_minutes is not None and abs(zone.offset_minutes) >= 16 * 60:
        raise malformed("TIMESTAMP WITH TIME ZONE", raw)
    return ZonedDateTime(decode_timestamp(raw[:-2]), zone)


def encode_date(value: DateTime) -> bytes:
    """Encode a DATE as its 7 bytes; the fraction is dropped.

    Raises:
        OlrPgError: 2058, the date does not exist in Oracle's calendar, or is out of its range.
    """
    quotient, rest = divmod(abs(value.year), 100)
    sign = -1 if value.year < 0 else 1
    fields = (
        100 + sign * quotient,
        100 + sign * rest,
        value.month,
        value.day,
        value.hour + 1,
        value.minute + 1,
        value.second + 1,
    )
    valid = (
        value.year != 0 and all(0 <= field <= 255 for field in fields) and _is_date(bytes(fields))
    )
    if not valid:
        raise OlrPgError(
            Code.VALUE_NOT_EXPRESSIBLE_IN_ORACLE, f"not a date in Oracle's calendar: {tuple(value)}"
        )
    return bytes(fields)


def encode_timestamp(value: DateTime) -> bytes:
    """Encode a TIMESTAMP as its 7 bytes, or 11 if it has a fraction.

    Raises:
        OlrPgError: 2058, as for `encode_date`.
    """
    if not 0 <= value.nanosecond <= _NANOS_MAX:
        raise OlrPgError(
            Code.VALUE_NOT_EXPRESSIBLE_IN_ORACLE, f"no nanoseconds of a second: {value.nanosecond}"
        )
    fraction = value.nanosecond.to_bytes(4, "big") if value.nanosecond else b""
    return encode_date(value) + fraction


def local_isoformat(value: DateTime, zone: str) -> str:
    """Return a local time in `zone` as ISO 8601 text: with ``+HH:MM`` if the zone is an offset;
    converted to UTC, with ``Z``, if it is a region.

    Raises:
        OlrPgError: 2059, the zone is unknown.
    """
    if offset_minutes(zone) is not None:
        return f"{value.isoformat()}{zone.strip()}"
    raw = np.frombuffer(encode_date(value), np.uint8)
    micros = np.zeros(1, np.int64)
    micros_kernel(raw, np.zeros(1, np.int64), np.full(1, 7), 0, False, False, micros)
    seconds = int((to_utc(micros, zone) - micros)[0]) // MICROS_PER_SECOND
    return shifted(value, seconds).isoformat() + "Z"


def _is_date(raw: bytes) -> bool:
    return bool(uncompiled(date_days)(np.frombuffer(raw, np.uint8), 0)[0] >= 0)


def _fields(raw: bytes, nanosecond: int) -> DateTime:
    year = (raw[0] - 100) * 100 + raw[1] - 100
    month, day, hour, minute, second = raw[2:7]
    return DateTime(year or -1, month, day, hour - 1, minute - 1, second - 1, nanosecond)


def shifted(value: DateTime, seconds: int) -> DateTime:
    """Return `value` moved by `seconds` in the proleptic Gregorian calendar."""
    astronomical = value.year + 1 if value.year < 0 else value.year
    days = int(uncompiled(civil_days)(astronomical, value.month, value.day))
    total = days * 86_400 + value.hour * 3600 + value.minute * 60 + value.second + seconds
    days, rest = divmod(total, 86_400)
    year, month, day = uncompiled(civil_date)(days)
    hour, rest = divmod(rest, 3600)
    minute, second = divmod(rest, 60)
    label = year if year > 0 else year - 1
    return DateTime(label, month, day, hour, minute, second, value.nanosecond)


# --- columns -------------------------------------------------------------------------------------


def temporal_to_micros(
    values: ValueColumn, form: TemporalForm, policies: Policies = DEFAULT_POLICIES
) -> tuple[Longs, npt.NDArray[np.bool_], Counters]:
    """Return (microseconds since 2000-01-01 for each label, whether each value is NULL, counters).
    A NULL has 0 microseconds.

    Raises:
        OlrPgError: 2050 malformed, 2057 a value would lose something, and a policy forbids it.
    """
    out = np.zeros(len(values.length), np.int64)
    row, outcome, moved, cut = micros_kernel(
        *values, int(form), policies.calendar == "error", policies.fraction == "error", out
    )
    check(row, outcome, values, form.name.replace("_", " "), shown_label)
    return out, nulls(values), Counters(calendar=moved, truncated=cut)


def temporal_to_timestamp(
    values: ValueColumn,
    form: TemporalForm,
    policies: Policies = DEFAULT_POLICIES,
    zone: str | None = None,
) -> tuple[ValueColumn, Counters]:
    """Convert to timestamp, or timestamptz, in PostgreSQL's binary form.

    Args:
        values: values of layout `form`.
        form: the stored layout; values of layout `TIMESTAMP_TZ` are already in UTC.
        policies: `calendar` and `fraction` apply.
        zone: if given, the labels are local time of this zone (offset or region name) and are
            converted to UTC: DBTIMEZONE for TIMESTAMP WITH LOCAL TIME ZONE.

    Raises:
        OlrPgError: as for `temporal_to_micros`; 2059, the zone is unknown.
    """
    micros, null, counters = temporal_to_micros(values, form, policies)
    if zone is not None:
        micros = to_utc(micros, zone)
    return fixed_width(micros.astype(">i8"), null), counters


def invalid_to_null(values: ValueColumn, form: TemporalForm) -> tuple[ValueColumn, int]:
    """Replace dates and times that do not exist, or are out of Oracle's range, by NULL. Return the
    values and the number of replaced values. Values of a wrong size stay.
    """
    invalid = np.zeros(len(values.length), np.bool_)
    _mark_invalid(values.data, values.offset, values.length, int(form), invalid)
    return values._replace(length=np.where(invalid, -1, values.length)), int(invalid.sum())


def shown_label(raw: bytes) -> str:
    """Return the bytes of a date and time for an error message, with the fields that they
    contain.
    """
    if len(raw) < 7:
        return printed(raw)
    year = (raw[0] - 100) * 100 + raw[1] - 100
    month, day, hour, minute, second = raw[2:7]
    date = f"{'-' * (year < 0)}{abs(year):04d}-{month:02d}-{day:02d}"
    return f"{printed(raw)} ({date} {hour - 1:02d}:{minute - 1:02d}:{second - 1:02d})"


def temporal_to_date(
    values: ValueColumn, form: TemporalForm, policies: Policies = DEFAULT_POLICIES
) -> tuple[ValueColumn, Counters]:
    """Convert DATE or TIMESTAMP to date.

    Raises:
        OlrPgError: as for `temporal_to_micros`; 2057, a value has a time of day other than
            00:00:00.
    """
    micros, null, counters = temporal_to_micros(values, form, policies)
    days, rest = np.divmod(micros, MICROS_PER_DAY)
    timed = np.flatnonzero(rest)
    if len(timed):
        fail(int(timed[0]), Outcome.FRACTION, values, f"{form.name} to date")
    return fixed_width(days.astype(">i4"), null), counters


def offset_minutes(zone: str) -> int | None:
    """Return the minutes of a zone that is an offset (``+02:00``), or None for any other zone."""
    match = _OFFSET.fullmatch(zone.strip())
    if not match:
        return None
    minutes = int(match[2]) * 60 + int(match[3])
    return -minutes if match[1] == "-" else minutes


def to_utc(micros: Longs, zone: str) -> Longs:
    """Convert local times in `zone` to UTC, both in microseconds since 2000-01-01.

    When summer time ends, one hour occurs twice. A local time in this hour counts as the first
    occurrence, in summer time. Oracle's behaviour is unknown (values-and-lobs §6.3).
    """
    minutes = offset_minutes(zone)
    if minutes is not None:
        return micros - minutes * 60 * MICROS_PER_SECOND
    try:
        region = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise OlrPgError(
            Code.TIME_ZONE_UNKNOWN, f"{zone!r} is neither an offset nor a region"
        ) from error
    # Zones change their offset only at full quarters of an hour, so one look-up per quarter is
    # enough.
    quarters, inverse = np.unique(micros // _QUARTER_HOUR, return_inverse=True)
    offsets = np.array([_region_offset(region, quarter) for quarter in quarters.tolist()], np.int64)
    return micros - offsets[inverse] * MICROS_PER_SECOND


def _region_offset(region: ZoneInfo, quarter: int) -> int:
    """Return the region's offset in seconds east of UTC at a local quarter of an hour. For a time
    outside of Python's range of years, use the nearest time in that range.
    """
    minutes = min(max(15 * quarter, _MINUTES_MIN), _MINUTES_MAX)
    offset = (_EPOCH + timedelta(minutes=minutes)).replace(tzinfo=region).utcoffset()
    return int((offset or timedelta()).total_seconds())


_MINUTES_MIN: Final = (datetime(2, 1, 1) - _EPOCH) // timedelta(minutes=1)  # noqa: DTZ001
_MINUTES_MAX: Final = (datetime(9998, 12, 31) - _EPOCH) // timedelta(minutes=1)  # noqa: DTZ001


# --- kernels -------------------------------------------------------------------------------------


@kernel
def civil_days(year: int, month: int, day: int) -> int:
    """Return the number of days from 2000-01-01 to a proleptic Gregorian date. Year 0 is 1 BC. A
    day beyond the month's end counts as a day of the next month.

    Args:
        year: at least −4799.
    """
    # Count from 1 March 4801 BC, so that a leap day is the last day of a year, and no number is
    # negative.
    if month > 2:
        years, months = np.uint64(year + 4800), np.uint64(month - 3)
    else:
        years, months = np.uint64(year + 4799), np.uint64(month + 9)
    leap_days = years // np.uint64(4) - years // np.uint64(100) + years // np.uint64(400)
    of_year = (months * np.uint64(153) + np.uint64(2)) // np.uint64(5)
    return int(np.int64(years * np.uint64(365) + leap_days + of_year)) + day - 2_483_590


@inlined_kernel
def civil_date(days: int) -> tuple[int, int, int]:
    """Return the (year, month, day) of a number of days from 2000-01-01, as the inverse of
    `civil_days`. Year 0 is 1 BC.

    The calculation uses cycles of 400 years that begin on 1 March of year 0.
    """
    shifted_days = days + 730_425
    era = shifted_days // 146_097
    of_era = shifted_days - era * 146_097
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    return year + era * 400 + (1 if month <= 2 else 0), month, day


@kernel
def date_days(data: Bytes, at: int) -> tuple[int, int]:
    """Return (moved, days since 2000-01-01) of the date in the 7 bytes at `at`.

    `moved` is −1 if the bytes are malformed, 1 if a 29 February became 1 March, else 0. Before 15
    October 1582, Oracle uses the Julian calendar, in which every fourth year is a leap year.

    The days before the first and after the last year are valid, because a value with a time zone is
    stored in UTC or in DBTIMEZONE (values-and-lobs §5).
    """
    high, low = byte_at(data, at) - 100, byte_at(data, at + 1) - 100
    month, day = byte_at(data, at + 2), byte_at(data, at + 3)
    hour, minute, second = byte_at(data, at + 4), byte_at(data, at + 5), byte_at(data, at + 6)
    if month - 1 > 11 or month < 1 or day < 1 or day > 31:
        return -1, 0
    if hour < 1 or hour > 24 or minute < 1 or minute > 60 or second < 1 or second > 60:
        return -1, 0
    year = high * 100 + low
    if low > 99 or low < -99 or high * low < 0:
        return -1, 0
    if year > 9999 and (year > 10000 or month != 1 or day != 1):
        return -1, 0
    if year < -4712 and (year < -4713 or month != 12 or day != 31):
        return -1, 0
    label = year
    if year < 0:
        year += 1
    moved = 0
    if day > 28:
        if month == 2:
            gregorian_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
            # It is unknown which years BC are leap years in Oracle. Oracle's day numbers (format J)
            # count a year 0; then 4 BC is a leap year and 5 BC is not. Without a year 0, 5 BC is
            # one. So a 29 February is accepted in both years.
            julian_leap = year <= 1582 and (year % 4 == 0 or label % 4 == 0)
            if day > 29 or not (gregorian_leap or julian_leap):
                return -1, 0
            moved = 0 if gregorian_leap else 1
        elif day == 31 and (month == 4 or month == 6 or month == 9 or month == 11):
            return -1, 0
    return moved, civil_days(year, month, day)


@inlined_kernel
def label_micros(data: Bytes, at: int, size: int) -> tuple[int, int, int]:
    """Convert a date or timestamp of 7 or 11 bytes to microseconds.

    Returns:
        (moved, micros, rest). `moved` is −1 if the bytes are malformed, 1 if a 29 February became
        1 March (`date_days`), else 0. `micros` are microseconds since 2000-01-01, and `rest` are
        the remaining nanoseconds (0 to 999).
    """
    moved, days = date_days(data, at)
    if moved < 0:
        return -1, 0, 0
    hour, minute, second = byte_at(data, at + 4), byte_at(data, at + 5), byte_at(data, at + 6)
    seconds = (hour - 1) * 3600 + (minute - 1) * 60 + second - 1
    nanos = 0
    if size == 11:
        nanos = (
            byte_at(data, at + 7) << 24
            | byte_at(data, at + 8) << 16
            | byte_at(data, at + 9) << 8
            | byte_at(data, at + 10)
        )
        if nanos > 999_999_999:
            return -1, 0, 0
    return moved, (days * 86_400 + seconds) * 1_000_000 + nanos // 1000, nanos % 1000


@kernel
def _mark_invalid(
    data: Bytes, offset: Longs, length: Longs, form: int, invalid: npt.NDArray[np.bool_]
) -> None:
    """Mark the labels that do not exist."""
    for row in range(len(length)):
        size = length[row] - 2 if form == _WITH_ZONE else length[row]
        if size == 7 or (size == 11 and form != _DATE):
            moved, _, _ = label_micros(data, offset[row], size)
            invalid[row] = moved < 0


@kernel
def micros_kernel(
    data: Bytes,
    offset: Longs,
    length: Longs,
    form: int,
    calendar_error: bool,
    fraction_error: bool,
    out: Longs,
) -> tuple[int, int, int, int]:
    """Convert labels to microseconds since 2000-01-01. Returns (failed row or −1, outcome, number
    of moved dates, number of truncated fractions).
    """
    calendar_moves = 0
    cut = 0
    for row in range(len(length)):
        size = length[row]
        if size <= 0:
            continue
        if form == _WITH_ZONE:
            size -= 2
        if size != 7 and (size != 11 or form == _DATE):
            return row, MALFORMED, calendar_moves, cut
        moved, micros, rest = label_micros(data, offset[row], size)
        if moved < 0:
            return row, MALFORMED, calendar_moves, cut
        if moved:
            if calendar_error:
                return row, CALENDAR, calendar_moves, cut
            calendar_moves += 1
        if rest:
            if fraction_error:
                return row, PRECISION, calendar_moves, cut
            cut += 1
        out[row] = micros
    return -1, OK, calendar_moves, cut
