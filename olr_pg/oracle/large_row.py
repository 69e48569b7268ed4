"""A row with a LOB that is too large to be held whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa

    Pieces = Callable[[], Iterator[Any]]
    """Reads a value from its beginning: its pieces in order, each an Arrow array of one value. A
    piece of text ends between two characters."""


class LargeRow(NamedTuple):
    """Holds one row with large values.

    Attributes:
        batch: the row, with NULL in place of its large values.
        large: these, by the column's name.
    """

    batch: pa.RecordBatch
    large: Mapping[str, Pieces]
