"""The parts of a session work in its one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.transactions.row_forms import Shape, SmallDatabase

if TYPE_CHECKING:
    from pathlib import Path


def test_rows_of_every_kind_are_of_one_transaction(tmp_path: Path) -> None:
    database = SmallDatabase(tmp_path, Shape())
    session, table = database.session, database.table
    assert session.transaction is None
    short = session.insert(table, database.row(1, 10))
    transaction = session.transaction
    chained = session.insert(table, database.row(2, 1900, 1900, 1900))
    (array,) = session.insert_many(table, [database.row(3, 10)])
    assert short is not None
    assert chained is not None
    assert len(chained.chain) > 1
    mark = session.savepoint()
    assert session.update(short, {1: None})
    session.rollback_to(mark)
    assert session.transaction is transaction is short.owner is chained.owner is array.owner
    session.commit()
    assert session.transaction is None
    assert [len(one.delivered) for one in database.instance.committed] == [3]
