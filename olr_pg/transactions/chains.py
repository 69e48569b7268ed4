"""Assembles changes of rows with several pieces that were logged without supplemental data.

Without supplemental data, the redo does not show which pieces belong to one change, or which column
of the row is the first column of a piece. Both facts follow from the links between the pieces
(redo-format §5.3, §5.4, §7.5, §7.9), if the transaction itself writes or deletes all pieces from
the row's first piece on:

- INSERT: the last piece is written first. Each further piece has a link (nrid) to the piece that
  was written before it. The head is written last.
- DELETE: the head is deleted first, then the piece to which it links, and so on to the last piece.
- UPDATE that moves a whole row to another block: new pieces are written, then the head is
  overwritten by a stub that links to them. If the row moves back: the stub is overwritten by the
  row, then the pieces are deleted. If the row moves on to a third block: new pieces are written,
  the old piece is deleted, and the head gets a new forwarding address.
- UPDATE that makes a row too long for its head: new pieces are written, then a shorter head.
- UPDATE of a row's first piece, which begins with column 1. UPDATE of another piece, if the same
  transaction has written all pieces of the row earlier.

All other changes are refused, because a piece that is not the first does not show its row or its
first column. Facts: redo-format. These rules could not be checked, because all available real
records of such rows have supplemental data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from olr_pg.kernels.compile import inlined
from olr_pg.redo.format.opcodes import CFA, DRP, IRP, ORP, URP
from olr_pg.redo.format.row_fields import FB_FIRST, FB_HEAD, FB_LAST, FB_NEXT, FB_PREVIOUS
from olr_pg.transactions.row_job import KNOWN_MAX, KNOWN_PIECES

if TYPE_CHECKING:
    from olr_pg.transactions.row_job import RowJob

LOGGED: Final = 0
"""Kind of an open group (`row_job.GROUP`): its pieces have supplemental data."""
GROWING: Final = 1
"""Kind of an open group: pieces that were written. The group's address is the address of the row's
first piece so far; the next piece that is written links to it.
"""
SHRINKING: Final = 2
"""Kind of an open group: pieces that were deleted. The group's address is that of the piece that
must be deleted next.
"""
MOVED: Final = 3
"""Kind of an open group: pieces that were written, after which the old piece was deleted. Only the
new nrid of the head is missing.
"""

KEPT: Final = 0
ALONE: Final = 1
CLOSES: Final = 2
REFUSED: Final = 3
TOO_MANY: Final = 4

_CUT = FB_PREVIOUS | FB_NEXT
_FIRST_HEAD = FB_HEAD | FB_FIRST
_WHOLE = _FIRST_HEAD | FB_LAST


@inlined
def _group_at(job: RowJob, groups: int, kind: int, table: int, bdba: int, slot: int) -> int:
    """Return the open group of this kind at this address, −1 if there is none."""
    for group in range(groups - 1, -1, -1):
        same = (
            job.groups.kind[group] == kind
            and job.groups.table[group] == table
            and job.groups.bdba[group] == bdba
            and job.groups.slot[group] == slot
        )
        if same:
            return group
    return -1


@inlined
def _open_group(job: RowJob, kind: int, table: int, piece: int, groups: int) -> int:
    """Open a group with one piece, at the address of the piece. `groups` is the number of open
    groups.
    """
    job.groups.kind[groups] = kind
    job.groups.table[groups] = table
    job.groups.head[groups] = piece
    job.groups.tail[groups] = piece
    _set_address(job, groups, job.batch.pieces.bdba[piece], job.batch.pieces.slot[piece])
    job.groups.row_bdba[groups] = -1
    job.groups.row_slot[groups] = -1
    return groups


@inlined
def _set_address(job: RowJob, group: int, bdba: int, slot: int) -> None:
    job.groups.bdba[group] = bdba
    job.groups.slot[group] = slot


@inlined
def _append(job: RowJob, group: int, piece: int) -> None:
    job.links.next_piece[job.groups.tail[group]] = piece
    job.groups.tail[group] = piece


@inlined
def _is_cut(job: RowJob, piece: int) -> bool:
    """Return whether the piece contains only a part of a column's value."""
    for entry in range(job.entry_first[piece], job.entry_first[piece + 1]):
        if job.batch.entries.part[entry] != 0:
            return True
    return False


