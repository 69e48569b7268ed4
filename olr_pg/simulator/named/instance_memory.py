"""The memory of the compiled instance: which number stands where.

All state of fixed size is one array of int64, `m`; a name here is a place in it, or the first of
several places in a row: ``m[SCN]`` is the instance's SCN, ``m[S_XID + session]`` the transaction id
of a session. What grows is beside it: `blocks` and `rows` (tables of int64 whose columns are named
``B_`` and ``R_``), `cells` (the values of rows, one int64 each). Bytes are in `d`: scratch areas,
saved undo, text pools, the open logs. One array of each kind keeps the kernels quick to compile.

A cell is an int64 by its column's kind: a NUMBER scaled to an integer, a DATE in seconds or a
TIMESTAMP in microseconds since 1970, or the number of an entry in a pool of values.
"""

from __future__ import annotations

from typing import Final

NULL: Final = -(1 << 63)

SESSIONS_MAX: Final = 32
THREADS_MAX: Final = 8
TABLES_MAX: Final = 16
COLUMNS_MAX: Final = 640
INDEXES_MAX: Final = 24
INDEX_COLUMNS_MAX: Final = 3
WAREHOUSE_QUEUE: Final = 1024
WORK_INTS: Final = 32
W_RESULT: Final = 31
"""The place in a session's own numbers for the row that its last insert made."""

SLOTS: Final = 34
"""Transaction slots of an undo segment; every session has a segment of its own."""

RING: Final = 512
"""Undo blocks of a segment."""

ENTRIES: Final = 1024
"""Undo records of a transaction that can be rolled back; a longer one can only commit."""

UNDO_BYTES: Final = 1 << 19
"""Their payload in bytes."""

UNDO_INTS: Final = 1 << 15
"""Their field sizes and old cells."""

KIND_NUMBER: Final = 0
KIND_DATE: Final = 1
KIND_TIMESTAMP: Final = 2
KIND_POOL: Final = 3


class _Places:
    """Deals out places one behind the other."""

    def __init__(self) -> None:
        self.end = 0

    def take(self, count: int = 1) -> int:
        start = self.end
        self.end += count
        return start


_own = _Places()
_take = _own.take

# The instance: SCN, whether the next record must take a new one, thread of the last record.
SCN: Final = _take()
SCN_DUE: Final = _take()
LAST_THREAD: Final = _take()
# UTC in milliseconds since 1970, and the host's offset from it in seconds.
CLOCK: Final = _take()
ZONE: Final = _take()
RANDOM: Final = _take()
REDO_BYTES: Final = _take()
TARGET_BYTES: Final = _take()
FAILURE: Final = _take()

# Rows in use of what grows, and how many there may be.
TRANSACTIONS: Final = _take()
TRANSACTIONS_MAX: Final = _take()
ROWS: Final = _take()
ROWS_MAX: Final = _take()
BLOCKS: Final = _take()
BLOCKS_MAX: Final = _take()
CELLS: Final = _take()
CELLS_MAX: Final = _take()
JOURNAL_END: Final = _take()
JOURNAL_MAX: Final = _take()

# The format of the redo, and the pace at which records are grouped (per mille, bytes, blocks).
BIG_ENDIAN: Final = _take()
BLOCK_SIZE: Final = _take()
VECTOR_HEADER: Final = _take()
KTB_START: Final = _take()
LONG_SCN: Final = _take()
HAS_CONTAINER: Final = _take()
SINGLE_SUBSCN: Final = _take()
CON_ID: Final = _take()
CON_UID: Final = _take()
UNDO_AFN: Final = _take()
NEW_SCN: Final = _take()
COMMIT_NEW_SCN: Final = _take()
FLUSH_AT_COMMIT: Final = _take()
LWN_BYTES: Final = _take()
LOG_BLOCKS: Final = _take()
NOISE: Final = _take()
ITL_COUNT: Final = _take()
LOG_STRIDE: Final = _take()

# Where in `d`: scratch for one record and one value, the fields of each area, undo, logs.
RECORD_AT: Final = _take()
VALUE_AT: Final = _take()
UNDO_AT: Final = _take()
LOGS_AT: Final = _take()
SPACE_VECTOR_AT: Final = _take()
SPACE_VECTOR_SIZE: Final = _take()

# The record in the making.
RECORD_END: Final = _take()
RECORD_SCN: Final = _take()
RECORD_THREAD: Final = _take()

