"""Shares memory with forked child processes, to transfer results without copying them.

The memory is divided into pieces of equal size, the rooms. The parent lends a room to a task, and
the child that runs the task writes its result there. The parent reads the result in place. When
nothing references the result any more, the parent can lend the room again.
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
"""The size of a room: twice the usual size of a split's redo. Only pages that were written use
memory.
"""


class SharedRooms:
    """Rooms of shared memory; create the object before the processes are forked.

    Args:
        count: the number of rooms; if the system has too little memory, there are fewer.
        size: bytes of each room.
    """

    def __init__(self, count: int, size: int = ROOM_BYTES) -> None:
        self._rooms: list[mmap.mmap] = []
        with suppress(OSError):  # tasks without a room write results to files
            self._rooms.extend(mmap.mmap(-1, size) for _ in range(count))
        self._free = deque(range(len(self._rooms)))

    def lend(self) -> int | None:
        """Lend a free room and return its number; None if none is free."""
        # Lend the room that was used last: its memory is allocated and may still be in the CPU
        # cache.
        return self._free.pop() if self._free else None

    def give_back(self, number: int) -> None:
        """Return a lent room."""
        self._free.append(number)

    def room(self, number: int) -> memoryview:
        """Return the memory of a lent room, for the task that writes to it."""
        return memoryview(self._rooms[number])

    def result(self, number: int, size: int) -> memoryview:
        """Return the first `size` bytes of a lent room.

        The room can be lent again when nothing references these bytes, or a part of them, any more.
        """
        held = (ctypes.c_ubyte * size).from_buffer(self._rooms[number])
        weakref.finalize(held, self.give_back, number).atexit = False
        return memoryview(held).cast("B")


class RoomResult:
    """A result that a worker is writing to a room, or to a file if it does not fit into the room.

    Args:
        room: the memory of the lent room; empty if no room was lent.
        file: opens the file if one is needed; called at most once.

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
            OlrPgError: 6006, the file cannot be written.
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
        """Discard all bytes after the first `size` bytes."""
        if self._file is not None:
            self._file.back_to(size)
        self.size = size

    def finish(self) -> int | None:
        """Finish the result. Return its size if it is in the room, or None if it is in the file."""
        if self._file is None:
            return self.size
        self._file.finish()
        return None

    def close(self) -> None:
        """Stop writing."""
        if self._file is not None:
            self._file.close()
