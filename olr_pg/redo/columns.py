"""Tables of columns – named tuples of arrays, or structured arrays: cutting them."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar, cast

import numpy as np

Table: TypeAlias = "np.recarray[Any, np.dtype[np.void]]"
"""A structured array; a column is a field of it."""

C = TypeVar("C", bound="tuple[Any, ...] | np.recarray[Any, Any]")


def head(columns: C, count: int) -> C:
    """The first `count` rows of every column."""
    return take(columns, slice(count))


def take(columns: C, rows: Any) -> C:
    """The given rows of every column, in that order."""
    if isinstance(columns, np.ndarray):
        return cast("C", columns[rows])
    return type(columns)(*(column[rows] for column in columns))


def as_table(**columns: np.ndarray[Any, Any]) -> Table:
    """The columns, all of one length, as one structured array: a single argument for a kernel."""
    dtype = np.dtype([(name, column.dtype) for name, column in columns.items()], align=True)
    table = np.empty(next(iter(columns.values())).size, dtype)
    for name, column in columns.items():
        table[name] = column
    return table.view(np.recarray)
