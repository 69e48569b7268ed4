"""Plans: tables and columns that are missing, or of another type."""

from __future__ import annotations

from typing import Any

from olr_pg.wire.elements import ColumnValue
from tests.applier.seen import errors, fails, rows

Replication = Any  # tests/applier/conftest.py


def _other(r: Replication) -> None:
    r.execute("CREATE TABLE s.o (id int PRIMARY KEY)")


def test_missing_table_and_missing_column(replication: Replication) -> None:
    r = replication
    r.transaction(r.insert({"ID": 1}, "NOWHERE"), r.insert({"ID": 1, "N": 1, "EXTRA": "x"}))
    _other(r)
    r.transaction(r.insert({"ID": 1}, "O"))
    error = fails(r)
    assert (error.code, error.exit_code) == (5010, 6)
    assert sorted(row[0:1] + row[4:5] for row in errors(r)) == [("S.NOWHERE", 5005), ("S.T", 5006)]
    assert rows(r, "s.o") == [(1,)]
    r.execute("ALTER TABLE s.t ADD extra text; CREATE TABLE s.nowhere (id int PRIMARY KEY)")
    r.serve()
    r.apply()
    assert rows(r) == [(1, 1, None, "x")]
    assert rows(r, "s.nowhere") == [(1,)]


def test_a_column_of_another_type(replication: Replication) -> None:
    r = replication
    r.execute("CREATE TABLE s.d (id int PRIMARY KEY, v date)")
    r.transaction(r.insert({"ID": 1, "V": "x"}, "D"))
    assert fails(r).code == 5010
    assert errors(r)[0][4] == 5007


def test_a_lob_that_is_not_chunked_is_refused_but_for_null(replication: Replication) -> None:
    r = replication
    r.execute("ALTER TABLE s.t ADD c text")
    r.transaction(r.insert({"ID": 1, "C": ColumnValue("C", 112)}))
    bad = r.transaction(r.insert({"ID": 3, "C": ColumnValue("C", 112, value=b"x")}))
    assert fails(r).code == 5010
    assert errors(r) == [("S.T", bad, 0, "insert", 5013, None, "stopped", 1)]
    assert rows(r) == [(1, None, None, None)]
