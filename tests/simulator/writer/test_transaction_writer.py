from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from olr_pg.simulator.fields.redo_format import (
    COMPATIBLE,
    CommitMark,
    RedoFormat,
    VectorBlock,
    change_vector,
    commit_fields,
    parent_commit_fields,
    state_fields,
    undo_size,
)
from olr_pg.simulator.model.tables import Logging
from olr_pg.simulator.sessions.order_entry import ParallelGroup
from olr_pg.simulator.writer.transaction_writer import cut_undo
from tests.simulator.laws import LOG_LAWS, broken_laws, broken_layout
from tests.simulator.reader import parse_vectors
from tests.transactions.row_forms import Shape, SmallDatabase, wide

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.simulator.sessions.session import SimSession
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


REDO = RedoFormat()
HEADER, LONG_HEADER = 24, 68
PARENT, FIRST, SECOND = (0x16, 0x3B9), (0x0D, 0x359), (0x16, 0x63)
"""Slot and sequence of the transactions of the dump."""


def test_fields_and_lengths_are_those_of_the_dump(shared_dir: Path) -> None:
    path = shared_dir / "evidence" / "pdml-19c-commit.json"
    _, _, parent, second, first, _ = records = json.loads(path.read_text("utf-8"))["records"]
    scn = parent["scn"]
    written = [
        state_fields(REDO, *SECOND, 11),
        state_fields(REDO, *FIRST, 11),
        parent_commit_fields(REDO, *PARENT),
        commit_fields(REDO, CommitMark(*SECOND, False, (bytes(8), 1), False, 1, scn)),
        commit_fields(REDO, CommitMark(*FIRST, False, (bytes(8), 1), True, 1, scn)),
        state_fields(REDO, *PARENT, 9, 1714201726),
    ]
    for record, fields in zip(records, written, strict=True):
        own = (5, 4) if record["op"] == "5.4" else (5, 12)
        size = len(change_vector(REDO, own, VectorBlock(69, 4, 0x1002B98), fields))
        assert record["len"] in (HEADER + size, LONG_HEADER + size)
        if "f1" in record:
            assert fields[0].hex() == record["f1"]
        else:
            assert REDO.unpack("HHI", fields[0]) == (record["slt"], 0, record["sqn"])
            assert REDO.unpack("I", fields[0], 12) == (record["sta"],)
    for one in (second, first):
        assert one["scn_field"] == scn
    for fields in written[3:5]:
        assert sum(REDO.read_scn8(data) == scn for data in fields if len(data) == 8) == 1
        assert len(fields[-1]) == 4 or len(fields[-1]) == 8


@pytest.mark.parametrize("place", range(4))
def test_the_scn_of_the_parent_may_have_any_place(place: int) -> None:
    mark = CommitMark(*FIRST, False, (bytes(8), 1), True, 1, 77, place)
    assert [len(data) for data in commit_fields(REDO, mark)].index(8) == place + 1


def group(folder: Path) -> tuple[SmallDatabase, ParallelGroup]:
    database = SmallDatabase(folder, Shape())
    session = database.session
    return database, ParallelGroup(database.instance, session.container, [session.thread])


def ends(database: SmallDatabase) -> list[ParsedVector]:
    """What tells the ends of transactions."""
    return [
        vector
        for log in database.logs
        for record in log.records
        for vector in record.vectors
        if vector.opcode in ("5.4", "5.12")
    ]


def test_children_commit_at_the_scn_of_their_parent(tmp_path: Path) -> None:
    database, parallel = group(tmp_path)
    keys = iter(range(1, 100))

    def work(server: SimSession) -> None:
        server.insert(database.table, database.row(next(keys), 20))

    assert parallel.run(2, None, work, committed=True)
    assert not parallel.run(2, None, work, committed=True)
    scn = parallel.committed_at
    database.session.insert(database.table, database.row(50, 5))
    database.session.commit()
    parallel.finish()
    parallel.finish()
    database.close()
    overtaking, *children = database.instance.committed
    assert [one.commit_scn for one in children] == [scn, scn]
    assert overtaking.commit_scn > scn
    assert len({one.xid_bytes for one in children}) == 2
    assert all(len(one.delivered) == 1 for one in children)
    found = ends(database)
    states = [(v.opcode, v.fields[0][12], v.fields[0][16] & 1) for v in found]
    assert states == [
        *(("5.12", 11, 0), ("5.12", 11, 0), ("5.4", 12, 0), ("5.4", 9, 0)),
        *(("5.4", 9, 1), ("5.4", 9, 1), ("5.12", 9, 0)),
    ]
    assert [len(v.raw) for v in found[:3]] == [84 - HEADER, 84 - HEADER, 124 - LONG_HEADER]
    assert {len(v.raw) for v in found[4:6]} <= {160 - LONG_HEADER, 140 - HEADER}
    assert len(found[6].raw) == 136 - LONG_HEADER
    last = [r.scn for log in database.logs for r in log.records if found[6] in r.vectors]
    assert database.instance.parallel_ends == [(scn, *last)]
    for child in found[4:6]:
        assert [REDO.read_scn8(data) for data in child.fields if len(data) == 8] == [scn]


def test_transactions_of_a_statement_name_their_parent(tmp_path: Path) -> None:
    database, parallel = group(tmp_path)

    def work(server: SimSession) -> None:
        server.insert(database.table, database.row(1, 20))

    parallel.run(1, None, work, committed=True)
    parallel.finish()
    database.close()
    begun = [
        (database.shape.redo.xid((v.cls - 15) // 2, *REDO.unpack("HxxI", v.fields[0])), v)
        for log in database.logs
        for record in log.records
        for v in record.vectors
        if v.opcode == "5.2"
    ]
    (parent, own), (child, other) = begun
    assert parent != child
    assert (own.fields[0][24:], other.fields[0][24:]) == (parent, parent)


def test_each_is_rolled_back_at_an_scn_of_its_own(tmp_path: Path) -> None:
    database, parallel = group(tmp_path)
    keys = iter(range(1, 100))

    def work(server: SimSession) -> None:
        server.insert(database.table, database.row(next(keys), 20))

    assert parallel.run(2, None, work, committed=False)
    assert parallel.committed_at == 0
    database.close()
    assert database.instance.committed == []
    assert database.table.live == []
    found = ends(database)
    assert {len(v.raw) for v in found} == {0x58 - HEADER}
    assert [(v.opcode, v.fields[0][16], [len(f) for f in v.fields]) for v in found] == [
        ("5.4", 4, [20, 4])
    ] * 3


def test_servers_may_load_directly_within_the_statement(tmp_path: Path) -> None:
    database, parallel = group(tmp_path)
    keys = iter(range(1, 100))

    def work(server: SimSession) -> None:
        server.load_part(database.table, [database.row(next(keys), 20) for _ in range(3)])

    assert parallel.run(2, None, work, committed=True)
    scn = parallel.committed_at
    parallel.finish()
    database.close()
    loads = [
        (record.vectors[0], record.vectors[1].opcode)
        for log in database.logs
        for record in log.records
        if any(vector.opcode == "19.1" for vector in record.vectors)
    ]
    assert [(of.opcode, code) for of, code in loads] == [("24.6", "19.1")] * 2
    assert {of.fields[0][8:] for of, _ in loads} == {
        one.xid_bytes for one in database.instance.committed
    }
    assert [(one.commit_scn, len(one.delivered)) for one in database.instance.committed] == [
        (scn, 3), (scn, 3),
    ]  # fmt: skip
