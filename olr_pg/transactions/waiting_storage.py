"""The interface of the storage for open transactions. Open transactions are kept in memory. If open
transactions need too much memory, the storage can keep them elsewhere.

This package does no I/O, so its caller passes in a storage. The storage keeps the tables of events,
pieces and entries, and the bytes of values. If rows are small, the tables are larger than the
values.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from olr_pg.redo.batch import ChangeBatch
from olr_pg.transactions.select import count_changes, select_events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


U8 = npt.NDArray[np.uint8]
Allocate: TypeAlias = "Callable[[int], U8]"


class StoredBytes(Protocol):
    """Bytes that are kept outside of memory and are read when they are needed."""

    @property
    def size(self) -> int:
        """The number of bytes."""

    def read(self, first: int, size: int) -> memoryview:
        """Read some of the bytes into memory and return them."""


class StoredBatch(Protocol):
    """A batch that is kept outside of memory. `open` reads the batch into memory.

    Attributes:
        size: bytes of memory that the batch needs after `open`.
        changes: number of changes in the batch.
        lowest_scn: the lowest SCN of its events.
    """

    size: int
    changes: int
    lowest_scn: int

    def open(self) -> ChangeBatch:
        """Read the batch into memory and return it."""


class Gathering(Protocol):
    """Collects bytes that are written one after the other, if their total number is unknown at
    first.
    """

    def append(self, data: U8) -> None:
        """Add some bytes. The caller can change `data` afterwards."""

    def finish(self) -> U8 | StoredBytes:
        """Return all bytes that were added."""


class Storage(Protocol):
    """A storage for open transactions."""

    @property
    def memory_max(self) -> int:
        """The maximum number of bytes of open transactions in memory."""

    @property
    def part_bytes(self) -> int:
        """The approximate number of bytes that are processed together, for a transaction outside of
        memory.
        """

    @property
    def waiting_bytes(self) -> int:
        """The number of bytes that are outside of memory now."""

    def allocate(self, size: int) -> U8:
        """Return a writable buffer of `size` bytes. The buffer is in memory only if `size` is
        small.
        """

    def store(self, batches: Sequence[ChangeBatch]) -> Sequence[Kept]:
        """Store the events of batches outside of memory if that is possible."""

    def keep(self, data: U8) -> U8 | StoredBytes:
        """Store bytes outside of memory if that is possible. The result can be read but not
        written.
        """

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
    """A storage that keeps everything in memory. This storage is for input of limited size, such as
    one split.
    """

    memory_max: Final = sys.maxsize
    part_bytes: Final = sys.maxsize
    waiting_bytes: Final = 0

    def allocate(self, size: int) -> U8:
        """Return a buffer in memory."""
        return np.empty(size, np.uint8)

    def store(self, batches: Sequence[ChangeBatch]) -> Sequence[Kept]:
        """Return the batches unchanged."""
        return batches

    def keep(self, data: U8) -> U8:
        """Return the bytes unchanged."""
        return data

    def gather(self) -> Gathering:
        """Return an object that collects bytes in memory."""
        return _GatheredInMemory()


IN_MEMORY: Final = InMemory()


def joined(parts: Sequence[U8], allocate: Allocate) -> U8:
    """Return the parts, joined one after the other. If there is only one part, it is returned
    without a copy.
    """
    if len(parts) == 1:
        return parts[0]
    room = allocate(sum(part.size for part in parts))
    at = 0
    for part in parts:
        room[at : at + part.size] = part
        at += part.size
    return room


def batch_bytes(batch: ChangeBatch) -> int:
    """Return the number of bytes of a batch, for its tables and its values."""
    return sum(part.nbytes for part in batch)


def batch_cells(batch: ChangeBatch) -> list[U8]:
    """Return the tables and values of a batch as bytes, in the order in which they are written to
    files.
    """
    return [np.ascontiguousarray(part).view(np.ndarray).view(np.uint8) for part in batch]


Kept: TypeAlias = "ChangeBatch | StoredBatch"


def kept_bytes(kept: Kept) -> int:
    """Return the number of bytes that a batch needs in memory, even if it is not in memory now."""
    return batch_bytes(kept) if isinstance(kept, ChangeBatch) else kept.size


def opened(kept: Kept) -> ChangeBatch:
    """Return the batch in memory; read it from the storage if necessary."""
    return kept if isinstance(kept, ChangeBatch) else kept.open()


class Batches(Sequence[ChangeBatch]):
    """A sequence of batches, some of which can be stored outside of memory. Access to a stored
    batch reads it from there; only the batch that was read last stays in memory.

    Attributes:
        kept: the batches; those outside of memory as `StoredBatch`.
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
            self._last = None  # release its memory before the next batch is read
            self._last = number, kept.open()
        return self._last[1]


