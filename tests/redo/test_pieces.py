"""One row piece from a pair: its place, its flags, and the values of both sides."""

from __future__ import annotations

import struct
from decimal import Decimal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

from olr_pg.errors import Code
from olr_pg.kernels.compile import interpreted
from olr_pg.redo import pieces as pieces_module
from olr_pg.redo.batch import EventKind, Packed, Role, empty_entries, empty_pieces
from olr_pg.redo.format.opcodes import CFA, CMP, DRP, IRP, LKR, LMN, ORP, QMI, URP
from olr_pg.redo.format.row_fields import FB_FIRST, FB_HEAD, FB_LAST, FB_WHOLE
from olr_pg.redo.pieces import REASONS, ChangeStatus, error_code
from olr_pg.redo.row_vectors import ENTRIES, FULL, PACKED, PIECES, STATE_SIZE
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
from tests.redo.hand_made_fields import at_slot, changed, forward, header_of, image, kdo, laid, many

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
    [(17, 2, False, 2), (17, 2, True, 2), (16, 2, True, 2), (16, 2, False, -1), (17, 1, False, -1)],
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


class Taken(NamedTuple):
    """What `single_piece` or `multi_row_pieces` made of fields.

    Attributes:
        rows: the pieces.
        values: (role, part, segment column, bytes) of each.
        is_full: it asked for more room.
    """

    status: int
    rows: list[Any]
    values: list[tuple[int, int, int, bytes | None]]
    is_full: bool


def state_of(
    data: bytearray, first: int, entries: Any, rows: Any, state: Any, status: int
) -> Taken:
    return Taken(
        status,
        [rows[i] for i in range(first, state[PIECES])],
        [
            (int(one.role), int(one.part), int(one.segcol),
             None if one.length < 0 else bytes(data[one.offset : one.offset + one.length]))
            for one in entries[first : state[ENTRIES]]
        ],
        bool(state[FULL]),
    )  # fmt: skip


def pair_of(
    op: int, undo: list[bytes], redo: list[bytes], order: str = "<", clustered: int = 0
) -> Taken:
    """A pair; its fields from KTB redo on, and in the undo ktudb and ktub ahead of it."""
    data = bytearray(b"\xee" * 4)
    undo_places = laid(data, [bytes(20), bytes(24), *undo])
    redo_places = laid(data, redo)
    rows, entries, state = empty_pieces(3), empty_entries(20), np.zeros(STATE_SIZE, np.int64)
    clear(rows)
    clear(entries)
    rows.head_bdba[:] = rows.packed[:] = 77  # what stood there before
    state[PIECES] = state[ENTRIES] = state[PACKED] = 1  # the last left by the piece before
    status = interpreted(pieces_module.single_piece)(
        np.frombuffer(data, np.uint8), order == ">", op, clustered, *undo_places, len(undo) + 2,
        *redo_places, len(redo), rows, entries, state,
    )  # fmt: skip
    return state_of(data, 1, entries, rows, state, status)


KTB = b"\xee" * 8
OLD, NEW = Role.BEFORE, Role.AFTER
OLD_LOGGED, NEW_LOGGED = Role.BEFORE_SUPPLEMENTAL, Role.AFTER_SUPPLEMENTAL
FIRST_LAST = 0x0C
INSERT, UPDATE, DELETE, INTERNAL, LOCK = 2, 1, 4, 8, 0x10
MOVES = 0x80
KINDS = {IRP: INSERT, DRP: DELETE}
"""The statement of a change of one record, where it is no UPDATE."""


@pytest.mark.parametrize("numbers", [(2, 65_533), (65_533, 2), (40_000, 40_001)])
def test_impossible_numbers_of_columns_are_taken_modulo_65536(numbers: tuple[int, int]) -> None:
    """As compiled kernels take them; of interpreted ones NumPy would refuse them."""
    listed = struct.pack("<HH", *numbers)
    undo = [KTB, changed("<", URP | UNDO_SIDE, 0x2C, 6, 2), listed, b"o", b"p"]
    redo = [KTB, changed("<", URP, 0x2C, 6, 2), listed, b"n", b"m"]
    found = pair_of(URP, undo, redo)
    assert found.status == ChangeStatus.OK
    wrapped = [(number + 1 + 0x8000) % 0x10000 - 0x8000 for number in numbers]
    assert [value[2] for value in found.values] == wrapped * 2


