"""Chunk elements to values: a row change waits until all of its chunks are there.

Parsed answers hold LOB values in pieces. `ChunkedRows` gives answers in which every chunked value
is one slice of the data: the chunk itself where there is one, else a copy behind the received
bytes. A row whose chunks go on in the next received bytes is held back; one that grows past the
limit is cut down to its row change, and its values are marked `TOO_LARGE`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from olr_pg.applier.received.parse import (
    CHUNKED,
    Answers,
    parse_answers,
    read_u16,
    read_u32,
    read_u64,
)
from olr_pg.datatypes.columns import read_only
from olr_pg.datatypes.outcomes import byte_at
from olr_pg.errors import Code, OlrPgError
from olr_pg.files.mapped import release_pages
from olr_pg.kernels.compile import inlined, kernel

if TYPE_CHECKING:
    from olr_pg.wire.frames import ByteOrder

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]

TOO_LARGE: Final = -4
"""Length of a chunked value that was dropped."""

ROW_BYTES_MAX: Final = (1 << 30) - (1 << 20)
"""Bytes of one row's LOB values: PostgreSQL takes less than 1 GiB in one parameter."""

_WHOLE: Final = 0
_INCOMPLETE: Final = 1
_MALFORMED: Final = 2


@inlined
def chunk_fields(data: U8, first: int, size: int, big: bool) -> tuple[int, int, int, int]:
    """Return (name bytes, flags, where the data begins, its size or −1) of a Chunk element."""
    name = byte_at(data, first + 29)
    if size < 42 + name:
        return name, 0, 0, -1
    flags = int(np.int64(read_u16(data, first + 32 + name, big)))
    length = read_u64(data, first + 34 + name, big)
    if length != np.uint64(size - 42 - name):
        return name, 0, 0, -1
    return name, flags, first + 42 + name, size - 42 - name


@kernel
def row_end_kernel(data: U8, big: bool) -> int:
    """Return where the chunks of an open row end; −1 they go on, −2 something else comes before."""
    at = 0
    while at < data.size:
        size = int(np.int64(read_u32(data, at, big)))
        if size < 44 or data[at + 6] != 7:
            return -2
        _, flags, _, length = chunk_fields(data, at + 6, size - 2, big)
        if length < 0:
            return -2
        at += 4 + size
        if flags & 2:
            return at
    return -1


@kernel
def measure_kernel(data: U8, big: bool, kind: I32, body: I64, body_length: I64) -> int:
    """Count the bytes of the values that are cut into several chunks; −1 a malformed chunk."""
    total, going_on = 0, False
    for i in range(kind.size):
        if kind[i] != 7:
            going_on = False
            continue
        _, flags, _, size = chunk_fields(data, body[i], body_length[i], big)
        if size < 0:
            return -1
        if going_on or flags & 1 == 0:
            total += size
        going_on = flags & 1 == 0
    return total


@inlined
def _next_chunked(entry: int, end: int, value_length: I64) -> int:
    while entry < end and value_length[entry] != CHUNKED:
        entry += 1
    return entry


@inlined
def _same_name(data: U8, chunk: int, name: int, value: int) -> bool:
    """Tell whether the name of a chunk stands before a column's value too."""
    if byte_at(data, value - name - 37) != name:
        return False
    for i in range(name):  # noqa: SIM110 - compiled as a loop
        if data[chunk + 30 + i] != data[value - name + i]:
            return False
    return True


@inlined
def _copy(data: U8, start: int, size: int, out: U8, at: int) -> None:
    # Unsigned indices: Numba leaves out the test for negative ones, and the loop vectorises.
    source, target = np.uint64(start), np.uint64(at)
    for i in range(np.uint64(size)):
        out[target + i] = data[source + i]


