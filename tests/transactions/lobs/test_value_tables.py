"""LOB pieces in the order in which kernels look them up."""

from __future__ import annotations

import random

import numpy as np
import pytest

from olr_pg.transactions.lobs.value_tables import (
    LobRows,
    Space,
    distinct_keys,
    empty_rows,
    sort_rows,
)

KEY = ("owner", "space", "lob", "number", "scn")


def rows_of(keys: list[tuple[int, ...]]) -> LobRows:
    rows = empty_rows(len(keys))
    for at, key in enumerate(keys):
        for name, value in zip(KEY, key, strict=True):
            getattr(rows, name)[at] = value
        rows.offset[at] = at
    return rows


def test_rows_of_one_key_stay_in_their_order() -> None:
    rng = random.Random(3)
    keys: list[tuple[int, ...]] = [
        (rng.randrange(2), rng.choice(list(Space)), rng.randrange(3), rng.randrange(3), 5)
        for _ in range(200)
    ]
    found = sort_rows(rows_of(keys))
    sorted_keys = sorted((key, at) for at, key in enumerate(keys))
    assert found.offset.tolist() == [at for _, at in sorted_keys]


@pytest.mark.parametrize("rows", [0, 1, 300])
@pytest.mark.parametrize("columns", [2, 3])
def test_distinct_keys_are_those_of_numpy(rows: int, columns: int) -> None:
    keys = np.random.default_rng(rows).integers(-2, 4, (rows, columns)) << 40
    found, place = distinct_keys(keys)
    expected, inverse = np.unique(keys, axis=0, return_inverse=True)
    assert found.tolist() == expected.tolist()
    assert place.tolist() == inverse.reshape(-1).tolist()
