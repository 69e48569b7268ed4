"""One row piece from a pair: its place, its flags, and the values of both sides."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from olr_pg.errors import Code
from olr_pg.redo.batch import EventKind, Role
from olr_pg.redo.format.opcodes import DRP, IRP, URP
from olr_pg.redo.pieces import REASONS, ChangeStatus, error_code
from olr_pg.simulator.fields.row_fields import (
    FB_ROW,
    UNDO_SIDE,
    KdoBase,
    RowPiece,
    delete_kdo,
    insert_kdo,
)
from tests.lobs.lob_redo import BLOCK, LobRedo
from tests.redo.hand_made import values_of, walked

if TYPE_CHECKING:
    from pathlib import Path

ONE = b"\xc1\x02"


def test_an_insert_has_the_new_values(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    redo.insert_row(ONE, None, b"img")
    batch, tally = walked(redo, tmp_path)
    (piece,) = batch.pieces
    assert (piece.op, piece.row_flags, piece.width) == (IRP, FB_ROW, 3)
    assert (piece.bdba, piece.slot) == (piece.head_bdba, piece.head_slot) == (BLOCK, 0)
    assert values_of(batch) == [
        (Role.AFTER, 1, ONE),
        (Role.AFTER, 2, None),
        (Role.AFTER, 3, b"img"),
    ]
    assert (tally.row_vectors, tally.changes, tally.filtered) == (1, 1, 0)


def test_without_supplemental_data_the_piece_is_the_head_of_its_row(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    base = KdoBase(BLOCK, BLOCK, 100, 1)
    new = insert_kdo(redo.redo, base, IRP, RowPiece(FB_ROW, (ONE,)), 6, 1)
    redo.pair([delete_kdo(redo.redo, base, DRP | UNDO_SIDE, 6)], [new, ONE], IRP)
    (piece,) = walked(redo, tmp_path)[0].pieces
    assert (piece.supplemental, piece.slot) == (0, 6)
    assert (piece.head_bdba, piece.head_slot) == (BLOCK, 6)


def test_a_delete_has_the_old_values(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    redo.delete_row(7, ONE, b"text", None)
    batch, _ = walked(redo, tmp_path)
    (piece,) = batch.pieces
    assert (piece.op, piece.slot, piece.old_width) == (DRP, 7, 3)
    assert values_of(batch)[:3] == [
        (Role.BEFORE, 1, ONE), (Role.BEFORE, 2, b"text"), (Role.BEFORE, 3, None),
    ]  # fmt: skip


def test_an_update_has_both_and_what_was_logged_besides(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    redo.update(4, Decimal(1), {2: b"old"}, {2: b"new"})
    batch, _ = walked(redo, tmp_path)
    (piece,) = batch.pieces
    assert (piece.op, piece.slot, piece.supplemental) == (URP, 4, 1)
    assert (piece.row_flags, piece.old_flags) == (FB_ROW, FB_ROW)
    logged = Role.BEFORE_SUPPLEMENTAL | Role.AFTER_SUPPLEMENTAL
    assert sorted(values_of(batch)) == sorted(
        [(Role.BEFORE, 2, b"old"), (Role.AFTER, 2, b"new"), (logged, 1, ONE)]
    )


def test_rows_of_other_tables_are_counted_and_left(tmp_path: Path) -> None:
    other = LobRedo()
    other.begin()
    other.emit(other.undo_vector(5, (11, 1), []), other.vector((11, IRP), [b"", b""], 5, dba=BLOCK))
    batch, tally = walked(other, tmp_path)
    assert batch.events.kind.tolist() == [EventKind.BEGIN]
    assert (tally.row_vectors, tally.filtered, tally.changes) == (1, 1, 0)


def test_every_reason_has_its_error() -> None:
    assert all(Code(error_code(status)).name for status in REASONS)
    assert error_code(ChangeStatus.SPLIT_UNDO) == Code.UNDO_NOT_WHOLE
    assert error_code(ChangeStatus.ROWS) == Code.CHANGE_UNDECODABLE
