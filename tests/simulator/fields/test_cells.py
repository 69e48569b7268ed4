from __future__ import annotations

from decimal import Decimal

import pytest

from olr_pg.simulator.fields.cells import (
    Cell,
    Moment,
    binary_double,
    binary_float,
    date,
    interval_day_to_second,
    interval_year_to_month,
    number,
    raw,
    text,
    timestamp,
    timestamp_tz,
)


@pytest.mark.parametrize(
    ("cell", "stored", "printed"),
    [
        # values-and-lobs §3.5, §5, §6.1, §7.2, §8, §9: checked examples
        (number(Decimal(0)), "80", "0"),
        (number(Decimal("122.67")), "c2021744", "122.67"),
        (number(Decimal(-99999)), "3c5c020266", "-99999"),
        (number(Decimal(100)), "c202", "100"),
        (number(Decimal("9.03106E-11")), "bb5b2007", "0.0000000000903106"),
        (number(Decimal(9223372036854775807)), "ca0a1722490445374e3b08", "9223372036854775807"),
        (
            number(Decimal(-1234567890123456789012345678901234567890)),
            "2b59432d170b59432d170b59432d170b59432d170b",
            "-1234567890123456789012345678901234567890",
        ),
        (text("żółć", "utf-8"), "c5bcc3b3c582c487", '"żółć"'),
        (text("AB", "utf-16-be"), "00410042", '"AB"'),
        (raw(b"\xca\xfe\xba\xbe"), "cafebabe", '"cafebabe"'),
        (date(Moment(2026, 3, 7, 1, 44, 39)), "787e0307022d28", '"2026-03-07T01:44:39"'),
        (date(Moment(-4712, 1, 1)), "35580101010101", '"-4712-01-01T00:00:00"'),
        (
            timestamp(Moment(2026, 1, 8, 19, 19, 46, 950847000)),
            "787e010814142f38acc618",
            '"2026-01-08T19:19:46.950847"',
        ),
        (timestamp(Moment(2025, 8, 27)), "787d081b010101", '"2025-08-27T00:00:00"'),
        (
            timestamp_tz(
                Moment(2026, 1, 8, 19, 19, 46, 950847000),
                Moment(2026, 1, 8, 15, 49, 46, 950847000),
                -210,
            ),
            "787e010814142f38acc618111e",
            '"2026-01-08T15:49:46.950847-03:30"',
        ),
        (binary_float(-2.5), "3fdfffff", "-2.5"),
        (binary_float(-0.0), "80000000", "0.0"),
        (binary_double(1.7320508075688772), "bffbb67ae8584caa", "1.7320508075688772"),
        (interval_year_to_month(43), "8000000343", '"P3Y7M"'),
        (interval_year_to_month(-43), "7ffffffd35", '"P-3Y-7M"'),
        (interval_day_to_second(0), "800000003c3c3c80000000", '"PT0S"'),
        (
            interval_day_to_second(-(93784 * 10**9 + 5 * 10**8)),
            "7fffffff3a393862329b00",
            '"P-1DT-2H-3M-4.5S"',
        ),
    ],
)
def test_a_value_has_the_documented_bytes_and_text(cell: Cell, stored: str, printed: str) -> None:
    assert (cell.raw.hex(), cell.json) == (stored, printed)
