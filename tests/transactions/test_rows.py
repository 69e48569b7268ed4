"""Every row form that Oracle logs, written by the model statement by statement, decoded, compared.

What redo does not tell without supplemental logging is refused, never guessed.
"""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from olr_pg.kernels.compile import interpreted
from olr_pg.redo.batch import EventKind, Role
from olr_pg.redo.format.opcodes import CMP, DRP, IRP, LMN, QMI, URP
from olr_pg.redo.format.row_fields import FB_FIRST, FB_HEAD, FB_LAST
from olr_pg.simulator.fields.redo_format import COMPATIBLE, RedoFormat
from olr_pg.simulator.model.tables import Logging
from olr_pg.transactions import row_job, rows
from olr_pg.transactions.row_job import (
    CONTRADICTS,
    GROUP,
    INCOMPLETE,
    MOST_OPEN,
    MULTI_PIECE,
    OK,
    RowJob,
)
from olr_pg.transactions.rows import _close_group, add_piece
from tests.transactions.hand_made_pieces import BLOCK, Entry, Piece, assembled_both_ways, job_of
from tests.transactions.row_forms import Shape, SmallDatabase, wide
from tests.transactions.test_chains import A, B, D, Part, deleted, inserted, job_of_parts, updated

if TYPE_CHECKING:
    from pathlib import Path

LEVELS = tuple(Logging)
OLD = RedoFormat(COMPATIBLE["11.2"], big_endian=True)


@pytest.mark.parametrize("logging", LEVELS)
@pytest.mark.parametrize("row_dependencies", [False, True])
def test_chained_and_migrated_rows(
    tmp_path: Path, logging: Logging, row_dependencies: bool
) -> None:
    redo = OLD if row_dependencies else RedoFormat()
    base = SmallDatabase(
        tmp_path, Shape(logging, row_dependencies=row_dependencies, redo=redo), seed=3
    )
    session, row = base.session, base.row
    chained = session.insert(base.table, row(1, 1000, 1000, 1000, 10))
    cut = session.insert(base.table, row(2, 300, 2000, 300, 7))
    small = session.insert(base.table, row(3, 20, 20))
    other = session.insert(base.table, row(4, 900, 100))
    session.insert(base.table, row(5, 800))
    assert chained
    assert cut
    assert small
    assert other
    session.commit()
    # It does not fit its block any more, moves, moves on, comes back, and is deleted.
    for sizes in ((1500, 20), (1500, 100), (1700, 100)):
        new = {at: wide(size) for at, size in enumerate(sizes, 1)}
        assert session.update(small, new)
    assert small.chain
    session.commit()
    assert session.update(small, {1: wide(1750), 2: None})
    mark = session.savepoint()
    assert session.update(small, {1: wide(5), 2: None})
    session.rollback_to(mark)
    assert session.update(small, {1: wide(6), 2: None})
    session.commit()
    # It grows to several pieces, in place or elsewhere.
    assert session.update(other, {2: wide(1800), 3: wide(1800)})
    session.commit()
    session.update(chained, {1: wide(900)})
    session.update(chained, {3: wide(990), 4: None})
    session.update(chained, {2: wide(1600), 3: wide(1700)})
    session.update(chained, {2: wide(16), 3: None})
    session.commit()
    session.update(cut, {4: wide(9), 5: wide(3)})
    mark = session.savepoint()
    assert session.delete(cut)
    session.rollback_to(mark)
    session.commit()
    for victim in (chained, cut, small, other):
        assert session.delete(victim)
    base.close()
    base.check()


def test_the_forms_occur(tmp_path: Path) -> None:
    base = SmallDatabase(tmp_path, Shape(unproven=True), seed=5)
    session, found = base.session, set[str]()
    for key in range(1, 40, 2):
        plain = session.insert(base.table, base.row(key, 900, 30))
        chain = session.insert(base.table, base.row(key + 1, 1200, 1900, 1200, 60))
        assert plain
        assert chain
        session.update(plain, {2: wide(1900)})
        session.update(plain, {1: wide(1200)})
        session.update(plain, {1: wide(20), 2: wide(40)})
        session.update(chain, {1: wide(1100)})
        session.update(chain, {4: wide(64), 5: wide(6)})
        session.update(chain, {3: wide(1900)})
        assert session.insert(base.table, base.row(key + 100, 1000, 1840))
        grown = session.insert(base.table, base.row(key + 200, 1000))
        assert grown
        session.update(grown, {2: wide(1840)})
        mark = session.savepoint()
        session.delete(chain)
        session.rollback_to(mark)
        session.commit()
    base.close()
    base.check()
    found.update(base.forms())
    assert found >= {
        *("11.2 04", "11.2 06", "11.2 0c", "11.2 28", "11.2 29", "11.2 2c"),
        *("11.6 20", "11.6 28", "11.6 2c", "11.3", "11.5", "11.8", "11.16"),
        *("undo 001", "undo 002", "undo 104", "undo 005"),
    }


