"""Locators that the model writes are those that the decoder reads."""

from __future__ import annotations

import pytest

from olr_pg.datatypes.lob_locator import LobForm, decode_locator
from olr_pg.simulator.fields import lob_layout as lob
from olr_pg.simulator.fields.lob_layout import PAGE
from olr_pg.simulator.fields.redo_format import RedoFormat


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