@pytest.mark.parametrize("order", ["<", ">"])
def test_the_columns_of_a_pair_are_numbered_by_its_header_or_from_the_first(order: str) -> None:
    """redo-format §5.7; without a header the cluster's key comes ahead."""
    two, three = struct.pack(order + "HH", 2, 4), struct.pack(order + "HH", 1, 2)
    insert = (
        [KTB, at_slot(order, DRP | UNDO_SIDE, 6)],
        [KTB, image(order, IRP, 0x2C, 2, 6), b"n", b"m"],
    )
    delete = (
        [KTB, image(order, IRP | UNDO_SIDE, 0x2C, 2, 6), b"o", b"p"],
        [KTB, at_slot(order, DRP, 6)],
    )
    update = (
        [KTB, changed(order, URP | UNDO_SIDE, 0x2C, 6, 2), two, b"o", b"p"],
        [KTB, changed(order, URP, 0x2C, 6, 2), three, b"n", b"m"],
    )
    overwrite = (
        [KTB, image(order, ORP | UNDO_SIDE, 0x2C, 1, 6), b"o"],
        [KTB, image(order, ORP, 0x2C, 1, 6), b"n"],
    )
    old, new = [(OLD, 0, 1, b"o"), (OLD, 0, 2, b"p")], [(NEW, 0, 1, b"n"), (NEW, 0, 2, b"m")]
    # The numbers of an update are 2, 4 and 1, 2 from 0.
    update_old, update_new = (
        [(OLD, 0, 3, b"o"), (OLD, 0, 5, b"p")],
        [(NEW, 0, 2, b"n"), (NEW, 0, 3, b"m")],
    )
    for op, pair, values in (
        (IRP, insert, new),
        (DRP, delete, old),
        (URP, update, update_old + update_new),
        (ORP, overwrite, [old[0], new[0]]),
    ):
        found = pair_of(op, *pair, order)
        assert (found.status, found.values) == (ChangeStatus.OK, values)
        (piece,) = found.rows
        assert (piece.op, piece.bdba, piece.slot, piece.entry_count) == (op, BLOCK, 6, len(values))
        assert (piece.head_bdba, piece.head_slot, piece.packed) == (BLOCK, 6, 0)
        assert (piece.row_flags, piece.old_flags) == (0x2C, 0 if op == IRP else 0x2C)
        assert piece.supplemental == 0
        for key in (1, 3):
            moved = [(role, part, column + key, value) for role, part, column, value in values]
            assert pair_of(op, *pair, order, key).values == moved
        # The first column of the undo is `before`, that of the redo `after`.
        kind = KINDS.get(op, UPDATE)
        told = header_of(order, kind, FIRST_LAST, before=20, after=40)
        found = pair_of(op, [*pair[0], told], pair[1], order, 3)
        others = {INSERT, UPDATE, DELETE} - {kind}
        for other in others:
            wrong = header_of(order, other, FIRST_LAST, before=20, after=40)
            contradicts = pair_of(op, [*pair[0], wrong], pair[1], order, 3)
            assert (contradicts.status, contradicts.rows) == (ChangeStatus.CONTRADICTION, [])
        begin = {OLD: values[0][2] if values[0][0] == OLD else 0,
                 NEW: next((value[2] for value in values if value[0] == NEW), 0)}  # fmt: skip
        base = {OLD: 20, NEW: 40}
        assert found.values == [
            (role, part, base[Role(role)] + column - begin[Role(role)], value)
            for role, part, column, value in values
        ]
        (piece,) = found.rows
        assert (piece.supplemental, piece.sup_type, piece.sup_flags) == (1, kind, FIRST_LAST)
        assert (piece.head_bdba, piece.head_slot, piece.bdba) == (0x77, 8, BLOCK)
        # 1 is a number like any other, and 0 is none.
        told = header_of(order, kind, FIRST_LAST, before=1, after=1, size=20)
        found = pair_of(op, [*pair[0], told], pair[1], order, 3)
        assert {value[2] for value in found.values} <= {1, 2, 3}
        assert (found.rows[0].head_bdba, found.rows[0].head_slot) == (BLOCK, 6)
        told = header_of(order, kind, FIRST_LAST)
        assert pair_of(op, [*pair[0], told], pair[1], order).values == values


