"""Joining change batches, and cutting events out of them with just the bytes they need."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from olr_pg.kernel_bytes import copy_bytes
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
    first = np.zeros(counts.size + 1, np.int64)
    np.cumsum(counts, out=first[1:])
    return first


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
    pieces.changed_offset[:] += np.repeat(bases, [batch.pieces.op.size for batch in batches])
    entries.offset[:] += np.repeat(bases, [batch.entries.role.size for batch in batches])
    size = sum(batch.data.size for batch in batches)
    data = np.empty(size, np.uint8) if allocate is None else allocate(size)
    for base, batch in zip(bases, batches, strict=True):
        data[base : base + batch.data.size] = batch.data
    return ChangeBatch(events, pieces, entries, data)


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
    source = batch.pieces
    target = chosen.pieces
    for i in range(rows.size):
        event = rows[i]
        for piece in range(piece_first[event], piece_first[event + 1]):
            target.op[p] = source.op[piece]
            target.supplemental[p] = source.supplemental[piece]
            target.sup_type[p] = source.sup_type[piece]
            target.sup_flags[p] = source.sup_flags[piece]
            target.row_flags[p] = source.row_flags[piece]
            target.old_flags[p] = source.old_flags[piece]
            target.width[p] = source.width[piece]
            target.old_width[p] = source.old_width[piece]
            target.bdba[p] = source.bdba[piece]
            target.slot[p] = source.slot[piece]
            target.head_bdba[p] = source.head_bdba[piece]
            target.head_slot[p] = source.head_slot[piece]
            target.next_bdba[p] = source.next_bdba[piece]
            target.next_slot[p] = source.next_slot[piece]
            target.old_next_bdba[p] = source.old_next_bdba[piece]
            target.old_next_slot[p] = source.old_next_slot[piece]
            target.packed[p] = source.packed[piece]
            target.entry_count[p] = source.entry_count[piece]
            target.changed_length[p] = source.changed_length[piece]
            target.changed_offset[p] = at
            start = source.changed_offset[piece]
            at = copy_bytes(
                chosen.data, at, batch.data, start, start + source.changed_length[piece]
            )
            p += 1
            for entry in range(entry_first[piece], entry_first[piece + 1]):
                length = batch.entries.length[entry]
                chosen.entries.role[e] = batch.entries.role[entry]
                chosen.entries.part[e] = batch.entries.part[entry]
                chosen.entries.segcol[e] = batch.entries.segcol[entry]
                chosen.entries.length[e] = length
                chosen.entries.offset[e] = at
                if length > 0:
                    start = batch.entries.offset[entry]
                    at = copy_bytes(chosen.data, at, batch.data, start, start + length)
                e += 1