@inlined
def _reaches_the_end(job: RowJob, group: int) -> bool:
    """Return whether the written pieces of a group include the row's last piece."""
    return bool(job.batch.pieces.row_flags[job.groups.head[group]] & FB_LAST)


@inlined
def _inserted(job: RowJob, table: int, piece: int, groups: int) -> tuple[int, int, int]:
    pieces = job.batch.pieces
    flags = pieces.row_flags[piece]
    if flags & _WHOLE == _WHOLE:
        return ALONE, 0, groups
    if flags & _FIRST_HEAD == FB_HEAD:
        return REFUSED, 0, groups
    group = -1
    if not flags & FB_LAST:
        group = _group_at(
            job, groups, GROWING, table, pieces.next_bdba[piece], pieces.next_slot[piece]
        )
    if group < 0:
        if groups == job.groups.size - 1:
            return TOO_MANY, 0, groups
        group = _open_group(job, GROWING, table, piece, groups)
        groups += 1
    else:
        _append(job, group, piece)
        _set_address(job, group, pieces.bdba[piece], pieces.slot[piece])
    if flags & _FIRST_HEAD == _FIRST_HEAD:
        return (CLOSES if _reaches_the_end(job, group) else REFUSED), group, groups
    if flags & FB_FIRST:
        job.groups.row_bdba[group] = pieces.head_bdba[piece]
        job.groups.row_slot[group] = pieces.head_slot[piece]
    return KEPT, group, groups


@inlined
def _deleted(job: RowJob, table: int, piece: int, groups: int) -> tuple[int, int, int]:
    pieces = job.batch.pieces
    flags = pieces.row_flags[piece]
    if flags & _WHOLE == _WHOLE:
        return ALONE, 0, groups
    group = _group_at(job, groups, SHRINKING, table, pieces.bdba[piece], pieces.slot[piece])
    if group >= 0:
        _append(job, group, piece)
        if flags & FB_LAST:
            return CLOSES, group, groups
        _set_address(job, group, pieces.old_next_bdba[piece], pieces.old_next_slot[piece])
        return KEPT, group, groups
    if flags & FB_HEAD:
        return _shrinks_from(job, table, piece, groups)
    if flags & (FB_FIRST | FB_LAST) != FB_FIRST | FB_LAST:
        return REFUSED, 0, groups
    for group in range(groups - 1, -1, -1):
        moves = (
            job.groups.kind[group] == GROWING
            and job.groups.table[group] == table
            and job.groups.row_bdba[group] == pieces.head_bdba[piece]
            and job.groups.row_slot[group] == pieces.head_slot[piece]
        )
        if moves:
            _append(job, group, piece)
            job.groups.kind[group] = MOVED
            return KEPT, group, groups
    return REFUSED, 0, groups


@inlined
def _shrinks_from(job: RowJob, table: int, head: int, groups: int) -> tuple[int, int, int]:
    """Open a group for the deletion of a row's pieces, which begins with its head. The pieces after
    the head are expected to be deleted next.
    """
    pieces = job.batch.pieces
    if pieces.old_flags[head] & FB_LAST:
        return REFUSED, 0, groups
    if groups == job.groups.size - 1:
        return TOO_MANY, 0, groups
    group = _open_group(job, SHRINKING, table, head, groups)
    _set_address(job, group, pieces.old_next_bdba[head], pieces.old_next_slot[head])
    return KEPT, group, groups + 1


