"""Reads blocks into records: checks blocks, removes their headers, and finds LWN groups and record
headers.

A *window* consists of consecutive, complete LWN groups of one log. The payloads of its blocks
(block size − 16 bytes each) are copied one after the other, so that the bytes of every record are
contiguous. Payload position p is block ``first + p // (block size − 16)``, offset ``16 + p % (block
size − 16)``.

A *split* is a range of blocks. A split owns the LWN groups that begin in its blocks, so any
division of a log into splits gives the same groups. Facts: redo-format §1.3, §2; checked on real
logs of 19c and 23ai.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.kernels.compile import inlined, kernel
from olr_pg.redo.column_tables import ColumnTable, row_type
from olr_pg.redo.format.file_fields import (
    BLOCK_FIRST,
    BLOCK_FIRST_BITS,
    BLOCK_HEADER,
    BLOCK_LARGE,
    BLOCK_NUMBER,
    BLOCK_SEQUENCE,
    BLOCK_TYPE,
    BLOCK_TYPE_LARGE,
    LWN_BLOCKS,
    LWN_CHUNK,
    LWN_NST,
    LWN_RECORD_HEADER,
    LWN_SCN,
    LWN_TIME,
    RECORD_HEADER,
    RECORD_SCN_BASE,
    RECORD_SCN_WRAP,
    RECORD_SUBSCN,
    RECORD_VLD,
    VLD_LWN,
)
from olr_pg.redo.integers import scn8, u16, u32


class BlockStatus(IntEnum):
    """The results of a kernel that reads blocks. Except for OK, the kernel also returns a
    position.
    """

    OK = 0
    EMPTY = 1
    TYPE = 2
    NUMBER = 3
    SEQUENCE = 4
    CHECKSUM = 5
    NO_LWN = 6
    LWN_SIZE = 7
    LWN_CHUNK = 8
    RECORD_LENGTH = 9
    RECORD_LWN = 10
    CAPACITY = 11


_EMPTY = int(BlockStatus.EMPTY)
_TYPE = int(BlockStatus.TYPE)
_NUMBER = int(BlockStatus.NUMBER)
_SEQUENCE = int(BlockStatus.SEQUENCE)
_CHECKSUM = int(BlockStatus.CHECKSUM)
_NO_LWN = int(BlockStatus.NO_LWN)
_LWN_SIZE = int(BlockStatus.LWN_SIZE)
_LWN_CHUNK = int(BlockStatus.LWN_CHUNK)
_RECORD_LENGTH = int(BlockStatus.RECORD_LENGTH)
_RECORD_LWN = int(BlockStatus.RECORD_LWN)
_CAPACITY = int(BlockStatus.CAPACITY)


class LwnColumns(NamedTuple):
    """The LWN chunks of a window, one per row.

    Attributes:
        block: first block of the chunk.
        group: number of the LWN group in the window.
        scn: the SCN in the LWN header.
        time: redo time of every record of the chunk.
    """

    block: npt.NDArray[np.int64]
    group: npt.NDArray[np.int64]
    scn: npt.NDArray[np.int64]
    time: npt.NDArray[np.int64]


class RecordColumns(NamedTuple):
    """The redo records of a window, including void records, one per row.

    Attributes:
        position: position of the record header in the window's payload.
        length: bytes of the record, including its header.
        scn, subscn: SCN and SUBSCN from the record header.
        vld: flags (redo-format §2.2).
        lwn: row of its chunk in `LwnColumns`.
    """

    position: npt.NDArray[np.int64]
    length: npt.NDArray[np.int64]
    scn: npt.NDArray[np.int64]
    subscn: npt.NDArray[np.int64]
    vld: npt.NDArray[np.uint8]
    lwn: npt.NDArray[np.int64]


LWN: Final = row_type([(name, "i8") for name in LwnColumns._fields])
"""`LwnColumns` as one table."""

RECORD: Final = row_type(
    [(name, "u1" if name == "vld" else "i8") for name in RecordColumns._fields]
)
"""`RecordColumns` as one table."""


@inlined
def _check_block(
    raw: Any, words: Any, block_size: int, block: int, sequence: int, big: bool, verify: bool
) -> int:
    start = block * block_size
    kind = BLOCK_TYPE_LARGE if block_size == BLOCK_LARGE else BLOCK_TYPE
    if raw[start] == 0 and raw[start + 1] == 0:
        return _EMPTY
    if raw[start] != 1 or raw[start + 1] != kind:
        return _TYPE
    if u32(raw, start + BLOCK_NUMBER, big) != block:
        return _NUMBER
    if u32(raw, start + BLOCK_SEQUENCE, big) != sequence:
        return _SEQUENCE
    if verify:
        total = np.uint64(0)
        for i in range(start >> 3, (start + block_size) >> 3):
            total ^= words[i]
        total ^= total >> np.uint64(32)
        total ^= total >> np.uint64(16)
        if total & np.uint64(0xFFFF):
            return _CHECKSUM
    return 0


@kernel
def find_group(
    raw: Any,
    words: Any,
    block_size: int,
    first: int,
    nab: int,
    sequence: int,
    big: bool,
    verify: bool,
) -> tuple[int, int]:
    """Return (status, block). The block is the first one, from `first` on, in which an LWN group
    begins; it is `nab` if there is none.

    Args:
        raw: the log, shape (bytes).
        words: the bytes of the log as 64-bit words.
        block_size: bytes of a block.
        first: the block from which on to search.
        nab: number of used blocks.
        sequence: log sequence number that every block must have.
        big: True if the file is big-endian.
        verify: whether to check block checksums.
    """
    for block in range(first, nab):
        status = _check_block(raw, words, block_size, block, sequence, big, verify)
        if status != 0:
            return status, block
        start = block * block_size
        if u16(raw, start + BLOCK_FIRST, big) & BLOCK_FIRST_BITS != BLOCK_HEADER:
            continue
        record = start + BLOCK_HEADER
        is_lwn = u32(raw, record, big) >= LWN_RECORD_HEADER and raw[record + RECORD_VLD] & VLD_LWN
        if is_lwn and u16(raw, record + LWN_CHUNK, big) == 0:
            return 0, block
    return 0, nab


@inlined
def group_end(raw: Any, block_size: int, first: int, nab: int, big: bool) -> tuple[int, int, int]:
    """Return (status, block, chunks) for the LWN group that begins at block `first`: the block
    after the group, and the number of its LWN chunks.
    """
    block = first
    number = 0
    expected = 1
    while number < expected:
        if block >= nab:
            return _LWN_CHUNK, block, number
        record = block * block_size + BLOCK_HEADER
        if u32(raw, record, big) < LWN_RECORD_HEADER or not raw[record + RECORD_VLD] & VLD_LWN:
            return _NO_LWN, block, number
        if u16(raw, record + LWN_CHUNK, big) != number:
            return _LWN_CHUNK, block, number
        if number == 0:
            expected = max(1, u16(raw, record + LWN_NST, big))
        size = u32(raw, record + LWN_BLOCKS, big)
        if size == 0 or block + size > nab:
            return _LWN_SIZE, block, number
        block += size
        number += 1
    return 0, block, number


@kernel
def window_end(
    raw: Any, block_size: int, first: int, split_end: int, nab: int, most: int, big: bool
) -> tuple[int, int, int, int]:
    """Return (status, block, chunks, largest) for a window that begins with the group at block
    `first`: the block after the window, the number of its LWN chunks, and the number of blocks of
    its largest group.

    The window consists of whole groups, at least one. The window ends when it has `most` blocks, or
    when the next group begins at or after `split_end`.
    """
    block = first
    chunks = 0
    largest = 0
    while block < nab and block < split_end and (block == first or block - first < most):
        status, end, count = group_end(raw, block_size, block, nab, big)
        chunks += count
        if status != 0:
            return status, end, chunks, largest
        largest = max(largest, end - block)
        block = end
    return 0, block, chunks, largest


@kernel
def unpack_blocks(
    raw: Any,
    words: Any,
    block_size: int,
    first: int,
    end: int,
    sequence: int,
    big: bool,
    verify: bool,
    origin: int,
    payload: Any,
) -> tuple[int, int]:
    """Check the blocks [first, end) and copy their payloads; return (status, block). If a check
    fails, the block is the faulty one.

    The buffer `payload` begins with the payload of block `origin`.
    """
    width = block_size - BLOCK_HEADER
    for block in range(first, end):
        status = _check_block(raw, words, block_size, block, sequence, big, verify)
        if status != 0:
            return status, block
        # With unsigned indices, Numba omits the check for negative indices, and the loop can be
        # vectorised.
        start = np.uint64(block * block_size + BLOCK_HEADER)
        to = np.uint64((block - origin) * width)
        for i in range(np.uint64(width)):
            payload[to + i] = raw[start + i]
    return 0, end


@inlined
def scan_group(
    payload: Any,
    position: int,
    total: int,
    width: int,
    first: int,
    big: bool,
    at: tuple[int, int, int],
    lwns: LwnColumns | ColumnTable,
    records: RecordColumns | ColumnTable,
) -> tuple[int, int, int, int]:
    """Find the records of the LWN group at `position`.

    Args:
        payload, width, first: the payload of a window, the payload bytes of a block, and the first
            block of the window.
        position, total: the group begins at `position`, the window ends at `total`.
        big: True if the log is big-endian.
        at: (first free row of `lwns`, first free row of `records`, number of the group).
        lwns, records: the tables to fill. If the status is CAPACITY, `records` is too short.

    Returns:
        (status, position, row of `lwns`, row of `records`). If there is a fault, the position and
        the rows are where the fault is; otherwise they are the next ones after the group.
    """
    chunk, count, group = at
    begins = True
    while position < total:
        if u16(payload, position + LWN_CHUNK, big) == 0 and not begins:
            break
        begins = False
        lwns.block[chunk] = first + position // width
        lwns.group[chunk] = group
        lwns.scn[chunk] = scn8(payload, position + LWN_SCN, big)
        lwns.time[chunk] = u32(payload, position + LWN_TIME, big)
        chunk_end = position + u32(payload, position + LWN_BLOCKS, big) * width
        block_end = position + width
        is_first = True
        while position < chunk_end:
            while position >= block_end:
                block_end += width
            length = 0
            if block_end - position >= RECORD_HEADER:
                length = (u32(payload, position, big) + 3) & ~3
            if length == 0:
                position = block_end
                continue
            vld = payload[position + RECORD_VLD]
            least = LWN_RECORD_HEADER if vld & VLD_LWN else RECORD_HEADER
            if length < least or position + length > chunk_end:
                return _RECORD_LENGTH, position, chunk, count
            if (vld & VLD_LWN != 0) != is_first:
                return _RECORD_LWN, position, chunk, count
            if count == records.position.size:
                return _CAPACITY, position, chunk, count
            records.position[count] = position
            records.length[count] = length
            records.scn[count] = u16(payload, position + RECORD_SCN_WRAP, big) << 32 | u32(
                payload, position + RECORD_SCN_BASE, big
            )
            records.subscn[count] = u16(payload, position + RECORD_SUBSCN, big)
            records.vld[count] = vld
            records.lwn[count] = chunk
            count += 1
            is_first = False
            position += length
        chunk += 1
        position = chunk_end
    return 0, position, chunk, count


@kernel
def scan_records(
    payload: Any,
    block_size: int,
    first: int,
    end: int,
    big: bool,
    lwns: LwnColumns,
    records: RecordColumns,
) -> tuple[int, int, int, int]:
    """Find the records of a window; return (status, payload position, number of LWN chunks, number
    of records).

    The function fills `lwns` and `records`. If the status is CAPACITY, `records` is too short.
    """
    width = block_size - BLOCK_HEADER
    total = (end - first) * width
    position = 0
    chunk = 0
    group = 0
    count = 0
    while position < total:
        status, position, chunk, count = scan_group(
            payload, position, total, width, first, big, (chunk, count, group), lwns, records
        )
        if status != 0:
            return status, position, chunk, count
        group += 1
    return 0, total, chunk, count
