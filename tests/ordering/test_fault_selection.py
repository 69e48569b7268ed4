"""Which faults concern a client, hide the dictionary, or end what is delivered."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from olr_pg.errors import Code, OlrPgError
from olr_pg.ordering.merger import ends_delivery, is_delivered, is_followed, without_dropped
from olr_pg.redo.commit_position import CommitPosition
from olr_pg.transactions.lobs.lost_values import LostLob
from olr_pg.transactions.row_fault import RowFault

USERS, SYS = 0, 1
PLAN: Any = SimpleNamespace(
    delivered=np.array([True, False]), followed=np.array([False, True])
)  # fmt: skip
EVERYTHING: Any = SimpleNamespace(delivered=np.zeros(0), followed=np.zeros(0))


def follower(*, ends: bool) -> Any:
    return SimpleNamespace(snapshot_scn=lambda con_id: 100, ends_delivery=ends)


def fault(table: int, commit_scn: int = 101, lobs: tuple[LostLob, ...] = ()) -> RowFault:
    return RowFault(
        con_id=3, xid=7, begin_scn=90, commit_scn=commit_scn, serial=0,
        position=CommitPosition(0, 1, 7, 2, 16), session=0, table=table,
        error=OlrPgError(Code.CHANGE_UNDECODABLE, "test"), lobs=lobs,
    )  # fmt: skip


def test_only_faults_of_delivered_tables_are_a_clients() -> None:
    assert is_delivered(fault(USERS), PLAN)
    assert not is_delivered(fault(SYS), PLAN)
    assert is_delivered(fault(SYS), EVERYTHING)


@pytest.mark.parametrize(("commit_scn", "hides"), [(100, False), (101, True)])
def test_the_snapshot_knows_what_committed_before_it(commit_scn: int, *, hides: bool) -> None:
    assert is_followed(fault(SYS, commit_scn), PLAN, follower(ends=False)) is hides
    assert not is_followed(fault(SYS, commit_scn), PLAN, None)
    assert not is_followed(fault(USERS, commit_scn), PLAN, follower(ends=False))


def test_a_fault_ends_the_delivery_where_nobody_stops_its_table() -> None:
    assert ends_delivery(fault(USERS), PLAN, None)
    assert ends_delivery(fault(USERS), PLAN, follower(ends=True))
    assert not ends_delivery(fault(USERS), PLAN, follower(ends=False))
    assert ends_delivery(fault(SYS), PLAN, follower(ends=False))


def test_a_lob_value_that_is_left_out_never_ends_the_delivery() -> None:
    lost: Any = SimpleNamespace()
    assert not ends_delivery(fault(USERS, lobs=(lost,)), PLAN, None)


def test_lob_values_of_dropped_changes_are_no_fault() -> None:
    gone: Any = SimpleNamespace(without=lambda _: None)
    stays: Any = SimpleNamespace(without=lambda _: stays)
    dropped = np.zeros((2, 3), np.bool_)
    assert without_dropped(fault(USERS, lobs=(gone,)), dropped) is None
    left = without_dropped(fault(USERS, lobs=(gone, stays)), dropped)
    assert left is not None
    assert left.lobs == (stays,)
    of_rows = fault(USERS)
    assert without_dropped(of_rows, dropped) is of_rows
