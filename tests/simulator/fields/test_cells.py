"""

Locators that the model writes are those that the decoder reads."""

from __future__ import annotations

from decimal import Decimal

import pytest

from olr_pg.datatypes.lob_locator import LobForm, decode_locator
from olr_pg.simulator.fields import cells as lob
from olr_pg.simulator.fields.cells import (
    PAGE,
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
from olr_pg.simulator.fields.redo_format import RedoFormat


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


@pytest.mark.parametrize(
    ("locator", "form"),
    [
        (lob.secure_in_row(lob.BLOB, 77, b"abc"), LobForm.INLINE),
        (lob.basic_in_row(lob.CLOB, 77, b"\0a"), LobForm.INLINE),
        (lob.secure_extents(lob.BLOB, 77, 20_000, [(500, 3)]), LobForm.EXTENTS),
        (lob.secure_header(lob.BLOB, 77, 900_000, 512), LobForm.HEADER),
        (lob.basic_pointers(lob.BLOB, 77, 9_000, [500, 501]), LobForm.POINTERS),
        (lob.basic_outside(lob.BLOB, 77), LobForm.INDEXED),
    ],
)
def test_the_decoder_reads_the_form(locator: bytes, form: LobForm) -> None:
    assert decode_locator(locator).form is form


@pytest.mark.parametrize(
    ("number", "width"), [(0, 1), (255, 1), (256, 2), (65_535, 2), (65_536, 3)]
)
def test_a_number_takes_as_few_bytes_as_it_needs(number: int, width: int) -> None:
    assert lob.width_of(number) == width


def test_the_first_index_row_has_the_size_and_the_others_addresses_alone() -> None:
    first = lob.index_data(0, 2 * lob.BASIC_PAGE + 7, [9])
    assert first.hex() == "0000000000000002000700000000000100000009" + 12 * "00"
    assert lob.index_data(4, 0, [1, 2]).hex() == "0000000100000002" + 24 * "00"
    assert lob.index_key(5, 3).hex() == "0a000000010000000000050400000003"


LITTLE, BIG = RedoFormat(), RedoFormat(big_endian=True)


def test_items_have_the_sizes_that_redo_has() -> None:
    assert len(lob.kdli_common(LITTLE, lob.COMMON_REDO, lob.TYPE_DATA, 9)) == 12
    assert len(lob.load_data_item(LITTLE, 7, 100)) == 56
    assert len(lob.direct_load_item(LITTLE, 5_000, bytes(8), 72_000)) == 32
    assert len(lob.logged_item(LITTLE, bytes(8), 72_000, 3)) == 24
    assert len(lob.header_item(LITTLE, 7, 100, [1, 2])) == 112


def test_a_fill_has_its_offset_and_its_bytes() -> None:
    assert lob.fill_item(BIG, 0x0102, b"abc") == (
        b"\x06\0\x01\x02" + PAGE.to_bytes(2) + b"\x00\x03" + b"abc"
    )
    assert lob.zero_item(BIG, 0x0102, 5).hex() == "0500010200050000"


def test_lists_have_a_count_and_an_entry_for_each_run() -> None:
    runs = [(0x100, 3), (0x200, 4)]
    entries = "00000003000001000000000400000200"
    assert lob.list_item(BIG, runs).hex() == "0700000000000002" + entries
    assert lob.list_part_item(BIG, 9, runs).hex() == "0d0000000000000200000009" + entries


def test_a_page_of_a_basicfile_is_behind_its_object_lob_and_number() -> None:
    field = lob.long_field(BIG, 72_000, 5, 3, b"payload")
    assert field[:4] == (72_000).to_bytes(4)
    assert field[4:14].hex() == "00000001000000000005"
    assert field[24:28] == (3).to_bytes(4)
    assert field[36:] == b"payload"
