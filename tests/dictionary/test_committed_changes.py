"""Dictionary transactions sort as they were committed, and name operations as row changes do."""

from __future__ import annotations

import pytest

from olr_pg.dictionary.committed_changes import DictionaryTransaction, Statement, SysRowOperation
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


@pytest.mark.parametrize(
    ("text", "words", "without_comments"),
    [
        ("drop /* a 'b */ table t -- it's", "DROP   TABLE T  ", "drop   table t  "),
        ("values ('--x', '/*', 'it''s') y", "VALUES ( ,  ,  ) Y", None),
        ("values (q'[a'b]', Q'!--!', nq'{}') y", "VALUES ( ,  , N ) Y", None),
        ('table "a--b" /* " */ z', 'TABLE ""   Z', 'table "a--b"   z'),
        ("a / b - c /* open", "A / B - C /* OPEN", None),
    ],
)
def test_comments_literals_and_quoted_names_are_no_words(
    text: str, words: str, without_comments: str | None
) -> None:
    made = Statement(15, 7, "APP", "T", text, 5)
    assert made.words == words
    assert made.without_comments == (without_comments or text)
