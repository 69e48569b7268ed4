from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

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
