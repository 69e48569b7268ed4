"""Row pieces of committed transactions to complete row changes.

Pieces of one row between supplemental flags F (first) and L (last) are one change; without
supplemental data `chains` tells what belongs together. Facts: redo-format §7.2–§7.7; checked on
real logs and records of 19c, 23ai and 11.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from olr_pg.kernels import inlined, kernel
from olr_pg.redo.batch import Role
from olr_pg.redo.iot import NO_ROWID
from olr_pg.transactions.chains import (
    ALONE,
    CLOSES,
    REFUSED,
    SHRINKING,
    TOO_MANY,
    number_columns,
    place_piece,
)
from olr_pg.transactions.delimit import UNDO_SEARCH_DEPTH, live_changes
from olr_pg.transactions.row_job import MOST_OPEN, Before, Job, RowStatus, row_job

if TYPE_CHECKING:
    import numpy.typing as npt

    from olr_pg.dictionary.plan import RowPlan
    from olr_pg.redo.batch import ChangeBatch

    I64 = npt.NDArray[np.int64]

_DEPTH = UNDO_SEARCH_DEPTH
_AFTER = int(Role.AFTER)


@inlined
def _cell(job: Job, role: int, column: int) -> Any:
    return job.merge.cells[np.uint64(4 * column + role)]


@inlined
def _gather_entry(job: Job, role: int, column: int, entry: int, stamp: int) -> None:
    cell = _cell(job, role, column)
    if cell.stamp != stamp:
        cell.stamp = stamp
        cell.first = entry
        cell.last = entry
        return
    part = job.batch.entries.part
    first, last = cell.first, cell.last
    if part[entry] & 2 and part[last] & 1:
        job.merge.following[role, last] = entry
        cell.last = entry
    elif part[entry] & 1 and part[first] & 2:
        job.merge.following[role, entry] = first
        cell.first = entry
    elif role == 1 or (role >= 2 and job.batch.entries.length[first] < 0):
        # The newest after value counts, else the first value that is not NULL: where a piece
        # lists a column it does not have as NULL, the 11.16 of the piece that has it follows.
        cell.first = entry
        cell.last = entry


@inlined
def _gather_piece(job: Job, piece: int, table: int, stamp: int) -> int:
    entries = job.batch.entries
    plan = job.plan
    first = plan.segment_first[table]
    width = plan.segment_first[table + 1] - first
    shift = job.links.shift[piece]
    for entry in range(np.uint64(job.entry_first[piece]), np.uint64(job.entry_first[piece + 1])):
        source = entries[entry]
        segcol = source.segcol + shift
        if segcol < 1 or segcol > width:
            return 2
        column = plan.segment_column[np.uint64(first + segcol - 1)]
        if column < 0:
            continue
        if source.part != 0:
            job.merge.following[:, entry] = -1
        role = source.role
        for r in range(4):
            if role >> r & 1:
                _gather_entry(job, r, column, entry, stamp)
    return 0


@inlined
def _kind_by_opcode(job: Job, head: int) -> int:
    kind = 0
    piece = head
    while piece >= 0:
        op = job.batch.pieces.op[piece]
        if op == 2:
            kind = 4 if kind == 0 else (6 if kind == 5 else kind)
        elif op == 3:
            kind = 5 if kind == 0 else (6 if kind == 4 else kind)
        elif op in (5, 6, 8) or (op in (16, 22) and kind == 0):
            kind = 6
        piece = job.links.next_piece[piece]
    return kind


@inlined
def _kind_of(job: Job, head: int) -> int:
    pieces = job.batch.pieces
    if pieces.op[head] == 11:
        return 4
    if pieces.op[head] == 12:
        return 5
    if pieces.supplemental[head]:
        kind = pieces.sup_type[head]
        if kind == 1:
            return 6
        if kind == 2:
            return 4
        if kind == 4:
            return 5
    return _kind_by_opcode(job, head)


@inlined
def _chosen(job: Job, plain: int, supplemental: int, column: int, stamp: int) -> tuple[int, int]:
    """(first entry of a column's value, its role): the logged one or the supplemental one.

    The entry is −1 where there is none.
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
    # A row's fields by its pointer: Numba multiplies the strides of a column at every access.
    value = values[np.uint64(at)]
    value.offset = offset
    value.length = length
    value.next = following
    value.column = column
    value.image = image


@inlined
def _push_value(job: Job, image: int, column: int, entry: int, role: int) -> bool:
    """Append a value, which begins at `entry` of `role`; −1 is NULL. Whether there was room."""
    values = job.values
    at = job.counts[1]
    if at == values.size:
        return False
    job.counts[1] = at + 1
    if entry < 0:
        _put_value(values, at, image, column, 0, -1, -1)
        return True
    entries = job.batch.entries
    source = entries[np.uint64(entry)]
    following = -1 if source.part == 0 else job.merge.following[role, entry]
    goes_on = -1 if following < 0 else -2 - job.counts[2]
    _put_value(values, at, image, column, source.offset, source.length, goes_on)
    while following >= 0:
        part = job.counts[2]
        if part == job.parts.shape[1]:
            return False
        job.parts[0, part] = entries.offset[following]
        job.parts[1, part] = max(0, entries.length[following])
        following = job.merge.following[role, following]
        job.parts[2, part] = part + 1 if following >= 0 else -1
        job.counts[2] = part + 1
    return True


@inlined
def _bit(job: Job, piece: int, segcol: int) -> bool:
    byte = (segcol - 1) >> 3
    if byte >= job.batch.pieces.changed_length[piece]:
        return False
    value = job.batch.data[job.batch.pieces.changed_offset[piece] + byte]
    return bool((value >> ((segcol - 1) & 7) & 1) != 0)


@inlined
def _really_changed(job: Job, head: int, segcol: int) -> bool:
    """Whether the changed-column bitmaps of a group, if any, name the column."""
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
def _push_full_image(
    job: Job, image: int, plain: int, supplemental: int, table: int, stamp: int
) -> bool:
    columns = job.plan.column_first[table + 1] - job.plan.column_first[table]
    for column in range(columns):
        entry, role = _chosen(job, plain, supplemental, column, stamp)
        if not _push_value(job, image, column, entry, role):
            return False
    return True


@inlined
def _push_update(job: Job, head: int, table: int, stamp: int) -> tuple[bool, int]:
    """(room was left, columns set)."""
    plan = job.plan
    columns = plan.column_first[table + 1] - plan.column_first[table]
    for column in range(columns):
        entry, role = _chosen(job, 0, 2, column, stamp)
        sets = _cell(job, 1, column).stamp == stamp
        if entry < 0 and not sets and _cell(job, 3, column).stamp == stamp:
            entry = int(_cell(job, 3, column).first)
            role = 3
        known = entry >= 0 or _cell(job, 0, column).stamp == stamp
        if known and not _push_value(job, 0, column, entry, role):
            return False, 0
    count = 0
    base = plan.segment_first[table]
    for segcol in range(1, plan.segment_first[table + 1] - base + 1):
        column = plan.segment_column[np.uint64(base + segcol - 1)]
        if column < 0:
            continue
        cell = _cell(job, 1, column)
        sets = cell.stamp == stamp
        if not sets and _cell(job, 0, column).stamp != stamp:
            continue
        entry = int(cell.first) if sets else -1
        if not _really_changed(job, head, segcol):
            continue
        if not _push_value(job, 1, column, entry, 1):
            return False, 0
        count += 1
    return True, count


@inlined
def _place(job: Job, head: int, kind: int, table: int) -> None:
    """Where the change happened: its row and its first record."""
    pieces = job.batch.pieces
    events = job.batch.events
    changes = job.changes
    at = job.counts[0]
    row = head
    if kind == 4:
        piece = head
        while piece >= 0:
            if pieces.op[piece] in (2, 11) and pieces.row_flags[piece] & 0x08:
                row = piece
            piece = job.links.next_piece[piece]
        changes.bdba[at] = pieces.bdba[row]
        changes.slot[at] = pieces.slot[row]
    else:
        changes.bdba[at] = job.links.bdba[row]
        changes.slot[at] = job.links.slot[row]
    first = head
    while pieces.op[first] == 4 and job.links.next_piece[first] >= 0:
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
    if job.batch.pieces.op[piece] == 11:
        return True  # it has nothing else: `redo.pieces.multi_row_pieces`
    for entry in range(np.uint64(first), np.uint64(end)):
        source = job.batch.entries[entry]
        is_next = source.segcol == np.int64(entry) - first + 1
        if not is_next or source.role != _AFTER or source.part != 0:
            return False
    return True


@inlined
def _put_stored(job: Job, piece: int, table: int) -> None:
    """The change of a row that one piece inserts and whose values stay where they are."""
    _place(job, piece, 4, table)
    change = job.changes[np.uint64(job.counts[0])]
    change.stored_first = job.entry_first[piece]
    change.stored_count = job.entry_first[piece + 1] - job.entry_first[piece]
    job.entry_start[job.counts[0]] = job.counts[1]
    job.counts[0] += 1


@inlined
def _push_plain_insert(job: Job, piece: int, table: int) -> int:
    """Append the image of a row that one piece inserts; a `RowStatus`, −1 if it is not plain.

    Plain are values of the after image that are not cut over pieces: most of what a database
    inserts. They need no gathering. Nothing is appended where −1 is returned.
    """
    entries = job.batch.entries
    values = job.values
    plan = job.plan
    first = plan.segment_first[table]
    width = plan.segment_first[table + 1] - first
    columns = plan.column_first[table + 1] - plan.column_first[table]
    at = job.counts[1]
    if at + columns > values.size:
        return 1
    filled = 0
    shift = job.links.shift[piece]
    for entry in range(np.uint64(job.entry_first[piece]), np.uint64(job.entry_first[piece + 1])):
        source = entries[entry]
        segcol = source.segcol + shift
        if segcol < 1 or segcol > width:
            return 2
        if source.role != _AFTER or source.part != 0:
            return -1
        column = plan.segment_column[np.uint64(first + segcol - 1)]
        if column < 0:
            continue
        while filled < column:
            _put_value(values, at + filled, 1, filled, 0, -1, -1)
            filled += 1
        _put_value(values, at + column, 1, column, source.offset, source.length, -1)
        filled = max(filled, column + 1)
    while filled < columns:
        _put_value(values, at + filled, 1, filled, 0, -1, -1)
        filled += 1
    job.counts[1] = at + columns
    return 0


@inlined
def _emit(job: Job, head: int) -> int:
    """One row change from the group that begins with piece `head`; a `RowStatus`."""
    if job.counts[0] == job.changes.kind.size:
        return 1
    table = job.batch.events.table[job.links.owner[head]]
    kind = _kind_of(job, head)
    if kind == 0:
        return 0
    if kind == 4 and job.links.next_piece[head] < 0 and job.batch.pieces.packed[head] == 0:
        if _is_as_stored(job, head, table):
            _put_stored(job, head, table)
            return 0
        start = job.counts[1]
        status = _push_plain_insert(job, head, table)
        if status >= 0:
            if status == 0:
                _place(job, head, kind, table)
                job.entry_start[job.counts[0]] = start
                job.counts[0] += 1
            return status
    stamp = job.counts[3] + 1
    job.counts[3] = stamp
    piece = head
    packed = False
    supplemental = 0
    while piece >= 0:
        status = _gather_piece(job, piece, table, stamp)
        if status != 0:
            return status
        packed = packed or job.batch.pieces.packed[piece] != 0
        supplemental += job.batch.pieces.entry_count[piece]
        piece = job.links.next_piece[piece]
    if packed and supplemental == 0:
        return 5
    _place(job, head, kind, table)
    job.entry_start[job.counts[0]] = job.counts[1]
    room = True
    if kind == 4:
        room = _push_full_image(job, 1, 1, 3, table, stamp)
    elif kind == 5:
        room = _push_full_image(job, 0, 0, 2, table, stamp)
    else:
        entries_before = job.counts[1]
        room, sets = _push_update(job, head, table, stamp)
        if room and sets == 0:
            job.counts[1] = entries_before
            job.counts[6] += 1
            return 0
    if not room:
        return 1
    job.counts[0] += 1
    return 0


@inlined
def _find_group(job: Job, groups: int, table: int, piece: int) -> int:
    pieces = job.batch.pieces
    for group in range(groups - 1, -1, -1):
        same = (
            job.groups.kind[group] == 0
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
        return 0, groups, piece
    if what == CLOSES:
        head = job.groups.head[group]
        # A row is inserted, overwritten or forwarded at its head last, deleted there first.
        row = head if job.groups.kind[group] == SHRINKING else job.groups.tail[group]
        number_columns(job, head, row, table)
        return 0, groups - 1, _close_group(job, groups, group)
    if what == REFUSED:
        return 3, groups, -1
    return 4 if what == TOO_MANY else 0, groups, -1


@inlined
def _add_logged(job: Job, table: int, piece: int, groups: int) -> tuple[int, int, int]:
    """As `_add_piece`, of a piece with supplemental data that is not a change by itself."""
    pieces = job.batch.pieces
    flags = pieces.sup_flags[piece]
    group = -1
    if not flags & 0x08:
        group = _find_group(job, groups, table, piece)
    if group < 0:
        if not flags & 0x08 or groups == MOST_OPEN:
            return 4, groups, -1
        group = groups
        groups += 1
        job.groups.kind[group] = 0
        job.groups.table[group] = table
        job.groups.bdba[group] = pieces.head_bdba[piece]
        job.groups.slot[group] = pieces.head_slot[piece]
        job.groups.head[group] = piece
    else:
        job.links.next_piece[job.groups.tail[group]] = piece
    job.groups.tail[group] = piece
    if flags & 0x04:
        return 0, groups - 1, _close_group(job, groups, group)
    return 0, groups, -1


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
    if op == 11 or op == 12 or (logged and pieces.sup_flags[piece] & 0x0C == 0x0C):
        return 0, groups, piece
    if logged:
        return _add_logged(job, table, piece, groups)
    return _add_unlogged(job, table, piece, groups)


@inlined
def _is_left_out(job: Job, first_fault: int, table: int) -> bool:
    """Whether a fault of the transaction at hand is the table's."""
    for fault in range(first_fault, job.counts[8]):
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
    more = job.counts[10] != 0
    job.counts[7] = job.counts[9]
    settled = 0
    changes, entries, parts = job.counts[0], job.counts[1], job.counts[2]
    emptied, known = job.counts[6], job.counts[7]
    for k in range(count):
        if more and groups == 0:
            settled = k
            changes, entries, parts = job.counts[0], job.counts[1], job.counts[2]
            emptied, known = job.counts[6], job.counts[7]
        event = live[k]
        kind = job.batch.events.kind[event]
        if kind == 7 or _is_left_out(job, first_fault, job.batch.events.table[event]):
            continue
        if kind == 11:
            return 6, event
        for piece in range(job.piece_first[event], job.piece_first[event + 1]):
            status, groups, complete = _add_piece(job, event, piece, groups)
            if complete >= 0:
                status = _emit(job, complete)
            if status != 0:
                return status, event
    if groups > 0 and more:
        job.counts[0], job.counts[1], job.counts[2] = changes, entries, parts
        job.counts[6], job.counts[7] = emptied, known
        job.counts[11] = settled
        return 0, 0
    job.counts[11] = count
    if groups > 0:
        status = 4 if job.groups.kind[0] == 0 else 3
        return status, int(job.links.owner[job.groups.head[0]])
    return 0, 0


@kernel
def assemble_rows(job: Job, order: Any, first: Any, end: Any, dml_first: Any, live: Any) -> int:
    """Row changes of transactions i, which have events ``order[first[i] : end[i]]``.

    Where a change of a table cannot be put together, none of that table's in its transaction are
    written, and a fault is.

    Args:
        job: input, output and room.
        order, first, end: the transactions, in the order to write them.
        dml_first: shape (n + 1); filled with where each transaction's changes begin.
        live: shape (events); room.

    Returns:
        `RowStatus` OK or CAPACITY.
    """
    for i in range(first.size):
        changes, entries, parts = job.counts[0], job.counts[1], job.counts[2]
        emptied, first_fault = job.counts[6], job.counts[8]
        dml_first[i] = changes
        count, undone, unmatched = live_changes(
            job.batch.events, order, first[i], end[i], _DEPTH, live
        )
        job.counts[4] += undone
        job.counts[5] += unmatched
        while True:
            status, event = _assemble(job, live, count, first_fault)
            if status == 0:
                break
            if status == 1:
                return 1
            fault = job.counts[8]
            job.faults.transaction[fault] = i
            job.faults.event[fault] = event
            job.faults.status[fault] = status
            job.counts[8] = fault + 1
            # Begin anew without the table: the changes of others may have come before.
            job.counts[0], job.counts[1], job.counts[2] = changes, entries, parts
            job.counts[6] = emptied
    dml_first[first.size] = job.counts[0]
    job.entry_start[job.counts[0]] = job.counts[1]
    return 0


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
    live = np.empty(batch.events.size, np.int64)
    room = 1024 + 2 * batch.entries.size + 4 * batch.pieces.size
    while True:
        job = row_job(batch, plan, room, before, more=more)
        if assemble_rows(job, order, first, end, dml_first, live) == RowStatus.OK:
            return job, dml_first
        room *= 3