def test_links_and_moved_rows() -> None:
    for size in (26, 32):
        undo, redo = forward("<", CFA | UNDO_SIDE, 6, 0x61), forward("<", CFA, 6, 0x63)
        (piece,) = pair_of(CFA, [KTB, undo[:size]], [KTB, redo[:size]]).rows
        assert (piece.next_bdba, piece.next_slot, piece.slot) == (0x63, 0x64, 6)
        assert (piece.old_next_bdba, piece.old_next_slot) == (0x61, 0x62)
        assert (piece.row_flags, piece.old_flags, piece.width, piece.old_width) == (0, 0, 0, 0)
        undo, redo = changed("<", URP | UNDO_SIDE, 0x28, 6, 0, 8), changed("<", URP, 0x28, 6, 0, 9)
        (piece,) = pair_of(URP, [KTB, undo[:size]], [KTB, redo[:size]]).rows
        assert (piece.old_width, piece.width, piece.row_flags) == (8, 9, 0x28)
        assert (piece.next_bdba, piece.next_slot) == (piece.old_next_bdba, piece.old_next_slot)
        assert (piece.next_bdba, piece.next_slot) == (0, 0)
    undo, redo = image("<", ORP | UNDO_SIDE, 0x20, 0, 6), image("<", ORP, 0x20, 0, 6)
    (piece,) = pair_of(ORP, [KTB, undo[:45]], [KTB, redo[:45]]).rows
    assert (piece.next_bdba, piece.old_next_slot) == (0x53, 0x54)
    undo, redo = kdo("<", LMN | UNDO_SIDE, b""), kdo("<", LMN, b"")
    (piece,) = pair_of(LMN, [KTB, undo, header_of("<", UPDATE, FIRST_LAST)], [KTB, redo]).rows
    assert (piece.slot, piece.row_flags, piece.old_flags) == (0, 0, 0)
    sides = [KTB, at_slot("<", DRP | UNDO_SIDE, 6)], [KTB, image("<", IRP, 0x0C, 1, 6), b"n"]
    (piece,) = pair_of(IRP, *sides).rows
    assert (piece.head_bdba, piece.head_slot, piece.width, piece.old_width) == (0x51, 0x52, 1, 0)


def test_a_piece_that_carries_no_row() -> None:
    (order, lock) = "<", at_slot("<", LKR, 6)
    locked = [KTB, at_slot("<", LKR | UNDO_SIDE, 6)]
    update = [KTB, changed("<", URP | UNDO_SIDE, 0x2C, 6), b"\0\0", b"o"]
    redo = [KTB, changed("<", URP, 0x2C, 6), b"\0\0", b"n"]
    insert = [KTB, image("<", IRP, 0x2C, 1, 6), b"n"]
    delete = [KTB, image("<", IRP | UNDO_SIDE, 0x2C, 1, 6), b"o"]
    none = Taken(pieces_module.NO_ROW, [], [], False)
    contradicts = Taken(ChangeStatus.CONTRADICTION, [], [], False)
    # A lock without supplemental data, or of SELECT … FOR UPDATE (redo-format §5.6).
    assert pair_of(LKR, locked, [KTB, lock]) == none
    assert pair_of(LKR, [*locked, header_of(order, LOCK, FIRST_LAST)], [KTB, lock]) == none
    found = pair_of(LKR, [*locked, header_of(order, UPDATE, 0x08)], [KTB, lock])
    assert (found.status, len(found.rows), found.values) == (ChangeStatus.OK, 1, [])
    # A cluster's key, by either side's flag or by supplemental data (redo-format §4.3, §5.3).
    internal = [*update, header_of(order, INTERNAL, FIRST_LAST)]
    assert pair_of(URP, internal, redo, clustered=1) == none
    for sides in (
        (update, [KTB, changed("<", URP, 0xAC, 6), b"\0\0", b"n"]),
        ([KTB, changed("<", URP | UNDO_SIDE, 0xAC, 6), b"\0\0", b"o"], redo),
    ):
        assert pair_of(URP, *sides, clustered=1) == none
        # In a table of no cluster there is none: the flag was misread, or the header.
        assert pair_of(URP, *sides) == contradicts
    for kind in (INTERNAL, LOCK):
        told = [*update, header_of(order, kind, FIRST_LAST)]
        assert pair_of(URP, told, redo) == contradicts
    assert pair_of(URP, [*update, header_of(order, LOCK, FIRST_LAST)], redo, clustered=1) == (
        contradicts
    )
    # A row that moves counts only as the insert and the delete that it is, as without a header.
    moves = header_of(order, UPDATE, FIRST_LAST | MOVES, before=5, after=5)
    assert pair_of(URP, [*update, moves], redo) == contradicts
    there = [KTB, forward("<", CFA, 6, 0x63)]
    assert pair_of(CFA, [KTB, forward("<", CFA | UNDO_SIDE, 6, 0x61), moves], there) == none
    for op, undo, new, values in (
        (IRP, [KTB, at_slot("<", DRP | UNDO_SIDE, 6), moves], insert, [(NEW, 0, 1, b"n")]),
        (DRP, [*delete, moves], [KTB, at_slot("<", DRP, 6)], [(OLD, 0, 1, b"o")]),
    ):
        found = pair_of(op, undo, new)
        assert (found.status, found.values) == (ChangeStatus.OK, values)
        assert (found.rows[0].supplemental, found.rows[0].head_bdba) == (0, BLOCK)


