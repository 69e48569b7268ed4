"""Fields of layer 11: the simulator's own, and those of real vectors by dump and by kernel.

Fields of layer 10, as the simulator writes them on its own terms.
"""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
import pytest

from olr_pg.dictionary.decoding_plan import build_row_plan
from olr_pg.redo.batch import EventKind
from olr_pg.redo.dump.vector_text import vector_lines
from olr_pg.redo.format.opcodes import (
    CFA,
    DRP,
    IRP,
    LAYER_ROW,
    LKR,
    QMD,
    QMI,
    URP,
    Opcode,
    RowOperation,
)
from olr_pg.redo.format.row_fields import (
    KDILK,
    KDILK_PURGE_TOO,
    KDILK_SUPPLEMENTAL,
    KDO,
    KDO_OPERATION,
    KDO_OPERATIONS,
    KDO_ROW_SCN,
    KTB_C,
    KTB_CLEANOUT,
    KTB_CLEANOUT_DATA,
    KTB_CLEANOUT_ENTRY,
    KTB_DATA,
    KTB_DATA_LONG,
    KTB_F,
    KTB_LONG,
    KTB_OPERATION,
    KTB_OPERATIONS,
    KTB_VER,
    LEAF,
    ROW,
)
from olr_pg.redo.record_view import Vector, records_of
from olr_pg.redo.walk import Objects
from olr_pg.redo.window import read_windows
from olr_pg.simulator.fields.redo_format import (
    COMPATIBLE,
    CleanedEntry,
    RedoFormat,
    block_cleanout,
    index_row,
    kdilk,
    ktb_continue,
    ktb_first,
)
from olr_pg.simulator.fields.row_fields import (
    DEPENDENCIES,
    ColumnChange,
    KdoBase,
    RowAddress,
    RowPiece,
    delete_kdo,
    forward_kdo,
    insert_kdo,
    lock_kdo,
    multi_kdo,
    packed_row,
    update_kdo,
)
from tests.redo.chain import whole_log
from tests.vectors.redo_cases import Case, load_cases, log_of, tables_of

BASE: Final = KdoBase(dba=0x01800083, segment=0x01800082, max_row=4858, itli=2)
PIECE: Final = RowPiece(0x08, (b"a", None), nrid=RowAddress(21, 22), hrid=RowAddress(23, 24))
CASES: Final = load_cases()
BOTH: Final = pytest.mark.parametrize("big", [False, True])


def written(redo: RedoFormat, op: int) -> bytes:
    """KDO of an operation on slot 7."""
    change = ColumnChange(0x2C, 9, (1, 3), (b"x", None), -5)
    makers = {
        IRP: lambda: insert_kdo(redo, BASE, op, PIECE, 7, 1),
        DRP: lambda: delete_kdo(redo, BASE, op, 7),
        LKR: lambda: lock_kdo(redo, BASE, op, 7, 1),
        URP: lambda: update_kdo(redo, BASE, op, change, 7, 1),
        CFA: lambda: forward_kdo(redo, BASE, op, 7, RowAddress(21, 22), 1),
    }
    return makers[op]()


@BOTH
@pytest.mark.parametrize("op", [IRP, DRP, LKR, URP, CFA])
def test_row_operations(op: int, big: bool) -> None:
    data = written(RedoFormat(big_endian=big), op)
    assert KDO.number(data, "op", big=big) & KDO_OPERATION == op
    assert KDO.number(data, "bdba", big=big) == 0x01800083
    assert KDO.number(data, "itli", big=big) == 2
    known = KDO_OPERATIONS[RowOperation(op)]
    assert known.number(data, "slot", big=big) == 7
    names = {one.name: known.number(data, one.name, big=big) for one in known.members}
    rids = {one.name: data[one.at : one.end] for one in known.members if one.kind == "rid"}
    order: Any = "big" if big else "little"
    nrid = (21).to_bytes(4, order) + (22).to_bytes(2, order)
    if op == IRP:
        assert (names["fb"], names["cc"], names["size/delt"]) == (0x08, 2, PIECE.size)
        assert rids == {"nrid": nrid, "hrid": (23).to_bytes(4, order) + (24).to_bytes(2, order)}
        assert data[known.at("nulls")] == 0b10
    elif op == URP:
        assert (names["fb"], names["ncol"], names["nnew"]) == (0x2C, 9, 2)
        assert data[known.at("nulls")] == 0b10
    elif op == CFA:
        assert rids == {"nrid": nrid}


