"""Columns of values: the form of the values that conversions receive and return."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from olr_pg.errors import OlrPgError, located
from olr_pg.kernels.compile import kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class _Slices(NamedTuple):
    data: npt.NDArray[np.uint8]
    offset: npt.NDArray[np.int64]
    length: npt.NDArray[np.int64]


class ValueColumn(_Slices):
    """Values of one column as slices of a buffer that is never changed.

    Value i is ``data[offset[i] : offset[i] + length[i]]``. The values have Oracle's internal form
    before a conversion, and PostgreSQL's binary form after it.

    Attributes:
        offset: shape (n).
        length: shape (n); −1 is NULL.
    """

    __slots__ = ()

    def __new__(
        cls,
        data: npt.NDArray[np.uint8],
        offset: npt.NDArray[np.int64],
        length: npt.NDArray[np.int64],
    ) -> Self:
        """Create a column whose `data` is a read-only view, see `read_only`."""
        return super().__new__(cls, read_only(data), offset, length)

    def value(self, row: int) -> bytes | None:
        """Return value `row` as bytes, or None for NULL. The method is too slow for whole columns;
        use it for errors and rare rows.
        """
        start, length = int(self.offset[row]), int(self.length[row])
        return None if length < 0 else self.data[start : start + length].tobytes()

    def values(self) -> list[bytes | None]:
        """Return every value as bytes, or None for NULL."""
        return [self.value(row) for row in range(len(self.length))]


def read_only(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return a read-only view of `data`.

    Numba compiles a kernel separately for writable and for read-only arrays. Because columns are
    always read-only, each kernel is compiled only once.
    """
    if data.flags.writeable:
        data = data.view()
        data.flags.writeable = False
    return data


def column_of(values: Iterable[bytes | None]) -> ValueColumn:
    """Build a column that contains copies of `values`, one after the other."""
    present = list(values)
    length = np.array([-1 if v is None else len(v) for v in present], np.int64)
    data = np.frombuffer(b"".join(v for v in present if v is not None), np.uint8)
    return ValueColumn(data, _running(length), length)


def fixed_width(items: npt.NDArray[Any], null: npt.NDArray[np.bool_]) -> ValueColumn:
    """Build a column of values that have the same size.

    Args:
        items: shape (n), already in PostgreSQL's byte order.
        null: shape (n), True if the value is NULL.
    """
    width = items.dtype.itemsize
    data = np.ascontiguousarray(items).view(np.uint8)
    offset = np.arange(len(items), dtype=np.int64) * width
    return ValueColumn(data, offset, np.where(null, np.int64(-1), np.int64(width)))


def nulls(values: ValueColumn) -> npt.NDArray[np.bool_]:
    """Mark the values that Oracle regards as NULL, which includes length 0 (values-and-lobs
    §0.1).
    """
    return values.length <= 0


def oracle_nulls(values: ValueColumn) -> ValueColumn:
    """Return the column with values of length 0 marked as NULL, as Oracle regards them
    (values-and-lobs §0.1).
    """
    if not (values.length == 0).any():
        return values
    return values._replace(length=np.where(nulls(values), np.int64(-1), values.length))


def per_distinct(
    values: ValueColumn,
    convert: Callable[[bytes], bytes | None],
    *,
    empty_is_null: bool = True,
) -> ValueColumn:
    """Convert values with the Python function `convert`, which is called once per distinct value.
    This way is slow, so use it only for rare conversions.

    Args:
        empty_is_null: whether a value of length 0 is NULL: True for Oracle's values
            (values-and-lobs §0.1), False for values in PostgreSQL's form and for LOBs.
    """
    every = range(len(values.length))
    return column_of(_converted(values, every, convert, empty_is_null=empty_is_null))


def compact(values: ValueColumn) -> ValueColumn:
    """Return the same values in a buffer that contains only these values. If the buffer already
    contains only these values, return the column unchanged.
    """
    size = int(np.maximum(values.length, 0).sum())
    if size >= values.data.size:
        return values
    data, offset = np.empty(size, np.uint8), np.empty(len(values.length), np.int64)
    _gather(values.data, values.offset, values.length, data, offset)
    return ValueColumn(data, offset, values.length)


def replace_rows(
    values: ValueColumn,
    rows: npt.NDArray[np.int64],
    source: ValueColumn,
    convert: Callable[[bytes], bytes | None],
) -> ValueColumn:
    """Return `values` with the given `rows` replaced: the new values are the values of `source`,
    converted by `convert`.

    The values are copied to a new buffer, because a few values must not keep a large part of a log
    in memory.
    """
    extra = column_of(_converted(source, rows.tolist(), convert))
    length = values.length.copy()
    length[rows] = 0
    kept = int(np.maximum(length, 0).sum())
    data = np.empty(kept + len(extra.data), np.uint8)
    offset = np.empty(len(length), np.int64)
    _gather(values.data, values.offset, length, data, offset)
    data[kept:] = extra.data
    offset[rows] = extra.offset + kept
    length[rows] = extra.length
    return ValueColumn(data, offset, length)


def _converted(
    source: ValueColumn,
    rows: Iterable[int],
    convert: Callable[[bytes], bytes | None],
    *,
    empty_is_null: bool = True,
) -> list[bytes | None]:
    seen: dict[bytes, bytes | None] = {}
    result: list[bytes | None] = []
    for row in rows:
        raw = source.value(row)
        if raw is None or (empty_is_null and not raw):
            result.append(None)
            continue
        if raw not in seen:
            try:
                seen[raw] = convert(raw)
            except OlrPgError as error:
                raise located(error, row=row) from error
        result.append(seen[raw])
    return result


def _running(length: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    ends = np.cumsum(np.maximum(length, 0))
    return ends - np.maximum(length, 0)


@kernel
def _gather(
    data: npt.NDArray[np.uint8],
    offset: npt.NDArray[np.int64],
    length: npt.NDArray[np.int64],
    out: npt.NDArray[np.uint8],
    out_offset: npt.NDArray[np.int64],
) -> None:
    at = 0
    for row in range(len(length)):
        out_offset[row] = at
        start = offset[row]
        for i in range(length[row]):
            out[at + i] = data[start + i]
        if length[row] > 0:
            at += length[row]
