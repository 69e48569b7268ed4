"""Events: which table an object is at an SCN, and what an event has of its record."""

from __future__ import annotations

import struct
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from olr_pg.kernels.compile import interpreted
from olr_pg.redo.batch import EventKind, empty_events
from olr_pg.redo.column_tables import as_table, head
from olr_pg.redo.events import find, link_undo, xid_of
from olr_pg.redo.integers import read_xid
from olr_pg.redo.pieces import ChangeStatus
from olr_pg.redo.walk import Objects
from olr_pg.simulator.fields.redo_format import RedoFormat, ktudh
from tests.lobs.lob_redo import BLOCK, TABLE_OBJ, LobRedo, table
from tests.redo.chain import clear, whole_log
from tests.redo.hand_made import log_of, walked
from tests.redo.hand_made_fields import laid_out
from tests.redo.log_builder import LogBuilder, open_log

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("since", "tables"), [(0, [1]), (1002, [1]), (1003, [0]), (9999, [0])])
def test_an_object_is_the_table_that_it_is_at_the_scn(
    tmp_path: Path, since: int, tables: list[int]
) -> None:
    redo = LobRedo()
    redo.begin()
    redo.insert_row(b"\xc1\x02")
    objects = Objects(
        key=np.array([TABLE_OBJ, TABLE_OBJ], np.uint64),
        table=np.array([0, 1], np.int32),
        cluster_columns=np.zeros(2, np.int32),
        since=np.array([0, since], np.int64),
    )
    events = whole_log(log_of(redo, tmp_path), objects)[0].events
    assert events.table[events.kind == EventKind.CHANGE].tolist() == tables


