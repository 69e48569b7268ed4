"""Transactions: begin, undo and redo of a change, rollback, commit; ITLs and undo blocks.

The rules are those of `simulator.transaction_writer` and `simulator.storage`, for arrays.
Facts: redo-format §4.0–§4.6, §5.1, §8.3, §11.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.kernels import part
from olr_pg.simulator.columnar import memory as at
from olr_pg.simulator.columnar.memory import OTHER, REDO, UNDO
from olr_pg.simulator.columnar.put import (
    chance,
    copy,
    pack_uba,
    put16,
    put32,
    put_scn6r,
    put_scn8,
    put_uba,
    put_xid,
)
from olr_pg.simulator.columnar.records import (
    add_field,
    add_marker,
    add_ready_vector,
    add_vector,
    begin_record,
    emit,
    open_area,
)
from olr_pg.simulator.layout import VLD_VALID
from olr_pg.simulator.storage import UNDO_RECORDS_MAX, UNDO_SPACE
from olr_pg.simulator.vectors import (
    ITL_COMMITTED,
    KTB_CLEANOUT,
    KTB_CONTINUE,
    KTB_FIRST,
    KTB_PREVIOUS,
    KTB_UNUSED,
    KTUB_BEGIN,
    KTUB_DONE,
    NO_OBJECT,
    TYP_DELAYED,
    TYP_NEW,
    TYP_NORMAL,
    UNDO_BEGIN,
    UNDO_NEW_BLOCK,
    UNDO_REGULAR,
)

if TYPE_CHECKING:
    from olr_pg.simulator.columnar.put import Bytes, Ints

OP_UNDO: Final = 0x0501
OP_HEADER: Final = 0x0502
OP_END: Final = 0x0504
OP_APPLIED: Final = 0x0506
OP_APPLIED_FIRST: Final = 0x050B
OP_MARKER: Final = 0x1804
OPC_ROW: Final = 0x0B01
OPC_INDEX: Final = 0x0A16
WITH_UNDO: Final = 850
LONG_FORM: Final = 200
USER: Final = 136


@part
def touch_block(m: Ints, blocks: Ints, block: int, dataobj: int, typ: int) -> None:
    """The state of a data block before its change into the ``V_`` places; then the change."""
    scn = m[at.RECORD_SCN]
    m[at.V_CLASS] = 1
    m[at.V_AFN] = blocks[block, at.B_AFN]
    m[at.V_OBJ] = dataobj
    m[at.V_DBA] = blocks[block, at.B_DBA]
    m[at.V_SCN] = blocks[block, at.B_SCN]
    m[at.V_SEQ] = blocks[block, at.B_SEQ]
    m[at.V_TYP] = typ
    blocks[block, at.B_SEQ] = m[at.V_SEQ] + 1 if m[at.V_SCN] == scn else 1
    blocks[block, at.B_SCN] = scn


@part
def _touch_undo(m: Ints, session: int, block: int, new: bool) -> None:
    """The same of an undo block, or of the undo header (`block` −1)."""
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
def is_active(m: Ints, transaction: int) -> bool:
    """Whether the transaction has not ended."""
    return transaction >= 0 and m[m[at.COMMITS_AT] + transaction] == 0


@part
def usn_of(session: int) -> int:
    """The undo segment of a session."""
    return session + 1


@part
def _claim(m: Ints, blocks: Ints, block: int, session: int) -> None:
    """The ITL entry for a change; committed ones are cleaned out on first touch."""
    own, count = m[at.S_TRANSACTION + session], blocks[block, at.B_ITLS]
    m[at.CLEANED] = 0
    for i in range(count):
        entry = at.B_ITL + i * at.ITL_INTS
        if blocks[block, entry + at.I_TRANSACTION] == own:
            m[at.CLAIM_ITLI] = i + 1
            m[at.CLAIM_FRESH] = 0
            m[at.CLAIM_TRANSACTION] = own
            m[at.CLAIM_XID] = blocks[block, entry + at.I_XID]
            m[at.CLAIM_UBA] = blocks[block, entry + at.I_UBA]
            return
    best, oldest = -1, 0
    for i in range(count):
        entry = at.B_ITL + i * at.ITL_INTS
        owner = blocks[block, entry + at.I_TRANSACTION]
        if is_active(m, owner):
            continue
        ended = -1
        if owner >= 0:
            ended = m[m[at.COMMITS_AT] + owner]
            if not blocks[block, entry + at.I_CLEANED]:
                blocks[block, entry + at.I_CLEANED] = 1
                m[at.CLEANED_ITLI + m[at.CLEANED]] = i + 1
                m[at.CLEANED_SCN + m[at.CLEANED]] = ended
                m[at.CLEANED] += 1
        if i + 1 >= blocks[block, at.B_FIRST_ITL] and (best < 0 or ended < oldest):
            best, oldest = i, ended
    if best < 0:
        best = count
        blocks[block, at.B_ITLS] = count + 1
        if count >= m[at.ITL_COUNT]:
            m[at.FAILURE] = 1
            best = count - 1
        entry = at.B_ITL + best * at.ITL_INTS
        blocks[block, entry + at.I_TRANSACTION] = -1
        blocks[block, entry + at.I_XID] = 0
        blocks[block, entry + at.I_UBA] = 0
        blocks[block, entry + at.I_CLEANED] = 1
    entry = at.B_ITL + best * at.ITL_INTS
    m[at.CLAIM_ITLI] = best + 1
    m[at.CLAIM_FRESH] = 1
    m[at.CLAIM_TRANSACTION] = blocks[block, entry + at.I_TRANSACTION]
    m[at.CLAIM_XID] = blocks[block, entry + at.I_XID]
    m[at.CLAIM_UBA] = blocks[block, entry + at.I_UBA]


@part
def _add_undo_ktb(m: Ints, d: Bytes) -> None:
    """KTB redo of the undo side: C, Z or L."""
    start = m[at.KTB_START]
    flags = 0x0D if start == 8 else 0x05
    if not m[at.CLAIM_FRESH]:
        p = add_field(m, d, UNDO, start + 8)
        d[p] = KTB_CONTINUE
        put_uba(m, d, p + start, m[at.CLAIM_UBA])
    elif m[at.CLAIM_TRANSACTION] < 0:
        p = add_field(m, d, UNDO, start)
        d[p] = KTB_UNUSED
    else:
        p = add_field(m, d, UNDO, start + 24)
        d[p] = KTB_PREVIOUS
        put_xid(m, d, p + start, m[at.CLAIM_XID])
        put_uba(m, d, p + start + 8, m[at.CLAIM_UBA])
        # lkc and flg are one 16-bit word: the flag byte comes first on big-endian platforms.
        d[p + start + (16 if m[at.BIG_ENDIAN] else 17)] = ITL_COMMITTED
        ended = m[m[at.COMMITS_AT] + m[at.CLAIM_TRANSACTION]]
        put_scn6r(m, d, p + start + 18, ended)
    d[p + 1] = flags


@part
def _add_redo_ktb(m: Ints, d: Bytes, session: int) -> None:
    """KTB redo F or C, with the cleanout of what the claim found committed."""
    start, cleaned = m[at.KTB_START], m[at.CLEANED]
    fresh = m[at.CLAIM_FRESH]
    size = start + (16 if fresh else 8)
    if cleaned:
        size = start + 36 + 12 + 8 * cleaned + (2 * cleaned + 4 if m[at.LONG_SCN] else 0)
    p = add_field(m, d, REDO, size)
    d[p] = (KTB_FIRST if fresh else KTB_CONTINUE) | (KTB_CLEANOUT if cleaned else 0)
    d[p + 1] = 0x0D if start == 8 else 0x05
    if fresh:
        put_xid(m, d, p + start, m[at.S_XID + session])
        put_uba(m, d, p + start + 8, m[at.CHANGE_UBA])
    else:
        put_uba(m, d, p + start, m[at.CHANGE_UBA])
    if cleaned:
        _put_cleanout(m, d, p + start + 36)


@part
def _put_cleanout(m: Ints, d: Bytes, p: int) -> None:
    """A block cleanout of the entries that the claim has cleaned."""
    d[p] = 2
    d[p + 1] = m[at.CLEANED]
    d[p + 2] = 0x0D if m[at.LONG_SCN] else 0x01
    put_scn8(m, d, p + 4, m[at.RECORD_SCN], 1)
    for i in range(m[at.CLEANED]):
        d[p + 12 + 8 * i] = m[at.CLEANED_ITLI + i]
        d[p + 13 + 8 * i] = 6
        put_scn6r(m, d, p + 14 + 8 * i, m[at.CLEANED_SCN + i])


@part
def _open_transaction(m: Ints, session: int) -> None:
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
    """The address of an undo block."""
    return int(m[at.S_HEADER_DBA + session] + 1 + block)


@part
def _put_ktub(
    m: Ints, d: Bytes, p: int, obj: int, dataobj: int, opc: int, prev_dba: int, slot: int,
    rci: int, flg: int, wrp: int,
) -> None:  # fmt: skip
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
def _write_undo(m: Ints, d: Bytes, session: int, obj: int, dataobj: int, opc: int) -> None:
    """The undo record whose payload is area UNDO, with 5.2 where it is due."""
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
        _touch_undo(m, session, -1, False)
        add_vector(m, d, OP_HEADER, OTHER, -1)
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
    _put_ktub(
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
        put32(m, d, p + 72, USER)
        m[at.S_BEGIN_SCN + session] = m[at.RECORD_SCN]
    _touch_undo(m, session, block, flg == UNDO_NEW_BLOCK)
    add_vector(m, d, OP_UNDO, OTHER, UNDO)
    m[at.S_LAST_UBA + session] = uba
    m[at.S_LAST_SPACE + session] = m[at.U_SPACE + session * at.RING + block]


@part
def start_change(m: Ints, d: Bytes, blocks: Ints, session: int) -> None:
    """Begin a record and a change of block K_BLOCK; area UNDO then has its KTB redo."""
    if m[at.S_TRANSACTION + session] < 0:
        _open_transaction(m, session)
    begin_record(m, m[at.S_THREAD + session], 0)
    _claim(m, blocks, m[at.K_BLOCK], session)
    open_area(m, UNDO)
    _add_undo_ktb(m, d)


@part
def write_undo(m: Ints, d: Bytes, session: int, opc: int) -> None:
    """The undo record of the change; area REDO then has the KTB redo."""
    _write_undo(m, d, session, m[at.K_OBJ], m[at.K_DATAOBJ], opc)
    open_area(m, REDO)
    _add_redo_ktb(m, d, session)


@part
def write_redo(
    m: Ints, d: Bytes, blocks: Ints, session: int, opc: int, opcode: int, undone_by: int
) -> int:
    """The redo vector of the change with area REDO, and the end of its record.

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
    """Where the saved undo payload of a session begins."""
    return int(m[at.UNDO_AT] + session * at.UNDO_BYTES)


