"""Undo of one change that took several undo records: written by the model, joined, compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from olr_pg.decoding.split import open_for_decoding, subscribe
from olr_pg.redo.batch import EventKind
from olr_pg.redo.log_extraction import read_changes
from olr_pg.simulator.fields.redo_format import RedoFormat
from olr_pg.simulator.model.storage import WIDE_ROW_SPACE
from olr_pg.transactions.assembler import Assembler
from olr_pg.transactions.select import concatenate, select_events
from tests.simulator.laws import broken_undo_parts
from tests.transactions.row_forms import Shape, SmallDatabase, wide

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "shape",
    [
        Shape(piece_max=7200, unproven=True),
        Shape(piece_max=WIDE_ROW_SPACE),
        Shape(piece_max=WIDE_ROW_SPACE, redo=RedoFormat(big_endian=True)),
        Shape(piece_max=WIDE_ROW_SPACE, unproven=True),
    ],
    ids=["anywhere", "where it must be", "big-endian", "wide, anywhere"],
)
def test_the_undo_of_a_large_change_is_joined(tmp_path: Path, shape: Shape) -> None:
    for seed in range(6):
        folder = tmp_path / str(seed)
        folder.mkdir()
        base = SmallDatabase(folder, shape, seed=seed)
        session = base.session
        for key in range(24):
            session.insert(base.table, base.row(key, 900, 800, 0, 701))
        session.commit()
        while base.table.live:
            block = base.table.live[0].block
            taken = [row for row in base.table.live if row.block is block]
            mark = session.savepoint()
            assert session.delete_many(taken)
            if key % 2:
                session.rollback_to(mark)
                key = 0
        base.close()
        base.check()
        assert {"undo 002", "undo 005"} <= {*base.forms()}
        assert shape.unproven is any(list(broken_undo_parts(log)) for log in base.logs)


def test_undo_that_fits_a_block_is_not_split(tmp_path: Path) -> None:
    base = SmallDatabase(tmp_path, Shape(piece_max=7200))
    rows = [base.session.insert(base.table, base.row(key, 2000, 2000, 2000)) for key in range(8)]
    for row in rows:
        assert row
        assert base.session.update(row, {1: wide(1999), 2: wide(1998), 3: wide(1997)})
        assert base.session.delete(row)
    base.close()
    base.check()
    assert not [form for form in base.forms() if form.startswith("undo")]


def test_undo_without_one_of_its_parts_is_refused(tmp_path: Path) -> None:
    base = SmallDatabase(tmp_path, Shape(unproven=True), seed=3)
    for key in range(40):
        assert base.session.insert(base.table, base.row(key, 900))
    for row in list(base.table.live):
        assert base.session.delete(row)
    base.close()
    (path,) = tmp_path.iterdir()
    wanted = subscribe(base.snapshot.tables, 0)
    log = open_for_decoding(str(path))
    batch = concatenate([found.batch for found in read_changes(log, wanted.objects)])
    assert EventKind.SPLIT_CHANGE in batch.events.kind
    left = select_events(batch, np.flatnonzero(batch.events.kind != EventKind.UNDO_PART))
    assembler = Assembler(wanted.row_plan, wanted.tables, is_split=False)
    finished = assembler.feed(left)
    assert finished is not None
    assert finished.dml.kind.size == 0
    (fault,) = finished.faults
    assert fault.error.code == 2060
    assert fault.error.where["table"] == "SIM.T"
    kinds = (EventKind.CHANGE, EventKind.SPLIT_CHANGE)
    assert assembler.account.events_committed == np.isin(left.events.kind, kinds).sum()
