"""Parallel DML: the records and their lengths as the dump of a 19c database has them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from olr_pg.simulator.fields.redo_format import RedoFormat
from olr_pg.simulator.fields.vector_fields import (
    CommitMark,
    VectorBlock,
    change_vector,
    commit_fields,
    parent_commit_fields,
    state_fields,
)
from olr_pg.simulator.sessions.order_entry import ParallelGroup
from tests.transactions.row_forms import Shape, SmallDatabase

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.simulator.sessions.session import SimSession
    from tests.simulator.reader import ParsedVector

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
