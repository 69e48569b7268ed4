"""Defaults of added columns as arrays. They are the values of rows that do not store these columns.

Facts: values-and-lobs §14.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.dictionary.model import Column


class UnstoredColumn(IntEnum):
    """The meaning of a column that a row does not store."""

    NULL = 0
    DEFAULT = 1
    UNKNOWN = 2
    """The column has a default, but the dictionary does not contain it."""

    GUARD = 3
    """The column is a guard column, which is not delivered."""


class Defaults(NamedTuple):
    """Arrays with one item per planned column, by running number. They are empty if no column was
    added with a default.

    Attributes:
        missing: the column's `UnstoredColumn`.
        guard_id: the column's bit in the guard column; −1 if it has none.
        offset, length: the place of the default in `data`.
        data: the defaults, one after the other.
    """

    missing: npt.NDArray[np.uint8]
    guard_id: npt.NDArray[np.int32]
    offset: npt.NDArray[np.int64]
    length: npt.NDArray[np.int64]
    data: npt.NDArray[np.uint8]


NO_DEFAULTS: Final = Defaults(
    np.empty(0, np.uint8),
    np.empty(0, np.int32),
    np.empty(0, np.int64),
    np.empty(0, np.int64),
    np.empty(0, np.uint8),
)


def column_defaults(columns: Sequence[Column], guarded: Sequence[bool]) -> Defaults:
    """Return the defaults of planned columns.

    Args:
        columns: the planned columns of all tables.
        guarded: for each column, whether its table has a guard column. If not, its guard id is
            ignored.
    """
    if all(column.added is None for column in columns):
        return NO_DEFAULTS
    values = [(column.added.default if column.added else None) or b"" for column in columns]
    length = np.array([len(value) for value in values], np.int64)
    guard_ids = [
        column.added.guard_id if column.added and has_guard else None
        for column, has_guard in zip(columns, guarded, strict=True)
    ]
    return Defaults(
        np.array([_missing(column) for column in columns], np.uint8),
        np.array([-1 if guard_id is None else guard_id for guard_id in guard_ids], np.int32),
        np.cumsum(length) - length,
        length,
        np.frombuffer(b"".join(values), np.uint8),
    )


def _missing(column: Column) -> UnstoredColumn:
    if column.guard:
        return UnstoredColumn.GUARD
    if column.added is None:
        return UnstoredColumn.NULL
    if column.added.default is None:
        return UnstoredColumn.UNKNOWN
    # A default without bytes is NULL, because '' is NULL in Oracle.
    return UnstoredColumn.DEFAULT if column.added.default else UnstoredColumn.NULL
