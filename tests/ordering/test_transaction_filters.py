"""Transactions that filters leave out, by what is known of their session by then."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from olr_pg.decoding.filters import Filters
from olr_pg.errors import Code, OlrPgError
from olr_pg.ordering.transaction_filters import TransactionFilters, count_left_out
from olr_pg.redo.commit_position import CommitPosition
from olr_pg.redo.events import NO_TRANSACTION_USN
from olr_pg.redo.sessions import SessionAttributes, SessionKey
from olr_pg.transactions.finished import Account
from olr_pg.transactions.row_fault import RowFault

OF_BATCH = Filters(sessions={"program": ("batch*",)})
OF_XID = Filters(xids=frozenset({2}))


def columns(*rows: tuple[int, int, int, int]) -> Any:
    """Of transactions those columns that filters look at: XID, thread, session, serial."""
    xid, thread, session, serial = (np.array(values) for values in zip(*rows, strict=True))
    return SimpleNamespace(
        xid=xid.astype(np.uint64), commit_thread=thread, session=session, serial=serial,
        dml_first=np.arange(0, 3 * len(rows) + 1, 3),
    )  # fmt: skip


def fault(xid: int, thread: int, session: int, serial: int) -> RowFault:
    return RowFault(
        con_id=3, xid=xid, begin_scn=90, commit_scn=101, serial=serial,
        position=CommitPosition(0, thread, 7, 2, 16), session=session, table=0,
        error=OlrPgError(Code.CHANGE_UNDECODABLE, "test"),
    )  # fmt: skip


def with_session(filters: TransactionFilters, thread: int, program: str) -> TransactionFilters:
    key = SessionKey(thread, 40, 7)
    filters.sessions.add({key: SessionAttributes(program=program)})
    return filters


def test_without_filters_everything_is_delivered() -> None:
    filters = TransactionFilters(view_filters=[Filters(exclude=("A.B",))])
    assert filters.delivered(columns((1, 1, 40, 7), (2, 1, 0, 0)), 0).tolist() == [True, True]
    assert not filters.drop(fault(1, 1, 40, 7))


def test_a_session_that_nobody_announced_is_delivered() -> None:
    filters = TransactionFilters(OF_BATCH)
    assert filters.delivered(columns((1, 1, 40, 7)), 0).tolist() == [True]
    with_session(filters, 1, "batch.exe")
    assert filters.delivered(columns((1, 1, 40, 7), (2, 1, 40, 8)), 0).tolist() == [False, True]


def test_the_session_of_the_threads_own_instance_counts_before_another_ones() -> None:
    filters = with_session(TransactionFilters(OF_BATCH), 1, "batch.exe")
    assert filters.drop(fault(9, 2, 40, 7)), "announced in the other thread alone"
    with_session(filters, 2, "clerk.exe")
    assert not filters.drop(fault(9, 2, 40, 7))
    assert filters.drop(fault(9, 1, 40, 7))


def test_a_view_has_its_own_filters_beside_those_of_all() -> None:
    filters = with_session(TransactionFilters(OF_XID, [OF_BATCH, Filters()]), 1, "batch.exe")
    found = columns((1, 1, 40, 7), (2, 1, 41, 7), (3, 1, 41, 7))
    assert filters.delivered(found, 0).tolist() == [False, False, True]
    assert filters.delivered(found, 1).tolist() == [True, False, True]
    assert not filters.drop(fault(1, 1, 40, 7)), "a fault is left out for all, or for nobody"


def test_a_fault_of_no_transaction_is_never_left_out() -> None:
    nobody = NO_TRANSACTION_USN << 48 | 77
    filters = TransactionFilters(Filters(xids=frozenset({nobody, 2})))
    assert not filters.drop(fault(nobody, 1, 0, 0))
    assert filters.drop(fault(2, 1, 0, 0))


def test_what_is_left_out_moves_in_the_account() -> None:
    account = Account(rows=9, committed=3)
    found = columns((1, 1, 0, 0), (2, 1, 0, 0), (3, 1, 0, 0))
    count_left_out(account, found, np.array([True, False, False]))
    assert (account.rows, account.rows_filtered) == (3, 6)
    assert (account.committed, account.transactions_filtered) == (1, 2)
    count_left_out(account, found, np.array([True, True, True]))
    assert (account.rows, account.committed) == (3, 1)
