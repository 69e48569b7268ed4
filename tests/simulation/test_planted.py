"""The simulation finds bugs that are planted; see ``python -m tests.simulation.planted``."""

from __future__ import annotations

from typing import Final

import pytest

from tests.simulation.planted import NAMES, find

CAUGHT: Final = {
    "checkpoint": 0,
    "half-lwn": 2,
    "ledger": 6,
    "own-start": 8,
    "place": 0,
    "skipped-log": 16,
    "stale-block": 15,
    "tie-order": 30,
    "unconfirmed": 32,
    "undo-pairing": 12,
    "unlogged": 3,
}
"""A seed that finds each planted bug soon; where the simulator has changed, a later one must."""

SEEDS_MORE: Final = 50


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", NAMES)
def test_a_planted_bug_is_found(name: str, postgres_database: str) -> None:
    seed, words = find(name, CAUGHT[name], SEEDS_MORE, postgres_database)
    assert seed is not None, words
    assert "Traceback" not in words, words