@part
def _load_payload(m: Ints, d: Bytes, session: int, e: int) -> None:
    """The saved payload of an undo entry into area UNDO."""
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
    _put_ktub(
        m, d, p, m[at.E_OBJ + e], m[at.E_DATAOBJ + e], m[at.E_OPC + e], m[at.E_PREV_DBA + e],
        m[at.S_SLOT + session], m[at.E_RCI + e], m[at.E_FLG + e] | KTUB_DONE, m[at.E_WRP + e],
    )  # fmt: skip
    p = add_field(m, d, OTHER, 8)
    count = m[at.U_COUNT + session * at.RING + m[at.E_UNDO_BLOCK + e]]
    put16(m, d, p, 8152 - count * 16)
    put16(m, d, p + 4, 2)
    in_block = m[at.E_RCI + e] != 0
    _touch_undo(m, session, m[at.E_UNDO_BLOCK + e] if in_block else -1, False)
    add_vector(m, d, OP_APPLIED if in_block else OP_APPLIED_FIRST, OTHER, -1)
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


@part
def _add_end(m: Ints, d: Bytes, session: int, rolled_back: bool) -> None:
    """The vectors 5.4 and 24.4."""
    slot, xid = m[at.S_SLOT + session], m[at.S_XID + session]
    unix = m[at.CLOCK] // 1000
    with_undo = not rolled_back and chance(m, WITH_UNDO)
    long_form = not rolled_back and m[at.LONG_SCN] != 0 and chance(m, LONG_FORM)
    flg = 4 if rolled_back else 0
    open_area(m, OTHER)
    p = add_field(m, d, OTHER, 20)
    put16(m, d, p, slot)
    put32(m, d, p + 4, xid & 0xFFFFFFFF)
    put32(m, d, p + 12, 9)
    if with_undo:
        flg |= 2
        q = add_field(m, d, OTHER, 16)
        put_uba(m, d, q, m[at.S_LAST_UBA + session])
        put16(m, d, q + 10, m[at.S_LAST_SPACE + session])
    if long_form:
        flg |= 16
        put32(m, d, add_field(m, d, OTHER, 24) + 8, unix)
    if m[at.HAS_CONTAINER]:
        put32(m, d, add_field(m, d, OTHER, 4), unix)
    d[p + 16] = flg
    _touch_undo(m, session, -1, False)
    add_vector(m, d, OP_END, OTHER, -1)
    open_area(m, OTHER)
    p = add_field(m, d, OTHER, 16)
    put32(m, d, p, 9000)
    put_xid(m, d, p + 4, xid)
    put16(m, d, p + 12, 0xFF)
    put16(m, d, p + 14, 0x0E)
    p = add_field(m, d, OTHER, 4)
    d[p] = 2 if rolled_back else 1
    d[p + 1] = 0x0A
    d[p + 2] = 0x09
    put16(m, d, add_field(m, d, OTHER, 6) + 2, 1)
    put_scn8(m, d, add_field(m, d, OTHER, 8), m[at.S_BEGIN_SCN + session], 0)
    add_marker(m, d, OP_MARKER, OTHER)


