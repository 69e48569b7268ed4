"""Joins the undo of a change that is divided among several undo records.

If the undo of a change does not fit in one undo block, Oracle writes it as several 5.1 vectors:
first TAIL, then MID parts, and last HEAD, which is followed by the row vector. The vectors can be
in different splits. So the vectors are kept as events with raw fields, and are joined when their
transaction is complete:

- UNDO_PART is a TAIL or MID. Such an event has one piece, whose entries are the fields of the
  vector from field 3 on.
- SPLIT_CHANGE is a HEAD with its row vector. Such an event has two pieces: one has the fields of
  the HEAD from field 3 on, the other has the fields of the row vector from field 2 on.

The joined events become a CHANGE event. Events that cannot be joined become an UNDECODED event.

In these events, `serial` contains the flags of ktub. In a SPLIT_CHANGE, `session` contains the
opcode of the row vector in bits 0–15, the number of bytes of a row SCN in bits 16–23, and the byte
order in bit 24.

Facts: redo-format §4.2. These rules could not be checked, because no real record was available.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.kernels.compile import inlined, kernel
from olr_pg.redo.batch import ChangeBatch, EventKind, empty_entries, empty_pieces
from olr_pg.redo.column_tables import head, take
from olr_pg.redo.format.undo_fields import KTUB_CUT, KTUB_TAIL
from olr_pg.redo.iot import Pair
from olr_pg.redo.pairs import pair_pieces
from olr_pg.redo.pieces import ChangeStatus
from olr_pg.redo.row_vectors import ENTRIES, FULL, PIECES, STATE_SIZE
from olr_pg.redo.vectors import MAX_FIELDS
from olr_pg.transactions.select import concatenate, first_rows

if TYPE_CHECKING:
    from olr_pg.transactions.delimit import Instances
    from olr_pg.transactions.waiting_storage import Allocate

PARTS_MAX: Final = 4096
"""Maximum number of undo vectors of one change. For comparison, a row of 64 kB needs eight."""

_PART = int(EventKind.UNDO_PART)
_CHANGE = int(EventKind.SPLIT_CHANGE)
_BROKEN = -1
_NO_PARTS = int(ChangeStatus.SPLIT_UNDO)


class Joining(NamedTuple):
    """The input and the output of `join_changes`.

    Attributes:
        piece_first, entry_first: the index of each event's first piece, and of each piece's first
            entry.
        cluster_columns: CLUCOLS of each table.
        parts: the UNDO_PART events of the current change that were collected so far.
        scratch: shape (4, …); offsets and lengths of the fields of undo record and row vector.
        pieces, entries, data: the output.
        heads: the SPLIT_CHANGE events that were joined.
        piece_count: the number of pieces of each joined event.
        failed, reasons: the events that cannot be joined, and the `ChangeStatus` of each.
        state: as in `redo.row_vectors`.
    """

    batch: ChangeBatch
    piece_first: npt.NDArray[np.int64]
    entry_first: npt.NDArray[np.int64]
    cluster_columns: npt.NDArray[np.int32]
    parts: npt.NDArray[np.int64]
    scratch: npt.NDArray[np.int64]
    pieces: Any
    entries: Any
    data: npt.NDArray[np.uint8]
    heads: npt.NDArray[np.int64]
    piece_count: npt.NDArray[np.int32]
    failed: npt.NDArray[np.int64]
    reasons: npt.NDArray[np.int64]
    state: npt.NDArray[np.int64]


@inlined
def _append(job: Joining, piece: int, side: int, field: int, at: int, goes_on: int) -> int:
    """Copy the fields of a raw piece to `at`; return the number of the last field, −1 if there are
    too many.

    If `goes_on` is not 0, the first of these fields is the continuation of field `field`.
    """
    batch = job.batch
    offset, length = job.scratch[side], job.scratch[side + 1]
    for entry in range(job.entry_first[piece], job.entry_first[piece + 1]):
        size = batch.entries.length[entry]
        if goes_on != 0:
            length[field] += size
        else:
            field += 1
            if field > MAX_FIELDS:
                return -1
            offset[field] = at
            length[field] = size
        goes_on = 0
        for k in range(size):
            job.data[at + k] = batch.data[batch.entries.offset[entry] + k]
        at += size
    return field


@inlined
def _end_of(job: Joining, side: int, field: int, at: int) -> int:
    return job.scratch[side, field] + job.scratch[side + 1, field] if field > 0 else at


@inlined
def _join(job: Joining, event: int, parts: int, at: int) -> tuple[int, int]:
    """Join one change from its HEAD and its other parts; return (`ChangeStatus`, end of the copied
    bytes).
    """
    events = job.batch.events
    for side in range(4):
        for k in range(3):
            job.scratch[side, k] = 0
    field = _append(job, job.piece_first[event], 0, 2, at, 0)
    flags = events.serial[event]
    for k in range(parts - 1, -1, -1):
        part = job.parts[k]
        named = events.dataobj[part]
        if field < 0 or (named != 0 and named != events.dataobj[event]):
            return _NO_PARTS, at
        at = max(at, _end_of(job, 0, field, at))
        goes_on = flags & KTUB_CUT if field > 2 else 0
        field = _append(job, job.piece_first[part], 0, field, at, goes_on)
        flags = events.serial[part]
    if field < 0:
        return _NO_PARTS, at
    at = max(at, _end_of(job, 0, field, at))
    redo_fields = _append(job, job.piece_first[event] + 1, 2, 1, at, 0)
    if redo_fields < 0:
        return _NO_PARTS, at
    at = max(at, _end_of(job, 2, redo_fields, at))
    form = events.session[event]
    pair = Pair(
        job.data, bool(form >> 24 & 1), job.scratch[0], job.scratch[1], field, job.scratch[2],
        job.scratch[3], redo_fields, job.pieces, job.entries, job.state,
    )  # fmt: skip
    clustered = job.cluster_columns[events.table[event]]
    status = pair_pieces(pair, form >> 8 & 0xFF, form & 0xFF, form >> 16 & 0xFF, clustered)
    return status, at


@inlined
def _fail(job: Joining, failed: int, event: int, status: int) -> int:
    """Add an event to those that cannot be joined; return the number of these events."""
    job.failed[failed] = event
    job.reasons[failed] = status
    return failed + 1


@kernel
def join_changes(job: Joining, order: Any, first: Any, end: Any) -> tuple[bool, int, int]:
    """Join the divided changes of several transactions. The events of transaction i are
    ``order[first[i] : end[i]]``.

    Returns:
        (whether there was space, number of joined changes, number of events that cannot be joined).
    """
    kind = job.batch.events.kind
    at = 0
    joined = 0
    failed = 0
    for i in range(first.size):
        parts = 0
        for k in range(first[i], end[i]):
            event = order[k]
            if kind[event] == _PART:
                if job.batch.events.serial[event] & KTUB_TAIL:
                    parts = 0
                elif parts == 0 or parts == PARTS_MAX:
                    parts = _BROKEN
                if parts != _BROKEN:
                    job.parts[parts] = event
                    parts += 1
            elif kind[event] == _CHANGE:
                if parts <= 0:
                    failed = _fail(job, failed, event, _NO_PARTS)
                    parts = 0
                    continue
                before, entries = job.state[PIECES], job.state[ENTRIES]
                if before == job.pieces.op.size:
                    return False, joined, failed
                status, at = _join(job, event, parts, at)
                parts = 0
                if job.state[FULL] != 0:
                    return False, joined, failed
                if status > 0:
                    failed = _fail(job, failed, event, status)
                    job.state[PIECES], job.state[ENTRIES] = before, entries
                    continue
                job.heads[joined] = event
                job.piece_count[joined] = job.state[PIECES] - before
                joined += 1
    return True, joined, failed


def join_split_undo(
    batch: ChangeBatch,
    instances: Instances,
    closed: npt.NDArray[np.int64],
    cluster_columns: npt.NDArray[np.int32],
    allocate: Allocate | None = None,
) -> tuple[ChangeBatch, Instances]:
    """Join the divided changes of the transactions `closed`; return the new batch and its sections.

    The joined changes are appended to the batch. In `Instances.order`, each joined change replaces
    its SPLIT_CHANGE event. Changes that cannot be joined become UNDECODED.

    Args:
        batch, instances: the batch and its sections, from `delimit`.
        closed: rows of `instances` that are complete transactions.
        cluster_columns: CLUCOLS of each table.
        allocate: returns a buffer for the bytes of the batch; None to use ordinary memory.
    """
    kind = batch.events.kind
    wanted = (kind == EventKind.SPLIT_CHANGE) | (kind == EventKind.UNDO_PART)
    if not wanted.any():
        return batch, instances
    first, end = instances.first[closed], instances.first[closed + 1]
    room = 256 + 2 * batch.entries.role.size
    while True:
        job = _job(batch, wanted, cluster_columns, room)
        is_done, joined, failed = join_changes(job, instances.order, first, end)
        if is_done:
            break
        room *= 3
    batch = _with_undecoded(batch, job.failed[:failed], job.reasons[:failed])
    heads = job.heads[:joined]
    events = take(batch.events, heads)
    events.kind[:], events.session[:], events.serial[:] = EventKind.CHANGE, 0, 0
    events.piece_count[:] = job.piece_count[:joined]
    whole = ChangeBatch(
        events,
        head(job.pieces, int(job.state[PIECES])),
        head(job.entries, int(job.state[ENTRIES])),
        job.data,
    )
    place = np.arange(kind.size, dtype=np.int64)
    place[heads] = kind.size + np.arange(joined)
    return (
        concatenate([batch, whole], allocate),
        instances._replace(order=place[instances.order]),
    )


def _with_undecoded(
    batch: ChangeBatch, failed: npt.NDArray[np.int64], reasons: npt.NDArray[np.int64]
) -> ChangeBatch:
    """Return the batch with some events changed into UNDECODED events, whose pieces nothing
    reads.
    """
    if failed.size == 0:
        return batch
    # Copy the events, because other batches may share them.
    events = batch.events.copy()
    events.kind[failed] = EventKind.UNDECODED
    events.session[failed] = reasons
    return batch._replace(events=events)


def _job(
    batch: ChangeBatch,
    wanted: npt.NDArray[np.bool_],
    cluster_columns: npt.NDArray[np.int32],
    room: int,
) -> Joining:
    split = np.flatnonzero(wanted)
    per_piece = np.repeat(wanted, batch.events.piece_count)
    per_entry = np.repeat(per_piece, batch.pieces.entry_count)
    size = int(batch.entries.length[per_entry].clip(0).sum())
    return Joining(
        batch,
        first_rows(batch.events.piece_count),
        first_rows(batch.pieces.entry_count),
        cluster_columns,
        np.empty(PARTS_MAX, np.int64),
        np.empty((4, MAX_FIELDS + 1), np.int64),
        empty_pieces(split.size + room),
        empty_entries(room),
        np.empty(size, np.uint8),
        np.empty(split.size, np.int64),
        np.zeros(split.size, np.int32),
        np.empty(split.size, np.int64),
        np.empty(split.size, np.int64),
        np.zeros(STATE_SIZE, np.int64),
    )
