"""Row changes and columns that are left out of finished transactions."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from olr_pg.transactions.finished_columns import (
    DmlColumns,
    DmlKind,
    OwnedChanges,
    TransactionColumns,
)
from olr_pg.transactions.left_out import (
    keep_entries,
    kept_changes,
    leave_columns_out,
    leave_out,
    spelled_out,
)
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


COLUMN_FIRST: Final = np.array([0, 3, 5], np.int64)
"""Table 0 has three columns, table 1 two."""


def test_what_the_piece_does_not_reach_is_null() -> None:
    dml = dml_of([
        Change(DmlKind.INSERT, 0, stored=(b"a", None)), Change(DmlKind.INSERT, 1),
        Change(DmlKind.INSERT, 1, stored=(b"b", b"cc")), Change(DmlKind.INSERT, 0, stored=(b"d",)),
    ])  # fmt: skip
    spelled = spelled_out(dml, COLUMN_FIRST)
    assert shown(spelled) == [
        (0, {}, {0: b"a", 1: None, 2: None}), (1, {}, {}), (2, {}, {0: b"b", 1: b"cc"}),
        (3, {}, {0: b"d", 1: None, 2: None}),
    ]  # fmt: skip
    assert spelled.values.length.tolist() == [1, -1, -1, 1, 2, 1, -1, -1]
    assert (spelled.values.next == -1).all()
    assert (spelled.stored_first < 0).all()


def test_others_stay_as_they_are_with_the_further_parts_of_their_values() -> None:
    update = Change(DmlKind.UPDATE, 1, {0: b"old"}, {1: b"begin", 0: None})
    dml = dml_of(
        [Change(DmlKind.INSERT, 0, stored=(b"x",)), update, Change(DmlKind.INSERT, 1, stored=())],
        parts={1: b"-end"},
    )
    assert shown(spelled_out(dml, COLUMN_FIRST)) == [
        (0, {}, {0: b"x", 1: None, 2: None}),
        (1, {0: b"old"}, {1: b"begin-end", 0: None}),
        (2, {}, {0: None, 1: None}),
    ]


def test_where_nothing_is_stored_nothing_is_copied() -> None:
    dml = dml_of([Change(DmlKind.DELETE, 0, {0: b"a"})])
    assert spelled_out(dml, COLUMN_FIRST) is dml


VALUED_CHANGES: Final = [
    Change(DmlKind.INSERT, after={0: b"a", 1: b"b"}),
    Change(DmlKind.UPDATE, before={0: b"k"}, after={1: b"long"}),
    Change(DmlKind.UPDATE, before={0: b"m"}, after={0: b"n", 1: b"o"}),
]
DML_FIRST: Final = np.array([0, 1, 3], np.int64)
"""One change in the first transaction, two in the second."""


def without_column(column: int) -> tuple[list[object], list[int], int]:
    dml = dml_of(VALUED_CHANGES, parts={0: b"+", 5: b"!"})
    (kept, first), emptied = keep_entries(
        OwnedChanges(dml, DML_FIRST), dml.entries.column != column
    )
    return [*shown(kept)], first.tolist(), emptied


def test_further_parts_go_with_the_values_that_stay() -> None:
    changes, first, emptied = without_column(1)
    assert changes == [(0, {}, {0: b"a+"}), (2, {0: b"m"}, {0: b"n!"})]
    assert (first, emptied) == ([0, 1, 2], 1)


def test_an_update_that_still_sets_something_stays() -> None:
    changes, first, emptied = without_column(0)
    assert changes == [(0, {}, {1: b"b"}), (1, {}, {1: b"long"}), (2, {}, {1: b"o"})]
    assert (first, emptied) == ([0, 1, 3], 0)


def test_an_update_that_set_nothing_before_stays() -> None:
    dml = dml_of([Change(DmlKind.UPDATE, before={0: b"k", 1: b"l"})])
    changes = OwnedChanges(dml, np.array([0, 1]))
    kept, emptied = keep_entries(changes, dml.entries.column == 0)
    assert (shown(kept.dml), emptied) == ([(0, {0: b"k"}, {})], 0)


def test_where_all_stay_nothing_is_copied() -> None:
    changes = OwnedChanges(dml_of(VALUED_CHANGES), DML_FIRST)
    kept, emptied = keep_entries(changes, np.ones(6, np.bool_))
    assert (kept is changes, emptied) == (True, 0)
