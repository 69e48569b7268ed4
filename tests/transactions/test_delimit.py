"""Changes that a rollback to a savepoint takes back, by what their undo records say."""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import numpy as np

from olr_pg.redo.batch import EventKind
from olr_pg.scalars import pack_xid
from olr_pg.simulator.fields.cells import BLOB, CLOB, secure_in_row
from olr_pg.transactions.assembler import Assembler
from olr_pg.transactions.delimit import UNDO_SEARCH_DEPTH, delimit, live_changes, slot_keys
from tests.lobs.lob_decoding import Decoded, decode
from tests.lobs.lob_redo import LobRedo
from tests.redo.chain import subscribe, transactions_of
from tests.transactions.event_model import CON_ID, OBJ, Event, batch_of

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.simulator.fields.redo_format import Ktub

XID: Final = pack_xid(1, 2, 3)
SLOT: Final = XID & ~0xFFFFFFFF
WITHOUT_UNDO: Final = UNDO_SEARCH_DEPTH + 10
PART_BYTES: Final = 1 << 17
PART_BLOCKS: Final = 500
ONE: Final = Decimal(1)
TWO: Final = Decimal(2)


def ids(decoded: Decoded) -> list[int]:
    """The ID of each row that came out."""
    return [row["ID"] for row in decoded.after]


def test_streamed_pages_hide_no_undone_row(tmp_path: Path) -> None:
    """A page of a LOB (26.6) is logged without undo, and one value may have any number."""
    redo = LobRedo()
    redo.begin()
    redo.insert(ONE, None, None)
    slot = redo.insert(TWO, None, secure_in_row(BLOB, 7, b""))
    record = redo.undo
    for page in range(WITHOUT_UNDO):
        redo.direct_page(3, 7, 0x1000 + page, b"x")
    redo.undo_insert(slot, record)
    redo.end()
    decoded = decode(redo, tmp_path, part_bytes=PART_BYTES, part_blocks=PART_BLOCKS)
    assert ids(decoded) == [1]
    assert (decoded.account.undone, decoded.account.unmatched) == (1, 0)


def test_lob_operations_hide_no_undone_rows(tmp_path: Path) -> None:
    """An operation on a LOB (11.17) is logged without undo, too."""
    rows = 90
    redo = LobRedo()
    redo.begin()
    redo.insert(ONE, None, None)
    done = []
    for row in range(rows):
        text = secure_in_row(CLOB, 10 + row, b"\0x")
        done.append((redo.insert(Decimal(100 + row), text, None), redo.undo))
        for _ in range(50):
            redo.operation(1, 2, 10 + row, 2)
    for slot, record in reversed(done):
        redo.undo_insert(slot, record)
    redo.end()
    decoded = decode(redo, tmp_path, part_bytes=PART_BYTES, part_blocks=PART_BLOCKS)
    assert ids(decoded) == [1]
    assert (decoded.account.undone, decoded.account.unmatched) == (rows, 0)


class WithoutObject(LobRedo):
    """Redo whose undo records name no data object (redo-format §4.8)."""

    def ktub(self, obj: int, opc: tuple[int, int], record: int) -> Ktub:
        return dataclasses.replace(super().ktub(obj, opc, record), dataobj=0)


def test_an_undo_record_without_a_data_object_takes_back_its_row(tmp_path: Path) -> None:
    redo = WithoutObject()
    redo.begin()
    redo.insert(ONE, None, None)
    slot = redo.insert(TWO, None, None)
    redo.undo_insert(slot, redo.undo)
    redo.end()
    decoded = decode(redo, tmp_path)
    assert ids(decoded) == [1]
    assert (decoded.account.undone, decoded.account.unmatched) == (1, 0)


def values(events: list[Event]) -> list[bytes | None]:
    """What rows a transaction inserts that has these events."""
    wanted = subscribe([OBJ], CON_ID)
    assembler = Assembler(wanted.plan, wanted.tables, is_split=False)
    (one,) = transactions_of(assembler.feed(batch_of(events)), wanted.plan)
    return [dml.images[0][2] for dml in one.dml]


def change(value: int, undo_dba: int, rci: int) -> Event:
    return Event(EventKind.CHANGE, XID, 10, value, value, undo_dba=undo_dba, rci=rci, wrp=3)


def test_a_direct_load_is_not_taken_back() -> None:
    """A block of a direct load (19.1) has no undo record: nor is it the one that 5.11 means."""
    begin, commit = Event(EventKind.BEGIN, XID, 1, 0), Event(EventKind.COMMIT, XID, 20, 9)
    first = Event(EventKind.UNDONE, SLOT, 10, 8, slot_head=1)
    events = [begin, change(1, 50, 0), change(2, 0, 0), first, commit]
    assert values(events) == [b"\0\0\0\2"]


def test_changes_are_taken_back_in_any_order() -> None:
    begin, commit = Event(EventKind.BEGIN, XID, 1, 0), Event(EventKind.COMMIT, XID, 20, 9)
    changes = [change(number, 50, number) for number in range(1, 7)]
    undone = [
        Event(EventKind.UNDONE, SLOT, 10, 7, undo_dba=50, rci=rci, wrp=3) for rci in (2, 5, 1)
    ]
    events = [begin, *changes, *undone, commit]
    assert values(events) == [bytes([0, 0, 0, number]) for number in (3, 4, 6)]