@BOTH
def test_operations_on_several_rows(big: bool) -> None:
    redo = RedoFormat(big_endian=big)
    for op in (QMI, QMD):
        data = multi_kdo(redo, BASE, op, [5, 6, 7], 1)
        known = KDO_OPERATIONS[RowOperation(op)]
        assert known.number(data, "nrow", big=big) == 3
        at = known.at("slots")
        assert data[at : at + 6] == redo.pack("3H", 5, 6, 7)
    row = packed_row(redo, RowPiece(0x2C, (b"abc", None)), 1)
    assert [ROW.number(row, one.name, big=big) for one in ROW.members] == [0x2C, 1, 2]
    assert row[ROW.size :] == b"\3abc\xff"


def test_tables_whose_rows_have_an_scn() -> None:
    data = delete_kdo(RedoFormat(), KdoBase(1, 2, 3, 4, DEPENDENCIES), DRP, 7)
    assert KDO.number(data, "op", big=False) == DRP | KDO_ROW_SCN


@BOTH
@pytest.mark.parametrize("version", ["11.2", "19"])
def test_the_entry_in_the_block(version: str, big: bool) -> None:
    redo = RedoFormat(COMPATIBLE[version], big_endian=big)
    xid, uba = redo.xid(1, 2, 3), redo.uba(4, 5, 6)
    cleanout = block_cleanout(redo, 0x99, [CleanedEntry(1, 0x98), CleanedEntry(2, 0x97)])
    for op, data in (
        (KTB_F, ktb_first(redo, xid, uba, cleanout)),
        (KTB_C, ktb_continue(redo, uba, cleanout)),
    ):
        assert data[0] == op | KTB_CLEANOUT
        assert data[0] & KTB_OPERATION == op
        own = data[KTB_DATA_LONG if data[KTB_VER] & KTB_LONG else KTB_DATA :]
        known = KTB_OPERATIONS[op]
        assert own[known.at("uba") : known.end("uba")] == uba
        if op == KTB_F:
            assert own[known.at("xid") : known.end("xid")] == xid
        assert KTB_CLEANOUT_DATA.number(own, "entries", big=big) == 2
        entries = own[KTB_CLEANOUT_DATA.size :]
        assert (entries[0], entries[KTB_CLEANOUT_ENTRY]) == (1, 2)


def told(vector: Vector, name: str, layout: Any) -> int:
    """A number that a dump writes of a vector."""
    text = "\n".join(vector_lines(vector, layout))
    found = re.search(rf"\b{name}: (0x[0-9a-f]+|\d+)", text)
    assert found is not None, text
    return int(found[1], 0)


@pytest.mark.parametrize("case", [case for _, case in CASES], ids=[name for name, _ in CASES])
def test_dump_and_kernel_agree_on_real_vectors(case: Case) -> None:
    log, _ = log_of(case)
    plan = build_row_plan(*tables_of(case))
    batch, _ = whole_log(log, Objects(plan.object_key, plan.object_table, plan.cluster_columns))
    first = np.cumsum(batch.events.piece_count) - batch.events.piece_count
    found = {
        int(batch.events.block[event]): int(first[event])
        for event in np.flatnonzero(batch.events.kind == EventKind.CHANGE).tolist()
    }
    layout = log.header.layout
    for window in read_windows(log):
        for record in records_of(window):
            pair = [one for one in record.vectors if one.opcode >> 8 == LAYER_ROW]
            if record.block not in found or len(pair) != 1 or (pair[0].opcode & 0xFF) not in (
                IRP, DRP, LKR, URP, CFA,
            ):  # fmt: skip
                continue
            piece = found[record.block]
            undo = next(one for one in record.vectors if one.opcode == Opcode.UNDO)
            assert told(pair[0], "bdba", layout) == batch.pieces.bdba[piece]
            assert told(pair[0], "slot", layout) == batch.pieces.slot[piece]
            event = int(np.searchsorted(first, piece, "right")) - 1
            assert told(undo, "objd", layout) == batch.events.dataobj[event]
            assert told(undo, "rci", layout) == batch.events.rci[event]
            assert told(undo, "prev dba", layout) == batch.events.prev_dba[event]


@pytest.mark.parametrize("big", [False, True])
def test_a_leaf_row_and_its_undo(big: bool) -> None:
    redo = RedoFormat(big_endian=big)
    row = index_row(redo, 2, 345, 17)
    assert [LEAF.number(row, one.name, big=big) for one in LEAF.members] == [2, 0, 345, 17]
    assert len(row) == LEAF.size
    undo = kdilk(redo, KDILK_PURGE_TOO, 2, 0x0180_0101, 0x0180_0104, logs=True)
    names = ("code", "itl", "indexid", "block", "sdc")
    found = [KDILK.number(undo, name, big=big) for name in names]
    assert found == [KDILK_PURGE_TOO, 2, 0x0180_0101, 0x0180_0104, 0x7FFE]
    assert KDILK.number(undo, "flags", big=big) & KDILK_SUPPLEMENTAL
    assert len(undo) == KDILK.size
