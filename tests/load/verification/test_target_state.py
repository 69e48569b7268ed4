"""A live source that has not come to the target's SCN is waited for, but not for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from olr_pg.dictionary.model import Table
from olr_pg.errors import Code, OlrPgError
from olr_pg.load.table_data import SourceTable, TableData
from olr_pg.load.verification.target_state import SourceArrival
from olr_pg.oracle.facts import ReadableScn

if TYPE_CHECKING:
    from collections.abc import Callable


def source_at(scn: int, reached: Callable[[], ReadableScn] | None) -> SourceTable:
    data = TableData(pa.schema([]), (), 0, scn, scn, "", reached=reached)
    return SourceTable(Table("S", "T", 1, 1, ()), data, scn, scn)


def asked_of(*answers: int) -> tuple[Callable[[], ReadableScn], list[int]]:
    left = list(answers)
    return (lambda: ReadableScn(left.pop(0), is_standby=False)), left


def test_a_source_that_comes_to_it_is_waited_for() -> None:
    reached, left = asked_of(11, 19, 25, 99)
    arrival = SourceArrival()
    arrival.wait_for(source_at(10, reached), 20)
    assert left == [99]
    # What it has come to is known for the next table.
    arrival.wait_for(source_at(10, reached), 25)
    assert left == [99]


def test_one_that_is_further_or_has_no_other_time_is_not_asked() -> None:
    reached, left = asked_of(1)
    SourceArrival(0).wait_for(source_at(20, reached), 20)
    SourceArrival(0).wait_for(source_at(10, None), 20)
    assert left == [1]


def test_one_that_does_not_come_to_it_is_told_with_both_scns() -> None:
    arrival = SourceArrival(0)
    for _ in range(2):
        with pytest.raises(OlrPgError) as caught:
            arrival.wait_for(source_at(10, asked_of(12)[0]), 20)
        assert caught.value.code is Code.SCN_NOT_REACHED
        assert caught.value.where == {"table": "S.T"}
        assert "commit SCN 20, but the source has only reached SCN 12" in caught.value.detail


def test_a_standby_that_lags_is_no_other_source() -> None:
    lagging = source_at(10, lambda: ReadableScn(12, is_standby=True))
    for arrival in (SourceArrival(0), SourceArrival(0, Code.TARGET_AHEAD_OF_SOURCE)):
        with pytest.raises(OlrPgError) as caught:
            arrival.wait_for(lagging, 20)
        assert caught.value.code is Code.STANDBY_LAGS
    with pytest.raises(OlrPgError) as caught:
        SourceArrival(0, Code.TARGET_AHEAD_OF_SOURCE).wait_for(source_at(10, asked_of(12)[0]), 20)
    assert caught.value.code is Code.TARGET_AHEAD_OF_SOURCE
