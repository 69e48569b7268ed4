"""Finds the end of a log that is still being written: the place up to which its LWN groups are
complete.

An online log is a file of fixed size that is reused. After the end of the redo, the file contains
blocks of an earlier log, empty blocks, or blocks that are just being written. Such blocks are no
error; the redo has not been written yet. Facts: redo-format §1.5, §1.6, §2.1.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.redo.blocks import BlockStatus, LwnColumns, RecordColumns, scan_records
from olr_pg.redo.format.file_fields import (
    BLOCK_HEADER,
    BLOCK_NUMBER,
    BLOCK_SEQUENCE,
    BLOCK_TYPES,
    LWN,
    LWN_RECORD_HEADER,
    RECORD,
    RECORD_HEADER,
    VLD_LWN,
)
from olr_pg.redo.header import LogHeader, read_scn
from olr_pg.scalars import SCN_NONE


class Behind(Enum):
    """The kind of blocks that follow the last complete LWN group."""

    NOTHING_YET = "nothing yet"
    """Old or empty blocks, a block that is partly written, or the beginning of a group. More redo
    will follow.
    """

    ANOTHER_LOG = "another log"
    """A valid block with a higher sequence, because the file was reused for a later log."""

    NO_GROUP = "no group"
    """A valid block of this log in which no LWN group begins, or whose records are invalid."""


class LogEnd(NamedTuple):
    """The place up to which a log that is being written is complete.

    Attributes:
        block: the block after the last complete LWN group.
        scn: every record from this block on has this SCN or a higher one; 0 if no group is
            complete.
        sound: the first block that is not valid, or not of this log. `sound` is after `block` if an
            incomplete group has valid blocks.
        behind: the kind of blocks that follow the last complete group.
    """

    block: int
    scn: int
    sound: int
    behind: Behind


def find_end(data: npt.NDArray[np.uint8], first: int, header: LogHeader, scn: int) -> LogEnd:
    """Return the end of the complete LWN groups that begin at block `first`.

    `LogEnd.scn` is the highest SCN of the last group, plus one if the LWN header shows that the
    next LWN has a higher SCN. All 526 LWNs in real logs (23ai) have such a header.

    Args:
        data: shape (bytes), whole blocks from block `first` on.
        first: the block at which an LWN group begins.
        scn: the lowest possible SCN of records from `first` on. If a group has a lower LWN SCN, it
            belongs to another incarnation, whose log had the same sequence.
    """
    size = header.block_size
    sound, reused = sound_blocks(data, first, header)
    block, last = first, first
    behind = Behind.ANOTHER_LOG if reused else Behind.NOTHING_YET
    while block < sound:
        end = _group_end(data, first, block, sound, header, scn)
        if end is None:
            behind = Behind.NO_GROUP
        if end is None or end == block:
            break
        last, block = block, end
    if block == first:
        return LogEnd(first, 0, sound, behind)
    group = data[(last - first) * size : (block - first) * size]
    highest = _highest_scn(group, last, header)
    if highest is None:
        return LogEnd(first, 0, sound, Behind.NO_GROUP)
    begin = group[BLOCK_HEADER : BLOCK_HEADER + LWN_RECORD_HEADER].tobytes()
    following = read_scn(begin, LWN.at("next scn"), big_endian=header.big_endian)
    is_higher = highest < following != SCN_NONE
    return LogEnd(block, highest + is_higher, sound, behind)


def sound_blocks(data: npt.NDArray[np.uint8], first: int, header: LogHeader) -> tuple[int, bool]:
    """Return (block, reused): the first block that is invalid or not of this log, and whether it is
    a valid block of a later log.
    """
    size = header.block_size
    rows = data[: data.size // size * size].reshape(-1, size)
    order = ">u4" if header.big_endian else "<u4"
    number, sequence = (
        np.ascontiguousarray(rows[:, at : at + 4]).view(order)[:, 0]
        for at in (BLOCK_NUMBER, BLOCK_SEQUENCE)
    )
    words = np.bitwise_xor.reduce(rows.view(np.uint64), axis=1)
    words ^= words >> np.uint64(32)
    words ^= words >> np.uint64(16)
    whole = (
        (rows[:, 0] == 1)
        & (rows[:, 1] == BLOCK_TYPES[size])
        & (number == np.arange(first, first + len(rows)))
        & ((words & np.uint64(0xFFFF)) == 0)
    )
    ours = whole & (sequence == header.sequence)
    if ours.all():
        return first + len(rows), False
    stop = int(np.argmin(ours))
    return first + stop, bool(whole[stop] and sequence[stop] > header.sequence)


def _group_end(
    data: npt.NDArray[np.uint8], first: int, block: int, sound: int, header: LogHeader, scn: int
) -> int | None:
    """Return the block after the group that begins at `block`. Return `block` if the group is
    incomplete, and None if no group begins there.
    """
    size, big = header.block_size, header.big_endian
    at, number, expected = block, 0, 1
    while number < expected:
        if at >= sound:
            return block
        start = (at - first) * size + BLOCK_HEADER
        record = data[start : start + LWN_RECORD_HEADER].tobytes()
        is_chunk = (
            RECORD.number(record, "length", big=big) >= LWN_RECORD_HEADER
            and RECORD.number(record, "vld", big=big) & VLD_LWN
            and LWN.number(record, "chunk", big=big) == number
        )
        blocks = LWN.number(record, "blocks", big=big)
        if not is_chunk or blocks == 0:
            return None
        if read_scn(record, LWN.at("scn"), big_endian=big) < scn:
            return block
        if number == 0:
            expected = max(1, LWN.number(record, "nst", big=big))
        at += blocks
        number += 1
    return at if at <= sound else block


def _highest_scn(data: npt.NDArray[np.uint8], first: int, header: LogHeader) -> int | None:
    """Return the highest SCN of the records of a group; None if they do not fit its blocks."""
    size = header.block_size
    # Always a copy: for an array that cannot be written to, the kernel would be compiled again.
    payload = data.reshape(-1, size)[:, BLOCK_HEADER:].flatten()
    blocks, most = data.size // size, payload.size // RECORD_HEADER + 1
    chunks = LwnColumns(*(np.empty(blocks, np.int64) for _ in LwnColumns._fields))
    scn = np.empty(most, np.int64)
    records = RecordColumns(
        np.empty(most, np.int64), np.empty(most, np.int64), scn, np.empty(most, np.int64),
        np.empty(most, np.uint8), np.empty(most, np.int64),
    )  # fmt: skip
    status, _, _, count = scan_records(
        payload, size, first, first + blocks, header.big_endian, chunks, records
    )
    return int(scn[:count].max()) if status == BlockStatus.OK and count else None
