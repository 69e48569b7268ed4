from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from olr_pg.simulator.fields.redo_format import COMPATIBLE, RedoFormat, SourceMode
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


@pytest.mark.parametrize("modes", [frozenset(), frozenset({SourceMode.STUB_IMAGES})])
@pytest.mark.parametrize("row_dependencies", [False, True])
def test_the_undo_of_a_head_without_columns_may_have_it_as_it_is(
    tmp_path: Path, modes: frozenset[SourceMode], row_dependencies: bool
) -> None:
    shape = Shape(redo=RedoFormat(COMPATIBLE["23"]), row_dependencies=row_dependencies)
    database = SmallDatabase(tmp_path, shape)
    database.instance.modes = modes
    session, table = database.session, database.table
    rows = [
        row
        for key in range(1, 40)
        for row in session.insert_many(table, [database.row(2 * key + at, 800) for at in (0, 1)])
    ]
    for row in rows[::2]:
        assert session.update(row, {2: wide(1000)})
        assert session.delete(row)
    database.close()
    heads = [
        [len(data) for data in vector.fields[4:]]
        for log in database.logs
        for record in log.records
        for vector in record.vectors
        if vector.opcode == "5.1" and len(vector.fields) > 4 and len(vector.fields[3]) == 48
    ]
    assert any(head[0] == 9 for head in heads) == (bool(modes) and not row_dependencies)
    database.check()


@pytest.mark.parametrize("release", COMPATIBLE)
def test_the_undo_has_the_scn_of_the_row(tmp_path: Path, shared_dir: Path, release: str) -> None:
    path = shared_dir / "evidence" / "row-undo-26ai.json"
    facts = json.loads(path.read_text("utf-8"))["facts"]
    seen = [one["fields_behind_kdo"][0] for one in facts if "dscn" in str(one)]
    assert seen == ["8 bytes dscn"] * 2  # of 12.1 and of 26ai

    shape = Shape(row_dependencies=True, redo=RedoFormat(COMPATIBLE[release]))
    database = SmallDatabase(tmp_path, shape)
    session = database.session
    row = session.insert(database.table, database.row(1, 10))
    assert row is not None
    session.commit()
    session.rows.lock(row)
    session.update(row, {1: wide(20)})
    session.commit()
    database.close()
    undo = {
        vector.fields[3][10]: [len(data) for data in vector.fields[4:]]
        for log in database.logs
        for record in log.records
        for vector in record.vectors
        if vector.opcode == "5.1"
    }
    size = 6 if release == "11.2" else 8
    assert undo[0x63][0] == undo[0x64][0] == size  # DRP and LKR: nothing else is behind KDO
    assert undo[0x65][:3] == [2, 10, size]  # URP: numbers, the old value
    database.check()