def test_supplemental_values_of_a_pair() -> None:
    update = [KTB, changed("<", URP | UNDO_SIDE, 0x2C, 6), b"\0\0", b"o"]
    redo = [KTB, changed("<", URP, 0x2C, 6), b"\0\0", b"n"]
    logged = [struct.pack("<H", 7), struct.pack("<H", 3), b"key"]
    told = header_of("<", UPDATE, FIRST_LAST, 1, 4, 4)
    both = OLD_LOGGED | NEW_LOGGED
    values = [(OLD, 0, 4, b"o"), (NEW, 0, 4, b"n"), (both, 0, 7, b"key")]
    found = pair_of(URP, [*update, told, *logged], redo)
    assert (found.status, found.values, found.rows[0].entry_count) == (ChangeStatus.OK, values, 3)
    for fields in ([told], [told, *logged[:2]], [told, *logged[:2], b"ke"]):
        found = pair_of(URP, [*update, *fields], redo)
        assert (found.status, found.rows) == (ChangeStatus.SUPPLEMENTAL, [])
    # Which columns really changed: how many there are, and their bits, at the end.
    bitmap = [struct.pack("<H", 9), b"\x11\x01"]
    told = header_of("<", UPDATE, FIRST_LAST, 1, 4, 4, opt=0x20)
    for fields in (bitmap, [struct.pack("<H", 8), b"\x11"]):
        (piece,) = pair_of(URP, [*update, told, *logged, *fields], redo).rows
        assert (piece.changed_length, piece.entry_count) == (len(fields[1]), 3)
    for fields in ([*logged, bitmap[0]], [*logged, b"\x09", b"\x11\x01"], [*logged]):
        assert pair_of(URP, [*update, told, *fields], redo).rows[0].changed_length == 0
    told = header_of("<", UPDATE, FIRST_LAST, 1, 4, 4)
    assert pair_of(URP, [*update, told, *logged, *bitmap], redo).rows[0].changed_length == 0


@pytest.mark.parametrize("tabn", [0, 1])
def test_compressed_images_are_told_by_side(tabn: int) -> None:
    """redo-format §5.4: a first field of tl bytes; of one column not in table 0."""
    packed = b"12345"
    old = [KTB, image("<", ORP | UNDO_SIDE, 0x2C, 1, 6, 5, tabn), packed]
    new = [KTB, image("<", ORP, 0x2C, 1, 6, 5, tabn), packed]
    plain_old = [KTB, image("<", ORP | UNDO_SIDE, 0x2C, 1, 6), packed]
    plain_new = [KTB, image("<", ORP, 0x2C, 1, 6), packed]
    before, after = (OLD, 0, 1, packed), (NEW, 0, 1, packed)
    for undo, redo, mark, values in (
        (old, plain_new, Packed.OLD, [after]),
        (plain_old, new, Packed.NEW, [before]),
        (old, new, Packed.OLD | Packed.NEW, []),
    ):
        found = pair_of(ORP, undo, redo)
        assert found.rows[0].packed == (mark if tabn else 0)
        assert found.values == (values if tabn else [before, after])


