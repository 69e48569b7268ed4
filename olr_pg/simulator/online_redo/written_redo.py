"""Redo that is written to online logs: begins of logs, runs of whole LWNs, ends, and their flushes.

The redo comes from finished logs, or from a running simulation (`simulator.live`). The simulator's
writers have already written block headers and checksums. If redo was generated ahead, the times of
logs and LWNs are set when it is flushed.

A flush writes its blocks, cut into pieces, to each member, in a random order. A piece may begin and
end within a block. Until the rest of this block is written, the block is torn, and its checksum is
wrong (redo-format §1.6).
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.simulator.fields.redo_format import RedoFormat
from olr_pg.simulator.online_redo.online_files import Write
from olr_pg.simulator.writer.log_file import (
    BIG_ENDIAN,
    BLOCK_HEADER_SIZE,
    FIRST_DATA_BLOCK,
    LWN_HEADER_SIZE,
    LWN_LENGTH,
    HeaderBlock,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from random import Random


_LWN_SCN: Final = 40
_NEXT_LWN_SCN: Final = 56


class Lwn(NamedTuple):
    """A complete LWN with all its chunks.

    Attributes:
        block, blocks: the first block of the LWN in the log, and its number of blocks.
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


_BEFORE_CHECKSUM: Final = (4, 8, 12)


@dataclass(frozen=True, slots=True)
class FlushStyle:
    """How flushes are cut, torn and reordered.

    Attributes:
        pieces: maximum number of pieces into which a flush is cut.
        torn: probability that a cut is within a block, and probability that a write of a log's
            header leaves it torn for a moment.
        reordered: probability that the pieces of a member are written in random order.
    """

    pieces: int = 4
    torn: float = 0.4
    reordered: float = 0.5


@dataclass(slots=True)
class FlushInProgress:
    """A flush in progress: the blocks that each member's file already contains."""

    redo: RedoFormat
    part: FlushedLwns
    written: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    def note(self, write: Write) -> None:
        """Record a write that was carried out.

        A torn block counts as written when its beginning is written, because its later parts may
        already be in the file.
        """
        size = self.redo.block_size
        end = -(-(write.offset + len(write.data)) // size)
        self.written.setdefault(write.member, []).append((-(-write.offset // size), end))

    def whole_end(self) -> int:
        """Return the block after the last LWN that may be complete in some member."""
        reached = max([self.part.block, *map(self._reached, self.written)])
        lwns = find_lwns(self.redo, self.part.data, self.part.block)
        return max([self.part.block, *(lwn.end for lwn in lwns if lwn.end <= reached)])

    def _reached(self, member: str) -> int:
        """Return the block up to which a member may contain all blocks."""
        reached = self.part.block
        for start, end in sorted(self.written[member]):
            if start > reached:
                break
            reached = max(reached, end)
        return reached


def flush_writes(
    rng: Random,
    style: FlushStyle,
    members: Sequence[str],
    offset: int,
    data: bytes | memoryview,
    block_size: int,
) -> Iterator[Write]:
    """Yield the writes of `data` to every member's file at `offset`; `data` consists of whole
    blocks.
    """
    queues = [
        [Write(member, offset + start, data[start:end]) for start, end in pieces]
        for member in members
        for pieces in [_pieces(rng, style, len(data), block_size)]
    ]
    while queues:
        queue = rng.choice(queues)
        yield queue.pop(0)
        if not queue:
            queues.remove(queue)


def _pieces(rng: Random, style: FlushStyle, size: int, block_size: int) -> list[tuple[int, int]]:
    cuts = set[int]()
    for _ in range(rng.randint(1, style.pieces) - 1):
        cut = rng.randrange(0, size, block_size)
        cuts.add(cut + (rng.randrange(4, block_size, 4) if rng.random() < style.torn else 0))
    ends = sorted({*cuts, size} - {0})
    pieces = list(zip([0, *ends], ends, strict=False))
    if rng.random() < style.reordered:
        rng.shuffle(pieces)
    return pieces


def header_writes(
    rng: Random, style: FlushStyle, members: Sequence[str], image: bytes
) -> Iterator[Write]:
    """Yield the writes of block 1 to one member after the other."""
    for member in rng.sample(members, len(members)):
        if rng.random() < style.torn:
            yield Write(member, len(image), image[: rng.randrange(4, len(image), 4)])
        yield Write(member, len(image), image)


def crash_writes(
    rng: Random,
    style: FlushStyle,
    members: Sequence[str],
    lost: tuple[Lwn, bytes | memoryview],
    block_size: int,
) -> Iterator[Write]:
    """Yield the writes of a flush that a crash interrupts: one block of its first LWN is not
    written.

    Args:
        lost: the first LWN, and the blocks from its beginning on.
    """
    first, data = lost
    missing = rng.randrange(first.blocks)
    offset = first.block * block_size
    parts = [(0, missing * block_size), ((missing + 1) * block_size, len(data))]
    # At most the bytes before the checksum are written, so that the block cannot be valid by
    # chance.
    half = rng.choice(_BEFORE_CHECKSUM) if rng.random() < style.torn else 0
    writes = [
        write
        for start, end in (parts[0], parts[1])
        if end > start
        for write in flush_writes(rng, style, members, offset + start, data[start:end], block_size)
    ]
    torn = data[missing * block_size : missing * block_size + half]
    if half:
        writes += [Write(one, offset + missing * block_size, torn) for one in members]
    rng.shuffle(writes)
    yield from writes[: rng.randint(1, len(writes))] if writes else ()


_CHUNK_BLOCKS: Final = BLOCK_HEADER_SIZE + 28
_TIME: Final = BLOCK_HEADER_SIZE + 64
_CHECKSUM: Final = 14


def timed(redo: RedoFormat, items: Iterable[Redo], now: Callable[[], int]) -> Iterator[Redo]:
    """Yield the redo; each item gets the time at which it is requested.

    Args:
        now: returns the current time as a redo time.
    """
    began = dict[int, int]()
    for item in items:
        time = now()
        match item:
            case LogStart(header):
                began[item.thread] = time
                yield LogStart(replace(header, first_time=time, closed_time=time))
            case FlushedLwns():
                yield replace(item, data=memoryview(_stamped(redo, item.data, time)))
            case EndedLog(header):
                first = began.get(item.thread, time)
                times = replace(header, first_time=first, closed_time=first, next_time=time)
                yield replace(item, header=times)


def _stamped(redo: RedoFormat, data: memoryview, time: int) -> bytearray:
    """Write the time into every chunk's header, and update the block's checksum."""
    blocks, new, at = bytearray(data), redo.pack("I", time), 0
    while at < len(blocks):
        place = at + _TIME
        change = bytes(a ^ b for a, b in zip(blocks[place : place + 4], new, strict=True))
        blocks[place : place + 4] = new
        blocks[at + _CHECKSUM] ^= change[0] ^ change[2]
        blocks[at + _CHECKSUM + 1] ^= change[1] ^ change[3]
        (count,) = redo.unpack("I", bytes(blocks[at + _CHUNK_BLOCKS : at + _CHUNK_BLOCKS + 4]))
        at += count * redo.block_size
    return blocks
