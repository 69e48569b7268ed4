"""The kernels behind `load.arrow`: where they stop, and with which outcome."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from olr_pg.datatypes.columns import ValueColumn, column_of
from olr_pg.datatypes.number import decode_number
from olr_pg.datatypes.outcomes import Outcome
from olr_pg.load.arrow_oracle_forms import (
    DIGITS_MAX,
    NO_ZONE,
    NUMBER_BYTES,
    TO_UTC,
    number_kernel,
    ticks_kernel,
    time_text_kernel,
)


def texts(*values: str | None) -> ValueColumn:
    column = column_of(None if value is None else value.encode() for value in values)
    return column._replace(data=column.data.copy())


def numbers(*values: str | None) -> tuple[tuple[int, int], list[bytes | None]]:
    column = texts(*values)
    out = np.zeros(NUMBER_BYTES * len(values), np.uint8)
    length = np.zeros(len(values), np.int64)
    digits = np.zeros(DIGITS_MAX + 2, np.uint8)
    stopped = number_kernel(column.data, column.offset, column.length, digits, out, length)
    found = ValueColumn(out, np.arange(len(values)) * NUMBER_BYTES, length)
    return (int(stopped[0]), int(stopped[1])), found.values()


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("0", "0"),
        ("-00012.3400", "-12.34"),
        ("1E3", "1000"),
        ("+.5e-2", "0.005"),
        ("9" * 40, "9" * 40),
        ("-" + "9" * 38, "-" + "9" * 38),
        ("100", "100"),
    ],
)
def test_decimal_text_is_that_number(text: str, plain: str) -> None:
    stopped, (value,) = numbers(text)
    assert stopped == (-1, 0)
    assert value is not None
    assert Decimal(decode_number(value)) == Decimal(plain)


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("1x", Outcome.MALFORMED),
        ("1E", Outcome.MALFORMED),
        (".", Outcome.MALFORMED),
        ("1e126", Outcome.OVERFLOW),
        ("9" * 41, Outcome.PRECISION),
    ],
)
def test_it_stops_at_the_first_that_is_none(text: str, outcome: Outcome) -> None:
    stopped, values = numbers("1", None, text, "2")
    assert stopped == (2, int(outcome))
    assert values[0] is not None
    assert values[1] is None


def test_ticks_before_1970_and_a_fraction_that_has_no_place() -> None:
    out = np.zeros(14, np.uint8)
    ticks = np.array([-1, 0], np.int64)
    null = np.zeros(2, np.uint8)
    assert ticks_kernel(ticks, null, 1, 7, out) == (-1, 0)
    assert out.tobytes() == bytes([119, 169, 12, 31, 24, 60, 60, 119, 170, 1, 1, 1, 1, 1])
    assert ticks_kernel(ticks, null, 1_000, 7, out) == (0, int(Outcome.FRACTION))


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("2026-01-01 02:03:04", NO_ZONE, [120, 126, 1, 1, 3, 4, 5]),
        ("2026-01-01T02:03:04+02:00", TO_UTC, [120, 126, 1, 1, 1, 4, 5]),
        ("-4712-01-01 00:00:00", NO_ZONE, [53, 88, 1, 1, 1, 1, 1]),
        ("9999-12-31T23:59:59-08:00", TO_UTC, [200, 100, 1, 1, 8, 60, 60]),
        ("10000-01-01T07:59:59Z", TO_UTC, [200, 100, 1, 1, 8, 60, 60]),
        ("-4712-01-01T00:00:00+10:00", TO_UTC, [53, 87, 12, 31, 15, 1, 1]),
        ("0000-00-00 00:00:00", NO_ZONE, [100, 100, 0, 0, 1, 1, 1]),
        ("-0000-01-31 00:00:00", NO_ZONE, [100, 100, 1, 31, 1, 1, 1]),
        ("2004-13-24 24:80:99", NO_ZONE, [120, 104, 13, 24, 25, 81, 100]),
        ("-8386-01-01 00:00:00", NO_ZONE, [17, 14, 1, 1, 1, 1, 1]),
        ("12800-01-01T00:00:00", NO_ZONE, [228, 100, 1, 1, 1, 1, 1]),
    ],
)
def test_a_time_as_text(text: str, zone: int, expected: list[int]) -> None:
    column, out = texts(text), np.zeros(7, np.uint8)
    stopped = time_text_kernel(column.data, column.offset, column.length, zone, 7, out)
    assert stopped == (-1, 0)
    assert out.tolist() == expected


@pytest.mark.parametrize(
    ("text", "zone", "outcome"),
    [
        ("2026-01-01 02:03:04Z", NO_ZONE, Outcome.MALFORMED),
        ("2026-01-01 02:03:04", TO_UTC, Outcome.MALFORMED),
        ("2026-13-01 02:03:04+01:00", TO_UTC, Outcome.MALFORMED),
        ("0000-01-01 02:03:04+01:00", TO_UTC, Outcome.MALFORMED),
        ("2026-01-01 24:03:04+01:00", TO_UTC, Outcome.MALFORMED),
        ("2026-01-01 02:03:04.5", NO_ZONE, Outcome.FRACTION),
        ("2026-01-01 02:03:04.1234567890", NO_ZONE, Outcome.PRECISION),
        ("-4713-01-01 00:00:00-01:00", TO_UTC, Outcome.MALFORMED),
        ("15500-01-01 00:00:00", NO_ZONE, Outcome.MALFORMED),
        ("10000", NO_ZONE, Outcome.MALFORMED),
    ],
)
def test_what_is_no_such_time(text: str, zone: int, outcome: Outcome) -> None:
    column, out = texts(text), np.zeros(7, np.uint8)
    stopped = time_text_kernel(column.data, column.offset, column.length, zone, 7, out)
    assert (int(stopped[0]), int(stopped[1])) == (0, int(outcome))
