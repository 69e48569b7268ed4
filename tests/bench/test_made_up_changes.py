from __future__ import annotations

import numpy as np
import pytest

from olr_pg.bench.made_up_changes import ChangeSet
from olr_pg.transactions.finished_columns import DmlKind


@pytest.mark.parametrize("case", ["insert", "update", "delete", "mix"])
@pytest.mark.parametrize("count", [1, 7, 40_001])
def test_made_up_changes_fit_their_table(case: str, count: int) -> None:
    """Every key is changed once; inserts bring new ones, the others find theirs."""
    changes = ChangeSet(case, count, 10)
    pieces = list(changes.pieces())
    kind = np.concatenate([piece.kind for piece in pieces])
    key = np.concatenate([piece.key for piece in pieces])
    inserts = kind == DmlKind.INSERT
    assert sorted(key.tolist()) == list(range(1, count + 1))
    assert changes.rows == int((~inserts).sum())
    assert (key[inserts] > changes.rows).all()
    assert [piece.first for piece in pieces] == [
        sum(map(len, pieces[:number])) for number in range(len(pieces))
    ]
    again = np.concatenate([piece.key for piece in changes.pieces()])
    assert (again == key).all()


def test_updates_are_scattered_over_the_table() -> None:
    key = next(ChangeSet("update", 10_000, 10).pieces()).key
    assert (np.abs(np.diff(key)) > 1_000).all()