def test_a_slot_is_told_by_container_segment_and_the_low_byte_of_its_number() -> None:
    """5.6 and 5.11 have no more of it: no sequence, and the slot in a byte (redo-format §4.5)."""
    events = [
        Event(EventKind.BEGIN, pack_xid(0x1234, 0x5C, 9), 1, 0),
        Event(EventKind.BEGIN, pack_xid(0x1234, 0x15C, 8), 1, 0),
        Event(EventKind.BEGIN, pack_xid(0x1235, 0x5C, 9), 1, 0),
        Event(EventKind.BEGIN, pack_xid(0x1234, 0x5D, 9), 1, 0),
    ]
    batch = batch_of(events)
    batch.events.con_id[:] = 3  # of what changed, which does not matter
    batch.events.undo_con_id[:] = 7
    same = 7 << 32 | 0x1234 << 16 | 0x5C
    assert slot_keys(batch.events).tolist() == [same, same, same + (1 << 16), same + 1]


def test_an_instance_ends_where_another_transaction_has_its_slot() -> None:
    """At a BEGIN, behind an end, and where the sequence is another one; 0 says nothing."""
    later = XID + 1
    kinds = [
        (EventKind.CHANGE, XID), (EventKind.UNDONE, SLOT), (EventKind.CHANGE, XID),
        (EventKind.CHANGE, later), (EventKind.COMMIT, later), (EventKind.UNDONE, SLOT),
        (EventKind.BEGIN, XID), (EventKind.ROLLBACK, XID),
    ]  # fmt: skip
    events = [Event(kind, xid, 1, at) for at, (kind, xid) in enumerate(kinds)]
    found = delimit(batch_of(events).events)
    assert found.first.tolist() == [0, 3, 5, 6, 8]
    assert found.begin.tolist() == [-1, -1, -1, 6]
    assert found.end.tolist() == [-1, 4, -1, 7]


def live(events: list[Event]) -> tuple[list[int], int, int]:
    """(values of the changes that are left, how many were undone, markers without a change)."""
    batch = batch_of(events)
    count = len(events)
    kept, undoable = np.empty((2, count), np.int64)
    left, undone, unmatched = live_changes(batch.events, np.arange(count), 0, count, kept, undoable)
    return kept[:left].tolist(), undone, unmatched


def marker(rci: int, *, undo_dba: int = 50, wrp: int = 3, **more: int) -> Event:
    return Event(EventKind.UNDONE, SLOT, 10, 9, undo_dba=undo_dba, rci=rci, wrp=wrp, **more)


def test_a_marker_means_the_change_with_its_undo_record() -> None:
    """5.6: block, record and wrap of the undo record, all three (redo-format §4.5)."""
    changes = [change(number, 50, number) for number in (1, 2, 3)]
    assert live([*changes, marker(2)]) == ([0, 2], 1, 0)
    assert live([*changes, marker(3), marker(2), marker(1)]) == ([], 3, 0)
    for other in (marker(4), marker(2, undo_dba=51), marker(2, wrp=4)):
        assert live([*changes, other]) == ([0, 1, 2], 0, 1)
    assert live([marker(1), *changes]) == ([1, 2, 3], 0, 1)
    assert live([change(1, 50, 1), change(2, 50, 1), marker(1)]) == ([0], 1, 0)


def test_a_marker_of_the_header_means_the_first_record_of_its_undo_block() -> None:
    """5.11: record 0 in both and the same block before, whatever the block itself."""
    first = dataclasses.replace(change(1, 50, 0), prev_dba=40)
    assert live([first, marker(0, undo_dba=9, wrp=9, slot_head=1, prev_dba=40)]) == ([], 1, 0)
    assert live([first, marker(0, slot_head=1, prev_dba=41)]) == ([0], 0, 1)
    second = dataclasses.replace(change(1, 50, 2), prev_dba=40)
    assert live([second, marker(2, slot_head=1, prev_dba=40)]) == ([0], 0, 1)


def of_row(one: Event, block: int, slot: int) -> Event:
    return dataclasses.replace(one, session=block, serial=slot)


def test_a_marker_means_the_newest_change_of_the_row_before_it() -> None:
    """The row vector before a marker names the row; 0 as the block says nothing."""
    first, other, again = (
        of_row(change(number, 50, number), 7, slot) for number, slot in ((1, 4), (2, 5), (3, 4))
    )
    rows = [first, other, again]
    assert live([*rows, of_row(marker(3), 7, 4), of_row(marker(2), 7, 5)]) == ([0], 2, 0)
    assert live([*rows, of_row(marker(2), 7, 5)]) == ([0, 2], 1, 0)
    assert live([*rows, marker(1), of_row(marker(3), 7, 4)]) == ([1], 2, 0)
    # Misread records: of another row, of an older change of the row.
    for misread in (of_row(marker(2), 7, 4), of_row(marker(2), 6, 5), of_row(marker(1), 7, 4)):
        assert live([*rows, misread]) == ([0, 1, 2], 0, 1)
