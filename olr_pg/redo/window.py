"""Reads a log window by window. The module calls the kernels of `blocks` and raises errors with the
position of a fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from olr_pg.errors import Code, OlrPgError
from olr_pg.redo.blocks import (
    BlockStatus,
    LwnColumns,
    RecordColumns,
    find_group,
    scan_records,
    unpack_blocks,
    window_end,
)
from olr_pg.redo.column_tables import head
from olr_pg.redo.format.file_fields import BLOCK_HEADER, FIRST_DATA_BLOCK, VLD_VALID

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.redo.header import LogHeader

WINDOW_BYTES: Final = 16 << 20
"""Bytes of a log that are decoded in one step, approximately. The size limits the memory of a task.
With 8 MB, decoding needs a tenth more processor time; with 32 MB, it needs more memory and as much
time.
"""

_REASONS: Final = {
    BlockStatus.EMPTY: (Code.LOG_TRUNCATED, "the block was never written"),
    BlockStatus.TYPE: (Code.BLOCK_CORRUPT, "the block header's type is wrong"),
    BlockStatus.NUMBER: (Code.BLOCK_CORRUPT, "the block header contains another block's number"),
    BlockStatus.SEQUENCE: (Code.BLOCK_CORRUPT, "the block header contains another log's sequence"),
    BlockStatus.CHECKSUM: (Code.BLOCK_CORRUPT, "the checksum is wrong"),
    BlockStatus.NO_LWN: (Code.RECORD_MALFORMED, "no LWN group begins where the one before it ends"),
    BlockStatus.LWN_SIZE: (Code.RECORD_MALFORMED, "the LWN's size leads past the end of the log"),
    BlockStatus.LWN_CHUNK: (Code.RECORD_MALFORMED, "a chunk of the LWN group is missing"),
    BlockStatus.RECORD_LENGTH: (Code.RECORD_MALFORMED, "the record's length does not fit its LWN"),
    BlockStatus.RECORD_LWN: (Code.RECORD_MALFORMED, "an LWN header is at a wrong place"),
}


class Log(NamedTuple):
    """The bytes of a log with its parsed header.

    Attributes:
        path: name of the file in error messages.
        raw: shape (bytes); the bytes of the whole file.
    """

    path: str
    header: LogHeader
    raw: npt.NDArray[np.uint8]


class Window(NamedTuple):
    """A section of a log that consists of whole LWN groups, with unpacked blocks.

    Attributes:
        first, end: the section consists of the blocks [first, end).
        payload: shape ((end − first) · (block size − 16)), record bytes without block headers.
        order: the rows of `records` that are valid, in processing order.
    """

    log: Log
    first: int
    end: int
    payload: npt.NDArray[np.uint8]
    lwns: LwnColumns
    records: RecordColumns
    order: npt.NDArray[np.int64]

    def address(self, position: int) -> tuple[int, int]:
        """Return (block, offset) of a payload position."""
        return address_of(self.log, self.first, position)

    def error(self, code: int, detail: str, position: int, **where: str | int | None) -> OlrPgError:
        """Return an error of the catalogue that contains the block and offset of a payload
        position.
        """
        return place_error(self.log, self.first, code, detail, position, **where)


def address_of(log: Log, first: int, position: int) -> tuple[int, int]:
    """Return (block, offset) of a position in the payload that begins with block `first`."""
    width = log.header.block_size - BLOCK_HEADER
    return first + position // width, BLOCK_HEADER + position % width


def place_error(
    log: Log, first: int, code: int, detail: str, position: int, **where: str | int | None
) -> OlrPgError:
    """Return an error of the catalogue that contains the block and offset of a position in the
    payload, which begins with block `first`.
    """
    block, offset = address_of(log, first, position)
    return _error(log, code, detail, block, offset, **where)


def blocks_in_use(log: Log) -> int:
    """Return the number of used blocks in the file, including blocks 0 and 1.

    Raises:
        OlrPgError: 2004 if the file has fewer blocks, 2008 if it was copied while Oracle was still
            writing it.
    """
    header = log.header
    if header.nab is None or header.next_scn is None:
        raise OlrPgError(
            Code.LOG_COPIED_TOO_EARLY,
            "the header of the log does not contain the log's end",
            file=log.path,
            thread=header.thread,
            sequence=header.sequence,
        )
    whole = log.raw.size // header.block_size
    if whole < header.nab:
        raise OlrPgError(
            Code.LOG_TRUNCATED,
            f"the file has {whole} of {header.nab} blocks",
            file=log.path,
            thread=header.thread,
            sequence=header.sequence,
        )
    return header.nab


class GroupRun(NamedTuple):
    """A section of a log that consists of whole LWN groups, whose blocks are not unpacked yet.

    Attributes:
        raw, words: the used blocks as bytes and as 64-bit words.
        first, end: the section consists of the blocks [first, end).
        chunks: number of its LWN chunks.
        largest: number of blocks of its largest group.
    """

    log: Log
    raw: npt.NDArray[np.uint8]
    words: npt.NDArray[np.uint64]
    first: int
    end: int
    chunks: int
    largest: int


def group_runs(
    log: Log,
    first_block: int = FIRST_DATA_BLOCK,
    end_block: int | None = None,
    *,
    first_group: int = 0,
    verify: bool = True,
    window_bytes: int = WINDOW_BYTES,
) -> Iterator[GroupRun]:
    """Yield the LWN groups that begin in blocks [first_block, end_block), one window at a time.

    Args:
        first_block, end_block: the split; any division of a log into splits gives the same groups.
        first_group: the block at which the first group of the split begins. 0 to search for it with
            the help of the block headers, which contain the offset of the first record.
        verify: whether to check block checksums.
        window_bytes: approximate bytes of a window. A larger LWN group is not divided.

    Raises:
        OlrPgError: 2004, 2005, 2006 or 2008; it contains the position.
    """
    header = log.header
    nab = blocks_in_use(log)
    size, big = header.block_size, header.big_endian
    raw = log.raw[: nab * size]
    words = raw.view(np.uint64)
    split_end = nab if end_block is None else min(end_block, nab)
    block = max(first_block, first_group, FIRST_DATA_BLOCK)
    if not first_group and block > FIRST_DATA_BLOCK and block < split_end:
        status, block = find_group(raw, words, size, block, nab, header.sequence, big, verify)
        raise_block(log, status, block)
    while block < split_end:
        most = max(1, window_bytes // size)
        status, end, chunks, largest = window_end(raw, size, block, split_end, nab, most, big)
        if status:
            # The LWN may be wrong because a block is corrupt. In this case, report the block.
            _check(log, raw, words, block, min(end + 1, nab), verify=verify)
            raise_block(log, status, end)
        yield GroupRun(log, raw, words, block, end, chunks, largest)
        block = end


def read_windows(
    log: Log,
    first_block: int = FIRST_DATA_BLOCK,
    end_block: int | None = None,
    *,
    verify: bool = True,
    window_bytes: int = WINDOW_BYTES,
) -> Iterator[Window]:
    """Yield the LWN groups that begin in a split as unpacked windows; the arguments are the same as
    for `group_runs`.

    Raises:
        OlrPgError: 2004, 2005, 2006 or 2008; it contains the position.
    """
    for run in group_runs(log, first_block, end_block, verify=verify, window_bytes=window_bytes):
        yield _window(run, verify=verify)


class ReadWindows(Protocol):
    """Yields the windows of a whole log as `read_windows` does."""

    def __call__(self, log: Log, *, window_bytes: int = ...) -> Iterator[Window]:
        """Yield the windows of a log."""


def _window(run: GroupRun, *, verify: bool) -> Window:
    log, first, end = run.log, run.first, run.end
    size, big = log.header.block_size, log.header.big_endian
    width = size - BLOCK_HEADER
    payload = np.empty((end - first) * width, np.uint8)
    status, block = unpack_blocks(
        run.raw, run.words, size, first, end, log.header.sequence, big, verify, first, payload
    )
    raise_block(log, status, block)
    lwns = LwnColumns(*(np.empty(run.chunks, np.int64) for _ in LwnColumns._fields))
    capacity = 64 + payload.size // 128
    while True:
        records = _empty_records(capacity)
        status, position, _, count = scan_records(payload, size, first, end, big, lwns, records)
        if status != BlockStatus.CAPACITY:
            break
        capacity *= 3
    raise_block(log, status, first + position // width, BLOCK_HEADER + position % width)
    records = head(records, count)
    return Window(log, first, end, payload, lwns, records, processing_order(lwns, records))


def _empty_records(capacity: int) -> RecordColumns:
    def column() -> npt.NDArray[np.int64]:
        return np.empty(capacity, np.int64)

    return RecordColumns(
        column(), column(), column(), column(), np.empty(capacity, np.uint8), column()
    )


def processing_order(lwns: LwnColumns, records: RecordColumns) -> npt.NDArray[np.int64]:
    """Return the rows of valid records sorted by LWN group, SCN, SUBSCN and position (redo-format
    §2.5).

    If a group has one strand, its records are in this order already. If a group has several
    strands, its chunks must be merged.
    """
    rows = np.flatnonzero(records.vld & VLD_VALID)
    group, scn, subscn = lwns.group[records.lwn[rows]], records.scn[rows], records.subscn[rows]
    step = np.diff(scn)
    ordered = (np.diff(group) > 0) | (step > 0) | ((step == 0) & (np.diff(subscn) >= 0))
    if ordered.all():
        return rows
    return rows[np.lexsort((records.position[rows], subscn, scn, group))]


def _check(
    log: Log,
    raw: npt.NDArray[np.uint8],
    words: npt.NDArray[np.uint64],
    first: int,
    end: int,
    *,
    verify: bool,
) -> None:
    header = log.header
    scratch = np.empty((end - first) * (header.block_size - BLOCK_HEADER), np.uint8)
    status, block = unpack_blocks(
        raw,
        words,
        header.block_size,
        first,
        end,
        header.sequence,
        header.big_endian,
        verify,
        first,
        scratch,
    )
    raise_block(log, status, block)


def is_sound(log: Log, block: int) -> bool:
    """Return whether a used block is undamaged and belongs to the log."""
    header = log.header
    size = header.block_size
    raw = log.raw[: blocks_in_use(log) * size]
    payload = np.empty(size - BLOCK_HEADER, np.uint8)
    status, _ = unpack_blocks(
        raw, raw.view(np.uint64), size, block, block + 1, header.sequence, header.big_endian, True,
        block, payload,
    )  # fmt: skip
    return bool(status == BlockStatus.OK)


def raise_block(log: Log, status: int, block: int, offset: int | None = None) -> None:
    """Raise the error for the `BlockStatus` of a block, unless the status is OK.

    Raises:
        OlrPgError: 2004, 2005 or 2006; the error contains the position.
    """
    if status != BlockStatus.OK:
        code, detail = _REASONS[BlockStatus(status)]
        raise _error(log, code, detail, block, offset)


def _error(
    log: Log,
    code: int,
    detail: str,
    block: int,
    offset: int | None,
    **where: Any,
) -> OlrPgError:
    return OlrPgError(
        code,
        detail,
        file=log.path,
        thread=log.header.thread,
        sequence=log.header.sequence,
        block=block,
        offset=offset,
        **where,
    )
