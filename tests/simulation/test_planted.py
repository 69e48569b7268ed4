"""The simulation finds bugs that are planted; see ``python -m tests.simulation.planted``."""

from __future__ import annotations

from typing import Final

import pytest

from tests.simulation.planted import IN_COPIES, NAMES, find

CAUGHT: Final = {
    "checkpoint": 0,
    "early-ddl": 3,
    "half-lwn": 6,
    "kept-column": 2,
    "ledger": 1,
    "own-start": 8,
    "partition-name": 5,
    "place": 0,
    "skipped-log": 24,
    "tie-order": 1,
    "unconfirmed": 87,
    "undo-pairing": 1,
    "unlogged": 2,
}
"""A seed that finds each planted bug soon; where the simulator has changed, a later one must."""

SEEDS_MORE: Final = 50


@pytest.mark.timeout(1200)  # on a busy machine, a bug that depends on the moment needs 30 seeds
@pytest.mark.parametrize("name", sorted(set(NAMES) - IN_COPIES))
def test_a_planted_bug_is_found(name: str, postgres_database: str) -> None:
    """But for those that one run of three meets, since a read has to meet an old block: the command
    looks for them, and tests/redo/test_log_end.py lays such a block out by hand."""
    seed, words = find(name, CAUGHT[name], SEEDS_MORE, postgres_database)
    assert seed is not None, words
    assert "Traceback" not in words, words
