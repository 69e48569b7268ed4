"""Extracts change batches from logs, window by window. Decoding reads the bytes of a log only here.

A kernel does all steps for one LWN group, while the group is in the processor's cache, and then
goes on to the next group: it checks and unpacks the blocks, finds records and vectors, and extracts
changes. Only events, pieces and values are kept. The groups of a window share one payload, and the
values refer to positions in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.errors import Code
from olr_pg.kernels.compile import inlined, kernel
from olr_pg.redo.batch import (
    ChangeBatch,
    EventKind,
    columns_of,
    empty_entries,
    empty_events,
    empty_pieces,
)
from olr_pg.redo.blocks import LWN, RECORD, group_end, scan_group, unpack_blocks
from olr_pg.redo.column_tables import as_table, grown, head
from olr_pg.redo.commit_position import take_parallel
from olr_pg.redo.format.file_fields import (
    BLOCK_HEADER,
    FIRST_DATA_BLOCK,
    RECORD_HEADER,
    VECTOR_CODE,
    VLD_VALID,
)
from olr_pg.redo.pieces import REASONS, ChangeStatus
from olr_pg.redo.row_vectors import (
    ENTRIES,
    EVENTS,
    FULL,
    NOTED,
    PARALLELS,
    PASSED,
    PIECES,
    STATE_SIZE,
)
from olr_pg.redo.uninterpreted import NOTE, NOTES, passed_of
from olr_pg.redo.vector_changes import walk_record
from olr_pg.redo.vectors import MAX_FIELDS, VECTOR, VECTOR_FAULTS, VectorStatus
from olr_pg.redo.walk import CURRENT_SIZE, RECORD_AT_HAND, ObjectTables, Tally, Walk
from olr_pg.redo.window import WINDOW_BYTES, address_of, group_runs, place_error, raise_block

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.errors import OlrPgError
    from olr_pg.redo.column_tables import ColumnTable
    from olr_pg.redo.commit_position import ParallelCommit
    from olr_pg.redo.uninterpreted import Passed
    from olr_pg.redo.walk import Objects
    from olr_pg.redo.window import GroupRun, Log

_HEADER = BLOCK_HEADER
_VALID = VLD_VALID
_COMMIT = int(EventKind.COMMIT)
_LOB = int(EventKind.LOB)

_ENDS_BY: Final = {ChangeStatus.ENCRYPTED: Code.UNDO_ENCRYPTED}
"""The errors that end decoding, by the fault in a transaction's begin or end. For other faults, the
error is RECORD_MALFORMED.
"""

_VECTOR_LEAST: Final = 28
"""Minimum bytes of a change vector: a header and an empty list of fields."""


_EVENT_BYTES: Final = 48
_VALUE_BYTES: Final = 6
"""Bytes of redo that an event or a value usually has at least. They determine how much space is
reserved for events and values. Reserved space that is never used needs no memory.
"""


class Extract(NamedTuple):
    """The changes of subscribed tables in the blocks [first, end) of a log."""

    first: int
    end: int
    batch: ChangeBatch
    tally: Tally
    passed: Passed
    parallel: tuple[ParallelCommit, ...] = ()


class Room(NamedTuple):
    """Memory that the kernel needs in addition to the walk.

    Attributes:
        order, scratch: shape (records of a group): the records of the current group in processing
            order, and memory for sorting them.
        tally: the counts before the current group, in the shape of `Walk.tally`.
    """

    order: npt.NDArray[np.int64]
    scratch: npt.NDArray[np.int64]
    tally: npt.NDArray[np.int64]


@inlined
def _is_before(records: ColumnTable, one: int, other: int) -> bool:
    """Return whether record `one` precedes `other` of the same group (redo-format §2.5)."""
    if records.scn[one] != records.scn[other]:
        return bool(records.scn[one] < records.scn[other])
    if records.subscn[one] != records.subscn[other]:
        return bool(records.subscn[one] < records.subscn[other])
    return one < other


@inlined
def _run_end(records: ColumnTable, order: Any, start: int, count: int) -> int:
    end = start + 1
    while end < count and _is_before(records, order[end - 1], order[end]):
        end += 1
    return end


@inlined
def _merge_runs(
    records: ColumnTable, order: Any, start: int, middle: int, end: int, to: Any
) -> None:
    left, right = start, middle
    for at in range(start, end):
        takes_left = right >= end or (
            left < middle and _is_before(records, order[left], order[right])
        )
        if takes_left:
            to[at] = order[left]
            left += 1
        else:
            to[at] = order[right]
            right += 1


@inlined
def _order_group(records: ColumnTable, count: int, room: Room) -> int:
    """Sort the valid records among the first `count`; return their number.

    The records of one strand are already in order. If a group has several strands, they are merged,
    two at a time.
    """
    valid = 0
    for record in range(count):
        if records.vld[record] & _VALID:
            room.order[valid] = record
            valid += 1
    while _run_end(records, room.order, 0, valid) < valid:
        start = 0
        while start < valid:
            middle = _run_end(records, room.order, start, valid)
            end = middle if middle >= valid else _run_end(records, room.order, middle, valid)
            _merge_runs(records, room.order, start, middle, end, room.scratch)
            start = end
        for at in range(valid):
            room.order[at] = room.scratch[at]
    return valid


@inlined
def _is_behind(events: ColumnTable, one: int, other: int) -> bool:
    """Return whether event `one` is after event `other` in the same log."""
    if events.block[one] != events.block[other]:
        return bool(events.block[one] > events.block[other])
    return bool(events.offset[one] > events.offset[other])


@inlined
def _record_scn(events: ColumnTable, event: int) -> int:
    """Return the SCN of an event's record. For the commit of a child of parallel DML, it is higher
    than the commit SCN.
    """
    return int(events.scn[event]) + (
        int(events.session[event]) if events.kind[event] == _COMMIT else 0
    )


@inlined
def _order_places(events: ColumnTable, first: int, end: int) -> None:
    """Exchange the positions of commits with the same SCN, so that an earlier commit has a lower
    position.

    Transactions are released in the order of commit SCN and position. The strands of a group are
    stored one after the other, so the original positions do not show which of two transactions
    committed first (redo-format §2.5).
    """
    for event in range(first + 1, end):
        if events.kind[event] != _COMMIT:
            continue
        later = event
        for before in range(event - 1, first - 1, -1):
            if events.kind[before] != _COMMIT:
                continue
            block, offset = events.block[before], events.offset[before]
            if _record_scn(events, before) != _record_scn(events, later):
                break
            if events.scn[before] != events.scn[later]:
                continue
            if not _is_behind(events, before, later):
                break
            events.block[before], events.offset[before] = events.block[later], events.offset[later]
            events.block[later], events.offset[later] = block, offset
            later = before


@inlined
def _place_pages(events: ColumnTable, first: int, end: int) -> None:
    """Adjust the positions of LOB pages whose transaction is unknown, so that they are after
    earlier commits and before later ones.

    The position decides which transaction owns such a page (`transactions.lobs.page_claims`). Call
    this function after `_order_places`.
    """
    for event in range(first, end):
        if events.kind[event] != _LOB or events.xid[event] != 0:
            continue
        for later in range(event + 1, end):
            if _record_scn(events, later) != events.scn[event]:
                break
            if events.kind[later] == _COMMIT and events.scn[later] == events.scn[event]:
                if _is_behind(events, event, later):
                    events.block[event] = events.block[later]
                    events.offset[event] = events.offset[later]
                break
        for before in range(event - 1, first - 1, -1):
            if _record_scn(events, before) != events.scn[event]:
                break
            if events.kind[before] == _COMMIT and events.scn[before] == events.scn[event]:
                if not _is_behind(events, event, before):
                    # No other record begins at this position, because a record is longer than one
                    # byte.
                    events.block[event] = events.block[before]
                    events.offset[event] = events.offset[before] + 1
                break


@inlined
def _group(walk: Walk, position: int, total: int, room: Room) -> tuple[int, int, int]:
    """Process the records of the unpacked group at `position`; return (stage, status, payload
    position) as `extract_groups` does.
    """
    first = walk.state[EVENTS]
    status, at, chunks, count = scan_group(
        walk.payload, position, total, walk.width, walk.first_block, walk.big, (0, 0, 0),
        walk.lwns, walk.records,
    )  # fmt: skip
    if status != 0:
        return 0, status, at
    valid = _order_group(walk.records, count, room)
    for at in range(valid):
        stage, status, position = walk_record(walk, room.order[at])
        if status != 0:
            return stage, status, position
    if chunks > 1:
        _order_places(walk.events, first, walk.state[EVENTS])
        _place_pages(walk.events, first, walk.state[EVENTS])
    return 0, 0, 0


@kernel
def extract_groups(
    walk: Walk, raw: Any, words: Any, block: int, end: int, sequence: int, verify: bool, room: Room
) -> tuple[int, int, int, int]:
    """Fill the events, pieces and entries of `walk` from the groups in blocks [block, end).

    Args:
        walk: the shared state of the kernels.
        raw, words: the bytes of the log, and the same bytes as 64-bit words.
        block, end: the first block of the first group, and the block after the last group.
        sequence: log sequence number that every block must have.
        verify: whether to check block checksums.
        room: memory for temporary data.

    Returns:
        (stage, status, place, block). If the status is 0, all groups were processed. Otherwise,
        `block` is the first block of the group with the fault, and `walk` contains nothing of this
        group. The stage says what status and place are: 0 is a `BlockStatus` and a payload
        position, 1 a `VectorStatus` and a payload position, 2 a `ChangeStatus` and a payload
        position, 3 a `BlockStatus` and a block. In stage 2, the status CAPACITY means that the
        tables of `walk` are too short.
    """
    block_size = walk.width + _HEADER
    while block < end:
        events, pieces, entries = walk.state[EVENTS], walk.state[PIECES], walk.state[ENTRIES]
        passed, noted, parallels = walk.state[PASSED], walk.state[NOTED], walk.state[PARALLELS]
        for k in range(walk.tally.size):
            room.tally[k] = walk.tally[k]
        status, stop, _ = group_end(raw, block_size, block, end, walk.big)
        stage, place = 3, stop
        if status == 0:
            status, place = unpack_blocks(
                raw, words, block_size, block, stop, sequence, walk.big, verify, walk.first_block,
                walk.payload,
            )  # fmt: skip
        if status == 0:
            position = (block - walk.first_block) * walk.width
            total = (stop - walk.first_block) * walk.width
            stage, status, place = _group(walk, position, total, room)
        if status != 0:
            walk.state[EVENTS], walk.state[PIECES], walk.state[ENTRIES] = events, pieces, entries
            walk.state[PASSED], walk.state[NOTED] = passed, noted
            walk.state[PARALLELS] = parallels
            walk.state[FULL] = 0
            for k in range(walk.tally.size):
                walk.tally[k] = room.tally[k]
            return stage, status, place, block
        block = stop
    return 0, 0, 0, end


def read_changes(
    log: Log,
    objects: Objects,
    first_block: int = FIRST_DATA_BLOCK,
    end_block: int | None = None,
    *,
    first_group: int = 0,
    verify: bool = True,
    window_bytes: int = WINDOW_BYTES,
) -> Iterator[Extract]:
    """Extract the events and row changes of the LWN groups in blocks [first_block, end_block).

    Args:
        first_block, end_block: the blocks of the split. Any division of a log into splits gives the
            same changes.
        first_group: as for `group_runs`.
        verify: whether to check block checksums.
        window_bytes: approximate bytes of redo per batch.

    Raises:
        OlrPgError: 2004, 2005, 2006 or 2008 if the log is faulty, 2018 if the undo tablespace is
            encrypted; with the position. The changes of all LWN groups before the fault are yielded
            first.
    """
    runs = group_runs(
        log,
        first_block,
        end_block,
        first_group=first_group,
        verify=verify,
        window_bytes=window_bytes,
    )
    for run in runs:
        yield from _changes_of_run(run, objects, verify=verify)


def _changes_of_run(run: GroupRun, objects: Objects, *, verify: bool) -> Iterator[Extract]:
    log, header = run.log, run.log.header
    width = header.block_size - BLOCK_HEADER
    payload = np.empty((run.end - run.first) * width, np.uint8)
    most = run.largest * width // RECORD_HEADER + 1
    walk = open_walk(
        log,
        objects,
        payload,
        run.first,
        columns_of(LWN, run.chunks),
        columns_of(RECORD, most),
        run.largest * width // _VECTOR_LEAST + 1,
        (64 + payload.size // _EVENT_BYTES, 256 + payload.size // _VALUE_BYTES),
    )
    room = Room(np.empty(most, np.int64), np.empty(most, np.int64), np.empty_like(walk.tally))
    block = run.first
    while True:
        stage, status, place, block = extract_groups(
            walk, run.raw, run.words, block, run.end, header.sequence, verify, room
        )
        if stage != 2 or status != ChangeStatus.CAPACITY:
            break
        walk = _grown(walk)
    if block > run.first:
        batch = _batch(walk)
        parallel: tuple[ParallelCommit, ...] = ()
        if walk.state[PARALLELS]:
            batch, parallel = take_parallel(batch)
        tally = Tally(*walk.tally.tolist())
        yield Extract(run.first, block, batch, tally, _passed(log, walk), parallel)
    if status:
        _raise(log, walk, stage, status, place)


def _batch(walk: Walk) -> ChangeBatch:
    return ChangeBatch(
        head(walk.events, int(walk.state[EVENTS])),
        head(walk.pieces, int(walk.state[PIECES])),
        head(walk.entries, int(walk.state[ENTRIES])),
        walk.payload,
    )


def _passed(log: Log, walk: Walk) -> Passed:
    return passed_of(
        walk.passed[: walk.state[PASSED]],
        head(walk.notes, int(walk.state[NOTED])),
        (log.header.thread, log.header.sequence),
    )


def open_walk(
    log: Log,
    objects: Objects,
    payload: npt.NDArray[np.uint8],
    first_block: int,
    lwns: ColumnTable,
    records: ColumnTable,
    vectors: int,
    capacity: tuple[int, int],
) -> Walk:
    """Return a walk with empty tables.

    Args:
        log: the log. Its header determines the layout.
        payload, first_block: the payload of a window, and its first block.
        lwns, records: the tables of the window's chunks and records; or tables with space for the
            chunks and records of one group.
        vectors: maximum number of vectors in one record.
        capacity: (maximum number of events, and also of pieces; maximum number of values).
    """
    layout = log.header.layout
    return Walk(
        payload,
        first_block,
        log.header.block_size - BLOCK_HEADER,
        layout.vector_header,
        layout.row_scn,
        layout.long_session,
        layout.big_endian,
        lwns,
        records,
        columns_of(VECTOR, vectors),
        ObjectTables(
            as_table(
                key=objects.key, table=objects.table, since=_since(objects.since, objects.key)
            ),
            objects.cluster_columns,
            objects.lob_tables,
            as_table(**objects.lob_objects._asdict()),
            as_table(**objects.lob_data._asdict()),
            as_table(
                key=objects.data_key,
                table=objects.data_table,
                since=_since(objects.data_since, objects.data_key),
            ),
            objects.row_scns,
        ),
        empty_events(capacity[0]),
        empty_pieces(capacity[0]),
        empty_entries(capacity[1]),
        np.empty((4, MAX_FIELDS + 1), np.int64),
        np.zeros(STATE_SIZE, np.int64),
        np.array([log.header.thread, log.header.sequence], np.int64),
        np.zeros(CURRENT_SIZE, np.int64),
        np.zeros(len(Tally._fields), np.int64),
        np.empty(payload.size // _VECTOR_LEAST + 1, np.uint16),
        columns_of(NOTE, NOTES),
    )


def _since(since: npt.NDArray[np.int64], key: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    return since if since.size == key.size else np.zeros(key.size, np.int64)


def _grown(walk: Walk) -> Walk:
    """Return a walk with the same contents and twice the space."""
    return walk._replace(
        events=grown(walk.events, int(walk.state[EVENTS]), 2 * walk.events.size),
        pieces=grown(walk.pieces, int(walk.state[PIECES]), 2 * walk.pieces.size),
        entries=grown(walk.entries, int(walk.state[ENTRIES]), 2 * walk.entries.size),
        notes=grown(walk.notes, int(walk.state[NOTED]), 2 * walk.notes.size),
    )


def _raise(log: Log, walk: Walk, stage: int, status: int, place: int) -> None:
    if status == 0:
        return
    if stage == 3:
        raise_block(log, status, place)
    if stage == 0:
        raise_block(log, status, *address_of(log, walk.first_block, place))
    raise _vector_error(log, walk, stage, status, place)


def _vector_error(log: Log, walk: Walk, stage: int, status: int, place: int) -> OlrPgError:
    if stage == 1:
        return place_error(
            log, walk.first_block, Code.RECORD_MALFORMED, VECTOR_FAULTS[VectorStatus(status)], place
        )
    record = int(walk.current[RECORD_AT_HAND])
    opcode = int(walk.payload[place]) << 8 | int(walk.payload[place + VECTOR_CODE])
    fault = ChangeStatus(status)
    return place_error(
        log,
        walk.first_block,
        _ENDS_BY.get(fault, Code.RECORD_MALFORMED),
        REASONS[fault],
        int(walk.records.position[record]),
        vector=f"{opcode >> 8}.{opcode & 255}",
        scn=int(walk.records.scn[record]),
    )
