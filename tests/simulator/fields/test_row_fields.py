from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.simulator.fields.cells import raw
from olr_pg.simulator.fields.redo_format import RedoFormat
from olr_pg.simulator.fields.row_fields import (
    FB_FROM_PREVIOUS,
    FB_HEAD,
    FB_ROW,
    FB_TO_NEXT,
    PIECE_OVERHEAD,
    RowAddress,
    RowPiece,
    Value,
    column_fields,
    lay_out,
    multi_rows,
    null_bitmap,
    packed_row,
    stored_columns,
    stored_size,
    stub_image,
)

if TYPE_CHECKING:
    from pathlib import Path

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


def test_a_head_without_columns_is_in_the_undo_of_26ai_as_in_its_block(shared_dir: Path) -> None:
    path = shared_dir / "evidence" / "row-undo-26ai.json"
    facts = json.loads(path.read_text("utf-8"))["facts"]
    (known,) = [one for one in facts if "cc 0" in one["case"]]
    assert known["fields_behind_kdo"][0] == "9 bytes: 20 02 00 + nrid (6)"
    piece = RowPiece(FB_HEAD, (), RowAddress(0x0180010A, 3))
    assert stub_image(piece).hex(" ") == "20 02 00 01 80 01 0a 00 03"
    assert piece.size == len(stub_image(piece)) == 9


VALUES = st.lists(
    st.one_of(st.none(), st.integers(0, 900).map(lambda size: b"v" * size)), max_size=300
)


@given(values=VALUES, room=st.integers(1_000, 3_000))
def test_the_pieces_give_the_row_and_none_is_too_large(
    values: list[bytes | None], room: int
) -> None:
    parts = lay_out(values, room)
    joined: list[bytes | None] = []
    for part in parts:
        assert sum(map(stored_size, part.columns)) <= room - PIECE_OVERHEAD
        assert len(part.columns) <= 255
        columns = list(part.columns)
        assert part.first == len(joined) - bool(part.cut & FB_FROM_PREVIOUS)
        if part.cut & FB_FROM_PREVIOUS:
            first, before = columns.pop(0), joined.pop()
            assert first is not None
            assert before is not None
            columns.insert(0, before + first)
        joined += columns
    assert joined == values


def test_a_value_that_is_cut_goes_on_in_the_next_piece() -> None:
    head, tail = lay_out([b"x" * 1500], 1000)
    assert (head.cut, tail.cut) == (FB_TO_NEXT, FB_FROM_PREVIOUS)
    assert len(lay_out([b"x" * 900], 1000)) == 1
