"""Since when stopped tables fall behind: what the hold says at the last look."""

from __future__ import annotations

import time
from typing import Any

import pytest

from olr_pg.applier.stopped.held_tables import HeldTables
from olr_pg.applier.target.connection import connect
from olr_pg.errors import OlrPgError

Replication = Any  # tests/applier/conftest.py


def test_the_first_change_that_is_held_of_each_table(replication: Replication) -> None:
    r = replication
    r.execute("CREATE TABLE s.u (id bigint PRIMARY KEY)")
    r.transaction(r.insert({"ID": 1}), r.insert({"ID": 1}, "U"), scn=10)
    r.transaction(r.insert({"ID": 2, "V": "x" * 21}), r.insert({"ID": 2}, "U"), scn=20)
    r.transaction(r.insert({"ID": 3}), scn=30)
    held = HeldTables("olr_pg")
    with pytest.raises(OlrPgError):  # the run says that a table stopped
        r.apply()
    with connect(r.target) as connection:
        held.look(connection)
    first = held.first("S.T")
    assert first is not None
    assert first.commit_scn == 20
    assert abs(first.since - time.time()) < 3_600, "seconds of Unix time"
    assert r.rows("SELECT id FROM olr_pg.error") == [(first.error_id,)]
    assert held.first("S.U") is None
    assert held.incomplete("S.T") == 0