@part
def end(m: Ints, d: Bytes, session: int, rolled_back: bool) -> None:
    """The end of a session's transaction; committed changes go to the journal."""
    begin_record(m, m[at.S_THREAD + session], 0 if rolled_back else 1)
    scn = m[at.RECORD_SCN]
    _add_end(m, d, session, rolled_back)
    emit(m, d, VLD_VALID)
    if m[at.S_CHANGES + session] and not rolled_back:
        to, size = m[at.JOURNAL_AT] + m[at.JOURNAL_END], m[at.S_JOURNAL_END + session]
        m[to] = m[at.S_BEGIN_SCN + session]
        m[to + 1] = scn
        m[to + 2] = m[at.S_XID + session]
        m[to + 3] = m[at.S_CHANGES + session]
        m[to + 4] = size
        start = m[at.OPEN_JOURNAL_AT] + session * m[at.OPEN_JOURNAL_MAX]
        for i in range(size):
            m[to + at.TRANSACTION_INTS + i] = m[start + i]
        m[at.JOURNAL_END] += at.TRANSACTION_INTS + size
    place = session * at.SLOTS + m[at.S_SLOT + session]
    m[m[at.COMMITS_AT] + m[at.S_TRANSACTION + session]] = scn
    m[at.SLOT_COMMIT + place] = scn
    m[at.SLOT_UBA + place] = m[at.S_LAST_UBA + session]
    m[at.SLOT_DBA + place] = undo_dba(m, session, m[at.S_UNDO_BLOCK + session])
    m[at.S_MAX_COMMIT + session] = scn
    m[at.S_TRANSACTION + session] = -1
    if not rolled_back and chance(m, m[at.FLUSH_AT_COMMIT]):
        m[at.T_DUE + m[at.S_THREAD + session]] = 1
