from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.transactions.row_forms import Shape, SmallDatabase, wide

if TYPE_CHECKING:
    from pathlib import Path


def test_a_row_too_large_for_a_piece_is_written_tail_first(tmp_path: Path) -> None:
    database = SmallDatabase(tmp_path, Shape())
    row = database.session.insert(database.table, database.row(1, 1500, 1500, 1500))
    assert row is not None
    assert len(row.chain) == 3
    database.close()
    inserts = [form.split()[1] for form in database.forms() if form.startswith("11.2 ")]
    assert [int(flags, 16) & 0x0C for flags in inserts] == [0x04, 0x00, 0x08]  # last … first
    database.check()


@pytest.mark.parametrize("sizes", [(1700, 10), (1700, 1700)])
def test_a_row_that_grows_moves_or_chains_and_can_be_deleted(
    tmp_path: Path, sizes: tuple[int, int]
) -> None:
    database = SmallDatabase(tmp_path, Shape())
    session, table = database.session, database.table
    rows = session.insert_many(table, [database.row(key, 400, 400) for key in (1, 2)])
    assert session.update(rows[0], {1: wide(sizes[0]), 2: wide(sizes[1])})
    assert rows[0].chain
    rowid = rows[0].rowid
    assert session.delete(rows[0])
    assert rows[0].rowid == rowid
    database.close()
    database.check()


def test_a_chain_is_taken_back_whole(tmp_path: Path) -> None:
    database = SmallDatabase(tmp_path, Shape())
    session = database.session
    row = session.insert(database.table, database.row(1, 10))
    assert row is not None
    session.commit()
    before = list(row.cells)
    session.update(row, {1: wide(1800), 2: wide(1800)})
    session.rollback()
    assert (row.cells, row.chain) == (before, ())
    database.close()
    database.check()
