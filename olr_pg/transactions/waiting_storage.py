"""Places where transactions wait: in memory, or wherever the caller puts what is too much.

The core does no I/O: whoever runs it hands in a storage. What waits are the tables of events,
pieces and entries as well as the bytes: of small rows the tables are the larger part.
"""

from __future__ import annotations

import sys
from operator import itemgetter
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from olr_pg.transactions.select import copied, count_changes, select_events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from olr_pg.redo.batch import ChangeBatch

U8 = npt.NDArray[np.uint8]
Allocate: TypeAlias = "Callable[[int], U8]"


_ALIGNED: Final = 8
"""What the address of a table's row is a multiple of."""


class Gathering(Protocol):
    """Bytes that are written one behind the other, and of which nobody knows how many come."""

    def append(self, data: U8) -> None:
        """Add some more; they are the caller's again afterwards."""

    def finish(self) -> U8:
        """Return all of them, one behind the other."""


class Storage(Protocol):
    """A place where bytes wait."""

    @property
    def memory_max(self) -> int:
        """Bytes that may wait in memory for the end of their transactions."""

    @property
    def part_bytes(self) -> int:
        """About how many bytes of a transaction outside of memory are worked on at a time."""

    @property
    def waiting_bytes(self) -> int:
        """Bytes that wait outside of memory now."""

    def allocate(self, size: int) -> U8:
        """Return room for `size` bytes, writable; in memory only if they are few."""

    def spill(self, size: int) -> U8:
        """Return room for `size` bytes, writable, that take no memory."""

    def gather(self) -> Gathering:
        """Return room for bytes that come one after the other and take no memory."""


class _GatheredInMemory:
    def __init__(self) -> None:
        self._parts: list[U8] = []

    def append(self, data: U8) -> None:
        self._parts.append(data.copy())

    def finish(self) -> U8:
        return np.concatenate(self._parts)


class InMemory:
    """Everything in memory: for what is bounded by itself, such as one split."""

    memory_max: Final = sys.maxsize
    part_bytes: Final = sys.maxsize
    waiting_bytes: Final = 0

    def allocate(self, size: int) -> U8:
        """Return room in memory."""
        return np.empty(size, np.uint8)

    spill = allocate

    def gather(self) -> Gathering:
        """Return room in memory."""
        return _GatheredInMemory()


IN_MEMORY: Final = InMemory()


def joined(parts: Sequence[U8], allocate: Allocate) -> U8:
    """Join the parts, one behind the other."""
    if len(parts) == 1:
        return parts[0]
    room = allocate(sum(part.size for part in parts))
    at = 0
    for part in parts:
        room[at : at + part.size] = part
        at += part.size
    return room


def batch_bytes(batch: ChangeBatch) -> int:
    """Count what a batch takes: its tables and its bytes."""
    return sum(part.nbytes for part in batch)


class Waiting:
    """Batches that wait, and how many of their bytes do so in memory.

    Attributes:
        changes: how many changes they hold.
    """

    def __init__(self) -> None:
        self._spilled: list[ChangeBatch] = []
        self._recent: list[ChangeBatch] = []
        self.changes = 0

    @property
    def batches(self) -> list[ChangeBatch]:
        """All of them, in the order in which they came."""
        return [*self._spilled, *self._recent]

    @property
    def in_memory(self) -> int:
        """Bytes that wait in memory."""
        return sum(map(batch_bytes, self._recent))

    @property
    def is_spilled(self) -> bool:
        """True if any of it waits outside of memory."""
        return bool(self._spilled)

    def copy(self) -> Waiting:
        """Return another one with the same batches, which shares their bytes."""
        other = Waiting()
        other._spilled, other._recent = list(self._spilled), list(self._recent)
        other.changes = self.changes
        return other

    def append(self, batch: ChangeBatch) -> None:
        """Add a batch."""
        self._recent.append(batch)
        self.changes += count_changes(batch.events)

    def keep(self, chosen: Callable[[ChangeBatch], npt.NDArray[np.bool_]]) -> None:
        """Keep only the events for which `chosen` is True."""
        self._spilled = _kept(self._spilled, chosen)
        self._recent = _kept(self._recent, chosen)
        self.changes = sum(count_changes(batch.events) for batch in self.batches)

    def move_to(self, room: U8) -> None:
        """Move what is in memory into `room`, which has just that size and is aligned."""
        rest = room

        def take(size: int) -> U8:
            nonlocal rest
            taken, rest = rest[:size], rest[size:]
            return taken

        if self._recent:
            self._spilled.append(copied(self._recent, take))
        self._recent = []


def _kept(
    batches: list[ChangeBatch], chosen: Callable[[ChangeBatch], npt.NDArray[np.bool_]]
) -> list[ChangeBatch]:
    kept = []
    for batch in batches:
        keep = chosen(batch)
        if keep.all():
            kept.append(batch)
        elif keep.any():
            kept.append(select_events(batch, np.flatnonzero(keep)))
    return kept


def spill_largest(waiting: Iterable[Waiting], storage: Storage) -> None:
    """Move the largest out of memory until half of what may wait there is left.

    They share one piece of storage, so that the number of pieces stays small.
    """
    held = [(_aligned(one.in_memory), one) for one in waiting]
    total = sum(size for size, _ in held)
    if total <= storage.memory_max:
        return
    chosen: list[tuple[int, Waiting]] = []
    for size, one in sorted(held, key=itemgetter(0), reverse=True):
        if total <= storage.memory_max // 2:
            break
        chosen.append((size, one))
        total -= size
    room = storage.spill(sum(size for size, _ in chosen))
    at = 0
    for size, one in chosen:
        one.move_to(room[at : at + size])
        at += size


def _aligned(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED
