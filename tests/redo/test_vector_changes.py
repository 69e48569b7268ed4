"""The walk over vectors: an undo record waits for its row vector, an undone one takes it back."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.decoding.split import subscribe
from olr_pg.redo.batch import EventKind, Role
from olr_pg.redo.column_tables import head, take
from olr_pg.redo.events import names_no_transaction
from olr_pg.redo.format.opcodes import DRP, IRP, LKR, QMD, QMI, URP
from olr_pg.redo.lob_pieces import LobOp
from olr_pg.redo.log_extraction import read_changes
from olr_pg.redo.pieces import ChangeStatus
from olr_pg.simulator.fields.cells import index_data, index_key
from olr_pg.simulator.fields.redo_format import (
    COMPATIBLE,
    DatabaseSession,
    RedoFormat,
    ktb_continue,
    session_fields,
)
from olr_pg.simulator.fields.row_fields import (
    FB_ROW,
    OP_DRP,
    OP_IRP,
    UNDO_SIDE,
    KdoBase,
    delete_kdo,
)
from tests.lobs.lob_redo import BLOCK, LOB_INDEX, LOB_OBJ, TABLE_OBJ, LobRedo, table
from tests.redo.chain import whole_log
from tests.redo.hand_made import log_of as log_of_redo
from tests.redo.hand_made import values_of, walked, walked_with_lobs
from tests.redo.hand_made_fields import at_slot, changed, image, many
from tests.redo.test_direct import CASES, IDS, plan_of, with_transaction
from tests.vectors.redo_cases import Case, log_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

BASE = KdoBase(BLOCK, BLOCK, 100, 1)


def is_alone(events: Sequence[Any], status: ChangeStatus, dataobj: int, con_id: int = 0) -> bool:
    """Tell whether events are an UNDECODED change that is a transaction of its own."""
    kinds = [EventKind.BEGIN, EventKind.UNDECODED, EventKind.COMMIT]
    assert [one.kind for one in events] == kinds
    (xid,) = {int(one.xid) for one in events}
    assert names_no_transaction(xid)
    assert {(int(one.con_id), int(one.undo_con_id)) for one in events} == {(con_id, con_id)}
    change = events[1]
    assert (change.session, change.dataobj, change.piece_count) == (status, dataobj, 0)
    return True


def test_an_undone_row_vector_is_counted_as_undoing(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    redo.insert_row(b"\xc1\x02")
    redo.undo_insert(0, 1)
    batch, tally = walked(redo, tmp_path, *TWO_TABLES)
    assert batch.events.kind.tolist() == [EventKind.BEGIN, EventKind.CHANGE, EventKind.UNDONE]
    assert batch.events.table.tolist() == [-1, 1, 1]
    assert (tally.vectors, tally.row_vectors) == (5, 2)
    assert (tally.changes, tally.undoing, tally.unpaired) == (1, 1, 0)


def test_a_row_vector_without_undo_is_unpaired(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    fields = [ktb_continue(redo.redo, bytes(8)), delete_kdo(redo.redo, BASE, OP_DRP, 0)]
    redo.emit(redo.vector((11, OP_DRP), fields, TABLE_OBJ, dba=BLOCK))
    batch, tally = walked(redo, tmp_path)
    begun, *alone = batch.events
    assert begun.kind == EventKind.BEGIN
    assert is_alone(alone, ChangeStatus.NO_UNDO, TABLE_OBJ)
    assert begun.xid not in {one.xid for one in alone}
    assert (tally.row_vectors, tally.changes, tally.unpaired) == (1, 0, 1)
    assert (tally.named, tally.told) == (1, 1)


def test_an_undo_record_of_another_record_does_not_wait(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    kdo = delete_kdo(redo.redo, BASE, OP_DRP | UNDO_SIDE, 0)
    redo.emit(redo.undo_vector(TABLE_OBJ, (11, 1), [kdo]))
    fields = [ktb_continue(redo.redo, bytes(8)), delete_kdo(redo.redo, BASE, OP_IRP, 0)]
    redo.emit(redo.vector((11, OP_IRP), fields, TABLE_OBJ, dba=BLOCK))
    batch, tally = walked(redo, tmp_path)
    (_, *alone) = batch.events
    assert is_alone(alone[:3], ChangeStatus.CONTRADICTION, TABLE_OBJ)
    assert is_alone(alone[3:], ChangeStatus.NO_UNDO, TABLE_OBJ)
    assert len({one.xid for one in alone}) == 2
    assert (tally.row_vectors, tally.changes, tally.unpaired) == (1, 0, 1)


# --- vectors laid out as redo-format §4.2 and §4.5 say ---

TWO_TABLES = (
    replace(table(), obj=7, dataobj=7, name="OTHER", columns=table().columns[:1]),
    table(),
)
UNDO_BLOCK = 0x00C00010
HEAD, TAIL, CUT, DONE, MID = 1, 2, 4, 0x10, 0x100
"""Bits of ktub's flg (redo-format §4.2)."""


