"""Assembles the row changes of committed transactions from their row pieces.

The events of a transaction that were not undone are processed in redo order. Each piece is added to
the group of its row (`piece_groups`). A complete group becomes a row change (`row_change`). If a
change cannot be assembled, this is a fault, and the transaction is processed again without the
table of this change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from olr_pg.kernels.compile import inlined, kernel
from olr_pg.redo.batch import EventKind
from olr_pg.transactions.chains import LOGGED
from olr_pg.transactions.delimit import live_changes
from olr_pg.transactions.finished_columns import OwnedChanges
from olr_pg.transactions.piece_groups import add_piece
from olr_pg.transactions.row_change import emit_change
from olr_pg.transactions.row_job import (
    CAPACITY,
    CHANGES,
    FAULTS,
    INCOMPLETE,
    KNOWN_BEFORE,
    KNOWN_PIECES,
    MORE,
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
