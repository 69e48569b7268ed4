"""A row with a LOB that is too large for memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa

    Pieces = Callable[[], Iterator[Any]]
    """Reads a value from its beginning as pieces in order; each is an Arrow array of one value. A
    piece of text ends between two characters.
    """


class LargeRow(NamedTuple):
    """A row with large values.

    Attributes:
        batch: the row, with NULL in place of its large values.
        large: the large values, by column name.
    """

    batch: pa.RecordBatch
    large: Mapping[str, Pieces]
