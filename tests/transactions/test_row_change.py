"""Rows stored compressed: their values are in the supplemental data, or nowhere.

Facts: redo-format §5.4.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import pytest

from olr_pg.dictionary.model import Column, KeyKind, Table
from olr_pg.kernels.compile import interpreted
from olr_pg.redo.batch import Packed, Role
from olr_pg.redo.format.opcodes import DRP, IRP, LKR, LMN, QMD, QMI, URP
from olr_pg.redo.iot import NO_ROWID
from olr_pg.simulator.fields.row_fields import (
    FB_FIRST,
    FB_HEAD,
    FB_LAST,
    FB_ROW,
    GROUP_FIRST,
    GROUP_LAST,
    OP_DRP,
    OP_IRP,
    OP_ORP,
    SUPPLEMENTAL_DELETE,
    SUPPLEMENTAL_INSERT,
    SUPPLEMENTAL_UPDATE,
    UNDO_SIDE,
    KdoBase,
    RowAddress,
    RowPiece,
    Supplemental,
    Value,
    column_fields,
    delete_kdo,
    insert_kdo,
)
from olr_pg.transactions import row_change, row_job
from olr_pg.transactions.finished_columns import DmlKind
from tests.lobs.lob_decoding import decode, outcome
from tests.lobs.lob_redo import BLOCK, TABLE_OBJ, LobRedo, snapshot
from tests.transactions.hand_made_pieces import Entry, Piece, job_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from olr_pg.dictionary.model import Snapshot
    from olr_pg.transactions.row_job import RowJob

KEY: Final = b"\xc1\x02"
ROW: Final[tuple[Value, ...]] = (KEY, b"a", b"b")
BASE: Final = KdoBase(BLOCK, BLOCK, 100, 1)
HEAD: Final = 0
ELSEWHERE: Final = 5
"""Slots of the row, and of where it moves to."""
COUNT: Final = 18
TL: Final = 40
TABLE_NUMBER: Final = 44
"""Where a KDO has the number of columns, the length of the row and its table in the block."""
ALONE: Final = GROUP_FIRST | GROUP_LAST


def documents() -> Snapshot:
    """``APP.DOCS (ID NUMBER, A RAW, B RAW)``."""
    raws = [Column(name, at, at, at, 23, 100) for at, name in enumerate("AB", 2)]
    columns = (Column("ID", 1, 1, 1, 2, 22, nullable=False), *raws)
    return snapshot(
        Table("APP", "DOCS", TABLE_OBJ, TABLE_OBJ, columns, key_kind=KeyKind.PRIMARY, key=(1,))
    )


def plain(redo: LobRedo, op: int, slot: int, fb: int = FB_ROW) -> list[bytes]:
    """KDO and columns of a row image as it is."""
    return [insert_kdo(redo.redo, BASE, op, RowPiece(fb, ROW), slot, 1), *column_fields(ROW)]


def compressed(redo: LobRedo, op: int, slot: int, fb: int = FB_ROW) -> list[bytes]:
    """The same compressed: one field as long as the row."""
    row = bytes((fb, 1, len(ROW))) + b"\xcfrefers to the block"
    kdo = insert_kdo(redo.redo, BASE, op, RowPiece(fb, ROW), slot, 1)
    return [kdo[:TL] + redo.redo.pack("H", len(row)) + kdo[TL + 2 :], row]


def logged(redo: LobRedo, kind: int, group: int, columns: int, after: int = 0) -> list[bytes]:
    """Supplemental data with the first columns of the row."""
    numbered = tuple(enumerate(ROW[:columns], 1))
    before = 0 if kind == SUPPLEMENTAL_INSERT else 1
    header = Supplemental(kind, group, before, after, numbered, RowAddress(BLOCK, HEAD))
    return header.fields(redo.redo)


def as_one_entry(image: list[bytes]) -> list[bytes]:
    """A compressed row that is nothing but an entry of the block's dictionary, for all columns."""
    kdo, row = bytearray(image[0]), bytearray(image[1])
    kdo[COUNT], kdo[TABLE_NUMBER], row[2] = 1, 1, 1
    return [bytes(kdo), bytes(row)]


def insert(redo: LobRedo, columns: int) -> None:
    """INSERT of a compressed row with so many columns in the supplemental data."""
    undo = [delete_kdo(redo.redo, BASE, OP_DRP | UNDO_SIDE, HEAD)]
    undo += logged(redo, SUPPLEMENTAL_INSERT, ALONE, columns)
    redo.pair(undo, compressed(redo, OP_IRP, HEAD), OP_IRP)


