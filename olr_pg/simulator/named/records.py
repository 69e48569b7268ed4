"""Vectors into records, records into LWNs, LWNs into sealed blocks of the open logs.

Facts: redo-format §1.3, §2, §3.1, §3.2, §11.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.kernels.compile import part
from olr_pg.simulator.fields.block_layout import (
    BLOCK_HEADER_SIZE,
    FIRST_DATA_BLOCK,
    LWN_HEADER_SIZE,
    RECORD_HEADER_SIZE,
    VLD_LWN,
)
from olr_pg.simulator.fields.vector_fields import TYP_MARKER
from olr_pg.simulator.named.calendar import redo_time
from olr_pg.simulator.named.instance_memory import (
    AREA_AT,
    AREA_COUNT,
    AREA_END,
    AREA_FIELDS,
    AREA_SIZES,
    BIG_ENDIAN,
    BLOCK_SIZE,
    CLOCK,
    COMMIT_NEW_SCN,
    CON_ID,
    CON_UID,
    HAS_CONTAINER,
    LAST_THREAD,
    LOG_BLOCKS,
    LOG_STRIDE,
    LOGS_AT,
    LWN_BYTES,
    NEW_SCN,
    RECORD_AT,
    RECORD_END,
    RECORD_SCN,
    RECORD_THREAD,
    REDO_BYTES,
    SCN,
    SCN_DUE,
    SINGLE_SUBSCN,
    T_BLOCK,
    T_DUE,
    T_FULL,
    T_LARGEST,
    T_LWN_BLOCK,
    T_OFFSET,
    T_OPEN,
    T_PENDING,
    T_SCN,
    T_SEQUENCE,
    T_SUBSCN,
    V_AFN,
    V_CLASS,
    V_DBA,
    V_OBJ,
    V_SCN,
    V_SEQ,
    V_TYP,
    VECTOR_HEADER,
)
from olr_pg.simulator.named.put import below, chance, clear, copy, put16, put32, put_scn8
from olr_pg.simulator.writer.instance import SEQ_LIMIT

if TYPE_CHECKING:
    from olr_pg.simulator.named.put import Bytes, Ints

_SUBSCN_LIMIT: Final = 0xF000
_FLUSH_MS: Final = 1500


@part
def open_area(m: Ints, area: int) -> None:
    """Begin a list of fields."""
    m[AREA_END + area] = m[AREA_AT + area]
    m[AREA_COUNT + area] = 0


@part
def add_field(m: Ints, d: Bytes, area: int, size: int) -> int:
    """Add a field of `size` bytes, zeroed; return where it is."""
    at = m[AREA_END + area]
    end = at + (size + 3 & ~3)
    clear(d, at, end - at)
    m[AREA_SIZES + area * AREA_FIELDS + m[AREA_COUNT + area]] = size
    m[AREA_COUNT + area] += 1
    m[AREA_END + area] = end
    return int(at)


@part
def add_area(m: Ints, d: Bytes, area: int, other: int) -> None:
    """Add the fields of `other` behind those of `area`."""
    size = m[AREA_END + other] - m[AREA_AT + other]
    copy(d, m[AREA_END + area], m[AREA_AT + other], size)
    m[AREA_END + area] += size
    first, count = m[AREA_COUNT + area], m[AREA_COUNT + other]
    for i in range(count):
        m[AREA_SIZES + area * AREA_FIELDS + first + i] = m[AREA_SIZES + other * AREA_FIELDS + i]
    m[AREA_COUNT + area] = first + count


@part
def begin_record(m: Ints, thread: int, commit: int) -> None:
    """Begin a new record, at a new SCN as often as the pace says."""
    odds = m[COMMIT_NEW_SCN] if commit else m[NEW_SCN]
    # Blocks pass from instance to instance at a new SCN only.
    if thread != m[LAST_THREAD] or m[SCN_DUE] or chance(m, odds):
        m[SCN] += 1
        m[SCN_DUE] = 0
    m[LAST_THREAD] = thread
    m[RECORD_SCN] = m[SCN]
    m[RECORD_THREAD] = thread
    m[RECORD_END] = m[RECORD_AT] + LWN_HEADER_SIZE


@part
def add_vector(m: Ints, d: Bytes, opcode: int, area: int, more: int) -> None:
    """Add a change vector with the fields of `area`, then those of area `more` (−1 for none).

    `opcode` is layer · 256 + code; the ``V_`` places have the block and its state before.
    """
    if m[V_SEQ] >= SEQ_LIMIT:
        m[SCN_DUE] = 1
    at = m[RECORD_END]
    count = m[AREA_COUNT + area]
    total = count
    if more >= 0:
        total += m[AREA_COUNT + more]
    fields = at + m[VECTOR_HEADER]
    data = fields + (2 + 2 * total + 2 & ~3)
    clear(d, at, data - at)
    d[at] = opcode >> 8
    d[at + 1] = opcode & 0xFF
    put16(m, d, at + 2, m[V_CLASS])
    put16(m, d, at + 4, m[V_AFN])
    put16(m, d, at + 6, m[V_OBJ] >> 16)
    put32(m, d, at + 8, m[V_DBA])
    put_scn8(m, d, at + 12, m[V_SCN], 0)
    d[at + 20] = m[V_SEQ]
    d[at + 21] = m[V_TYP]
    put16(m, d, at + 22, m[V_OBJ] & 0xFFFF)
    if m[HAS_CONTAINER]:
        put16(m, d, at + 24, m[CON_ID])
    put16(m, d, fields, 2 + 2 * total)
    part, first = area, 0
    while True:
        for i in range(m[AREA_COUNT + part]):
            put16(m, d, fields + 2 + 2 * (first + i), m[AREA_SIZES + part * AREA_FIELDS + i])
        size = m[AREA_END + part] - m[AREA_AT + part]
        copy(d, data, m[AREA_AT + part], size)
        data += size
        if part == more or more < 0:
            break
        part, first = more, count
    m[RECORD_END] = data


@part
def add_marker(m: Ints, d: Bytes, opcode: int, area: int) -> None:
    """Add a vector that changes no block."""
    for i in range(V_CLASS, V_TYP):
        m[i] = 0
    m[V_TYP] = TYP_MARKER
    add_vector(m, d, opcode, area, -1)


@part
def add_ready_vector(m: Ints, d: Bytes, at: int, size: int) -> None:
    """Add a vector that was made before the kernels run."""
    copy(d, m[RECORD_END], at, size)
    m[RECORD_END] += size


@part
def block_at(m: Ints, thread: int, block: int) -> int:
    """Return where data block `block` (from 0) of a thread's open log is."""
    return int(m[LOGS_AT] + thread * m[LOG_STRIDE] + block * m[BLOCK_SIZE])


