"""Groups row pieces: a group contains the pieces of one row that form one change.

In the supplemental headers, the first piece of a change has the flag F and the last one the flag L.
All pieces of a row from F to L are one change. If pieces have no supplemental data, `chains`
decides which of them belong together.

An open group is one that is not complete yet. The open groups are in `RowJob.groups`, in the order
in which they began. The pieces of each group are a list that is linked by `links.next_piece`:

    groups   0                     1
             head ──┐     tail ──┐ head = tail ──┐
    pieces          3 ──▶ 4 ──▶  7               5      next_piece of a tail is −1

A complete group is removed, and later groups move up. Facts: redo-format §7.2–§7.7.
"""

from __future__ import annotations

from olr_pg.kernels.compile import inlined
from olr_pg.redo.format.opcodes import CMP, QMD, QMI
from olr_pg.redo.format.row_fields import FB_FIRST, FB_LAST
from olr_pg.redo.pieces import is_by
from olr_pg.transactions.chains import (
    ALONE,
    CLOSES,
    LOGGED,
    REFUSED,
    SHRINKING,
    TOO_MANY,
    number_columns,
    place_piece,
)
from olr_pg.transactions.row_job import CONTRADICTS, INCOMPLETE, MOST_OPEN, MULTI_PIECE, OK, RowJob

_FIRST_AND_LAST = FB_FIRST | FB_LAST
"""The bits of the first and last piece. They have the same meaning in a supplemental header and in
a row piece.
"""


@inlined
def _find_group(job: RowJob, groups: int, table: int, piece: int) -> int:
    pieces = job.batch.pieces
    for group in range(groups - 1, -1, -1):
        same = (
            job.groups.kind[group] == LOGGED
            and job.groups.table[group] == table
            and job.groups.bdba[group] == pieces.head_bdba[piece]
            and job.groups.slot[group] == pieces.head_slot[piece]
        )
        if same:
            return group
    return -1


@inlined
def _close_group(job: RowJob, groups: int, group: int) -> int:
    """Remove a group from the open groups; return its first piece."""
    head = job.groups.head[group]
    for k in range(group, groups - 1):
        job.groups.kind[k] = job.groups.kind[k + 1]
        job.groups.table[k] = job.groups.table[k + 1]
        job.groups.bdba[k] = job.groups.bdba[k + 1]
        job.groups.slot[k] = job.groups.slot[k + 1]
        job.groups.row_bdba[k] = job.groups.row_bdba[k + 1]
        job.groups.row_slot[k] = job.groups.row_slot[k + 1]
        job.groups.head[k] = job.groups.head[k + 1]
        job.groups.tail[k] = job.groups.tail[k + 1]
    return int(head)


@inlined
def _add_unlogged(job: RowJob, table: int, piece: int, groups: int) -> tuple[int, int, int]:
    """Do what `add_piece` does, for a piece without supplemental data."""
    what, group, groups = place_piece(job, table, piece, groups)
    if what == ALONE:
        return OK, groups, piece
    if what == CLOSES:
        head = job.groups.head[group]
        # If a row is inserted, overwritten or forwarded, its head is the last piece of the group;
        # if it is deleted, its head is the first one.
        row = head if job.groups.kind[group] == SHRINKING else job.groups.tail[group]
        number_columns(job, head, row, table)
        return OK, groups - 1, _close_group(job, groups, group)
    if what == REFUSED:
        return MULTI_PIECE, groups, -1
    return INCOMPLETE if what == TOO_MANY else OK, groups, -1


@inlined
def _is_of_no_row(job: RowJob, table: int, piece: int, groups: int) -> bool:
    """Return whether to ignore a piece that would begin a group, because it is a CMP that belongs
    to no row.

    If a change of the table is incomplete, the piece may belong to its row, and the function
    returns False. Facts: redo-format §5.12.
    """
    pieces = job.batch.pieces
    if pieces.op[piece] != CMP or pieces.sup_flags[piece] & FB_LAST or pieces.head_bdba[piece] != 0:
        return False
    for group in range(groups):
        if job.groups.kind[group] == LOGGED and job.groups.table[group] == table:
            return False
    return True


@inlined
def _is_whole(flags: int) -> bool:
    return bool(flags & _FIRST_AND_LAST == _FIRST_AND_LAST)


@inlined
def _add_logged(job: RowJob, table: int, piece: int, groups: int) -> tuple[int, int, int]:
    """Do what `add_piece` does, for a piece that has supplemental data and is not a complete
    change.
    """
    pieces = job.batch.pieces
    flags = pieces.sup_flags[piece]
    group = -1
    if not flags & FB_FIRST:
        group = _find_group(job, groups, table, piece)
    if group < 0:
        if _is_of_no_row(job, table, piece, groups):
            return OK, groups, -1
        if flags & _FIRST_AND_LAST == 0 and _is_whole(pieces.row_flags[piece]):
            # The supplemental header has neither F nor L, but the piece contains the whole row, so
            # the piece is a complete change.
            if not is_by(pieces.op[piece], pieces.sup_type[piece]):
                return CONTRADICTS, groups, -1
            return OK, groups, piece
        if not flags & FB_FIRST or groups == MOST_OPEN:
            return INCOMPLETE, groups, -1
        group = groups
        groups += 1
        job.groups.kind[group] = LOGGED
        job.groups.table[group] = table
        job.groups.bdba[group] = pieces.head_bdba[piece]
        job.groups.slot[group] = pieces.head_slot[piece]
        job.groups.head[group] = piece
    elif pieces.sup_type[piece] != pieces.sup_type[job.groups.head[group]]:
        return CONTRADICTS, groups, -1
    else:
        job.links.next_piece[job.groups.tail[group]] = piece
    job.groups.tail[group] = piece
    if flags & FB_LAST:
        return OK, groups - 1, _close_group(job, groups, group)
    return OK, groups, -1


@inlined
def add_piece(job: RowJob, event: int, piece: int, groups: int) -> tuple[int, int, int]:
    """Add one piece to its group.

    Returns:
        (status, number of open groups, first piece of the change that is complete now, or −1).
    """
    pieces = job.batch.pieces
    job.links.owner[piece] = event
    job.links.next_piece[piece] = -1
    job.links.shift[piece] = 0
    job.links.bdba[piece] = pieces.head_bdba[piece]
    job.links.slot[piece] = pieces.head_slot[piece]
    table = job.batch.events.table[event]
    op = pieces.op[piece]
    logged = pieces.supplemental[piece] != 0
    whole = _is_whole(pieces.sup_flags[piece])
    if op in (QMI, QMD) or (logged and whole):
        return OK, groups, piece
    if logged:
        return _add_logged(job, table, piece, groups)
    return _add_unlogged(job, table, piece, groups)
