"""Memory that a process shares with its forked children, to transfer results without copying.

It is divided into rooms of equal size. The process lends a room to a task, whose process writes a
result to it. The result is read in place, and the room is free again when the result is no longer
referenced.
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
"""The size of a room: twice a split's redo. Only pages that were written use memory."""


class SharedRooms:
    """Rooms of shared memory; make them before the processes are forked.

    Args:
        count: the number of rooms, if the system has enough memory.
        size: bytes of each.
    """

    def __init__(self, count: int, size: int = ROOM_BYTES) -> None:
        self._rooms: list[mmap.mmap] = []
        with suppress(OSError):  # with fewer rooms, or none, results go into files
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
        """Return the memory of a room, for its borrower."""
        return memoryview(self._rooms[number])

    def result(self, number: int, size: int) -> memoryview:
        """Return the first `size` bytes of a lent room.

        The room is free when neither they nor a part of them is referenced any more.
        """
        held = (ctypes.c_ubyte * size).from_buffer(self._rooms[number])
        weakref.finalize(held, self.give_back, number).atexit = False
        return memoryview(held).cast("B")


class RoomResult:
    """A result that a worker is writing to a room; if it does not fit, it is written to a file.

    Args:
        room: the lent room; empty if there is none.
        file: opens the file; called at most once.

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
        """Discard what was written after the first `size` bytes."""
        if self._file is not None:
            self._file.back_to(size)
        self.size = size

    def finish(self) -> int | None:
        """Finish it, and return its size in the room; None if it is in the file."""
        if self._file is None:
            return self.size
        self._file.finish()
        return None

    def close(self) -> None:
        """Stop writing."""
        if self._file is not None:
            self._file.close()
