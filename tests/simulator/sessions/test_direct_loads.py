from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.simulator.fields.redo_format import SourceMode
from olr_pg.simulator.fields.vector_fields import DatabaseSession
from olr_pg.simulator.sessions.direct_loads import can_be_loaded
from olr_pg.simulator.sessions.session import SimSession
from tests.transactions.row_forms import Shape, SmallDatabase

if TYPE_CHECKING:
    from pathlib import Path


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
