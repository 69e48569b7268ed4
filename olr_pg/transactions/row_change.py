"""Makes one row change from a complete group of pieces: determines its kind and its position,
collects its values from the pieces, and appends them as its images.

Facts: redo-format §4.3, §5.4, §7.2–§7.7; checked on real logs and records of 19c, 23ai and 11.2.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from olr_pg.kernels.compile import inlined, part
from olr_pg.redo.batch import CutFlag, Packed, Role
from olr_pg.redo.format.opcodes import CFA, CMP, DRP, IRP, LKR, LMN, ORP, QMD, QMI, URP
from olr_pg.redo.format.row_fields import (
    FB_FIRST,
    SUPPLEMENTAL_DELETE,
    SUPPLEMENTAL_INSERT,
    SUPPLEMENTAL_UPDATE,
)
from olr_pg.redo.iot import NO_ROWID
from olr_pg.redo.pieces import same_bytes
from olr_pg.transactions.finished_columns import DmlKind, Image
from olr_pg.transactions.row_job import (
    AFTER,
    AFTER_SUPPLEMENTAL,
    BEFORE,
    BEFORE_SUPPLEMENTAL,
    CAPACITY,
    CHANGES,
    INCOMPLETE,
    OK,
    PACKED,
    PARTS,
    ROLES,
    STAMP,
    UNKNOWN_COLUMN,
    VALUES,
    WITH_PARTS,
    WITHOUT_SET,
    RowJob,
)

NOT_PLAIN: Final = -1

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
            job.counts[WITH_PARTS] = stamp
        role = source.role
        for one in range(ROLES):
            if role >> one & 1:
                _gather_entry(job, one, column, entry, stamp)
    return OK


@inlined
def _lacks_part(job: RowJob, role: int, column: int, stamp: int) -> bool:
    """Return whether a value continues before its first or after its last part in the change."""
    cell, part = _cell(job, role, column), job.batch.entries.part
    if cell.stamp != stamp:
        return False
    return bool(part[cell.first] & _FROM_PREVIOUS or part[cell.last] & _TO_NEXT)


@inlined
def _keeps_part(job: RowJob, column: int, stamp: int) -> bool:
    """Return whether an update contains the same part of a value before and after the change: the
    value is in two pieces of the row, and only the other columns of this piece changed.
    """
    old, new = _cell(job, BEFORE, column), _cell(job, AFTER, column)
    entries = job.batch.entries
    is_one = (
        old.stamp == stamp
        and new.stamp == stamp
        and old.first == old.last
        and new.first == new.last
        and entries.part[old.first] != 0
        and entries.part[old.first] == entries.part[new.first]
    )
    return bool(is_one and same_bytes(job.batch.data, entries, old.first, new.first))


@part
def settle_parts(job: RowJob, kind: int, table: int, stamp: int) -> int:
    """Forget the parts of values that an update does not change; return a `RowStatus`.

    A column whose parts were forgotten is unknown in both images. Any other value that lacks one of
    its parts would be delivered too short, so its change is INCOMPLETE. Supplemental values are not
    examined, because their header has the flags of the piece, even if the value that the piece cuts
    is not among them.
    """
    for column in range(job.plan.column_first[table + 1] - job.plan.column_first[table]):
        if kind == _UPDATE and _keeps_part(job, column, stamp):
            _cell(job, BEFORE, column).stamp = 0
            _cell(job, AFTER, column).stamp = 0
        if _lacks_part(job, BEFORE, column, stamp) or _lacks_part(job, AFTER, column, stamp):
            return INCOMPLETE
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

    The function is a fast path for most inserts. If the piece contains supplemental values or parts
    of values, the result is NOT_PLAIN, and nothing is appended.
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


_AFTER_ROLE = int(Role.AFTER)
_BEFORE_IMAGE = int(Image.BEFORE)
_AFTER_IMAGE = int(Image.AFTER)

_NONE = 0
_INSERT = int(DmlKind.INSERT)
_DELETE = int(DmlKind.DELETE)
_UPDATE = int(DmlKind.UPDATE)


_NEW_PACKED = int(Packed.NEW)

_SETS_NOTHING = -2


@inlined
def _kind_by_opcode(job: RowJob, head: int) -> int:
    kind = _NONE
    piece = head
    while piece >= 0:
        op = job.batch.pieces.op[piece]
        if op == IRP:
            kind = _INSERT if kind == _NONE else (_UPDATE if kind == _DELETE else kind)
        elif op == DRP:
            kind = _DELETE if kind == _NONE else (_UPDATE if kind == _INSERT else kind)
        elif op in (URP, ORP, CFA) or (op in (LMN, CMP) and kind == _NONE):
            kind = _UPDATE
        piece = job.links.next_piece[piece]
    return kind


@inlined
def _kind_of(job: RowJob, head: int) -> int:
    pieces = job.batch.pieces
    if pieces.op[head] == QMI:
        return _INSERT
    if pieces.op[head] == QMD:
        return _DELETE
    if pieces.supplemental[head]:
        kind = pieces.sup_type[head]
        if kind == SUPPLEMENTAL_UPDATE:
            return _UPDATE
        if kind == SUPPLEMENTAL_INSERT:
            return _INSERT
        if kind == SUPPLEMENTAL_DELETE:
            return _DELETE
    return _kind_by_opcode(job, head)


@inlined
def _place(job: RowJob, head: int, kind: int, table: int) -> None:
    """Set the position of the change: the address of its row, and the redo position of its first
    record.
    """
    pieces = job.batch.pieces
    events = job.batch.events
    changes = job.changes
    at = job.counts[CHANGES]
    row = head
    if kind == _INSERT:
        piece = head
        while piece >= 0:
            if pieces.op[piece] in (IRP, QMI) and pieces.row_flags[piece] & FB_FIRST:
                row = piece
            piece = job.links.next_piece[piece]
        changes.bdba[at] = pieces.bdba[row]
        changes.slot[at] = pieces.slot[row]
    else:
        changes.bdba[at] = job.links.bdba[row]
        changes.slot[at] = job.links.slot[row]
    first = head
    while pieces.op[first] == LKR and job.links.next_piece[first] >= 0:
        first = job.links.next_piece[first]
    event = job.links.owner[first]
    changes.kind[at] = kind
    changes.table[at] = table
    changes.scn[at] = events.scn[event]
    changes.time[at] = events.time[event]
    changes.sequence[at] = events.sequence[event]
    changes.block[at] = events.block[event]
    changes.offset[at] = events.offset[event]
    changes.dataobj[at] = events.dataobj[event]
    changes.stored_first[at] = -1
    changes.stored_count[at] = 0
    if not pieces.supplemental[row] and pieces.sup_flags[row] & NO_ROWID:
        changes.dataobj[at] = 0


@inlined
def _is_as_stored(job: RowJob, piece: int, table: int) -> bool:
    """Return whether an inserted piece contains exactly the values of the table's first delivered
    columns.

    The values of such a piece do not need to be copied. Most rows of bulk loads are like this.
    """
    if job.plan.as_stored[table] == 0 or job.links.shift[piece] != 0:
        return False
    first, end = job.entry_first[piece], job.entry_first[piece + 1]
    if end - first > job.plan.column_first[table + 1] - job.plan.column_first[table]:
        return False
    if job.batch.pieces.op[piece] == QMI:
        return True  # a QMI has no other values, see `redo.pieces.multi_row_pieces`
    for entry in range(np.uint64(first), np.uint64(end)):
        source = job.batch.entries[entry]
        is_next = source.segcol == np.int64(entry) - first + 1
        if not is_next or source.role != _AFTER_ROLE or source.part != 0:
            return False
    return True


@inlined
def _put_stored(job: RowJob, piece: int, table: int) -> None:
    """Append the insert of a row that has one piece, without copying its values."""
    _place(job, piece, _INSERT, table)
    change = job.changes[np.uint64(job.counts[CHANGES])]
    change.stored_first = job.entry_first[piece]
    change.stored_count = job.entry_first[piece + 1] - job.entry_first[piece]
    job.entry_start[job.counts[CHANGES]] = job.counts[VALUES]
    job.counts[CHANGES] += 1


@inlined
def _lacks_values(job: RowJob, head: int, kind: int) -> bool:
    """Return whether values of a compressed row image are missing in the redo.

    The image itself is not decoded; its values must be in the supplemental data. For an INSERT or
    DELETE, the supplemental data must contain at least as many columns as the row stores. For an
    UPDATE, the supplemental data contain the old values, so if the new row is compressed, the new
    values are unknown.
    """
    pieces = job.batch.pieces
    packed = 0
    stored = 0
    entries = 0
    piece = head
    while piece >= 0:
        packed |= pieces.packed[piece]
        stored += pieces.width[piece] if kind == _INSERT else pieces.old_width[piece]
        entries += pieces.entry_count[piece]
        piece = job.links.next_piece[piece]
    if packed == 0:
        return False
    if kind == _UPDATE:
        return packed & _NEW_PACKED != 0 or entries == 0
    return entries < max(1, stored)


@inlined
def _push_images(job: RowJob, head: int, kind: int, table: int) -> int:
    """Combine the pieces of a change, and append its values.

    Returns:
        A `RowStatus`, or _SETS_NOTHING if nothing was appended.
    """
    stamp = job.counts[STAMP] + 1
    job.counts[STAMP] = stamp
    piece = head
    while piece >= 0:
        status = gather_piece(job, piece, table, stamp)
        if status != OK:
            return status
        piece = job.links.next_piece[piece]
    if job.counts[WITH_PARTS] == stamp:
        status = settle_parts(job, kind, table, stamp)
        if status != OK:
            return status
    if _lacks_values(job, head, kind):
        return PACKED
    if kind == _INSERT:
        room = push_full_image(job, _AFTER_IMAGE, AFTER, AFTER_SUPPLEMENTAL, table, stamp)
    elif kind == _DELETE:
        room = push_full_image(job, _BEFORE_IMAGE, BEFORE, BEFORE_SUPPLEMENTAL, table, stamp)
    else:
        values = job.counts[VALUES]
        room, sets = push_update(job, head, table, stamp)
        if room and sets == 0:
            job.counts[VALUES] = values
            return _SETS_NOTHING
    return OK if room else CAPACITY


@inlined
def emit_change(job: RowJob, head: int) -> int:
    """Append one row change from the group that begins with piece `head`; return a `RowStatus`."""
    if job.counts[CHANGES] == job.changes.kind.size:
        return CAPACITY
    table = job.batch.events.table[job.links.owner[head]]
    kind = _kind_of(job, head)
    if kind == _NONE:
        return OK
    status = NOT_PLAIN
    start = job.counts[VALUES]
    if kind == _INSERT and job.links.next_piece[head] < 0 and job.batch.pieces.packed[head] == 0:
        if _is_as_stored(job, head, table):
            _put_stored(job, head, table)
            return OK
        status = push_plain_insert(job, head, table)
    if status == NOT_PLAIN:
        status = _push_images(job, head, kind, table)
    if status == _SETS_NOTHING:
        job.counts[WITHOUT_SET] += 1
        return OK
    if status == OK:
        _place(job, head, kind, table)
        job.entry_start[job.counts[CHANGES]] = start
        job.counts[CHANGES] += 1
    return status