def test_more_than_255_columns(tmp_path: Path) -> None:
    base = SmallDatabase(tmp_path, Shape(columns=700, piece_max=7200))
    row = base.session.insert(base.table, base.row(1, *[3] * 690))
    assert row
    assert [len(piece.image.columns) for piece in row.chain] == [181, 255, 255]
    assert base.session.update(row, {10: wide(1), 300: None, 680: wide(2), 699: wide(4)})
    base.close()
    base.check()


@pytest.mark.parametrize("logging", LEVELS)
def test_rows_that_move_to_another_partition(tmp_path: Path, logging: Logging) -> None:
    base = SmallDatabase(tmp_path, Shape(logging, partitions=3), seed=2)
    session = base.session
    for key in range(1, 13):
        big = (1200, 1200, 5) if key % 3 == 0 else (20, 30)
        assert session.insert(base.table, base.row(key, *big))
    session.commit()
    for row in list(base.table.live):
        assert session.update(row, {0: base.row(100 + base.table.live.index(row))[0]})
    base.close()
    base.check()


@pytest.mark.parametrize("logging", LEVELS)
@pytest.mark.parametrize("redo", [RedoFormat(), OLD], ids=["19", "11.2"])
def test_index_organised_tables(tmp_path: Path, logging: Logging, redo: RedoFormat) -> None:
    base = SmallDatabase(tmp_path, Shape(logging, index_organised=True, redo=redo), seed=4)
    session = base.session
    rows = [session.insert(base.table, base.row(key, 10, 0, 300)) for key in range(30)]
    assert not session.insert_many(base.table, [])
    for row in rows:
        assert row
        assert session.update(row, {2: wide(7)})
        if not row.deleted:
            session.update(row, {4: wide(9), 3: None})
    mark = session.savepoint()
    for row in list(base.table.live[:9]):
        assert session.delete(row)
    session.rollback_to(mark)
    assert session.update(base.table.live[0], {0: base.row(99)[0]})
    assert session.delete(base.table.live[1])
    base.close()
    base.check()
    leaf_ops = {"10.2", "10.4", "10.30", "10.35"}
    found = {form for form in base.forms() if form.startswith("10.")}
    assert found == leaf_ops | ({"10.18"} if logging is not Logging.NONE else set())


def test_a_table_is_left_out_for_a_fault_of_the_transaction_at_hand() -> None:
    counts = {row_job.FAULTS: 3}
    events = SimpleNamespace(table=[7, 8, 9, 8])
    job: Any = SimpleNamespace(
        counts=counts,
        faults=SimpleNamespace(event=[0, 1, 2]),
        batch=SimpleNamespace(events=events),
    )
    left_out = interpreted(rows._is_left_out)
    assert [left_out(job, 1, table) for table in (7, 8, 9, 10)] == [False, True, True, False]
    assert not left_out(job, 3, 9)


def test_a_fault_names_its_transaction_and_takes_its_rows_back() -> None:
    good, bad = Piece([Entry(1, b"x")]), Piece([Entry(4, b"beyond the table")])
    job = job_of(good, good, bad, good)
    live, undoable = np.empty((2, 4), np.int64)
    dml_first = np.zeros(4, np.int64)
    found = interpreted(rows.assemble_rows)(
        job, np.arange(4), np.array([0, 1, 3]), np.array([1, 3, 4]), dml_first, live, undoable
    )
    assert found == row_job.OK
    assert job.counts[row_job.FAULTS] == 1
    fault = job.faults[0]
    assert (fault.transaction, fault.event, fault.status) == (1, 2, row_job.UNKNOWN_COLUMN)
    assert dml_first.tolist() == [0, 1, 1, 2]
    assert (job.counts[row_job.CHANGES], job.counts[row_job.VALUES]) == (2, 6)
    assert job.entry_start[:3].tolist() == [0, 3, 6]