def delete(redo: LobRedo, columns: int) -> None:
    """DELETE of such a row."""
    undo = compressed(redo, OP_IRP | UNDO_SIDE, HEAD)
    undo += logged(redo, SUPPLEMENTAL_DELETE, ALONE, columns)
    redo.pair(undo, [delete_kdo(redo.redo, BASE, OP_DRP, HEAD)], OP_DRP)


def overwrite(redo: LobRedo, columns: int) -> None:
    """UPDATE that leaves a compressed row where one was."""
    undo = compressed(redo, OP_ORP | UNDO_SIDE, HEAD)
    undo += logged(redo, SUPPLEMENTAL_UPDATE, ALONE, columns, after=1)
    redo.pair(undo, compressed(redo, OP_ORP, HEAD), OP_ORP)


def migrate(redo: LobRedo, columns: int) -> None:
    """UPDATE that moves a row to where it is stored compressed."""
    undo = [delete_kdo(redo.redo, BASE, OP_DRP | UNDO_SIDE, ELSEWHERE)]
    undo += logged(redo, SUPPLEMENTAL_UPDATE, GROUP_FIRST, 0, after=1)
    redo.pair(undo, compressed(redo, OP_IRP, ELSEWHERE, FB_FIRST | FB_LAST), OP_IRP)
    stub = RowPiece(FB_HEAD, (), nrid=RowAddress(BLOCK, ELSEWHERE))
    undo = plain(redo, OP_ORP | UNDO_SIDE, HEAD)
    undo += logged(redo, SUPPLEMENTAL_UPDATE, GROUP_LAST, columns)
    redo.pair(undo, [insert_kdo(redo.redo, BASE, OP_ORP, stub, HEAD, 1)], OP_ORP)


