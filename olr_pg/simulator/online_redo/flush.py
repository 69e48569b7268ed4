"""The writes of one flush: its blocks in pieces, to each member, in an order that a seed decides.

A piece may begin and end within a block: until the next one is written, the block is torn, and its
checksum is wrong (redo-format §1.6).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from olr_pg.simulator.online_redo.steps import Write
from olr_pg.simulator.online_redo.written_redo import find_lwns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from random import Random

    from olr_pg.simulator.fields.redo_format import RedoFormat
    from olr_pg.simulator.online_redo.written_redo import FlushedLwns, Lwn


_BEFORE_CHECKSUM: Final = (4, 8, 12)


@dataclass(frozen=True, slots=True)
class FlushStyle:
    """How untidily blocks are written.

    Attributes:
        pieces: into which a flush is cut, at most.
        torn: probability that a cut is within a block, and that the header's block is torn for a
            moment when it is written.
        reordered: probability that the pieces of a member come in any order.
    """

    pieces: int = 4
    torn: float = 0.4
    reordered: float = 0.5


@dataclass(slots=True)
class FlushInProgress:
    """A flush, and how much of it each member's file contains."""

    redo: RedoFormat
    part: FlushedLwns
    written: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    def note(self, write: Write) -> None:
        """Note a write that is in its file from now on.

        A torn block counts with its beginning: later parts may already be written.
        """
        size = self.redo.block_size
        end = -(-(write.offset + len(write.data)) // size)
        self.written.setdefault(write.member, []).append((-(-write.offset // size), end))

    def whole_end(self) -> int:
        """Return the block up to which some member may have every LWN whole."""
        reached = max([self.part.block, *map(self._reached, self.written)])
        lwns = find_lwns(self.redo, self.part.data, self.part.block)
        return max([self.part.block, *(lwn.end for lwn in lwns if lwn.end <= reached)])

    def _reached(self, member: str) -> int:
        """Return the block up to which a member may have everything."""
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
    """Yield the writes that bring `data`, whole blocks, into every member's file at `offset`."""
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
    """Yield the writes that put a block 1 in its place, in one member after the other."""
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
    """Yield the writes of a flush that a crash breaks off: a block of its first LWN stays out.

    Args:
        lost: the first LWN, and the blocks from there on.
    """
    first, data = lost
    missing = rng.randrange(first.blocks)
    offset = first.block * block_size
    parts = [(0, missing * block_size), ((missing + 1) * block_size, len(data))]
    # Before the checksum, so that the block cannot happen to be whole.
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
