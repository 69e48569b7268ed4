"""Changes of the dictionary leave once, in commit order, whatever is decoded again."""

from __future__ import annotations

from olr_pg.dictionary.committed_changes import DictionaryTransaction
from olr_pg.ordering.merger import DictionaryOrder


def transaction(commit_scn: int, block: int = 2) -> DictionaryTransaction:
    return DictionaryTransaction(
        con_id=0,
        xid=commit_scn,
        begin_scn=commit_scn - 5,
        commit_scn=commit_scn,
        position=(1, 7, block, 16),
        changes=(),
        statements=(),
    )


def test_they_leave_in_commit_order_below_the_limit() -> None:
    order = DictionaryOrder()
    for scn, block in ((30, 2), (20, 9), (20, 4), (10, 2)):
        order.take(transaction(scn, block))
    order.release(30)
    assert [(t.commit_scn, t.position[2]) for t in order.left] == [(10, 2), (20, 4), (20, 9)]
    assert order.commit_scns == [30]
    assert order.begin_scns == [25]


def test_what_is_decoded_again_does_not_leave_twice() -> None:
    order = DictionaryOrder()
    order.take(transaction(10))
    saved = order.saved()
    order.release(20)
    order.go_back(saved)
    order.take(transaction(12))
    assert [t.commit_scn for t in order.before(20)] == [10, 12]
    order.release(20)
    assert [t.commit_scn for t in order.left] == [12]


def test_what_a_resetlogs_gave_up_never_leaves() -> None:
    order = DictionaryOrder()
    order.take(transaction(10))
    order.take(transaction(20))
    order.abandon(20)
    order.release(100)
    assert [t.commit_scn for t in order.left] == [10]
