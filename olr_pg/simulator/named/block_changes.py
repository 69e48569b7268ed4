"""A change of a block: its undo, its redo, and what a rollback needs of it.

The rules are those of `simulator.writer.transaction_writer`, for arrays. Facts: redo-format §4.6,
§4.8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.kernels.compile import part
from olr_pg.simulator.fields.block_layout import VLD_VALID
from olr_pg.simulator.fields.vector_fields import KTUB_BEGIN, TYP_DELAYED, TYP_NORMAL
from olr_pg.simulator.named import instance_memory as at
from olr_pg.simulator.named.instance_memory import REDO, UNDO
from olr_pg.simulator.named.itls import add_redo_ktb, add_undo_ktb, claim, touch_block
from olr_pg.simulator.named.put import copy
from olr_pg.simulator.named.records import (
    add_ready_vector,
    add_vector,
    begin_record,
    emit,
    open_area,
)
from olr_pg.simulator.named.undo import open_transaction, put_undo

if TYPE_CHECKING:
    from olr_pg.simulator.named.put import Bytes, Ints

OPC_ROW: Final = 0x0B01
OPC_INDEX: Final = 0x0A16


@part
def start_change(m: Ints, d: Bytes, blocks: Ints, session: int) -> None:
    """Begin a record and a change of block K_BLOCK; area UNDO then has its KTB redo."""
    if m[at.S_TRANSACTION + session] < 0:
        open_transaction(m, session)
    begin_record(m, m[at.S_THREAD + session], 0)
    claim(m, blocks, m[at.K_BLOCK], session)
    open_area(m, UNDO)
    add_undo_ktb(m, d)


@part
def write_undo(m: Ints, d: Bytes, session: int, opc: int) -> None:
    """Write the undo record of the change; area REDO then has the KTB redo."""
    put_undo(m, d, session, m[at.K_OBJ], m[at.K_DATAOBJ], opc)
    open_area(m, REDO)
    add_redo_ktb(m, d, session)


@part
def write_redo(
    m: Ints, d: Bytes, blocks: Ints, session: int, opc: int, opcode: int, undone_by: int
) -> int:
    """Write the redo vector of the change with area REDO, and end its record.

    Returns the undo entry to fill in with what takes the change back, −1 where it cannot be.
    """
    block = m[at.K_BLOCK]
    typ = TYP_DELAYED if m[at.CLEANED] else TYP_NORMAL
    touch_block(m, blocks, block, m[at.K_DATAOBJ], typ)
    add_vector(m, d, opcode, REDO, -1)
    entry = at.B_ITL + (m[at.CLAIM_ITLI] - 1) * at.ITL_INTS
    blocks[block, entry + at.I_TRANSACTION] = m[at.S_TRANSACTION + session]
    blocks[block, entry + at.I_XID] = m[at.S_XID + session]
    blocks[block, entry + at.I_UBA] = m[at.CHANGE_UBA]
    blocks[block, entry + at.I_CLEANED] = 0
    if m[at.CHANGE_BEGINS]:
        sequence = m[at.T_SEQUENCE + m[at.RECORD_THREAD]]
        full = m[at.S_ANNOUNCED + session] != sequence
        m[at.S_ANNOUNCED + session] = sequence
        start = m[(at.S_FULL_AT if full else at.S_BRIEF_AT) + session]
        add_ready_vector(m, d, start, m[(at.S_FULL_SIZE if full else at.S_BRIEF_SIZE) + session])
    emit(m, d, VLD_VALID)
    return _remember(m, d, session, opc, undone_by)


@part
def _remember(m: Ints, d: Bytes, session: int, opc: int, undone_by: int) -> int:
    """Keep the undo record for a rollback; −1 and never again where there is no room."""
    number, count = m[at.S_ENTRIES + session], m[at.AREA_COUNT + UNDO]
    size = m[at.AREA_END + UNDO] - m[at.AREA_AT + UNDO]
    ints, end = m[at.S_INTS_END + session], m[at.S_UNDO_END + session]
    if (
        m[at.S_OVERFLOW + session]
        or number >= at.ENTRIES
        or end + size > at.UNDO_BYTES
        or ints + count + at.MANY_MAX + at.COLUMNS_MAX * 2 > at.UNDO_INTS
    ):
        m[at.S_OVERFLOW + session] = 1
        return -1
    e = session * at.ENTRIES + number
    m[at.E_UNDO_BLOCK + e] = m[at.CHANGE_UNDO_BLOCK]
    m[at.E_REC + e] = m[at.CHANGE_REC]
    m[at.E_RCI + e] = m[at.CHANGE_RCI]
    m[at.E_PREV_DBA + e] = m[at.CHANGE_PREV_DBA]
    m[at.E_OBJ + e] = m[at.K_OBJ]
    m[at.E_DATAOBJ + e] = m[at.K_DATAOBJ]
    m[at.E_OPC + e] = opc
    m[at.E_FLG + e] = KTUB_BEGIN if m[at.CHANGE_BEGINS] else 0
    m[at.E_WRP + e] = m[at.CHANGE_WRP]
    m[at.E_CODE + e] = undone_by
    m[at.E_BLOCK + e] = m[at.K_BLOCK]
    m[at.E_ITLI + e] = m[at.CLAIM_ITLI]
    m[at.E_FRESH + e] = m[at.CLAIM_FRESH]
    m[at.E_BEFORE + 3 * e] = m[at.CLAIM_TRANSACTION]
    m[at.E_BEFORE + 3 * e + 1] = m[at.CLAIM_XID]
    m[at.E_BEFORE + 3 * e + 2] = m[at.CLAIM_UBA]
    m[at.E_REVERT + e] = at.ACT_NOTHING
    m[at.E_JOURNAL + e] = m[at.S_JOURNAL_END + session]
    m[at.E_CHANGES + e] = m[at.S_CHANGES + session]
    m[at.E_BYTES + e] = end
    m[at.E_INTS + e] = ints
    m[at.E_FIELDS + e] = count
    copy(d, undo_bytes_at(m, session) + end, m[at.AREA_AT + UNDO], size)
    for i in range(count):
        m[at.INTS + session * at.UNDO_INTS + ints + i] = m[at.AREA_SIZES + i]
    m[at.S_UNDO_END + session] = end + size
    m[at.S_INTS_END + session] = ints + count
    m[at.S_ENTRIES + session] = number + 1
    return int(e)


@part
def undo_bytes_at(m: Ints, session: int) -> int:
    """Return where the saved undo payload of a session begins."""
    return int(m[at.UNDO_AT] + session * at.UNDO_BYTES)
