"""Fields as text: sizes and bytes, texts with what is no ASCII escaped, NULL by name."""

from __future__ import annotations

from olr_pg.redo.dump.field_text import (
    column_lines,
    hex_lines,
    plain_lines,
    rest_lines,
    text_lines,
)
from olr_pg.redo.record_view import Fields

DATA = b"AB" + bytes(range(40)) + b"\xc3\xa4\\"
FIELDS = Fields(DATA, (0, 2, 42), (2, 40, 3), big=False)


def test_long_bytes_are_cut_into_lines_with_offsets() -> None:
    first, second = hex_lines(bytes(range(40)))
    assert first.startswith("  0000: 00 01 02")
    assert second == "  0020: 20 21 22 23 24 25 26 27"


def test_short_bytes_are_on_the_line_of_their_field() -> None:
    assert list(plain_lines(FIELDS, 1)) == ["field 1: [  2] 41 42"]
    assert len(list(plain_lines(FIELDS, 2))) == 3
    assert list(plain_lines(FIELDS, 9, "key, field")) == ["key, field 9: [  0]"]
    assert len(list(rest_lines(FIELDS, 2))) == 4


def test_texts_are_ascii_and_empty_ones_are_left_out() -> None:
    assert list(text_lines(FIELDS, 3, "name")) == [r"name: \xc3\xa4\x5c"]
    assert list(text_lines(FIELDS, 9, "name")) == []


def test_a_column_is_null_or_its_bytes() -> None:
    assert list(column_lines("col  1", None)) == ["col  1: *NULL*"]
    assert list(column_lines("col  1", b"\xc1\x02")) == ["col  1: [  2] c1 02"]
    assert len(list(column_lines("col  1", bytes(33)))) == 3
