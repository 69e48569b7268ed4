"""Removes row changes, or some of their values, from finished transactions.

Before values are removed, inserted rows whose values are still in their row piece
(`DmlColumns.stored`) are converted to the form of all other row changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from olr_pg.kernels.compile import kernel
from olr_pg.redo.batch import columns_of
from olr_pg.redo.column_tables import take
from olr_pg.transactions.finished_columns import (
    VALUE,
    DmlColumns,
    DmlKind,
    Image,
    OwnedChanges,
    TransactionColumns,
)
from olr_pg.transactions.select import first_rows

if TYPE_CHECKING:
    from olr_pg.redo.column_tables import ColumnTable

I64 = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

ONE_PER_CHANGE: Final = (
    "kind", "table", "scn", "time", "sequence", "block", "offset", "dataobj", "bdba", "slot",
    "stored_first", "stored_count",
)  # fmt: skip

_AFTER = int(Image.AFTER)


class Remaining(NamedTuple):
    """Finished transactions from which row changes were removed.

    Attributes:
        transactions, dml: the remaining row changes, and the transactions that contain any of them.
        rows: shape (tables, 3); numbers of removed inserts, deletes and updates.
    """

    transactions: TransactionColumns
    dml: DmlColumns
    rows: I64


def leave_out(
    transactions: TransactionColumns, dml: DmlColumns, dropped: npt.NDArray[np.bool_]
) -> Remaining:
    """Remove the row changes of some tables and kinds from the transactions.

    Args:
        dropped: shape (tables, 3); True if inserts, deletes or updates of the table are removed.
    """
    kind = dml.kind.astype(np.int64) - DmlKind.INSERT
    gone = dropped[dml.table, kind]
    rows = np.zeros(dropped.shape, np.int64)
    np.add.at(rows, (dml.table[gone], kind[gone]), 1)
    return Remaining(*kept_changes(transactions, dml, ~gone), rows)


def kept_changes(
    transactions: TransactionColumns, dml: DmlColumns, kept: npt.NDArray[np.bool_]
) -> tuple[TransactionColumns, DmlColumns]:
    """Return some of the row changes, and the transactions that contain any of them.

    Args:
        kept: shape (changes); True for changes to keep.
    """
    return _of(transactions, keep_changes(OwnedChanges(dml, transactions.dml_first), kept))


def leave_columns_out(
    transactions: TransactionColumns,
    dml: DmlColumns,
    table_column: I64,
    left: npt.NDArray[np.bool_],
) -> tuple[TransactionColumns, DmlColumns]:
    """Remove the values of some columns, and the updates that set only such columns.

    Args:
        table_column: shape (tables + 1); the number of each table's first delivered column, if the
            delivered columns of all tables are numbered one after the other.
        left: shape (columns); True for columns to remove.
    """
    dml = spelled_out(dml, table_column)
    keep = ~left[table_column[dml.table[dml.change_of]] + dml.entries.column]
    kept, _ = keep_entries(OwnedChanges(dml, transactions.dml_first), keep)
    return _of(transactions, kept)


def _of(
    transactions: TransactionColumns, changes: OwnedChanges
) -> tuple[TransactionColumns, DmlColumns]:
    """Return the transactions that still contain row changes, together with these changes
    (`changes`).
    """
    first = changes.first
    filled = np.flatnonzero(np.diff(first))
    columns = {
        name: column[filled]
        for name, column in transactions._asdict().items()
        if name != "dml_first"
    }
    # The index of a transaction without changes is equal to that of the next one.
    columns["dml_first"] = np.concatenate([first[filled], first[-1:]])
    return TransactionColumns(**columns), changes.dml


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
