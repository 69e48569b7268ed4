"""Rows stored compressed: their values are in the supplemental data, or nowhere.

Facts: redo-format §5.4.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from olr_pg.dictionary.decoding_plan import build_row_plan
from olr_pg.dictionary.model import Column, KeyKind, Table
from olr_pg.kernels.compile import interpreted
from olr_pg.redo.batch import CutFlag, Packed, Role
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
from olr_pg.transactions.finished_columns import DmlColumns, DmlKind, Image
from olr_pg.transactions.row_change import (
    NOT_PLAIN,
    gather_piece,
    push_full_image,
    push_plain_insert,
    push_update,
)
from olr_pg.transactions.row_job import (
    AFTER,
    AFTER_SUPPLEMENTAL,
    CAPACITY,
    OK,
    PARTS,
    UNKNOWN_COLUMN,
    VALUES,
    RowJob,
)
from tests.lobs.lob_decoding import decode, outcome
from tests.lobs.lob_redo import BLOCK, TABLE_OBJ, LobRedo, snapshot
from tests.redo.chain import clear
from tests.transactions.hand_made_pieces import Entry, Piece, assembled_both_ways, batch_of, job_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from olr_pg.dictionary.model import Snapshot

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
TO_NEXT, FROM_PREVIOUS = CutFlag.TO_NEXT, CutFlag.FROM_PREVIOUS
BOTH: Final = Role.BEFORE_SUPPLEMENTAL | Role.AFTER_SUPPLEMENTAL


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
        [VALUE, Entry(2, b"tw", part=TO_NEXT), Entry(2, b"o", part=FROM_PREVIOUS)],
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


gather, full_image = interpreted(gather_piece), interpreted(push_full_image)
update, plain_insert = interpreted(push_update), interpreted(push_plain_insert)
BEFORE_LOGGED, AFTER_LOGGED = Role.BEFORE_SUPPLEMENTAL, Role.AFTER_SUPPLEMENTAL
STAMP = 1
Shown = tuple[int, int, bytes | None]


def written(job: RowJob) -> list[Shown]:
    """(image, column, bytes) of every value that was appended, with its further parts."""
    found: list[Shown] = []
    for value in job.values[: int(job.counts[VALUES])]:
        raw = None
        if value.length >= 0:
            raw = job.batch.data[value.offset :][: value.length].tobytes()
        part = -2 - int(value.next) if value.next < -1 else -1
        while part >= 0:
            offset, length, part = job.parts[:, part].tolist()
            raw = (raw or b"") + job.batch.data[offset:][:length].tobytes()
        found.append((int(value.image), int(value.column), raw))
    return found


def gathered(*pieces: Piece) -> RowJob:
    """A job whose pieces are gathered as one change."""
    job = job_of(*pieces)
    for piece in range(len(pieces)):
        assert gather(job, piece, 0, STAMP) == OK
        job.links.next_piece[piece] = piece + 1 if piece + 1 < len(pieces) else -1
    return job


def test_a_plain_insert_has_a_value_for_every_column() -> None:
    job = job_of(Piece([Entry(2, b"two")]))
    assert plain_insert(job, 0, 0) == OK
    assert written(job) == [
        (Image.AFTER, 0, None),
        (Image.AFTER, 1, b"two"),
        (Image.AFTER, 2, None),
    ]


@pytest.mark.parametrize(
    ("entry", "room", "status"),
    [
        (Entry(1, b"x", Role.BEFORE), 100, NOT_PLAIN),
        (Entry(1, b"x", part=CutFlag.TO_NEXT), 100, NOT_PLAIN),
        (Entry(4, b"x"), 100, UNKNOWN_COLUMN),
        (Entry(0, b"x"), 100, UNKNOWN_COLUMN),
        (Entry(1, b"x"), 2, CAPACITY),
    ],
)
def test_an_insert_that_is_not_plain_appends_nothing(entry: Entry, room: int, status: int) -> None:
    job = job_of(Piece([entry]), room=room)
    assert plain_insert(job, 0, 0) == status
    assert job.counts[VALUES] == 0


def test_the_supplemental_value_counts_where_nothing_else_was_logged() -> None:
    both = [Entry(1, b"logged"), Entry(1, b"beside", AFTER_LOGGED)]
    rest = [Entry(2, None), Entry(2, b"beside", AFTER_LOGGED), Entry(3, b"beside", AFTER_LOGGED)]
    job = gathered(Piece([*both, *rest]))
    assert full_image(job, int(Image.AFTER), AFTER, AFTER_SUPPLEMENTAL, 0, STAMP)
    assert [raw for _, _, raw in written(job)] == [b"logged", b"beside", b"beside"]


def test_values_of_another_change_are_not_seen() -> None:
    job = gathered(Piece([Entry(1, b"x")]))
    assert full_image(job, int(Image.AFTER), AFTER, AFTER_SUPPLEMENTAL, 0, STAMP + 1)
    assert [raw for _, _, raw in written(job)] == [None, None, None]


def test_the_newest_after_value_and_the_first_before_value_count() -> None:
    job = gathered(
        Piece([Entry(1, b"old", Role.BEFORE), Entry(1, b"between")], URP),
        Piece([Entry(1, b"between", Role.BEFORE), Entry(1, b"new")], URP),
    )
    assert update(job, 0, 0, STAMP) == (True, 1)
    assert written(job) == [(Image.BEFORE, 0, b"old"), (Image.AFTER, 0, b"new")]


def test_a_supplemental_null_gives_way_to_the_value_behind_it() -> None:
    job = gathered(
        Piece([Entry(2, None, BEFORE_LOGGED)], URP), Piece([Entry(2, b"key", BEFORE_LOGGED)], URP)
    )
    assert update(job, 0, 0, STAMP) == (True, 0)
    assert written(job) == [(Image.BEFORE, 1, b"key")]


def test_an_update_sets_what_its_bitmap_names() -> None:
    entries = [Entry(at, b"old", Role.BEFORE) for at in (1, 2, 3)]
    entries += [Entry(at, b"new") for at in (1, 2)]
    job = gathered(Piece(entries, URP, changed=b"\x06"))
    assert update(job, 0, 0, STAMP) == (True, 2)
    after = [(column, raw) for image, column, raw in written(job) if image == Image.AFTER]
    # Column 3 was there and is logged no more: it becomes NULL.
    assert after == [(1, b"new"), (2, None)]


def test_the_parts_of_a_value_follow_each_other_in_either_order() -> None:
    parts = [
        Entry(2, b"abc", part=CutFlag.TO_NEXT),
        Entry(2, b"de", part=CutFlag.FROM_PREVIOUS | CutFlag.TO_NEXT),
        Entry(2, b"f", part=CutFlag.FROM_PREVIOUS),
    ]
    for order in (parts, parts[::-1]):
        job = gathered(*(Piece([one]) for one in order))
        assert full_image(job, int(Image.AFTER), AFTER, AFTER_SUPPLEMENTAL, 0, STAMP)
        assert written(job)[1] == (Image.AFTER, 1, b"abcdef")
        assert job.counts[PARTS] == 2


@pytest.mark.parametrize("part", [TO_NEXT, FROM_PREVIOUS, TO_NEXT | FROM_PREVIOUS])
@pytest.mark.parametrize(
    ("op", "roles"), [(IRP, (Role.AFTER,)), (DRP, (Role.BEFORE,)), (URP, (Role.BEFORE,)),
                      (URP, (Role.AFTER,))]
)  # fmt: skip
def test_a_value_whose_other_parts_are_missing_is_never_delivered_too_short(
    op: int, roles: tuple[int, ...], part: int
) -> None:
    entries = [Entry(2, b"only a part", role, part) for role in roles]
    assert emit(group_of(Piece([VALUE, *entries], op=op)), 0) == row_job.INCOMPLETE


@pytest.mark.parametrize("part", [TO_NEXT, FROM_PREVIOUS])
def test_a_part_of_a_value_that_an_update_keeps_is_not_a_value(part: int) -> None:
    """A piece is written anew for its other columns; the rest of the value is in another piece."""
    kept = [Entry(2, b"part", role, part) for role in (Role.BEFORE, Role.AFTER)]
    job = group_of(Piece([Entry(1, b"old", Role.BEFORE), Entry(1, b"new"), *kept], op=URP))
    assert emit(job, 0) == row_job.OK
    assert written(job) == [(Image.BEFORE, 0, b"old"), (Image.AFTER, 0, b"new")]
    for changed in (kept[1]._replace(value=b"tarp"), kept[1]._replace(part=3 - part)):
        job = group_of(Piece([Entry(1, b"old", Role.BEFORE), VALUE, kept[0], changed], op=URP))
        assert emit(job, 0) == row_job.INCOMPLETE
    # The same value, whole, is set.
    whole = [Entry(2, b"part", role) for role in (Role.BEFORE, Role.AFTER)]
    job = group_of(Piece([*whole, Entry(3, b"part", Role.BEFORE, part)], op=URP))
    assert emit(job, 0) == row_job.INCOMPLETE
    job = group_of(Piece(whole, op=URP))
    assert emit(job, 0) == row_job.OK
    assert written(job) == [(Image.BEFORE, 1, b"part"), (Image.AFTER, 1, b"part")]


def test_a_logged_value_beside_a_cut_one_is_whole() -> None:
    """The supplemental header has P and N of the piece, whichever columns are logged."""
    logged_value = Entry(3, b"whole", BOTH, TO_NEXT)
    job = group_of(Piece([Entry(1, b"old", Role.BEFORE), VALUE, logged_value], op=URP))
    assert emit(job, 0) == row_job.OK
    assert written(job)[1] == (Image.BEFORE, 2, b"whole")


def test_no_more_is_appended_than_there_is_room() -> None:
    job = job_of(Piece([Entry(1, b"x"), Entry(1, b"y", Role.BEFORE)], URP), room=1)
    assert gather(job, 0, 0, STAMP) == OK
    assert update(job, 0, 0, STAMP)[0] is False
    assert not full_image(job, int(Image.AFTER), AFTER, AFTER_SUPPLEMENTAL, 0, STAMP)
    assert job.counts[VALUES] == 1


def shown(dml: DmlColumns) -> list[bytes]:
    """Every value with its further parts."""
    found = []
    for at in range(int(dml.entry_first[-1])):
        raw, following = b"", at
        while following >= 0:
            value = dml.values[following]
            raw += dml.data[value.offset :][: max(value.length, 0)].tobytes()
            following = int(value.next)
        found.append(raw)
    return found


def test_compiled_and_interpreted_kernels_agree() -> None:
    dml = assembled_both_ways(
        Piece([Entry(1, b"a", part=CutFlag.TO_NEXT), Entry(3, b"c")], group=FB_FIRST),
        Piece([Entry(1, b"b", part=CutFlag.FROM_PREVIOUS)], group=FB_LAST),
        Piece([Entry(1, b"d"), Entry(2, b"e")], head=1),
    )
    assert shown(dml) == [b"ab", b"", b"c", b"d", b"e", b""]


def job_in_two_tables(*pieces: Piece, room: int = 100) -> RowJob:
    """A job of the second table: ten columns, in the row as 1, 2, 4 … 11; 3 was dropped."""
    numbers = [1, 2, *range(4, 12)]
    columns = [Column(f"C{at}", number, number, number, 23, 100)
               for at, number in enumerate(numbers, 1)]  # fmt: skip
    tables = [Table("S", "ONE", 99, 99, (columns[0],)), Table("S", "T", 100, 100, tuple(columns))]
    plan = build_row_plan(tables, 0)._replace(as_stored=np.zeros(2, np.uint8))
    job = row_job.row_job(batch_of(*pieces), plan, room)
    clear(job.links)
    job.merge.following[:], job.links.next_piece[:] = 7, -1
    return job


def test_a_value_goes_to_the_column_that_its_number_is_in_its_table() -> None:
    entries = [Entry(1, b"a"), Entry(3, b"gone"), Entry(4, b"c"), Entry(11, b"j")]
    expected = [b"a", None, b"c", *(None,) * 6, b"j"]
    job = job_in_two_tables(Piece(entries), room=10)
    assert plain_insert(job, 0, 1) == OK
    assert written(job) == [(Image.AFTER, at, raw) for at, raw in enumerate(expected)]
    job = job_in_two_tables(Piece(entries), room=10)
    assert gather(job, 0, 1, STAMP) == OK
    assert full_image(job, int(Image.AFTER), AFTER, AFTER_SUPPLEMENTAL, 1, STAMP)
    assert [raw for _, _, raw in written(job)] == expected
    for number in (0, 12):
        for at in (plain_insert, lambda job, piece, table: gather(job, piece, table, STAMP)):
            assert at(job_in_two_tables(Piece([Entry(number, b"x")])), 0, 1) == UNKNOWN_COLUMN


def test_columns_that_stand_before_a_piece_count() -> None:
    job = job_in_two_tables(Piece([Entry(1, b"d"), Entry(8, b"k")]))
    job.links.shift[0] = 3
    assert plain_insert(job, 0, 1) == OK
    assert [(column, raw) for _, column, raw in written(job) if raw] == [(2, b"d"), (9, b"k")]
    assert gather(job, 0, 1, STAMP) == OK
    job.links.shift[0] = 4
    assert gather(job, 0, 1, STAMP) == plain_insert(job, 0, 1) == UNKNOWN_COLUMN


def test_the_bits_of_a_bitmap_are_columns_of_the_row() -> None:
    """Bit n of byte m is column 8 m + n + 1 of the row (redo-format §4.3); past its end is none."""
    entries = [Entry(at, b"x") for at in (1, 2, 4, 8, 9, 10, 11)]
    bitmaps = {b"\x81\x05": [0, 6, 7, 9], b"\x08": [2], b"\x00\x02": [8], b"": list(range(10))}
    for bitmap, columns in bitmaps.items():
        # The bitmap of the piece before it does not matter, but that it has one.
        first = Piece([], URP, changed=b"\0\0" if bitmap else b"")
        job = job_in_two_tables(first, Piece(entries, URP, changed=bitmap))
        job.links.next_piece[0] = 1
        assert gather(job, 1, 1, STAMP) == OK
        named = [column for column in columns if column in (0, 1, 2, 6, 7, 8, 9)]
        assert update(job, 0, 1, STAMP) == (True, len(named))
        assert [column for _, column, _ in written(job)] == named


def test_a_cut_value_takes_the_place_of_a_whole_one_and_the_other_way_round() -> None:
    cut = [Entry(2, b"ab", part=CutFlag.TO_NEXT), Entry(2, b"c", part=CutFlag.FROM_PREVIOUS)]
    whole = Entry(2, b"whole")
    for entries, expected in (([whole, *cut], b"abc"), ([*cut, whole], b"whole"),
                              ([cut[1], whole], b"whole"), ([whole, cut[1]], b"c"),
                              ([cut[0], cut[0]], b"ab")):  # fmt: skip
        job = job_in_two_tables(Piece(entries))
        assert gather(job, 0, 1, STAMP) == OK
        assert full_image(job, int(Image.AFTER), AFTER, AFTER_SUPPLEMENTAL, 1, STAMP)
        assert written(job)[1] == (Image.AFTER, 1, expected)


def test_several_values_may_be_cut() -> None:
    entries = [
        Entry(at, bytes([64 + at]) * size, part=part)
        for size, part in ((2, CutFlag.TO_NEXT), (1, CutFlag.FROM_PREVIOUS))
        for at in (1, 2)
    ]
    job = job_in_two_tables(Piece(entries))
    assert gather(job, 0, 1, STAMP) == OK
    assert full_image(job, int(Image.AFTER), AFTER, AFTER_SUPPLEMENTAL, 1, STAMP)
    assert [raw for _, _, raw in written(job)][:2] == [b"AAA", b"BBB"]


def test_the_first_before_value_counts_be_it_null() -> None:
    job = gathered(
        Piece([Entry(1, None, Role.BEFORE), Entry(2, b"k", BEFORE_LOGGED)], URP),
        Piece([Entry(1, b"x", Role.BEFORE), Entry(2, b"l", BEFORE_LOGGED)], URP),
    )
    assert update(job, 0, 0, STAMP) == (True, 1)
    assert written(job) == [
        (Image.BEFORE, 0, None), (Image.BEFORE, 1, b"k"), (Image.AFTER, 0, None),
    ]  # fmt: skip


def test_a_supplemental_after_value_is_the_before_value_of_what_is_not_set() -> None:
    """Supplemental columns that are unchanged are also the after values (redo-format §4.3)."""
    job = gathered(
        Piece(
            [
                Entry(1, b"same", AFTER_LOGGED),
                Entry(2, b"new"), Entry(2, b"new", AFTER_LOGGED),
                Entry(3, b"old", BEFORE_LOGGED), Entry(3, b"other", AFTER_LOGGED),
            ],
            URP,
        )
    )  # fmt: skip
    assert update(job, 0, 0, STAMP) == (True, 1)
    assert written(job) == [
        (Image.BEFORE, 0, b"same"), (Image.BEFORE, 2, b"old"), (Image.AFTER, 1, b"new"),
    ]  # fmt: skip


def test_no_update_is_whole_without_room_for_its_before_values() -> None:
    job = job_of(Piece([Entry(1, b"y", Role.BEFORE), Entry(2, b"z", Role.BEFORE)], URP), room=1)
    assert gather(job, 0, 0, STAMP) == OK
    assert update(job, 0, 0, STAMP) == (False, 0)
