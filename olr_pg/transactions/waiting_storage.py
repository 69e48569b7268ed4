"""The interface of the storage where open transactions wait: in memory, or wherever the caller puts
what does not fit in memory.

The core does no I/O. Its caller passes in a storage. Both the tables of events, pieces and entries
and the bytes of values wait there. For small rows, the tables are the larger part.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from olr_pg.redo.batch import ChangeBatch
from olr_pg.transactions.select import copied, count_changes, select_events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

U8 = npt.NDArray[np.uint8]
Allocate: TypeAlias = "Callable[[int], U8]"


_ALIGNED: Final = 8
"""A table's row begins at an address that is a multiple of this."""


class StoredBytes(Protocol):
    """Bytes that are kept outside of memory. They are read when they are needed."""

    @property
    def size(self) -> int:
        """How many bytes there are."""

    def read(self, first: int, size: int) -> memoryview:
        """Read some of the bytes into memory and return them."""


class StoredBatch(Protocol):
    """A batch that is kept outside of memory. `open` reads it into memory.

    Attributes:
        size: bytes, in memory once it is opened.
        changes: how many changes it holds.
        lowest_scn: of its events.
    """

    size: int
    changes: int
    lowest_scn: int

    def open(self) -> ChangeBatch:
        """Read the batch into memory and return it."""


class Gathering(Protocol):
    """Bytes that are written one after the other, whose number is not known in advance."""

    def append(self, data: U8) -> None:
        """Add some bytes. The caller may change its own buffer afterwards."""

    def finish(self) -> U8 | StoredBytes:
        """Return all bytes that were added."""


class Storage(Protocol):
    """The storage where transactions wait."""

    @property
    def memory_max(self) -> int:
        """How many bytes may wait in memory for the end of their transactions."""

    @property
    def part_bytes(self) -> int:
        """About how many bytes are processed at a time of a transaction outside of memory."""

    @property
    def waiting_bytes(self) -> int:
        """How many bytes wait outside of memory now."""

    def allocate(self, size: int) -> U8:
        """Return a writable buffer of `size` bytes. It is in memory only if `size` is small."""

    def spill(self, size: int) -> U8:
        """Return a writable buffer of `size` bytes, outside of memory if that is possible."""

    def store(self, batches: Sequence[ChangeBatch]) -> Sequence[StoredBatch] | None:
        """Keep the events of batches outside of memory. Returns None if the storage does not do
        that; the caller then copies them into what `spill` returns.
        """

    def keep(self, data: U8) -> U8 | StoredBytes:
        """Keep bytes outside of memory if that can be had; they may be read, not written."""

    def gather(self) -> Gathering:
        """Return an object that collects bytes outside of memory."""


class _GatheredInMemory:
    def __init__(self) -> None:
        self._parts: list[U8] = []

    def append(self, data: U8) -> None:
        self._parts.append(data.copy())

    def finish(self) -> U8:
        return np.concatenate(self._parts)


class InMemory:
    """A storage that keeps everything in memory, for input whose size is bounded, such as one
    split.
    """

    memory_max: Final = sys.maxsize
    part_bytes: Final = sys.maxsize
    waiting_bytes: Final = 0

    def allocate(self, size: int) -> U8:
        """Return room in memory."""
        return np.empty(size, np.uint8)

    spill = allocate

    def store(self, batches: Sequence[ChangeBatch]) -> None:
        """Return None: this storage keeps no batches itself."""

    def keep(self, data: U8) -> U8:
        """Return them as they are."""
        return data

    def gather(self) -> Gathering:
        """Return an object that collects bytes in memory."""
        return _GatheredInMemory()


IN_MEMORY: Final = InMemory()


def joined(parts: Sequence[U8], allocate: Allocate) -> U8:
    """Join the parts, one after the other."""
    if len(parts) == 1:
        return parts[0]
    room = allocate(sum(part.size for part in parts))
    at = 0
    for part in parts:
        room[at : at + part.size] = part
        at += part.size
    return room


def batch_bytes(batch: ChangeBatch) -> int:
    """Return the size of a batch: its tables and its bytes."""
    return sum(part.nbytes for part in batch)


def batch_cells(batch: ChangeBatch) -> list[U8]:
    """Return the parts of a batch as bytes, in the order in which they are written and read."""
    return [np.ascontiguousarray(part).view(np.ndarray).view(np.uint8) for part in batch]


Kept: TypeAlias = "ChangeBatch | StoredBatch"


def kept_bytes(kept: Kept) -> int:
    """Return the size of a batch in memory, also if it is not in memory now."""
    return batch_bytes(kept) if isinstance(kept, ChangeBatch) else kept.size


