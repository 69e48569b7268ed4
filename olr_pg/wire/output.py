"""Outputs: the places that framed messages go to while they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
import numpy.typing as npt

from olr_pg.transactions.waiting_storage import IN_MEMORY

if TYPE_CHECKING:
    from olr_pg.transactions.waiting_storage import Allocate, Storage, StoredBytes

U8 = npt.NDArray[np.uint8]

ROOM_BYTES: Final = 1 << 20
"""Bytes that are written before somebody takes them: they fit the processor's own cache, memory
would take longer to write them to than the encoder to make them."""

_NOTHING: Final = np.empty(0, np.uint8)


class MessageOutput(Protocol):
    """Takes messages room by room."""

    def room(self, least: int) -> U8:
        """Return where the next messages are written, `least` bytes or more of it."""

    def take(self, size: int) -> None:
        """Take the first `size` bytes of the room, which are messages."""

    def taken(self) -> U8:
        """Return what was taken since the last call, contiguous; empty if it is not in memory."""


class Scratch:
    """A room that is used again and again.

    Args:
        allocate: gives it; a row change with a large LOB needs one of its size.
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
    """An output that keeps nothing: messages are checked and measured."""

    def take(self, size: int) -> None:
        """Drop them."""

    def taken(self) -> U8:
        """Return nothing."""
        return _NOTHING


class Whole:
    """A buffer for everything, of just its size."""

    def __init__(self, room: U8) -> None:
        self._room = room

    def room(self, least: int) -> U8:
        """Return the room; nothing is asked for a second time."""
        return self._room

    def take(self, size: int) -> None:
        """Note nothing: the room is full."""
        assert size == self._room.size, "the room was measured"

    def taken(self) -> U8:
        """Return the room."""
        return self._room


class Collected(Scratch):
    """Messages in memory, as many as there are."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[U8] = []

    def take(self, size: int) -> None:
        """Keep a copy."""
        self._parts.append(self._room[:size].copy())

    def taken(self) -> U8:
        """Return the copies one behind the other."""
        parts, self._parts = self._parts, []
        return parts[0] if len(parts) == 1 else np.concatenate([_NOTHING, *parts])


class InParts(Scratch):
    """One transaction that is written in parts, each with a Begin and a Commit, outside of memory.

    Args:
        begin, commit: bytes of these messages; no room ends within one.
        storage: where the messages go.
    """

    def __init__(self, begin: int, commit: int, storage: Storage) -> None:
        super().__init__(storage.allocate)
        self._begin, self._commit = begin, commit
        self._gathered = storage.gather()
        self._last = _NOTHING
        self._skipped = 0

    def next_part(self) -> None:
        """Begin another part: the last Commit is not the transaction's."""
        self._skipped = self._begin if self._last.size else 0
        self._last = _NOTHING

    def take(self, size: int) -> None:
        """Pass on what is not a Commit, which may be the last one."""
        messages = self._room[self._skipped : size]
        self._skipped = 0
        if not messages.size:
            return
        self._gathered.append(self._last)
        self._gathered.append(messages[: -self._commit])
        self._last = messages[-self._commit :].copy()

    def taken(self) -> U8:
        """Return nothing, before `finish`."""
        return _NOTHING

    def finish(self) -> U8 | StoredBytes:
        """Return all messages, with one Begin and one Commit."""
        self._gathered.append(self._last)
        return self._gathered.finish()
