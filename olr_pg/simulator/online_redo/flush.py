"""The writes of one flush: its blocks, cut into pieces, to each member, in a random order.

A piece may begin and end within a block. Until the rest of this block is written, the block is
torn, and its checksum is wrong (redo-format §1.6).

It also sets the times in redo that was generated ahead: of the begin and end of logs, and of
flushes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from olr_pg.simulator.fields.block_layout import BLOCK_HEADER_SIZE
from olr_pg.simulator.online_redo.online_files import Write
from olr_pg.simulator.online_redo.written_redo import EndedLog, FlushedLwns, LogStart, find_lwns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from random import Random

    from olr_pg.simulator.fields.redo_format import RedoFormat
    from olr_pg.simulator.online_redo.written_redo import Lwn, Redo

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
