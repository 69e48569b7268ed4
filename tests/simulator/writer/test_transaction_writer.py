from __future__ import annotations

from typing import TYPE_CHECKING

from tests.transactions.row_forms import Shape, SmallDatabase, wide

if TYPE_CHECKING:
    from pathlib import Path

    from tests.simulator.reader import ParsedVector


def vectors(database: SmallDatabase) -> list[ParsedVector]:
    return [vector for log in database.logs for record in log.records for vector in record.vectors]


def test_a_transaction_begins_with_its_first_change_and_ends_with_its_commit(
    tmp_path: Path,
) -> None:
    database = SmallDatabase(tmp_path, Shape())
    database.session.insert(database.table, database.row(1, 10))
    transaction = database.session.transaction
    assert transaction is not None
    database.close()
    opcodes = [vector.opcode for vector in vectors(database)]
    own = [opcode for opcode in opcodes if opcode in ("5.1", "5.2", "5.4", "11.2")]
    assert sorted(own[:3]) == ["11.2", "5.1", "5.2"]
    assert own[3:] == ["5.4"]
    assert transaction.commit_scn > transaction.begin_scn > 0


def test_a_rollback_applies_the_undo_newest_first(tmp_path: Path) -> None:
    database = SmallDatabase(tmp_path, Shape())
    session = database.session
    row = session.insert(database.table, database.row(1, 10))
    assert row is not None
    session.update(row, {1: wide(20)})
    session.rollback()
    database.close()
    found = [vector.opcode for vector in vectors(database)]
    rows = [opcode for opcode in found if opcode.startswith("11.")]
    assert rows == ["11.2", "11.5", "11.5", "11.3"]  # the work, then what takes it back
    assert [opcode for opcode in found if opcode in ("5.6", "5.11")] == ["5.6", "5.11"]


def test_nothing_is_written_of_a_transaction_without_changes(tmp_path: Path) -> None:
    database = SmallDatabase(tmp_path, Shape())
    database.session.savepoint()
    database.session.commit()
    database.session.rollback()
    assert database.instance.committed == []
