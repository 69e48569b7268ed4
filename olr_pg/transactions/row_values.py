"""Collects the values of a row change from its pieces, and appends them as the images of the
change.

Facts: redo-format §7.4–§7.6; checked on real logs and records of 19c, 23ai and 11.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from olr_pg.kernels.compile import inlined
from olr_pg.redo.batch import CutFlag, Role
from olr_pg.transactions.finished_columns import Image
from olr_pg.transactions.row_job import (
    AFTER,
    AFTER_SUPPLEMENTAL,
    BEFORE,
    BEFORE_SUPPLEMENTAL,
    CAPACITY,
    OK,
    PARTS,
    ROLES,
    UNKNOWN_COLUMN,
    VALUES,
)

if TYPE_CHECKING:
    from olr_pg.transactions.row_job import RowJob

NOT_PLAIN: Final = -1

_AFTER_ROLE = int(Role.AFTER)
_BEFORE_IMAGE = int(Image.BEFORE)
_AFTER_IMAGE = int(Image.AFTER)
_TO_NEXT = int(CutFlag.TO_NEXT)
_FROM_PREVIOUS = int(CutFlag.FROM_PREVIOUS)


@inlined
def _cell(job: RowJob, role: int, column: int) -> Any:
    return job.merge.cells[np.uint64(ROLES * column + role)]


@inlined
def _gather_entry(job: RowJob, role: int, column: int, entry: int, stamp: int) -> None:
    cell = _cell(job, role, column)
    if cell.stamp != stamp:
        cell.stamp = stamp
        cell.first = entry
        cell.last = entry
        return
    part = job.batch.entries.part
    first, last = cell.first, cell.last
    if part[entry] & _FROM_PREVIOUS and part[last] & _TO_NEXT:
        job.merge.following[role, last] = entry
        cell.last = entry
    elif part[entry] & _TO_NEXT and part[first] & _FROM_PREVIOUS:
        job.merge.following[role, entry] = first
        cell.first = entry
    elif role == AFTER or (role >= BEFORE_SUPPLEMENTAL and job.batch.entries.length[first] < 0):
        # If the value after the change occurs several times, the last one counts. For supplemental
        # values, the first one that is not NULL counts: a piece can list a column as NULL because
        # the column is in another piece, whose 11.16 follows with the value.
        cell.first = entry
        cell.last = entry


@inlined
def gather_piece(job: RowJob, piece: int, table: int, stamp: int) -> int:
    """Add the values of a piece to the cells of the change with number `stamp`; return a
    `RowStatus`.
    """
    entries = job.batch.entries
    plan = job.plan
    first = plan.segment_first[table]
    width = plan.segment_first[table + 1] - first
    shift = job.links.shift[piece]
    for entry in range(np.uint64(job.entry_first[piece]), np.uint64(job.entry_first[piece + 1])):
        source = entries[entry]
        segcol = source.segcol + shift
        if segcol < 1 or segcol > width:
            return UNKNOWN_COLUMN
        column = plan.segment_column[np.uint64(first + segcol - 1)]
        if column < 0:
            continue
        if source.part != 0:
            job.merge.following[:, entry] = -1
        role = source.role
        for one in range(ROLES):
            if role >> one & 1:
                _gather_entry(job, one, column, entry, stamp)
    return OK


@inlined
def _chosen(job: RowJob, plain: int, supplemental: int, column: int, stamp: int) -> tuple[int, int]:
    """Return (first entry of a column's value, its role). The value is from the row vectors, or
    from the supplemental data if the row vectors contain no value or NULL.

    The entry is −1 if there is no value.
    """
    cell = _cell(job, plain, column)
    entry = -1
    role = plain
    if cell.stamp == stamp:
        entry = int(cell.first)
    if entry < 0 or job.batch.entries[np.uint64(entry)].length < 0:
        cell = _cell(job, supplemental, column)
        if cell.stamp == stamp:
            entry = int(cell.first)
            role = supplemental
    return entry, role


@inlined
def _put_value(
    values: Any, at: int, image: int, column: int, offset: int, length: int, following: int
) -> None:
    # Take the row of the table first, and then its fields. Numba then computes the address of the
    # row once, not at every access.
    value = values[np.uint64(at)]
    value.offset = offset
    value.length = length
    value.next = following
    value.column = column
    value.image = image


@inlined
def _push_value(job: RowJob, image: int, column: int, entry: int, role: int) -> bool:
    """Append the value whose first part is `entry` in `role`, or NULL if `entry` is −1; return
    whether there was space.
    """
    values = job.values
    at = job.counts[VALUES]
    if at == values.size:
        return False
    job.counts[VALUES] = at + 1
    if entry < 0:
        _put_value(values, at, image, column, 0, -1, -1)
        return True
    entries = job.batch.entries
    source = entries[np.uint64(entry)]
    following = -1 if source.part == 0 else job.merge.following[role, entry]
    goes_on = -1 if following < 0 else -2 - job.counts[PARTS]
    _put_value(values, at, image, column, source.offset, source.length, goes_on)
    while following >= 0:
        part = job.counts[PARTS]
        if part == job.parts.shape[1]:
            return False
        job.parts[0, part] = entries.offset[following]
        job.parts[1, part] = max(0, entries.length[following])
        following = job.merge.following[role, following]
        job.parts[2, part] = part + 1 if following >= 0 else -1
        job.counts[PARTS] = part + 1
    return True


@inlined
def _bit(job: RowJob, piece: int, segcol: int) -> bool:
    byte = (segcol - 1) >> 3
    if byte >= job.batch.pieces.changed_length[piece]:
        return False
    value = job.batch.data[job.batch.pieces.changed_offset[piece] + byte]
    return bool((value >> ((segcol - 1) & 7) & 1) != 0)


@inlined
def _really_changed(job: RowJob, head: int, segcol: int) -> bool:
    """Return whether a column really changed, according to the bitmaps of the group's pieces. If
    there are no bitmaps, return True.
    """
    piece = head
    logged = False
    while piece >= 0:
        if job.batch.pieces.changed_length[piece] > 0:
            if _bit(job, piece, segcol):
                return True
            logged = True
        piece = job.links.next_piece[piece]
    return not logged


@inlined
def push_full_image(
    job: RowJob, image: int, plain: int, supplemental: int, table: int, stamp: int
) -> bool:
    """Append one image with a value for every column of the table; return whether there was
    space.
    """
    columns = job.plan.column_first[table + 1] - job.plan.column_first[table]
    for column in range(columns):
        entry, role = _chosen(job, plain, supplemental, column, stamp)
        if not _push_value(job, image, column, entry, role):
            return False
    return True


@inlined
def push_update(job: RowJob, head: int, table: int, stamp: int) -> tuple[bool, int]:
    """Append both images of an update; return (whether there was space, number of columns that the
    update sets).
    """
    plan = job.plan
    columns = plan.column_first[table + 1] - plan.column_first[table]
    for column in range(columns):
        entry, role = _chosen(job, BEFORE, BEFORE_SUPPLEMENTAL, column, stamp)
        sets = _cell(job, AFTER, column).stamp == stamp
        if entry < 0 and not sets and _cell(job, AFTER_SUPPLEMENTAL, column).stamp == stamp:
            entry = int(_cell(job, AFTER_SUPPLEMENTAL, column).first)
            role = AFTER_SUPPLEMENTAL
        known = entry >= 0 or _cell(job, BEFORE, column).stamp == stamp
        if known and not _push_value(job, _BEFORE_IMAGE, column, entry, role):
            return False, 0
    count = 0
    base = plan.segment_first[table]
    for segcol in range(1, plan.segment_first[table + 1] - base + 1):
        column = plan.segment_column[np.uint64(base + segcol - 1)]
        if column < 0:
            continue
        cell = _cell(job, AFTER, column)
        sets = cell.stamp == stamp
        if not sets and _cell(job, BEFORE, column).stamp != stamp:
            continue
        entry = int(cell.first) if sets else -1
        if not _really_changed(job, head, segcol):
            continue
        if not _push_value(job, _AFTER_IMAGE, column, entry, AFTER):
            return False, 0
        count += 1
    return True, count


@inlined
def push_plain_insert(job: RowJob, piece: int, table: int) -> int:
    """Append the image of a row that is inserted as one piece; return a `RowStatus`, or NOT_PLAIN.

    This is a fast path for most inserts. If the piece contains supplemental values or parts of
    values, the result is NOT_PLAIN, and nothing is appended.
    """
    entries = job.batch.entries
    values = job.values
    plan = job.plan
    first = plan.segment_first[table]
    width = plan.segment_first[table + 1] - first
    columns = plan.column_first[table + 1] - plan.column_first[table]
    at = job.counts[VALUES]
    if at + columns > values.size:
        return CAPACITY
    filled = 0
    shift = job.links.shift[piece]
    for entry in range(np.uint64(job.entry_first[piece]), np.uint64(job.entry_first[piece + 1])):
        source = entries[entry]
        segcol = source.segcol + shift
        if segcol < 1 or segcol > width:
            return UNKNOWN_COLUMN
        if source.role != _AFTER_ROLE or source.part != 0:
            return NOT_PLAIN
        column = plan.segment_column[np.uint64(first + segcol - 1)]
        if column < 0:
            continue
        while filled < column:
            _put_value(values, at + filled, _AFTER_IMAGE, filled, 0, -1, -1)
            filled += 1
        _put_value(values, at + column, _AFTER_IMAGE, column, source.offset, source.length, -1)
        filled = max(filled, column + 1)
    while filled < columns:
        _put_value(values, at + filled, _AFTER_IMAGE, filled, 0, -1, -1)
        filled += 1
    job.counts[VALUES] = at + columns
    return OK