def ktub(redo: LobRedo, flags: int, opc: tuple[int, int] = (11, 1), obj: int = TABLE_OBJ,
         objd: int = TABLE_OBJ) -> bytes:  # fmt: skip
    """objn, objd, tsn, prev dba, opc, slt, rci, flg, wrp."""
    order = ">" if redo.redo.big_endian else "<"
    return struct.pack(order + "4I4BHH", obj, objd, 4, 0x00C0000F, *opc, 12, 27, flags, 572)


def undo(redo: LobRedo, image: bytes, fields: Sequence[bytes], typ: int = 0) -> bytes:
    """A 5.1 of transaction 10.12.572."""
    order = ">" if redo.redo.big_endian else "<"
    ktudb = struct.pack(order + "4H8sHBx", 100, 0, 0x22, 0, redo.redo.xid(10, 12, 572), 3, 28)
    return redo.vector((5, 1), [ktudb, image, *fields], cls=16 + 2 * 10, dba=UNDO_BLOCK, typ=typ)


def undone(redo: LobRedo, op: int, image: bytes) -> bytes:
    """A 5.6 or 5.11: its slot in ktub, its segment in the class."""
    cls = 16 + 2 * 10 - (op == 11)
    return redo.vector((5, op), [image + bytes(4), bytes(8)], cls=cls, dba=UNDO_BLOCK)


XID = 10 << 48 | 12 << 32 | 572


@pytest.mark.parametrize("version", ["11.2", "19"])
@pytest.mark.parametrize("big", [False, True])
def test_undo_in_several_records_travels_as_it_is(tmp_path: Path, version: str, big: bool) -> None:
    """redo-format §4.2: TAIL first, then MID, HEAD last, beside the row vector; fields from F3
    (row: F2) on.
    """
    redo = LobRedo(
        RedoFormat(COMPATIBLE[version], big_endian=big), con_id=0 if version < "12" else 3
    )
    redo.emit(undo(redo, ktub(redo, TAIL), [b"tail", b"", b"rest"]))
    redo.emit(undo(redo, ktub(redo, MID | CUT), [b"mid"]))
    row = redo.vector((11, 5), [b"ktb ", b"kdo", b"one"], 99, dba=BLOCK)
    redo.emit(undo(redo, ktub(redo, HEAD | CUT, objd=0), [b"ktb", b"kdo "]), row)
    batch, tally = walked(redo, tmp_path, *TWO_TABLES)
    events = batch.events
    assert events.kind.tolist() == [EventKind.UNDO_PART] * 2 + [EventKind.SPLIT_CHANGE]
    assert set(events.xid.tolist()) == {XID}
    assert set(events.con_id.tolist()) == {redo.con_id}
    assert events.table.tolist() == [1] * 3
    assert events.serial.tolist() == [TAIL, MID | CUT, HEAD | CUT]
    assert events.piece_count.tolist() == [1, 1, 2]
    assert batch.pieces.entry_count.tolist() == [3, 1, 2, 2]
    assert values_of(batch) == [
        (0, 3, b"tail"), (0, 4, b""), (0, 5, b"rest"), (0, 3, b"mid"),
        (0, 3, b"ktb"), (0, 4, b"kdo "), (0, 2, b"kdo"), (0, 3, b"one"),
    ]  # fmt: skip
    assert not batch.entries.part.any()
    assert events.dataobj.tolist() == [TABLE_OBJ, TABLE_OBJ, 99]
    row_scn = 6 if version == "11.2" else 8
    assert events.session.tolist() == [0, 0, 0x0B05 | row_scn << 16 | big << 24]
    assert (set(events.undo_dba.tolist()), set(events.rci.tolist())) == ({UNDO_BLOCK}, {27})
    assert (tally.row_vectors, tally.changes, tally.unpaired) == (1, 1, 0)


