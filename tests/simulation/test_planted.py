"""The simulation finds bugs that are planted; see ``python -m tests.simulation.planted``."""

from __future__ import annotations

from typing import Final

import pytest

from tests.simulation.planted import NAMES, find

CAUGHT: Final = {
    "checkpoint": 0,
    "early-ddl": 7,
    "half-lwn": 2,
    "kept-column": 91,
    "ledger": 6,
    "own-start": 10,
    "place": 0,
    "skipped-log": 21,
    "stale-block": 12,
    "tie-order": 41,
    "unconfirmed": 32,
    "undo-pairing": 12,
    "unlogged": 3,
}
"""A seed that finds each planted bug soon; where the simulator has changed, a later one must."""

SEEDS_MORE: Final = 50

BY_CHANCE: Final = {"stale-block": 4}
"""Seeds that find a bug in one run of three: whether a read meets the old block is a race."""

RUNS_MAX: Final = 25


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", NAMES)
def test_a_planted_bug_is_found(name: str, postgres_database: str) -> None:
    count = BY_CHANCE.get(name, SEEDS_MORE)
    for _ in range(RUNS_MAX if name in BY_CHANCE else 1):
        seed, words = find(name, CAUGHT[name], count, postgres_database)
        if seed is not None:
            break
    assert seed is not None, words
    assert "Traceback" not in words, words
