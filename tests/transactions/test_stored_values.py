"""Rows as their piece stores them, spelled out like all others."""

from __future__ import annotations

from typing import Final

import numpy as np

from olr_pg.transactions.finished_columns import DmlKind
from olr_pg.transactions.stored_values import spelled_out
from tests.transactions.dml_model import Change, dml_of, shown

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
