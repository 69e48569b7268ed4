"""Every row form that Oracle logs, written by the model statement by statement, decoded, compared.

What redo does not tell without supplemental logging is refused, never guessed.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from olr_pg.kernels.compile import interpreted
from olr_pg.redo.batch import EventKind, Role
from olr_pg.redo.format.opcodes import LMN, URP
from olr_pg.redo.format.row_fields import FB_FIRST, FB_LAST
from olr_pg.simulator.fields.redo_format import COMPATIBLE, RedoFormat
from olr_pg.simulator.model.tables import Logging
from olr_pg.transactions import row_job, rows
from tests.transactions.hand_made_pieces import BLOCK, Entry, Piece, job_of
from tests.transactions.row_forms import Shape, SmallDatabase, wide

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.transactions.row_job import RowJob

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
