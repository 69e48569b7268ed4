"""One row piece from a pair: its place, its flags, and the values of both sides."""

from __future__ import annotations

from decimal import Decimal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from olr_pg.errors import Code
from olr_pg.kernels.compile import interpreted
from olr_pg.redo import pieces as pieces_module
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


@pytest.mark.parametrize(
    ("at", "size", "big", "noted"),
    [(17, 2, False, 2), (16, 2, True, 2), (16, 2, False, -1), (17, 1, False, -1)],
)
def test_a_bitmap_of_changed_columns_is_announced_and_has_their_number(
    at: int, size: int, big: bool, noted: int
) -> None:
    """Bit 0x20 of opt, in either of its places (redo-format §4.3), and a bit for each column."""
    data = np.zeros(30, np.uint8)
    data[at] = 0x20
    data[21 if big else 20] = 9  # columns
    offset, length = np.array([0, 20, 22]), np.array([20, 2, size])
    rows: Any = SimpleNamespace(changed_offset=np.zeros(1, int), changed_length=np.full(1, -1))
    kernel = interpreted(pieces_module._changed_columns)
    kernel(data, 0, offset, length, 1, big, rows, 0)
    assert (rows.changed_offset[0], rows.changed_length[0]) == (22 if noted > 0 else 0, noted)