def test_an_object_that_is_none_any_more_has_no_event(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    redo.insert_row(b"\xc1\x02")
    redo.insert_row(b"\xc1\x03")
    objects = Objects(
        key=np.array([TABLE_OBJ, TABLE_OBJ], np.uint64),
        table=np.array([0, -1], np.int32),
        cluster_columns=np.zeros(1, np.int32),
        since=np.array([0, 1003], np.int64),
    )
    events = whole_log(log_of(redo, tmp_path), objects)[0].events
    assert events.scn[events.kind == EventKind.CHANGE].tolist() == [1002]


def test_an_event_has_the_place_of_its_record_and_the_links_of_its_undo(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    redo.insert_row(b"\xc1\x02")
    redo.insert_row(b"\xc1\x03")
    redo.undo_insert(1, 2)
    events = walked(redo, tmp_path)[0].events
    assert events.kind.tolist() == [
        EventKind.BEGIN, EventKind.CHANGE, EventKind.CHANGE, EventKind.UNDONE,
    ]  # fmt: skip
    places = list(zip(events.block.tolist(), events.offset.tolist(), strict=True))
    assert places == sorted(set(places))
    assert places[0] == (2, 16)
    assert set(events.sequence.tolist()) == {1}
    assert events.rci.tolist()[1:] == [1, 2, 2]
    assert events.undo_dba.tolist()[1:] == [0x00C00010] * 3
    assert set(events.wrp.tolist()[1:]) == {redo.sequence & 0xFFFF}


def at_hand(payload: bytes, *, big: bool = False) -> Any:
    """What `link_undo` and the like read and fill, with one event."""
    events = empty_events(1)
    clear(events)
    data = np.frombuffer(payload, np.uint8)
    return SimpleNamespace(payload=data, header=32, big=big, events=events)


@pytest.mark.parametrize("big", [False, True])
def test_the_links_of_a_ktub(big: bool) -> None:
    """As redo-format §4.2 has it: objn, objd, tsn, prev dba, opc, slt, rci, flg, wrp."""
    order = ">" if big else "<"
    ktub = struct.pack(order + "4I4BHH", 1, 72_726, 3, 0x00C00011, 11, 1, 4, 27, 0x0C08, 0x1234)
    header = laid_out(
        32, (8, struct.pack(order + "I", 0x00C00010)), (24, struct.pack(order + "H", 1))
    )
    walk = at_hand(b"\xee" * 5 + header + ktub, big=big)
    walk.events.con_id[:] = 3
    interpreted(link_undo)(walk, 5, 5 + 32, 0)
    (event,) = walk.events
    # The undo's container names the transaction; what changed keeps its own.
    assert (event.con_id, event.undo_con_id) == (3, 1)
    assert (event.dataobj, event.prev_dba, event.rci, event.wrp) == (72_726, 0x00C00011, 27, 0x1234)
    assert event.undo_dba == 0x00C00010


def test_a_transaction_s_id_is_packed_as_a_whole_one_is_read() -> None:
    """The xid of redo-format §0.3: usn u16, slot u16, sqn u32."""
    raw = np.frombuffer(bytes.fromhex("0a00 0c00 3c020000"), np.uint8)
    assert interpreted(xid_of)(10, 12, 572) == interpreted(read_xid)(raw, 0, False)
    assert interpreted(xid_of)(10, 12, 572) == 10 << 48 | 12 << 32 | 572


@pytest.mark.parametrize("order", ["<", ">"])
def test_the_transaction_of_a_direct_load_is_in_the_24_6_beside_it(
    tmp_path: Path, order: str
) -> None:
    """redo-format §8.4: F1 of a 24.6 has the xid at 8, and at least 16 bytes.

    The 19.1 is encrypted (§3.1), so that its change is known and no row of it is.
    """
    form = RedoFormat(big_endian=order == ">")
    redo = LobRedo(form)
    image = struct.pack(order + "B3xI16x", 1, TABLE_OBJ)
    other, own = bytes(8) + form.xid(9, 9, 9), bytes(8) + form.xid(10, 12, 572)
    redo.emit(
        redo.vector((19, 1), [image], TABLE_OBJ, dba=BLOCK, typ=0x81),
        redo.vector((24, 4), [other]),
        redo.vector((24, 6), [other[:12]]),
        redo.vector((24, 6), [own]),
        redo.vector((24, 6), [other]),
    )
    (event,) = walked(redo, tmp_path, replace(table(), obj=1))[0].events
    assert (event.kind, event.table) == (EventKind.UNDECODED, 0)
    assert event.session == ChangeStatus.ENCRYPTED
    assert event.xid == 10 << 48 | 12 << 32 | 572
    assert (event.dataobj, event.piece_count) == (TABLE_OBJ, 0)


def test_the_place_of_an_event_counts_the_headers_of_blocks() -> None:
    """Records of 92 bytes, the first of a group 136, in blocks of 512 with 16 of header
    (redo-format §2.3).
    """
    redo, builder = LobRedo(), LogBuilder(thread=3, sequence=117)
    scn = 0x1234_89ABCDEF

    def begin(number: int) -> bytes:
        header = ktudh(redo.redo, 5, 100 + number, bytes(8), 0x12, 100)
        body = redo.vector((5, 2), [header], cls=15 + 2 * 9)
        assert len(body) == 68
        at = scn + number
        return struct.pack("<IBxHIH10x", 92, 1, at >> 32, at & 0xFFFFFFFF, 1) + body

    builder.add_group([[begin(at) for at in range(6)]], scn)
    builder.time += 9
    builder.add_group([[begin(6)]], scn)
    nothing = np.empty(0, np.int32)
    no_objects = Objects(np.empty(0, np.uint64), nothing, nothing)
    events = whole_log(open_log(builder.build()), no_objects)[0].events
    places = list(zip(events.block.tolist(), events.offset.tolist(), strict=True))
    # The fifth goes over into block 3, of which it takes eight bytes.
    assert places == [(2, 16), (2, 152), (2, 244), (2, 336), (2, 428), (3, 24), (4, 16)]
    assert events.scn.tolist() == [scn + at for at in range(7)]
    assert events.time.tolist() == [builder.time - 9] * 6 + [builder.time]
    assert events.xid.tolist() == [9 << 48 | 5 << 32 | 100 + at for at in range(7)]
    assert set(events.thread.tolist()) == {3}
    assert set(events.sequence.tolist()) == {117}
    assert set(events.table.tolist()) == {-1}
    for name in ("dataobj", "undo_dba", "prev_dba", "rci", "wrp", "slot_head", "serial", "session",
                 "piece_count"):  # fmt: skip
        assert not events[name].any()


def test_an_object_is_known_by_its_container_too() -> None:
    """As `Objects` says: ascending ``con_id << 32 | obj#``."""
    key = np.array([7, 3 << 32 | 7, 3 << 32 | 9, 4 << 32 | 7], np.uint64)
    objects = as_table(
        key=key, table=np.arange(10, 14, dtype=np.int32), since=np.zeros(4, np.int64)
    )
    found = [
        interpreted(find)(objects, con_id, number, 0) for con_id in (0, 3, 4) for number in (7, 9)
    ]
    assert found == [10, -1, 11, 12, 13, -1]
    assert interpreted(find)(head(objects, 0), 0, 7, 0) == -1
