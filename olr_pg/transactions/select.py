"""Joining change batches, and cutting events out of them with just the bytes they need."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from olr_pg.kernel_bytes import copy_bytes, copy_forward
from olr_pg.kernels import kernel
from olr_pg.redo.batch import (
    ChangeBatch,
    empty_batch,
    empty_entries,
    empty_pieces,
)
from olr_pg.redo.columns import joined_rows, take

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def first_rows(counts: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Where each owner's rows begin, shape (n + 1), from how many each has."""
    first = np.empty(counts.size + 1, np.int64)
    _add_up(counts, first)
    return first


@kernel
def _add_up(counts: Any, first: Any) -> None:
    # As a loop, since NumPy takes five times as long for a field of a table.
    total = 0
    for i in range(counts.size):
        first[i] = total
        total += counts[i]
    first[counts.size] = total


def concatenate(
    batches: Sequence[ChangeBatch],
    allocate: Callable[[int], npt.NDArray[np.uint8]] | None = None,
) -> ChangeBatch:
    """One batch with the events of `batches` one behind the other.

    Args:
        batches: what to join.
        allocate: gives the room for the bytes; None takes memory.
    """
    if len(batches) == 1:
        return batches[0]
    if not batches:
        return empty_batch()
    bases = np.cumsum([0, *(batch.data.size for batch in batches[:-1])])
    events = joined_rows([batch.events for batch in batches])
    pieces = joined_rows([batch.pieces for batch in batches])
    entries = joined_rows([batch.entries for batch in batches])
    _move(pieces.changed_offset, bases, [batch.pieces.size for batch in batches])
    _move(entries.offset, bases, [batch.entries.size for batch in batches])
    size = sum(batch.data.size for batch in batches)
    data = np.empty(size, np.uint8) if allocate is None else allocate(size)
    for base, batch in zip(bases, batches, strict=True):
        data[base : base + batch.data.size] = batch.data
    return ChangeBatch(events, pieces, entries, data)


def _move(
    offset: npt.NDArray[np.int64], bases: npt.NDArray[np.int64], counts: Sequence[int]
) -> None:
    """Add a base to the offsets of each batch."""
    end = 0
    for base, count in zip(bases.tolist(), counts, strict=True):
        offset[end : end + count] += base
        end += count


class Selection:
    """Cuts events out of one batch, again and again."""

    def __init__(self, batch: ChangeBatch) -> None:
        self._batch = batch

    @cached_property
    def _first(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Where each event's pieces and each piece's values begin; it costs a pass over both."""
        return first_rows(self._batch.events.piece_count), first_rows(
            self._batch.pieces.entry_count
        )

    def events(self, rows: npt.NDArray[np.int64]) -> ChangeBatch:
        """The events `rows` of the batch, in that order, with their pieces, values and bytes."""
        piece_first, entry_first = self._first
        sizes = np.zeros(3, np.int64)
        _measure(self._batch, rows, piece_first, entry_first, sizes)
        chosen = ChangeBatch(
            take(self._batch.events, rows),
            empty_pieces(int(sizes[0])),
            empty_entries(int(sizes[1])),
            np.empty(int(sizes[2]), np.uint8),
        )
        _copy(self._batch, rows, piece_first, entry_first, chosen)
        return chosen


def select_events(batch: ChangeBatch, rows: npt.NDArray[np.int64]) -> ChangeBatch:
    """As `Selection.events`, once."""
    return Selection(batch).events(rows)


@kernel
def _measure(batch: ChangeBatch, rows: Any, piece_first: Any, entry_first: Any, sizes: Any) -> None:
    for i in range(rows.size):
        event = rows[i]
        sizes[0] += batch.events.piece_count[event]
        for piece in range(piece_first[event], piece_first[event + 1]):
            sizes[1] += batch.pieces.entry_count[piece]
            sizes[2] += batch.pieces.changed_length[piece]
            for entry in range(entry_first[piece], entry_first[piece + 1]):
                sizes[2] += max(0, batch.entries.length[entry])


@kernel
def _copy(
    batch: ChangeBatch, rows: Any, piece_first: Any, entry_first: Any, chosen: ChangeBatch
) -> None:
    p = 0
    e = 0
    at = 0
    for i in range(rows.size):
        event = rows[i]
        for piece in range(piece_first[event], piece_first[event + 1]):
            chosen.pieces[p] = batch.pieces[piece]
            start = batch.pieces.changed_offset[piece]
            chosen.pieces.changed_offset[p] = at
            at = copy_bytes(
                chosen.data, at, batch.data, start, start + batch.pieces.changed_length[piece]
            )
            p += 1
            for entry in range(entry_first[piece], entry_first[piece + 1]):
                value = batch.entries[np.uint64(entry)]
                chosen.entries[np.uint64(e)] = value
                chosen.entries[np.uint64(e)].offset = at
                if value.length > 0:
                    start = value.offset
                    at = copy_forward(chosen.data, at, batch.data, start, start + value.length)
                e += 1