class Waiting:
    """The batches of a transaction whose end was not read yet, with their number of bytes in
    memory.

    Attributes:
        changes: number of changes in the batches.
    """

    def __init__(self) -> None:
        self._spilled: list[Kept] = []
        self._recent: list[ChangeBatch] = []
        self.changes = 0

    @property
    def batches(self) -> Batches:
        """All batches, in the order in which they were added."""
        return Batches(self._spilled, self._recent)

    @property
    def in_memory(self) -> int:
        """The number of bytes of the batches in memory."""
        return sum(map(batch_bytes, self._recent))

    @property
    def is_spilled(self) -> bool:
        """Whether any of the batches is outside of memory."""
        return bool(self._spilled)

    def copy(self) -> Waiting:
        """Return a copy. The copy and the original share the batches."""
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
        """Remove the events for which `chosen` is False. A stored batch for which `needs_opening`
        is False is not read, and all its events stay.
        """
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
        """Remove the events before this SCN."""
        self.keep(
            lambda batch: batch.events.scn >= np.uint64(scn),
            needs_opening=lambda stored: stored.lowest_scn < scn,
        )

    def move_into(self, storage: Storage) -> None:
        """Move the batches that are in memory to the storage."""
        self._spilled += storage.store(self._recent)
        self._recent = []


def _chosen(kept: Kept, chosen: Callable[[ChangeBatch], npt.NDArray[np.bool_]]) -> list[Kept]:
    batch = opened(kept)
    keep = chosen(batch)
    if keep.all():
        return [kept]
    return [select_events(batch, np.flatnonzero(keep))] if keep.any() else []


def _changes(kept: Kept) -> int:
    return count_changes(kept.events) if isinstance(kept, ChangeBatch) else kept.changes


def spill_largest(waiting: Iterable[Waiting], storage: Storage) -> None:
    """If too much memory is used, move the largest transactions out of memory until the others use
    at most half of the allowed memory.
    """
    held = [(one.in_memory, one) for one in waiting]
    total = sum(size for size, _ in held)
    if total <= storage.memory_max:
        return
    for size, one in sorted(held, key=itemgetter(0), reverse=True):
        if total <= storage.memory_max // 2:
            break
        one.move_into(storage)
        total -= size


@dataclass(slots=True)
class OpenTransaction:
    """A transaction whose end was not read yet.

    Attributes:
        begin_scn: SCN of its begin, None if the begin was not read.
        chunks: its events that were read so far.
    """

    con_id: int
    xid: int
    begin_scn: int | None
    chunks: Waiting = field(default_factory=Waiting)

    @property
    def changes(self) -> int:
        """The number of the transaction's changes that were read so far, including changes that
        were undone.
        """
        return self.chunks.changes


def is_recovered_elsewhere(waiting: OpenTransaction, chunk: ChangeBatch, xid: int) -> bool:
    """Return whether events without a BEGIN do not belong to the open transaction on their slot,
    but to one that another Oracle instance rolled back.

    If an instance dies, a surviving instance rolls back the dead instance's transactions. The redo
    of this rollback is in the surviving instance's thread. Redo threads are read in any order, so
    the open transaction can be older or newer than the one that is rolled back. Only the end of the
    rollback contains an XID. The undo markers before the end name only the slot; they are not
    needed.
    """
    own = waiting.chunks.batches[0].events.thread[0]
    return bool(chunk.events.thread[0] != own and waiting.xid != xid)


def may_be_one_on_slot(one: int, other: int) -> bool:
    """Return whether two XIDs on the same slot can belong to one transaction. The sequence in the
    XID of an undo marker is 0, because it is unknown.
    """
    a, b = one & 0xFFFFFFFF, other & 0xFFFFFFFF
    return a == 0 or b == 0 or a == b
