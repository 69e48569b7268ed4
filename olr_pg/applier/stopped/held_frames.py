"""Converts held changes to bytes and back. The bytes are the protocol's messages, as received."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from olr_pg.applier.received.change_reading import MessageReader
from olr_pg.applier.received.column_numbers import ColumnNumbers
from olr_pg.applier.statements.table_changes import join, row_changes, select
from olr_pg.kernels.bytes import copy_bytes
from olr_pg.kernels.compile import kernel
from olr_pg.transactions.change_columns import TOO_LARGE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.applier.statements.table_changes import Selection
    from olr_pg.wire.frames import ByteOrder

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]


@kernel
def frames_kernel(data: U8, message_first: I64, elements: I64, first: I64, out: U8) -> None:
    """Copy row changes, each with its chunks, to `out` as framed messages.

    Args:
        first: the offset of each row change in `out`.
    """
    for n in range(elements.size):
        start, end = message_first[elements[n]], message_first[elements[n] + 1]
        copy_bytes(out, first[n], data, start, end)


def framed(selection: Selection) -> tuple[U8, I64]:
    """Return the framed messages of a selection, and the offset at which each change begins, with
    the end of the last one.
    """
    sizes = [np.zeros(1, np.int64)]
    for chunk, elements in selection.by_chunk():
        sizes.append(chunk.message_first[elements + 1] - chunk.message_first[elements])
    first: I64 = np.cumsum(np.concatenate(sizes))
    out = np.empty(int(first[-1]), np.uint8)
    done = 0
    for chunk, elements in selection.by_chunk():
        places = first[done : done + len(elements)]
        frames_kernel(chunk.changes.data, chunk.message_first, elements, places, out)
        done += len(elements)
    return out, first


def cut_rows(selection: Selection) -> I64:
    """Return the indexes of the changes whose LOB values were dropped because they were too
    large.
    """
    found = [np.zeros(0, np.int64)]
    done = 0
    for chunk, elements in selection.by_chunk():
        changes = chunk.changes
        lost = np.flatnonzero(changes.value_length == TOO_LARGE)
        of = np.unique(changes.entry_first.searchsorted(lost, "right") - 1)
        found.append(done + np.flatnonzero(np.isin(elements, of)))
        done += len(elements)
    return np.concatenate(found)


class HeldMessages:
    """Parses held messages. The parser keeps the numbers of the columns for the next messages."""

    def __init__(self) -> None:
        self._numbers: dict[ByteOrder, ColumnNumbers] = {}

    def parse(self, data: U8, cut: Sequence[int], order: ByteOrder) -> Selection:
        """Parse the row changes of framed messages.

        Args:
            data: the messages. The array must be writable, because kernels are compiled only for
                writable arrays.
            cut: the offsets of the row changes whose LOB values were dropped.
        """
        numbers = self._numbers.get(order)
        if numbers is None:
            numbers = self._numbers[order] = ColumnNumbers(order)
        bounds = sorted({0, *cut, data.size})
        parts = []
        for start, end in pairwise(bounds):
            reader = MessageReader(order, numbers=numbers)
            chunk = reader.whole(data[start:end], is_cut=start in cut)
            parts.append(select(chunk, row_changes(chunk)))
        return join(parts)