@kernel
def gather_kernel(
    answers: Answers, big: bool, lob_bytes: I64, is_cut: bool, extra: U8
) -> tuple[int, int]:
    """Put the values of every row together: `answers` get their places, `extra` what is joined.

    Args:
        lob_bytes: of each answer, filled.
        is_cut: the first answer is a row change whose chunks were dropped.

    Returns:
        (status, answer): the row change that is not complete, or where it is malformed.
    """
    data, kind, entry_first = answers.data, answers.kind, answers.entry_first
    value_offset, value_length = answers.value_offset, answers.value_length
    row, entry, end, used = -1, 0, 0, 0
    is_open = False
    for i in range(kind.size):
        if kind[i] != 7:
            if row >= 0:
                return 2, i
            if answers.layout[i] < 0:
                continue
            end = entry_first[i + 1]
            entry = _next_chunked(entry_first[i], end, value_length)
            if entry == end:
                continue
            if is_cut and i == 0:
                while entry < end:
                    value_length[entry] = TOO_LARGE
                    entry = _next_chunked(entry, end, value_length)
                continue
            row = i
            continue
        if row < 0:
            return 2, i
        chunk = answers.body[i]
        name, flags, start, size = chunk_fields(data, chunk, answers.body_length[i], big)
        if not is_open:
            entry = _next_chunked(entry, end, value_length)
            if entry == end or not _same_name(data, chunk, name, value_offset[entry]):
                return 2, i
        lob_bytes[row] += size
        if not is_open and flags & 1:
            value_offset[entry] = start
            value_length[entry] = size
        else:
            if not is_open:
                value_offset[entry] = data.size + used
                value_length[entry] = 0
            _copy(data, start, size, extra, used)
            value_length[entry] += size
            used += size
        is_open = flags & 1 == 0
        if flags & 2:
            if is_open or _next_chunked(entry, end, value_length) != end:
                return 2, i
            row = -1
    return (0, 0) if row < 0 else (1, row)


class ChunkedRows:
    """The assembly of received bytes into answers with whole values.

    Args:
        order: byte order of the protocol.
        row_bytes_max: bytes of one row's LOB values.
    """

    def __init__(self, order: ByteOrder, row_bytes_max: int = ROW_BYTES_MAX) -> None:
        self._order = order
        self._limit = row_bytes_max
        self._held: list[U8] = []
        self._held_bytes = 0
        self._is_cut = False

    @property
    def is_open(self) -> bool:
        """Tell whether a row waits for its chunks."""
        return bool(self._held)

    def forget(self) -> None:
        """Drop what is held back: it comes again."""
        self._held, self._held_bytes, self._is_cut = [], 0, False

    def feed(self, blob: U8) -> list[Answers]:
        """Take bytes; return the answers up to the last whole row, in order.

        Args:
            blob: whole frames of Data answers.

        Raises:
            OlrPgError: 5013, the bytes are not what protocol says.
        """
        blob, found = read_only(blob), list[Answers]()
        if self._held:
            end = row_end_kernel(blob, self._order.is_big)
            if end == -2:
                raise OlrPgError(Code.ANSWER_MALFORMED, "a row change without its last Chunk")
            self._hold(blob if end < 0 else blob[:end])
            if end < 0:
                return found
            found.append(self.whole(np.concatenate(self._held), is_cut=self._is_cut))
            self.forget()
            blob = blob[end:]
        if blob.size:
            status, answers, row = self._gathered(blob, is_cut=False)
            if status == _INCOMPLETE:
                start = int(answers.body[row]) - 6
                self._hold(blob[start:])
                blob = blob[:start]
                _, answers, _ = self._gathered(blob, is_cut=False)
            if blob.size:
                found.append(answers)
        return found

    def whole(self, blob: U8, *, is_cut: bool) -> Answers:
        """Return the answers of whole rows.

        Args:
            blob: whole frames of Data answers.
            is_cut: the first answer is a row change whose chunks were dropped.

        Raises:
            OlrPgError: 5013, the bytes are not what protocol says.
        """
        status, answers, _ = self._gathered(blob, is_cut=is_cut)
        if status != _WHOLE or answers.consumed != blob.size:
            raise OlrPgError(Code.ANSWER_MALFORMED, "an incomplete row change")
        return answers

    def _hold(self, part: U8) -> None:
        self._held_bytes += part.size
        if not self._is_cut:
            self._held.append(part)
        if self._held_bytes > self._limit and not self._is_cut:
            first = self._held[0]
            self._held = [first[: 4 + read_u32(first, 0, self._order.is_big)].copy()]
            self._is_cut = True

    def _gathered(self, data: U8, *, is_cut: bool) -> tuple[int, Answers, int]:
        answers = parse_answers(data, self._order)
        if not answers.chunked:
            return _WHOLE, answers, 0
        data, big = answers.data, self._order.is_big
        needed = measure_kernel(data, big, answers.kind, answers.body, answers.body_length)
        if needed < 0:
            raise OlrPgError(Code.ANSWER_MALFORMED, "a malformed Chunk")
        extra = np.empty(needed, np.uint8)
        lob_bytes = np.zeros(len(answers.kind), np.int64)
        status, row = gather_kernel(answers, big, lob_bytes, is_cut, extra)
        if status == _MALFORMED:
            raise OlrPgError(
                Code.ANSWER_MALFORMED,
                "a Chunk that does not belong to its row change",
                offset=int(answers.body[row]),
            )
        if needed:
            received, data = data, read_only(np.concatenate([data, extra]))
            release_pages(received.data)
        return status, answers._replace(data=data, lob_bytes=lob_bytes), int(row)
