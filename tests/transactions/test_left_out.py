"""Row changes and columns that are left out of finished transactions."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from olr_pg.transactions.finished_columns import DmlColumns, DmlKind, TransactionColumns
from olr_pg.transactions.left_out import kept_changes, leave_columns_out, leave_out
from tests.transactions.dml_model import Change, dml_of, shown

INSERT, DELETE, UPDATE = DmlKind.INSERT, DmlKind.DELETE, DmlKind.UPDATE
CHANGES: Final = [
    Change(INSERT, 0, after={0: b"a"}),
    Change(DELETE, 1, before={0: b"b"}),
    Change(UPDATE, 1, before={0: b"c"}, after={1: b"d"}),
    Change(INSERT, 1, stored=(b"e", b"f")),
]
FIRST: Final = (0, 1, 2, 4)
"""The first change is a transaction, the second too, the others are one."""


def transactions() -> TransactionColumns:
    columns: dict[str, Any] = {name: np.arange(3) for name in TransactionColumns._fields}
    return TransactionColumns(**columns | {"dml_first": np.array(FIRST, np.int64)})


def by_transaction(found: tuple[TransactionColumns, DmlColumns]) -> dict[int, list[int]]:
    """The SCNs of the changes of each transaction that is left."""
    kept, dml = found
    bounds = kept.dml_first.tolist()
    return {
        int(xid): dml.scn[low:high].tolist()
        for xid, low, high in zip(kept.xid, bounds, bounds[1:], strict=False)
    }


def test_kinds_of_changes_of_some_tables_are_left_out_and_counted() -> None:
    dropped = np.array([[True, True, False], [False, True, False]])
    left = leave_out(transactions(), dml_of(CHANGES), dropped)
    assert by_transaction((left.transactions, left.dml)) == {2: [2, 3]}
    assert left.rows.tolist() == [[1, 0, 0], [0, 1, 0]]
    assert shown(left.dml)[0] == (2, {0: b"c"}, {1: b"d"})


def test_transactions_without_a_change_leave() -> None:
    kept = np.array([True, False, False, True])
    assert by_transaction(kept_changes(transactions(), dml_of(CHANGES), kept)) == {0: [0], 2: [3]}
    nothing = np.zeros(4, np.bool_)
    assert by_transaction(kept_changes(transactions(), dml_of(CHANGES), nothing)) == {}


def test_columns_are_left_out_with_updates_of_nothing_else() -> None:
    table_column = np.array([0, 1, 3], np.int64)
    left = np.array([False, False, True])
    kept, dml = leave_columns_out(transactions(), dml_of(CHANGES), table_column, left)
    assert by_transaction((kept, dml)) == {0: [0], 1: [1], 2: [3]}
    assert shown(dml) == [(0, {}, {0: b"a"}), (1, {0: b"b"}, {}), (3, {}, {0: b"e"})]
