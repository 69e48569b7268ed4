"""Outputs: the destinations of the framed messages that the encoder writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
import numpy.typing as npt

from olr_pg.transactions.waiting_storage import IN_MEMORY

if TYPE_CHECKING:
    from olr_pg.transactions.waiting_storage import Allocate, Storage, StoredBytes

U8 = npt.NDArray[np.uint8]

ROOM_BYTES: Final = 1 << 20
"""Minimum size of a room. It fits the processor's cache: writing to memory would take longer than
encoding.
"""

_NOTHING: Final = np.empty(0, np.uint8)


class MessageOutput(Protocol):
    """An output: it provides the encoder with rooms (buffers), one after the other, and takes the
    messages from them.
    """

    def room(self, least: int) -> U8:
        """Return a buffer of at least `least` bytes for the next messages."""

    def take(self, size: int) -> None:
        """Take the messages in the first `size` bytes of the room."""

    def taken(self) -> U8:
        """Return the messages taken since the last call, one after the other. The result is empty
        if the output keeps no messages in memory.
        """


class Scratch:
    """An output that provides the same room repeatedly.

    Args:
        allocate: allocates the room; a larger one is allocated for a row change with a large LOB.
    """

    def __init__(self, allocate: Allocate = IN_MEMORY.allocate) -> None:
        self._allocate = allocate
        self._room = _NOTHING

    def room(self, least: int) -> U8:
        """See `MessageOutput.room`."""
        if self._room.size < max(least, ROOM_BYTES):
            self._room = self._allocate(max(least, ROOM_BYTES))
        return self._room


class Unkept(Scratch):
    """An output that keeps nothing. Use this output to check messages and to find their size."""

    def take(self, size: int) -> None:
        """Drop the messages."""

    def taken(self) -> U8:
        """Return an empty array."""
        return _NOTHING


class Whole:
    """An output with one buffer that has exactly the size of all messages."""

    def __init__(self, room: U8) -> None:
        self._room = room

    def room(self, least: int) -> U8:
        """Return the buffer; called only once."""
        return self._room

    def take(self, size: int) -> None:
        """Do nothing: the buffer is full."""
        assert size == self._room.size, "the room was measured"

    def taken(self) -> U8:
        """Return the buffer."""
        return self._room


class Collected(Scratch):
    """An output that collects any number of messages in memory."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[U8] = []

    def take(self, size: int) -> None:
        """Keep a copy of the messages."""
        self._parts.append(self._room[:size].copy())

    def taken(self) -> U8:
        """Return the copies, one after the other."""
        parts, self._parts = self._parts, []
        return parts[0] if len(parts) == 1 else np.concatenate([_NOTHING, *parts])


class InParts(Scratch):
    """An output for one transaction that is encoded in several parts and may not fit in memory. The
    encoder writes a Begin and a Commit for each part; only the first Begin and the last Commit are
    kept.

    Args:
        begin, commit: the sizes in bytes of Begin and Commit; a room contains only complete
            messages.
        storage: stores the messages.
    """

    def __init__(self, begin: int, commit: int, storage: Storage) -> None:
        super().__init__(storage.allocate)
        self._begin, self._commit = begin, commit
        self._gathered = storage.gather()
        self._last = _NOTHING
        self._skipped = 0

    def next_part(self) -> None:
        """Begin another part. The Commit of the previous part and the Begin of the new part are
        dropped.
        """
        self._skipped = self._begin if self._last.size else 0
        self._last = _NOTHING

    def take(self, size: int) -> None:
        """Store the messages, except the bytes at their end that may be a Commit. These bytes are
        kept back until it is known whether another part follows.
        """
        messages = self._room[self._skipped : size]
        self._skipped = 0
        if not messages.size:
            return
        self._gathered.append(self._last)
        self._gathered.append(messages[: -self._commit])
        self._last = messages[-self._commit :].copy()

    def taken(self) -> U8:
        """Return an empty array. `finish` returns the messages."""
        return _NOTHING

    def finish(self) -> U8 | StoredBytes:
        """Return all messages with one Begin and one Commit."""
        self._gathered.append(self._last)
        return self._gathered.finish()
