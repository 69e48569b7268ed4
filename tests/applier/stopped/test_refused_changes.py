"""Changes that the target refuses: they stop their table alone, and the error table names them."""

from __future__ import annotations

from typing import Any

from tests.applier.seen import errors, fails, rows

Replication = Any  # tests/applier/conftest.py


def _other(r: Replication) -> None:
    r.execute("CREATE TABLE s.o (id int PRIMARY KEY)")


def test_a_value_that_does_not_fit_stops_only_its_table(replication: Replication) -> None:
    r = replication
    _other(r)
    r.execute("ALTER TABLE s.t ALTER n TYPE numeric(3, 0)")
    r.transaction(r.insert({"ID": 1, "N": 1}), r.insert({"ID": 1}, "O"))
    bad = r.transaction(
        r.insert({"ID": 2}), r.insert({"ID": 3, "N": 10**20}), r.insert({"ID": 2}, "O")
    )
    last = r.transaction(r.insert({"ID": 4, "N": 4}), r.insert({"ID": 3}, "O"))
    error = fails(r)
    assert error.code == 5010
    assert "S.T" in error.detail
    assert rows(r) == [(1, 1, None)], "nothing half applied"
    assert rows(r, "s.o") == [(1,), (2,), (3,)]
    assert errors(r) == [("S.T", bad, 1, "insert", 5008, "22003", "stopped", 1)]
    after = r.rows("SELECT after, message, statement FROM olr_pg.error")[0]
    assert after[0] == {"ID": "c104", "N": "cb02"}
    assert "overflow" in after[1]
    assert after[2].startswith('INSERT INTO "s"."t"')
    assert r.rows("SELECT commit_scn, stopped FROM olr_pg.ledger WHERE source_table = 'S.T'") == [
        (last, True)
    ]
    assert r.rows("SELECT commit_scn, changes FROM olr_pg.held") == [(bad, 2), (last, 1)]
    # Mended and started again: what was held goes in, and nothing is delivered again.
    r.execute("ALTER TABLE s.t ALTER n TYPE numeric")
    r.serve()
    r.apply()
    assert [row[0] for row in rows(r)] == [1, 2, 3, 4]
    assert rows(r, "s.o") == [(1,), (2,), (3,)]
    assert r.rows("SELECT stopped FROM olr_pg.ledger WHERE source_table = 'S.T'") == [(False,)]
    assert errors(r)[0][6] == "applied"
    assert r.rows("SELECT olr_pg.consistent_scn()") == [(last,)]


def test_a_value_that_cannot_be_converted(replication: Replication) -> None:
    r = replication
    r.execute("CREATE TABLE s.i (id int PRIMARY KEY, n smallint)")
    r.transaction(r.insert({"ID": 1, "N": 1}, "I"))
    bad = r.transaction(r.insert({"ID": 2, "N": 40_000}, "I"))
    assert fails(r).code == 5010
    assert fails(r).code == 5010
    assert rows(r, "s.i") == [(1, 1)]
    assert errors(r) == [("S.I", bad, 0, "insert", 2053, None, "stopped", 2)]


def test_changes_without_their_key(replication: Replication) -> None:
    r = replication
    r.transaction(r.insert({"ID": 1, "N": 1}))
    bad = r.transaction(r.update({"N": 1}, {"N": 2}))
    assert fails(r).code == 5010
    assert errors(r) == [("S.T", bad, 0, "update", 5009, None, "stopped", 1)]
    assert rows(r) == [(1, 1, None)]
