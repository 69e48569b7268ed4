"""The memory of an instance as it is before the first record."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from random import Random
from typing import TYPE_CHECKING, Final

import numpy as np

from olr_pg.simulator.fields.cells import Cell
from olr_pg.simulator.fields.vector_fields import (
    MARKER,
    NO_OBJECT,
    Session,
    VectorBlock,
    change_vector,
    session_fields,
)
from olr_pg.simulator.model.tables import Logging, SimColumn, SimTable
from olr_pg.simulator.named import instance_memory as at
from olr_pg.simulator.named.start import (
    draw_interpreted,
    draw_rows,
    place_interpreted,
    place_rows,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from olr_pg.simulator.fields.redo_format import RedoFormat
    from olr_pg.simulator.named.named_tables import StartRows
    from olr_pg.simulator.writer.instance import Container, Pace

    Ints = npt.NDArray[np.int64]

POOL_VALUES: Final = 256
AREA_BYTES: Final = 1 << 17
RECORD_BYTES: Final = 1 << 19
LOG_SLACK: Final = 1 << 20
JOURNAL_INTS: Final = 1 << 20
FIRST_COMMITS: Final = 1 << 16
STEP_JOURNAL: Final = 1 << 13
NULLS: Final = 150
SPACE_AFN: Final = 22
SPACE_CLASS: Final = 11
SPACE_DBA: Final = 0x4C80
UNDO_BLOCKS_PER_SEGMENT: Final = 4096
NUMBER: Final = 2
DATE: Final = 12
TIMESTAMP: Final = 180
_TEN_YEARS: Final = 315_000_000
_LOGGING: Final = {
    Logging.NONE: at.LOG_NONE,
    Logging.MINIMAL: at.LOG_MINIMAL,
    Logging.PRIMARY_KEY: at.LOG_KEY,
    Logging.ALL: at.LOG_ALL,
}


@dataclass(slots=True)
class Memory:
    """The arrays that kernels work on; see `memory`.

    Attributes:
        pool: the values that columns of pooled kinds refer to.
    """

    m: Ints
    d: npt.NDArray[np.uint8]
    blocks: Ints
    rows: Ints
    cells: Ints
    pool: list[Cell]

    def copy(self) -> Memory:
        """Return a memory that goes its own way from here."""
        arrays = self.m, self.blocks, self.rows, self.cells
        m, blocks, rows, cells = (array.copy() for array in arrays)
        return Memory(m, self.d.copy(), blocks, rows, cells, self.pool)


@dataclass(frozen=True, slots=True)
class Setting:
    """The setting from which a memory is made."""

    seed: int
    redo: RedoFormat
    container: Container
    threads: int
    sessions: int
    pace: Pace
    scn: int
    clock_ms: int
    zone_seconds: int
    journal: int
    tables: Sequence[SimTable]
    idle_threads: int = 0


class _Texts:
    """Bytes for `d` that are known before its size is."""

    def __init__(self) -> None:
        self.parts = list[bytes]()
        self.size = 0

    def add(self, data: bytes) -> int:
        start = self.size
        self.parts.append(data)
        self.size += len(data)
        return start


def make_memory(setting: Setting) -> Memory:
    """Memory with tables, sessions and threads, without rows."""
    texts = _Texts()
    pool = list[Cell]()
    m = np.zeros(at.FIXED, np.int64)
    _set_instance(m, setting)
    _set_tables(m, setting, texts, pool)
    _set_sessions(m, setting, texts)
    space = change_vector(
        setting.redo,
        (13, 59),
        VectorBlock(SPACE_CLASS, SPACE_AFN, SPACE_DBA, NO_OBJECT, setting.scn, 1),
        [
            b"\xff" * 4 + bytes(8) + setting.redo.pack("II", 64224, 8) + bytes(120),
            bytes(4),
        ],
        con_id=setting.container.con_id,
    )
    m[at.SPACE_VECTOR_AT], m[at.SPACE_VECTOR_SIZE] = texts.add(space), len(space)
    raw = [(texts.add(cell.raw), len(cell.raw)) for cell in pool]
    printed = [(texts.add(cell.json.encode()), len(cell.json.encode())) for cell in pool]
    d = _place_bytes(m, setting, texts)
    pooled = np.array([*zip(*raw, strict=True), *zip(*printed, strict=True)], np.int64)
    sizes = [
        *(len(pool), len(pool), len(pool), len(pool)),
        *(JOURNAL_INTS, setting.sessions * setting.journal, FIRST_COMMITS),
    ]
    starts = list(accumulate(sizes, initial=at.FIXED))
    places = (
        *(at.POOL_RAW_AT, at.POOL_RAW_SIZE, at.POOL_JSON_AT, at.POOL_JSON_SIZE),
        *(at.JOURNAL_AT, at.OPEN_JOURNAL_AT, at.COMMITS_AT),
    )
    for place, start in zip(places, starts, strict=False):
        m[place] = start
    m[at.JOURNAL_MAX], m[at.OPEN_JOURNAL_MAX] = JOURNAL_INTS, setting.journal
    m[at.STEP_JOURNAL] = STEP_JOURNAL
    m[at.TRANSACTIONS_MAX] = FIRST_COMMITS
    tail = np.zeros(starts[-1] - at.FIXED, np.int64)
    tail[: pooled.size] = pooled.ravel()
    empty = np.zeros((0, at.ROW_INTS), np.int64)
    width = at.B_ITL + at.ITL_INTS * (setting.sessions + 4)
    memory = Memory(
        *(np.concatenate([m, tail]), d, np.zeros((0, width), np.int64), empty),
        *(np.zeros(0, np.int64), pool),
    )
    _add_index_blocks(memory, setting.tables)
    return memory


def _set_instance(m: Ints, setting: Setting) -> None:
    redo, pace, container = setting.redo, setting.pace, setting.container
    values = {
        at.SCN: setting.scn,
        at.CLOCK: setting.clock_ms,
        at.ZONE: setting.zone_seconds,
        at.RANDOM: Random(setting.seed).getrandbits(62) | 1,  # noqa: S311 - reproducible
        at.BIG_ENDIAN: redo.big_endian,
        at.BLOCK_SIZE: redo.block_size,
        at.VECTOR_HEADER: redo.vector_header_size,
        at.KTB_START: redo.ktb_start,
        at.LONG_SCN: redo.long_scn,
        at.HAS_CONTAINER: redo.has_container,
        at.SINGLE_SUBSCN: redo.single_subscn,
        at.CON_ID: container.con_id,
        at.CON_UID: container.uid if redo.has_container else 0,
        at.UNDO_AFN: 9 if container.con_id else 5,
        at.NEW_SCN: round(1000 * pace.new_scn),
        at.COMMIT_NEW_SCN: round(1000 * pace.commit_new_scn),
        at.FLUSH_AT_COMMIT: round(1000 * pace.flush_at_commit),
        at.LWN_BYTES: pace.lwn_bytes,
        at.LOG_BLOCKS: pace.log_blocks,
        at.NOISE: 20,
        at.ITL_COUNT: setting.sessions + 4,
        at.SESSIONS: setting.sessions,
    }
    for place, value in values.items():
        m[place] = int(value)


def _set_sessions(m: Ints, setting: Setting, texts: _Texts) -> None:
    redo, con_id, afn = setting.redo, setting.container.con_id, int(m[at.UNDO_AFN])
    m[at.S_TRANSACTION : at.S_TRANSACTION + at.SESSIONS_MAX] = -1
    m[at.S_ANNOUNCED : at.S_ANNOUNCED + at.SESSIONS_MAX] = -1
    m[at.S_NEWEST : at.S_NEWEST + at.SESSIONS_MAX] = -1
    for session in range(setting.sessions):
        usn = session + 1
        who = Session(40 + session, 1000 + 7 * session, "SIM", 136)
        for full, place, size in (
            (True, at.S_FULL_AT, at.S_FULL_SIZE),
            (False, at.S_BRIEF_AT, at.S_BRIEF_SIZE),
        ):
            fields = session_fields(redo, who, full=full)
            vector = change_vector(
                redo, (5, 19 if full else 20), MARKER, fields, con_id=con_id, fill=0x25
            )
            m[place + session], m[size + session] = texts.add(vector), len(vector)
        m[at.S_THREAD + session] = session % (setting.threads - setting.idle_threads)
        m[at.S_HEADER_DBA + session] = (afn << 22) + 128 + usn * UNDO_BLOCKS_PER_SEGMENT
        m[at.S_HEADER_SCN + session] = m[at.S_MAX_COMMIT + session] = setting.scn
        m[at.S_HEADER_SEQ + session] = 1
        m[at.S_INCARNATION + session] = 0x40 + usn
        for slot in range(at.SLOTS):
            m[at.SLOT_SEQUENCE + session * at.SLOTS + slot] = 500 + 7 * usn + slot % 3


def _set_tables(m: Ints, setting: Setting, texts: _Texts, pool: list[Cell]) -> None:
    rng = Random(setting.seed ^ 0x7AB1E)  # noqa: S311 - reproducible
    column_number, index_number, printed = 0, 0, 0
    m[at.TABLES] = len(setting.tables)
    m[at.TB_INSERT_BLOCK : at.TB_INSERT_BLOCK + at.TABLES_MAX * at.SESSIONS_MAX] = -1
    for number, table in enumerate(setting.tables):
        name = table.full_name.encode()
        for place, value in (
            *((at.TB_OBJ, table.obj), (at.TB_DATAOBJ, table.dataobj), (at.TB_AFN, table.afn)),
            *((at.TB_TABLESPACE, table.tablespace), (at.TB_SEGMENT, table.segment_dba)),
            *((at.TB_SPACE, table.row_space), (at.TB_LOGGING, _LOGGING[table.logging])),
            *((at.TB_COLUMN, column_number), (at.TB_COLUMNS, len(table.columns))),
            *((at.TB_INDEX, index_number), (at.TB_INDEXES, len(table.indexes))),
            *((at.TB_NAME_AT, texts.add(name)), (at.TB_NAME_SIZE, len(name))),
            (at.TB_NEXT_KEY, 1),
        ):
            m[place + number] = value
        for place, column in enumerate(table.columns):
            m[at.C_KEY + column_number] = place in table.key
            printed = max(printed, _set_column(m, column_number, column, texts, pool, rng))
            column_number += 1
        for index in table.indexes:
            m[at.X_OBJ + index_number] = index.obj
            m[at.X_UNIQUE + index_number] = index.unique
            m[at.X_SEGMENT + index_number] = index.segment_dba
            m[at.X_COLUMNS + index_number] = len(index.columns)
            first = at.X_COLUMN + index_number * at.INDEX_COLUMNS_MAX
            m[first : first + len(index.columns)] = index.columns
            index_number += 1
    m[at.PRINTED_MAX] = printed // 2 + 1


def _set_column(
    m: Ints, number: int, column: SimColumn, texts: _Texts, pool: list[Cell], rng: Random
) -> int:
    """Describe a column; returns the bytes that its name and value print at most."""
    name, kind = column.name.encode(), column.type
    m[at.C_NAME_AT + number], m[at.C_NAME_SIZE + number] = texts.add(name), len(name)
    m[at.C_NULLS + number] = NULLS if column.nullable else 0
    if kind.type_code == NUMBER:
        m[at.C_KIND + number] = at.KIND_NUMBER
        m[at.C_SCALE + number] = kind.scale or 0
        m[at.C_LIMIT + number] = 10 ** min(kind.precision or 15, 15)
        m[at.C_SIGNED + number] = (kind.scale or 0) > 0
    elif kind.type_code in (DATE, TIMESTAMP):
        in_seconds = kind.type_code == DATE
        m[at.C_KIND + number] = at.KIND_DATE if in_seconds else at.KIND_TIMESTAMP
        m[at.C_LIMIT + number] = _TEN_YEARS * (1 if in_seconds else 1_000_000)
    else:
        made = [kind.make(rng) for _ in range(POOL_VALUES)]
        m[at.C_KIND + number] = at.KIND_POOL
        m[at.C_POOL + number], m[at.C_POOL_SIZE + number] = len(pool), len(made)
        pool.extend(made)
        return len(name) + max(len(cell.json.encode()) for cell in made) + 4
    return len(name) + 40


def _place_bytes(m: Ints, setting: Setting, texts: _Texts) -> npt.NDArray[np.uint8]:
    """Lay out the byte memory: texts, scratch areas, saved undo, open logs."""
    end = texts.size + 7 & ~7
    for area in range(at.AREAS):
        m[at.AREA_AT + area] = end
        end += AREA_BYTES
    m[at.RECORD_AT] = end
    end += RECORD_BYTES
    m[at.VALUE_AT] = end
    end += 64
    m[at.UNDO_AT] = end
    end += setting.sessions * at.UNDO_BYTES
    m[at.LOGS_AT] = end
    blocks = int(setting.pace.log_blocks) + LOG_SLACK // setting.redo.block_size
    m[at.LOG_STRIDE] = blocks * setting.redo.block_size
    d = np.zeros(end + setting.threads * int(m[at.LOG_STRIDE]), np.uint8)
    data = b"".join(texts.parts)
    d[: len(data)] = np.frombuffer(data, np.uint8)
    return d


def _add_index_blocks(memory: Memory, tables: Sequence[SimTable]) -> None:
    m = memory.m
    made = [
        (index.blocks[0].afn, block.dba)
        for table in tables
        for index in table.indexes
        for block in index.blocks
    ]
    reserve(memory, blocks=len(made))
    number = 0
    for table in tables:
        for index in table.indexes:
            m[at.X_BLOCK + number] = int(m[at.BLOCKS])
            m[at.X_BLOCKS + number] = len(index.blocks)
            m[at.BLOCKS] += len(index.blocks)
            number += 1
    new = memory.blocks[: len(made)]
    new[:, at.B_AFN] = [afn for afn, _ in made]
    new[:, at.B_DBA] = [dba for _, dba in made]
    new[:, at.B_SCN], new[:, at.B_SEQ] = m[at.SCN], 1
    new[:, at.B_ITLS], new[:, at.B_FIRST_ITL] = 2, 2
    for entry in (at.B_ITL, at.B_ITL + at.ITL_INTS):
        new[:, entry + at.I_TRANSACTION], new[:, entry + at.I_CLEANED] = -1, 1


def reserve(
    memory: Memory, *, blocks: int = 0, rows: int = 0, cells: int = 0, transactions: int = 0
) -> None:
    """Make room for so many more; what grows at least doubles."""
    m = memory.m
    if m[at.BLOCKS] + blocks > m[at.BLOCKS_MAX]:
        memory.blocks = _grown(memory.blocks, int(m[at.BLOCKS]) + blocks)
        m[at.BLOCKS_MAX] = len(memory.blocks)
    if m[at.ROWS] + rows > m[at.ROWS_MAX]:
        memory.rows = _grown(memory.rows, int(m[at.ROWS]) + rows)
        m[at.ROWS_MAX] = len(memory.rows)
    if m[at.CELLS] + cells > m[at.CELLS_MAX]:
        memory.cells = _grown(memory.cells, int(m[at.CELLS]) + cells)
        m[at.CELLS_MAX] = len(memory.cells)
    if m[at.TRANSACTIONS] + transactions > m[at.TRANSACTIONS_MAX]:
        m[at.TRANSACTIONS_MAX] *= 2
        memory.m = _grown(m, int(m[at.COMMITS_AT]) + int(m[at.TRANSACTIONS_MAX]))


def _grown(array: Ints, least: int) -> Ints:
    size = max(least, len(array) + len(array) // 2)
    grown = np.zeros((size, *array.shape[1:]), np.int64)
    grown[: len(array)] = array
    return grown


def add_start_rows(
    memory: Memory, starts: Sequence[StartRows], *, by_redo: bool, compiled: bool
) -> None:
    """Add the rows that the workload starts from.

    Args:
        memory: of the instance.
        starts: of each table.
        by_redo: the sessions are to insert them before they begin; else they are just there.
        compiled: by compiled kernels.
    """
    draw = draw_rows if compiled else draw_interpreted
    place_all = place_rows if compiled else place_interpreted
    widths = [int(memory.m[at.TB_COLUMNS + table]) for table in range(len(starts))]
    total = sum(start.count * width for start, width in zip(starts, widths, strict=True))
    count = sum(start.count for start in starts)
    reserve(memory, blocks=count, rows=count, cells=2 * total)
    m, cells = memory.m, memory.cells
    place = int(m[at.CELLS]) + total
    m[at.LOAD_CELLS] = place
    for table, (start, width) in enumerate(zip(starts, widths, strict=True)):
        draw(m, cells, place, table, start.count)
        start.settle(cells[place : place + start.count * width].reshape(-1, width))
        m[at.TB_START_ROWS + table] = start.count
        m[at.TB_NEXT_KEY + table] = start.count + 1
        place += start.count * width
    if by_redo:
        m[at.LOADING], m[at.LOAD_TABLE], m[at.LOAD_LEFT] = 1, 0, starts[0].count
    else:
        place_all(m, memory.d, memory.blocks, memory.rows, cells)
