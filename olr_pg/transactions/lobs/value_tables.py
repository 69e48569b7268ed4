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
    """The kinds of rows in `LobRows`. A lookup finds only rows of one kind."""

    PAGE = 0
    LIST = 1
    INDEX = 2
    OPERATION = 3


class ValueStatus(IntEnum):
    """The result for a LOB value: its content was found, or the reason why not."""

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
    owner: number of the transaction.
    space: the kind of row, a `Space`.
    lob: LOB number; 0 for lists.
    number: block address of a page or list, page number of an index row.
    scn: SCN of the event. It is part of the sort key, because pages whose redo names no transaction
        are not stored in redo order with the others.
    op: the kind of piece, a `redo.lob_pieces.LobOp`.
    at: offset in the page, for FILL and ZERO.
    span: number of bytes of a ZERO, first entry of a LIST_AT.
    form: format of the entries of a list, `redo.lob_pieces.ListForm`.
    offset, length: position of the piece's bytes in the data.
    table: table of the event.
"""


PARTS: Final = 0
EXTRA: Final = 1
"""Indexes of `ValueRoom.counts`."""

WANTED: Final = 0
FULL: Final = 1
"""Indexes of `ValueRoom.progress`."""


class ValueRoom(NamedTuple):
    """The output of `resolve_values` for n values.

    Attributes:
        status: shape (n); the `ValueStatus` of each value.
        facts: shape (n, FACTS); the contents of the locators, see `datatypes.lob_locator`.
        part_first: shape (n + 1); the index of each value's first part.
        parts: shape (2, …); offset and length of each part. If an offset is not less than the size
            of the data, the part is in `extra`, at offset minus this size.
        extra: the bytes of joined pages and locators.
        counts: at PARTS the number of parts, at EXTRA the used bytes of `extra`.
        progress: shape (2), for the current value. At WANTED: the number of bytes that are still
            missing. At FULL: the number of bytes of the first page, or −1. Every page except the
            last must be as long as the first one; otherwise bytes are missing.
        page: shape (2, PAGE_BYTES_MAX); the bytes of a page that is being joined, and for each byte
            1 if it is known.
        blocks: shape (2, LIST_ENTRIES_MAX); first blocks and block counts of the extents in a list
            that is being joined.
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
        entry: the entry of each value.
        before: the entry with the old value of the same column, −1 if unknown.
        is_insert: whether the change is an insert.
        has_pages: 0 if a page of the column consists of several blocks.
        entries: all `transactions.finished_columns.VALUE` rows of the row changes.
        data: the bytes of the row changes and of the LOB pieces.
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
    """Return space for the given numbers of values and parts, and `extra` bytes for joined data."""
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
    """Return the rows sorted for lookups. Rows with equal keys keep their order."""
    return take(rows, np.lexsort((rows.scn, rows.number, rows.lob, rows.space, rows.owner)))


def distinct_keys(keys: I64) -> tuple[I64, I64]:
    """Return the distinct rows of a table in ascending order, and for each row of the table its
    index among them.

    The result is the same as the result of ``numpy.unique(keys, axis=0, return_inverse=True)``.
    NumPy compares the bytes of rows, which takes three times as long.

    Args:
        keys: shape (n, m).

    Returns:
        Two arrays of the shapes (d, m) and (n).
    """
    order = np.lexsort(keys.T[::-1])
    in_order = keys[order]
    is_first = np.ones(order.size, np.bool_)
    np.any(in_order[1:] != in_order[:-1], axis=1, out=is_first[1:])
    place = np.empty(order.size, np.int64)
    place[order] = np.cumsum(is_first) - 1
    return in_order[is_first], place
