"""The tables of LOB pieces and LOB values that the kernels of `lobs.pages` read and write."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from olr_pg.datatypes.lob_locator import FACTS
from olr_pg.redo.batch import columns_of
from olr_pg.redo.column_tables import ColumnTable, row_type, take

I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]

PAGE_BYTES_MAX: Final = 65_536
LIST_ENTRIES_MAX: Final = 1 << 20


class Space(IntEnum):
    """The namespaces in which rows of `LobRows` are looked up."""

    PAGE = 0
    LIST = 1
    INDEX = 2
    OPERATION = 3


class ValueStatus(IntEnum):
    """Whether the content of a LOB value was found, or why not."""

    WHOLE = 0
    MISSING = 1
    MALFORMED = 2
    UNCHANGED = 3
    NULL = 4
    UNDECODED = 5


LOB_ROW: Final = row_type(
    [
        ("owner", "i8"),
        ("space", "i8"),
        ("lob", "i8"),
        ("number", "i8"),
        ("scn", "i8"),
        ("op", "i8"),
        ("at", "i8"),
        ("span", "i8"),
        ("form", "i8"),
        ("offset", "i8"),
        ("length", "i8"),
        ("table", "i8"),
    ]
)

LobRows: TypeAlias = ColumnTable
"""One row per LOB piece, sorted by (owner, space, lob, number, scn), then in redo order.

Attributes:
    owner: the transaction.
    space: `Space`.
    lob: number of the LOB id; 0 in lists.
    number: block address of pages and lists, page number of index rows.
    scn: of the event: pieces without a transaction can come from other positions in the redo.
    op: `redo.lobs.LobOp`.
    at: offset in the page (FILL, ZERO).
    span: bytes of a ZERO, first entry of a LIST_AT.
    form: `redo.lobs.ListForm`.
    offset, length: the bytes.
    table: of the event.
"""


PARTS: Final = 0
EXTRA: Final = 1
"""Index in `ValueRoom.counts`."""

WANTED: Final = 0
FULL: Final = 1
"""Index in `ValueRoom.progress`."""


class ValueRoom(NamedTuple):
    """The output of `resolve_values` for n values.

    Attributes:
        status: shape (n), `ValueStatus`.
        facts: shape (n, FACTS) of `datatypes.lob_locator`.
        part_first: shape (n + 1).
        parts: shape (2, …); offset and length of each part; offsets past the data are in `extra`.
        extra: joined bytes.
        counts: by PARTS and EXTRA (bytes of `extra`).
        progress: shape (2); for the current value, at WANTED the remaining bytes, at FULL those of
            a full page or −1: every page except the last must be as long as the first, otherwise
            bytes are missing.
        page: shape (2, PAGE_BYTES_MAX); a page that is being joined, and 1 for each known byte.
        blocks: shape (2, LIST_ENTRIES_MAX); a list that is being joined.
    """

    status: U8
    facts: I64
    part_first: I64
    parts: I64
    extra: U8
    counts: I64
    progress: I64
    page: U8
    blocks: I64


class Values(NamedTuple):
    """The LOB values to resolve.

    Attributes:
        entry: their entries.
        before: the entry of the same column's old value, −1 if unknown.
        is_insert: whether the row is new.
        has_pages: 0 if pages of the column have several blocks.
        entries: `transactions.finished_columns.VALUE` rows, all that there are.
        data: the bytes.
    """

    entry: I64
    owner: I64
    before: I64
    is_insert: npt.NDArray[np.bool_]
    has_pages: U8
    entries: ColumnTable
    data: U8


def empty_rows(count: int) -> LobRows:
    """Return uninitialised space for `count` rows."""
    return columns_of(LOB_ROW, count)


def value_room(values: int, parts: int, extra: U8) -> ValueRoom:
    """Return space for this many values and parts, and `extra` bytes for joined data."""
    return ValueRoom(
        np.zeros(values, np.uint8),
        np.zeros((values, FACTS), np.int64),
        np.zeros(values + 1, np.int64),
        np.empty((2, parts), np.int64),
        extra,
        np.zeros(2, np.int64),
        np.zeros(2, np.int64),
        np.empty((2, PAGE_BYTES_MAX), np.uint8),
        np.empty((2, LIST_ENTRIES_MAX), np.int64),
    )


def sort_rows(rows: LobRows) -> LobRows:
    """Sort the rows for lookups; rows with equal keys keep their order."""
    return take(rows, np.lexsort((rows.scn, rows.number, rows.lob, rows.space, rows.owner)))


def distinct_keys(keys: I64) -> tuple[I64, I64]:
    """Return the distinct rows of a table, in order, and the index in them for each of its rows.

    Like ``numpy.unique(keys, axis=0, return_inverse=True)``, which compares rows bytewise and takes
    three times as long.

    Args:
        keys: shape (n, m).

    Returns:
        Shapes (d, m) and (n).
    """
    order = np.lexsort(keys.T[::-1])
    in_order = keys[order]
    is_first = np.ones(order.size, np.bool_)
    np.any(in_order[1:] != in_order[:-1], axis=1, out=is_first[1:])
    place = np.empty(order.size, np.int64)
    place[order] = np.cumsum(is_first) - 1
    return in_order[is_first], place
