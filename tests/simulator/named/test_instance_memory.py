from __future__ import annotations

import re
from bisect import bisect_right

import pytest

from olr_pg.simulator.named import instance_memory as at

PLACE = re.compile(r"(T|S|U|E|TB|C|X|V|Q|AREA|SLOT)_[A-Z_]+")
PLACES = {name: value for name, value in vars(at).items() if PLACE.fullmatch(name)}


@pytest.mark.parametrize(
    ("prefix", "size"),
    [
        ("T_", at.THREADS_MAX),
        ("S_", at.SESSIONS_MAX),
        ("U_", at.SESSIONS_MAX * at.RING),
        ("E_", at.SESSIONS_MAX * at.ENTRIES),
        ("TB_", at.TABLES_MAX),
        ("C_", at.COLUMNS_MAX),
        ("X_", at.INDEXES_MAX),
    ],
)
def test_an_array_does_not_run_into_what_lies_behind_it(prefix: str, size: int) -> None:
    starts = sorted({*PLACES.values(), at.FIXED})
    found = {name: place for name, place in PLACES.items() if name.startswith(prefix)}
    assert len(found) >= 5
    assert len(set(found.values())) == len(found)
    for name, place in found.items():
        assert starts[bisect_right(starts, place)] - place >= size, name
