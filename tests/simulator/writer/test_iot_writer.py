from __future__ import annotations

from typing import TYPE_CHECKING

from tests.transactions.row_forms import Shape, SmallDatabase, wide

if TYPE_CHECKING:
    from pathlib import Path


def test_rows_of_an_index_organised_table_are_changed_in_their_leaf(tmp_path: Path) -> None:
    database = SmallDatabase(tmp_path, Shape(index_organised=True))
    session, table = database.session, database.table
    row = session.insert(table, database.row(1, 10))
    assert row is not None
    assert row.rowid == ""
    assert session.update(row, {1: wide(20)})
    assert session.delete(row)
    database.close()
    forms = list(database.forms())
    assert not [form for form in forms if form.startswith("11.")]
    assert "10.2" in forms
    assert "10.4" in forms
    database.check()


def test_a_rollback_brings_a_leaf_row_back(tmp_path: Path) -> None:
    database = SmallDatabase(tmp_path, Shape(index_organised=True))
    session = database.session
    row = session.insert(database.table, database.row(1, 10))
    assert row is not None
    session.commit()
    before = list(row.cells)
    session.update(row, {1: wide(20)})
    session.delete(row)
    session.rollback()
    assert (row.cells, row.deleted, database.table.live) == (before, False, [row])
