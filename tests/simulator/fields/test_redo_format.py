from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.scalars import SCN_NONE
from olr_pg.simulator.fields.redo_format import COMPATIBLE, RedoFormat, padding

FORMATS = st.builds(RedoFormat, st.sampled_from(sorted(COMPATIBLE.values())), st.booleans())


@pytest.mark.parametrize(("size", "rest"), [(0, 0), (1, 3), (2, 2), (3, 1), (4, 0), (5, 3)])
def test_fields_are_padded_to_four_bytes(size: int, rest: int) -> None:
    assert padding(size) == rest


@given(redo=FORMATS, scn=st.integers(0, (1 << 47) - 1), long=st.booleans())
def test_an_scn_is_read_as_it_was_written(redo: RedoFormat, scn: int, *, long: bool) -> None:
    assert redo.read_scn8(b"head" + redo.scn8(scn, long=long), 4) == scn


def test_an_scn_that_fits_no_48_bits_takes_the_form_with_the_bit() -> None:
    redo = RedoFormat(COMPATIBLE["19"], big_endian=True)
    assert redo.scn8(0x0001_8000_00AB_CDEF).hex() == "00abcdef80018000"
    assert redo.scn8(SCN_NONE) == b"\xff" * 8
    assert redo.read_scn8(b"\xff" * 8) == SCN_NONE


@pytest.mark.parametrize(
    ("release", "header", "row_scn", "wide"),
    [("11.2", 24, 6, False), ("12.1", 32, 6, False), ("12.2", 32, 8, False), ("19", 32, 8, True)],
)
def test_what_follows_from_the_version(
    release: str, header: int, row_scn: int, *, wide: bool
) -> None:
    redo = RedoFormat(COMPATIBLE[release])
    assert (redo.vector_header_size, redo.row_scn_size, redo.wide_session) == (
        header,
        row_scn,
        wide,
    )


def test_addresses_and_transaction_ids_are_in_the_byte_order_of_the_log() -> None:
    little, big = RedoFormat(), RedoFormat(big_endian=True)
    assert little.uba(0x01000004, 0x0203, 5).hex() == "0400000103020500"
    assert big.uba(0x01000004, 0x0203, 5).hex() == "0100000402030500"
    assert big.xid(1, 2, 3).hex() == "0001000200000003"
