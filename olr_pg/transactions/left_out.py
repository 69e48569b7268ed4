"""Removes row changes, or some of their columns, from finished transactions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.transactions.dropped_values import ONE_PER_CHANGE, keep_entries, kept_values
from olr_pg.transactions.finished_columns import DmlColumns, DmlKind, TransactionColumns
from olr_pg.transactions.select import first_rows
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
    running = np.concatenate([[0], np.cumsum(kept)])
    first = running[transactions.dml_first]
    return _filled(transactions, first), _rows(dml, np.flatnonzero(kept))


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
    table_of = np.repeat(dml.table, np.diff(dml.entry_first))
    keep = ~left[table_column[table_of] + dml.entries.column]
    dml, first, _ = keep_entries(dml, transactions.dml_first, keep)
    return _filled(transactions, first), dml


def _filled(transactions: TransactionColumns, first: I64) -> TransactionColumns:
    """Return the transactions that still contain row changes. `first` are the new indexes of each
    transaction's first change.
    """
    filled = np.flatnonzero(np.diff(first))
    columns = {
        name: column[filled]
        for name, column in transactions._asdict().items()
        if name != "dml_first"
    }
    # The index of a transaction without changes is equal to that of the next one.
    columns["dml_first"] = np.concatenate([first[filled], first[-1:]])
    return TransactionColumns(**columns)


def _rows(dml: DmlColumns, kept: I64) -> DmlColumns:
    """Return the row changes `kept` with their values."""
    sizes = np.diff(dml.entry_first)
    is_kept = np.zeros(len(sizes), np.bool_)
    is_kept[kept] = True
    rows = {name: getattr(dml, name)[kept] for name in ONE_PER_CHANGE}
    return dml._replace(
        **rows,
        entry_first=first_rows(sizes[kept]),
        values=kept_values(dml, np.repeat(is_kept, sizes)),
    )
