"""Memory that a process shares with those that it forks: results are handed over without a copy.

It is cut into rooms of one size. The process lends a room to a task, whose process writes a result
into it; the result is read where it lies, and the room is free again once nobody has it any more.
"""

from __future__ import annotations

import ctypes
import mmap
import weakref
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.files.result_files import Result, ResultFile

ROOM_BYTES: Final = 32 << 20
"""The size of a room, twice a split's redo. There is memory for what was written into it only."""


class SharedRooms:
    """Rooms of memory, to be made before the processes are forked.

    Args:
        count: how many, where the system has the memory.
        size: bytes of each.
    """

    def __init__(self, count: int, size: int = ROOM_BYTES) -> None:
        self._rooms: list[mmap.mmap] = []
        with suppress(OSError):  # there are fewer rooms then, or none: results go into files
            self._rooms.extend(mmap.mmap(-1, size) for _ in range(count))
        self._free = deque(range(len(self._rooms)))

    def lend(self) -> int | None:
        """Return the number of a free room, which is not free then; None where there is none."""
        # The one that was used last: its memory is there, and may still be in the cache.
        return self._free.pop() if self._free else None

    def give_back(self, number: int) -> None:
        """Let a room that was lent be lent again."""
        self._free.append(number)

    def room(self, number: int) -> memoryview:
        """Return a room, for whoever it was lent to."""
        return memoryview(self._rooms[number])

    def result(self, number: int, size: int) -> memoryview:
        """Return the first `size` bytes of a room that was lent.

        It is free once nobody has them, nor a part of them, any more.
        """
        held = (ctypes.c_ubyte * size).from_buffer(self._rooms[number])
        weakref.finalize(held, self.give_back, number).atexit = False
        return memoryview(held).cast("B")


class RoomResult:
    """A result on its way into a room (on the worker); what a room does not hold goes into a file.

    Args:
        room: that was lent; empty where there is none.
        file: makes the file, once.

    Attributes:
        size: bytes of the result so far.
    """

    def __init__(self, room: memoryview, file: Callable[[], ResultFile]) -> None:
        self._room = room
        self._new_file = file
        self._file: ResultFile | None = None
        self.size = 0

    def write(self, data: Result) -> None:
        """Append bytes.

        Raises:
            OlrPgError: 6006, the file is gone or full.
        """
        end = self.size + memoryview(data).nbytes
        if self._file is None and end > self._room.nbytes:
            self._file = self._new_file()
            self._file.write(self._room[: self.size])
        if self._file is None:
            self._room[self.size : end] = memoryview(data).cast("B")
        else:
            self._file.write(data)
        self.size = end

    def back_to(self, size: int) -> None:
        """Forget what was written behind the first `size` bytes."""
        if self._file is not None:
            self._file.back_to(size)
        self.size = size

    def finish(self) -> int | None:
        """End it, and return its size in the room; None where it is in the file."""
        if self._file is None:
            return self.size
        self._file.finish()
        return None

    def close(self) -> None:
        """Write nothing more."""
        if self._file is not None:
            self._file.close()
