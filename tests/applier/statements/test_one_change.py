"""Statements of one change: each must touch exactly one row."""

from __future__ import annotations

from typing import Any

import pytest

from olr_pg.dictionary.model import Column, Table
from tests.applier.seen import errors, fails, rows

Replication = Any  # tests/applier/conftest.py


IDENTITY = "int GENERATED ALWAYS AS IDENTITY"


def test_a_key_that_two_rows_have(replication: Replication) -> None:
    r = replication
    r.execute("CREATE TABLE s.w (id int, v text)")
    r.execute("INSERT INTO s.w VALUES (1, 'a'), (1, 'b')")
    r.execute("CREATE UNIQUE INDEX ON s.w (id) WHERE v = 'a'")  # partial: no key
    r.transaction(r.update({"ID": 1, "V": "a"}, {"V": "c"}, "W"))
    r.apply()
    assert sorted(rows(r, "s.w")) == [(1, "b"), (1, "c")]


KEYLESS = {
    "update": lambda r: r.update({"N": 1}, {"N": 2}, "K"),
    "delete": lambda r: r.delete({"N": 1}, "K"),
}


@pytest.mark.parametrize("rest", ["c text", "c json", "c bytea, d int"])
@pytest.mark.parametrize("change", list(KEYLESS))
def test_rows_that_differ_in_what_the_change_does_not_tell(
    replication: Replication, change: str, rest: str
) -> None:
    """Without a key any of them could be meant; Oracle never logs a LOB's old value."""
    r = replication
    r.execute(f"CREATE TABLE s.k (n int, {rest})")
    r.execute("INSERT INTO s.k (n, c) VALUES (1, '1'), (1, '1'), (1, '22')")
    bad = r.transaction(KEYLESS[change](r))
    assert fails(r).code == 5010
    assert errors(r) == [("S.K", bad, 0, change, 5009, None, "stopped", 1)]
    message = r.rows("SELECT message FROM olr_pg.error")[0][0]
    assert message.startswith("0 rows were found")
    assert "differ only in c" in message
    assert "a primary key" in message
    assert r.rows("SELECT n FROM s.k") == [(1,)] * 3
    # Of rows that are the same it does not matter which one is taken.
    r.execute("DELETE FROM s.k WHERE c::text = (SELECT max(c::text) FROM s.k)")
    r.serve()
    r.apply()
    assert sorted(r.rows("SELECT n FROM s.k")) == ([(1,), (2,)] if change == "update" else [(1,)])


@pytest.mark.parametrize("change", list(KEYLESS))
def test_columns_of_the_targets_own_tell_nothing(replication: Replication, change: str) -> None:
    r = replication
    r.execute("CREATE TABLE s.k (n int, own int GENERATED ALWAYS AS IDENTITY)")
    r.execute("INSERT INTO s.k VALUES (1), (1)")
    r.transaction(KEYLESS[change](r))
    source = Table("S", "K", 1, 1, (Column("N", 1, 1, 1, 2, 22),))
    r.apply([source])
    assert sorted(r.rows("SELECT n FROM s.k")) == ([(1,), (2,)] if change == "update" else [(1,)])
