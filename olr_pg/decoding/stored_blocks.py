"""Reads the blocks of a log that are needed to decode a part of it.

Only these blocks are read, in ranges of bytes (`capture.readers`). Kernels need a log as one array.
So the array has the size of the log, but only the blocks that were read use memory. First the
blocks of the part are read. The last LWN group of the part can continue after it, and the block at
which the next group begins is needed too. The length of a group is in its headers, so further
blocks are read when the kernels follow the groups and reach a block that was not read yet.

A log that is read cannot end the process, as a mapped log does if its disk fails, or if somebody
truncates it.
"""

from __future__ import annotations

import mmap
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from olr_pg.capture.readers import HEADER_BYTES, LogReader, parse_start, range_reader
from olr_pg.errors import OlrPgError
from olr_pg.redo.format.file_fields import FIRST_DATA_BLOCK
from olr_pg.redo.window import WINDOW_BYTES, Log, Window, blocks_in_use, group_runs, read_windows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.redo.header import LogHeader

_PART_BYTES: Final = 16 << 20
"""Bytes of a log that `stored_windows` reads at once."""

_BEHIND_BYTES: Final = 64 << 10
"""Bytes after a split that are read first. Most LWN groups are smaller."""

_MORE_BYTES: Final = 1 << 20
"""Bytes of each further read, if the LWN group continues."""


def open_stored(
    path: str,
    first: int,
    end: int | None,
    first_group: int,
    known_end: tuple[int, int] | None = None,
) -> Log:
    """Read the blocks that are needed to decode the LWN groups that begin in blocks [first, end).

    Args:
        path: path or URL of the log.
        end: None for the end of the log.
        first_group, known_end: as in `decoding.split.Split`.

    Raises:
        OlrPgError: 2002 to 2008 or 2210 to 2213 if the log cannot be read.
    """
    reader = range_reader(path)
    header = parse_start(reader.read(0, HEADER_BYTES), path)
    if known_end is not None:
        header = replace(header, nab=known_end[0], next_scn=known_end[1])
    blocks = _Blocks(reader, header)
    log = Log(path, header, blocks.raw)
    nab = blocks_in_use(log)
    split_end = nab if end is None else min(end, nab)
    block_size = header.block_size
    first = max(first, first_group)
    blocks.read(first, min(split_end + _BEHIND_BYTES // block_size, nab))
    while blocks.end < nab:
        needed = _needed(log, first, split_end, first_group, blocks.end)
        if needed < blocks.end:
            break
        blocks.read(blocks.end, min(max(needed + 1, blocks.end + _MORE_BYTES // block_size), nab))
    return log


def _needed(log: Log, first: int, end: int, first_group: int, there: int) -> int:
    """Return the last block that is needed. If a block is damaged, return a block that was already
    read.
    """
    last = first
    try:
        for run in group_runs(log, first, end, first_group=first_group, verify=False):
            last = run.end
    except OlrPgError as error:
        block = error.where.get("block")
        # The damage is in blocks that were read, so decoding reports it.
        return block if isinstance(block, int) else there - 1
    return last


_NO_RESERVE: Final[int] = getattr(mmap, "MAP_NORESERVE", 0)
"""Flag of a mapping for which no memory is reserved, because most of it is never used. Not every
Python defines it.
"""


_HUGE_PAGES: Final[int] = getattr(mmap, "MADV_HUGEPAGE", mmap.MADV_NORMAL)
"""Reading a log into huge pages needs less system time, because there are fewer page faults."""


class _Blocks:
    """The bytes of a log that were read.

    Attributes:
        raw: shape (bytes); bytes that were not read are 0.
        end: the block after the last block that was read.
    """

    def __init__(self, reader: LogReader, header: LogHeader) -> None:
        self._reader = reader
        self._block_size = header.block_size
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
        self._memory = mmap.mmap(-1, max(reader.size, 1), flags=flags)
        with suppress(OSError):  # a system without huge pages
            self._memory.madvise(_HUGE_PAGES)
        self.raw: npt.NDArray[np.uint8] = np.frombuffer(self._memory, np.uint8)[: reader.size]
        self.raw.flags.writeable = False
        self.end = 0

    def read(self, first: int, end: int) -> None:
        """Read the blocks [first, end)."""
        size = self._block_size
        with memoryview(self._memory) as view:
            self._reader.read_into(view[first * size : end * size], first * size)
        self.end = end


def unread_log(path: str, header: LogHeader, size: int) -> Log:
    """Return a log none of whose blocks is read, for `stored_windows`.

    Args:
        size: bytes of the file.
    """
    return Log(path, header, np.broadcast_to(np.uint8(0), size))


def stored_windows(log: Log, *, window_bytes: int = WINDOW_BYTES) -> Iterator[Window]:
    """Yield the windows of a whole log as `read_windows` does. Read the log part by part, so that
    only one part is in memory.

    Raises:
        OlrPgError: 2002 to 2008 or 2210 to 2213 if the log cannot be read.
    """
    blocks, nab = max(1, _PART_BYTES // log.header.block_size), blocks_in_use(log)
    for first in range(FIRST_DATA_BLOCK, nab, blocks):
        part = open_stored(log.path, first, first + blocks, 0)
        yield from read_windows(part, first, first + blocks, window_bytes=window_bytes)
