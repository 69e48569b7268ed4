"""Vectors as text: each known operation by its members, everything else as bytes.

Row changes as text: operation, columns, supplemental data.

Fields as text: sizes and bytes, texts with what is no ASCII escaped, NULL by name.

Members of fields as text; one that does not fit is left out.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from olr_pg.redo.dump.vector_text import (
    column_lines,
    hex_lines,
    plain_lines,
    rest_lines,
    row_flags,
    row_lines,
    supplemental_lines,
    text_lines,
    vector_lines,
    write_members,
)
from olr_pg.redo.format.structure import Member
from olr_pg.redo.format.undo_fields import KTUCM, KTUDB
from olr_pg.redo.record_view import Fields
from olr_pg.simulator.fields.redo_format import DatabaseSession, session_fields
from tests.lobs.lob_redo import LobRedo
from tests.redo.hand_made import log_of, records

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def texts(redo: LobRedo, folder: Path) -> list[str]:
    layout = log_of(redo, folder).header.layout
    return [
        "\n".join(vector_lines(vector, layout))
        for record in records(redo, folder)
        for vector in record.vectors
    ]


def test_a_transaction_says_its_members(tmp_path: Path) -> None:
    redo = LobRedo(segment=9)
    redo.begin()
    redo.direct_page(2, 1, 0x01800200, b"page")
    redo.operation(1, 2, 1, 5)
    redo.end(rollback=True)
    begin, page, operation, end = texts(redo, tmp_path)
    assert begin.startswith("ktudh redo (usn 9): ")
    assert f"sqn: 0x{redo.sequence:08x}" in begin
    assert "KDLI fpload" in page
    assert "70 61 67 65" in page
    assert operation.startswith("LLB kind: 1")
    assert end.endswith("rolled back\ncommit time (Unix): 0")


def test_a_session_says_who_it_is(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.emit(
        redo.vector((5, 19), session_fields(redo.redo, DatabaseSession(3, 4, "APP"), full=True))
    )
    (text,) = texts(redo, tmp_path)
    assert "session number: 3  serial number: 4" in text
    assert "login username: APP" in text


@pytest.mark.parametrize("op", [(4, 1), (13, 2), (99, 9)])
def test_an_unknown_vector_is_bytes(tmp_path: Path, op: tuple[int, int]) -> None:
    redo = LobRedo()
    redo.emit(redo.vector(op, [b"\x0a\x0b", b""]))
    assert texts(redo, tmp_path) == ["field 1: [  2] 0a 0b\nfield 2: [  0]"]


def test_an_update_shows_both_sides_and_what_was_logged(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    redo.update(4, Decimal(1), {2: b"old"}, {2: None})
    undo, row = records(redo, tmp_path)[1].vectors
    after = "\n".join(row_lines(row.fields, 1))
    assert "KDO op code: URP" in after
    assert "col  1: *NULL*" in after
    before = "\n".join(row_lines(undo.fields, 3))
    assert "col  1: [  3] 6f 6c 64" in before
    assert "sup col  1: [  2] c1 02" in before


def test_an_insert_shows_its_columns_in_order(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    redo.insert_row(b"\xc1\x02", None, b"z")
    row = records(redo, tmp_path)[1].vectors[1]
    columns = [line for line in row_lines(row.fields, 1) if line.startswith("col")]
    assert columns == ["col  0: [  2] c1 02", "col  1: *NULL*", "col  2: [  1] 7a"]


def test_supplemental_data_end_where_the_next_field_begins(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    redo.emit(redo.vector((5, 1), [*redo.supplemental(2, 0, 1, 1, ((1, b"k"), (3, b"")))]))
    fields = records(redo, tmp_path)[1].vectors[0].fields
    ends = []

    def walk() -> Iterator[str]:
        ends.append((yield from supplemental_lines(fields, 1)))

    lines = list(walk())
    assert ends == [fields.count + 1]
    assert lines[1:] == ["  sup col  1: [  1] 6b", "  sup col  3: *NULL*"]


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


def test_members_are_written_in_the_order_of_the_file() -> None:
    data = bytes.fromhex("1c00 0000 3c02 0000 0000 0000 0900 0000 04000000".replace(" ", ""))
    assert write_members(data, KTUCM.shown, big=False) == (
        "slt: 0x001c  sqn: 0x0000023c  srt: 0  sta: 9  flg: 0x04"
    )


def test_a_member_beyond_the_field_is_left_out() -> None:
    assert write_members(b"\0\x40\0", KTUDB.shown, big=True) == "siz: 64"


@pytest.mark.parametrize(
    ("kind", "raw", "text"),
    [
        ("i2", "ffff", "-1"),
        ("i4", "7ffeffff", "2147418111"),
        ("xid", "000a000c0000023c", "0x000a.00c.0000023c"),
        ("uba", "00c00123004507ff", "0x00c00123.0045.07"),
        ("rid", "01800083000a", "0x01800083.a"),
        ("op", "0b01", "11.1"),
        ("fb", "2c", "--H-FL-- (0x2c)"),
        ("scn", "ffffffffffffffff", "none"),
    ],
)
def test_each_kind_is_written_in_its_way(kind: str, raw: str, text: str) -> None:
    assert write_members(bytes.fromhex(raw), (Member("m", 0, kind),), big=True) == f"m: {text}"


def test_row_flags_are_letters() -> None:
    assert row_flags(0) == "--------"
    assert row_flags(0xFF) == "KCHDFLPN"