WHOLE: Final = Piece([Entry(1, b"x")])
FIRST, LAST = Piece([Entry(1, b"x")], group=FB_FIRST), Piece([Entry(2, b"y")], group=FB_LAST)


NOTHING_SET: Final = Piece([Entry(1, b"x", Role.BEFORE_SUPPLEMENTAL)], op=LMN)
"""An update of which the log has the key alone."""


def part(*pieces: Piece, more: bool, known: int = 0) -> RowJob:
    """The job of a part of a transaction, done; pieces that were known from the start."""
    job = job_of(*pieces)
    job.counts[row_job.MORE] = more
    job.counts[row_job.KNOWN_BEFORE], job.counts[row_job.KNOWN_PIECES] = known, 1
    job.known[:1] = (0, BLOCK, 0, 1, BLOCK, 7)  # one column before it, its row in slot 7
    count = len(pieces)
    live, undoable = np.empty((2, count), np.int64)
    found = interpreted(rows.assemble_rows)(
        job, np.arange(count), np.array([0]), np.array([count]), np.zeros(2, np.int64), live,
        undoable,
    )  # fmt: skip
    assert found == row_job.OK
    assert job.entry_start[job.counts[row_job.CHANGES]] == job.counts[row_job.VALUES]
    return job


@pytest.mark.parametrize(
    ("pieces", "settled", "changes"),
    [
        ((), 0, 0),
        ((WHOLE, WHOLE), 2, 2),
        ((FIRST, LAST), 2, 1),
        ((FIRST,), 0, 0),
        ((WHOLE, FIRST), 1, 1),
        ((WHOLE, FIRST, WHOLE), 1, 1),
        ((FIRST, LAST, WHOLE, FIRST, WHOLE), 3, 2),
    ],
)
def test_of_a_part_all_is_written_that_stands_before_a_half_row(
    pieces: tuple[Piece, ...], settled: int, changes: int
) -> None:
    """What follows comes again with the next part: the rest of the row is there."""
    job = part(*pieces, more=True)
    assert job.counts[row_job.FAULTS] == 0
    assert job.counts[row_job.SETTLED] == settled
    assert job.counts[row_job.CHANGES] == changes
    assert job.counts[row_job.VALUES] == changes * 3


def test_a_half_row_at_the_end_of_its_transaction_is_a_fault() -> None:
    """Nothing of its table is written, of which a part would be wrong."""
    unlogged = Piece([Entry(1, b"x")], group=None)
    for pieces, status in (
        ((WHOLE, FIRST, WHOLE), row_job.INCOMPLETE),
        ((WHOLE, unlogged, WHOLE), row_job.MULTI_PIECE),
    ):
        job = part(*pieces, more=False)
        assert job.counts[row_job.FAULTS] == 1
        assert (job.faults[0].event, job.faults[0].status) == (1, status)
        assert (job.counts[row_job.CHANGES], job.counts[row_job.VALUES]) == (0, 0)


def test_updates_of_nothing_are_counted_with_what_is_written() -> None:
    for pieces, more, count in (
        ((NOTHING_SET, WHOLE), False, 1),
        ((NOTHING_SET, FIRST, NOTHING_SET), True, 1),
        ((NOTHING_SET, FIRST), False, 0),
    ):
        job = part(*pieces, more=more)
        assert job.counts[row_job.WITHOUT_SET] == count


def test_a_half_row_is_put_in_its_place_by_its_own_transaction_alone() -> None:
    """Pieces without supplemental data say where they are, not of which row (redo-format §7.9)."""
    later = Piece([Entry(1, b"y")], op=URP, group=None)
    job = part(later, more=False, known=1)
    assert (job.counts[row_job.CHANGES], job.counts[row_job.FAULTS]) == (1, 0)
    assert job.changes[0].slot == 7
    assert [value.column for value in job.values[: job.counts[row_job.VALUES]]] == [1]
    assert part(later, more=False).faults[0].status == row_job.MULTI_PIECE