# The vector in the making: the block that it changes and its state before.
V_CLASS: Final = _take()
V_AFN: Final = _take()
V_OBJ: Final = _take()
V_DBA: Final = _take()
V_SCN: Final = _take()
V_SEQ: Final = _take()
V_TYP: Final = _take()

# The statement and the change in the making: what it does to which row, index and block.
K_TABLE: Final = _take()
K_ROW: Final = _take()
K_BLOCK: Final = _take()
K_OBJ: Final = _take()
K_DATAOBJ: Final = _take()
K_SIZE: Final = _take()
K_GROWTH: Final = _take()
K_OWNER: Final = _take()
K_INDEX: Final = _take()
K_KEY_SIZE: Final = _take()
K_KEY_SUM: Final = _take()

# The change in the making: its block's ITL entry, what the entry held, what was cleaned out.
CLAIM_ITLI: Final = _take()
CLAIM_FRESH: Final = _take()
CLAIM_TRANSACTION: Final = _take()
CLAIM_XID: Final = _take()
CLAIM_UBA: Final = _take()
CLEANED: Final = _take()
CLEANED_ITLI: Final = _take(SESSIONS_MAX + 4)
CLEANED_SCN: Final = _take(SESSIONS_MAX + 4)
CHANGE_UBA: Final = _take()
CHANGE_BEGINS: Final = _take()
CHANGE_UNDO_BLOCK: Final = _take()
CHANGE_REC: Final = _take()
CHANGE_RCI: Final = _take()
CHANGE_PREV_DBA: Final = _take()
CHANGE_FLG: Final = _take()
CHANGE_WRP: Final = _take()

# Areas of fields: where each begins and ends in `d`, how many fields and their sizes.
AREAS: Final = 7
AREA_FIELDS: Final = 1400
AREA_AT: Final = _take(AREAS)
AREA_END: Final = _take(AREAS)
AREA_COUNT: Final = _take(AREAS)
AREA_SIZES: Final = _take(AREAS * AREA_FIELDS)
UNDO: Final = 0
REDO: Final = 1
OLD: Final = 2
NEW: Final = 3
LOGGED: Final = 4
OTHER: Final = 5
KEY: Final = 6

# What a step has decided: table, row, rows of an array, savepoint.
A_TABLE: Final = _take()
A_ROW: Final = _take()
A_COUNT: Final = _take()
A_MARK: Final = _take()

# The row to insert, the columns and values of an update, the slots of a multi-row change.
NEW_CELLS: Final = _take(COLUMNS_MAX)
SET_COUNT: Final = _take()
SET_COLUMNS: Final = _take(COLUMNS_MAX)
SET_CELLS: Final = _take(COLUMNS_MAX)
MANY: Final = _take()
MANY_MAX: Final = 250

# Redo threads.
T_SEQUENCE: Final = _take(THREADS_MAX)
T_SCN: Final = _take(THREADS_MAX)
T_SUBSCN: Final = _take(THREADS_MAX)
T_OPEN: Final = _take(THREADS_MAX)
T_LWN_BLOCK: Final = _take(THREADS_MAX)
T_BLOCK: Final = _take(THREADS_MAX)
T_OFFSET: Final = _take(THREADS_MAX)
T_PENDING: Final = _take(THREADS_MAX)
T_LARGEST: Final = _take(THREADS_MAX)
T_FULL: Final = _take(THREADS_MAX)
T_DUE: Final = _take(THREADS_MAX)

