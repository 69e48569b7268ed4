"""Records read one by one: their fields, and the transactions and objects that vectors name."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from olr_pg.redo.record_view import (
    Fields,
    same_transaction,
    scn_text,
    u16_list,
    vector_objects,
    vector_xids,
)
from olr_pg.scalars import SCN_NONE, pack_xid
from tests.lobs.lob_redo import LOB_OBJ, TABLE_OBJ, LobRedo
from tests.redo.hand_made import records
from tests.redo.log_builder import LogBuilder, all_records, open_log

if TYPE_CHECKING:
    from pathlib import Path


def test_fields_count_from_one_and_what_is_not_there_is_empty() -> None:
    fields = Fields(b"..\x01\x02\x03\x04.", (2, 4), (2, 2), big=False)
    assert (fields.count, fields.size(2), fields.size(3)) == (2, 2, 0)
    assert fields.bytes(1) == b"\x01\x02"
    assert fields.bytes(3) == b""
    assert fields.number(2, 0, 2) == 0x0403
    assert fields.number(2, 1, 2) == 0
    assert Fields(fields.data, (2,), (4,), big=True).numbers(1) == [0x0102, 0x0304]
    assert u16_list(b"\1\0\2", big=False) == [1]


def test_vectors_name_their_transaction_and_their_objects(tmp_path: Path) -> None:
    redo = LobRedo(segment=3)
    redo.begin()
    redo.insert_row(b"\xc1\x02")
    redo.undo_insert(0, 1)
    redo.direct_page(2, 1, 0x01800200, b"x")
    redo.operation(1, 2, 1, 5)
    redo.end()
    begin, insert, undone, page, operation, end = records(redo, tmp_path)
    xid = {pack_xid(3, 0, redo.sequence)}
    for record in (begin, end, page, operation):
        assert vector_xids(record.vectors[0]) == xid
    assert vector_xids(insert.vectors[0]) == xid
    assert vector_xids(undone.vectors[1]) == {pack_xid(3, 0, 0)}
    assert TABLE_OBJ in vector_objects(insert.vectors[0])
    assert TABLE_OBJ in vector_objects(insert.vectors[1])
    assert vector_objects(page.vectors[0]) == {LOB_OBJ[2]}
    assert TABLE_OBJ in vector_objects(operation.vectors[0])
    assert [vector.name for vector in insert.vectors] == ["5.1", "11.2"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ((1, 2, 3), (1, 2, 3), True),
        ((1, 2, 3), (1, 2, 4), False),
        ((1, 2, 3), (1, 2, 0), True),
        ((1, 0x102, 3), (1, 2, 0), True),
        ((1, 2, 3), (2, 2, 0), False),
    ],
)
def test_what_is_not_told_of_an_xid_does_not_part_two(
    one: tuple[int, int, int], other: tuple[int, int, int], same: bool
) -> None:
    assert same_transaction(pack_xid(*one), pack_xid(*other)) is same


def test_a_malformed_record_bears_its_fault_and_its_neighbours_do_not() -> None:
    sound = struct.pack("<IBBHIHHIHH", 24, 1, 0, 0, 7, 1, 0, 0, 0, 0)
    broken = struct.pack("<IBBHIHHIHH", 44, 1, 0, 0, 7, 1, 0, 0, 0, 0) + bytes(20)
    builder = LogBuilder()
    builder.add_group([[sound, broken, sound]], 7)
    found = all_records(open_log(builder.build()))
    assert [record.fault is not None for record in found] == [False, True, False]
    assert found[1].vectors == ()


def test_an_scn_is_written_in_hexadecimal() -> None:
    assert scn_text(0x1234) == "0x0000000000001234"
    assert scn_text(SCN_NONE) == "none"
