"""Tables of columns – named tuples of arrays, or structured arrays: cutting them."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Table: TypeAlias = "np.recarray[Any, np.dtype[np.void]]"
"""A structured array; a column is a field of it."""

A = TypeVar("A", bound="np.ndarray[Any, Any]")
C = TypeVar("C", bound="tuple[Any, ...] | np.recarray[Any, Any]")


def head(columns: C, count: int) -> C:
    """The first `count` rows of every column."""
    return take(columns, slice(count))


def take(columns: C, rows: Any) -> C:
    """The given rows of every column, in that order."""
    if isinstance(columns, np.ndarray):
        table = _plain(cast("Table", columns))
        return cast("C", _as_rows(_whole_rows(table)[rows], table.dtype))
    return type(columns)(*(column[rows] for column in columns))


def cut(rows: A, bounds: Sequence[int]) -> list[A]:
    """The rows between neighbouring bounds, as views."""
    plain = _plain(rows)
    return [cast("A", plain[start:end].view(type(rows))) for start, end in pairwise(bounds)]


def joined_rows(
    tables: Sequence[Table],
    allocate: Callable[[int], np.ndarray[Any, np.dtype[np.uint8]]] | None = None,
) -> Table:
    """The rows of some tables of one type, one table behind the other; one table is required.

    Args:
        tables: what to join.
        allocate: gives the room, as many bytes as it is asked for; None takes memory.
    """
    dtype = _plain(tables[0]).dtype
    rows = [_whole_rows(table) for table in tables]
    if allocate is None:
        return _as_rows(np.concatenate(rows), dtype)
    room = allocate(sum(part.nbytes for part in rows)).view(rows[0].dtype)
    return _as_rows(np.concatenate(rows, out=room), dtype)


def grown(table: Table, count: int, capacity: int) -> Table:
    """Room for `capacity` rows, of which the first `count` are those of `table`."""
    room = np.empty(capacity, table.dtype).view(np.recarray)
    _whole_rows(room)[:count] = _whole_rows(table)[:count]
    return room


def _whole_rows(table: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.void]]:
    """The rows without their fields: NumPy copies a structured array field by field, ten times
    slower than as bytes.
    """
    rows = _plain(table)
    return rows.view(_whole(rows.dtype.itemsize))


@cache
def _whole(size: int) -> np.dtype[np.void]:
    return np.dtype((np.void, size))


def _plain(table: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The table as a plain array: a record array looks each attribute up in Python, even `view`."""
    return np.ndarray.view(table, np.ndarray)


def _as_rows(rows: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> Table:
    return rows.view(dtype).view(np.recarray)


def as_table(**columns: np.ndarray[Any, Any]) -> Table:
    """The columns, all of one length, as one structured array: a single argument for a kernel."""
    dtype = np.dtype([(name, column.dtype) for name, column in columns.items()], align=True)
    table = np.empty(next(iter(columns.values())).size, dtype)
    for name, column in columns.items():
        table[name] = column
    return table.view(np.recarray)
