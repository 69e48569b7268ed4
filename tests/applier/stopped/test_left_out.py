"""A table stops if the appliance ran without it: its changes since then are missing."""

from __future__ import annotations

from typing import Any

import pytest

from olr_pg.applier.batches.replay import replay
from olr_pg.applier.session.applier_session import Applier
from olr_pg.applier.session.handover import Created
from olr_pg.applier.stopped.error_table import read_errors, skip_error
from olr_pg.applier.stopped.pausing import pause_table, unpause_table
from olr_pg.applier.target.connection import connect
from olr_pg.datatypes.mapping import OracleType
from olr_pg.dictionary.model import Column, KeyKind, Table
from olr_pg.errors import Code, OlrPgError

Replication = Any  # tests/applier/conftest.py

_ID = Column("ID", 1, 1, 1, OracleType.NUMBER, 22, 9, 0, nullable=False)
_T, _R = (
    Table("S", name, number, number, (_ID,), key_kind=KeyKind.PRIMARY, key=(1,))
    for number, name in enumerate(("T", "R"), 1)
)


@pytest.fixture
def narrowed(replication: Replication) -> Replication:
    """Both tables were replicated, then only ``T``."""
    r = replication
    r.execute("CREATE TABLE s.r (id bigint PRIMARY KEY)")
    r.transaction(r.insert({"ID": 1}), r.insert({"ID": 1}, "R"))
    r.apply([_T, _R])
    r.transaction(r.insert({"ID": 2}))  # and a change of R, which nobody delivers
    r.serve()
    r.apply([_T])
    r.transaction(r.insert({"ID": 3}), r.insert({"ID": 3}, "R"))
    r.serve()
    return r


def _stops(r: Replication) -> int:
    with pytest.raises(OlrPgError) as stopped:
        r.apply([_T, _R])
    assert stopped.value.code == Code.TABLES_STOPPED
    assert "OLR-05030" in str(stopped.value)
    with connect(r.target) as connection:
        (error,) = read_errors(connection, "olr_pg", resolved=False)
    assert (error.source_table, error.code) == ("S.R", Code.TABLE_WAS_LEFT_OUT)
    return error.id


def _ids(r: Replication, table: str) -> list[int]:
    return [one for (one,) in r.rows(f"SELECT id FROM s.{table} ORDER BY id")]


def test_it_stops_and_the_others_go_on(narrowed: Replication) -> None:
    _stops(narrowed)
    assert _ids(narrowed, "t") == [1, 2, 3]
    assert _ids(narrowed, "r") == [1]


def test_neither_a_retry_nor_a_restart_resumes_it(narrowed: Replication) -> None:
    _stops(narrowed)
    with connect(narrowed.target) as connection:
        error = replay(connection, narrowed.settings(), "S.R").error
    assert error is not None
    assert error.code == Code.TABLE_WAS_LEFT_OUT
    narrowed.serve()
    _stops(narrowed)
    assert _ids(narrowed, "r") == [1]


def test_a_skipped_gap_is_one_that_an_operator_accepted(narrowed: Replication) -> None:
    number = _stops(narrowed)
    with connect(narrowed.target) as connection:
        skip_error(connection, "olr_pg", number)
        assert replay(connection, narrowed.settings(), "S.R").error is None
    assert _ids(narrowed, "r") == [1, 3]
    narrowed.transaction(narrowed.insert({"ID": 4}, "R"))
    narrowed.serve()
    narrowed.apply([_T, _R])
    assert _ids(narrowed, "r") == [1, 3, 4]


def test_a_paused_table_has_its_error_too(narrowed: Replication) -> None:
    with connect(narrowed.target) as connection:
        pause_table(connection, "olr_pg", "S.R", "s.r")
    narrowed.apply([_T, _R])
    with connect(narrowed.target) as connection:
        unpause_table(connection, "olr_pg", "S.R")
        error = replay(connection, narrowed.settings(), "S.R").error
        assert error is not None
        (line,) = read_errors(connection, "olr_pg", resolved=False)
        skip_error(connection, "olr_pg", line.id)
        assert replay(connection, narrowed.settings(), "S.R").error is None
    assert _ids(narrowed, "r") == [1, 3]


def test_a_new_table_of_its_name_lacks_nothing(narrowed: Replication) -> None:
    settings = narrowed.settings()
    created = {"S.R": Created(scn=1 << 40, start_scn=0, obj=2)}
    Applier(settings, [_T, _R], created=created).run(
        once=True, drained=narrowed.script.complete.is_set
    )
    assert _ids(narrowed, "r") == [1, 3]


def test_without_a_list_nothing_is_known_to_be_missing(replication: Replication) -> None:
    r = replication
    r.transaction(r.insert({"ID": 1}))
    r.apply([_T])
    r.transaction(r.insert({"ID": 2}))
    r.serve()
    r.apply()
    r.transaction(r.insert({"ID": 3}))
    r.serve()
    r.apply([_T])
    assert _ids(r, "t") == [1, 2, 3]