def opened(kept: Kept) -> ChangeBatch:
    """Return a batch in memory, read from the storage if it was spilled."""
    return kept if isinstance(kept, ChangeBatch) else kept.open()


class Batches(Sequence[ChangeBatch]):
    """A sequence of batches. A stored batch is opened when it is asked for, and the last one opened
    stays in memory.

    Attributes:
        kept: what they are, opened or not.
    """

    def __init__(self, *parts: Sequence[Kept]) -> None:
        self.kept: list[Kept] = []
        for part in parts:
            self.kept += part.kept if isinstance(part, Batches) else part
        self._last: tuple[int, ChangeBatch] | None = None

    def __len__(self) -> int:
        return len(self.kept)

    @overload
    def __getitem__(self, place: int) -> ChangeBatch: ...

    @overload
    def __getitem__(self, place: slice) -> Batches: ...

    def __getitem__(self, place: int | slice) -> ChangeBatch | Batches:
        if isinstance(place, slice):
            return Batches(self.kept[place])
        kept = self.kept[place]
        if isinstance(kept, ChangeBatch):
            return kept
        number = place % len(self.kept)
        if self._last is None or self._last[0] != number:
            self._last = None  # release it before the next one is allocated
            self._last = number, kept.open()
        return self._last[1]


class Waiting:
    """Batches that wait for the end of their transaction, with a count of their bytes in memory.

    Attributes:
        changes: how many changes they hold.
    """

    def __init__(self) -> None:
        self._spilled: list[Kept] = []
        self._recent: list[ChangeBatch] = []
        self.changes = 0

    @property
    def batches(self) -> Batches:
        """All batches, in the order in which they came."""
        return Batches(self._spilled, self._recent)

    @property
    def in_memory(self) -> int:
        """Bytes that wait in memory."""
        return sum(map(batch_bytes, self._recent))

    @property
    def is_spilled(self) -> bool:
        """Whether any of the batches waits outside of memory."""
        return bool(self._spilled)

    def copy(self) -> Waiting:
        """Return a copy with the same batches. Both share the bytes of the batches."""
        other = Waiting()
        other._spilled, other._recent = list(self._spilled), list(self._recent)
        other.changes = self.changes
        return other

    def append(self, batch: ChangeBatch) -> None:
        """Add a batch."""
        self._recent.append(batch)
        self.changes += count_changes(batch.events)

    def keep(
        self,
        chosen: Callable[[ChangeBatch], npt.NDArray[np.bool_]],
        needs_opening: Callable[[StoredBatch], bool] = lambda _: True,
    ) -> None:
        """Keep only the events for which `chosen` is True; of what needs no opening, all."""
        spilled: list[Kept] = []
        for kept in self._spilled:
            if isinstance(kept, ChangeBatch) or needs_opening(kept):
                spilled += _chosen(kept, chosen)
            else:
                spilled.append(kept)
        self._spilled = spilled
        self._recent = [opened(one) for batch in self._recent for one in _chosen(batch, chosen)]
        self.changes = sum(map(_changes, [*self._spilled, *self._recent]))

    def keep_since(self, scn: int) -> None:
        """Keep only the events of this SCN or later."""
        self.keep(
            lambda batch: batch.events.scn >= np.uint64(scn),
            needs_opening=lambda stored: stored.lowest_scn < scn,
        )

    def move_to(self, room: U8) -> None:
        """Move the batches that are in memory into `room`, which has exactly their size and is
        aligned.
        """
        rest = room

        def take(size: int) -> U8:
            nonlocal rest
            taken, rest = rest[:size], rest[size:]
            return taken

        if self._recent:
            self._spilled.append(copied(self._recent, take))
        self._recent = []

    def move_into(self, storage: Storage) -> bool:
        """Let the storage keep the batches that are in memory. Returns False if the storage only
        offers buffers for them.
        """
        stored = storage.store(self._recent)
        if stored is None:
            return False
        self._spilled += stored
        self._recent = []
        return True


def _chosen(kept: Kept, chosen: Callable[[ChangeBatch], npt.NDArray[np.bool_]]) -> list[Kept]:
    batch = opened(kept)
    keep = chosen(batch)
    if keep.all():
        return [kept]
    return [select_events(batch, np.flatnonzero(keep))] if keep.any() else []


def _changes(kept: Kept) -> int:
    return count_changes(kept.events) if isinstance(kept, ChangeBatch) else kept.changes


def spill_largest(waiting: Iterable[Waiting], storage: Storage) -> None:
    """Move the largest transactions out of memory, until the rest takes half of the allowed memory.

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
    if all(one.move_into(storage) for _, one in chosen):
        return
    room = storage.spill(sum(size for size, _ in chosen))
    at = 0
    for size, one in chosen:
        one.move_to(room[at : at + size])
        at += size


def _aligned(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED
