"""Row pieces of committed transactions to complete row changes.

Pieces of one row between supplemental flags F (first) and L (last) are one change; without
supplemental data `chains` tells what belongs together. Facts: redo-format §7.2–§7.7; checked on
real logs and records of 19c, 23ai and 11.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from olr_pg.kernels import inlined, kernel
from olr_pg.redo.batch import EventKind, Packed, Role
from olr_pg.redo.iot import NO_ROWID
from olr_pg.redo.opcodes import (
    CFA,
    CMP,
    DRP,
    FB_FIRST,
    FB_LAST,
    IRP,
    LKR,
    LMN,
    ORP,
    QMD,
    QMI,
    URP,
)
from olr_pg.transactions.batch import DmlKind, Image
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
from olr_pg.transactions.delimit import live_changes
from olr_pg.transactions.row_job import (
    AFTER,
    AFTER_SUPPLEMENTAL,
    BEFORE,
    BEFORE_SUPPLEMENTAL,
    CAPACITY,
    CHANGES,
    FAULTS,
    INCOMPLETE,
    KNOWN_BEFORE,
    KNOWN_PIECES,
    MORE,
    MOST_OPEN,
    MULTI_PIECE,
    OK,
    PACKED,
    PARTS,
    SETTLED,
    STAMP,
    UNDECODED,
    UNDONE,
    UNMATCHED,
    VALUES,
    WITHOUT_SET,
    Before,
    Job,
    RowStatus,
    row_job,
)
from olr_pg.transactions.row_values import (
    NOT_PLAIN,
    gather_piece,
    push_full_image,
    push_plain_insert,
    push_update,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from olr_pg.dictionary.plan import RowPlan
    from olr_pg.redo.batch import ChangeBatch

    I64 = npt.NDArray[np.int64]

_AFTER_ROLE = int(Role.AFTER)
_BEFORE_IMAGE = int(Image.BEFORE)
_AFTER_IMAGE = int(Image.AFTER)

_NONE = 0
_INSERT = int(DmlKind.INSERT)
_DELETE = int(DmlKind.DELETE)
_UPDATE = int(DmlKind.UPDATE)
_LOB = int(EventKind.LOB)
_UNDECODED = int(EventKind.UNDECODED)

# What a supplemental header says of the change (redo-format §4.3).
_LOGGED_UPDATE = 1
_LOGGED_INSERT = 2
_LOGGED_DELETE = 4

_FIRST_AND_LAST = FB_FIRST | FB_LAST
_NEW_PACKED = int(Packed.NEW)

_SETS_NOTHING = -2


@inlined
def _kind_by_opcode(job: Job, head: int) -> int:
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
def _kind_of(job: Job, head: int) -> int:
    pieces = job.batch.pieces
    if pieces.op[head] == QMI:
        return _INSERT
    if pieces.op[head] == QMD:
        return _DELETE
    if pieces.supplemental[head]:
        kind = pieces.sup_type[head]
        if kind == _LOGGED_UPDATE:
            return _UPDATE
        if kind == _LOGGED_INSERT:
            return _INSERT
        if kind == _LOGGED_DELETE:
            return _DELETE
    return _kind_by_opcode(job, head)


@inlined
def _place(job: Job, head: int, kind: int, table: int) -> None:
    """Where the change happened: its row and its first record."""
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
def _is_as_stored(job: Job, piece: int, table: int) -> bool:
    """Whether the values of an inserted piece are those of the table's first delivered columns.

    Then they need not be written anew: most of what is loaded into a database is such.
    """
    if job.plan.as_stored[table] == 0 or job.links.shift[piece] != 0:
        return False
    first, end = job.entry_first[piece], job.entry_first[piece + 1]
    if end - first > job.plan.column_first[table + 1] - job.plan.column_first[table]:
        return False
    if job.batch.pieces.op[piece] == QMI:
        return True  # it has nothing else: `redo.pieces.multi_row_pieces`
    for entry in range(np.uint64(first), np.uint64(end)):
        source = job.batch.entries[entry]
        is_next = source.segcol == np.int64(entry) - first + 1
        if not is_next or source.role != _AFTER_ROLE or source.part != 0:
            return False
    return True


@inlined
def _put_stored(job: Job, piece: int, table: int) -> None:
    """The change of a row that one piece inserts and whose values stay where they are."""
    _place(job, piece, _INSERT, table)
    change = job.changes[np.uint64(job.counts[CHANGES])]
    change.stored_first = job.entry_first[piece]
    change.stored_count = job.entry_first[piece + 1] - job.entry_first[piece]
    job.entry_start[job.counts[CHANGES]] = job.counts[VALUES]
    job.counts[CHANGES] += 1


@inlined
def _lacks_values(job: Job, head: int, kind: int) -> bool:
    """Whether a compressed row image of a change was logged without all of its values.

    Of a whole row the supplemental data must have at least the columns that are stored. Those of an
    UPDATE are the values before it: where the new row is compressed, nothing tells what was set.
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
def _push_images(job: Job, head: int, kind: int, table: int) -> int:
    """Append the values of a change whose pieces must be gathered.

    Returns:
        A `RowStatus`, or _SETS_NOTHING: nothing was appended.
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
def _emit(job: Job, head: int) -> int:
    """One row change from the group that begins with piece `head`; a `RowStatus`."""
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


@inlined
def _find_group(job: Job, groups: int, table: int, piece: int) -> int:
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
def _close_group(job: Job, groups: int, group: int) -> int:
    """Take a group out of the open ones; its first piece."""
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
def _add_unlogged(job: Job, table: int, piece: int, groups: int) -> tuple[int, int, int]:
    """As `_add_piece`, of a piece without supplemental data."""
    what, group, groups = place_piece(job, table, piece, groups)
    if what == ALONE:
        return OK, groups, piece
    if what == CLOSES:
        head = job.groups.head[group]
        # A row is inserted, overwritten or forwarded at its head last, deleted there first.
        row = head if job.groups.kind[group] == SHRINKING else job.groups.tail[group]
        number_columns(job, head, row, table)
        return OK, groups - 1, _close_group(job, groups, group)
    if what == REFUSED:
        return MULTI_PIECE, groups, -1
    return INCOMPLETE if what == TOO_MANY else OK, groups, -1


@inlined
def _is_of_no_row(job: Job, table: int, piece: int, groups: int) -> bool:
    """Whether a piece that would begin a group is to be ignored: a CMP without a row.

    Where a row of the table is half seen it may be of that one. Facts: redo-format §5.12.
    """
    pieces = job.batch.pieces
    if pieces.op[piece] != CMP or pieces.sup_flags[piece] & FB_LAST or pieces.head_bdba[piece] != 0:
        return False
    for group in range(groups):
        if job.groups.kind[group] == LOGGED and job.groups.table[group] == table:
            return False
    return True


@inlined
def _add_logged(job: Job, table: int, piece: int, groups: int) -> tuple[int, int, int]:
    """As `_add_piece`, of a piece with supplemental data that is not a change by itself."""
    pieces = job.batch.pieces
    flags = pieces.sup_flags[piece]
    group = -1
    if not flags & FB_FIRST:
        group = _find_group(job, groups, table, piece)
    if group < 0:
        if _is_of_no_row(job, table, piece, groups):
            return OK, groups, -1
        if not flags & FB_FIRST or groups == MOST_OPEN:
            return INCOMPLETE, groups, -1
        group = groups
        groups += 1
        job.groups.kind[group] = LOGGED
        job.groups.table[group] = table
        job.groups.bdba[group] = pieces.head_bdba[piece]
        job.groups.slot[group] = pieces.head_slot[piece]
        job.groups.head[group] = piece
    else:
        job.links.next_piece[job.groups.tail[group]] = piece
    job.groups.tail[group] = piece
    if flags & FB_LAST:
        return OK, groups - 1, _close_group(job, groups, group)
    return OK, groups, -1


@inlined
def _add_piece(job: Job, event: int, piece: int, groups: int) -> tuple[int, int, int]:
    """Put one live piece into its group.

    Returns:
        (status, open groups, the first piece of a change that is complete now or −1).
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
    whole = pieces.sup_flags[piece] & _FIRST_AND_LAST == _FIRST_AND_LAST
    if op in (QMI, QMD) or (logged and whole):
        return OK, groups, piece
    if logged:
        return _add_logged(job, table, piece, groups)
    return _add_unlogged(job, table, piece, groups)


