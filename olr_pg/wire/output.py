"""Where framed messages go while they are written."""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

U8 = npt.NDArray[np.uint8]

ROOM_BYTES: Final = 1 << 20
"""Bytes that are written before somebody takes them: they fit the processor's own cache, memory
would take longer to write them to than the encoder to make them."""

_NOTHING: Final = np.empty(0, np.uint8)


class MessageOutput(Protocol):
    """Takes messages room by room."""

    def room(self, least: int) -> U8:
        """Where the next messages are written, `least` bytes or more of it."""

    def take(self, size: int) -> None:
        """The first `size` bytes of the room are messages."""

    def taken(self) -> U8:
        """What was taken since the last call, contiguous; empty if it is not in memory."""


class Scratch:
    """A room that is used again and again."""

    def __init__(self) -> None:
        self._room = _NOTHING

    def room(self, least: int) -> U8:
        """See `MessageOutput.room`."""
        if self._room.size < max(least, ROOM_BYTES):
            self._room = np.empty(max(least, ROOM_BYTES), np.uint8)
        return self._room


class Unkept(Scratch):
    """Nobody wants the messages: they are checked and measured."""

    def take(self, size: int) -> None:
        """They are gone."""

    def taken(self) -> U8:
        """Nothing."""
        return _NOTHING


class Whole:
    """One room for everything, of just its size."""

    def __init__(self, room: U8) -> None:
        self._room = room

    def room(self, least: int) -> U8:
        """The room; nothing is asked for a second time."""
        return self._room

    def take(self, size: int) -> None:
        """It is full."""
        assert size == self._room.size, "the room was measured"

    def taken(self) -> U8:
        """The room."""
        return self._room


class Collected(Scratch):
    """In memory, as much as it is."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[U8] = []

    def take(self, size: int) -> None:
        """Keep a copy."""
        self._parts.append(self._room[:size].copy())

    def taken(self) -> U8:
        """The copies one behind the other."""
        parts, self._parts = self._parts, []
        return parts[0] if len(parts) == 1 else np.concatenate([_NOTHING, *parts])
