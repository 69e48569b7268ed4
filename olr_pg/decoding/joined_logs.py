"""Logs as arrays: several small logs that are decoded together, and the blocks of a stored log.

If a database switches logs every few seconds, most of the time is spent on work that each log needs
whatever its size: kernel calls, merging and durable writes. So consecutive small logs of a redo
thread are decoded as one split. The blocks of these logs are read one after the other and
renumbered, so that kernels see a single log. After decoding, the positions of events are converted
back to positions in the original logs (`Places`).

Each of the logs gets all the checks that a log gets if it is decoded alone. Before a block is
renumbered, it must have the correct number and sequence of its own log. The block's checksum is
adjusted to the new number and sequence without being calculated again, so a wrong checksum remains
wrong. If a check fails, the whole split fails, and `ordering.split_merging` decodes its logs one by
one. Decoding the single logs finds the error again, with its position, after everything before it
was decoded.

`open_stored`: of a log that is not mapped, only the blocks that are needed to decode a part are
read, in ranges of bytes (`capture.readers`). Kernels need a log as one array. So the array has the
size of the log, but only the blocks that were read use memory. First the blocks of the part are
read. The last LWN group of the part can continue after it, and the block at which the next group
begins is needed too. The length of a group is in its headers, so further blocks are read when the
kernels follow the groups and reach a block that was not read yet.

A log that is read cannot end the process, as a mapped log does if its disk fails, or if somebody
truncates it.
"""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.capture.readers import (
    HEADER_BYTES,
    LogReader,
    is_by_ranges,
    parse_start,
    range_reader,
    read_header,
)
from olr_pg.errors import Code, OlrPgError, system_reason
from olr_pg.files.positioned import fill_from
from olr_pg.files.system_errors import advice
from olr_pg.redo.format.file_fields import BLOCK, FIRST_DATA_BLOCK, LOG_HEADER
from olr_pg.redo.window import WINDOW_BYTES, Log, Window, blocks_in_use, group_runs, read_windows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from olr_pg.capture.archived_log import ArchivedLog, FoundLog
    from olr_pg.redo.batch import ChangeBatch
    from olr_pg.redo.header import LogHeader
    from olr_pg.redo.uninterpreted import Passed


JOINED_MAX: Final = 16 << 20
"""Maximum bytes of logs that are decoded together. These bytes are limited because they are read
into memory.
"""

_SMALL: Final = 8
"""A log is small if a split can contain this many of them."""

_HALF: Final = 2


class JoinedLog(NamedTuple):
    """A log that is decoded together with others.

    Attributes:
        log: the log that was found at `path`.
        blocks: number of used blocks, including blocks 0 and 1.
        next_scn: every SCN in the log is lower than `next_scn`.
    """

    path: str
    log: FoundLog
    blocks: int
    next_scn: int

    @property
    def sequence(self) -> int:
        """The log sequence number."""
        return self.log.position.sequence

    @property
    def data_blocks(self) -> int:
        """Number of used blocks after blocks 0 and 1."""
        return self.blocks - FIRST_DATA_BLOCK


class Places(NamedTuple):
    """The positions of the original blocks of joined logs.

    Attributes:
        first: shape (logs); the number of each log's first data block in the joined log.
        sequence: shape (logs); the log sequence number of each log.
    """

    first: npt.NDArray[np.int64]
    sequence: npt.NDArray[np.int64]

    @classmethod
    def of(cls, logs: Sequence[JoinedLog]) -> Places:
        """Return the positions for the given logs."""
        counts = np.array([log.data_blocks for log in logs], np.int64)
        first = FIRST_DATA_BLOCK + np.cumsum(counts) - counts
        return cls(first, np.array([log.sequence for log in logs], np.int64))

    def give_back(self, batch: ChangeBatch) -> None:
        """Replace blocks and sequences of events by those in the original logs."""
        events = batch.events
        at = np.searchsorted(self.first, events.block, "right") - 1
        events.sequence[:] = self.sequence[at]
        events.block[:] = events.block - self.first[at] + FIRST_DATA_BLOCK

    def given_back(self, passed: Passed) -> Passed:
        """Return the uninterpreted vectors with positions in the original logs."""
        noted = []
        for one in passed.noted:
            thread, _, block, offset = one.position
            at = int(np.searchsorted(self.first, block, "right")) - 1
            place = int(self.sequence[at]), int(block - self.first[at]) + FIRST_DATA_BLOCK
            noted.append(one._replace(position=(thread, *place, offset)))
        return passed._replace(noted=tuple(noted))


def joined_runs(logs: Iterable[ArchivedLog], split_bytes: int) -> list[list[ArchivedLog]]:
    """Group small consecutive logs of the same redo thread. A large log is a group of its own.

    Args:
        logs: the logs in the order in which they are decoded.
        split_bytes: approximate size of a split.
    """
    most = min(split_bytes, JOINED_MAX)
    runs: list[list[ArchivedLog]] = []
    last: dict[int, list[ArchivedLog]] = {}
    size: dict[int, int] = {}
    for log in logs:
        thread = log.header.thread
        run = last.get(thread)
        if run and size[thread] + log.used_bytes <= most and _follows(run[-1], log, most):
            run.append(log)
            size[thread] += log.used_bytes
            continue
        last[thread], size[thread] = [log], log.used_bytes
        runs.append(last[thread])
    return runs


