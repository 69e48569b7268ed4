"""The compiled part of the fuzzing: mutated records and blocks through the redo kernels.

One mutation takes microseconds here, so that ten million are an affair of minutes. Run it with
``NUMBA_BOUNDSCHECK=1`` as well: an index out of bounds then is an IndexError.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from olr_pg.kernels.compile import inlined, kernel, part, uncompiled
from olr_pg.redo.batch import columns_of
from olr_pg.redo.blocks import LWN, RECORD
from olr_pg.redo.format.file_fields import BLOCK_HEADER, FIRST_DATA_BLOCK
from olr_pg.redo.log_extraction import Room, extract_groups, open_walk
from olr_pg.redo.vector_changes import walk_record
from olr_pg.redo.walk import Objects

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from olr_pg.redo.walk import Walk
    from olr_pg.redo.window import Log

NUMBERS = np.array([0, 1, 2, 3, 4, 7, 8, 16, 20, 24, 127, 128, 254, 255, 256, 0x7FFF, 0x8000,
                    0xFFFE, 0xFFFF], np.int64)  # fmt: skip
WORDS = np.array([0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF], np.int64)
extract = part(uncompiled(extract_groups))
"""Not the kernel, which would be optimized by itself, too."""

OUTSIDE = -1
"""The ending of a mutation that made a kernel point outside the bytes it was given."""


class Sound(NamedTuple):
    """Sound records one behind the other.

    Attributes:
        data: their bytes.
        first: shape (n + 1), where each begins.
    """

    data: npt.NDArray[np.uint8]
    first: npt.NDArray[np.int64]


@inlined
def draw(random: Any, below: int) -> int:
    """The next number of an xorshift generator, under `below`."""
    x = random[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    random[0] = x
    return int((x >> np.uint64(11)) % np.uint64(below))


@inlined
def mutate(data: Any, start: int, end: int, random: Any) -> None:
    """One to four random changes of the bytes [start, end)."""
    for _ in range(1 << draw(random, 3)):
        at = start + draw(random, end - start)
        kind = draw(random, 6)
        if kind == 0:
            data[at] ^= 1 << draw(random, 8)
        elif kind == 1:
            data[at] = NUMBERS[draw(random, NUMBERS.size)] & 0xFF
        elif kind == 2:
            data[at] = draw(random, 256)
        elif kind == 3 and at + 2 <= end:
            value = NUMBERS[draw(random, NUMBERS.size)]
            swap = draw(random, 2)
            data[at] = value >> 8 * swap & 0xFF
            data[at + 1] = value >> 8 * (1 - swap) & 0xFF
        elif kind == 4:
            source = start + draw(random, end - start)
            for k in range(min(1 + draw(random, 20), end - max(at, source))):
                data[at + k] = data[source + k]
        elif kind == 5 and at + 4 <= end:
            value = WORDS[draw(random, WORDS.size)]
            for k in range(4):
                data[at + k] = value >> 8 * k & 0xFF


@inlined
def stays_inside(walk: Walk) -> bool:
    """Whether everything that the walk has filled in lies where it may."""
    events, pieces, entries = walk.state[0], walk.state[1], walk.state[2]
    if events > walk.events.size or pieces > walk.pieces.size or entries > walk.entries.size:
        return False
    for event in range(events):
        if walk.events.piece_count[event] < 0 or walk.events.piece_count[event] > pieces:
            return False
    for piece in range(pieces):
        at, length = walk.pieces.changed_offset[piece], walk.pieces.changed_length[piece]
        if length < 0 or at < 0 or at + length > walk.payload.size:
            return False
    for entry in range(entries):
        at, length = walk.entries.offset[entry], walk.entries.length[entry]
        if length >= 0 and (at < 0 or at + length > walk.payload.size):
            return False
    return True


@inlined
def empty(walk: Walk) -> None:
    """Forget what the walk has found."""
    for k in range(walk.state.size):
        walk.state[k] = 0


class Group(NamedTuple):
    """A log of one LWN group whose blocks are mutated; empty where records are.

    Attributes:
        sound: the log.
        raw: as long, for the mutated log.
        log: `raw` once more, as bytes and as words that cannot be written, as those of a file: for
            others the extraction would be compiled a second time.
        sequence: that of the log.
        room: for the records of the group.
    """

    sound: npt.NDArray[np.uint8]
    raw: npt.NDArray[np.uint8]
    log: tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint64]]
    sequence: int
    room: Room


class Run(NamedTuple):
    """Blocks [block, end) of a log, and whether to check their checksums."""

    block: int
    end: int
    verify: bool


@part
def walk_mutated_record(walk: Walk, sound: Sound, random: Any) -> tuple[int, int]:
    """Walk a mutated record; return (stage, status).

    The walk's payload is as long as the longest record.
    """
    record = draw(random, sound.first.size - 1)
    start = sound.first[record]
    size = sound.first[record + 1] - start
    # At the very end, so that a step behind the record is a step out of bounds.
    position = walk.payload.size - size
    for k in range(size):
        walk.payload[position + k] = sound.data[start + k]
    skipped = 24 if draw(random, 50) > 0 and size > 24 else 4
    mutate(walk.payload, position + skipped, walk.payload.size, random)
    walk.records.position[0] = position
    walk.records.length[0] = size
    walk.records.vld[0] = walk.payload[position + 4] & ~4
    stage, status, _ = walk_record(walk, 0)
    return stage, status


@part
def extract_mutated_blocks(walk: Walk, group: Group, random: Any) -> tuple[int, int]:
    """Extract from a mutated log; return (stage, status)."""
    block_size = walk.width + BLOCK_HEADER
    blocks = group.raw.size // block_size
    for k in range(group.raw.size):
        group.raw[k] = group.sound[k]
    mutate(group.raw, 2 * block_size, group.raw.size, random)
    verify = draw(random, 20) == 0
    stage, status, _, _ = extract(
        walk, group.log[0], group.log[1], 2, blocks, group.sequence, verify, group.room
    )
    return stage, status


@kernel
def mutate_redo(
    walk: Walk, sound: Sound, group: Group, run: Run, count: int, random: Any, endings: Any
) -> tuple[int, int, int, int]:
    """Walk `count` mutated records of `sound`, or extract as many mutated logs of `group`.

    ``endings[stage, status]`` counts. Returns how many of them left the bytes they were given, and
    three zeros. If `count` is 0, extracts `run` of the log of `group` as it is, and returns what
    `extract_groups` does. It is one kernel, since to compile the walk into two takes seconds.
    """
    if count == 0:
        return extract(
            walk, group.log[0], group.log[1], run.block, run.end, group.sequence, run.verify,
            group.room,
        )  # fmt: skip
    outside = 0
    for _ in range(count):
        empty(walk)
        if group.raw.size:
            stage, status = extract_mutated_blocks(walk, group, random)
        else:
            stage, status = walk_mutated_record(walk, sound, random)
        endings[stage, status] += 1
        if (status == 0 or group.raw.size) and not stays_inside(walk):
            outside += 1
    return outside, 0, 0, 0


def extract_by_mutator(
    walk: Walk,
    raw: npt.NDArray[np.uint8],
    words: npt.NDArray[np.uint64],
    block: int,
    end: int,
    sequence: int,
    verify: bool,
    room: Room,
) -> tuple[int, int, int, int]:
    """Do what `extract_groups` does, with the kernel that mutates, which is compiled anyway."""
    nothing = np.empty(0, np.uint8)
    group, run = Group(nothing, nothing, (raw, words), sequence, room), Run(block, end, verify)
    endings = np.empty((0, 0), np.int64)
    return mutate_redo(walk, _no_records(), group, run, 0, _generator(0), endings)


def fuzz_records(
    log: Log, objects: Objects, records: Sequence[bytes], count: int, seed: int
) -> Counter[tuple[int, int]]:
    """How `count` mutations of the records end: (stage, status) of the walk, or `OUTSIDE`."""
    data = np.frombuffer(b"".join(records), np.uint8)
    first = np.cumsum([0, *(len(record) for record in records)], dtype=np.int64)
    longest = max(len(record) for record in records)
    lwns, one = columns_of(LWN, 1), columns_of(RECORD, 1)
    lwns[:] = 0
    one[:] = 0
    walk = open_walk(
        log,
        objects,
        np.zeros(longest, np.uint8),
        2,
        lwns,
        one,
        longest // 28 + 1,
        (longest, longest),
    )
    group = _group(np.empty(0, np.uint8), log.header.sequence, 0, walk)
    return _mutated(walk, Sound(data, first), group, count, seed)


def fuzz_blocks(log: Log, objects: Objects, count: int, seed: int) -> Counter[tuple[int, int]]:
    """How `count` mutations of the blocks of a one-group log end; as `fuzz_records`."""
    width = log.header.block_size - BLOCK_HEADER
    size = (log.raw.size // log.header.block_size - FIRST_DATA_BLOCK) * width
    most = size // 24 + 1
    walk = open_walk(
        log,
        objects,
        np.zeros(size, np.uint8),
        FIRST_DATA_BLOCK,
        columns_of(LWN, size // width),
        columns_of(RECORD, most),
        size // 28 + 1,
        (size, size),
    )
    assert walk.width == width
    group = _group(log.raw, log.header.sequence, most, walk)
    return _mutated(walk, _no_records(), group, count, seed)


def _no_records() -> Sound:
    return Sound(np.frombuffer(b"", np.uint8), np.empty(0, np.int64))


def _group(sound: npt.NDArray[np.uint8], sequence: int, records: int, walk: Walk) -> Group:
    raw = sound.copy()
    seen = raw.view()
    seen.flags.writeable = False
    places = np.empty(records, np.int64), np.empty(records, np.int64)
    room = Room(*places, np.empty_like(walk.tally))
    return Group(raw.copy(), raw, (seen, seen.view(np.uint64)), sequence, room)


def _mutated(
    walk: Walk, sound: Sound, group: Group, count: int, seed: int
) -> Counter[tuple[int, int]]:
    endings = np.zeros((4, 64), np.int64)
    outside, _, _, _ = mutate_redo(
        walk, sound, group, Run(0, 0, verify=False), count, _generator(seed), endings
    )
    return _counted(endings, int(outside))


def _generator(seed: int) -> npt.NDArray[np.uint64]:
    return np.random.default_rng(seed).integers(1, 1 << 63, 1, np.uint64)


def _counted(endings: npt.NDArray[np.int64], outside: int) -> Counter[tuple[int, int]]:
    counted = Counter(
        {(int(stage), int(status)): int(endings[stage, status])
         for stage, status in np.argwhere(endings)}
    )  # fmt: skip
    if outside:
        counted[OUTSIDE, 0] = outside
    return counted
