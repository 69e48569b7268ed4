"""Small logs that are decoded together, as one.

A site may switch its logs every few seconds. What decoding costs by the log, whatever is in it (its
kernels, the merging, durable writes), then is most of the work. So consecutive small logs of a redo
thread make one split: their blocks are read behind each other, and numbered through, so that the
kernels find one log. What they find is then given back its place in its own log (`Places`).

Nothing is checked less: each block must have the number and the sequence that it has in its log,
before it gets those of the whole; its checksum is changed by what that changes, so that a wrong one
stays wrong. If anything is wrong, the whole split fails, and `ordering.split_merging` has its logs
decoded one by one: that finds the error again, at its place, behind everything before it.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.capture.readers import is_by_ranges, read_header
from olr_pg.errors import Code, OlrPgError, system_reason
from olr_pg.redo.format.file_fields import BLOCK, FIRST_DATA_BLOCK, LOG_HEADER
from olr_pg.redo.window import Log

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from olr_pg.capture.archived_log import ArchivedLog
    from olr_pg.redo.batch import ChangeBatch
    from olr_pg.redo.header import LogHeader
    from olr_pg.redo.uninterpreted import Passed

JOINED_MAX: Final = 16 << 20
"""Bytes that are decoded together, at most: they are read into memory."""

_SMALL: Final = 8
"""A log is small if so many of them make a split."""

_HALF: Final = 2


class JoinedLog(NamedTuple):
    """A log that is decoded together with others.

    Attributes:
        blocks: in use, the two of the header included.
        next_scn: exclusive end of its SCNs.
    """

    path: str
    sequence: int
    blocks: int
    next_scn: int

    @property
    def data_blocks(self) -> int:
        """Blocks behind the header."""
        return self.blocks - FIRST_DATA_BLOCK


class Places(NamedTuple):
    """Where the blocks of joined logs belong.

    Attributes:
        first: shape (logs); the number that each log's first data block has in the whole.
        sequence: shape (logs).
    """

    first: npt.NDArray[np.int64]
    sequence: npt.NDArray[np.int64]

    @classmethod
    def of(cls, logs: Sequence[JoinedLog]) -> Places:
        """Return where the blocks of logs belong."""
        counts = np.array([log.data_blocks for log in logs], np.int64)
        first = FIRST_DATA_BLOCK + np.cumsum(counts) - counts
        return cls(first, np.array([log.sequence for log in logs], np.int64))

    def give_back(self, batch: ChangeBatch) -> None:
        """Give events their blocks and sequences, which so far are those of the whole."""
        events = batch.events
        at = np.searchsorted(self.first, events.block, "right") - 1
        events.sequence[:] = self.sequence[at]
        events.block[:] = events.block - self.first[at] + FIRST_DATA_BLOCK

    def given_back(self, passed: Passed) -> Passed:
        """Return what passed with its places."""
        noted = []
        for one in passed.noted:
            thread, _, block, offset = one.position
            at = int(np.searchsorted(self.first, block, "right")) - 1
            place = int(self.sequence[at]), int(block - self.first[at]) + FIRST_DATA_BLOCK
            noted.append(one._replace(position=(thread, *place, offset)))
        return passed._replace(noted=tuple(noted))


def joined_runs(logs: Iterable[ArchivedLog], split_bytes: int) -> list[list[ArchivedLog]]:
    """Put small consecutive logs of a redo thread together; a large one stays by itself.

    Args:
        logs: in the order to decode them.
        split_bytes: about how much a split has.
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
    """Tell whether both are small, for splits of so many bytes, and one is behind the other."""
    return (
        log.header.sequence == before.header.sequence + 1
        and all(one.used_bytes * _SMALL <= most and _is_plain(one) for one in (before, log))
        and _kind(before.header) == _kind(log.header)
    )


def _is_plain(log: ArchivedLog) -> bool:
    """Tell whether a log is a whole file that has redo, all of which counts."""
    is_whole = not log.grows and log.end_scn is None and log.blocks > FIRST_DATA_BLOCK
    return is_whole and not is_by_ranges(log.path)


def _kind(header: LogHeader) -> tuple[object, ...]:
    return (
        header.block_size, header.big_endian, header.compat_version, header.resetlogs_id,
        header.dbid,
    )  # fmt: skip


def open_joined(logs: Sequence[JoinedLog]) -> Log:
    """Read logs as one: its header is the first one's, but for its end.

    Raises:
        OlrPgError: 2002 to 2008; the place may be wrong.
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
    """Fill rooms with the beginning of a file."""
    wanted = sum(room.nbytes for room in rooms)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            found = os.preadv(handle, rooms, 0)
        finally:
            os.close(handle)
    except OSError as error:
        raise OlrPgError(Code.LOG_UNREADABLE, system_reason(error), file=path) from error
    if found < wanted:
        raise OlrPgError(Code.LOG_TRUNCATED, f"{found} bytes of {wanted}", file=path)


def _check_heads(
    heads: npt.NDArray[np.uint8], logs: Sequence[JoinedLog], header: LogHeader
) -> None:
    """Refuse files that are not those any more that were found."""
    order = ">" if header.big_endian else "<"
    for name, wanted in (
        ("nab", [log.blocks for log in logs]),
        ("resetlogs id", [header.resetlogs_id] * len(logs)),
    ):
        at = LOG_HEADER.at(name)
        found = heads[:, at : at + 4].copy().view(f"{order}u4")[:, 0]
        _refuse_unless(found == np.array(wanted, np.uint32), logs, f"its header's {name}")


def _number_through(
    blocks: npt.NDArray[np.uint8], logs: Sequence[JoinedLog], header: LogHeader
) -> None:
    """Give the blocks of logs the numbers and the sequence that they have in the whole."""
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
        raise OlrPgError(Code.BLOCK_CORRUPT, f"{what} is another one", file=wrong.path)
