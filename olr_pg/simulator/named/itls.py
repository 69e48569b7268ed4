"""Blocks and their interested transaction lists: who changes a block, and what its KTB says.

The rules are those of `simulator.model.storage`, for arrays. Facts: redo-format §5.1, §11.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.kernels.compile import part
from olr_pg.simulator.fields.vector_fields import (
    ITL_COMMITTED,
    KTB_CLEANOUT,
    KTB_CONTINUE,
    KTB_FIRST,
    KTB_PREVIOUS,
    KTB_UNUSED,
)
from olr_pg.simulator.named import instance_memory as at
from olr_pg.simulator.named.instance_memory import REDO, UNDO
from olr_pg.simulator.named.put import put_scn6r, put_scn8, put_uba, put_xid
from olr_pg.simulator.named.records import add_field

if TYPE_CHECKING:
    from olr_pg.simulator.named.put import Bytes, Ints


@part
def touch_block(m: Ints, blocks: Ints, block: int, dataobj: int, typ: int) -> None:
    """Note a data block's state before its change in the ``V_`` places; then change it."""
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
def is_active(m: Ints, transaction: int) -> bool:
    """Tell whether the transaction has not ended."""
    return transaction >= 0 and m[m[at.COMMITS_AT] + transaction] == 0


@part
def claim(m: Ints, blocks: Ints, block: int, session: int) -> None:
    """Find the ITL entry for a change; committed ones are cleaned out on first touch."""
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
def add_undo_ktb(m: Ints, d: Bytes) -> None:
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
def add_redo_ktb(m: Ints, d: Bytes, session: int) -> None:
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
    """Write a block cleanout of the entries that the claim has cleaned."""
    d[p] = 2
    d[p + 1] = m[at.CLEANED]
    d[p + 2] = 0x0D if m[at.LONG_SCN] else 0x01
    put_scn8(m, d, p + 4, m[at.RECORD_SCN], 1)
    for i in range(m[at.CLEANED]):
        d[p + 12 + 8 * i] = m[at.CLEANED_ITLI + i]
        d[p + 13 + 8 * i] = 6
        put_scn6r(m, d, p + 14 + 8 * i, m[at.CLEANED_SCN + i])
