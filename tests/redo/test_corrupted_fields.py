"""No corrupted field of a change vector makes a change disappear, or one up, without a word."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.corrupted_fields import Database, other_bytes, verdict

if TYPE_CHECKING:
    from pathlib import Path

EACH = 1
"""Corruptions of each field; ``python -m tests.corrupted_fields`` tries as many as it is told."""


@pytest.mark.parametrize("seed", [1, 3])
def test_a_corrupted_field_changes_nothing_or_is_said(tmp_path: Path, seed: int) -> None:
    database = Database(seed, tmp_path)
    fields = database.fields()
    assert len(fields) > 150
    for name in sorted(fields):
        for turn in range(EACH):
            rng = random.Random(f"{seed} {name} {turn}")
            place = rng.choice(fields[name])
            old = database.raw[place.log][list(place.bytes)].tobytes()
            found = verdict(database.seen, database.with_bytes(place, other_bytes(rng, old)))
            assert found not in ("lost", "made up"), f"{name}, turn {turn}"