def test_a_field_that_is_shorter_than_its_layout_or_missing() -> None:
    """The sizes of redo-format §5.2; of an operation that nothing knows there is no layout."""
    least = {IRP: 45, ORP: 45, DRP: 18, LKR: 18, URP: 26, CFA: 26, LMN: 16, CMP: 16}
    undone_by = {IRP: DRP, DRP: IRP}
    for op, size in least.items():
        back = undone_by.get(op, op)
        rest = bytes([FB_WHOLE * (op == IRP)]) + bytes(39)
        old, new = kdo("<", back, bytes(40)), kdo("<", op, rest)
        told = header_of("<", KINDS.get(op, UPDATE), FIRST_LAST)
        undo, redo = [KTB, old[: least[back]], b"", told], [KTB, new[:size]]
        assert pair_of(op, undo, redo).status == ChangeStatus.OK, op
        for sides in (
            ([KTB, old[: least[back] - 1], b"", told], redo),
            (undo, [KTB, new[: size - 1]]),
            ([KTB], redo),
            (undo, [KTB]),
            (undo, []),
        ):
            found = pair_of(op, *sides)
            assert (found.status, found.rows) == (ChangeStatus.SHORT_FIELD, []), op
    other = kdo("<", 14, bytes(40))
    assert pair_of(14, [KTB, other], [KTB, other]).status == ChangeStatus.SHORT_FIELD
    # Values that have no field.
    empty = [KTB, image("<", ORP | UNDO_SIDE, 0x2C, 0, 6)]
    assert pair_of(ORP, empty, [KTB, image("<", ORP, 0x2C, 1, 6)]).status == ChangeStatus.COLUMNS
    empty = [KTB, image("<", ORP, 0x2C, 0, 6)]
    lacks = [KTB, image("<", ORP | UNDO_SIDE, 0x2C, 1, 6)]
    assert pair_of(ORP, lacks, empty).status == ChangeStatus.COLUMNS


def rows_of(
    fields: list[bytes], order: str = "<", row_scn: int = 8, at: int = 2, room: int = 4
) -> Taken:
    """A QMI: its fields, of which `at` is KDO."""
    data = bytearray(b"\xee" * 4)
    places = laid(data, fields)
    rows, entries, state = empty_pieces(room), empty_entries(9), np.zeros(STATE_SIZE, np.int64)
    clear(rows)
    clear(entries)
    state[PIECES] = state[ENTRIES] = 1
    status = interpreted(pieces_module.multi_row_pieces)(
        np.frombuffer(data, np.uint8), order == ">", QMI, row_scn, *places, len(fields), at, NEW,
        rows, entries, state,
    )  # fmt: skip
    return state_of(data, 1, entries, rows, state, status)


@pytest.mark.parametrize("order", ["<", ">"])
def test_the_rows_of_an_array(order: str) -> None:
    """redo-format §5.9: fb, lb, cc, maybe an SCN, then each column behind its length."""
    one, two = b"\x2c\1\2\2ab\xff", b"\x2c\1\1\xfe" + struct.pack(order + "H", 3) + b"xyz"
    sizes = struct.pack(order + "HH", len(one), len(two))
    fields = [KTB, many(order, QMI, (0x1234, 9)), sizes, one + two]
    values = [(NEW, 0, 1, b"ab"), (NEW, 0, 2, None), (NEW, 0, 1, b"xyz")]
    found = rows_of(fields, order)
    assert (found.status, found.values, found.is_full) == (ChangeStatus.OK, values, False)
    assert [(row.op, row.row_flags, row.bdba, row.slot, row.entry_count) for row in found.rows] == [
        (QMI, 0x2C, BLOCK, 0x1234, 2),
        (QMI, 0x2C, BLOCK, 9, 1),
    ]
    assert [(row.head_bdba, row.head_slot) for row in found.rows] == [(BLOCK, 0x1234), (BLOCK, 9)]
    # The same in an undo record, whose KDO is its fourth field.
    assert rows_of([b"", b"", *fields], order, at=4).values == values
    for scn in (6, 8):
        long = [row[:3] + b"\xee" * scn + row[3:] for row in (one, two)]
        sizes = struct.pack(order + "HH", *map(len, long))
        parts = [KTB, many(order, QMI | 0x40, (3, 9)), sizes, b"".join(long)]
        assert rows_of(parts, order, scn).values == values
    for room, rows, told in ((3, 2, False), (2, 1, True), (1, 0, True)):
        found = rows_of(fields, order, room=room)
        assert (found.status, len(found.rows), found.is_full) == (ChangeStatus.OK, rows, told)


