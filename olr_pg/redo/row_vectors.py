"""Decodes row vectors and undo records (5.1) into column values.

A row vector contains KTB redo, KDO and columns. An undo record (5.1) contains ktudb, ktub, and then
the same three parts. All kernels append to `EntryColumns` at ``state[ENTRIES]``, and set
``state[FULL]`` if there is no space. Facts: redo-format §4.3, §5; checked on real records of 11.2,
19c and 23ai.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba import boolean, from_dtype, int64, void

from olr_pg.kernels.compile import inlined, inlined_for
from olr_pg.redo.batch import ENTRY, CutFlag, EntryColumns, Role
from olr_pg.redo.format.opcodes import CFA, DRP, IRP, LKR, LMN, ORP, URP
from olr_pg.redo.format.row_fields import (
    FB_NEXT,
    FB_PREVIOUS,
    KDO,
    KDO_COLUMN_VECTOR,
    KDO_OP,
    KDO_OPERATION,
    KDO_PIECE_BYTES,
    KDO_PIECE_CC,
    KDO_PIECE_FB,
    KDO_PIECE_NULLS,
    KDO_PIECE_TABN,
    KDO_ROW_SCN,
    KDO_TYPE,
    KDO_UPDATE_FB,
    KDO_UPDATE_NCOL,
    KDO_UPDATE_NNEW,
    KDO_UPDATE_NULLS,
    LENGTH_LONG,
    LENGTH_NULL,
    SUPPLEMENTAL_CC,
    SUPPLEMENTAL_FB,
    SUPPLEMENTAL_NULL,
    SUPPLEMENTAL_SIZES,
)
from olr_pg.redo.integers import BYTES, low_int16, u16

ENTRIES_TYPE: Final = from_dtype(ENTRY)[::1]
INTEGERS: Final = int64[::1]

EVENTS: Final = 0
PIECES: Final = 1
ENTRIES: Final = 2
FULL: Final = 3
SHIFT: Final = 4
PACKED: Final = 5
PASSED: Final = 6
NOTED: Final = 7
PARALLELS: Final = 8
UNKNOWN_ITEM: Final = 9
STATE_SIZE: Final = 10

_KDO_LEAST = KDO.end("xtype")

_BEFORE = int(Role.BEFORE)
_AFTER = int(Role.AFTER)
_BEFORE_SUPPLEMENTAL = int(Role.BEFORE_SUPPLEMENTAL)
_AFTER_SUPPLEMENTAL = int(Role.AFTER_SUPPLEMENTAL)
_TO_NEXT = int(CutFlag.TO_NEXT)
_FROM_PREVIOUS = int(CutFlag.FROM_PREVIOUS)


@inlined_for(void(ENTRIES_TYPE, INTEGERS, int64, int64, int64, int64, int64))
def push(
    entries: EntryColumns, state: Any, role: int, part: int, segcol: int, offset: int, length: int
) -> None:
    """Append one value; if there is no space, only set ``state[FULL]``."""
    at = state[ENTRIES]
    if at == entries.size:
        state[FULL] = 1
        return
    # Take the row of the table first, and then its fields. Numba then computes the address of the
    # row once, not at every access.
    entry = entries[np.uint64(at)]
    entry.role = role
    entry.part = part
    entry.segcol = low_int16(segcol)
    entry.offset = offset
    entry.length = length
    state[ENTRIES] = at + 1


@inlined
def next_value(length: Any, field: int, fields: int) -> int:
    """Return the next field that is not empty. A NULL column can have an empty field or no
    field.
    """
    while field <= fields and length[field] == 0:
        field += 1
    return field


@inlined
def push_whole_piece(
    payload: Any,
    offset: Any,
    length: Any,
    fields: int,
    kdo: int,
    big: bool,
    role: int,
    entries: EntryColumns,
    state: Any,
) -> int:
    """Push the values of an IRP or ORP; return the next field, or −1 if the number of columns does
    not match the fields.

    Column i of the piece is pushed as segment column i. After this call, the caller adds the number
    of the piece's first column.
    """
    at = offset[kdo]
    if length[kdo] < KDO_PIECE_NULLS:
        return -1
    flags = payload[at + KDO_PIECE_FB]
    count = int(payload[at + KDO_PIECE_CC])
    bitmap_end = length[kdo] - KDO_PIECE_NULLS
    field = kdo + 1
    first = next_value(length, field, fields)
    row_length = u16(payload, at + KDO_PIECE_BYTES, big)
    # A compressed piece is a single field with as many bytes as the piece has in the block. An
    # uncompressed piece with one column can look the same, so it is read as compressed only if its
    # table is not table 0. In a block of compressed rows, table 0 is the dictionary.
    may_be_packed = count != 1 or payload[at + KDO_PIECE_TABN] != 0
    if may_be_packed and first <= fields and length[first] == row_length:
        state[PACKED] = 1
        return first + 1
    for i in range(count):
        part = 0
        if i == 0 and flags & FB_PREVIOUS:
            part |= _FROM_PREVIOUS
        if i == count - 1 and flags & FB_NEXT:
            part |= _TO_NEXT
        if i >> 3 < bitmap_end and payload[at + KDO_PIECE_NULLS + (i >> 3)] >> (i & 7) & 1:
            push(entries, state, role, part, i, 0, -1)
            continue
        field = next_value(length, field, fields)
        if field > fields:
            return -1
        push(entries, state, role, part, i, offset[field], length[field])
        field += 1
    return field


@inlined
def push_updated_columns(
    payload: Any,
    offset: Any,
    length: Any,
    fields: int,
    kdo: int,
    big: bool,
    role: int,
    entries: EntryColumns,
    state: Any,
) -> int:
    """Push the values of a URP; return the next field, or −1 if they do not fit.

    The vector lists the numbers of the updated columns. Column n is pushed as segment column n −
    (the first number), and ``state[SHIFT]`` is set to the first number.
    """
    at = offset[kdo]
    state[SHIFT] = 0
    if length[kdo] < KDO_UPDATE_NULLS:
        return -1
    flags = payload[at + KDO_UPDATE_FB]
    width = int(payload[at + KDO_UPDATE_NCOL])
    count = int(payload[at + KDO_UPDATE_NNEW])
    bitmap_end = length[kdo] - KDO_UPDATE_NULLS
    if kdo + 1 > fields:
        return kdo + 1 if count == 0 else -1
    numbers = offset[kdo + 1]
    first = u16(payload, numbers, big) if length[kdo + 1] >= 2 else 0
    state[SHIFT] = first
    if payload[at + KDO_TYPE] & KDO_COLUMN_VECTOR:
        return _push_column_vector(
            payload, offset, length, fields, kdo, big, role, count, entries, state
        )
    listed = length[kdo + 1] >> 1
    if listed < count:
        return -1
    field = kdo + 2
    for i in range(listed):
        number = u16(payload, numbers + 2 * i, big)
        part = 0
        if number == 0 and flags & FB_PREVIOUS:
            part |= _FROM_PREVIOUS
        if number == width - 1 and flags & FB_NEXT:
            part |= _TO_NEXT
        is_told = i >> 3 < bitmap_end
        is_empty = field <= fields and length[field] == 0
        # If the NULL bitmap is too short, as for some SYS tables, an empty field means NULL.
        is_null = i >= count or (
            payload[at + KDO_UPDATE_NULLS + (i >> 3)] >> (i & 7) & 1 != 0 if is_told else is_empty
        )
        if is_null:
            push(entries, state, role, part, number - first, 0, -1)
            # If the NULL column has an empty field, skip this field, so that it is not read as the
            # next column.
            field += is_empty
            continue
        field = next_value(length, field, fields)
        if field > fields:
            return -1
        push(entries, state, role, part, number - first, offset[field], length[field])
        field += 1
    return field


@inlined
def _push_column_vector(
    payload: Any,
    offset: Any,
    length: Any,
    fields: int,
    kdo: int,
    big: bool,
    role: int,
    count: int,
    entries: EntryColumns,
    state: Any,
) -> int:
    if kdo + 2 > fields:
        return -1
    end = push_row(
        payload,
        offset[kdo + 2],
        offset[kdo + 2] + length[kdo + 2],
        count,
        big,
        role,
        0,
        entries,
        state,
    )
    return kdo + 3 if end >= 0 else -1


@inlined_for(int64(BYTES[0], int64, int64, int64, boolean, int64, int64, ENTRIES_TYPE, INTEGERS))
def push_row(
    payload: Any,
    at: int,
    end: int,
    count: int,
    big: bool,
    role: int,
    segcol: int,
    entries: EntryColumns,
    state: Any,
) -> int:
    """Push the `count` values at `at`, each of which follows its length, as columns `segcol`,
    `segcol` + 1, …; return their end, or −1 if they do not fit.
    """
    first = state[ENTRIES]
    has_room = first + count <= entries.size
    if not has_room:
        state[FULL] = 1
    for i in range(count):
        if at >= end:
            return -1
        size = int(payload[np.uint64(at)])
        at += 1
        if size == 0:
            return -1  # the length byte of NULL is LENGTH_NULL; 0 occurs only in compressed rows
        if size == LENGTH_NULL:
            size = 0
        elif size == LENGTH_LONG:
            if at + 2 > end:
                return -1
            size = u16(payload, at, big)
            at += 2
        if at + size > end:
            return -1
        if has_room:
            # Not `push`, because it reads and writes the count in memory for every value.
            entry = entries[np.uint64(first + i)]
            entry.role = role
            entry.part = 0
            entry.segcol = segcol + i
            entry.offset = at
            entry.length = size if size > 0 else -1
        at += size
    if has_room:
        state[ENTRIES] = first + count
    return at


@inlined
def push_undo_columns(
    payload: Any,
    offset: Any,
    length: Any,
    fields: int,
    big: bool,
    entries: EntryColumns,
    state: Any,
) -> int:
    """Push the values before the change, from an undo record (KDO is field 4). Return the field
    after the values, or −1 if the values do not fit.
    """
    if fields < 4 or length[4] < _KDO_LEAST:
        return -1
    op = payload[offset[4] + KDO_OP] & KDO_OPERATION
    state[SHIFT] = 0
    field = 5
    if op in (IRP, ORP):
        field = push_whole_piece(payload, offset, length, fields, 4, big, _BEFORE, entries, state)
    elif op == URP:
        field = push_updated_columns(
            payload, offset, length, fields, 4, big, _BEFORE, entries, state
        )
    if field >= 0 and payload[offset[4] + KDO_OP] & KDO_ROW_SCN and op != LMN:
        field = next_value(length, field, fields)
        if field <= fields and length[field] in (6, 8):
            field += 1
    return field


@inlined
def push_redo_columns(
    payload: Any,
    offset: Any,
    length: Any,
    fields: int,
    op: int,
    big: bool,
    entries: EntryColumns,
    state: Any,
) -> int:
    """Push the values after the change, from a row vector (KDO is field 2). Return the field after
    the values, or −1 if the values do not fit.
    """
    state[SHIFT] = 0
    if op in (IRP, ORP):
        return push_whole_piece(payload, offset, length, fields, 2, big, _AFTER, entries, state)
    if op == URP:
        return push_updated_columns(payload, offset, length, fields, 2, big, _AFTER, entries, state)
    return 3


@inlined
def supplemental_header(length: Any, field: int, fields: int) -> int:
    """Return the field of the supplemental header at or after `field`; 0 if there is none."""
    field = next_value(length, field, fields)
    if field <= fields and length[field] in SUPPLEMENTAL_SIZES:
        return field
    return 0


@inlined
def supplemental_role(op: int) -> int:
    """Return the `Role` of supplemental values, for a row vector with code `op` (redo-format
    §7.6).
    """
    if op in (IRP, LKR):
        return _AFTER_SUPPLEMENTAL
    if op in (DRP, CFA):
        return _BEFORE_SUPPLEMENTAL
    return _BEFORE_SUPPLEMENTAL | _AFTER_SUPPLEMENTAL


@inlined
def push_supplemental(
    payload: Any,
    offset: Any,
    length: Any,
    fields: int,
    header: int,
    op: int,
    big: bool,
    entries: EntryColumns,
    state: Any,
) -> int:
    """Push the supplemental values that follow the field `header`; return the field after them, or
    −1 if they do not fit.
    """
    at = offset[header]
    count = u16(payload, at + SUPPLEMENTAL_CC, big)
    if count == 0:
        return header + 1
    if header + 2 > fields or min(length[header + 1], length[header + 2]) < 2 * count:
        return -1
    flags = payload[at + SUPPLEMENTAL_FB]
    role = supplemental_role(op)
    for i in range(count):
        number = u16(payload, offset[header + 1] + 2 * i, big)
        size = u16(payload, offset[header + 2] + 2 * i, big)
        field = header + 3 + i
        part = 0
        if i == 0 and flags & FB_PREVIOUS:
            part |= _FROM_PREVIOUS
        if i == count - 1 and flags & FB_NEXT:
            part |= _TO_NEXT
        if size == SUPPLEMENTAL_NULL or size == 0:
            push(entries, state, role, part, number, 0, -1)
        elif field > fields or length[field] != size:
            return -1
        else:
            push(entries, state, role, part, number, offset[field], length[field])
    return header + 3 + count