@inlined
def _stays_in_place(job: RowJob, piece: int) -> bool:
    """Return whether a row's first piece keeps its columns and its link to the next piece."""
    pieces = job.batch.pieces
    old, new = pieces.old_flags[piece], pieces.row_flags[piece]
    same = (
        old & (_FIRST_HEAD | FB_LAST) == _FIRST_HEAD
        and new & (_FIRST_HEAD | FB_LAST) == _FIRST_HEAD
    )
    return bool(
        same
        and pieces.width[piece] == pieces.old_width[piece]
        and pieces.next_bdba[piece] == pieces.old_next_bdba[piece]
        and pieces.next_slot[piece] == pieces.old_next_slot[piece]
        and not _is_cut(job, piece)
    )


@inlined
def _written_width(job: RowJob, group: int) -> int:
    """Return the number of columns of all written pieces in a group."""
    pieces = job.batch.pieces
    width = 0
    piece = job.groups.head[group]
    while piece >= 0:
        width += pieces.width[piece]
        piece = job.links.next_piece[piece]
    return width


@inlined
def _overwritten(job: RowJob, table: int, piece: int, groups: int) -> tuple[int, int, int]:
    pieces = job.batch.pieces
    old, new = pieces.old_flags[piece], pieces.row_flags[piece]
    if new & _WHOLE == _WHOLE:
        if old & _WHOLE == _WHOLE:
            return ALONE, 0, groups
        if old & FB_HEAD:
            return _shrinks_from(job, table, piece, groups)
        return REFUSED, 0, groups
    group = _group_at(job, groups, GROWING, table, pieces.next_bdba[piece], pieces.next_slot[piece])
    if not new & FB_HEAD or group < 0:
        return (ALONE if _stays_in_place(job, piece) else REFUSED), 0, groups
    is_stub = not new & FB_FIRST
    row_known = job.groups.row_bdba[group] >= 0
    own_row = (
        job.groups.row_bdba[group] == pieces.bdba[piece]
        and job.groups.row_slot[group] == pieces.slot[piece]
    )
    if (is_stub and not own_row) or (not is_stub and row_known):
        return REFUSED, group, groups
    if old & _WHOLE == _WHOLE and _reaches_the_end(job, group):
        _append(job, group, piece)
        return CLOSES, group, groups
    last = job.groups.head[group]
    splits = (
        old & (_FIRST_HEAD | FB_LAST) == _FIRST_HEAD
        and not is_stub
        and not (old | new | pieces.row_flags[last]) & _CUT
        and not pieces.row_flags[last] & FB_LAST
        and pieces.next_bdba[last] == pieces.old_next_bdba[piece]
        and pieces.next_slot[last] == pieces.old_next_slot[piece]
        and _written_width(job, group) + pieces.width[piece] == pieces.old_width[piece]
    )
    if not splits:
        return REFUSED, group, groups
    _append(job, group, piece)
    return CLOSES, group, groups


@inlined
def _updated(job: RowJob, table: int, piece: int, groups: int) -> tuple[int, int, int]:
    pieces = job.batch.pieces
    flags = pieces.row_flags[piece]
    if flags & _WHOLE == _WHOLE:
        return ALONE, 0, groups
    # If a piece is not the last one and changes its number of columns, columns move to or from
    # other pieces.
    grows = pieces.width[piece] != pieces.old_width[piece] and not flags & FB_LAST
    if grows or _is_cut(job, piece):
        return REFUSED, 0, groups
    if flags & _FIRST_HEAD == _FIRST_HEAD:
        return ALONE, 0, groups
    for at in range(job.counts[KNOWN_PIECES] - 1, -1, -1):
        known = (
            job.known.table[at] == table
            and job.known.bdba[at] == pieces.bdba[piece]
            and job.known.slot[at] == pieces.slot[piece]
        )
        if known:
            job.links.shift[piece] = job.known.shift[at]
            job.links.bdba[piece] = job.known.row_bdba[at]
            job.links.slot[piece] = job.known.row_slot[at]
            return ALONE, 0, groups
    return REFUSED, 0, groups


