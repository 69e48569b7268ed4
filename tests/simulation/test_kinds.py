"""The histories have every kind of DDL that a copy must follow or stop at."""

from __future__ import annotations

from typing import Final

from tests.simulation.kinds import KINDS, kinds_of

SEEDS: Final = (21, 40, 85, 125)
"""They have every kind; where the simulator has changed, `python -m tests.simulation.kinds` says
which is drawn how often.
"""


def test_every_kind_of_ddl_is_drawn() -> None:
    counts, found = kinds_of(SEEDS)
    assert counts.keys() == found.keys() == KINDS.keys()
