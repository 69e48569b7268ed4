"""Changes of several tables in one selection: which table each is of."""

from __future__ import annotations

from typing import Any

import pytest

from olr_pg.applier.batches.spool import by_table, count_by_table, rows_of
from tests.applier.conftest import Replication


@pytest.fixture
def two_tables(tmp_path: Any) -> Replication:
    """Transactions 1 and 2 of tables U and T, which need no target."""
    made = Replication("", tmp_path)
    made.transaction(
        made.insert({"ID": 1}, "U"), made.insert({"ID": 2}), made.insert({"ID": 3}, "U"),
        xid=1, scn=10,
    )  # fmt: skip
    made.transaction(made.insert({"ID": 4}), xid=2, scn=20)
    return made


def test_each_table_has_its_changes_in_order(two_tables: Replication) -> None:
    found = by_table(two_tables.selection())
    assert [(name, part.commit_scn.tolist()) for name, part in found] == [
        ("S.U", [10, 10]), ("S.T", [10, 20]),
    ]  # fmt: skip


def test_they_are_counted_over_selections(two_tables: Replication) -> None:
    selections = [two_tables.selection(0, 1), two_tables.selection()]
    assert count_by_table(selections) == {"S.U": 4, "S.T": 3}


def test_changes_of_a_transaction_and_a_table(two_tables: Replication) -> None:
    selection = two_tables.selection()
    assert rows_of(selection, "S.U", 10, 1).tolist() == [0, 2]
    assert rows_of(selection, "S.T", 20, 2).tolist() == [3]
    assert rows_of(selection, "S.U", 20, 2).tolist() == []
    assert rows_of(selection, "S.T", 10, 2).tolist() == []
