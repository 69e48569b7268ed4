"""Joins change batches, and extracts events from them, with exactly the bytes that these events
need.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from olr_pg.kernels.bytes import copy_bytes, copy_forward
from olr_pg.kernels.compile import kernel
from olr_pg.redo.batch import (
    ChangeBatch,
    EventColumns,
    EventKind,
    empty_batch,
    empty_entries,
    empty_pieces,
)
from olr_pg.redo.column_tables import cut, joined_rows, take

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


_CHANGES: Final = (
    int(EventKind.CHANGE),
    int(EventKind.UNDECODED),
    int(EventKind.LOB),
    int(EventKind.SPLIT_CHANGE),
)
"""The kinds of events that are counted as changes in `finished.Account`."""

I64 = npt.NDArray[np.int64]

_SELECTIONS_KEPT: Final = 3
"""Maximum number of cutters that are kept. Each needs 8 bytes of memory for every event and every
piece of its batch.
"""


def count_changes(events: EventColumns) -> int:
    """Return the number of changes among the events."""
    return int(_count_changes(events)) if events.size else 0


@kernel
def _count_changes(events: EventColumns) -> int:
    count = 0
    for i in range(events.size):
        count += events[np.uint64(i)].kind in _CHANGES
    return count


@kernel
def count_changes_of(events: EventColumns, order: Any, first: Any, rows: Any) -> int:
    """Return the number of changes in some sections (`delimit.Instances`), including undone
    changes.

    Args:
        order, first: from the `delimit.Instances`.
    """
    count = 0
    for row in rows:
        for i in range(first[row], first[row + 1]):
            count += events[np.uint64(order[i])].kind in _CHANGES
    return count


def first_rows(counts: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Return the index of each owner's first row, shape (n + 1). `counts` is the number of rows of
    each owner.
    """
    first = np.empty(counts.size + 1, np.int64)
    _add_up(counts, first)
    return first


