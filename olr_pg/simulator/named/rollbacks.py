"""Taking changes back, the newest first.

The rules are those of `simulator.writer.transaction_writer`, for arrays. Facts: redo-format §4.5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.kernels.compile import part
from olr_pg.simulator.fields.block_layout import VLD_VALID
from olr_pg.simulator.fields.vector_fields import KTUB_DONE, TYP_NORMAL
from olr_pg.simulator.named import instance_memory as at
from olr_pg.simulator.named.block_changes import undo_bytes_at
from olr_pg.simulator.named.instance_memory import OTHER, UNDO
from olr_pg.simulator.named.itls import touch_block
from olr_pg.simulator.named.put import copy, put16, put32, put_xid
from olr_pg.simulator.named.records import (
    add_field,
    add_marker,
    add_vector,
    begin_record,
    emit,
    open_area,
)
from olr_pg.simulator.named.undo import put_ktub, touch_undo

if TYPE_CHECKING:
    from olr_pg.simulator.named.put import Bytes, Ints

_OP_APPLIED: Final = 0x0506
_OP_APPLIED_FIRST: Final = 0x050B
OP_MARKER: Final = 0x1804


@part
def _load_payload(m: Ints, d: Bytes, session: int, e: int) -> None:
    """Load the saved payload of an undo entry into area UNDO."""
    open_area(m, UNDO)
    start = undo_bytes_at(m, session) + m[at.E_BYTES + e]
    total, count = 0, m[at.E_FIELDS + e]
    for i in range(count):
        size = m[at.INTS + session * at.UNDO_INTS + m[at.E_INTS + e] + i]
        m[at.AREA_SIZES + i] = size
        total += size + 3 & ~3
    copy(d, m[at.AREA_AT + UNDO], start, total)
    m[at.AREA_COUNT + UNDO] = count
    m[at.AREA_END + UNDO] = m[at.AREA_AT + UNDO] + total


@part
def _revert_row(m: Ints, rows: Ints, cells: Ints, session: int, e: int) -> None:
    """Take a change back in the model's rows."""
    kind, row, count = m[at.E_REVERT + e], m[at.E_ROW + e], m[at.E_COUNT + e]
    if kind == at.ACT_NOTHING:
        return
    rows[row, at.R_OWNER] = m[at.E_OWNER + e]
    if kind == at.CHANGE_DELETE:
        rows[row, at.R_STATE] = at.LIVE
    elif kind == at.CHANGE_UPDATE:
        old = at.INTS + session * at.UNDO_INTS + m[at.E_OLD + e]
        for i in range(count):
            cells[rows[row, at.R_CELLS] + m[old + 2 * i]] = m[old + 2 * i + 1]
    else:
        for i in range(count):
            rows[row + i, at.R_STATE] = at.DEAD


@part
def _undo_newest(m: Ints, d: Bytes, blocks: Ints, rows: Ints, cells: Ints, session: int) -> None:
    """Apply the newest undo record of a session's transaction (redo-format §4.5)."""
    number = m[at.S_ENTRIES + session] - 1
    e = session * at.ENTRIES + number
    m[at.S_ENTRIES + session] = number
    block, code = m[at.E_BLOCK + e], m[at.E_CODE + e]
    begin_record(m, m[at.S_THREAD + session], 0)
    if code >= 0:
        _load_payload(m, d, session, e)
        if code >> 8 == 11:
            ktb = m[at.AREA_SIZES] + 3 & ~3
            kdo = m[at.AREA_AT + UNDO] + ktb
            d[kdo + 11] = d[kdo + 11] & 0xFC | 2
        else:
            itl = d[m[at.AREA_AT + UNDO] + (m[at.AREA_SIZES] + 3 & ~3) + 1]
            m[at.AREA_COUNT + UNDO] = 1
            m[at.AREA_END + UNDO] = m[at.AREA_AT + UNDO] + (m[at.AREA_SIZES] + 3 & ~3)
            d[add_field(m, d, UNDO, 6)] = itl
        touch_block(m, blocks, block, m[at.E_DATAOBJ + e], TYP_NORMAL)
        add_vector(m, d, code, UNDO, -1)
    open_area(m, OTHER)
    p = add_field(m, d, OTHER, 28)
    put_ktub(
        m, d, p, m[at.E_OBJ + e], m[at.E_DATAOBJ + e], m[at.E_OPC + e], m[at.E_PREV_DBA + e],
        m[at.S_SLOT + session], m[at.E_RCI + e], m[at.E_FLG + e] | KTUB_DONE, m[at.E_WRP + e],
    )  # fmt: skip
    p = add_field(m, d, OTHER, 8)
    count = m[at.U_COUNT + session * at.RING + m[at.E_UNDO_BLOCK + e]]
    put16(m, d, p, 8152 - count * 16)
    put16(m, d, p + 4, 2)
    in_block = m[at.E_RCI + e] != 0
    touch_undo(m, session, m[at.E_UNDO_BLOCK + e] if in_block else -1, False)
    add_vector(m, d, _OP_APPLIED if in_block else _OP_APPLIED_FIRST, OTHER, -1)
    emit(m, d, VLD_VALID)
    entry = at.B_ITL + (m[at.E_ITLI + e] - 1) * at.ITL_INTS
    blocks[block, entry + at.I_TRANSACTION] = m[at.E_BEFORE + 3 * e]
    blocks[block, entry + at.I_XID] = m[at.E_BEFORE + 3 * e + 1]
    blocks[block, entry + at.I_UBA] = m[at.E_BEFORE + 3 * e + 2]
    blocks[block, entry + at.I_CLEANED] = m[at.E_FRESH + e]
    _revert_row(m, rows, cells, session, e)
    m[at.S_JOURNAL_END + session] = m[at.E_JOURNAL + e]
    m[at.S_CHANGES + session] = m[at.E_CHANGES + e]
    m[at.S_UNDO_END + session] = m[at.E_BYTES + e]
    m[at.S_INTS_END + session] = m[at.E_INTS + e]
    m[at.S_RCI + session] = 0
    if number:
        m[at.S_RCI + session] = m[at.E_REC + e - 1]
        m[at.S_UNDO_BLOCK + session] = m[at.E_UNDO_BLOCK + e - 1]


@part
def take_back(
    m: Ints, d: Bytes, blocks: Ints, rows: Ints, cells: Ints, session: int, mark: int, whole: bool
) -> None:
    """Take back the newest changes down to `mark` undo records; a marker announces a `whole` one.

    The transaction must not have overflowed its saved undo.
    """
    if whole:
        begin_record(m, m[at.S_THREAD + session], 0)
        open_area(m, OTHER)
        p = add_field(m, d, OTHER, 16)
        put32(m, d, p, 9000)
        put_xid(m, d, p + 4, m[at.S_XID + session])
        put16(m, d, p + 12, 0x71)
        put16(m, d, p + 14, 0x0B)
        add_field(m, d, OTHER, 0)
        add_marker(m, d, OP_MARKER, OTHER)
        emit(m, d, VLD_VALID)
    while m[at.S_ENTRIES + session] > mark:
        _undo_newest(m, d, blocks, rows, cells, session)
