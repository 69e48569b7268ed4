"""Real direct-path block images (19.1) of the shared vectors give their rows."""

from __future__ import annotations

import copy
import struct
from typing import Any

import numpy as np
import pytest

from olr_pg.dictionary.decoding_plan import RowPlan, build_row_plan
from olr_pg.dictionary.model import Column, Table
from olr_pg.kernels.compile import interpreted
from olr_pg.redo import direct
from olr_pg.redo.batch import EventKind, Role, empty_entries, empty_pieces
from olr_pg.redo.events import names_no_transaction
from olr_pg.redo.format.opcodes import QMI
from olr_pg.redo.pieces import ChangeStatus
from olr_pg.redo.row_vectors import ENTRIES, FULL, PIECES, STATE_SIZE
from olr_pg.redo.walk import Objects, RowScn
from olr_pg.scalars import format_rowid
from olr_pg.transactions.assembler import Assembler
from olr_pg.transactions.finished_columns import DmlKind
from olr_pg.transactions.left_out import spelled_out
from tests.redo.chain import clear, whole_log
from tests.redo.hand_made import block
from tests.vectors.redo_cases import Case, closed, load_cases, log_of

CASES = [(name, case) for name, case in load_cases() if case["kind"] == "direct-load-data"]
IDS = [name for name, _ in CASES]
COLUMNS = tuple(Column(f"C{n}", n, n, n, 23, 4000) for n in range(1, 10))


def with_transaction(case: Case) -> Case:
    """The case with the 24.6 that stands beside a 19.1 in a log (the vector comes without)."""
    big = case["format"]["endian"] == "big"
    order = ">" if big else "<"
    header = bytearray(case["format"]["vector_header_size"])
    header[:2] = bytes((24, 6))
    header[21] = 6
    field = bytes(8) + struct.pack(order + "HHI", 5, 9, 77)
    listed = struct.pack(order + "HH", 4, len(field))
    changed = copy.deepcopy(case)
    changed["records"][0]["hex"] += (bytes(header) + listed + field).hex()
    return changed


def plan_of(facts: Case) -> tuple[Table, RowPlan, Objects]:
    table = Table("T", "T", facts["object_id"], facts["object_id"], COLUMNS)
    plan = build_row_plan([table], facts["container_id"])
    objects = Objects(
        plan.object_key,
        plan.object_table,
        plan.cluster_columns,
        data_key=plan.data_key,
        data_table=plan.data_table,
    )
    return table, plan, objects


@pytest.mark.parametrize(("name", "case"), CASES, ids=IDS)
def test_the_rows_of_a_block(name: str, case: Case) -> None:
    facts = case["expected"][0]["derived"]
    table, plan, objects = plan_of(facts)
    log, _ = log_of(with_transaction(case))
    batch, tally = whole_log(log, objects)
    finished = Assembler(plan, [table], is_split=False).feed(closed(batch))
    assert finished is not None
    dml = spelled_out(finished.dml, plan.column_first)

    assert tally.changes == 1
    assert dml.kind.tolist() == [DmlKind.INSERT] * facts["rows_in_block"]
    for number, row in enumerate(facts["rows"]):
        place = int(dml.dataobj[number]), int(dml.bdba[number]), int(dml.slot[number])
        assert format_rowid(*place) == row["rowid"]
        entries = range(int(dml.entry_first[number]), int(dml.entry_first[number + 1]))
        values = {
            str(int(dml.values.column[entry]) + 1): dml.data[
                int(dml.values.offset[entry]) : int(
                    dml.values.offset[entry] + dml.values.length[entry]
                )
            ]
            .tobytes()
            .hex()
            for entry in entries
            if dml.values.length[entry] >= 0
        }
        assert values == {key: value for key, value in row["columns"].items() if value}


@pytest.mark.parametrize(("name", "case"), CASES, ids=IDS)
def test_a_block_without_its_transaction_is_refused(name: str, case: Case) -> None:
    _, _, objects = plan_of(case["expected"][0]["derived"])
    log, _ = log_of(case)
    batch, tally = whole_log(log, objects)
    assert batch.events.kind.tolist() == [EventKind.BEGIN, EventKind.UNDECODED, EventKind.COMMIT]
    assert batch.events.table.tolist() == [-1, 0, -1]
    assert batch.events.session[1] == ChangeStatus.NO_TRANSACTION
    assert [names_no_transaction(int(xid)) for xid in batch.events.xid] == [True] * 3
    assert (batch.pieces.size, batch.entries.size) == (0, 0)
    assert (tally.row_vectors, tally.changes, tally.named, tally.told) == (1, 1, 1, 1)