def _follows(before: ArchivedLog, log: ArchivedLog, most: int) -> bool:
    """Return whether `log` follows `before` in the same redo thread, and both are small compared
    with a split.
    """
    return (
        log.header.sequence == before.header.sequence + 1
        and all(one.used_bytes * _SMALL <= most and _is_plain(one) for one in (before, log))
        and _kind(before.header) == _kind(log.header)
    )


def _is_plain(log: ArchivedLog) -> bool:
    """Return whether a log is a complete file with redo, and none of its redo is orphaned by a
    RESETLOGS.
    """
    is_whole = not log.grows and log.end_scn is None and log.blocks > FIRST_DATA_BLOCK
    return is_whole and not is_by_ranges(log.path)


def _kind(header: LogHeader) -> tuple[object, ...]:
    return (
        header.block_size, header.big_endian, header.compat_version, header.resetlogs_id,
        header.dbid,
    )  # fmt: skip


def open_joined(logs: Sequence[JoinedLog]) -> Log:
    """Read several logs as one log. The joined log has the header of the first log, except for the
    end.

    Raises:
        OlrPgError: 2002 to 2008; the position in the error can be wrong.
    """
    first = logs[0]
    header, _ = read_header(first.path)
    blocks = FIRST_DATA_BLOCK + sum(log.data_blocks for log in logs)
    whole = replace(header, nab=blocks, next_scn=logs[-1].next_scn, file_blocks=blocks - 1)
    raw = np.zeros((blocks, header.block_size), np.uint8)
    heads = np.empty((len(logs), header.block_size), np.uint8)
    block_0 = np.empty(header.block_size, np.uint8)
    at = FIRST_DATA_BLOCK
    for number, log in enumerate(logs):
        rows = raw[at : at + log.data_blocks]
        _read(log.path, [block_0.data, heads[number].data, rows.reshape(-1).data])
        at += log.data_blocks
    _check_heads(heads, logs, header)
    _number_through(raw[FIRST_DATA_BLOCK:], logs, whole)
    raw.flags.writeable = False
    return Log(first.path, whole, raw.reshape(-1))


def _read(path: str, rooms: list[memoryview]) -> None:
    """Fill the buffers, one after the other, from the beginning of a file."""
    wanted = sum(room.nbytes for room in rooms)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            found = fill_from(handle, rooms, 0)
        finally:
            os.close(handle)
    except OSError as error:
        code = Code.LOG_UNREADABLE
        raise OlrPgError(code, system_reason(error), action=advice(error), file=path) from error
    if found < wanted:
        raise OlrPgError(
            Code.LOG_TRUNCATED, f"only {found} of {wanted} bytes can be read", file=path
        )


def _check_heads(
    heads: npt.NDArray[np.uint8], logs: Sequence[JoinedLog], header: LogHeader
) -> None:
    """Raise an error if a file has changed since its log was found."""
    order = ">" if header.big_endian else "<"
    for name, size, wanted in (
        ("nab", 4, [one.blocks for one in logs]),
        ("resetlogs id", 4, [one.log.position.resetlogs_id for one in logs]),
        ("dbid", 4, [one.log.position.dbid for one in logs]),
        ("thread", 2, [one.log.position.thread for one in logs]),
        ("first scn", 4, [one.log.first_scn & 0xFFFFFFFF for one in logs]),  # its lower half
    ):
        at = LOG_HEADER.at(name)
        found = heads[:, at : at + size].copy().view(f"{order}u{size}")[:, 0]
        _refuse_unless(found == np.array(wanted, np.uint32), logs, f"its header's {name}")


def _number_through(
    blocks: npt.NDArray[np.uint8], logs: Sequence[JoinedLog], header: LogHeader
) -> None:
    """Set the block numbers and the sequence of the joined log."""
    order = ">" if header.big_endian else "<"
    counts = np.array([log.data_blocks for log in logs], np.int64)
    owner = np.repeat(np.arange(len(logs)), counts)
    starts = np.cumsum(counts) - counts
    within = np.arange(len(blocks)) - starts[owner] + FIRST_DATA_BLOCK
    sequences = np.array([log.sequence for log in logs], np.int64)[owner]
    words, halves = blocks.view(f"{order}u4"), blocks.view(f"{order}u2")
    through = np.arange(FIRST_DATA_BLOCK, FIRST_DATA_BLOCK + len(blocks))
    checksum = halves[:, BLOCK.at("checksum") // _HALF]
    for name, wanted, new in (
        ("number", within, through),
        ("sequence", sequences, np.full(len(blocks), logs[0].sequence)),
    ):
        column = words[:, BLOCK.at(name) // 4]
        right = np.bitwise_or.reduceat(column != wanted, starts) == 0
        _refuse_unless(right, logs, f"the {name} of its blocks")
        changed = column ^ new.astype(np.uint32)
        checksum ^= (changed ^ changed >> 16).astype(np.uint16)
        column[:] = new


def _refuse_unless(right: npt.NDArray[np.bool_], logs: Sequence[JoinedLog], what: str) -> None:
    if not right.all():
        wrong = logs[int(np.argmin(right))]
        raise OlrPgError(Code.BLOCK_CORRUPT, f"{what} has changed", file=wrong.path)


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
