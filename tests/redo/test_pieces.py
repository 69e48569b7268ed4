"""One row piece from a pair: its place, its flags, and the values of both sides."""

from __future__ import annotations

import struct
from decimal import Decimal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from olr_pg.errors import Code
from olr_pg.kernels.compile import interpreted
from olr_pg.redo import pieces as pieces_module
from olr_pg.redo.batch import EventKind, Role, empty_pieces
from olr_pg.redo.format.opcodes import DRP, IRP, ORP, URP
from olr_pg.redo.format.row_fields import FB_FIRST, FB_HEAD, FB_LAST
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
from tests.redo.chain import clear, columns_of
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


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("size", [20, 26, 28])
def test_what_a_supplemental_header_says(order: str, size: int) -> None:
    """redo-format §4.3: type, fb, cc, objv, before, after; from 26 bytes on the head's address."""
    header = struct.pack(order + "BBHHHH10xIHH", 2, 0x0C, 3, 9, 92, 105, BLOCK, 7, 0)[:size]
    rows = empty_pieces(2)
    clear(rows)
    data = np.frombuffer(b"\xee" * 3 + header, np.uint8)
    found = interpreted(pieces_module._describe)(data, 3, size, order == ">", rows, 1)
    assert found == (92, 105)
    piece = rows[1]
    assert (piece.supplemental, piece.sup_type, piece.sup_flags) == (1, 2, 0x0C)
    assert (piece.head_bdba, piece.head_slot) == ((BLOCK, 7) if size > 20 else (0, 0))


def kdo_of(order: str, op: int, fb: int) -> bytes:
    """KDO of an IRP (redo-format §5.4): fb, lb, cc, cki, hrid, nrid, length, slot."""
    return struct.pack(
        order + "10xB5x4BIHxxIH6xHH4x", op, fb, 1, 99, 0, 0x55, 0x56, 0x57, 0x58, 300, 0x59
    )


@pytest.mark.parametrize("order", ["<", ">"])
def test_where_a_row_goes_on(order: str) -> None:
    """redo-format §5.4: nrid of a piece that is not the last."""
    kernel = interpreted(pieces_module._next_piece)

    def of(op: int, fb: int, size: int = 48) -> tuple[int, int, int]:
        data = np.frombuffer(b"\xee" * 3 + kdo_of(order, op, fb), np.uint8)
        found: tuple[int, int, int] = kernel(data, 3, size, order == ">")
        return found

    for op in (IRP, ORP, IRP | UNDO_SIDE):
        assert of(op, FB_HEAD | FB_FIRST) == (99, 0x57, 0x58)
        assert of(op, FB_HEAD | FB_LAST) == (99, 0, 0)
        assert of(op, FB_HEAD, 44) == (0, 0, 0)
    assert of(DRP, 0) == (0, 0, 0)


def test_a_row_that_has_moved_names_its_head() -> None:
    """redo-format §5.4: hrid of a piece with F and not H, in the IRP of either side."""
    moved, deleted = kdo_of("<", IRP, FB_FIRST | FB_LAST), kdo_of("<", DRP, 0)
    for op, images, head in (
        (IRP, (moved, deleted), (0x55, 0x56)),
        (DRP, (deleted, moved), (0x55, 0x56)),
        (ORP, (moved, moved), (1, 2)),
    ):
        rows = empty_pieces(1)
        clear(rows)
        rows.op[0], rows.row_flags[0] = op, FB_FIRST | FB_LAST
        rows.head_bdba[0], rows.head_slot[0] = 1, 2
        data = np.frombuffer(images[0] + images[1], np.uint8)
        interpreted(pieces_module._links)(data, 0, 48, 48, 48, False, rows, 0)
        assert (rows.head_bdba[0], rows.head_slot[0]) == head
        widths = [0 if image is deleted else 99 for image in images]
        assert [rows.width[0], rows.old_width[0]] == widths


def test_a_piece_begins_with_nothing_but_its_operation() -> None:
    rows = empty_pieces(2)
    for column in columns_of(rows).values():
        column[:] = 77
    interpreted(pieces_module.open_piece)(rows, 1, IRP)
    assert rows[1].tolist() == (IRP, *[0] * (len(columns_of(rows)) - 1))
    assert set(rows[0].tolist()) == {77}