@pytest.mark.parametrize(("name", "case"), CASES, ids=IDS)
def test_a_block_of_another_container_than_its_transaction_is_refused(
    name: str, case: Case
) -> None:
    """The 24.6 beside it tells the container, too."""
    _, _, objects = plan_of(case["expected"][0]["derived"])
    if case["format"]["vector_header_size"] < 32:
        return  # no vector tells a container
    both = with_transaction(case)
    vectors = bytearray.fromhex(both["records"][0]["hex"])
    at = vectors.index(b"\x13\x01") + 24
    marked = vectors.rindex(b"\x18\x06") + 24
    vectors[marked : marked + 2] = vectors[at : at + 2]
    for bit in (0, 1, 7, 8):
        changed = bytearray(vectors)
        changed[at + bit // 8] ^= 1 << bit % 8
        both["records"][0]["hex"] = changed.hex()
        batch, tally = whole_log(log_of(both)[0], objects)
        kinds = [EventKind.BEGIN, EventKind.UNDECODED, EventKind.COMMIT]
        assert batch.events.kind.tolist() == kinds
        assert batch.events.session[1] == ChangeStatus.CONTRADICTION
        assert {names_no_transaction(int(xid)) for xid in batch.events.xid} == {True}
        assert (tally.row_vectors, tally.changes, tally.named, tally.told) == (1, 1, 0, 0)


@pytest.mark.parametrize(("typ", "obj"), [(1, 72_726), (2, -1)], ids=["table", "index"])
def test_a_block_image_names_its_data_object(typ: int, obj: int) -> None:
    data = np.frombuffer(struct.pack("<B3xI16x", typ, 72_726), np.uint8)
    assert interpreted(direct.block_object)(data, 0, 24, False) == obj
    assert interpreted(direct.block_object)(data, 0, 23, False) == -1


@pytest.mark.parametrize(("assm", "more"), [(0, 0), (0x20, 8)])
def test_the_data_header_is_behind_the_transaction_list(assm: int, more: int) -> None:
    header = 24 + 3 * 24 + more
    data = np.zeros(header + 40, np.uint8)
    data[16], data[18], data[header + 1], data[header + 6] = 3, assm, 1, 18
    at = interpreted(direct._data_header)(data, 0, data.size, False)
    assert at == header
    assert interpreted(direct._data_header)(data, 0, header, False) == -1
    # Of another number of tables, of a compressed table, or with a directory of another length.
    for at, value in ((1, 0), (1, 2), (0, 0x40), (0, 0xFF), (6, 0), (6, 20), (2, 1), (7, 1)):
        changed = data.copy()
        changed[header + at] = value
        assert interpreted(direct._data_header)(changed, 0, data.size, False) == -1, (at, value)
    data[header], data[header + 2], data[header + 6] = 0xBF, 2, 22
    assert interpreted(direct._data_header)(data, 0, data.size, False) == header


def taken(
    image: bytes, order: str = "<", room: int = 9, row_scn: int = 8, has: RowScn = RowScn.NONE
) -> tuple[int, list[Any], list[tuple[int, int, bytes | None]], bool]:
    """(status, pieces, (role, column, bytes) of the values, whether more room is wanted)."""
    data = b"\xee\xee" + image
    rows, entries, state = empty_pieces(room), empty_entries(9), np.zeros(STATE_SIZE, np.int64)
    clear(rows)
    clear(entries)
    state[PIECES] = state[ENTRIES] = 1
    status = interpreted(direct.block_rows)(
        np.frombuffer(data + bytes(8), np.uint8), 2, len(image), BLOCK, order == ">", row_scn, has,
        rows, entries, state,
    )  # fmt: skip
    values = [
        (int(one.role), int(one.segcol),
         None if one.length < 0 else data[one.offset : one.offset + one.length])
        for one in entries[1 : state[ENTRIES]]
    ]  # fmt: skip
    return status, [rows[i] for i in range(1, state[PIECES])], values, bool(state[FULL])


WHOLE, GONE = 0x2C, 0x3C
BLOCK = (6 << 22) + 131


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("flags", [0x02, 0x22])
def test_each_row_that_is_not_deleted_is_inserted_at_its_place(order: str, flags: int) -> None:
    long = b"\xfe" + struct.pack(order + "H", 300) + b"x" * 300
    rows = [bytes([WHOLE, 1, 2]) + b"\2ab\xff", bytes([GONE, 1, 9]), bytes([WHOLE, 1, 1]) + long]
    status, pieces, values, is_full = taken(block(order, rows, flags=flags), order)
    assert (status, is_full) == (ChangeStatus.OK, False)
    assert values == [(Role.AFTER, 1, b"ab"), (Role.AFTER, 2, None), (Role.AFTER, 1, b"x" * 300)]
    assert [(one.row_flags, one.slot, one.entry_count) for one in pieces] == [
        (WHOLE, 0, 2), (WHOLE, 2, 1),
    ]  # fmt: skip
    for one in pieces:
        assert (one.op, one.bdba, one.head_bdba, one.head_slot) == (QMI, BLOCK, BLOCK, one.slot)
    for room, kept, told in ((3, 2, False), (2, 1, True), (1, 0, True)):
        status, pieces, _, is_full = taken(block(order, rows, flags=flags), order, room)
        assert (status, len(pieces), is_full) == (ChangeStatus.OK, kept, told)


def test_rows_that_do_not_fit_their_block_or_stand_in_several_pieces() -> None:
    empty, one = bytes([WHOLE, 1, 0]), bytes([WHOLE, 1, 1]) + b"\2ab"
    fine, short, refused = ChangeStatus.OK, ChangeStatus.ROWS, ChangeStatus.OPERATION
    for image, status, count in (
        (block("<", []), fine, 0),
        (block("<", [])[:-1], short, 0),
        (block("<", [], 1), short, 0),
        (block("<", [empty]), fine, 1),
        (block("<", [empty])[:-1], short, 0),
        (block("<", [bytes([GONE, 1, 0])])[:-1], short, 0),
        (block("<", [one]), fine, 1),
        (block("<", [one])[:-1], short, 0),
        (block("<", [empty, one])[:-1], short, 1),
        # Places that all are the directory's own, where 0x12 is the flags of a row that is gone.
        (block("<", [], 2) + b"\x12\0" * 2, fine, 0),
        (block("<", [], 2) + b"\x12\0\x12", short, 0),
        *(
            (block("<", [bytes([flags, 1, 0])]), refused, 0)
            for flags in (0x0C, 0x24, 0x28, 0, 4, 0x2D, 0x2E, 0x6C, 0xAC)
        ),
        # A value has no length of 0, which is a reference in compressed blocks.
        (block("<", [bytes([WHOLE, 1, 1]) + b"\0"]), short, 0),
    ):
        found = taken(image)
        assert (found[0], len(found[1])) == (status, count), image
