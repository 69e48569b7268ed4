"""Row changes as text: operation, columns, supplemental data."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from olr_pg.redo.dump.row_text import row_lines, supplemental_lines
from tests.lobs.lob_redo import LobRedo
from tests.redo.hand_made import records

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


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
