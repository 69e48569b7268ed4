"""Removes row changes, or some of their columns, from finished transactions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.transactions.dropped_values import keep_changes, keep_entries
from olr_pg.transactions.finished_columns import (
    DmlColumns,
    DmlKind,
    OwnedChanges,
    TransactionColumns,
)
from olr_pg.transactions.stored_values import spelled_out

I64 = npt.NDArray[np.int64]


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
