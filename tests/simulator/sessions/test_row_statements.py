from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from olr_pg.simulator.fields.redo_format import DatabaseSession, SourceMode
from olr_pg.simulator.sessions.row_statements import can_be_loaded
from olr_pg.simulator.sessions.session import SimSession
from olr_pg.transactions.finished_columns import DmlKind
from tests.transactions.row_forms import Shape, SmallDatabase, wide

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def database(tmp_path: Path) -> SmallDatabase:
    return SmallDatabase(tmp_path, Shape())


def kinds(database: SmallDatabase) -> list[DmlKind]:
    return [change.kind for one in database.instance.committed for change in one.changes]


def test_statements_become_changes_in_their_order(database: SmallDatabase) -> None:
    session, table = database.session, database.table
    row = session.insert(table, database.row(1, 10))
    assert row is not None
    assert session.update(row, {1: wide(20)})
    assert session.delete(row)
    session.insert_many(table, [database.row(key, 5) for key in (2, 3)])
    database.close()
    assert kinds(database) == [
        DmlKind.INSERT,
        DmlKind.UPDATE,
        DmlKind.DELETE,
        *[DmlKind.INSERT] * 2,
    ]
    assert [form for form in database.forms() if form[:2] == "11"] == [
        "11.2 2c", "11.5", "11.3", "11.11",
    ]  # fmt: skip
    assert len(table.live) == 2
    database.check()


def test_rolled_back_work_leaves_the_rows_as_they_were(database: SmallDatabase) -> None:
    session, table = database.session, database.table
    row = session.insert(table, database.row(1, 10))
    assert row is not None
    session.commit()
    before = list(row.cells)
    mark = session.savepoint()
    session.update(row, {1: wide(20)})
    session.insert(table, database.row(2, 10))
    session.rollback_to(mark)
    assert (row.cells, table.live) == (before, [row])
    session.delete(row)
    session.rollback()
    assert (row.cells, row.deleted, table.live) == (before, False, [row])
    database.close()
    assert kinds(database) == [DmlKind.INSERT]


def test_a_row_that_another_transaction_holds_is_left_alone(database: SmallDatabase) -> None:
    session, table = database.session, database.table
    row = session.insert(table, database.row(1, 10))
    assert row is not None
    session.commit()
    other = type(session)(database.instance, session.container, session.thread, session.attributes)
    assert other.lock(row)
    assert not session.update(row, {1: wide(20)})
    assert not session.delete(row)
    other.commit()
    assert session.delete(row)


def loading(database: SmallDatabase) -> SimSession:
    session = database.session
    return SimSession(
        database.instance, session.container, session.thread, DatabaseSession(2, 2, "SIM")
    )


def test_a_load_writes_whole_blocks(tmp_path: Path) -> None:
    database = SmallDatabase(tmp_path, Shape())
    rows = [database.row(key, 1500) for key in range(1, 12)]
    loading(database).load(database.table, rows)
    database.close()
    assert len(database.table.live) == 11
    opcodes = [
        vector.opcode
        for log in database.logs
        for record in log.records
        for vector in record.vectors
    ]
    assert opcodes.count("19.1") == len(database.table.blocks) > 1
    assert not any(opcode.startswith("11.") for opcode in opcodes)
    database.check()


def test_a_load_that_is_not_logged_notes_the_blocks(tmp_path: Path) -> None:
    database = SmallDatabase(tmp_path, Shape())
    rows = [database.row(key, 1500) for key in range(1, 12)]
    loading(database).load(database.table, rows, logged=False)
    database.close()
    ranges = database.instance.unlogged
    assert sum(one.blocks for one in ranges) == len(database.table.blocks)
    assert {one.table for one in ranges} == {"SIM.T"}
    assert all(not change.logged for one in database.instance.committed for change in one.changes)


def test_a_load_that_is_taken_back_leaves_no_rows(tmp_path: Path) -> None:
    database = SmallDatabase(tmp_path, Shape())
    loading(database).load(database.table, [database.row(1, 9)], committed=False)
    assert database.table.live == []


def test_only_plain_heap_tables_can_be_loaded(tmp_path: Path) -> None:
    for name, shape, answer in (
        ("heap", Shape(), True),
        ("iot", Shape(index_organised=True), False),
        ("dependent", Shape(row_dependencies=True), False),
    ):
        folder = tmp_path / name
        folder.mkdir()
        assert can_be_loaded(SmallDatabase(folder, shape).table, frozenset()) is answer
    dependent = SmallDatabase(tmp_path, Shape(row_dependencies=True)).table
    assert can_be_loaded(dependent, frozenset({SourceMode.DEPENDENT_LOADS}))
