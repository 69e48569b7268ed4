"""Whose LOB a vector of LOB storage is of: its segment, its table, its transaction."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

import numpy as np
import pytest

from olr_pg.kernels.compile import interpreted
from olr_pg.redo.batch import empty_entries, empty_pieces
from olr_pg.redo.column_tables import as_table
from olr_pg.redo.format.opcodes import (
    OP_BLOCK_IMAGE,
    OP_LEAF_DATA,
    OP_LOB_OPERATION,
    OP_LOB_REDO,
    OP_LOB_WRITE,
)
from olr_pg.redo.lob_pieces import MALFORMED, LobOp, LobSink
from olr_pg.redo.lobs import LobFields, find_lob, is_lob_object, lob_alone, lob_pair, table_of_lob
from olr_pg.redo.row_vectors import STATE_SIZE
from olr_pg.redo.walk import ObjectTables, lob_objects
from olr_pg.simulator.fields.cells import (
    direct_load_item,
    kdli_common,
    load_data_item,
    logged_item,
    long_field,
    operation_fields,
)
from olr_pg.simulator.fields.redo_format import RedoFormat
from tests.redo.hand_made_fields import laid_out

if TYPE_CHECKING:
    from collections.abc import Sequence

REDO: Final = RedoFormat()
XID: Final = REDO.xid(10, 12, 572)
PACKED: Final = 10 << 48 | 12 << 32 | 572
CON_ID: Final = 3
SEGMENT, INDEX, TABLE = 73000, 73001, 72726


def objects() -> ObjectTables:
    """Table 0 with a LOB column: its segment and index."""
    key = np.array([CON_ID << 32 | TABLE], np.uint64)
    nothing = np.zeros(1, np.int64)
    lobs = as_table(
        **lob_objects(
            [(CON_ID << 32 | SEGMENT, False, 0), (CON_ID << 32 | INDEX, True, 0)]
        )._asdict()
    )
    tables = as_table(key=key, table=np.zeros(1, np.int32), since=nothing)
    return ObjectTables(
        tables,
        np.zeros(1, np.int32),
        np.ones(1, np.uint8),
        lobs,
        lobs,
        as_table(key=key[:0], table=np.zeros(0, np.int32), since=nothing[:0]),
        np.zeros(1, np.uint8),
    )


def alone(op: int, fields: list[bytes]) -> tuple[int, int, int, list[int]]:
    """What a vector gives: pieces, XID, table, and the kinds of the pieces."""
    starts = np.cumsum([0, *(len(data) for data in fields)])
    payload = np.frombuffer(b"".join(fields), np.uint8)
    offset = np.array([0, *starts[:-1]], np.int64)
    length = np.array([0, *(len(data) for data in fields)], np.int64)
    sink = LobSink(empty_pieces(4), empty_entries(8), np.zeros(STATE_SIZE, np.int64))
    vector = LobFields(payload, False, 0x0180_0105, CON_ID, offset, length, len(fields))
    pushed, xid, table = interpreted(lob_alone)(op, vector, objects(), sink)
    return pushed, xid, table, sink.pieces.op[: max(pushed, 0)].tolist()


@pytest.mark.parametrize(("number", "is_index"), [(SEGMENT, 0), (INDEX, 1)])
def test_segments_and_indexes_are_told_apart(number: int, is_index: int) -> None:
    lobs = objects().lob_data
    assert interpreted(find_lob)(lobs, CON_ID, number, is_index) == 0
    assert interpreted(find_lob)(lobs, CON_ID, number, 1 - is_index) == -1
    assert interpreted(is_lob_object)(lobs, CON_ID, number)
    assert interpreted(table_of_lob)(lobs, CON_ID, number) == 0


def test_each_object_is_of_its_own_table() -> None:
    rows = [(con_id << 32 | number, number % 2 == 1, 10 * con_id + number)
            for con_id in (2, 3) for number in range(5, 9)]  # fmt: skip
    lobs = as_table(**lob_objects(rows)._asdict())
    for con_id in (1, 2, 3, 4):
        for number in range(4, 10):
            is_known = con_id in (2, 3) and 5 <= number <= 8
            table = 10 * con_id + number if is_known else -1
            assert interpreted(is_lob_object)(lobs, con_id, number) == is_known
            assert interpreted(find_lob)(lobs, con_id, number, number % 2) == table
            assert interpreted(find_lob)(lobs, con_id, number, 1 - number % 2) == -1
            if is_known:
                assert interpreted(table_of_lob)(lobs, con_id, number) == table


def test_the_same_number_of_another_container_is_another_object() -> None:
    lobs = objects().lob_data
    assert interpreted(find_lob)(lobs, CON_ID + 1, SEGMENT, 0) == -1
    assert not interpreted(is_lob_object)(lobs, CON_ID + 1, SEGMENT)


@pytest.mark.parametrize(
    "owner",
    [direct_load_item(REDO, 1, XID, SEGMENT), logged_item(REDO, XID, TABLE, 4)],
    ids=["fpload", "suplog"],
)
def test_a_page_written_directly_is_of_whom_an_item_names(owner: bytes) -> None:
    page = [load_data_item(REDO, 5, 7), b"content"]
    common = kdli_common(REDO, 6, 0x20, 1)
    assert alone(OP_LOB_WRITE, [common, owner, *page]) == (1, PACKED, 0, [LobOp.PAGE])


def test_a_page_whose_items_name_another_object_is_passed() -> None:
    fields = [
        kdli_common(REDO, 6, 0x20, 1),
        direct_load_item(REDO, 1, XID, SEGMENT + 9),
        load_data_item(REDO, 5, 7),
        b"content",
    ]
    assert alone(OP_LOB_WRITE, fields) == (0, 0, -1, [])


def test_a_page_of_a_basicfile_names_no_transaction() -> None:
    fields = [long_field(REDO, SEGMENT, 5, 0, b"content"), b"\x28"]
    assert alone(OP_BLOCK_IMAGE, fields) == (1, 0, 0, [LobOp.PAGE])
    assert alone(OP_BLOCK_IMAGE, [long_field(REDO, INDEX, 5, 0, b"content"), b"\x28"])[0] == 0


def test_an_operation_names_its_table_and_transaction() -> None:
    fields = operation_fields(REDO, 1, XID, 5, column=4, table=TABLE, size=9)
    assert alone(OP_LOB_OPERATION, fields) == (1, PACKED, 0, [LobOp.OPERATION])
    other = operation_fields(REDO, 1, XID, 5, column=4, table=TABLE + 1, size=9)
    assert alone(OP_LOB_OPERATION, other) == (0, 0, -1, [])


# --- by hand, in both byte orders: redo-format §4.2, §6.3, §6.4 ---


def fields_of(order: str, fields: Sequence[bytes]) -> LobFields:
    starts = np.cumsum([0, *(len(data) for data in fields)])
    return LobFields(
        np.frombuffer(b"".join(fields) or b"\0", np.uint8), order == ">", 0x0180_0105, CON_ID,
        np.array([0, *starts[:-1]], np.int64), np.array([0, *map(len, fields)], np.int64),
        len(fields),
    )  # fmt: skip


def owner(order: str, op: int, *fields: bytes) -> tuple[int, int, int]:
    sink = LobSink(empty_pieces(4), empty_entries(8), np.zeros(STATE_SIZE, np.int64))
    return interpreted(lob_alone)(op, fields_of(order, fields), objects(), sink)


def xid_bytes(order: str) -> bytes:
    return struct.pack(order + "HHI", 10, 12, 572)


@pytest.mark.parametrize("order", ["<", ">"])
def test_the_table_and_transaction_of_an_operation(order: str) -> None:
    obj, xid = struct.pack(order + "I", TABLE), xid_bytes(order)
    begin = laid_out(80, (0, b"\x66"), (4, xid), (36, obj))
    end = laid_out(36, (0, xid), (8, obj))
    assert owner(order, OP_LOB_OPERATION, b"", b"\1", begin) == (1, PACKED, 0)
    assert owner(order, OP_LOB_OPERATION, b"", b"\3", end) == (1, PACKED, 0)
    for fields in (
        (b"", b"\1", begin[:39]),
        (b"", b"\3", end[:35]),
        (b"", b"", begin),
        (b"", b"\1"),
    ):
        assert owner(order, OP_LOB_OPERATION, *fields) == (0, 0, -1)


@pytest.mark.parametrize("order", ["<", ">"])
def test_the_owner_of_a_page_is_in_its_items(order: str) -> None:
    """fpload has the xid at 16 and objd at 24, suplog the xid at 4 and objn at 12."""

    def load(obj: int, xid: bytes) -> bytes:
        return laid_out(32, (0, b"\x0b"), (16, xid), (24, struct.pack(order + "I", obj)))

    def logged(obj: int, xid: bytes) -> bytes:
        return laid_out(24, (0, b"\x09"), (4, xid), (12, struct.pack(order + "I", obj)))

    xid, other, none = xid_bytes(order), struct.pack(order + "HHI", 9, 9, 9), bytes(8)
    common = laid_out(12)

    def found(*items: bytes) -> tuple[int, int]:
        return owner(order, OP_LOB_WRITE, common, *items)[1:]

    assert found(load(SEGMENT, xid)) == (PACKED, 0)
    assert found(logged(TABLE, xid)) == (PACKED, 0)
    assert found(load(SEGMENT, other), logged(4711, xid)) == (PACKED, 0)
    assert found(load(4711, other), logged(TABLE, xid)) == (PACKED, 0)
    assert found(load(4711, xid), logged(4711, xid)) == (0, -1)
    assert found(load(SEGMENT, none)) == (0, -1)
    assert found(load(INDEX, xid)) == (0, -1)
    assert found() == (0, -1)
    assert found(load(SEGMENT, xid)[:27], logged(TABLE, xid)[:23]) == (0, -1)


def test_a_page_that_is_cut_or_of_another_object_is_passed() -> None:
    page = laid_out(36, (0, struct.pack("<I", SEGMENT)), (4, bytes.fromhex("00000001")))
    assert owner("<", OP_BLOCK_IMAGE, page[:20]) == (0, 0, -1)
    assert owner("<", OP_BLOCK_IMAGE) == (0, 0, -1)
    assert owner("<", OP_BLOCK_IMAGE, struct.pack("<I", 4711) + page[4:]) == (0, 0, -1)


def pair(order: str, op: int, objn: int, objd: int, fields: Sequence[bytes]) -> tuple[int, int]:
    """What a vector behind its undo gives; the ktub of that has objn at 0 and objd at 4."""
    ktub = laid_out(24, (0, struct.pack(order + "II", objn, objd)))
    key = b"\x0a" + bytes.fromhex("00000001") + bytes(6) + b"\x04" + bytes(4)
    both = fields_of(order, [b"", ktub, b"", b"", key, *fields])
    undo = both._replace(fields=5)
    vector = both._replace(offset=both.offset[5:], length=both.length[5:], fields=len(fields))
    sink = LobSink(empty_pieces(4), empty_entries(8), np.zeros(STATE_SIZE, np.int64))
    by_number = objects()
    data = as_table(**lob_objects([
        (CON_ID << 32 | SEGMENT + 100, False, 0), (CON_ID << 32 | INDEX + 100, True, 0),
    ])._asdict())  # fmt: skip
    return interpreted(lob_pair)(op, vector, undo, by_number._replace(lob_data=data), sink)


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_change_of_a_page_is_of_the_object_that_its_undo_names(order: str) -> None:
    zero = laid_out(6, (0, b"\x05"), (2, bytes(4)))
    fields = [b"", laid_out(12), zero]
    assert pair(order, OP_LOB_REDO, SEGMENT, 1, fields) == (1, 0)
    assert pair(order, OP_LOB_REDO, 1, SEGMENT + 100, fields) == (1, 0)
    assert pair(order, OP_LOB_REDO, TABLE, 1, fields) == (1, 0)
    assert pair(order, OP_LOB_REDO, INDEX, INDEX + 100, fields) == (0, -1)
    assert pair(order, OP_LOB_REDO, SEGMENT, 1, fields[:1]) == (MALFORMED, 0)


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_row_of_an_index_is_of_the_index_that_its_undo_names(order: str) -> None:
    row = [b"", b"", bytes(32)]
    assert pair(order, OP_LEAF_DATA, INDEX, 1, row) == (1, 0)
    key = b"\x0a" + bytes.fromhex("00000001") + bytes(6) + b"\x04" + bytes(4)
    leaf = b"\1\1" + bytes(32) + key
    assert pair(order, 10 << 8 | 2, INDEX, 1, [b"", b"", key, bytes(32)]) == (1, 0)
    assert pair(order, 10 << 8 | 8, INDEX, 1, [b"", b"", b"", leaf]) == (1, 0)
    assert pair(order, OP_LEAF_DATA, 1, INDEX + 100, row) == (1, 0)
    assert pair(order, OP_LEAF_DATA, SEGMENT, SEGMENT + 100, row) == (0, -1)
    assert pair(order, OP_LEAF_DATA, TABLE, 1, row) == (0, -1)


def test_an_undo_record_without_its_ktub_is_malformed() -> None:
    sink = LobSink(empty_pieces(4), empty_entries(8), np.zeros(STATE_SIZE, np.int64))
    vector = fields_of("<", [b"", laid_out(12)])
    ktub = laid_out(24, (0, struct.pack("<I", SEGMENT)))
    for fields, expected in (([b"", ktub], (0, 0)), ([b"", ktub[:23]], (MALFORMED, -1)),
                             ([b""], (MALFORMED, -1))):  # fmt: skip
        undo = fields_of("<", fields)
        assert interpreted(lob_pair)(OP_LOB_REDO, vector, undo, objects(), sink) == expected
