"""Counts of changed values add up, each with its own."""

from __future__ import annotations

from olr_pg.datatypes.policies import NOTHING, Counters


def test_counts_add_up_by_name() -> None:
    assert Counters(undecodable=1, inexact=2) + Counters(inexact=3, nul=4) == Counters(
        undecodable=1, nul=4, inexact=5
    )
    assert NOTHING + NOTHING == NOTHING