def test_parts_of_other_undo_are_nothing(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.emit(undo(redo, ktub(redo, TAIL, obj=8), [b"other"]))
    redo.emit(undo(redo, ktub(redo, TAIL, (13, 1)), [b"space"]))
    redo.emit(undo(redo, ktub(redo, 0, obj=8), [b"whole"]))
    redo.emit(undo(redo, ktub(redo, 0, (13, 1)), [b"space"]))
    assert walked(redo, tmp_path)[0].events.size == 0
    redo.emit(undo(redo, ktub(redo, TAIL, (10, 22)), [b"leaf"]))
    assert walked(redo, tmp_path)[0].events.kind.tolist() == [EventKind.UNDO_PART]


def test_a_row_vector_is_paired_with_undo_of_a_row(tmp_path: Path) -> None:
    """redo-format §4.8, and opc of §4.2: 11.1 for table rows, 10.22 for leaves; a pair of two is
    neither.
    """
    redo = LobRedo(con_id=3)
    kdo = [ktb_continue(redo.redo, bytes(8)), delete_kdo(redo.redo, BASE, OP_DRP, 0)]
    back = delete_kdo(redo.redo, BASE, OP_IRP | UNDO_SIDE, 0)
    row = redo.vector((11, OP_DRP), kdo, 99, dba=BLOCK)
    redo.emit(undo(redo, ktub(redo, 0, (10, 22)), [kdo[0], back]), row)
    redo.emit(undo(redo, ktub(redo, 0, obj=8), [kdo[0], back]), row)
    redo.emit(undo(redo, ktub(redo, TAIL, objd=99), [kdo[0], back]), row)
    batch, tally = walked(redo, tmp_path, *TWO_TABLES)
    other, (part, undecoded) = batch.events[:3], batch.events[3:]
    assert is_alone(list(other), ChangeStatus.CONTRADICTION, 99, con_id=3)
    # A part that is no HEAD has no row vector beside it.
    assert (part.kind, undecoded.kind) == (EventKind.UNDO_PART, EventKind.UNDECODED)
    assert undecoded.session == ChangeStatus.SPLIT_UNDO
    assert batch.events.table.tolist() == [-1, 1, -1, 1, 1]
    assert set(batch.events.con_id.tolist()) == {3}
    assert (tally.row_vectors, tally.filtered, tally.changes) == (3, 1, 2)


@pytest.mark.parametrize("op", [6, 11])
def test_an_undo_marker_names_a_slot_and_an_undo_record(tmp_path: Path, op: int) -> None:
    """redo-format §4.5: segment by the class, slot and the rest in ktub; 5.11 for the first in
    its block.
    """
    redo = LobRedo(con_id=3)
    redo.emit(undone(redo, op, ktub(redo, DONE, objd=99)))
    redo.emit(undone(redo, op, ktub(redo, DONE, obj=8)))
    for part in (TAIL, MID):  # its change goes with the HEAD's marker
        redo.emit(undone(redo, op, ktub(redo, DONE | part)))
    redo.emit(undone(redo, op, ktub(redo, DONE | HEAD)))
    events = walked(redo, tmp_path, *TWO_TABLES)[0].events
    assert events.kind.tolist() == [EventKind.UNDONE] * 2
    assert set(events.xid.tolist()) == {10 << 48 | 12 << 32}
    assert (events.table.tolist(), events.con_id.tolist()) == ([1, 1], [3, 3])
    assert events.slot_head.tolist() == [op == 11] * 2
    assert events.dataobj.tolist() == [99, TABLE_OBJ]
    assert (events.prev_dba.tolist(), events.undo_dba.tolist()) == (
        [0xC0000F] * 2,
        [UNDO_BLOCK] * 2,
    )


def test_an_undo_marker_of_lob_storage_is_one_of_no_table(tmp_path: Path) -> None:
    redo = LobRedo(con_id=3)
    for obj, objd in [(LOB_OBJ[3], 8), (8, LOB_INDEX[3]), (8, 8)]:
        redo.emit(undone(redo, 6, ktub(redo, DONE, (26, 1), obj, objd)))
    events = walked_with_lobs(redo, tmp_path, *TWO_TABLES)[0].events
    assert events.table.tolist() == [-1, -1]
    assert events.dataobj.tolist() == [8, LOB_INDEX[3]]
    assert walked(redo, tmp_path, *TWO_TABLES)[0].events.size == 0


def test_vectors_of_lob_storage_are_events_of_their_table(tmp_path: Path) -> None:
    """values-and-lobs §18.1, §19: with undo of the transaction, alone, or of a recursive one."""
    redo = LobRedo(con_id=3)
    redo.begin()
    redo.page_change(3, 0x101, redo.info(7), redo.fill(10, b"patch"), redo.zero(20, 5))
    redo.index_insert(3, index_key(8, 0), index_data(0, 9, [1]))
    redo.index_first(3, index_key(8, 4), index_data(4, 0, [2]))
    redo.direct_page(3, 7, 0x102, b"page")
    redo.long_field(3, 8, 0, 0x103, b"page")
    # The same of a LOB that nobody follows.
    redo.page_change(18, 0x101, redo.fill(10, b"patch"))
    redo.long_field(18, 8, 0, 0x103, b"page")
    batch, tally = walked_with_lobs(redo, tmp_path, *TWO_TABLES)
    events: Any = batch.events[1:]
    assert events.kind.tolist() == [EventKind.LOB] * 5
    assert events.table.tolist() == [1] * 5
    assert events.con_id.tolist() == [3] * 5
    assert events.piece_count.tolist() == [2, 1, 1, 1, 1]
    assert batch.pieces.op.tolist() == [
        LobOp.FILL, LobOp.ZERO, LobOp.INDEX, LobOp.INDEX, LobOp.PAGE, LobOp.PAGE,
    ]  # fmt: skip
    own = int(batch.events.xid[0])
    assert events.xid.tolist() == [own, own, 0, own, 0]
    # What is logged with undo can be undone; a leaf may be another transaction's.
    assert events.undo_dba.tolist() == [UNDO_BLOCK, UNDO_BLOCK, 0, 0, 0]
    assert events.rci.tolist() == [1, 2, 0, 0, 0]
    assert (tally.changes, tally.unpaired) == (0, 0)


def test_a_session_belongs_to_its_own_record(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    redo.emit(
        redo.vector((5, 19), session_fields(redo.redo, DatabaseSession(341, 77, "APP"), full=True))
    )
    assert walked(redo, tmp_path)[0].events.kind.tolist() == [EventKind.BEGIN]


@pytest.mark.parametrize(("name", "case"), CASES, ids=IDS)
def test_a_real_block_of_rows_is_one_change(name: str, case: Case) -> None:
    """A 19.1 of the shared vectors, with a 24.6 beside it as redo-format §8.4 has it."""
    facts = case["expected"][0]["derived"]
    own, _, objects = plan_of(facts)
    batch, tally = whole_log(log_of(with_transaction(case))[0], objects)
    (event,) = batch.events
    assert (event.kind, event.table) == (EventKind.CHANGE, 0)
    assert event.xid == 5 << 48 | 9 << 32 | 77
    assert event.piece_count == facts["rows_in_block"]
    assert event.con_id == facts["container_id"]
    assert (tally.row_vectors, tally.changes) == (1, 1)
    # Beside a table with LOBs, whose pages have the same opcode (redo-format §6.2).
    lobs = subscribe((own, table()), facts["container_id"]).objects
    assert lobs.lob_tables.size > 0
    again = whole_log(log_of(with_transaction(case))[0], lobs)[0]
    assert again.events.piece_count.tolist() == [facts["rows_in_block"]]
    assert again.events.kind.tolist() == [EventKind.CHANGE]
    assert values_of(again) == values_of(batch)


KTB = b"\xee" * 8
ENCRYPTED = 0x80
"""Bit of a vector's typ."""


def row(redo: LobRedo, op: int, fields: Sequence[bytes], typ: int = 0) -> bytes:
    """A row vector of data object 99."""
    return redo.vector((11, op), [KTB, *fields], 99, dba=BLOCK, typ=typ)


@pytest.mark.parametrize("order", ["<", ">"])
def test_pairs_of_undo_and_row_vectors(tmp_path: Path, order: str) -> None:
    """redo-format §4.8: which make a change, of which table, with which pieces and values."""
    redo = LobRedo(RedoFormat(big_endian=order == ">"), con_id=3)
    number = struct.pack(order + "H", 0)
    old = [KTB, changed(order, URP | UNDO_SIDE, FB_ROW, 6), number, b"old"]
    new = [changed(order, URP, FB_ROW, 6), number, b"new"]
    array = [many(order, QMI, (3, 4)), struct.pack(order + "HH", 5, 5), b"\x2c\0\1\1a\x2c\0\1\1b"]
    broken = [many(order, QMI, (3, 4)), struct.pack(order + "HH", 5, 6), array[2] + b"c"]
    lock = [at_slot(order, LKR, 6)]
    short = [image(order, IRP, FB_ROW, 2, 6), b"lost"]  # its second column has no field
    gone = [KTB, at_slot(order, DRP | UNDO_SIDE, 6)]
    own, other = ktub(redo, 0, objd=99), ktub(redo, 0, obj=7, objd=0)
    # An insert of two rows of table 0, whose undo names no data object.
    removed = [KTB, many(order, QMD | UNDO_SIDE, (3, 4))]
    for vectors in (
        [undo(redo, own, old), row(redo, URP, new)],
        [undo(redo, other, removed), row(redo, QMI, array)],
        [undo(redo, own, [KTB, *lock]), row(redo, LKR, lock)],
        [undo(redo, own, gone), row(redo, IRP, short)],
        [undo(redo, other, removed), row(redo, QMI, broken)],  # from its second row on
        [undo(redo, own, old), row(redo, URP, new, ENCRYPTED)],
        [undo(redo, own, old, ENCRYPTED), row(redo, URP, new)],
        [undo(redo, own, old), row(redo, URP, new)],
        # Undo of a row and a change of a leaf, and the other way round, are no pair.
        [undo(redo, own, old), redo.vector((10, 2), [KTB, b"x"], 99, dba=BLOCK)],
        [undo(redo, ktub(redo, 0, (10, 22)), old), row(redo, URP, new)],
    ):
        redo.emit(*vectors)
    batch, tally = walked(redo, tmp_path, *TWO_TABLES)
    change, undecoded = EventKind.CHANGE, EventKind.UNDECODED
    events = head(batch.events, 6)
    assert events.kind.tolist() == [change, change, *[undecoded] * 3, change]
    assert events.table.tolist() == [1, 0, 1, 0, 1, 1]
    assert events.dataobj.tolist() == [99] * 6
    assert events.piece_count.tolist() == [1, 2, 0, 0, 0, 1]
    assert batch.pieces.size == 4
    assert events.session[2:5].tolist() == [
        ChangeStatus.COLUMNS, ChangeStatus.ROWS, ChangeStatus.ENCRYPTED,
    ]  # fmt: skip
    assert set(events.xid.tolist()) == {XID}
    assert set(events.undo_dba.tolist()) == {UNDO_BLOCK}
    # Of an encrypted undo record nothing is known, and its row vector's header names no table: it
    # is filtered. The last two contradict their undo, which names one.
    for alone in (take(batch.events, slice(6, 9)), take(batch.events, slice(9, None))):
        assert is_alone(list(alone), ChangeStatus.CONTRADICTION, 99, con_id=3)
        assert alone.table.tolist() == [-1, 1, -1]
    both = [(Role.BEFORE, 1, b"old"), (Role.AFTER, 1, b"new")]
    assert values_of(batch) == [*both, (Role.AFTER, 1, b"a"), (Role.AFTER, 1, b"b"), *both]
    assert (tally.row_vectors, tally.changes, tally.without_row) == (10, 8, 1)
    assert (tally.filtered, tally.unpaired, tally.undoing) == (1, 0, 0)


def test_nothing_is_in_mind_behind_a_pair_or_another_vector(tmp_path: Path) -> None:
    """redo-format §4.8: a 5.1 waits for the next vector, as a row vector does for 5.6 or 5.11."""
    redo = LobRedo()
    old = [KTB, at_slot("<", DRP | UNDO_SIDE, 6)]
    new = row(redo, IRP, [image("<", IRP, FB_ROW, 0, 6)])
    undoing = undone(redo, 6, ktub(redo, DONE, obj=8))
    space = redo.vector((13, 22), [bytes(8)], 5, dba=BLOCK)
    before = undo(redo, ktub(redo, 0), old)
    for vectors, changes, back, alone in (
        ([before, new], 1, 0, 0),
        ([before, new, new], 1, 0, 1),
        ([before, new, undoing], 1, 0, 0),
        ([before, space, new], 0, 0, 1),
        ([before, before, new], 1, 0, 0),
        ([before, undoing, new], 0, 0, 1),
        ([new, undoing], 0, 1, 0),
        ([new, undoing, undoing], 0, 1, 0),
        ([new, space, undoing], 0, 0, 1),
        ([new, new], 0, 0, 2),
    ):
        redo.records.clear()
        redo.emit(*vectors)
        _, tally = walked(redo, tmp_path, *TWO_TABLES)
        found = (tally.changes, tally.undoing, tally.unpaired + tally.filtered)
        assert found == (changes, back, alone), [vector[:2].hex() for vector in vectors]
        assert tally.vectors == len(vectors)


def test_what_is_looked_at_is_not_passed_by(tmp_path: Path) -> None:
    """Row vectors, and 24.6, which says whose the blocks beside it are (redo-format §8.4)."""
    redo = LobRedo()
    space = redo.vector((13, 22), [bytes(8)], 5, dba=BLOCK)
    marker = redo.vector((24, 6), [bytes(8) + redo.xid], typ=6)
    lock = redo.vector((11, LKR), [KTB, at_slot("<", LKR, 6)], 5, dba=BLOCK)
    redo.emit(space, marker, lock, redo.vector((24, 4), [bytes(8)], typ=6), space)
    (extract,) = read_changes(log_of_redo(redo, tmp_path), subscribe(TWO_TABLES, 0).objects)
    assert extract.passed.counts == {0x0D16: 2, 0x1804: 1}


def test_there_is_room_for_any_number_of_changes(tmp_path: Path) -> None:
    redo = LobRedo()
    head = undo(redo, ktub(redo, HEAD, objd=99), [b"ktb", b"kdo "])
    tail = undo(redo, ktub(redo, TAIL, objd=99), [b"tail"])
    for parts in (0, 1):  # pieces come in twos, from an odd place as well
        redo.records.clear()
        redo.emit(*[tail] * parts, *[head, row(redo, URP, [b"kdo"])] * 700)
        batch, tally = walked(redo, tmp_path, *TWO_TABLES)
        kinds = [EventKind.UNDO_PART] * parts + [EventKind.SPLIT_CHANGE] * 700
        assert batch.events.kind.tolist() == kinds
        assert batch.pieces.entry_count.tolist() == [1] * parts + [2, 1] * 700
        assert tally.changes == 700
