"""Rows of index-organised tables: leaf vectors become pieces without a ROWID."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.redo.batch import EventKind, Role
from olr_pg.redo.format.opcodes import IRP
from olr_pg.redo.iot import NO_ROWID
from olr_pg.simulator.fields.vector_fields import KDILK_PURGE, index_row, kdilk, ktb_continue
from tests.lobs.lob_redo import BLOCK, TABLE_OBJ, LobRedo
from tests.redo.hand_made import values_of, walked

if TYPE_CHECKING:
    from pathlib import Path

KEY = b"\x02\xc1\x02\x01k"
OTHERS = b"\x2c\x00\x02\x03abc\xff"


def leaf_insert(redo: LobRedo, obj: int) -> None:
    """5.1 with 10.2: the key, and two columns behind it."""
    undo = redo.undo_vector(obj, (10, 22), [kdilk(redo.redo, KDILK_PURGE, 1, BLOCK, BLOCK), KEY])
    row = index_row(redo.redo, 1, 6, len(KEY) + len(OTHERS), others=True)
    fields = [ktb_continue(redo.redo, bytes(8)), row, KEY, OTHERS]
    redo.emit(undo, redo.vector((10, 2), fields, obj, dba=BLOCK))


def test_an_inserted_leaf_row_has_its_key_and_the_columns_behind_it(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    leaf_insert(redo, TABLE_OBJ)
    batch, tally = walked(redo, tmp_path)
    assert batch.events.kind.tolist() == [EventKind.BEGIN, EventKind.CHANGE]
    (piece,) = batch.pieces
    assert (piece.op, piece.sup_flags, piece.bdba, piece.slot) == (IRP, NO_ROWID, BLOCK, 6)
    assert values_of(batch) == [
        (Role.AFTER, 1, b"\xc1\x02"),
        (Role.AFTER, 2, b"k"),
        (Role.AFTER, 3, b"abc"),
        (Role.AFTER, 4, None),
    ]
    assert (tally.row_vectors, tally.changes) == (1, 1)


def test_leaves_of_other_indexes_are_left(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    leaf_insert(redo, TABLE_OBJ + 1)
    batch, tally = walked(redo, tmp_path)
    assert batch.events.kind.tolist() == [EventKind.BEGIN]
    assert tally.row_vectors == 0