@part
def _mark(m: Ints, d: Bytes, thread: int) -> None:
    """Note that the current block's first record begins, or data ends, at the current offset."""
    at = block_at(m, thread, m[T_BLOCK + thread])
    if d[at + 12] == 0 and d[at + 13] == 0:
        put16(m, d, at + 12, m[T_OFFSET + thread])


@part
def _next_block(m: Ints, d: Bytes, thread: int) -> None:
    m[T_BLOCK + thread] += 1
    m[T_OFFSET + thread] = BLOCK_HEADER_SIZE
    clear(d, block_at(m, thread, m[T_BLOCK + thread]), m[BLOCK_SIZE])


@part
def emit(m: Ints, d: Bytes, vld: int) -> None:
    """Write the record into its thread's log, which is due for a flush where enough redo waits."""
    thread, scn, size = m[RECORD_THREAD], m[RECORD_SCN], m[BLOCK_SIZE]
    if scn != m[T_SCN + thread]:
        m[T_SCN + thread] = scn
        m[T_SUBSCN + thread] = 0
    if m[T_SUBSCN + thread] == 0 or not m[SINGLE_SUBSCN]:
        m[T_SUBSCN + thread] += 1
    body = m[RECORD_AT] + LWN_HEADER_SIZE
    first = m[T_OPEN + thread] == 0
    start = body - (LWN_HEADER_SIZE if first else RECORD_HEADER_SIZE)
    clear(d, start, body - start)
    put32(m, d, start, m[RECORD_END] - start)
    d[start + 4] = vld | (VLD_LWN if first else 0)
    put16(m, d, start + 6, scn >> 32 & 0xFFFF)
    put32(m, d, start + 8, scn & 0xFFFFFFFF)
    put16(m, d, start + 12, m[T_SUBSCN + thread])
    put32(m, d, start + 16, m[CON_UID])
    if first:
        put16(m, d, start + 26, 1)
        d[start + 36] = 0x0A
        put_scn8(m, d, start + 40, scn, 0)
        m[T_OPEN + thread] = 1
        m[T_LWN_BLOCK + thread] = m[T_BLOCK + thread] + 1
        _next_block(m, d, thread)
    elif size - m[T_OFFSET + thread] < RECORD_HEADER_SIZE:
        _next_block(m, d, thread)
    _mark(m, d, thread)
    while start < m[RECORD_END]:
        if m[T_OFFSET + thread] == size:
            _next_block(m, d, thread)
        offset = m[T_OFFSET + thread]
        part = min(size - offset, m[RECORD_END] - start)
        copy(d, block_at(m, thread, m[T_BLOCK + thread]) + offset, start, part)
        start += part
        m[T_OFFSET + thread] = offset + part
    if m[T_OFFSET + thread] <= size - RECORD_HEADER_SIZE:
        _mark(m, d, thread)
    m[T_PENDING + thread] += m[RECORD_END] - body
    m[REDO_BYTES] += m[RECORD_END] - body + RECORD_HEADER_SIZE
    if m[T_PENDING + thread] >= m[LWN_BYTES] or m[T_SUBSCN + thread] >= _SUBSCN_LIMIT:
        m[T_DUE + thread] = 1


