"""Assembles the row changes of committed transactions from their row pieces.

The events of a transaction that were not undone are processed in redo order. Each piece is added to
the group of its row: a group contains the pieces of one row that form one change. A complete group
becomes a row change (`row_change`). A change that cannot be assembled is a fault, and the
transaction is processed again without the table of this change.

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

from typing import TYPE_CHECKING, Any

import numpy as np

from olr_pg.kernels.compile import inlined, kernel
from olr_pg.redo.batch import EventKind
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
from olr_pg.transactions.delimit import live_changes
from olr_pg.transactions.finished_columns import OwnedChanges
from olr_pg.transactions.row_change import emit_change
from olr_pg.transactions.row_job import (
    CAPACITY,
    CHANGES,
    CONTRADICTS,
    FAULTS,
    INCOMPLETE,
    KNOWN_BEFORE,
    KNOWN_PIECES,
    MORE,
    MOST_OPEN,
    MULTI_PIECE,
    OK,
    PARTS,
    SETTLED,
    UNDECODED,
    UNDONE,
    UNMATCHED,
    VALUES,
    WITHOUT_SET,
    Before,
    RowJob,
    RowStatus,
    assembled,
    row_job,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from olr_pg.dictionary.decoding_plan import RowPlan
    from olr_pg.redo.batch import ChangeBatch

    I64 = npt.NDArray[np.int64]

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
    """Return whether a piece that would begin a group is a CMP that belongs to no row, and must be
    ignored.

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


_LOB = int(EventKind.LOB)
_UNDECODED = int(EventKind.UNDECODED)


@inlined
def _is_left_out(job: RowJob, first_fault: int, table: int) -> bool:
    """Return whether the current transaction has a fault for the table."""
    for fault in range(first_fault, job.counts[FAULTS]):
        if job.batch.events.table[job.faults.event[fault]] == table:
            return True
    return False


@inlined
def _assemble(job: RowJob, live: Any, count: int, first_fault: int) -> tuple[int, int]:
    """Write the row changes from `count` events of a transaction, without tables that have a fault.

    If more events of the transaction follow, write only the changes up to the last event after
    which no row change is incomplete.

    Returns:
        (status, event). If the status is not OK, the event is the one that cannot be processed.
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
            status, groups, complete = add_piece(job, event, piece, groups)
            if complete >= 0:
                status = emit_change(job, complete)
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
    job: RowJob, order: Any, first: Any, end: Any, dml_first: Any, live: Any, undoable: Any
) -> int:
    """Write the row changes of several transactions. The events of transaction i are
    ``order[first[i] : end[i]]``.

    If a change of a table cannot be assembled, a fault is written, and no change of this table in
    the transaction.

    Args:
        job: input, output and work space.
        order, first, end: the events of the transactions. Their changes are written in the order of
            the transactions.
        dml_first: shape (n + 1); filled with the index of each transaction's first change.
        live, undoable: shape (events); work space.

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
            # Start again without the table. Changes that were already written are discarded,
            # because changes of the table can be among them.
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
) -> tuple[RowJob, OwnedChanges]:
    """Return (the job with its counts and faults, the row changes of some transactions).

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
            return job, OwnedChanges(assembled(job), dml_first)
        room *= 3