def test_what_is_taken_back_is_counted_over_all_transactions() -> None:
    job = job_of(*[WHOLE] * 7)
    job.batch.events.undo_dba[:] = 9
    job.batch.events.kind[[2, 4, 5]] = EventKind.UNDONE
    order, live, undoable = np.arange(7), np.empty(7, np.int64), np.empty(7, np.int64)
    dml_first = np.zeros(3, np.int64)
    interpreted(rows.assemble_rows)(
        job, order, np.array([0, 3]), np.array([3, 7]), dml_first, live, undoable
    )
    assert (job.counts[row_job.UNDONE], job.counts[row_job.UNMATCHED]) == (2, 1)
    assert dml_first.tolist() == [0, 1, 2]


add = interpreted(add_piece)


def added(job: RowJob) -> list[tuple[int, int, list[int]]]:
    """(status, open groups, pieces of the change that is complete) after each piece."""
    found, groups = [], 0
    for piece in range(job.batch.pieces.size):
        status, groups, complete = add(job, piece, piece, groups)
        members = []
        while complete >= 0:
            members.append(complete)
            complete = int(job.links.next_piece[complete])
        found.append((status, groups, members))
    return found


@pytest.mark.parametrize("piece", [Piece(), Piece(op=QMI, group=None), Piece(op=QMI, group=0)])
def test_a_whole_row_is_a_change_by_itself(piece: Piece) -> None:
    assert added(job_of(piece)) == [(OK, 0, [0])]


def test_pieces_between_first_and_last_are_one_change() -> None:
    pieces = [Piece(op=URP, group=flags) for flags in (FB_FIRST, 0, FB_LAST)]
    assert added(job_of(*pieces)) == [(OK, 1, []), (OK, 1, []), (OK, 0, [0, 1, 2])]


def test_rows_may_be_half_seen_side_by_side() -> None:
    job = job_of(
        Piece(op=URP, group=FB_FIRST, head=1),
        Piece(op=DRP, group=FB_FIRST, head=2),
        Piece(op=URP, group=FB_LAST, head=1),
        Piece(op=IRP, group=FB_FIRST, head=1),
        Piece(op=DRP, group=FB_LAST, head=2),
        Piece(op=IRP, group=FB_LAST, head=1),
    )
    members = [change for _, _, change in added(job) if change]
    assert members == [[0, 2], [1, 4], [3, 5]]


def test_slots_of_other_blocks_are_other_rows() -> None:
    job = job_of(Piece(group=FB_FIRST, head=1), Piece(group=FB_LAST, head=1, head_bdba=7))
    assert added(job) == [(OK, 1, []), (INCOMPLETE, 1, [])]


@pytest.mark.parametrize("others", list(itertools.permutations((1, 2, 4), 2)))
@pytest.mark.parametrize("at", range(3))
def test_records_of_one_change_are_of_one_statement(others: tuple[int, int], at: int) -> None:
    statement, damaged = others
    pieces = [Piece(op=URP, group=f, statement=statement) for f in (FB_FIRST, 0, FB_LAST)]
    assert added(job_of(*pieces))[-1] == (OK, 0, [0, 1, 2])
    pieces[at] = pieces[at]._replace(statement=damaged)
    assert (CONTRADICTS, 1, []) in added(job_of(*pieces))


@pytest.mark.parametrize(("op", "statement"), [(URP, 1), (IRP, 2), (DRP, 4)])
def test_a_whole_piece_without_flags_is_by_its_statement(op: int, statement: int) -> None:
    for named in (1, 2, 4):
        job = job_of(Piece(op=op, group=0, statement=named))
        job.batch.pieces.row_flags[:] = FB_FIRST | FB_LAST
        expected = (OK, 0, [0]) if named == statement else (CONTRADICTS, 0, [])
        assert added(job) == [expected]


def test_a_row_whose_beginning_was_not_seen_is_incomplete() -> None:
    assert added(job_of(Piece(group=FB_LAST))) == [(INCOMPLETE, 0, [])]


def test_a_cmp_without_a_row_is_passed_unless_a_row_is_half_seen() -> None:
    block = Piece(op=CMP, group=0, head_bdba=0)
    assert added(job_of(block)) == [(OK, 0, [])]
    assert added(job_of(Piece(group=FB_FIRST), block))[1] == (INCOMPLETE, 1, [])


