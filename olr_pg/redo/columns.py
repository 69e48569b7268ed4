"""Tables of columns – named tuples of arrays, or structured arrays: cutting them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Table: TypeAlias = "np.recarray[Any, np.dtype[np.void]]"
"""A structured array; a column is a field of it."""

C = TypeVar("C", bound="tuple[Any, ...] | np.recarray[Any, Any]")


def head(columns: C, count: int) -> C:
    """The first `count` rows of every column."""
    return take(columns, slice(count))


def take(columns: C, rows: Any) -> C:
    """The given rows of every column, in that order."""
    if isinstance(columns, np.ndarray):
        table = cast("Table", columns)
        return cast("C", _as_rows(_whole_rows(table)[rows], table.dtype))
    return type(columns)(*(column[rows] for column in columns))


def joined_rows(
    tables: Sequence[Table],
    allocate: Callable[[int], np.ndarray[Any, np.dtype[np.uint8]]] | None = None,
) -> Table:
    """The rows of some tables of one type, one table behind the other; one table is required.

    Args:
        tables: what to join.
        allocate: gives the room, as many bytes as it is asked for; None takes memory.
    """
    dtype = tables[0].dtype
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


def _whole_rows(table: Table) -> np.ndarray[Any, np.dtype[np.void]]:
    """The rows without their fields: NumPy copies a structured array field by field, ten times
    slower than as bytes.
    """
    return table.view(np.ndarray).view(f"V{table.dtype.itemsize}")


def _as_rows(rows: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> Table:
    return rows.view(dtype).view(np.recarray)


def as_table(**columns: np.ndarray[Any, Any]) -> Table:
    """The columns, all of one length, as one structured array: a single argument for a kernel."""
    dtype = np.dtype([(name, column.dtype) for name, column in columns.items()], align=True)
    table = np.empty(next(iter(columns.values())).size, dtype)
    for name, column in columns.items():
        table[name] = column
    return table.view(np.recarray)
