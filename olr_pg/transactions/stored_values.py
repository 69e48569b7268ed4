"""Converts inserted rows whose values are still in their row piece (`DmlColumns.stored`) to the
form of all other row changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from olr_pg.kernels.compile import kernel
from olr_pg.redo.batch import columns_of
from olr_pg.transactions.finished_columns import VALUE, Image

if TYPE_CHECKING:
    import numpy.typing as npt

    from olr_pg.transactions.finished_columns import DmlColumns

_AFTER = int(Image.AFTER)


def spelled_out(dml: DmlColumns, column_first: npt.NDArray[np.int64]) -> DmlColumns:
    """Return the same row changes with all values in `DmlColumns.values`.

    Args:
        column_first: shape (tables + 1); the number of each table's first delivered column, if the
            delivered columns of all tables are numbered one after the other.
    """
    is_stored = dml.stored_first >= 0
    if not is_stored.any():
        return dml
    width = np.diff(column_first)[dml.table]
    sizes = np.where(is_stored, width, np.diff(dml.entry_first))
    first = np.concatenate([[0], np.cumsum(sizes)])
    further = dml.values.size - int(dml.entry_first[-1])
    values = columns_of(VALUE, int(first[-1]) + further)
    _spell_out(dml, first, values)
    return dml._replace(
        stored_first=np.full(dml.kind.size, -1, np.int64),
        stored_count=np.zeros(dml.kind.size, np.int32),
        entry_first=first,
        values=values,
    )


@kernel
def _spell_out(dml: Any, first: Any, values: Any) -> None:
    """Fill `values`. `first` is the index of each change's first value; the further parts of values
    follow the last change.
    """
    changes = dml.kind.size
    moved = first[changes] - dml.entry_first[changes]
    for change in range(changes):
        start = first[change]
        if dml.stored_first[change] < 0:
            for k in range(first[change + 1] - start):
                _move(dml.values, dml.entry_first[change] + k, values, start + k, moved)
            continue
        for k in range(first[change + 1] - start):
            value = values[start + k]
            value.offset, value.length, value.next = 0, -1, -1
            value.column, value.image = k, _AFTER
            if k < dml.stored_count[change]:
                stored = dml.stored[dml.stored_first[change] + k]
                value.offset, value.length = stored.offset, stored.length
    for entry in range(dml.entry_first[changes], dml.values.size):
        _move(dml.values, entry, values, entry + moved, moved)


@kernel
def _move(source: Any, entry: int, values: Any, at: int, moved: int) -> None:
    values[at] = source[entry]
    if source[entry].next >= 0:
        values[at].next = source[entry].next + moved
