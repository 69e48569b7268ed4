"""Changes of one transaction that share keys: unique values that change places."""

from __future__ import annotations

from typing import Any

import pytest

from olr_pg.applier.settings import ConflictPolicy, Consistency
from olr_pg.applier.stopped.error_table import read_errors, skip_error
from olr_pg.applier.target.connection import connect
from tests.applier.batches.test_table_writer import swapped_keys, two_rows
from tests.applier.seen import errors, fails, rows

Replication = Any  # tests/applier/conftest.py


def test_unique_values_that_change_places(replication: Replication) -> None:
    """One UPDATE of the set would meet a duplicate; the changes one by one do not."""
    r = replication
    r.execute("ALTER TABLE s.t ADD UNIQUE (v)")
    r.transaction(*(r.insert({"ID": i, "V": v}) for i, v in enumerate("abc")))
    r.transaction(
        r.update({"ID": 2}, {"V": "d"}),
        r.update({"ID": 1}, {"V": "c"}),
        r.update({"ID": 0}, {"V": "b"}),
    )
    r.apply(batch_changes=1)
    assert [row[2] for row in rows(r)] == ["b", "c", "d"]


@pytest.mark.parametrize("consistency", list(Consistency))
@pytest.mark.parametrize("moved", [{1: "b", 2: "c", 3: "d"}, {1: "b", 2: "a"}, {3: "a", 1: "c"}])
def test_unique_values_of_one_statement_change_places(
    replication: Replication, moved: dict[int, str], consistency: Consistency
) -> None:
    """Oracle looks for duplicates at the statement's end; the change does not tell the rest."""
    r = replication
    r.execute("ALTER TABLE s.t ADD UNIQUE (v), ADD mine text DEFAULT 'kept'")
    rows = dict(enumerate("abc", 1))
    r.transaction(*(r.insert({"ID": i, "N": i, "V": v}, rowid=f"{i:018}") for i, v in rows.items()))
    r.apply()
    r.execute("UPDATE s.t SET mine = 'changed' WHERE id = 1")
    r.transaction(
        r.insert({"ID": 9, "N": 9, "V": "i"}, rowid=f"{9:018}"),
        r.update({"ID": 2}, {"N": 7}, rowid=f"{2:018}"),
        *(r.update({"ID": i}, {"V": v}, rowid=f"{i:018}") for i, v in moved.items()),
        r.delete({"ID": 9}, rowid=f"{9:018}"),
        r.insert({"ID": 8, "N": 8, "V": "h"}, rowid=f"{8:018}"),
    )
    r.serve()
    r.apply(consistency=consistency)
    assert r.rows("SELECT id, n, v, mine FROM s.t ORDER BY id") == [
        *(
            (i, 7 if i == 2 else i, v, "changed" if i == 1 else "kept")
            for i, v in (rows | moved).items()
        ),
        (8, 8, "h", "kept"),
    ]
    assert r.rows("SELECT inserted, updated FROM olr_pg.ledger") == [(4, len({2, *moved}))]
    assert errors(r) == []


def test_unique_values_that_change_places_do_not_hide_a_conflict(replication: Replication) -> None:
    r = replication
    r.execute("ALTER TABLE s.t ADD UNIQUE (v)")
    r.transaction(*(r.insert({"ID": i, "V": v}, rowid=f"{i:018}") for i, v in enumerate("ab")))
    r.apply()
    r.execute("INSERT INTO s.t VALUES (50, 0, 'c')")
    bad = r.transaction(
        r.update({"ID": 0}, {"V": "b"}, rowid=f"{0:018}"),
        r.update({"ID": 1}, {"V": "c"}, rowid=f"{1:018}"),
    )
    r.serve()
    assert fails(r).code == 5010
    assert [row[:2] for row in errors(r)] == [("S.T", bad)]
    assert [(row[0], row[2]) for row in rows(r)] == [(0, "a"), (1, "b"), (50, "c")]


@pytest.mark.parametrize("policy", [ConflictPolicy.SKIP, ConflictPolicy.OVERWRITE])
@pytest.mark.parametrize("consistency", list(Consistency))
def test_a_conflict_beside_keys_that_change_places(
    replication: Replication, policy: ConflictPolicy, consistency: Consistency
) -> None:
    """Only what conflicts is skipped."""
    r = replication
    r.transaction(*two_rows(r))
    bad = r.transaction(r.delete({"ID": 98}), *swapped_keys(r), r.delete({"ID": 99}))
    r.apply(conflict=policy, consistency=consistency)
    assert [(row[0], row[2]) for row in rows(r)] == [(1, "two"), (2, "one")]
    assert errors(r) == [
        ("S.T", bad, position, "delete", 5009, None, "skipped", 1) for position in (0, 3)
    ]


def test_keys_change_places_beside_a_skipped_change(replication: Replication) -> None:
    r = replication
    r.execute("ALTER TABLE s.t ALTER n TYPE numeric(3)")
    r.transaction(*two_rows(r))
    r.transaction(r.insert({"ID": 5, "N": 10**9}), *swapped_keys(r))
    assert fails(r).code == 5010
    with connect(r.target) as connection:
        skip_error(connection, "olr_pg", read_errors(connection, "olr_pg", resolved=False)[0].id)
    r.serve()
    r.apply()
    assert [(row[0], row[2]) for row in rows(r)] == [(1, "two"), (2, "one")]
    assert r.rows("SELECT conflicts, updated + deleted FROM olr_pg.ledger") == [(1, 2)]
