"""Decodes leaf changes of index-organised tables into row pieces.

A row of such a table is an entry in the index of its primary key: the key contains the key columns,
and the other columns follow the key. Columns are numbered as in the supplemental data: first the
key columns, then the others. The row has no physical ROWID.

A 10.18 writes new data after an existing key. A 10.18 is an update, or an insert if an earlier
delete left the key in the leaf; the supplemental header shows which of the two it is. Rows with a
piece in an overflow segment and array operations are refused.

Facts: redo-format §6.1. 10.30 and 10.35 were checked on real records of 19c. The facts about 10.2,
10.4 and 10.18 could not be checked. In real records of ordinary indexes, a 10.18 restores a deleted
entry.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from olr_pg.kernels.compile import inlined
from olr_pg.redo.batch import I64, U8, EntryColumns, PieceColumns, Role
from olr_pg.redo.format.opcodes import (
    DRP,
    IRP,
    LEAF_COLUMNS,
    LEAF_DATA,
    LEAF_DELETE,
    LEAF_INSERT,
    LEAF_ROW,
    LEAF_STRUCTURE,
    URP,
)
from olr_pg.redo.format.row_fields import (
    FB_LAST,
    FB_WHOLE,
    KDILK_BLOCK,
    KDILK_COLUMNS,
    KDILK_COLUMNS_LEAST,
    KDILK_DATA,
    KDILK_FLAGS,
    KDILK_NCOL,
    KDILK_PURGE,
    KDILK_PURGE_TOO,
    KDILK_RESTORE,
    KDILK_ROW,
    KDILK_SIZE,
    KDILK_SUPPLEMENTAL,
    LEAF_ARRAY,
    LEAF_CODE,
    LEAF_CODE_UNKNOWN,
    LEAF_LEAST,
    LEAF_SLOT,
    ROW_CC,
    ROW_SIZE,
    SUPPLEMENTAL_FB,
    SUPPLEMENTAL_INSERT,
    SUPPLEMENTAL_INTERNAL,
    SUPPLEMENTAL_LOCK,
    SUPPLEMENTAL_MOVES,
    SUPPLEMENTAL_TYPES,
)
from olr_pg.redo.integers import u16, u32
from olr_pg.redo.pieces import (
    NO_ROW,
    ChangeStatus,
    open_piece,
    same_bytes,
    value_of_column,
)  # fmt: skip
from olr_pg.redo.row_vectors import (
    ENTRIES,
    PIECES,
    push,
    push_row,
    push_supplemental,
    supplemental_header,
)

NO_ROWID: Final = 0x80
"""Flag in `PieceColumns.sup_flags`: the row has no ROWID. Only a piece without a supplemental
header can have it.
"""

_ROW_UNDO: Final = (
    KDILK_PURGE,
    KDILK_PURGE_TOO,
    KDILK_RESTORE,
    KDILK_DATA,
    KDILK_ROW,
    KDILK_COLUMNS,
)
"""The operations of undo records that concern rows. A vector with such an undo record changes a
row, not only the structure of the index.
"""

_MALFORMED = 0
"""A result of `_row_change` instead of an operation: the values do not match the fields."""

_OK = int(ChangeStatus.OK)
_SHORT_FIELD = int(ChangeStatus.SHORT_FIELD)
_COLUMNS = int(ChangeStatus.COLUMNS)
_SUPPLEMENTAL = int(ChangeStatus.SUPPLEMENTAL)
_CONTRADICTION = int(ChangeStatus.CONTRADICTION)
_BEFORE = int(Role.BEFORE)
_AFTER = int(Role.AFTER)
_OPERATION = int(ChangeStatus.OPERATION)
_OVERFLOW = int(ChangeStatus.OVERFLOW)


@inlined
def _push_key(
    payload: Any, at: int, end: int, big: bool, role: int, entries: EntryColumns, state: Any
) -> int:
    """Push the columns of the key as columns 1, 2, …; return their number, or −1 if they do not
    fit. In the redo, each column follows its length.
    """
    count = 0
    while at < end:
        after = push_row(payload, at, end, 1, big, role, count + 1, entries, state)
        if after < 0:
            return -1
        at = after
        count += 1
    # Without a key, the other columns would be taken for the key.
    return count if count > 0 else -1


@inlined
def _push_others(
    payload: Any,
    at: int,
    size: int,
    key: int,
    least: int,
    big: bool,
    role: int,
    entries: EntryColumns,
    state: Any,
) -> bool:
    """Push the columns after the key (in the redo: flags, lock, count, values). If there are fewer
    than `least`, push NULL for each missing column. Return False if the columns do not fit.
    """
    count = 0
    if size > 0:
        if size < ROW_SIZE:
            return False
        count = int(payload[at + ROW_CC])
        if (
            push_row(payload, at + ROW_SIZE, at + size, count, big, role, key + 1, entries, state)
            < 0
        ):
            return False
    for column in range(count, least):
        push(entries, state, role, 0, key + 1 + column, 0, -1)
    return True


@inlined
def _count_others(payload: Any, at: int, size: int) -> int:
    return int(payload[at + ROW_CC]) if size >= ROW_SIZE else 0


@inlined
def _push_listed(
    payload: Any,
    offset: Any,
    length: Any,
    fields: int,
    numbers: int,
    key: int,
    big: bool,
    role: int,
    entries: EntryColumns,
    state: Any,
) -> int:
    """Add to the row's columns those whose numbers are listed in field `numbers` and whose values
    are in the fields after it. Return the field after the values, or −1 if there are fewer fields.
    """
    count = length[numbers] >> 1
    if numbers + count > fields:
        return -1
    for i in range(count):
        column = key + 1 + u16(payload, offset[numbers] + 2 * i, big)
        field = numbers + 1 + i
        if length[field] > 0:
            push(entries, state, role, 0, column, offset[field], length[field])
        else:
            push(entries, state, role, 0, column, 0, -1)
    return int(numbers + 1 + count)


class Pair(NamedTuple):
    """An undo record and its row or leaf vector: the payload, the fields of both, and the tables to
    fill.
    """

    payload: U8
    big: bool
    undo_offset: I64
    undo_length: I64
    undo_fields: int
    redo_offset: I64
    redo_length: I64
    redo_fields: int
    pieces: PieceColumns
    entries: EntryColumns
    state: I64


@inlined
def _undo_key(pair: Pair, role: int) -> int:
    at = pair.undo_offset[5]
    return _push_key(
        pair.payload, at, at + pair.undo_length[5], pair.big, role, pair.entries, pair.state
    )


@inlined
def _insert(pair: Pair) -> bool:
    """Decode a 10.2: push the key and the other columns from the leaf vector."""
    if pair.redo_fields < 3:
        return False
    at = pair.redo_offset[3]
    key = _push_key(
        pair.payload, at, at + pair.redo_length[3], pair.big, 2, pair.entries, pair.state
    )
    size = pair.redo_length[4] if pair.redo_fields >= 4 else 0
    row = pair.redo_offset[4] if pair.redo_fields >= 4 else 0
    return key >= 0 and _push_others(
        pair.payload, row, size, key, 0, pair.big, 2, pair.entries, pair.state
    )


@inlined
def _delete(pair: Pair) -> bool:
    """Decode a 10.4: push the key and the other columns from the undo record."""
    key = _undo_key(pair, 1)
    size = pair.undo_length[6] if pair.undo_fields >= 6 else 0
    row = pair.undo_offset[6] if pair.undo_fields >= 6 else 0
    return key >= 0 and _push_others(
        pair.payload, row, size, key, 0, pair.big, 1, pair.entries, pair.state
    )


@inlined
def _update_all(pair: Pair) -> bool:
    """Decode a 10.18 or 10.30, which writes all columns after the key: push the old values from the
    undo record, the new values from the leaf vector.
    """
    if pair.undo_fields < 6 or pair.redo_fields < 3:
        return False
    payload = pair.payload
    old, old_size = pair.undo_offset[6], pair.undo_length[6]
    new, new_size = pair.redo_offset[3], pair.redo_length[3]
    key = _undo_key(pair, 4)
    least = max(_count_others(payload, old, old_size), _count_others(payload, new, new_size))
    return (
        key >= 0
        and _push_others(payload, old, old_size, key, least, pair.big, 1, pair.entries, pair.state)
        and _push_others(payload, new, new_size, key, least, pair.big, 2, pair.entries, pair.state)
    )


@inlined
def _reinsert(pair: Pair) -> bool:
    """Decode a 10.18 that inserts a row again, because a delete left its key in the leaf: push the
    key from the undo record, the other columns from the leaf vector.
    """
    if pair.redo_fields < 3:
        return False
    at, size = pair.redo_offset[3], pair.redo_length[3]
    key = _undo_key(pair, 2)
    return key >= 0 and _push_others(
        pair.payload, at, size, key, 0, pair.big, 2, pair.entries, pair.state
    )


@inlined
def _update_listed(pair: Pair) -> int:
    """Decode a 10.35, which writes some columns after the key. Return the undo field after the old
    values, or −1 if the values do not fit.
    """
    if pair.undo_length[4] < KDILK_COLUMNS_LEAST or pair.undo_fields < 6 or pair.redo_fields < 3:
        return -1
    key = _undo_key(pair, 4)
    if key < 0:
        return -1
    payload, big = pair.payload, pair.big
    field = _push_listed(
        payload, pair.undo_offset, pair.undo_length, pair.undo_fields, 6, key, big, 1,
        pair.entries, pair.state,
    )  # fmt: skip
    end = _push_listed(
        payload, pair.redo_offset, pair.redo_length, pair.redo_fields, 3, key, big, 2,
        pair.entries, pair.state,
    )  # fmt: skip
    if field < 0 or end < 0:
        return -1
    # The old row ended before these columns, so they were NULL.
    width = int(payload[pair.undo_offset[4] + KDILK_NCOL])
    for i in range(pair.redo_length[3] >> 1):
        column = u16(payload, pair.redo_offset[3] + 2 * i, big)
        if column >= width:
            push(pair.entries, pair.state, 1, 0, key + 1 + column, 0, -1)
    return field


@inlined
def _row_change(pair: Pair, code: int) -> tuple[int, int]:
    """Push the columns of a leaf change; return (IRP, DRP or URP, the undo field at or after which
    supplemental data can begin).

    The first result can also be NO_ROW, _MALFORMED, or the `ChangeStatus` of an unsupported change.
    """
    what = pair.payload[pair.undo_offset[4]]
    if code == LEAF_INSERT and what in (KDILK_PURGE, KDILK_PURGE_TOO):
        return (IRP if _insert(pair) else _MALFORMED), 6
    if code == LEAF_DELETE and what == KDILK_RESTORE:
        return (DRP if _delete(pair) else _MALFORMED), 7
    if code == LEAF_DATA and what == KDILK_DATA:
        header = _header(pair, 7)
        if header == 0:
            return _OPERATION, 0
        if pair.payload[pair.undo_offset[header]] == SUPPLEMENTAL_INSERT:
            return (IRP if _reinsert(pair) else _MALFORMED), header
        return (URP if _update_all(pair) else _MALFORMED), header
    if code == LEAF_ROW and what == KDILK_ROW:
        return (URP if _update_all(pair) else _MALFORMED), 7
    if code == LEAF_COLUMNS and what == KDILK_COLUMNS:
        field = _update_listed(pair)
        return (URP if field > 0 else _MALFORMED), field
    if code not in LEAF_STRUCTURE or what in _ROW_UNDO:
        return _OPERATION, 0
    return NO_ROW, 0


@inlined
def _header(pair: Pair, field: int) -> int:
    """Return the supplemental header at or after an undo field; 0 if there is none."""
    if not pair.payload[pair.undo_offset[4] + KDILK_FLAGS] & KDILK_SUPPLEMENTAL:
        return 0
    return supplemental_header(pair.undo_length, field, pair.undo_fields)


@inlined
def _continues(pair: Pair, code: int) -> bool:
    """Return whether the changed row continues in the overflow segment."""
    payload = pair.payload
    found = False
    if code in (LEAF_INSERT, LEAF_DATA, LEAF_ROW):
        field = 4 if code == LEAF_INSERT else 3
        if pair.redo_fields >= field and pair.redo_length[field] >= ROW_SIZE:
            found = not payload[pair.redo_offset[field]] & FB_LAST
    has_old = code in (LEAF_DELETE, LEAF_DATA, LEAF_ROW) and pair.undo_fields >= 6
    if has_old and pair.undo_length[6] >= ROW_SIZE:
        found = found or not payload[pair.undo_offset[6]] & FB_LAST
    return found


@inlined
def _changes_values(pair: Pair, first: int) -> bool:
    """Return whether the values that were pushed from entry `first` on contain one after the change
    that is not the same before it.
    """
    entries, end = pair.entries, min(pair.state[ENTRIES], pair.entries.size)
    old = first
    for new in range(first, end):
        if entries.role[new] != _AFTER:
            continue
        old = value_of_column(entries, first, end, old, _BEFORE, int(entries.segcol[new]))
        if old < 0 or not same_bytes(pair.payload, entries, old, new):
            return True
    return False


@inlined
def _supplemental(pair: Pair, field: int, op: int, first: int) -> int:
    """Push the supplemental values of an undo record; return a `ChangeStatus`, or NO_ROW.

    A supplemental header can show that the vector changes no row: if the statement only locks the
    row, or if the row moves, because other vectors then delete and insert it. Such a vector has the
    same values before and after; otherwise it contradicts its header. A header of a cluster's key
    is a contradiction, because an index-organised table has no such key.

    Args:
        first: the first entry of the row's values.
    """
    header = _header(pair, field)
    if header == 0 and op == IRP:
        # The undo of an insert may contain what follows the key; nobody has seen it.
        header = _header(pair, field + 1)
    if header == 0:
        announced = pair.payload[pair.undo_offset[4] + KDILK_FLAGS] & KDILK_SUPPLEMENTAL
        return _SUPPLEMENTAL if announced else _OK
    at = pair.undo_offset[header]
    moved = pair.payload[at + SUPPLEMENTAL_FB] & SUPPLEMENTAL_MOVES != 0
    kind = pair.payload[at]
    if kind not in SUPPLEMENTAL_TYPES or kind == SUPPLEMENTAL_INTERNAL:
        return _CONTRADICTION
    if kind == SUPPLEMENTAL_LOCK or (moved and op == URP):
        return _CONTRADICTION if op != URP or _changes_values(pair, first) else NO_ROW
    end = push_supplemental(
        pair.payload, pair.undo_offset, pair.undo_length, pair.undo_fields, header, op, pair.big,
        pair.entries, pair.state,
    )  # fmt: skip
    return _SUPPLEMENTAL if end < 0 else _OK


@inlined
def index_piece(pair: Pair, code: int) -> int:
    """Add to the stack of row pieces the one that an undo record and its leaf vector describe;
    return a `ChangeStatus`, or NO_ROW.
    """
    if pair.undo_fields < 5 or pair.undo_length[4] < KDILK_SIZE:
        return _SHORT_FIELD
    if pair.redo_fields < 2 or pair.redo_length[2] < LEAF_LEAST:
        return _SHORT_FIELD
    payload, big, state, pieces = pair.payload, pair.big, pair.state, pair.pieces
    kdilk = pair.undo_offset[4]
    if payload[pair.redo_offset[2] + LEAF_CODE] & (LEAF_ARRAY | LEAF_CODE_UNKNOWN):
        return _OPERATION
    if _continues(pair, code):
        return _OVERFLOW
    first = state[ENTRIES]
    op, field = _row_change(pair, code)
    if op not in (IRP, DRP, URP):
        return _COLUMNS if op == _MALFORMED else op
    status = _supplemental(pair, field, op, first)
    if status != _OK:
        state[ENTRIES] = first
        return status
    piece = state[PIECES]
    open_piece(pieces, piece, op)
    pieces.sup_flags[piece] = NO_ROWID
    pieces.row_flags[piece] = FB_WHOLE
    pieces.bdba[piece] = u32(payload, kdilk + KDILK_BLOCK, big)
    pieces.slot[piece] = u16(payload, pair.redo_offset[2] + LEAF_SLOT, big)
    pieces.head_bdba[piece] = pieces.bdba[piece]
    pieces.head_slot[piece] = pieces.slot[piece]
    pieces.entry_count[piece] = state[ENTRIES] - first
    state[PIECES] = piece + 1
    return _OK
