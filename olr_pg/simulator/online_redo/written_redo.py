"""Redo that is to be written to online logs: begins of logs, runs of whole LWNs, ends of logs.

It comes from finished logs, or from a running simulation (`simulator.live`). In both cases, the
simulator's writers have already written block headers and checksums.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.simulator.fields.block_layout import (
    BLOCK_HEADER_SIZE,
    FIRST_DATA_BLOCK,
    LWN_HEADER_SIZE,
    LWN_LENGTH,
)
from olr_pg.simulator.fields.headers import BIG_ENDIAN, HeaderBlock
from olr_pg.simulator.fields.redo_format import RedoFormat

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_LWN_SCN: Final = 40
_NEXT_LWN_SCN: Final = 56


class Lwn(NamedTuple):
    """A complete LWN with all its chunks.

    Attributes:
        block, blocks: its first block in the log, and its number of blocks.
        scn: the lowest SCN of its records.
        next_scn: an SCN above those of all its records.
    """

    block: int
    blocks: int
    scn: int
    next_scn: int

    @property
    def end(self) -> int:
        """The block after the LWN."""
        return self.block + self.blocks


@dataclass(frozen=True, slots=True)
class LogStart:
    """A thread begins a log; only the fields of `header` that are known at that time are valid."""

    header: HeaderBlock

    @property
    def thread(self) -> int:
        """The redo thread."""
        return self.header.thread


@dataclass(frozen=True, slots=True)
class FlushedLwns:
    """Consecutive LWNs that one flush writes.

    Attributes:
        block, end: the first block in the log, and the block after the last.
        scn: the lowest SCN of the first LWN.
        next_scn: an SCN above those of all its records.
    """

    thread: int
    block: int
    end: int
    data: memoryview
    scn: int
    next_scn: int


@dataclass(frozen=True, slots=True)
class EndedLog:
    """A thread ends its log.

    Attributes:
        header: the final header.
        lost: the redo that the instance was writing when it crashed; None if it did not crash.
    """

    header: HeaderBlock
    lost: FlushedLwns | None = None

    @property
    def thread(self) -> int:
        """The redo thread."""
        return self.header.thread


Redo = LogStart | FlushedLwns | EndedLog


class WrittenLog(NamedTuple):
    """A finished log.

    Attributes:
        data: the file as it would be archived.
        lost: the blocks after its end that the instance was writing when it crashed.
    """

    data: memoryview
    lost: bytes = b""


def read_format(data: memoryview) -> RedoFormat:
    """Read byte order, block size and version from blocks 0 and 1."""
    big_endian = bytes(data[28:32]) == BIG_ENDIAN
    (size,) = RedoFormat(big_endian=big_endian).unpack("I", bytes(data[20:24]))
    (version,) = RedoFormat(big_endian=big_endian).unpack("I", bytes(data[size + 20 : size + 24]))
    return RedoFormat(version, big_endian, size)


def read_header(data: memoryview) -> HeaderBlock:
    """Read block 1 of a log."""
    redo = read_format(data)
    return HeaderBlock.read(redo, bytes(data[redo.block_size : 2 * redo.block_size]))


def find_lwns(redo: RedoFormat, data: memoryview, block: int) -> Iterator[Lwn]:
    """Yield the consecutive LWNs in `data`; the first one begins in `block`."""
    at, size = 0, redo.block_size
    while at < len(data):
        head = bytes(data[at + BLOCK_HEADER_SIZE : at + BLOCK_HEADER_SIZE + LWN_HEADER_SIZE])
        (blocks,) = redo.unpack("I", head, LWN_LENGTH)
        scns = redo.read_scn8(head, _LWN_SCN), redo.read_scn8(head, _NEXT_LWN_SCN)
        yield Lwn(block + at // size, blocks, *scns)
        at += blocks * size


def log_parts(
    redo: RedoFormat, thread: int, data: memoryview, block: int, sizes: Iterator[int]
) -> Iterator[FlushedLwns]:
    """Cut blocks into flushes; `block` is the first one.

    Args:
        sizes: minimum number of blocks of each flush, which has one or more whole LWNs.
    """
    size, start, scn = redo.block_size, block, -1
    end, wanted = block + len(data) // size, next(sizes)
    for lwn in find_lwns(redo, data, block):
        scn = lwn.scn if scn < 0 else scn
        if lwn.end - start >= wanted or lwn.end == end:
            blocks = data[(start - block) * size : (lwn.end - block) * size]
            yield FlushedLwns(thread, start, lwn.end, blocks, scn, lwn.next_scn)
            start, scn, wanted = lwn.end, -1, next(sizes)


def redo_of_logs(logs: Sequence[WrittenLog], sizes: Iterator[int] | None = None) -> Iterator[Redo]:
    """Yield the redo of finished logs by SCN; the redo of each thread stays in its order.

    Args:
        logs: the logs of all threads; those of one thread in the order of their sequences.
        sizes: minimum number of blocks of each flush; by default, a flush writes one LWN.
    """
    headers = [read_header(log.data) for log in logs]
    sizes = sizes or itertools.repeat(1)
    threads = [
        _thread_redo(
            [log for log, own in zip(logs, headers, strict=True) if own.thread == thread], sizes
        )
        for thread in sorted({header.thread for header in headers})
    ]
    for _, redo in heapq.merge(*threads, key=lambda keyed: keyed[0]):
        yield redo


def _thread_redo(
    logs: Iterable[WrittenLog], sizes: Iterator[int]
) -> Iterator[tuple[tuple[int, int], Redo]]:
    """Yield the redo of a thread; each item with its (resetlogs SCN, SCN)."""
    for log in logs:
        redo, header = read_format(log.data), read_header(log.data)
        incarnation, size = header.resetlogs_scn, redo.block_size
        yield (incarnation, header.first_scn), LogStart(header)
        data = log.data[FIRST_DATA_BLOCK * size : header.nab * size]
        for part in log_parts(redo, header.thread, data, FIRST_DATA_BLOCK, sizes):
            yield (incarnation, part.scn), part
        yield (incarnation, header.next_scn), EndedLog(header, lost_part(redo, header, log.lost))


def lost_part(redo: RedoFormat, header: HeaderBlock, lost: bytes) -> FlushedLwns | None:
    """Return the redo that a crash interrupted, after the end of its log; None if there is none."""
    if not lost:
        return None
    sizes = itertools.repeat(len(lost))
    return next(log_parts(redo, header.thread, memoryview(lost), header.nab, sizes))
