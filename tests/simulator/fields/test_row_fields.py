from __future__ import annotations

import pytest

from olr_pg.simulator.fields.cells import raw
from olr_pg.simulator.fields.redo_format import RedoFormat
from olr_pg.simulator.fields.row_fields import (
    FB_ROW,
    RowPiece,
    Value,
    column_fields,
    multi_rows,
    null_bitmap,
    packed_row,
    stored_columns,
    stored_size,
)

REDO = RedoFormat()


@pytest.mark.parametrize(
    ("value", "size"), [(None, 1), (b"", 1), (bytes(250), 251), (bytes(251), 254)]
)
def test_a_length_prefix_takes_one_byte_or_three(value: Value, size: int) -> None:
    assert stored_size(value) == size
    assert len(packed_row(REDO, RowPiece(FB_ROW, (value,)), 0)) == 3 + size


def test_nulls_at_the_end_of_a_row_are_not_stored() -> None:
    assert stored_columns([None, raw(b"\1"), None, None]) == (None, b"\1")
    assert stored_columns([None]) == ()


def test_a_row_is_its_flags_lock_and_count_then_its_columns() -> None:
    piece = RowPiece(FB_ROW, (b"\xc1\x02", None), row_scn=6)
    assert packed_row(REDO, piece, 3).hex() == "2c0302" + "00" * 6 + "02c102ff"
    assert piece.size == len(packed_row(REDO, piece, 3))


def test_rows_of_an_array_insert_come_after_their_lengths() -> None:
    lengths, rows = multi_rows(REDO, [RowPiece(FB_ROW, (b"a",)), RowPiece(FB_ROW, (b"bc",))], 1)
    assert REDO.unpack("HH", lengths) == (5, 6)
    assert rows.hex() == "2c010101612c0101026263"


def test_a_null_has_its_bit_and_an_empty_field() -> None:
    columns = [None, *[b"x"] * 7, None]
    assert null_bitmap(columns) == b"\x01\x01"
    assert column_fields(columns) == [b"", *[b"x"] * 7, b""]