@inlined
def _is_left_out(job: Job, first_fault: int, table: int) -> bool:
    """Whether a fault of the transaction at hand is the table's."""
    for fault in range(first_fault, job.counts[FAULTS]):
        if job.batch.events.table[job.faults.event[fault]] == table:
            return True
    return False


@inlined
def _assemble(job: Job, live: Any, count: int, first_fault: int) -> tuple[int, int]:
    """The row changes of a transaction with `count` live events, but for tables with a fault.

    Where more of the transaction follows, those of events behind which no row is half seen.

    Returns:
        (status, event) – the latter where the status is not OK.
    """
    groups = 0
    more = job.counts[MORE] != 0
    job.counts[KNOWN_PIECES] = job.counts[KNOWN_BEFORE]
    settled = 0
    changes, entries, parts = job.counts[CHANGES], job.counts[VALUES], job.counts[PARTS]
    emptied, known = job.counts[WITHOUT_SET], job.counts[KNOWN_PIECES]
    for k in range(count):
        if more and groups == 0:
            settled = k
            changes, entries, parts = job.counts[CHANGES], job.counts[VALUES], job.counts[PARTS]
            emptied, known = job.counts[WITHOUT_SET], job.counts[KNOWN_PIECES]
        event = live[k]
        kind = job.batch.events.kind[event]
        if kind == _LOB or _is_left_out(job, first_fault, job.batch.events.table[event]):
            continue
        if kind == _UNDECODED:
            return UNDECODED, event
        for piece in range(job.piece_first[event], job.piece_first[event + 1]):
            status, groups, complete = _add_piece(job, event, piece, groups)
            if complete >= 0:
                status = _emit(job, complete)
            if status != OK:
                return status, event
    if groups > 0 and more:
        job.counts[CHANGES], job.counts[VALUES], job.counts[PARTS] = changes, entries, parts
        job.counts[WITHOUT_SET], job.counts[KNOWN_PIECES] = emptied, known
        job.counts[SETTLED] = settled
        return OK, 0
    job.counts[SETTLED] = count
    if groups > 0:
        status = INCOMPLETE if job.groups.kind[0] == LOGGED else MULTI_PIECE
        return status, int(job.links.owner[job.groups.head[0]])
    return OK, 0


