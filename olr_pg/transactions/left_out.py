"""Leaves row changes, and columns of them, out of finished transactions."""

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
    """The rest of finished transactions.

    Attributes:
        transactions, dml: without these rows, and without transactions that have none left.
        rows: shape (tables, 3); row changes that were left out: inserts, deletes, updates.
    """

    transactions: TransactionColumns
    dml: DmlColumns
    rows: I64


def leave_out(
    transactions: TransactionColumns, dml: DmlColumns, dropped: npt.NDArray[np.bool_]
) -> Remaining:
    """Leave the row changes of some tables and kinds out of the transactions.

    Args:
        dropped: shape (tables, 3); for inserts, deletes, updates.
    """
    kind = dml.kind.astype(np.int64) - DmlKind.INSERT
    gone = dropped[dml.table, kind]
    rows = np.zeros(dropped.shape, np.int64)
    np.add.at(rows, (dml.table[gone], kind[gone]), 1)
    return Remaining(*kept_changes(transactions, dml, ~gone), rows)


def kept_changes(
    transactions: TransactionColumns, dml: DmlColumns, kept: npt.NDArray[np.bool_]
) -> tuple[TransactionColumns, DmlColumns]:
    """Keep some of the row changes, and the transactions that have any of them.

    Args:
        kept: shape (changes).
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
    """Leave out the values of some columns, and updates that set nothing else.

    Args:
        table_column: shape (tables + 1); running number of each table's delivered columns.
        left: shape (columns); whether each is left out.
    """
    dml = spelled_out(dml, table_column)
    table_of = np.repeat(dml.table, np.diff(dml.entry_first))
    keep = ~left[table_column[table_of] + dml.entries.column]
    dml, first, _ = keep_entries(dml, transactions.dml_first, keep)
    return _filled(transactions, first), dml


def _filled(transactions: TransactionColumns, first: I64) -> TransactionColumns:
    """Return the transactions that have rows, which begin at `first` now."""
    filled = np.flatnonzero(np.diff(first))
    columns = {
        name: column[filled]
        for name, column in transactions._asdict().items()
        if name != "dml_first"
    }
    # An emptied transaction begins where the next one does.
    columns["dml_first"] = np.concatenate([first[filled], first[-1:]])
    return TransactionColumns(**columns)


def _rows(dml: DmlColumns, kept: I64) -> DmlColumns:
    """Return some of the row changes with their values."""
    sizes = np.diff(dml.entry_first)
    is_kept = np.zeros(len(sizes), np.bool_)
    is_kept[kept] = True
    rows = {name: getattr(dml, name)[kept] for name in ONE_PER_CHANGE}
    return dml._replace(
        **rows,
        entry_first=first_rows(sizes[kept]),
        values=kept_values(dml, np.repeat(is_kept, sizes)),
    )
