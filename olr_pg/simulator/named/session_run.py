"""The kernel that lets the sessions work until something outside has to be done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.kernels.compile import interpreted, kernel, part
from olr_pg.simulator.fields.block_layout import VLD_VALID, VLD_VOID
from olr_pg.simulator.named import instance_memory as at
from olr_pg.simulator.named.ends import end
from olr_pg.simulator.named.instance_memory import OTHER
from olr_pg.simulator.named.loads import (
    fill_new_row,
    fill_start_row,
    step_bulk,
    step_start,
    step_wide,
)
from olr_pg.simulator.named.orders import fill_line, step_orders
from olr_pg.simulator.named.put import (
    below,
    chance,
    clear,
    clear_slice,
    copy,
    copy_slice,
    put16,
    put32,
)
from olr_pg.simulator.named.records import (
    add_field,
    add_marker,
    add_ready_vector,
    begin_record,
    emit,
    flush,
    open_area,
)
from olr_pg.simulator.named.rollbacks import take_back
from olr_pg.simulator.named.row_writing import add_row, begin_many, execute, pack_row
from olr_pg.simulator.writer.space_vectors import SPACE_DBA

if TYPE_CHECKING:
    from olr_pg.simulator.named.put import Bytes, Ints

ORDERS: Final = 0
BULK: Final = 1
WIDE: Final = 2

COMMIT_ALL: Final = 1
FLUSH: Final = 2
ROLL_BACK: Final = 16
"""With the number of a thread added, from 0: its sessions."""
HEARTBEAT: Final = 32
"""With the number of a thread added, from 0: it writes a record of no transaction."""

STEP_ROWS: Final = 2048
"""Rows, blocks and transactions that one step adds at most, with room to spare."""


@part
def _write_noise(m: Ints, d: Bytes, thread: int) -> None:
    """Write a space record or a void one, as other processes write them (redo-format §12)."""
    begin_record(m, thread, 0)
    if chance(m, 500):
        add_ready_vector(m, d, m[at.SPACE_VECTOR_AT], m[at.SPACE_VECTOR_SIZE])
        emit(m, d, VLD_VALID)
        return
    count = 1 + below(m, 30)
    open_area(m, OTHER)
    p = add_field(m, d, OTHER, 20 * count)
    for i in range(count):
        q = p + 20 * i
        put32(m, d, q, 22)
        put32(m, d, q + 4, SPACE_DBA + below(m, 64))
        put32(m, d, q + 8, m[at.RECORD_SCN] & 0xFFFFFFFF)
        put16(m, d, q + 12, m[at.RECORD_SCN] >> 32)
        d[q + 14] = 1
        d[q + 15] = 4
    add_marker(m, d, 23 << 8 | 1, OTHER)
    emit(m, d, VLD_VOID)


@part
def _room_needed(m: Ints) -> bool:
    """Tell whether the next step might not fit what grows."""
    most = m[at.OPEN_JOURNAL_MAX]
    return bool(
        m[at.ROWS] + STEP_ROWS > m[at.ROWS_MAX]
        or m[at.BLOCKS] + STEP_ROWS > m[at.BLOCKS_MAX]
        or m[at.CELLS] + STEP_ROWS * at.COLUMNS_MAX > m[at.CELLS_MAX]
        or m[at.TRANSACTIONS] + 1 > m[at.TRANSACTIONS_MAX]
        or m[at.JOURNAL_END] + most + at.TRANSACTION_INTS > m[at.JOURNAL_MAX]
    )


@part
def _decide(m: Ints, rows: Ints, cells: Ints, workload: int, session: int, w: int) -> int:
    """Decide what a session does next."""
    if m[at.LOADING]:
        return step_start(m)
    if workload == ORDERS:
        return step_orders(m, rows, cells, session, w)
    if workload == BULK:
        return step_bulk(m, w)
    return step_wide(m, session)


@part
def _fill(m: Ints, rows: Ints, cells: Ints, workload: int, w: int, number: int) -> None:
    """Fill NEW_CELLS with the next row of an array."""
    if m[at.LOADING]:
        fill_start_row(m, cells)
    elif workload == ORDERS:
        fill_line(m, rows, cells, w, number)
    else:
        fill_new_row(m)


@part
def _perform(
    m: Ints, d: Bytes, blocks: Ints, rows: Ints, cells: Ints, workload: int, session: int, act: int
) -> None:
    """Carry out a statement."""
    w, row = at.S_WORK + session * at.WORK_INTS, m[at.A_ROW]
    inserts = act in (at.CHANGE_INSERT, at.CHANGE_MANY)
    done, count, refused = 0, m[at.A_COUNT] if act == at.CHANGE_MANY else 1, False
    if inserts:
        m[w + at.W_RESULT] = m[at.ROWS]
    while done < count:
        if inserts:
            begin_many(m)
            row, last = -1, 0
            while done < count and last >= 0:
                # A row that its block had no room for is still in NEW_CELLS.
                if act == at.CHANGE_MANY and not refused:
                    _fill(m, rows, cells, workload, w, done)
                block = -1 if row < 0 else rows[row, at.R_BLOCK]
                last = add_row(m, d, blocks, rows, cells, session, m[at.A_TABLE], block)
                refused = last < 0
                if not refused:
                    pack_row(m, d)
                    row = last if row < 0 else row
                    done += 1
        else:
            done = count
        execute(m, d, blocks, rows, cells, session, act, row)


@part
def _end_or_take_back(
    m: Ints, d: Bytes, blocks: Ints, rows: Ints, cells: Ints, session: int, act: int
) -> None:
    """Commit or roll back; a transaction of more undo than is saved can only commit."""
    if m[at.S_TRANSACTION + session] < 0:
        return
    whole = act == at.ACT_ROLL_BACK and not m[at.S_OVERFLOW + session]
    if whole or (act == at.ACT_ROLL_BACK_TO and not m[at.S_OVERFLOW + session]):
        take_back(m, d, blocks, rows, cells, session, 0 if whole else m[at.A_MARK], whole)
    if act != at.ACT_ROLL_BACK_TO:
        end(m, d, session, whole)


@part
def _has_room(m: Ints, session: int) -> bool:
    """Tell whether a session's open transaction can take another statement."""
    if m[at.S_TRANSACTION + session] < 0:
        return True
    room = m[at.OPEN_JOURNAL_MAX] - m[at.S_JOURNAL_END + session]
    return bool(room >= m[at.STEP_JOURNAL])


