"""Row changes: insert, array insert, update, delete, and the indexes' maintenance.

Rows are never chained or migrated here, no column past a row's end is touched (the last column of
these tables is NOT NULL), and slots are not used twice: the random workload has all that.
Everything passes through one `change`, called from one place: a function that is called from many
is compiled into each of them.
Facts: redo-format §4.3, §5.2–§5.9, §6.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.kernels.compile import part
from olr_pg.simulator.fields.row_fields import (
    FB_ROW,
    GROUP_FIRST,
    GROUP_LAST,
    GROUP_ROWID_OMITTED,
    OP_DRP,
    OP_IRP,
    OP_QMD,
    OP_QMI,
    OP_URP,
    SLOT_SIZE,
    SUPPLEMENTAL_DELETE,
    SUPPLEMENTAL_INSERT,
    SUPPLEMENTAL_UPDATE,
    UNDO_SIDE,
)
from olr_pg.simulator.named import instance_memory as at
from olr_pg.simulator.named.block_changes import (
    OPC_INDEX,
    OPC_ROW,
    start_change,
    write_redo,
    write_undo,
)
from olr_pg.simulator.named.index_entries import add_index_fields, prepare_index
from olr_pg.simulator.named.instance_memory import LOGGED, NEW, OLD, REDO, UNDO
from olr_pg.simulator.named.itls import is_active
from olr_pg.simulator.named.put import chance, copy, put16, put32
from olr_pg.simulator.named.records import add_area, add_field, open_area
from olr_pg.simulator.named.stored_cells import SHORT_VALUE, add_cell
from olr_pg.simulator.writer.piece_writer import MAX_FREE_ROW

if TYPE_CHECKING:
    from olr_pg.simulator.named.put import Bytes, Ints

ROW_OPCODE: Final = 0x0B00
INDEX_INSERT: Final = 0x0A02
INDEX_DELETE: Final = 0x0A04
WITH_HEAD: Final = 200
ROW_HEADER: Final = 3
SPACE_MAX: Final = 8000
"""Bytes of a block that updates may fill."""


@part
def _redo_op(kind: int) -> int:
    if kind == at.CHANGE_INSERT:
        return OP_IRP
    if kind == at.CHANGE_UPDATE:
        return OP_URP
    return OP_DRP if kind == at.CHANGE_DELETE else OP_QMI


@part
def _undo_op(kind: int) -> int:
    if kind == at.CHANGE_INSERT:
        return OP_DRP
    if kind == at.CHANGE_UPDATE:
        return OP_URP
    return OP_IRP if kind == at.CHANGE_DELETE else OP_QMD


@part
def _add_kdo(m: Ints, d: Bytes, blocks: Ints, rows: Ints, area: int, op: int, lock: int) -> None:
    """Add a row operation's KDO and columns: OLD on the undo side, NEW on the redo side."""
    values, growth, count, size = NEW, m[at.K_GROWTH], m[at.MANY], 20
    if area == UNDO:
        values, growth = OLD, -growth
    if op in (OP_QMI, OP_QMD):
        size = 22 + 2 * count
    elif op == OP_IRP:
        count = m[at.AREA_COUNT + values]
        size = 48 + (count + 7) // 8
    elif op == OP_URP:
        count = m[at.SET_COUNT]
        size = 28 + (count + 7) // 8
    p = add_field(m, d, area, size)
    put32(m, d, p, blocks[m[at.K_BLOCK], at.B_DBA])
    put32(m, d, p + 4, m[at.TB_SEGMENT + m[at.K_TABLE]])
    put16(m, d, p + 8, MAX_FREE_ROW)
    d[p + 10] = op | (UNDO_SIDE if area == UNDO else 0)
    d[p + 11] = 1
    d[p + 12] = m[at.CLAIM_ITLI]
    d[p + 16] = FB_ROW
    d[p + 17] = lock
    slot, bitmap = rows[m[at.K_ROW], at.R_SLOT], p + 45
    if op == OP_DRP:
        put16(m, d, p + 16, slot)
        return
    if op in (OP_QMI, OP_QMD):
        d[p + 16] = 0
        d[p + 18] = count
        for i in range(count):
            put16(m, d, p + 20 + 2 * i, slot + i)
        return
    if op == OP_IRP:
        d[p + 18] = count
        put16(m, d, p + 40, m[at.K_SIZE])
        put16(m, d, p + 42, slot)
    else:
        bitmap = p + 26
        put16(m, d, p + 20, slot)
        d[p + 22] = m[at.TB_COLUMNS + m[at.K_TABLE]]
        d[p + 23] = count
        put16(m, d, p + 24, growth & 0xFFFF)
        numbers = add_field(m, d, area, 2 * count)
        for i in range(count):
            put16(m, d, numbers + 2 * i, m[at.SET_COLUMNS + i])
    for i in range(count):
        if m[at.AREA_SIZES + values * at.AREA_FIELDS + i] == 0:
            d[bitmap + i // 8] |= 1 << i % 8
    add_area(m, d, area, values)


@part
def _add_supplemental(m: Ints, d: Bytes, blocks: Ints, rows: Ints, cells: Ints, kind: int) -> None:
    """Add the supplemental log fields behind area UNDO."""
    with_head = chance(m, WITH_HEAD)
    table, row, count = m[at.K_TABLE], m[at.K_ROW], 0
    p = add_field(m, d, UNDO, 28 if with_head else 20)
    d[p + 1] = GROUP_FIRST | GROUP_LAST | (0 if with_head else GROUP_ROWID_OMITTED)
    put16(m, d, p + 4, 1)
    before, after = 0, 1
    if kind == at.CHANGE_INSERT:
        d[p] = SUPPLEMENTAL_INSERT
    elif kind == at.CHANGE_DELETE:
        d[p] = SUPPLEMENTAL_DELETE
        before, after = 1, 0
    else:
        d[p] = SUPPLEMENTAL_UPDATE
        d[p + 13] = 0x10
        before = after = m[at.SET_COLUMNS] + 1
        open_area(m, LOGGED)
        for i in range(m[at.TB_COLUMNS + table]):
            if _is_logged(m, table, i):
                column = m[at.TB_COLUMN + table] + i
                add_cell(m, d, LOGGED, column, cells[rows[row, at.R_CELLS] + i])
                count += 1
    put16(m, d, p + 2, count)
    put16(m, d, p + 6, before)
    put16(m, d, p + 8, after)
    d[p + 17] = 2
    if with_head:
        put32(m, d, p + 20, blocks[m[at.K_BLOCK], at.B_DBA])
        put16(m, d, p + 24, rows[row, at.R_SLOT])
    if not count:
        return
    numbers = add_field(m, d, UNDO, 2 * count)
    lengths = add_field(m, d, UNDO, 2 * count)
    position = 0
    for i in range(m[at.TB_COLUMNS + table]):
        if _is_logged(m, table, i):
            put16(m, d, numbers + 2 * position, i + 1)
            size = m[at.AREA_SIZES + LOGGED * at.AREA_FIELDS + position]
            put16(m, d, lengths + 2 * position, size or 0xFFFF)
            position += 1
    add_area(m, d, UNDO, LOGGED)


@part
def _is_set(m: Ints, column: int) -> bool:
    found = False
    for i in range(m[at.SET_COUNT]):
        found |= m[at.SET_COLUMNS + i] == column
    return found


@part
def _is_logged(m: Ints, table: int, column: int) -> bool:
    """Tell whether an update logs this column supplementally; the undo then has it not."""
    logging = m[at.TB_LOGGING + table]
    if logging < at.LOG_KEY:
        return False
    if logging == at.LOG_KEY and not m[at.C_KEY + m[at.TB_COLUMN + table] + column]:
        return False
    return not _is_set(m, column)


@part
def block_for(m: Ints, blocks: Ints, session: int, table: int, size: int) -> int:
    """Find a block with `size` bytes free: the session's last one of the table, or a new one."""
    place = at.TB_INSERT_BLOCK + table * at.SESSIONS_MAX + session
    block = m[place]
    if block >= 0 and blocks[block, at.B_USED] + size <= m[at.TB_SPACE + table]:
        return int(block)
    block, number = m[at.BLOCKS], m[at.TB_BLOCKS + table]
    m[at.BLOCKS] = block + 1
    m[at.TB_BLOCKS + table] = number + 1
    m[place] = block
    blocks[block, at.B_AFN] = m[at.TB_AFN + table]
    blocks[block, at.B_DBA] = m[at.TB_SEGMENT + table] + 4 + number
    blocks[block, at.B_SCN] = m[at.SCN]
    blocks[block, at.B_SEQ] = 1
    blocks[block, at.B_USED] = 0
    blocks[block, at.B_ROWS] = 0
    blocks[block, at.B_ITLS] = 2
    blocks[block, at.B_FIRST_ITL] = 1
    for i in range(2):
        entry = at.B_ITL + i * at.ITL_INTS
        blocks[block, entry + at.I_TRANSACTION] = -1
        blocks[block, entry + at.I_CLEANED] = 1
    return int(block)


@part
def _gather(m: Ints, d: Bytes, area: int, table: int, cells: Ints, first: int) -> int:
    """All columns of a row as fields; returns the row's length in its block.

    `first` is the place of its first cell, or −1 for NEW_CELLS.
    """
    open_area(m, area)
    size = ROW_HEADER
    for i in range(m[at.TB_COLUMNS + table]):
        cell = m[at.NEW_CELLS + i] if first < 0 else cells[first + i]
        size += add_cell(m, d, area, m[at.TB_COLUMN + table] + i, cell)
    return size


@part
def add_row(
    m: Ints, d: Bytes, blocks: Ints, rows: Ints, cells: Ints, session: int, table: int, block: int
) -> int:
    """Place the row of NEW_CELLS, whose fields are then area NEW; returns it.

    Args:
        block: −1 for any; −1 comes back where this one has no room.
    """
    size = _gather(m, d, NEW, table, cells, -1)
    m[at.K_SIZE] = size
    size += SLOT_SIZE
    if block < 0:
        block = block_for(m, blocks, session, table, size)
    elif blocks[block, at.B_USED] + size > m[at.TB_SPACE + table]:
        return -1
    row, first = m[at.ROWS], m[at.CELLS]
    count = m[at.TB_COLUMNS + table]
    m[at.ROWS] = row + 1
    m[at.CELLS] = first + count
    rows[row, at.R_TABLE] = table
    rows[row, at.R_BLOCK] = block
    rows[row, at.R_SLOT] = blocks[block, at.B_ROWS]
    rows[row, at.R_OWNER] = -1
    rows[row, at.R_STATE] = at.LIVE
    rows[row, at.R_CELLS] = first
    rows[row, at.R_LINK] = -1
    for i in range(count):
        cells[first + i] = m[at.NEW_CELLS + i]
    blocks[block, at.B_ROWS] += 1
    blocks[block, at.B_USED] += size
    return int(row)


@part
def pack_row(m: Ints, d: Bytes) -> None:
    """Add the row in area NEW to the array insert: its length and bytes gather in area OLD."""
    count = m[at.AREA_COUNT + NEW]
    start, p = m[at.AREA_AT + NEW], m[at.AREA_END + OLD]
    put16(m, d, m[at.AREA_AT + OLD] + 2 * m[at.MANY], m[at.K_SIZE])
    d[p] = FB_ROW
    d[p + 1] = 0
    d[p + 2] = count
    p += ROW_HEADER
    for i in range(count):
        size = m[at.AREA_SIZES + NEW * at.AREA_FIELDS + i]
        if size == 0:
            d[p] = 0xFF
            p += 1
            continue
        if size <= SHORT_VALUE:
            d[p] = size
            p += 1
        else:
            d[p] = 0xFE
            put16(m, d, p + 1, size)
            p += 3
        copy(d, p, start, size)
        p += size
        start += size + 3 & ~3
    m[at.AREA_END + OLD] = p
    m[at.MANY] += 1


@part
def begin_many(m: Ints) -> None:
    """Begin an array insert, whose rows `pack_row` adds."""
    m[at.MANY] = 0
    m[at.AREA_END + OLD] = m[at.AREA_AT + OLD] + 2 * at.MANY_MAX


@part
def _add_many_rows(m: Ints, d: Bytes) -> None:
    """Add the lengths and bytes of an array insert's rows behind area REDO."""
    count = m[at.MANY]
    copy(d, add_field(m, d, REDO, 2 * count), m[at.AREA_AT + OLD], 2 * count)
    start = m[at.AREA_AT + OLD] + 2 * at.MANY_MAX
    size = m[at.AREA_END + OLD] - start
    copy(d, add_field(m, d, REDO, size), start, size)


@part
def may_change(m: Ints, rows: Ints, session: int, row: int) -> bool:
    """Tell whether the row is there and no other transaction holds it."""
    if rows[row, at.R_STATE] != at.LIVE:
        return False
    owner = rows[row, at.R_OWNER]
    return owner == m[at.S_TRANSACTION + session] or not is_active(m, owner)


@part
def _journal(
    m: Ints, blocks: Ints, rows: Ints, cells: Ints, session: int, kind: int, row: int, scn: int
) -> None:
    """Note a change for the truth, before the row's cells change."""
    end = m[at.S_JOURNAL_END + session]
    p = m[at.OPEN_JOURNAL_AT] + session * m[at.OPEN_JOURNAL_MAX] + end
    table, first = m[at.K_TABLE], rows[row, at.R_CELLS]
    count, before, after = m[at.TB_COLUMNS + table], 0, 0
    m[p] = kind
    m[p + 1] = table
    m[p + 2] = scn
    m[p + 3] = blocks[m[at.K_BLOCK], at.B_DBA]
    m[p + 4] = rows[row, at.R_SLOT]
    q = p + at.CHANGE_INTS
    for i in range(count):
        if kind != at.CHANGE_UPDATE or _is_set(m, i) or _is_logged(m, table, i):
            m[q] = i
            m[q + 1] = cells[first + i]
            q += 2
            before += 1
    if kind == at.CHANGE_INSERT:
        before, after = 0, before
    elif kind == at.CHANGE_UPDATE:
        after = m[at.SET_COUNT]
        for i in range(after):
            m[q] = m[at.SET_COLUMNS + i]
            m[q + 1] = m[at.SET_CELLS + i]
            q += 2
    m[p + 5] = before
    m[p + 6] = after
    m[at.S_JOURNAL_END + session] = end + q - p
    m[at.S_CHANGES + session] += 1


@part
def _carry_out(
    m: Ints, blocks: Ints, rows: Ints, cells: Ints, session: int, kind: int, e: int
) -> None:
    """Carry the change out in the model's rows; note its truth, and its reversal in entry `e`."""
    row, own = m[at.K_ROW], m[at.S_TRANSACTION + session]
    count = m[at.MANY] if kind == at.CHANGE_MANY else 1
    for i in range(count):
        noted = at.CHANGE_INSERT if kind == at.CHANGE_MANY else kind
        _journal(m, blocks, rows, cells, session, noted, row + i, m[at.RECORD_SCN])
        rows[row + i, at.R_OWNER] = own
    first = rows[row, at.R_CELLS]
    if e >= 0:
        m[at.E_REVERT + e] = kind
        m[at.E_ROW + e] = row
        m[at.E_COUNT + e] = count
        m[at.E_OWNER + e] = m[at.K_OWNER]
        if kind == at.CHANGE_UPDATE:
            m[at.E_COUNT + e] = m[at.SET_COUNT]
            m[at.E_OLD + e] = m[at.S_INTS_END + session]
            old = at.INTS + session * at.UNDO_INTS + m[at.S_INTS_END + session]
            for i in range(m[at.SET_COUNT]):
                m[old + 2 * i] = m[at.SET_COLUMNS + i]
                m[old + 2 * i + 1] = cells[first + m[at.SET_COLUMNS + i]]
            m[at.S_INTS_END + session] += 2 * m[at.SET_COUNT]
    if kind == at.CHANGE_UPDATE:
        for i in range(m[at.SET_COUNT]):
            cells[first + m[at.SET_COLUMNS + i]] = m[at.SET_CELLS + i]
        blocks[m[at.K_BLOCK], at.B_USED] += max(m[at.K_GROWTH], 0)
    elif kind == at.CHANGE_DELETE:
        rows[row, at.R_STATE] = at.DELETED


@part
def _prepare_row(
    m: Ints, d: Bytes, blocks: Ints, rows: Ints, cells: Ints, session: int, kind: int, row: int
) -> bool:
    """Prepare what `change` needs of a row change; false where it may not be or does not fit."""
    table, block = rows[row, at.R_TABLE], rows[row, at.R_BLOCK]
    m[at.K_TABLE] = table
    m[at.K_ROW] = row
    m[at.K_BLOCK] = block
    m[at.K_OBJ] = m[at.TB_OBJ + table]
    m[at.K_DATAOBJ] = m[at.TB_DATAOBJ + table]
    m[at.K_OWNER] = rows[row, at.R_OWNER]
    m[at.K_GROWTH] = 0
    if kind in (at.CHANGE_INSERT, at.CHANGE_MANY):
        return True
    if not may_change(m, rows, session, row):
        return False
    first = rows[row, at.R_CELLS]
    if kind == at.CHANGE_DELETE:
        m[at.K_SIZE] = _gather(m, d, OLD, table, cells, first)
        return True
    open_area(m, OLD)
    open_area(m, NEW)
    for i in range(m[at.SET_COUNT]):
        number = m[at.TB_COLUMN + table] + m[at.SET_COLUMNS + i]
        old, new = cells[first + m[at.SET_COLUMNS + i]], m[at.SET_CELLS + i]
        m[at.K_GROWTH] += add_cell(m, d, NEW, number, new) - add_cell(m, d, OLD, number, old)
    return bool(blocks[block, at.B_USED] + m[at.K_GROWTH] <= SPACE_MAX)


@part
def _change(
    m: Ints, d: Bytes, blocks: Ints, rows: Ints, cells: Ints, session: int, kind: int
) -> None:
    """Undo and redo of one prepared change."""
    of_index = kind >= at.CHANGE_INDEX_INSERT
    insert = kind == at.CHANGE_INDEX_INSERT
    start_change(m, d, blocks, session)
    opc, opcode = OPC_ROW, ROW_OPCODE | _redo_op(kind)
    undone_by = ROW_OPCODE | _undo_op(kind)
    if of_index:
        opc, opcode = OPC_INDEX, INDEX_INSERT if insert else INDEX_DELETE
        undone_by = INDEX_DELETE if insert else -1
    lock = m[at.CLAIM_ITLI]
    if m[at.K_OWNER] != m[at.S_TRANSACTION + session]:
        lock = 0
    for area in range(UNDO, REDO + 1):
        if of_index:
            add_index_fields(m, d, blocks, area, insert)
        else:
            op = _undo_op(kind) if area == UNDO else _redo_op(kind)
            _add_kdo(m, d, blocks, rows, area, op, lock)
        if area == UNDO:
            if kind < at.CHANGE_MANY and m[at.TB_LOGGING + m[at.K_TABLE]] > at.LOG_NONE:
                _add_supplemental(m, d, blocks, rows, cells, kind)
            write_undo(m, d, session, opc)
            lock = m[at.CLAIM_ITLI]
    if kind == at.CHANGE_MANY:
        _add_many_rows(m, d)
    e = write_redo(m, d, blocks, session, opc, opcode, undone_by)
    if not of_index:
        _carry_out(m, blocks, rows, cells, session, kind, e)


@part
def execute(
    m: Ints, d: Bytes, blocks: Ints, rows: Ints, cells: Ints, session: int, kind: int, row: int
) -> bool:
    """Execute a statement on a row (or the rows of an array insert) and its table's indexes."""
    count = m[at.MANY] if kind == at.CHANGE_MANY else 1
    table = rows[row, at.R_TABLE]
    indexes = 0 if kind == at.CHANGE_UPDATE else m[at.TB_INDEXES + table]
    for number in range(1 + count * indexes):
        of = kind
        if number == 0:
            if not _prepare_row(m, d, blocks, rows, cells, session, kind, row):
                return False
        else:
            of = at.CHANGE_INDEX_INSERT
            if kind == at.CHANGE_DELETE:
                of = at.CHANGE_INDEX_DELETE
            index = m[at.TB_INDEX + table] + (number - 1) % indexes
            if not prepare_index(m, d, blocks, rows, cells, row + (number - 1) // indexes, index):
                continue
        _change(m, d, blocks, rows, cells, session, of)
    return True