def test_the_rows_of_an_array_that_do_not_fit() -> None:
    row, empty = b"\x2c\1\1\2ab", b"\x2c\1\0"
    size = struct.pack("<H", 6)
    qmi = many("<", QMI, (3,))
    for fields, status, rows in (
        ([KTB], ChangeStatus.SHORT_FIELD, 0),
        ([KTB, qmi[:19], size, row], ChangeStatus.SHORT_FIELD, 0),
        ([KTB, qmi[:20], size, row], ChangeStatus.ROWS, 0),
        ([KTB, qmi[:21], size, row], ChangeStatus.ROWS, 0),
        ([KTB, many("<", QMI, (3, 4), 3), size * 3, row * 3], ChangeStatus.ROWS, 0),
        ([KTB, many("<", QMI, ())], ChangeStatus.ROWS, 0),
        ([KTB, qmi], ChangeStatus.ROWS, 0),
        ([KTB, qmi, size], ChangeStatus.ROWS, 0),
        ([KTB, qmi, size[:1], row], ChangeStatus.ROWS, 0),
        ([KTB, qmi, size, row], ChangeStatus.OK, 1),
        ([KTB, qmi, b"\3\0", empty], ChangeStatus.OK, 1),
        ([KTB, qmi, b"\2\0", empty], ChangeStatus.ROWS, 0),
        ([KTB, many("<", QMI | 0x40, (3,)), b"\x0b\0", empty + bytes(8)], ChangeStatus.OK, 1),
        ([KTB, many("<", QMI | 0x40, (3,)), b"\x0a\0", empty + bytes(8)], ChangeStatus.ROWS, 0),
        ([KTB, qmi, size, row[:-1]], ChangeStatus.ROWS, 0),
        ([KTB, many("<", QMI, (3, 4)), size * 2, row * 2], ChangeStatus.OK, 2),
        ([KTB, many("<", QMI, (3, 4)), size, row * 2], ChangeStatus.ROWS, 0),
        ([KTB, many("<", QMI, (3, 4)), size * 2, row + row[:-1]], ChangeStatus.ROWS, 1),
        # Not plain: bits of flags beside H, F and L, or one of these missing (redo-format §5.4).
        *(
            ([KTB, qmi, size, bytes([flags]) + row[1:]], ChangeStatus.OPERATION, 0)
            for flags in (0x3C, 0x0C, 0x28, 0x24, 0x2D, 0x2E, 0x6C, 0xAC, 0)
        ),
        # A reference to a symbol, as a row of a compressed block has: length 0 is no value's.
        ([KTB, qmi, b"\4\0", b"\x2c\1\1\0"], ChangeStatus.ROWS, 0),
        # Of the table behind the dictionary, or packed, by KDO alone.
        *(
            ([KTB, qmi[:at] + bytes([value]) + qmi[at + 1 :], size, row], ChangeStatus.ROWS, 0)
            for at, value in ((16, 1), (11, 0x08), (11, 0x09))
        ),
        # Of a compressed block: the columns do not take all of the row.
        ([KTB, qmi, b"\7\0", row + b"\0"], ChangeStatus.ROWS, 0),
        ([KTB, qmi, b"\5\0", row], ChangeStatus.ROWS, 0),
    ):
        found = rows_of(fields)
        assert (found.status, len(found.rows)) == (status, rows), fields