@kernel
def assemble_rows(
    job: Job, order: Any, first: Any, end: Any, dml_first: Any, live: Any, undoable: Any
) -> int:
    """Row changes of transactions i, which have events ``order[first[i] : end[i]]``.

    Where a change of a table cannot be put together, none of that table's in its transaction are
    written, and a fault is.

    Args:
        job: input, output and room.
        order, first, end: the transactions, in the order to write them.
        dml_first: shape (n + 1); filled with where each transaction's changes begin.
        live, undoable: shape (events); room.

    Returns:
        `RowStatus` OK or CAPACITY.
    """
    for i in range(first.size):
        changes, entries, parts = job.counts[CHANGES], job.counts[VALUES], job.counts[PARTS]
        emptied, first_fault = job.counts[WITHOUT_SET], job.counts[FAULTS]
        dml_first[i] = changes
        count, undone, unmatched = live_changes(
            job.batch.events, order, first[i], end[i], live, undoable
        )
        job.counts[UNDONE] += undone
        job.counts[UNMATCHED] += unmatched
        while True:
            status, event = _assemble(job, live, count, first_fault)
            if status == OK:
                break
            if status == CAPACITY:
                return CAPACITY
            fault = job.counts[FAULTS]
            job.faults.transaction[fault] = i
            job.faults.event[fault] = event
            job.faults.status[fault] = status
            job.counts[FAULTS] = fault + 1
            # Begin anew without the table: the changes of others may have come before.
            job.counts[CHANGES], job.counts[VALUES], job.counts[PARTS] = changes, entries, parts
            job.counts[WITHOUT_SET] = emptied
    dml_first[first.size] = job.counts[CHANGES]
    job.entry_start[job.counts[CHANGES]] = job.counts[VALUES]
    return OK


def assemble(
    batch: ChangeBatch,
    plan: RowPlan,
    order: I64,
    first: I64,
    end: I64,
    before: Before | None = None,
    *,
    more: bool = False,
) -> tuple[Job, I64]:
    """(a job with the row changes of some transactions, where those of each begin).

    Args:
        batch, plan, before, more: see `row_job`.
        order, first, end: the transactions, see `assemble_rows`.
    """
    dml_first = np.zeros(first.size + 1, np.int64)
    live, undoable = np.empty((2, batch.events.size), np.int64)
    room = 1024 + 2 * batch.entries.size + 4 * batch.pieces.size
    while True:
        job = row_job(batch, plan, room, before, more=more)
        if assemble_rows(job, order, first, end, dml_first, live, undoable) == RowStatus.OK:
            return job, dml_first
        room *= 3
