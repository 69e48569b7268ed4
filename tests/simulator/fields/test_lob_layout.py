"""Locators that the model writes are those that the decoder reads."""

from __future__ import annotations

import pytest

from olr_pg.datatypes.lob_locator import LobForm, decode_locator
from olr_pg.simulator.fields import lob_layout as lob


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
