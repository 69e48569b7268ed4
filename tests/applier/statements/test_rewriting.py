"""Rows that take one another's keys, where only the keys are logged."""

from __future__ import annotations

from typing import Any

import pytest

from olr_pg.applier.settings import ConflictPolicy
from tests.applier.seen import rows

Replication = Any  # tests/applier/conftest.py


@pytest.mark.parametrize("moved", [{1: 2, 2: 3, 3: 4}, {1: 2, 2: 1}])
def test_keys_change_places_where_only_they_are_logged(
    replication: Replication, moved: dict[int, int]
) -> None:
    r = replication
    r.transaction(*(r.insert({"ID": i, "N": i, "V": "row"}, rowid=f"{i:018}") for i in range(1, 4)))
    r.apply()
    r.transaction(
        *(r.update({"ID": i}, {"ID": to}, rowid=f"{i:018}") for i, to in moved.items()),
        r.update({"ID": 2}, {"N": 100}, rowid=f"{1:018}"),
    )
    r.serve()
    r.apply()
    expected = {moved.get(i, i): 100 if i == 1 else i for i in range(1, 4)}
    assert rows(r) == [(i, n, "row") for i, n in sorted(expected.items())]


def test_rows_whose_keys_change_places_before_they_go(replication: Replication) -> None:
    r = replication
    r.transaction(*(r.insert({"ID": i, "N": i}, rowid=f"{i:018}") for i in (1, 2)))
    r.apply()
    r.transaction(
        *(r.update({"ID": i}, {"ID": 3 - i}, rowid=f"{i:018}") for i in (1, 2)),
        *(r.delete({"ID": i}, rowid=f"{3 - i:018}") for i in (1, 2)),
    )
    r.serve()
    r.apply()
    assert rows(r) == []


def _moves(r: Replication, *moves: tuple[int, int]) -> list[Any]:
    """Whole rows that change their keys; ``v`` is the name of the row, which has the ROWID."""
    return [
        r.update(
            {"ID": old, "N": 0, "V": f"row {old}"}, {"ID": new, "N": 0, "V": f"row {old}"},
            rowid=f"{old:018}",
        )
        for old, new in moves
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("moves", "there", "policy", "expected"),
    [
        # The old key does not stay behind.
        ([(1, 2)], [1, 2], ConflictPolicy.OVERWRITE, {2: 1}),
        ([(1, 2)], [1, 2], ConflictPolicy.SKIP, {1: 1, 2: 2}),
        # The key that is left is another row's by then.
        ([(1, 2), (2, 3)], [1, 2, 3], ConflictPolicy.OVERWRITE, {2: 1, 3: 2}),
        ([(1, 2), (2, 1), (5, 6)], [1, 2, 6], ConflictPolicy.OVERWRITE, {1: 2, 2: 1, 6: 5}),
        # The second row is missing: what has its key now is the first one.
        ([(1, 2), (2, 3)], [1], ConflictPolicy.OVERWRITE, {2: 1, 3: 2}),
        ([(1, 2), (2, 3)], [1], ConflictPolicy.SKIP, {2: 1}),
    ],
)
def test_keys_that_move_where_rows_are_too_many_or_missing(
    replication: Replication,
    moves: list[tuple[int, int]],
    there: list[int],
    policy: ConflictPolicy,
    expected: dict[int, int],
) -> None:
    r = replication
    for number in there:
        r.execute(f"INSERT INTO s.t VALUES ({number}, 0, 'row {number}')")
    r.transaction(*_moves(r, *moves))
    r.apply(conflict=policy)
    assert {row[0]: row[2] for row in rows(r)} == {
        key: f"row {row}" for key, row in expected.items()
    }


def test_a_row_whose_key_another_one_has_by_now_is_not_deleted(replication: Replication) -> None:
    r = replication
    r.execute("INSERT INTO s.t VALUES (1, 0, 'row 1')")
    r.transaction(*_moves(r, (1, 2)), r.delete({"ID": 2}, rowid=f"{2:018}"), r.delete({"ID": 9}))
    r.apply(conflict=ConflictPolicy.SKIP)
    assert rows(r) == [(2, 0, "row 1")]