# Sessions with their transactions and undo segments.
SESSIONS: Final = _take()
S_THREAD: Final = _take(SESSIONS_MAX)
S_TRANSACTION: Final = _take(SESSIONS_MAX)
S_SLOT: Final = _take(SESSIONS_MAX)
S_XID: Final = _take(SESSIONS_MAX)
S_BEGIN_SCN: Final = _take(SESSIONS_MAX)
S_UNDO_BLOCK: Final = _take(SESSIONS_MAX)
S_RCI: Final = _take(SESSIONS_MAX)
S_LAST_UBA: Final = _take(SESSIONS_MAX)
S_LAST_SPACE: Final = _take(SESSIONS_MAX)
S_ENTRIES: Final = _take(SESSIONS_MAX)
S_UNDO_END: Final = _take(SESSIONS_MAX)
S_INTS_END: Final = _take(SESSIONS_MAX)
S_OVERFLOW: Final = _take(SESSIONS_MAX)
S_JOURNAL_END: Final = _take(SESSIONS_MAX)
S_CHANGES: Final = _take(SESSIONS_MAX)
S_ANNOUNCED: Final = _take(SESSIONS_MAX)
S_FULL_AT: Final = _take(SESSIONS_MAX)
S_FULL_SIZE: Final = _take(SESSIONS_MAX)
S_BRIEF_AT: Final = _take(SESSIONS_MAX)
S_BRIEF_SIZE: Final = _take(SESSIONS_MAX)
S_WORK: Final = _take(SESSIONS_MAX * WORK_INTS)
S_HEADER_DBA: Final = _take(SESSIONS_MAX)
S_HEADER_SCN: Final = _take(SESSIONS_MAX)
S_HEADER_SEQ: Final = _take(SESSIONS_MAX)
S_MAX_COMMIT: Final = _take(SESSIONS_MAX)
S_NEWEST: Final = _take(SESSIONS_MAX)
S_INCARNATION: Final = _take(SESSIONS_MAX)
SLOT_SEQUENCE: Final = _take(SESSIONS_MAX * SLOTS)
SLOT_COMMIT: Final = _take(SESSIONS_MAX * SLOTS)
SLOT_UBA: Final = _take(SESSIONS_MAX * SLOTS)
SLOT_DBA: Final = _take(SESSIONS_MAX * SLOTS)
U_SCN: Final = _take(SESSIONS_MAX * RING)
U_SEQ: Final = _take(SESSIONS_MAX * RING)
U_INCARNATION: Final = _take(SESSIONS_MAX * RING)
U_COUNT: Final = _take(SESSIONS_MAX * RING)
U_SPACE: Final = _take(SESSIONS_MAX * RING)

# Undo records of open transactions: where they are, and how they are taken back.
_RECORDS: Final = SESSIONS_MAX * ENTRIES
E_UNDO_BLOCK: Final = _take(_RECORDS)
E_REC: Final = _take(_RECORDS)
E_RCI: Final = _take(_RECORDS)
E_PREV_DBA: Final = _take(_RECORDS)
E_OBJ: Final = _take(_RECORDS)
E_DATAOBJ: Final = _take(_RECORDS)
E_OPC: Final = _take(_RECORDS)
E_FLG: Final = _take(_RECORDS)
E_WRP: Final = _take(_RECORDS)
E_BYTES: Final = _take(_RECORDS)
E_INTS: Final = _take(_RECORDS)
E_FIELDS: Final = _take(_RECORDS)
E_CODE: Final = _take(_RECORDS)
E_BLOCK: Final = _take(_RECORDS)
E_ITLI: Final = _take(_RECORDS)
E_FRESH: Final = _take(_RECORDS)
E_BEFORE: Final = _take(3 * _RECORDS)
E_REVERT: Final = _take(_RECORDS)
E_ROW: Final = _take(_RECORDS)
E_COUNT: Final = _take(_RECORDS)
E_OWNER: Final = _take(_RECORDS)
E_OLD: Final = _take(_RECORDS)
E_JOURNAL: Final = _take(_RECORDS)
E_CHANGES: Final = _take(_RECORDS)
INTS: Final = _take(SESSIONS_MAX * UNDO_INTS)

# Tables, columns, indexes.
TABLES: Final = _take()
TB_OBJ: Final = _take(TABLES_MAX)
TB_DATAOBJ: Final = _take(TABLES_MAX)
TB_TABLESPACE: Final = _take(TABLES_MAX)
TB_AFN: Final = _take(TABLES_MAX)
TB_SEGMENT: Final = _take(TABLES_MAX)
TB_BLOCKS: Final = _take(TABLES_MAX)
TB_SPACE: Final = _take(TABLES_MAX)
TB_LOGGING: Final = _take(TABLES_MAX)
TB_COLUMN: Final = _take(TABLES_MAX)
TB_COLUMNS: Final = _take(TABLES_MAX)
TB_INDEX: Final = _take(TABLES_MAX)
TB_INDEXES: Final = _take(TABLES_MAX)
TB_NEXT_KEY: Final = _take(TABLES_MAX)
TB_FIRST_ROW: Final = _take(TABLES_MAX)
TB_START_ROWS: Final = _take(TABLES_MAX)
TB_NAME_AT: Final = _take(TABLES_MAX)
TB_NAME_SIZE: Final = _take(TABLES_MAX)
TB_INSERT_BLOCK: Final = _take(TABLES_MAX * SESSIONS_MAX)
C_KIND: Final = _take(COLUMNS_MAX)
C_SCALE: Final = _take(COLUMNS_MAX)
C_KEY: Final = _take(COLUMNS_MAX)
C_POOL: Final = _take(COLUMNS_MAX)
C_POOL_SIZE: Final = _take(COLUMNS_MAX)
C_NULLS: Final = _take(COLUMNS_MAX)
C_LIMIT: Final = _take(COLUMNS_MAX)
C_SIGNED: Final = _take(COLUMNS_MAX)
C_NAME_AT: Final = _take(COLUMNS_MAX)
C_NAME_SIZE: Final = _take(COLUMNS_MAX)
X_OBJ: Final = _take(INDEXES_MAX)
X_UNIQUE: Final = _take(INDEXES_MAX)
X_SEGMENT: Final = _take(INDEXES_MAX)
X_BLOCK: Final = _take(INDEXES_MAX)
X_BLOCKS: Final = _take(INDEXES_MAX)
X_COLUMNS: Final = _take(INDEXES_MAX)
X_COLUMN: Final = _take(INDEXES_MAX * INDEX_COLUMNS_MAX)

