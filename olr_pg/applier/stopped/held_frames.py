"""Held changes as bytes: the protocol's own messages, as they were received."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from olr_pg.applier.received.chunk_assembly import TOO_LARGE, ChunkedRows
from olr_pg.applier.received.layouts import LayoutReader
from olr_pg.applier.statements.table_changes import AnswerChunk, join, select
from olr_pg.kernels.compile import kernel
from olr_pg.wire.elements import ElementCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.applier.statements.table_changes import Selection
    from olr_pg.wire.frames import ByteOrder

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]

_HEAD_BYTES: Final = 6
"""Of a framed Data message before its element."""

_CHUNK: Final = int(ElementCode.CHUNK)


@kernel
def frames_kernel(
    data: U8, kind: npt.NDArray[np.int32], body: I64, body_length: I64, elements: I64,
    first: I64, out: U8, write: bool,
) -> None:  # fmt: skip
    """Write row changes as framed messages, each with its chunks.

    Args:
        first: shape (elements + 1); item 0 is given: where the first one begins in `out`.
        out: filled where `write`; otherwise only `first` is.
    """
    for n in range(elements.size):
        last = elements[n]
        start = body[last] - _HEAD_BYTES
        while last + 1 < kind.size and kind[last + 1] == _CHUNK:
            last += 1
        size = body[last] + body_length[last] - start
        if write:
            source, target = np.uint64(start), np.uint64(first[n])
            for i in range(np.uint64(size)):
                out[target + i] = data[source + i]
        first[n + 1] = first[n] + size


def framed(selection: Selection) -> tuple[U8, I64]:
    """Return (messages, where each change begins and the last one ends) of a selection."""
    first = np.zeros(len(selection) + 1, np.int64)
    out = np.empty(0, np.uint8)
    for write in (False, True):
        if write:
            out = np.empty(int(first[-1]), np.uint8)
        for number, chunk in enumerate(selection.chunks):
            a, b = np.searchsorted(selection.chunk, (number, number + 1)).tolist()
            answers = chunk.answers
            frames_kernel(
                answers.data, answers.kind, answers.body, answers.body_length,
                selection.element[a:b], first[a : b + 1], out, write,
            )  # fmt: skip
    return out, first


def cut_rows(selection: Selection) -> I64:
    """Return the changes whose LOB values were dropped because they were too large."""
    found = [np.zeros(0, np.int64)]
    for number, chunk in enumerate(selection.chunks):
        if chunk.answers.chunked:
            a, b = np.searchsorted(selection.chunk, (number, number + 1)).tolist()
            lost = np.concatenate([[0], np.cumsum(chunk.answers.value_length == TOO_LARGE)])
            entry = chunk.answers.entry_first
            elements = selection.element[a:b]
            found.append(a + np.flatnonzero(lost[entry[elements + 1]] > lost[entry[elements]]))
    return np.concatenate(found)


def parse_messages(data: U8, cut: Sequence[int], order: ByteOrder) -> Selection:
    """Parse the row changes of framed messages.

    Args:
        data: the messages; writable, as received ones are: kernels are compiled for that alone.
        cut: where those begin whose LOB values were dropped.
    """
    bounds = sorted({0, *cut, data.size})
    parts = []
    for start, end in pairwise(bounds):
        answers = ChunkedRows(order).whole(data[start:end], is_cut=start in cut)
        chunk = AnswerChunk(answers, LayoutReader(order).read(answers))
        parts.append(select(chunk, np.flatnonzero(answers.layout >= 0)))
    return join(parts)
