"""Plans: tables and columns that are missing, or of another type."""

from __future__ import annotations

from typing import Any

import pytest

from olr_pg.errors import OlrPgError
from olr_pg.wire.elements import ColumnValue

Replication = Any  # tests/applier/conftest.py


def _fails(replication: Replication, **options: Any) -> OlrPgError:
    with pytest.raises(OlrPgError) as caught:
        replication.apply(**options)
    return caught.value


def _errors(replication: Replication) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = replication.rows(
        "SELECT source_table, commit_scn, position, operation, code, sqlstate, resolution,"
        " attempts FROM olr_pg.error ORDER BY id"
    )
    return rows


def _rows(replication: Replication, table: str = "s.t") -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = replication.rows(f"SELECT * FROM {table} ORDER BY 1")
    return rows


def _other(r: Replication) -> None:
    r.execute("CREATE TABLE s.o (id int PRIMARY KEY)")


def test_missing_table_and_missing_column(replication: Replication) -> None:
    r = replication
    r.transaction(r.insert({"ID": 1}, "NOWHERE"), r.insert({"ID": 1, "N": 1, "EXTRA": "x"}))
    _other(r)
    r.transaction(r.insert({"ID": 1}, "O"))
    error = _fails(r)
    assert (error.code, error.exit_code) == (5010, 6)
    assert sorted(row[0:1] + row[4:5] for row in _errors(r)) == [("S.NOWHERE", 5005), ("S.T", 5006)]
    assert _rows(r, "s.o") == [(1,)]
    r.execute("ALTER TABLE s.t ADD extra text; CREATE TABLE s.nowhere (id int PRIMARY KEY)")
    r.serve()
    r.apply()
    assert _rows(r) == [(1, 1, None, "x")]
    assert _rows(r, "s.nowhere") == [(1,)]


def test_a_column_of_another_type(replication: Replication) -> None:
    r = replication
    r.execute("CREATE TABLE s.d (id int PRIMARY KEY, v date)")
    r.transaction(r.insert({"ID": 1, "V": "x"}, "D"))
    assert _fails(r).code == 5010
    assert _errors(r)[0][4] == 5007


def test_a_lob_that_is_not_chunked_is_refused_but_for_null(replication: Replication) -> None:
    r = replication
    r.execute("ALTER TABLE s.t ADD c text")
    r.transaction(r.insert({"ID": 1, "C": ColumnValue("C", 112)}))
    bad = r.transaction(r.insert({"ID": 3, "C": ColumnValue("C", 112, value=b"x")}))
    assert _fails(r).code == 5010
    assert _errors(r) == [("S.T", bad, 0, "insert", 5013, None, "stopped", 1)]
    assert _rows(r) == [(1, None, None, None)]