@part
def _seal(m: Ints, d: Bytes, thread: int, block: int) -> None:
    """Block header and checksum."""
    at, size = block_at(m, thread, block), m[BLOCK_SIZE]
    d[at] = 1
    d[at + 1] = 0x82 if size == 4096 else 0x22
    put32(m, d, at + 4, block + FIRST_DATA_BLOCK)
    put32(m, d, at + 8, m[T_SEQUENCE + thread])
    d[at + (12 if m[BIG_ENDIAN] else 13)] |= 0x80
    even, odd = 0, 0
    for i in range(at, at + size, 2):
        even ^= d[i]
        odd ^= d[i + 1]
    d[at + 14] = even
    d[at + 15] = odd


@part
def flush(m: Ints, d: Bytes, thread: int) -> None:
    """Finish the open LWN: its size and time, its blocks' headers and checksums."""
    if not m[T_OPEN + thread]:
        return
    first, last = m[T_LWN_BLOCK + thread], m[T_BLOCK + thread]
    count = last - first + 1
    at = block_at(m, thread, first) + BLOCK_HEADER_SIZE
    put32(m, d, at + 28, count)
    put32(m, d, at + 32, count)
    put_scn8(m, d, at + 56, m[SCN] + 1, 0)
    put32(m, d, at + 64, redo_time(m))
    for block in range(first, last + 1):
        _seal(m, d, thread, block)
    m[T_OPEN + thread] = 0
    m[T_DUE + thread] = 0
    m[T_PENDING + thread] = 0
    m[T_LARGEST + thread] = max(m[T_LARGEST + thread], count)
    # What comes behind an LWN has a higher SCN: so it is in each of 526 LWNs of real logs (23ai).
    m[SCN] += 1
    m[SCN_DUE] = 0
    m[CLOCK] += below(m, _FLUSH_MS)
    if last + 1 >= m[LOG_BLOCKS]:
        m[T_FULL + thread] = 1