def test_the_number_of_open_rows_is_bounded() -> None:
    job = job_of(Piece(group=FB_FIRST))
    assert add(job, 0, 0, MOST_OPEN - 1)[:2] == (OK, MOST_OPEN)
    assert add(job, 0, 0, MOST_OPEN)[:2] == (INCOMPLETE, MOST_OPEN)


def test_the_change_of_a_group_has_the_values_of_all_its_pieces() -> None:
    dml = assembled_both_ways(
        Piece([Entry(1, b"a")], group=FB_FIRST, head=1),
        Piece([Entry(1, b"x"), Entry(2, b"y"), Entry(3, b"z")], head=2),
        Piece([Entry(2, b"b"), Entry(3, None)], group=FB_LAST, head=1),
    )
    values = [
        None if value.length < 0 else dml.data[value.offset :][: value.length].tobytes()
        for value in dml.values
    ]
    assert dml.slot.tolist() == [2, 1]
    assert values == [b"x", b"y", b"z", b"a", b"b", None]


def test_a_row_is_of_its_table_and_the_last_that_began_goes_on() -> None:
    first, last = Piece(group=FB_FIRST, head=1), Piece(group=FB_LAST, head=1)
    job = job_of(first, first, last)
    assert added(job)[2] == (OK, 1, [1, 2])
    job = job_of(first, last)
    job.batch.events.table[1] = 1
    assert added(job) == [(OK, 1, []), (INCOMPLETE, 1, [])]


def test_a_cmp_is_passed_where_only_rows_of_other_tables_are_half_seen() -> None:
    job = job_of(Piece(group=FB_FIRST), Piece(op=CMP, group=0, head_bdba=0))
    job.batch.events.table[1] = 1
    assert added(job) == [(OK, 1, []), (OK, 1, [])]
    for cmp in (Piece(op=CMP, group=0), Piece(op=CMP, group=FB_LAST, head_bdba=0)):
        assert added(job_of(cmp)) == [(INCOMPLETE, 0, [])]
    growing = job_of_parts([inserted(B, FB_LAST), Part(CMP, (0, 0), row=(0, 0))])
    growing.batch.pieces.supplemental[1] = 1
    assert added(growing) == [(OK, 1, []), (OK, 1, [])]


def test_what_stands_behind_a_closed_group_moves_up() -> None:
    job = job_of(Piece())
    for number, name in enumerate(GROUP.names or ()):
        job.groups[name][:4] = 10 * number + np.arange(4)
    before = job.groups[:4].tolist()
    assert interpreted(_close_group)(job, 4, 1) == 10 * (GROUP.names or ()).index("head") + 1
    assert job.groups[:3].tolist() == [before[0], before[2], before[3]]


def test_a_piece_is_linked_to_its_event_and_its_row() -> None:
    job = job_of(Piece(head=4, head_bdba=77), Piece())
    job.links.view(np.uint8)[:] = 0x5A
    add(job, 1, 0, 0)
    assert job.links[0].tolist() == (-1, 1, 0, 77, 4)


def test_what_becomes_of_pieces_without_supplemental_data() -> None:
    whole = FB_HEAD | FB_FIRST | FB_LAST
    assert added(job_of_parts([inserted(A, whole)])) == [(OK, 0, [0])]
    assert added(job_of_parts([updated(B, 0)])) == [(MULTI_PIECE, 0, [])]
    job = job_of_parts([inserted(B, FB_LAST)])
    assert add(job, 0, 0, job.groups.size - 1) == (INCOMPLETE, job.groups.size - 1, -1)


def test_a_chain_that_closes_is_a_change_at_the_address_of_its_row() -> None:
    """Written last to first, the row is at the last piece that came; deleted, at the first."""
    open_one = inserted(D, FB_LAST)
    written = [open_one, inserted(B, FB_LAST), inserted(A, FB_HEAD | FB_FIRST, B)]
    job = job_of_parts(written)
    assert added(job) == [(OK, 1, []), (OK, 2, []), (OK, 1, [1, 2])]
    assert (job.links.bdba[1], job.links.slot[1]) == A
    gone = [open_one, deleted(A, FB_HEAD | FB_FIRST, B), deleted(B, FB_LAST)]
    job = job_of_parts(gone)
    assert added(job) == [(OK, 1, []), (OK, 2, []), (OK, 1, [1, 2])]
    assert (job.links.bdba[1], job.links.slot[1]) == A
