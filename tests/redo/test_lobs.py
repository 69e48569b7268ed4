"""Whose LOB a vector of LOB storage is of: its segment, its table, its transaction."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

from olr_pg.kernels.compile import interpreted
from olr_pg.redo.batch import empty_entries, empty_pieces
from olr_pg.redo.column_tables import as_table
from olr_pg.redo.format.opcodes import OP_BLOCK_IMAGE, OP_LOB_OPERATION, OP_LOB_WRITE
from olr_pg.redo.lob_objects import lob_objects
from olr_pg.redo.lob_pieces import LobOp, LobSink
from olr_pg.redo.lobs import LobFields, find_lob, is_lob_object, lob_alone, table_of_lob
from olr_pg.redo.row_vectors import STATE_SIZE
from olr_pg.redo.walk import ObjectTables
from olr_pg.simulator.fields.lob_vectors import (
    direct_load_item,
    kdli_common,
    load_data_item,
    logged_item,
    long_field,
    operation_fields,
)
from olr_pg.simulator.fields.redo_format import RedoFormat

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