# Rows that are inserted before the workload begins: where their cells are, how far it has come.
LOADING: Final = _take()
LOAD_CELLS: Final = _take()
LOAD_TABLE: Final = _take()
LOAD_LEFT: Final = _take()

# The workload's own: undelivered orders by warehouse, and what else it counts.
Q_FIRST: Final = _take(SESSIONS_MAX)
Q_COUNT: Final = _take(SESSIONS_MAX)
QUEUE: Final = _take(SESSIONS_MAX * WAREHOUSE_QUEUE)

# Committed changes for the truth, open changes by session; sized by the workload.
JOURNAL_AT: Final = _take()
OPEN_JOURNAL_AT: Final = _take()
OPEN_JOURNAL_MAX: Final = _take()
STEP_JOURNAL: Final = _take()
# Half of the bytes that a column's name and value take in a line at most.
PRINTED_MAX: Final = _take()
POOL_RAW_AT: Final = _take()
POOL_RAW_SIZE: Final = _take()
POOL_JSON_AT: Final = _take()
POOL_JSON_SIZE: Final = _take()
COMMITS_AT: Final = _take()

FIXED: Final = _own.end
"""Places in use; the pools' places, the journals and the commit SCNs lie behind them."""

_blocks = _Places()
B_AFN: Final = _blocks.take()
B_DBA: Final = _blocks.take()
B_SCN: Final = _blocks.take()
B_SEQ: Final = _blocks.take()
B_USED: Final = _blocks.take()
B_ROWS: Final = _blocks.take()
B_ITLS: Final = _blocks.take()
B_FIRST_ITL: Final = _blocks.take()
B_ITL: Final = _blocks.take(0)
"""ITL entries: transaction number (−1 none), xid, UBA, cleaned out."""

I_TRANSACTION: Final = 0
I_XID: Final = 1
I_UBA: Final = 2
I_CLEANED: Final = 3
ITL_INTS: Final = 4

R_TABLE: Final = 0
R_BLOCK: Final = 1
R_SLOT: Final = 2
R_OWNER: Final = 3
R_STATE: Final = 4
R_CELLS: Final = 5
R_LINK: Final = 6
ROW_INTS: Final = 7

DEAD: Final = 0
LIVE: Final = 1
DELETED: Final = 2

LOG_NONE: Final = 0
LOG_MINIMAL: Final = 1
LOG_KEY: Final = 2
LOG_ALL: Final = 3

CHANGE_INSERT: Final = 1
CHANGE_UPDATE: Final = 2
CHANGE_DELETE: Final = 3
CHANGE_MANY: Final = 4
CHANGE_INDEX_INSERT: Final = 5
CHANGE_INDEX_DELETE: Final = 6

ACT_NOTHING: Final = 0
ACT_COMMIT: Final = 7
ACT_ROLL_BACK: Final = 8
ACT_ROLL_BACK_TO: Final = 9
"""What a session does in a step: one of these, or a `CHANGE_` from INSERT to MANY."""

CHANGE_INTS: Final = 7
"""Of a change in a journal: kind, table, SCN, dba, slot, columns before and after; then the columns
and their values."""

TRANSACTION_INTS: Final = 5
"""Of a transaction in the journal: begin and commit SCN, xid, changes, ints that follow."""

DONE: Final = 0
LOG_FULL: Final = 1
ROOM_NEEDED: Final = 2
FAILED: Final = 3
