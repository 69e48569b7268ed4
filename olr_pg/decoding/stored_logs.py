"""Reads the part of a log that decoding needs, if the log is read in ranges (`capture.readers`).

The kernels need a log as one array. So the array has the log's size, but only the blocks that were
read use memory: those of a split, then the rest of its last LWN group and the block at which the
next one begins. A group's length is in its headers. So missing blocks are found when the kernels,
following the groups, reach a block that was not read.
"""

from __future__ import annotations

import mmap
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from olr_pg.capture.readers import HEADER_BYTES, parse_start, range_reader
from olr_pg.errors import OlrPgError
from olr_pg.redo.window import Log, blocks_in_use, group_runs

if TYPE_CHECKING:
    from olr_pg.capture.object_storage import RangeReader
    from olr_pg.files.sealed import SealedReader
    from olr_pg.redo.header import LogHeader

_BEHIND_BYTES: Final = 64 << 10
"""Bytes that are first read after a split; groups are usually smaller."""

_MORE_BYTES: Final = 1 << 20
"""Bytes per further read if a group continues."""


def open_stored(
    path: str,
    first: int,
    end: int | None,
    first_group: int,
    known_end: tuple[int, int] | None = None,
) -> Log:
    """Read what is needed to decode the LWN groups that begin in blocks [first, end).

    Args:
        path: of the log, or its URL.
        end: None for the log's end.
        first_group, known_end: as for `decoding.split.Split`.

    Raises:
        OlrPgError: 2002 to 2008, 2210 to 2213.
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
    """Return the last block that is needed; if a block is damaged, one that was already read."""
    last = first
    try:
        for run in group_runs(log, first, end, first_group=first_group, verify=False):
            last = run.end
    except OlrPgError as error:
        block = error.where.get("block")
        # Decoding reports damage in the blocks that are present.
        return block if isinstance(block, int) else there - 1
    return last


_NO_RESERVE: Final[int] = getattr(mmap, "MAP_NORESERVE", 0)
"""Not defined in every Python. Most of the mapping is never used, so no memory should be reserved
for it.
"""


class _Blocks:
    """The bytes of a log that were read.

    Attributes:
        raw: shape (bytes), zero if not read.
        end: the block after the last one read.
    """

    def __init__(self, reader: RangeReader | SealedReader, header: LogHeader) -> None:
        self._reader = reader
        self._block_size = header.block_size
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
        self._memory = mmap.mmap(-1, max(reader.size, 1), flags=flags)
        self.raw: npt.NDArray[np.uint8] = np.frombuffer(self._memory, np.uint8)[: reader.size]
        self.raw.flags.writeable = False
        self.end = 0

    def read(self, first: int, end: int) -> None:
        """Read blocks."""
        size = self._block_size
        with memoryview(self._memory) as view:
            self._reader.read_into(view[first * size : end * size], first * size)
        self.end = end
