"""The walk over vectors: an undo record waits for its row vector, an undone one takes it back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.redo.batch import EventKind
from olr_pg.simulator.fields.row_fields import OP_DRP, OP_IRP, UNDO_SIDE, KdoBase, delete_kdo
from olr_pg.simulator.fields.vector_fields import ktb_continue
from tests.lobs.lob_redo import BLOCK, TABLE_OBJ, LobRedo
from tests.redo.hand_made import walked

if TYPE_CHECKING:
    from pathlib import Path

BASE = KdoBase(BLOCK, BLOCK, 100, 1)


def test_an_undone_row_vector_is_counted_as_undoing(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    redo.insert_row(b"\xc1\x02")
    redo.undo_insert(0, 1)
    batch, tally = walked(redo, tmp_path)
    assert batch.events.kind.tolist() == [EventKind.BEGIN, EventKind.CHANGE, EventKind.UNDONE]
    assert (tally.vectors, tally.row_vectors) == (5, 2)
    assert (tally.changes, tally.undoing, tally.unpaired) == (1, 1, 0)


def test_a_row_vector_without_undo_is_unpaired(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    fields = [ktb_continue(redo.redo, bytes(8)), delete_kdo(redo.redo, BASE, OP_DRP, 0)]
    redo.emit(redo.vector((11, OP_DRP), fields, TABLE_OBJ, dba=BLOCK))
    batch, tally = walked(redo, tmp_path)
    assert batch.events.kind.tolist() == [EventKind.BEGIN]
    assert (tally.row_vectors, tally.changes, tally.unpaired) == (1, 0, 1)


def test_an_undo_record_of_another_record_does_not_wait(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    kdo = delete_kdo(redo.redo, BASE, OP_DRP | UNDO_SIDE, 0)
    redo.emit(redo.undo_vector(TABLE_OBJ, (11, 1), [kdo]))
    fields = [ktb_continue(redo.redo, bytes(8)), delete_kdo(redo.redo, BASE, OP_IRP, 0)]
    redo.emit(redo.vector((11, OP_IRP), fields, TABLE_OBJ, dba=BLOCK))
    _, tally = walked(redo, tmp_path)
    assert (tally.changes, tally.unpaired) == (0, 1)
