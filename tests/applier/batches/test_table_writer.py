"""Conflicts of changes with what is in the target, and what the policies do about them."""

from __future__ import annotations

from typing import Any

import pytest

from olr_pg.applier.batches import table_writer
from olr_pg.applier.settings import ConflictPolicy
from olr_pg.applier.statements.shared_keys import ATTEMPTS_MAX
from olr_pg.applier.statements.table_changes import encode_changes
from tests.applier.seen import errors, fails, rows

Replication = Any  # tests/applier/conftest.py


@pytest.mark.parametrize(
    ("policy", "expected", "resolutions"),
    [
        (ConflictPolicy.ERROR, [(1, 1, "mine"), (2, 2, "two")], ["stopped"]),
        (
            ConflictPolicy.SKIP,
            [(1, 1, "mine"), (2, 2, "two"), (5, 5, None)],
            ["skipped"] * 4,
        ),
        (
            ConflictPolicy.OVERWRITE,
            [(1, 10, "theirs"), (2, 2, "two"), (4, 4, "new"), (5, 5, None)],
            ["overwritten", "skipped", "overwritten", "skipped"],
        ),
    ],
)
def test_conflicts(
    replication: Replication,
    policy: ConflictPolicy,
    expected: list[tuple[Any, ...]],
    resolutions: list[str],
) -> None:
    r = replication
    r.execute("INSERT INTO s.t VALUES (1, 1, 'mine')")
    r.transaction(r.insert({"ID": 2, "N": 2, "V": "two"}))
    bad = r.transaction(r.insert({"ID": 1, "N": 10, "V": "theirs"}))
    r.transaction(r.update({"ID": 3}, {"V": "nothing there"}))
    r.transaction(r.update({"ID": 4, "N": 4, "V": "old"}, {"V": "new"}))
    r.transaction(r.delete({"ID": 6}), r.insert({"ID": 5, "N": 5, "V": None}))
    if policy is ConflictPolicy.ERROR:
        assert fails(r, conflict=policy).code == 5010
        assert errors(r) == [("S.T", bad, 0, "insert", 5009, "23505", "stopped", 1)]
    else:
        r.apply(conflict=policy)
        assert r.rows("SELECT conflicts FROM olr_pg.ledger") == [(4,)]
    assert rows(r) == expected
    assert [row[6] for row in errors(r)] == resolutions


def test_overwriting_that_is_refused(replication: Replication) -> None:
    r = replication
    r.execute("ALTER TABLE s.t ADD UNIQUE (v); INSERT INTO s.t VALUES (1, 1, 'a'), (3, 3, 'b')")
    bad = r.transaction(r.insert({"ID": 2, "V": "c"}), r.insert({"ID": 1, "V": "b"}))
    assert fails(r, conflict=ConflictPolicy.OVERWRITE).code == 5010
    assert rows(r) == [(1, 1, "a"), (3, 3, "b")]
    assert errors(r) == [("S.T", bad, 1, "insert", 5009, "23505", "stopped", 1)]


def test_nothing_is_overwritten_in_a_table_without_a_key(replication: Replication) -> None:
    r = replication
    r.execute("ALTER TABLE s.t DROP CONSTRAINT t_pkey; ALTER TABLE s.t ADD UNIQUE (v)")
    r.execute("INSERT INTO s.t VALUES (1, 1, 'mine')")
    r.transaction(r.insert({"ID": 2, "N": 2, "V": "mine"}))
    r.transaction(r.update({"ID": 3, "N": 3, "V": "old"}, {"V": "new"}))
    r.apply(conflict=ConflictPolicy.OVERWRITE)
    assert rows(r) == [(1, 1, "mine")]
    assert [row[6] for row in errors(r)] == ["skipped", "skipped"]


ROW_1, ROW_2 = "AAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAB"


def two_rows(r: Replication) -> tuple[Any, Any]:
    return (
        r.insert({"ID": 1, "N": 1, "V": "one"}, rowid=ROW_1),
        r.insert({"ID": 2, "N": 2, "V": "two"}, rowid=ROW_2),
    )


def swapped_keys(r: Replication) -> tuple[Any, Any]:
    """Two rows that change their keys: one by one each meets the other."""
    return (
        r.update({"ID": 1, "N": 1, "V": "one"}, {"ID": 2, "N": 1, "V": "one"}, rowid=ROW_1),
        r.update({"ID": 2, "N": 2, "V": "two"}, {"ID": 1, "N": 2, "V": "two"}, rowid=ROW_2),
    )


@pytest.fixture
def few_cells(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Two rows of the table are made into statements at a time; how many were, each time."""
    made: list[int] = []

    def watched(plan: Any, selection: Any, **options: Any) -> Any:
        made.append(len(selection))
        return encode_changes(plan, selection, **options)

    monkeypatch.setattr(table_writer, "CELLS_MAX", 2 * 3)
    monkeypatch.setattr(table_writer, "encode_changes", watched)
    return made


def test_more_cells_than_are_made_at_once_go_in_in_parts(
    replication: Replication, few_cells: list[int]
) -> None:
    r = replication
    r.transaction(*two_rows(r))
    r.transaction(r.update({"ID": 1}, {"V": "won"}))
    r.transaction(r.update({"ID": 2}, {"V": "too"}), r.update({"ID": 1}, {"N": 7}))
    r.transaction(r.insert({"ID": 3, "N": 3}), r.update({"ID": 3}, {"V": "x"}), r.delete({"ID": 2}))
    r.apply()
    assert rows(r) == [(1, 7, "won"), (3, 3, "x")]
    assert few_cells == [2, 1, 2, 2, 1]


def test_the_conflict_of_a_part_is_named(replication: Replication, few_cells: list[int]) -> None:
    r = replication
    r.transaction(*two_rows(r))
    bad = r.transaction(*swapped_keys(r), r.delete({"ID": 99}))
    assert fails(r).code == 5010
    assert errors(r) == [("S.T", bad, 2, "delete", 5009, None, "stopped", 1)]
    assert max(few_cells[:2]) == 2


def test_the_conflict_is_named_not_the_keys_that_change_places(replication: Replication) -> None:
    r = replication
    r.transaction(*two_rows(r))
    bad = r.transaction(*swapped_keys(r), r.delete({"ID": 99}))
    assert fails(r).code == 5010
    assert errors(r) == [("S.T", bad, 2, "delete", 5009, None, "stopped", 1)]
    assert [(row[0], row[2]) for row in rows(r)] == [(1, "one"), (2, "two")]


def test_more_conflicts_than_sets_are_tried(replication: Replication) -> None:
    """Keys that move over each other towards one that is taken: none of them goes in."""
    r = replication
    count = ATTEMPTS_MAX + 5
    r.transaction(*(r.insert({"ID": i, "N": i}, rowid=f"{i:018}") for i in range(count)))
    r.execute(f"INSERT INTO s.t VALUES ({count}, 0, 'stray')")
    r.transaction(
        *(r.update({"ID": i, "N": i, "V": None}, {"ID": i + 1}, rowid=f"{i:018}")
          for i in range(count))
    )  # fmt: skip
    r.apply(conflict=ConflictPolicy.SKIP)
    assert rows(r) == [*((i, i, None) for i in range(count)), (count, 0, "stray")]
    assert len(errors(r)) == count
