"""Sets the times in redo that was generated ahead: of the begin and end of logs, and of flushes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from olr_pg.simulator.fields.block_layout import BLOCK_HEADER_SIZE
from olr_pg.simulator.online_redo.written_redo import EndedLog, FlushedLwns, LogStart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from olr_pg.simulator.fields.redo_format import RedoFormat
    from olr_pg.simulator.online_redo.written_redo import Redo

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
