"""The applier's settings: which policy holds for a column."""

from __future__ import annotations

from typing import Any

import pytest
import structlog
import structlog.testing

from olr_pg.applier.session.applier_session import Applier
from olr_pg.applier.settings import ApplierSettings, Consistency, IncompletePolicy
from olr_pg.datatypes.mapping import OracleType
from olr_pg.datatypes.policies import Policies
from olr_pg.datatypes.temporal import DateTime, encode_timestamp
from olr_pg.wire.elements import ColumnValue
from tests.applier.seen import fails, rows


def test_the_first_pattern_that_fits_holds() -> None:
    settings = ApplierSettings(
        connect_string="", host="", port=0, table_query="",
        incomplete={"S.T.DOC": IncompletePolicy.STOP, "s.*": IncompletePolicy.NULL,
                    "*": IncompletePolicy.STOP},
    )  # fmt: skip
    assert settings.incomplete_policy("S.T", "DOC") is IncompletePolicy.STOP
    assert settings.incomplete_policy("S.T", "OTHER") is IncompletePolicy.NULL
    assert settings.incomplete_policy("U.T", "DOC") is IncompletePolicy.STOP


def test_without_a_pattern_the_value_is_null() -> None:
    settings = ApplierSettings(connect_string="", host="", port=0, table_query="")
    assert settings.incomplete_policy("S.T", "DOC") is IncompletePolicy.NULL


Replication = Any  # tests/applier/conftest.py


def test_text_policies(replication: Replication) -> None:
    r = replication
    r.transaction(r.insert({"ID": 1, "V": b"a\0b"}), r.insert({"ID": 2, "V": b"x\xffy"}))
    r.apply(policies=Policies(nul="replace"))
    assert rows(r) == [(1, None, "a\ufffdb"), (2, None, "x\ufffdy")]
    r.transaction(r.insert({"ID": 3, "V": b"a\0b"}))
    r.serve()
    assert fails(r, policies=Policies(nul="error")).code == 5010


@pytest.mark.parametrize("consistency", list(Consistency))
def test_values_that_a_policy_changes_are_counted(
    replication: Replication, consistency: Consistency
) -> None:
    r = replication
    r.execute("CREATE TABLE s.w (id int PRIMARY KEY, d timestamp)")
    times = [encode_timestamp(DateTime(2026, 1, 2, 3, 4, 5, rest)) for rest in (1000, 1001)]
    r.transaction(
        *(r.insert({"ID": i, "V": value}) for i, value in enumerate([b"a\0b", b"c", b"x\xffy"])),
        *(
            r.insert({"ID": i, "D": ColumnValue("D", OracleType.TIMESTAMP, value=value)}, "W")
            for i, value in enumerate(times)
        ),
    )
    r.transaction(r.update({"ID": 1}, {"V": b"\0"}))
    applier = Applier(r.settings(consistency=consistency))  # all in one batch
    with structlog.testing.capture_logs() as events:
        applier.run(once=True, drained=r.script.complete.is_set)
    assert {table.name: table.altered for table in applier.tables} == {"S.T": 3, "S.W": 1}
    told = [
        {key: event[key] for key in ("column", "nul", "undecodable", "truncated") if key in event}
        for event in events
        if "policies" in event["event"]
    ]
    assert sorted(told, key=str) == [
        {"column": "D", "truncated": 1},
        {"column": "V", "nul": 2, "undecodable": 1},
    ]
