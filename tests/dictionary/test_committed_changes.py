"""Dictionary transactions sort as they were committed, and name operations as row changes do."""

from __future__ import annotations

from olr_pg.dictionary.committed_changes import DictionaryTransaction, SysRowOperation
from olr_pg.transactions.finished_columns import DmlKind


def transaction(commit_scn: int, *position: int) -> DictionaryTransaction:
    thread, sequence, block, offset = position
    return DictionaryTransaction(3, 7, 1, commit_scn, (thread, sequence, block, offset))


def test_ties_of_a_commit_scn_go_by_the_place_of_the_commit_record() -> None:
    ordered = [
        transaction(9, 2, 9, 9, 9),
        transaction(10, 1, 2, 300, 16),
        transaction(10, 1, 3, 2, 16),
        transaction(10, 2, 1, 2, 16),
    ]
    assert sorted({*ordered}, key=lambda one: one.order) == ordered


def test_operations_have_the_numbers_of_row_changes() -> None:
    assert {one.name: int(one) for one in SysRowOperation} == {
        one.name: int(one) for one in DmlKind
    }
