"""Row changes without some of their values."""

from __future__ import annotations

from typing import Final

import numpy as np

from olr_pg.transactions.dropped_values import keep_entries
from olr_pg.transactions.finished_columns import DmlKind, OwnedChanges
from tests.transactions.dml_model import Change, dml_of, shown

CHANGES: Final = [
    Change(DmlKind.INSERT, after={0: b"a", 1: b"b"}),
    Change(DmlKind.UPDATE, before={0: b"k"}, after={1: b"long"}),
    Change(DmlKind.UPDATE, before={0: b"m"}, after={0: b"n", 1: b"o"}),
]
DML_FIRST: Final = np.array([0, 1, 3], np.int64)
"""One change in the first transaction, two in the second."""


def without_column(column: int) -> tuple[list[object], list[int], int]:
    dml = dml_of(CHANGES, parts={0: b"+", 5: b"!"})
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
    changes = OwnedChanges(dml_of(CHANGES), DML_FIRST)
    kept, emptied = keep_entries(changes, np.ones(6, np.bool_))
    assert (kept is changes, emptied) == (True, 0)
