"""Removes values from row changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
import numpy.typing as npt

from olr_pg.redo.column_tables import take
from olr_pg.transactions.finished_columns import DmlColumns, DmlKind, Image
from olr_pg.transactions.select import first_rows

if TYPE_CHECKING:
    from olr_pg.redo.column_tables import ColumnTable

I64 = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

ONE_PER_CHANGE: Final = (
    "kind", "table", "scn", "time", "sequence", "block", "offset", "dataobj", "bdba", "slot",
    "stored_first", "stored_count",
)  # fmt: skip


def keep_entries(dml: DmlColumns, dml_first: I64, keep: Flags) -> tuple[DmlColumns, I64, int]:
    """Return (changes with only the values to keep, `dml_first`, number of updates left out).

    An update is left out if all values that it sets are removed.

    Args:
        dml, dml_first: the row changes.
        keep: shape (entries); True for values to keep.
    """
    if keep.all():
        return dml, dml_first, 0
    change_of = np.repeat(np.arange(dml.kind.size), np.diff(dml.entry_first))
    emptied = emptied_updates(dml, keep, change_of)
    keep = keep & ~emptied[change_of]
    stays = ~emptied
    counts = np.bincount(change_of[keep], minlength=dml.kind.size)[stays]
    running = np.concatenate([[0], np.cumsum(stays)])
    trimmed = dml._replace(
        **{name: getattr(dml, name)[stays] for name in ONE_PER_CHANGE},
        entry_first=first_rows(counts.astype(np.int32)),
        values=kept_values(dml, keep),
    )
    return trimmed, running[dml_first], int(np.count_nonzero(emptied))


def kept_values(dml: DmlColumns, keep: Flags) -> ColumnTable:
    """Return the entries to keep, followed by the further parts of all values.

    Args:
        dml: the row changes.
        keep: shape (entries); True for entries to keep.
    """
    chosen = np.concatenate([np.flatnonzero(keep), np.arange(keep.size, dml.values.size)])
    kept: Any = take(dml.values, chosen)
    gone = keep.size - int(np.count_nonzero(keep))
    kept.next[kept.next >= 0] -= gone
    return cast("ColumnTable", kept)


def emptied_updates(dml: DmlColumns, keep: Flags, change_of: I64) -> Flags:
    """Return True for each update that sets no column if only the values of `keep` remain, but set
    one before; shape (changes).
    """
    after = dml.entries.image == Image.AFTER
    had = np.bincount(change_of[after], minlength=dml.kind.size)
    has = np.bincount(change_of[after & keep], minlength=dml.kind.size)
    emptied: Flags = (dml.kind == DmlKind.UPDATE) & (had > 0) & (has == 0)
    return emptied
