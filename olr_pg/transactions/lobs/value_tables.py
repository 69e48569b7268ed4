"""The tables of LOB pieces and LOB values that the kernels of `lobs.pages` read and fill."""

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
    """The outcome for a LOB value."""

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
        scn: of the event: pieces that name no transaction come from elsewhere in the redo.
        op: `redo.lobs.LobOp`.
        at: offset in the page (FILL, ZERO).
        span: bytes of a ZERO, first entry of a LIST_AT.
        form: `redo.lobs.ListForm`.
        offset, length: the bytes.
        table: of the event.
    """


PARTS: Final = 0
EXTRA: Final = 1
"""Places in `ValueRoom.counts`."""

WANTED: Final = 0
FULL: Final = 1
"""Places in `ValueRoom.progress`."""


class ValueRoom(NamedTuple):
    """The room that `resolve_values` fills; n values.

    Attributes:
        status: shape (n), `ValueStatus`.
        facts: shape (n, FACTS) of `datatypes.lob_locator`.
        part_first: shape (n + 1).
        parts: shape (2, …); offset and length of each part; offsets past the data are in `extra`.
        extra: bytes put together.
        counts: by PARTS and EXTRA (bytes of `extra`).
        progress: shape (2); of the value at hand, by WANTED the bytes that are to come, by FULL
            those of a full page or −1: every page but the last is as long as the first, or else
            bytes are missing.
        page: shape (2, PAGE_BYTES_MAX); a page in the making, and 1 where its bytes are known.
        blocks: shape (2, LIST_ENTRIES_MAX); a list in the making.
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
        before: the entry of the same column's old value, −1 = not known.
        is_insert: whether the row is new.
        has_pages: 0 where pages of the column take several blocks.
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
    """Allocate room for `count` rows."""
    return columns_of(LOB_ROW, count)


def value_room(values: int, parts: int, extra: U8) -> ValueRoom:
    """Allocate room for so many values and parts, and `extra` for bytes put together."""
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
    """Sort the rows for lookups; rows of one key stay in their order."""
    return take(rows, np.lexsort((rows.scn, rows.number, rows.lob, rows.space, rows.owner)))


def distinct_keys(keys: I64) -> tuple[I64, I64]:
    """Return the distinct rows of a table, in order, and for each of its rows the place in them.

    As ``numpy.unique(keys, axis=0, return_inverse=True)``, which compares rows byte by byte and
    takes three times as long.

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
