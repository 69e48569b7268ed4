"""Undo blocks and undo records: where they go, and their vectors.

The rules are those of `simulator.writer.transaction_writer`, for arrays. Facts: redo-format
§4.0–§4.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.kernels.compile import part
from olr_pg.simulator.fields.vector_fields import (
    KTUB_BEGIN,
    NO_OBJECT,
    TYP_NEW,
    TYP_NORMAL,
    UNDO_BEGIN,
    UNDO_NEW_BLOCK,
    UNDO_REGULAR,
)
from olr_pg.simulator.model.storage import UNDO_RECORDS_MAX, UNDO_SPACE
from olr_pg.simulator.named import instance_memory as at
from olr_pg.simulator.named.instance_memory import OTHER, UNDO
from olr_pg.simulator.named.put import pack_uba, put16, put32, put_scn8, put_uba, put_xid
from olr_pg.simulator.named.records import add_field, add_vector, open_area

if TYPE_CHECKING:
    from olr_pg.simulator.named.put import Bytes, Ints

_OP_UNDO: Final = 0x0501
_OP_HEADER: Final = 0x0502
_USER: Final = 136


@part
def usn_of(session: int) -> int:
    """Return the undo segment of a session."""
    return session + 1


@part
def touch_undo(m: Ints, session: int, block: int, new: bool) -> None:
    """Let the next vector be of an undo block, or of the undo header (`block` −1)."""
    scn = m[at.RECORD_SCN]
    states, seqs = at.U_SCN + session * at.RING + block, at.U_SEQ + session * at.RING + block
    if block < 0:
        states, seqs = at.S_HEADER_SCN + session, at.S_HEADER_SEQ + session
    if new:
        m[states] = scn
        m[seqs] = 1
    m[at.V_CLASS] = 15 + 2 * usn_of(session) + (block >= 0)
    m[at.V_AFN] = m[at.UNDO_AFN]
    m[at.V_OBJ] = NO_OBJECT
    m[at.V_DBA] = undo_dba(m, session, block)
    m[at.V_SCN] = m[states]
    m[at.V_SEQ] = m[seqs]
    m[at.V_TYP] = TYP_NEW if new else TYP_NORMAL
    m[seqs] = m[seqs] + 1 if m[states] == scn else 1
    m[states] = scn


@part
def open_transaction(m: Ints, session: int) -> None:
    """Take the next transaction slot."""
    number = m[at.TRANSACTIONS]
    m[at.TRANSACTIONS] = number + 1
    m[m[at.COMMITS_AT] + number] = 0
    slot = (m[at.S_SLOT + session] + 1) % at.SLOTS
    m[at.S_SLOT + session] = slot
    place = at.SLOT_SEQUENCE + session * at.SLOTS + slot
    m[place] += 1
    m[at.S_XID + session] = usn_of(session) << 48 | slot << 32 | m[place]
    m[at.S_TRANSACTION + session] = number
    m[at.S_BEGIN_SCN + session] = 0
    m[at.S_UNDO_BLOCK + session] = -1
    m[at.S_RCI + session] = 0
    m[at.S_ENTRIES + session] = 0
    m[at.S_UNDO_END + session] = 0
    m[at.S_INTS_END + session] = 0
    m[at.S_OVERFLOW + session] = 0
    m[at.S_JOURNAL_END + session] = 0
    m[at.S_CHANGES + session] = 0


@part
def _new_undo_block(m: Ints, session: int) -> int:
    newest = (m[at.S_NEWEST + session] + 1) % at.RING
    m[at.S_NEWEST + session] = newest
    if newest == 0:
        m[at.S_INCARNATION + session] = m[at.S_INCARNATION + session] % 0xFFFF + 1
    place = session * at.RING + newest
    m[at.U_INCARNATION + place] = m[at.S_INCARNATION + session]
    m[at.U_COUNT + place] = 0
    m[at.U_SPACE + place] = UNDO_SPACE
    return int(newest)


@part
def _place_undo(m: Ints, session: int, size: int) -> int:
    """Room for an undo record of `size` bytes; returns the space before it."""
    current = m[at.S_UNDO_BLOCK + session]
    block = current if current >= 0 else m[at.S_NEWEST + session]
    m[at.CHANGE_RCI] = 0
    m[at.CHANGE_PREV_DBA] = 0
    m[at.CHANGE_FLG] = UNDO_BEGIN if m[at.CHANGE_BEGINS] else UNDO_REGULAR
    space = 0
    if block >= 0:
        space = m[at.U_SPACE + session * at.RING + block]
    if (
        block < 0
        or m[at.U_COUNT + session * at.RING + block] >= UNDO_RECORDS_MAX
        or (space < size + 2)
    ):
        if current >= 0 and m[at.S_RCI + session]:
            m[at.CHANGE_PREV_DBA] = undo_dba(m, session, current)
        # Real records that open a block in mid-transaction carry the room left in the old one.
        space = space if current >= 0 else 0
        block = _new_undo_block(m, session)
        m[at.CHANGE_FLG] = UNDO_NEW_BLOCK
    elif current >= 0:
        m[at.CHANGE_RCI] = m[at.S_RCI + session]
    place = session * at.RING + block
    m[at.U_COUNT + place] += 1
    m[at.U_SPACE + place] -= size + 2
    m[at.CHANGE_REC] = m[at.U_COUNT + place]
    m[at.CHANGE_UNDO_BLOCK] = block
    m[at.S_UNDO_BLOCK + session] = block
    m[at.S_RCI + session] = m[at.CHANGE_REC]
    return space


@part
def undo_dba(m: Ints, session: int, block: int) -> int:
    """Return the address of an undo block."""
    return int(m[at.S_HEADER_DBA + session] + 1 + block)


@part
def put_ktub(
    m: Ints, d: Bytes, p: int, obj: int, dataobj: int, opc: int, prev_dba: int, slot: int,
    rci: int, flg: int, wrp: int,
) -> None:  # fmt: skip
    """Write the KTUB of an undo record, or of its application, at `p`."""
    put32(m, d, p, obj)
    put32(m, d, p + 4, dataobj)
    put32(m, d, p + 8, m[at.TB_TABLESPACE])
    put32(m, d, p + 12, prev_dba)
    d[p + 16] = opc >> 8
    d[p + 17] = opc & 0xFF
    d[p + 18] = slot
    d[p + 19] = rci
    put16(m, d, p + 20, flg)
    put16(m, d, p + 22, wrp)


@part
def put_undo(m: Ints, d: Bytes, session: int, obj: int, dataobj: int, opc: int) -> None:
    """Write the undo record whose payload is area UNDO, with 5.2 where it is due."""
    begins = m[at.S_BEGIN_SCN + session] == 0
    m[at.CHANGE_BEGINS] = begins
    slot, xid = m[at.S_SLOT + session], m[at.S_XID + session]
    image = 76 if begins else 24
    payload = m[at.AREA_END + UNDO] - m[at.AREA_AT + UNDO]
    size = image + payload + (2 * (2 + m[at.AREA_COUNT + UNDO]) + 3 & ~3)
    space = _place_undo(m, session, size)
    block, flg = m[at.CHANGE_UNDO_BLOCK], m[at.CHANGE_FLG]
    incarnation = m[at.U_INCARNATION + session * at.RING + block]
    uba = pack_uba(undo_dba(m, session, block), incarnation, m[at.CHANGE_REC])
    m[at.CHANGE_UBA] = uba
    if begins or flg == UNDO_NEW_BLOCK:
        open_area(m, OTHER)
        p = add_field(m, d, OTHER, 32)
        put16(m, d, p, slot)
        put32(m, d, p + 4, xid & 0xFFFFFFFF if begins else 0)
        put_uba(m, d, p + 8, uba)
        header = 0x452 if m[at.CON_ID] > 0 else 0x12
        if flg == UNDO_NEW_BLOCK:
            header = 0x44A if begins else 0x0A
        put16(m, d, p + 16, header)
        put16(m, d, p + 18, size)
        if begins and m[at.CON_ID] > 0 and m[at.HAS_CONTAINER]:
            put32(m, d, add_field(m, d, OTHER, 4), m[at.CON_UID])
        touch_undo(m, session, -1, False)
        add_vector(m, d, _OP_HEADER, OTHER, -1)
    open_area(m, OTHER)
    p = add_field(m, d, OTHER, 20)
    put16(m, d, p, size)
    put16(m, d, p + 2, space)
    put16(m, d, p + 4, flg)
    put_xid(m, d, p + 8, xid)
    put16(m, d, p + 16, incarnation)
    d[p + 18] = m[at.CHANGE_REC]
    p = add_field(m, d, OTHER, image)
    m[at.CHANGE_WRP] = 1 if begins else xid & 0xFFFF
    put_ktub(
        m, d, p, obj, dataobj, opc, m[at.CHANGE_PREV_DBA], slot, m[at.CHANGE_RCI],
        KTUB_BEGIN if begins else 0, m[at.CHANGE_WRP],
    )  # fmt: skip
    if begins:
        place = session * at.SLOTS + slot
        put_uba(m, d, p + 28, m[at.SLOT_UBA + place])
        put_scn8(m, d, p + 36, m[at.S_MAX_COMMIT + session], 0)
        put_scn8(m, d, p + 44, m[at.SLOT_COMMIT + place], 0)
        for i in range(8):
            d[p + 56 + i] = 0xFF
        put32(m, d, p + 64, m[at.SLOT_DBA + place])
        put32(m, d, p + 72, _USER)
        m[at.S_BEGIN_SCN + session] = m[at.RECORD_SCN]
    touch_undo(m, session, block, flg == UNDO_NEW_BLOCK)
    add_vector(m, d, _OP_UNDO, OTHER, UNDO)
    m[at.S_LAST_UBA + session] = uba
    m[at.S_LAST_SPACE + session] = m[at.U_SPACE + session * at.RING + block]
