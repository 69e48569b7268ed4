"""Finds the segments and indexes of subscribed LOB columns by their object numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterable


class LobObjects(NamedTuple):
    """Segments and indexes of subscribed LOB columns.

    Attributes:
        key: ``con_id << 32 | number``, in ascending order.
        is_index: 1 for a LOB index, 0 for a LOB segment.
        table: index, in the row plan, of the table with the LOB column.
    """

    key: npt.NDArray[np.uint64]
    is_index: npt.NDArray[np.uint8]
    table: npt.NDArray[np.int32]


def lob_objects(rows: Iterable[tuple[int, bool, int]]) -> LobObjects:
    """Build the table from rows of (key, is_index, table). If several rows have the same key, the
    first is used.
    """
    found: dict[int, tuple[bool, int]] = {}
    for key, is_index, table in rows:
        found.setdefault(key, (is_index, table))
    keys = sorted(found)
    return LobObjects(
        np.array(keys, np.uint64),
        np.array([found[key][0] for key in keys], np.uint8),
        np.array([found[key][1] for key in keys], np.int32),
    )


NO_LOB_OBJECTS: Final = lob_objects([])