@inlined
def _forwarded(job: RowJob, table: int, piece: int, groups: int) -> tuple[int, int, int]:
    pieces = job.batch.pieces
    bdba, slot = pieces.next_bdba[piece], pieces.next_slot[piece]
    group = _group_at(job, groups, MOVED, table, bdba, slot)
    if group < 0:
        # If no new pieces were written at this address, the new forwarding address changes no row.
        waiting = _group_at(job, groups, GROWING, table, bdba, slot)
        return (REFUSED if waiting >= 0 else KEPT), 0, groups
    own_row = (
        job.groups.row_bdba[group] == pieces.bdba[piece]
        and job.groups.row_slot[group] == pieces.slot[piece]
    )
    if not own_row or not _reaches_the_end(job, group):
        return REFUSED, group, groups
    _append(job, group, piece)
    return CLOSES, group, groups


@inlined
def place_piece(job: RowJob, table: int, piece: int, groups: int) -> tuple[int, int, int]:
    """Add a piece without supplemental data to a group, or decide that it is a complete change or
    must be refused.

    Returns:
        (decision, group of the piece, number of open groups). The decision is KEPT; ALONE (the
        piece is a complete change); CLOSES (it completes its group); REFUSED; or TOO_MANY.
    """
    op = job.batch.pieces.op[piece]
    if op == IRP:
        return _inserted(job, table, piece, groups)
    if op == DRP:
        return _deleted(job, table, piece, groups)
    if op == URP:
        return _updated(job, table, piece, groups)
    if op == ORP:
        return _overwritten(job, table, piece, groups)
    if op == CFA:
        return _forwarded(job, table, piece, groups)
    return KEPT, 0, groups


@inlined
def number_columns(job: RowJob, head: int, row: int, table: int) -> None:
    """Set for each piece of a complete group the number of the row's columns that precede it.

    Pieces are written from the last piece to the first, and deleted from the first piece to the
    last. A piece that an ORP overwrites is always the first piece of the row, its head.

    Args:
        head: the first piece of the group.
        row: the piece that has the address of the row.
    """
    pieces = job.batch.pieces
    job.links.bdba[head] = pieces.bdba[row]
    job.links.slot[head] = pieces.slot[row]
    written = 0
    piece = head
    while piece >= 0:
        if pieces.op[piece] in (IRP, ORP):
            written += pieces.width[piece] - (pieces.row_flags[piece] >> 1 & 1)
        piece = job.links.next_piece[piece]
    deleted = 0
    piece = head
    while piece >= 0:
        op = pieces.op[piece]
        if op in (IRP, ORP):
            goes_on = pieces.row_flags[piece] >> 1 & 1
            written -= pieces.width[piece] - goes_on
            job.links.shift[piece] = written - goes_on
        if op in (DRP, ORP):
            goes_on = pieces.old_flags[piece] >> 1 & 1
            job.links.shift[piece] = deleted - goes_on
            deleted += pieces.old_width[piece] - goes_on
        if op == IRP and job.counts[KNOWN_PIECES] < KNOWN_MAX:
            _remember(job, piece, row, table)
        piece = job.links.next_piece[piece]


@inlined
def _remember(job: RowJob, piece: int, row: int, table: int) -> None:
    at = job.counts[KNOWN_PIECES]
    known: Any = job.known
    known.table[at] = table
    known.bdba[at] = job.batch.pieces.bdba[piece]
    known.slot[at] = job.batch.pieces.slot[piece]
    known.shift[at] = job.links.shift[piece]
    known.row_bdba[at] = job.batch.pieces.bdba[row]
    known.row_slot[at] = job.batch.pieces.slot[row]
    job.counts[KNOWN_PIECES] = at + 1
