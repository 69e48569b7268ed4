"""Reads and writes whole ranges of open files.

One system call can transfer fewer bytes than it was asked for, although more bytes follow: a signal
interrupts it, or a network file system answers in parts. So only a call that transfers nothing
shows the end of a file.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def read_at(handle: int, size: int, offset: int) -> bytes:
    """Return `size` bytes from `offset` on; fewer only at the end of the file.

    Raises:
        OSError: the file cannot be read.
    """
    data = os.pread(handle, size, offset)
    if len(data) == size:
        return data
    parts = [data]
    while data and (size := size - len(data)):
        offset += len(data)
        data = os.pread(handle, size, offset)
        parts.append(data)
    return b"".join(parts)


def fill_from(handle: int, rooms: Iterable[memoryview], offset: int, at_once: int = 1 << 30) -> int:
    """Fill the buffers, one after the other, with the bytes from `offset` on.

    Args:
        rooms: buffers of bytes.
        at_once: maximum bytes of a call if there is one buffer.

    Returns:
        The number of bytes; fewer than the buffers have only at the end of the file.

    Raises:
        OSError: the file cannot be read.
    """
    left, first = [room for room in rooms if room], offset
    while left:
        part = [left[0][:at_once]] if len(left) == 1 else left
        count = os.preadv(handle, part, offset)
        if not count:
            break
        offset += count
        while left and count >= len(left[0]):
            count -= len(left.pop(0))
        if count:
            left[0] = left[0][count:]
    return offset - first


def write_at(handle: int, data: bytes | memoryview, offset: int) -> None:
    """Write all of `data` at `offset`.

    Raises:
        OSError: the file cannot be written; it may contain a part of the data.
    """
    rest = memoryview(data).cast("B")
    while rest:
        count = os.pwrite(handle, rest, offset)
        rest, offset = rest[count:], offset + count