def test_whole_rows_are_taken_from_the_supplemental_data(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    insert(redo, len(ROW))
    delete(redo, len(ROW))
    redo.end()
    row = {"ID": 1, "A": "61", "B": "62"}
    inserted, deleted = decode(redo, tmp_path, documents()).changes
    assert (inserted["after"], deleted["before"]) == (row, row)


@pytest.mark.parametrize("columns", [0, 1, 2])
@pytest.mark.parametrize("change", [insert, delete])
def test_a_row_of_which_columns_are_missing_is_a_fault(
    tmp_path: Path, change: Callable[[LobRedo, int], None], columns: int
) -> None:
    redo = LobRedo()
    redo.begin()
    change(redo, columns)
    redo.end()
    assert outcome(redo, tmp_path, documents()) == (2015, 0)


@pytest.mark.parametrize("columns", [0, 1, 3])
@pytest.mark.parametrize("change", [overwrite, migrate])
def test_an_update_to_a_compressed_row_is_a_fault(
    tmp_path: Path, change: Callable[[LobRedo, int], None], columns: int
) -> None:
    redo = LobRedo()
    redo.begin()
    change(redo, columns)
    redo.end()
    assert outcome(redo, tmp_path, documents()) == (2015, 0)


def test_a_row_that_is_one_entry_of_the_dictionary(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    undo = [delete_kdo(redo.redo, BASE, OP_DRP | UNDO_SIDE, HEAD)]
    undo += logged(redo, SUPPLEMENTAL_INSERT, ALONE, len(ROW))
    redo.pair(undo, as_one_entry(compressed(redo, OP_IRP, HEAD)), OP_IRP)
    undo = as_one_entry(compressed(redo, OP_IRP | UNDO_SIDE, HEAD))
    undo += logged(redo, SUPPLEMENTAL_DELETE, ALONE, len(ROW))
    redo.pair(undo, [delete_kdo(redo.redo, BASE, OP_DRP, HEAD)], OP_DRP)
    redo.end()
    row = {"ID": 1, "A": "61", "B": "62"}
    inserted, deleted = decode(redo, tmp_path, documents()).changes
    assert (inserted["after"], deleted["before"]) == (row, row)


@pytest.mark.parametrize(
    ("operations", "kind"),
    [
        ((IRP,), DmlKind.INSERT),
        ((IRP, IRP), DmlKind.INSERT),
        ((LKR, DRP), DmlKind.DELETE),
        ((DRP, IRP), DmlKind.UPDATE),
        ((IRP, DRP), DmlKind.UPDATE),
        ((IRP, URP), DmlKind.UPDATE),
        ((LMN,), DmlKind.UPDATE),
        ((IRP, LMN), DmlKind.INSERT),
        ((QMI,), DmlKind.INSERT),
        ((QMD,), DmlKind.DELETE),
    ],
)
def test_what_the_pieces_of_a_row_do_together(operations: tuple[int, ...], kind: DmlKind) -> None:
    """Without supplemental data, which says it otherwise."""
    count = len(operations)
    pieces = SimpleNamespace(op=operations, supplemental=[0] * count, sup_type=[0] * count)
    links = SimpleNamespace(next_piece=[*range(1, count), -1])
    job: Any = SimpleNamespace(batch=SimpleNamespace(pieces=pieces), links=links)
    assert interpreted(row_change._kind_of)(job, 0) == kind
    logged = {SUPPLEMENTAL_INSERT: DmlKind.INSERT, SUPPLEMENTAL_UPDATE: DmlKind.UPDATE,
              SUPPLEMENTAL_DELETE: DmlKind.DELETE}  # fmt: skip
    if operations[0] in (QMI, QMD):
        return
    pieces.supplemental[0] = 1
    for sup_type, told in logged.items():
        pieces.sup_type[0] = sup_type
        assert interpreted(row_change._kind_of)(job, 0) == told


# --- single kernels, on pieces made by hand ---

emit = interpreted(row_change.emit_change)
NEW_PACKED, OLD_PACKED = Packed.NEW, Packed.OLD
VALUE = Entry(1, b"one")


def group_of(*pieces: Piece) -> RowJob:
    """An assembly in which all of these pieces are one group; every number is another one."""
    job = job_of(*pieces)
    events, rows, links = job.batch.events, job.batch.pieces, job.links
    for at in range(len(pieces)):
        events.scn[at], events.time[at], events.sequence[at] = 1000 + at, 2000 + at, 3000 + at
        events.block[at], events.offset[at], events.dataobj[at] = 40 + at, 50 + at, 60 + at
        rows.bdba[at], rows.slot[at] = 100 + at, 10 + at
        links.bdba[at], links.slot[at], links.owner[at] = 200 + at, 20 + at, at
        links.next_piece[at] = at + 1 if at + 1 < len(pieces) else -1
    return job


def placed(job: RowJob) -> tuple[int, ...]:
    """(kind, bdba, slot, SCN, time, sequence, block, offset, data object) of the one change."""
    assert emit(job, 0) == row_job.OK
    assert job.counts[row_job.CHANGES] == 1
    change = job.changes[0]
    assert (change.table, change.stored_first, change.stored_count) == (0, -1, 0)
    return tuple(
        int(change[name])
        for name in (
            "kind",
            "bdba",
            "slot",
            "scn",
            "time",
            "sequence",
            "block",
            "offset",
            "dataobj",
        )
    )


def test_the_rowid_of_an_insert_is_that_of_its_first_piece() -> None:
    """redo-format §7.7: the IRP piece with F; the last piece is logged first (§7.5)."""
    job = group_of(Piece([Entry(2, b"two")]), Piece([VALUE]), Piece([Entry(3, b"three")]))
    job.batch.pieces.row_flags[:] = FB_LAST, FB_FIRST | FB_HEAD, 0
    assert placed(job) == (DmlKind.INSERT, 101, 11, 1000, 2000, 3000, 40, 50, 60)
    job = group_of(Piece([Entry(2, b"two")]), Piece([VALUE], op=LMN))
    job.batch.pieces.row_flags[:] = 0, FB_FIRST
    assert placed(job)[1:3] == (100, 10)


def test_the_rowid_of_another_change_is_that_of_its_rows_head() -> None:
    """redo-format §7.7: the first pair's; where the change is, a lock of the head is not."""
    before = Entry(1, b"old", Role.BEFORE)
    job = group_of(Piece([before], op=LKR), Piece([VALUE, before], op=URP))
    assert placed(job) == (DmlKind.UPDATE, 200, 20, 1001, 2001, 3001, 41, 51, 61)
    job = group_of(Piece([before], op=DRP), Piece([], op=LMN))
    assert placed(job) == (DmlKind.DELETE, 200, 20, 1000, 2000, 3000, 40, 50, 60)


@pytest.mark.parametrize("group", [None, 0])
def test_a_row_of_an_index_has_no_rowid(group: int | None) -> None:
    """`redo.iot` says so in the flags of a piece that has no supplemental data."""
    job = group_of(Piece([VALUE], group=group))
    job.batch.pieces.sup_flags[0] = NO_ROWID
    assert placed(job)[-1] == (0 if group is None else 60)


def stored(piece: Piece, *, shift: int = 0, as_stored: int = 1) -> tuple[int, int] | None:
    """Where the values of an insert are, if they stay where they are stored; behind another's."""
    job = group_of(Piece([VALUE]), piece)
    job.plan.as_stored[0], job.links.shift[1] = as_stored, shift
    job.counts[row_job.VALUES] = 7
    job.counts[row_job.CHANGES] = 1
    assert emit(job, 1) == row_job.OK
    assert job.counts[row_job.CHANGES] == 2
    assert job.entry_start[1] == 7
    change = job.changes[1]
    assert (change.kind, change.bdba, change.slot) == (DmlKind.INSERT, 101, 11)
    if change.stored_first < 0:
        assert (change.stored_count, job.counts[row_job.VALUES]) == (0, 7 + 3)
        return None
    assert job.counts[row_job.VALUES] == 7
    return int(change.stored_first), int(change.stored_count)


def test_a_plain_row_stays_where_it_is_stored() -> None:
    """As `DmlColumns.stored_first` says: the values of just the first delivered columns."""
    two = [VALUE, Entry(2, None)]
    assert stored(Piece(two)) == (1, 2)
    assert stored(Piece([*two, Entry(3, b"three")])) == (1, 3)
    assert stored(Piece(two, op=QMI)) == (1, 2)
    assert stored(Piece(two), as_stored=0) is None
    assert stored(Piece(two, op=QMI), as_stored=0) is None
    assert stored(Piece([VALUE]), shift=1) is None
    for other in (
        [Entry(2, b"two")],
        [VALUE, Entry(3, b"three")],
        [VALUE, Entry(2, b"two", Role.AFTER_SUPPLEMENTAL)],
        [VALUE, Entry(2, b"two", part=1)],
    ):
        assert stored(Piece(other)) is None


def test_a_row_of_more_columns_than_the_table_has_is_a_fault() -> None:
    job = group_of(Piece([Entry(at, b"x") for at in range(1, 5)]))
    job.plan.as_stored[0] = 1
    assert emit(job, 0) == row_job.UNKNOWN_COLUMN
    assert job.counts[row_job.CHANGES] == 0


def test_what_compressed_images_lack() -> None:
    """redo-format §5.4: values from the supplemental data, or nothing can be said of the row."""

    def lacks(kind: DmlKind, packed: int, width: int, entries: int, *, old_width: int = 0) -> bool:
        job = group_of(Piece([VALUE] * entries), Piece([]))
        pieces = job.batch.pieces
        pieces.packed[1], pieces.width[:], pieces.old_width[:] = packed, [width, 0], [0, old_width]
        return bool(interpreted(row_change._lacks_values)(job, 0, kind))

    insert, delete, update = DmlKind.INSERT, DmlKind.DELETE, DmlKind.UPDATE
    assert [lacks(insert, NEW_PACKED, 3, count) for count in (2, 3)] == [True, False]
    assert [lacks(insert, NEW_PACKED, 0, count) for count in (0, 1)] == [True, False]
    assert [lacks(delete, OLD_PACKED, 0, count, old_width=3) for count in (2, 3)] == [True, False]
    assert lacks(update, NEW_PACKED, 1, 3)
    assert [lacks(update, OLD_PACKED, 3, count) for count in (0, 1)] == [True, False]
    assert not any(lacks(kind, 0, 3, 0) for kind in DmlKind)


def test_an_update_that_sets_nothing_leaves_no_value() -> None:
    job = group_of(Piece([Entry(1, b"key", Role.BEFORE_SUPPLEMENTAL)], op=LMN))
    job.counts[row_job.VALUES] = 5
    assert emit(job, 0) == row_job.OK
    assert job.counts[[row_job.CHANGES, row_job.VALUES, row_job.WITHOUT_SET]].tolist() == [0, 5, 1]


def test_a_change_without_room_is_none() -> None:
    job = group_of(Piece([VALUE], op=URP))
    job.counts[row_job.CHANGES] = job.changes.size
    assert emit(job, 0) == row_job.CAPACITY
    job = job_of(Piece([VALUE], op=URP), room=0)
    job.links.owner[0] = 0
    assert emit(job, 0) == row_job.CAPACITY
    assert job.counts[row_job.CHANGES] == 0