@part
def _choose_session(m: Ints, ending: int) -> int:
    """Choose the session to work next, at the end one with an open transaction; −1 for none."""
    if ending == 0:
        return 0 if m[at.LOADING] else below(m, m[at.SESSIONS])
    if ending == FLUSH or ending >= HEARTBEAT:
        return -1
    for session in range(m[at.SESSIONS]):
        is_wanted = ending == COMMIT_ALL or m[at.S_THREAD + session] == ending - ROLL_BACK
        if is_wanted and m[at.S_TRANSACTION + session] >= 0:
            return session
    return -1


@kernel
def work(
    m: Ints, d: Bytes, blocks: Ints, rows: Ints, cells: Ints, workload: int, ending: int
) -> int:
    """Let sessions work until enough redo is written.

    Args:
        m, d, blocks, rows, cells: the instance's memory.
        workload: ORDERS, BULK or WIDE.
        ending: COMMIT_ALL what is open instead, and flush; ROLL_BACK what is open in a thread; give
            a HEARTBEAT; or FLUSH alone.

    Returns:
        DONE, LOG_FULL (a thread's T_FULL is set), ROOM_NEEDED or FAILED.
    """
    while m[at.REDO_BYTES] < m[at.TARGET_BYTES] or ending or m[at.LOADING]:
        for thread in range(at.THREADS_MAX):
            if m[at.T_FULL + thread]:
                return at.LOG_FULL
        if m[at.FAILURE]:
            return at.FAILED
        if _room_needed(m):
            return at.ROOM_NEEDED
        session, act = _choose_session(m, ending), at.ACT_COMMIT
        if ROLL_BACK <= ending < HEARTBEAT:
            act = at.ACT_ROLL_BACK
        if ending >= HEARTBEAT:
            _write_noise(m, d, ending - HEARTBEAT)
        if not ending and _has_room(m, session):
            act = _decide(m, rows, cells, workload, session, at.S_WORK + session * at.WORK_INTS)
        if at.CHANGE_INSERT <= act <= at.CHANGE_MANY:
            _perform(m, d, blocks, rows, cells, workload, session, act)
        elif act != at.ACT_NOTHING and session >= 0:
            _end_or_take_back(m, d, blocks, rows, cells, session, act)
        if not ending and chance(m, m[at.NOISE]):
            _write_noise(m, d, m[at.S_THREAD + session])
        for thread in range(at.THREADS_MAX):
            if m[at.T_DUE + thread] or session < 0:
                flush(m, d, thread)
        if session < 0:
            return at.DONE
    return at.DONE


SLICES: Final = {copy: copy_slice, clear: clear_slice}
"""What replaces loops over bytes where kernels are interpreted."""

work_interpreted = interpreted(work, SLICES)
