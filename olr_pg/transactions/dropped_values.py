"""Removes values from row changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
import numpy.typing as npt

from olr_pg.redo.column_tables import take
from olr_pg.transactions.finished_columns import DmlColumns, DmlKind, Image, OwnedChanges
from olr_pg.transactions.select import first_rows

if TYPE_CHECKING:
    from olr_pg.redo.column_tables import ColumnTable

Flags = npt.NDArray[np.bool_]

ONE_PER_CHANGE: Final = (
    "kind", "table", "scn", "time", "sequence", "block", "offset", "dataobj", "bdba", "slot",
    "stored_first", "stored_count",
)  # fmt: skip


def keep_entries(changes: OwnedChanges, keep: Flags) -> tuple[OwnedChanges, int]:
    """Return (changes with only the values to keep, number of updates left out).

    An update is left out if all values that it sets are removed.

    Args:
        changes: the row changes.
        keep: shape (entries); True for values to keep.
    """
    if keep.all():
        return changes, 0
    emptied = emptied_updates(changes.dml, keep)
    kept = _kept(changes, ~emptied, keep & ~emptied[changes.dml.change_of])
    return kept, int(np.count_nonzero(emptied))


def keep_changes(changes: OwnedChanges, stays: Flags) -> OwnedChanges:
    """Return some of the row changes, with all their values.

    Args:
        changes: the row changes.
        stays: shape (changes); True for changes to keep.
    """
    return _kept(changes, stays, stays[changes.dml.change_of])


def _kept(changes: OwnedChanges, stays: Flags, keep: Flags) -> OwnedChanges:
    """Return the changes `stays` with their entries `keep`."""
    dml = changes.dml
    counts = np.bincount(dml.change_of[keep], minlength=dml.kind.size)[stays]
    kept = dml._replace(
        **{name: getattr(dml, name)[stays] for name in ONE_PER_CHANGE},
        entry_first=first_rows(counts.astype(np.int32)),
        values=_kept_values(dml, keep),
    )
    return OwnedChanges(kept, np.concatenate([[0], np.cumsum(stays)])[changes.first])


def _kept_values(dml: DmlColumns, keep: Flags) -> ColumnTable:
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


def emptied_updates(dml: DmlColumns, keep: Flags) -> Flags:
    """Return True for each update that sets columns, but none of them if only the entries `keep`
    remain; shape (changes).
    """
    change_of, after = dml.change_of, dml.entries.image == Image.AFTER
    had = np.bincount(change_of[after], minlength=dml.kind.size)
    has = np.bincount(change_of[after & keep], minlength=dml.kind.size)
    emptied: Flags = (dml.kind == DmlKind.UPDATE) & (had > 0) & (has == 0)
    return emptied
