from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from olr_pg.simulator.fields.redo_format import COMPATIBLE, RedoFormat
from olr_pg.simulator.fields.vector_fields import undo_size
from olr_pg.simulator.model.tables import Logging
from olr_pg.simulator.writer.transaction_writer import cut_undo
from tests.simulator.laws import LOG_LAWS, broken_laws, broken_layout
from tests.simulator.reader import parse_vectors
from tests.transactions.row_forms import Shape, SmallDatabase, wide

if TYPE_CHECKING:
    from pathlib import Path

    from tests.simulator.reader import ParsedRecord, ParsedVector


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


@pytest.mark.parametrize(
    ("sizes", "cut"), [([100] * 6, False), ([100, 100], False), ([40, 100], True)]
)
def test_undo_that_does_not_fit_goes_on_in_another_record(sizes: list[int], *, cut: bool) -> None:
    """The fields that the record has room for are the last ones, the first of them cut."""
    fields = [bytes(8), bytes(8), *[bytes([at]) * 100 for at in range(6)]]
    last, before, found = cut_undo(fields, 24, undo_size([24, *sizes]))
    assert b"".join((*before, *last)) == b"".join(fields)
    assert ([len(field) for field in last], found) == (sizes, cut)


OLD = RedoFormat(COMPATIBLE["11.2"])


def changed_rows(database: SmallDatabase) -> ParsedRecord:
    """The record with the commit of an UPDATE, of a row that is there."""
    session, table = database.session, database.table
    row = session.insert(table, database.row(1, 10))
    assert row is not None
    session.commit()

    def work() -> None:
        session.update(row, {1: wide(30)})

    session.commit_in_one_record(work, private=table.logging is Logging.NONE)
    database.close()
    assert broken_laws(database.logs, log_laws=(*LOG_LAWS, broken_layout)) == []
    assert [len(one.delivered) for one in database.instance.committed] == [1, 1]
    assert row.cells[1] == wide(30)
    return [record for log in database.logs for record in log.records][-1]


def opcodes(record: ParsedRecord) -> list[str]:
    return [v.opcode for v in record.vectors if v.opcode not in ("24.4", "17.28")]


def test_private_redo_has_the_order_and_the_flags_of_a_real_record(
    tmp_path: Path, shared_dir: Path
) -> None:
    path = shared_dir / "evidence" / "imu-11.2.0.1-record.json"
    real = json.loads(path.read_text("utf-8"))
    raw = bytes.fromhex("".join(real["vectors"]))
    known = [vector.opcode for vector in parse_vectors(OLD, raw, 0)]

    record = changed_rows(SmallDatabase(tmp_path, Shape(logging=Logging.NONE, redo=OLD)))
    assert opcodes(record) == known
    assert record.vld | 0x04 == real["vld"]
    row, _, end, undo = (v for v in record.vectors if v.layer in (5, 11))
    assert (end.fields[0][12], row.fields[1][10] & 31) == (9, 5)
    # The row vector names the undo record behind it.
    uba = OLD.pack("I", undo.dba) + undo.fields[0][16:19]
    assert uba in row.fields[0]


@pytest.mark.parametrize("release", ["11.2", "19"])
def test_the_end_may_stand_before_the_last_pair(tmp_path: Path, release: str) -> None:
    redo = RedoFormat(COMPATIBLE[release])
    record = changed_rows(SmallDatabase(tmp_path, Shape(redo=redo)))
    assert opcodes(record) in (
        ["5.2", "5.4", "5.1", "11.5", "5.19"],
        ["5.2", "5.4", "5.1", "11.5", "5.20"],
    )


def test_the_last_changes_of_an_open_transaction_follow_its_end(
    tmp_path: Path, shared_dir: Path
) -> None:
    path = shared_dir / "evidence" / "commit-before-change.json"
    assert "5.4, 5.1, 11.2 in one record" in json.loads(path.read_text("utf-8"))["what"]
    database = SmallDatabase(tmp_path, Shape())
    session, table = database.session, database.table
    session.insert(table, database.row(1, 10))

    def work() -> None:
        session.insert(table, database.row(2, 10))

    session.commit_in_one_record(work, private=False)
    session.commit_in_one_record(lambda: None, private=False)
    database.close()
    record = [record for log in database.logs for record in log.records][-1]
    assert opcodes(record) == ["5.4", "5.1", "11.2"]
    (only,) = database.instance.committed
    assert (len(only.delivered), only.commit_scn) == (2, record.scn)
