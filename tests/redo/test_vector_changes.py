"""The walk over vectors: an undo record waits for its row vector, an undone one takes it back."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.redo.batch import EventKind
from olr_pg.redo.lob_pieces import LobOp
from olr_pg.redo.pieces import ChangeStatus
from olr_pg.simulator.fields.lob_layout import index_data, index_key
from olr_pg.simulator.fields.redo_format import COMPATIBLE, RedoFormat
from olr_pg.simulator.fields.row_fields import OP_DRP, OP_IRP, UNDO_SIDE, KdoBase, delete_kdo
from olr_pg.simulator.fields.vector_fields import (
    DatabaseSession,
    ktb_continue,
    session_fields,
)
from tests.lobs.lob_redo import BLOCK, LOB_INDEX, LOB_OBJ, TABLE_OBJ, LobRedo, table
from tests.redo.chain import whole_log
from tests.redo.hand_made import values_of, walked, walked_with_lobs
from tests.redo.test_direct import CASES, IDS, plan_of, with_transaction
from tests.vectors.redo_cases import Case, log_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

BASE = KdoBase(BLOCK, BLOCK, 100, 1)


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


def undo(redo: LobRedo, image: bytes, fields: Sequence[bytes]) -> bytes:
    """A 5.1 of transaction 10.12.572."""
    order = ">" if redo.redo.big_endian else "<"
    ktudb = struct.pack(order + "4H8sHBx", 100, 0, 0x22, 0, redo.redo.xid(10, 12, 572), 3, 28)
    return redo.vector((5, 1), [ktudb, image, *fields], cls=16 + 2 * 10, dba=UNDO_BLOCK)


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
    redo.emit(undo(redo, ktub(redo, 0), [b"whole"]))
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
    redo.emit(undo(redo, ktub(redo, TAIL), [kdo[0], back]), row)
    batch, tally = walked(redo, tmp_path, *TWO_TABLES)
    kinds = batch.events.kind.tolist()
    # A part that is no HEAD has no row vector beside it.
    assert kinds[:2] == [EventKind.UNDO_PART, EventKind.UNDECODED]
    assert batch.events.session[1] == ChangeStatus.SPLIT_UNDO
    assert set(batch.events.table.tolist()) == {1}
    assert set(batch.events.con_id.tolist()) == {3}
    assert (tally.row_vectors, tally.filtered, tally.changes) == (3, 2, 1)


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
    _, _, objects = plan_of(facts)
    batch, tally = whole_log(log_of(with_transaction(case))[0], objects)
    (event,) = batch.events
    assert (event.kind, event.table) == (EventKind.CHANGE, 0)
    assert event.xid == 5 << 48 | 9 << 32 | 77
    assert event.piece_count == facts["rows_in_block"]
    assert event.con_id == facts["container_id"]
    assert (tally.row_vectors, tally.changes) == (1, 1)
