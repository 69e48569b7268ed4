"""The ends of transactions: commit, or the end of a rollback.

The rules are those of `simulator.writer.transaction_writer`, for arrays. Facts: redo-format §4.4,
§8.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.kernels.compile import part
from olr_pg.simulator.fields.block_layout import VLD_VALID
from olr_pg.simulator.named import instance_memory as at
from olr_pg.simulator.named.instance_memory import OTHER
from olr_pg.simulator.named.put import chance, put16, put32, put_scn8, put_uba, put_xid
from olr_pg.simulator.named.records import (
    add_field,
    add_marker,
    add_vector,
    begin_record,
    emit,
    open_area,
)
from olr_pg.simulator.named.rollbacks import OP_MARKER
from olr_pg.simulator.named.undo import touch_undo, undo_dba

if TYPE_CHECKING:
    from olr_pg.simulator.named.put import Bytes, Ints

_OP_END: Final = 0x0504
_WITH_UNDO: Final = 850
"""Of 1,000 commits, those that name their last undo record."""

_LONG_FORM: Final = 200
"""Of 1,000 commits, those that also have the longer second field."""


@part
def _add_end(m: Ints, d: Bytes, session: int, rolled_back: bool) -> None:
    """Add the vectors 5.4 and 24.4."""
    slot, xid = m[at.S_SLOT + session], m[at.S_XID + session]
    unix = m[at.CLOCK] // 1000
    with_undo = not rolled_back and chance(m, _WITH_UNDO)
    long_form = not rolled_back and m[at.LONG_SCN] != 0 and chance(m, _LONG_FORM)
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
    touch_undo(m, session, -1, False)
    add_vector(m, d, _OP_END, OTHER, -1)
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
    """End a session's transaction; committed changes go to the journal."""
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
