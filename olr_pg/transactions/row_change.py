"""Makes one row change from a complete group of pieces: determines its kind, its position and its
images.

Facts: redo-format §4.3, §5.4, §7.2–§7.7; checked on real logs and records of 19c, 23ai and 11.2.
"""

from __future__ import annotations

import numpy as np

from olr_pg.kernels.compile import inlined
from olr_pg.redo.batch import Packed, Role
from olr_pg.redo.format.opcodes import CFA, CMP, DRP, IRP, LKR, LMN, ORP, QMD, QMI, URP
from olr_pg.redo.format.row_fields import (
    FB_FIRST,
    SUPPLEMENTAL_DELETE,
    SUPPLEMENTAL_INSERT,
    SUPPLEMENTAL_UPDATE,
)
from olr_pg.redo.iot import NO_ROWID
from olr_pg.transactions.finished_columns import DmlKind, Image
from olr_pg.transactions.row_job import (
    AFTER,
    AFTER_SUPPLEMENTAL,
    BEFORE,
    BEFORE_SUPPLEMENTAL,
    CAPACITY,
    CHANGES,
    OK,
    PACKED,
    STAMP,
    VALUES,
    WITHOUT_SET,
    RowJob,
)
from olr_pg.transactions.row_values import (
    NOT_PLAIN,
    gather_piece,
    push_full_image,
    push_plain_insert,
    push_update,
)

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
    UPDATE, it contains the old values, so if the new row is compressed, the new values are unknown.
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