def runs(first: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return runs of consecutive numbers, one after the other: ``counts[0]`` numbers that begin
    with ``first[0]``, then ``counts[1]`` numbers that begin with ``first[1]``, and so on.
    """
    before = np.cumsum(counts) - counts
    numbers: npt.NDArray[np.int64] = np.repeat(first - before, counts) + np.arange(counts.sum())
    return numbers


@kernel
def _add_up(counts: Any, first: Any) -> None:
    # A loop, because NumPy takes five times as long to add up a field of a table.
    total = 0
    for i in range(counts.size):
        first[i] = total
        total += counts[i]
    first[counts.size] = total


def concatenate(
    batches: Sequence[ChangeBatch],
    allocate: Callable[[int], npt.NDArray[np.uint8]] | None = None,
) -> ChangeBatch:
    """Concatenate batches.

    Args:
        batches: the batches. If there is only one batch, it is not copied.
        allocate: returns buffers, see `copied`.
    """
    if len(batches) == 1:
        return batches[0]
    return copied(batches, allocate) if batches else empty_batch()


def copied(
    batches: Sequence[ChangeBatch],
    allocate: Callable[[int], npt.NDArray[np.uint8]] | None = None,
) -> ChangeBatch:
    """Concatenate batches like `concatenate`, but always into new buffers. At least one batch is
    required.

    Args:
        allocate: returns buffers; it is called for events, pieces, entries and bytes, in this
            order. None to use ordinary memory.
    """
    joined = ChangeBatch(
        joined_rows([batch.events for batch in batches], allocate),
        joined_rows([batch.pieces for batch in batches], allocate),
        joined_rows([batch.entries for batch in batches], allocate),
        (allocate or _memory)(sum(batch.data.size for batch in batches)),
    )
    changed_offset, offset = joined.pieces.changed_offset, joined.entries.offset
    piece = entry = at = 0
    for batch in batches:
        pieces, entries, end = len(batch.pieces), len(batch.entries), at + batch.data.size
        changed_offset[piece : piece + pieces] += at
        offset[entry : entry + entries] += at
        joined.data[at:end] = batch.data
        piece, entry, at = piece + pieces, entry + entries, end
    return joined


def _memory(size: int) -> npt.NDArray[np.uint8]:
    return np.empty(size, np.uint8)


class EventCutter:
    """Extracts events from one batch. A cutter can be used several times."""

    def __init__(self, batch: ChangeBatch) -> None:
        self._batch = batch

    @cached_property
    def _first(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the first piece of each event and the first value of each piece. This reads all
        events and pieces once.
        """
        return first_rows(self._batch.events.piece_count), first_rows(
            self._batch.pieces.entry_count
        )

    def events(
        self,
        rows: npt.NDArray[np.int64],
        allocate: Callable[[int], npt.NDArray[np.uint8]] | None = None,
    ) -> ChangeBatch:
        """Return the events `rows`, in that order, with their pieces, values and bytes.

        Args:
            allocate: returns a buffer for the bytes; None to use ordinary memory.
        """
        return self._copied(rows, np.array([0, rows.size], np.int64), allocate)[0]

    def size(self, rows: npt.NDArray[np.int64]) -> int:
        """Return the total size in bytes of the values of these events."""
        return self._sizes(rows)[2]

    def cut(self, rows: npt.NDArray[np.int64], room: npt.NDArray[np.uint8], at: int) -> ChangeBatch:
        """Return the same as `events`, but with the bytes in `room`, from `at` on."""
        own = self.events(rows, lambda size: room[at : at + size])
        own.pieces.changed_offset[:] += at
        own.entries.offset[:] += at
        return own._replace(data=room)

    def groups(
        self, order: npt.NDArray[np.int64], first: npt.NDArray[np.int64], chosen: Sequence[int]
    ) -> list[ChangeBatch]:
        """Return the `events` of ``order[first[i] : first[i + 1]]`` for each chosen i.

        The batches share one piece of memory, which is released when none of them is used any more.
        """
        if not chosen:
            return []
        groups = [order[first[i] : first[i + 1]] for i in chosen]
        starts = np.cumsum([0, *(rows.size for rows in groups)])
        batch, bounds = self._copied(np.concatenate(groups), starts)
        parts = (cut(column, bounds[:, at].tolist()) for at, column in enumerate(batch))
        return [ChangeBatch(*part) for part in zip(*parts, strict=True)]

    def _copied(
        self,
        rows: npt.NDArray[np.int64],
        starts: npt.NDArray[np.int64],
        allocate: Callable[[int], npt.NDArray[np.uint8]] | None = None,
    ) -> tuple[ChangeBatch, npt.NDArray[np.int64]]:
        """Copy events in groups. The offsets of a group count from the beginning of the group's own
        bytes.

        Args:
            starts: the index in `rows` at which each group begins, and the end of the last group.
            allocate: as in `events`.

        Returns:
            The groups, one after the other, and their bounds as in `_copy`.
        """
        piece_first, entry_first = self._first
        pieces, entries, size = self._sizes(rows)
        chosen = ChangeBatch(
            take(self._batch.events, rows),
            empty_pieces(pieces),
            empty_entries(entries),
            (allocate or _memory)(size),
        )
        bounds = np.zeros((starts.size, 4), np.int64)
        bounds[:, 0] = starts
        _copy(self._batch, rows, piece_first, entry_first, chosen, bounds)
        return chosen, bounds

    def _sizes(self, rows: npt.NDArray[np.int64]) -> tuple[int, int, int]:
        """Return the numbers of pieces, values and bytes of these events."""
        return _measure(self._batch, rows, *self._first)


def select_events(batch: ChangeBatch, rows: npt.NDArray[np.int64]) -> ChangeBatch:
    """Return events of a batch, as `EventCutter.events` does. Use `EventCutter` to extract several
    times.
    """
    return EventCutter(batch).events(rows)


class Chunks:
    """A sequence of batches whose events are numbered from the first to the last batch.

    If a method takes several numbers, they must be in ascending order.

    Attributes:
        batches: the batches, in order.
        first: shape (n + 1); the number of each batch's first event, and the number of all events.
    """

    def __init__(self, batches: Sequence[ChangeBatch]) -> None:
        self.batches = batches
        self.first = np.cumsum([0, *(batch.events.size for batch in batches)])
        self._selections: dict[int, EventCutter] = {}

    def place(self, event: int) -> int:
        """Return the index of the batch with an event."""
        return int(np.searchsorted(self.first, event, "right")) - 1

    def _parts(self, numbers: npt.NDArray[np.int64]) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
        """Yield (index of a batch, rows in this batch) for the events with these numbers."""
        bounds = np.searchsorted(numbers, self.first)
        for batch in np.flatnonzero(np.diff(bounds)).tolist():
            yield batch, numbers[bounds[batch] : bounds[batch + 1]] - self.first[batch]

    def size(self, numbers: I64) -> int:
        """Return the total size in bytes of the values of the events with these numbers."""
        return sum(self._selection(batch).size(rows) for batch, rows in self._parts(numbers))

    def cuts(self, numbers: I64, room: npt.NDArray[np.uint8], at: int) -> Iterator[ChangeBatch]:
        """Yield the events with these numbers, batch by batch. The bytes of these events are copied
        to `room`, from `at` on.
        """
        for batch, rows in self._parts(numbers):
            selection = self._selection(batch)
            yield selection.cut(rows, room, at)
            at += selection.size(rows)

    def events(self, numbers: I64) -> ChangeBatch:
        """Return the events with these numbers as one batch."""
        room = np.empty(self.size(numbers), np.uint8)
        chosen = [empty_batch(), *self.cuts(numbers, room, 0)]
        return ChangeBatch(
            joined_rows([part.events for part in chosen]),
            joined_rows([part.pieces for part in chosen]),
            joined_rows([part.entries for part in chosen]),
            room,
        )

    def _selection(self, batch: int) -> EventCutter:
        """Return the cutter of a batch. Only the cutters that were used last are kept."""
        found = self._selections.pop(batch, None) or EventCutter(self.batches[batch])
        if len(self._selections) == _SELECTIONS_KEPT:
            del self._selections[next(iter(self._selections))]
        self._selections[batch] = found
        return found


@kernel
def _measure(
    batch: ChangeBatch, rows: Any, piece_first: Any, entry_first: Any
) -> tuple[int, int, int]:
    """Return the numbers of pieces, values and bytes of the events `rows`."""
    pieces = 0
    entries = 0
    size = 0
    for i in range(rows.size):
        event = rows[i]
        pieces += batch.events.piece_count[event]
        for piece in range(piece_first[event], piece_first[event + 1]):
            entries += batch.pieces.entry_count[piece]
            size += batch.pieces.changed_length[piece]
            for entry in range(entry_first[piece], entry_first[piece + 1]):
                size += max(0, batch.entries.length[entry])
    return pieces, entries, size


@kernel
def _copy(
    batch: ChangeBatch,
    rows: Any,
    piece_first: Any,
    entry_first: Any,
    chosen: ChangeBatch,
    bounds: Any,
) -> None:
    """Copy the pieces, values and bytes of the events `rows`, in groups.

    `bounds` has the shape (groups + 1, 4): the indexes at which the events, pieces, values and
    bytes of each group begin. The caller sets the first column; this function fills the other
    columns.
    """
    p = 0
    e = 0
    at = 0
    for group in range(bounds.shape[0] - 1):
        origin = at
        for i in range(bounds[group, 0], bounds[group + 1, 0]):
            event = rows[i]
            for piece in range(piece_first[event], piece_first[event + 1]):
                chosen.pieces[p] = batch.pieces[piece]
                start = batch.pieces.changed_offset[piece]
                chosen.pieces.changed_offset[p] = at - origin
                at = copy_bytes(
                    chosen.data, at, batch.data, start, start + batch.pieces.changed_length[piece]
                )
                p += 1
                for entry in range(entry_first[piece], entry_first[piece + 1]):
                    value = batch.entries[np.uint64(entry)]
                    chosen.entries[np.uint64(e)] = value
                    chosen.entries[np.uint64(e)].offset = at - origin
                    if value.length > 0:
                        start = value.offset
                        at = copy_forward(chosen.data, at, batch.data, start, start + value.length)
                    e += 1
        bounds[group + 1, 1] = p
        bounds[group + 1, 2] = e
        bounds[group + 1, 3] = at
