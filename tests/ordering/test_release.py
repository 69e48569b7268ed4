"""What leaves the merger on its way into the ready queues, beside a model of lists."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from olr_pg.ordering.ready_transactions import (
    ReadyRun,
    joined,
    transactions_of,
    whole,
)
from olr_pg.ordering.release import Release
from olr_pg.redo.commit_position import CommitPosition
from tests.server.ready_one import ready_one


def runs_of_view(rng: random.Random, view: int) -> list[ReadyRun]:
    """Runs in commit order; a transaction's XID tells its view."""
    runs, scn = [], 1000
    for number in range(rng.randrange(6)):
        ones: list[ReadyRun] = []
        for _ in range(rng.choice((1, 3, 700))):
            scn += rng.randrange(3)
            place = CommitPosition(0, 1, number, len(ones), 0)
            ones.append(ready_one(view, scn - rng.randint(1, 200), scn, place, b"x" * 9, 1))
        batch = replace(joined(ones).batch, view=view)
        runs.append(whole(batch))
    return runs


@pytest.mark.parametrize("seed", range(25))
def test_in_commit_order_up_to_a_barrier(seed: int) -> None:
    rng = random.Random(seed)
    runs = [run for view in range(rng.randint(1, 3)) for run in runs_of_view(rng, view)]
    leaving, left = Release(runs), list(transactions_of(runs))
    while left:
        assert leaving
        first = min(one.commit_scn for one in left)
        assert leaving.first_commit_scn == first
        assert leaving.lowest_begin_scn == min(one.begin_scn for one in left)
        barrier = rng.choice((None, first + rng.randint(1, 400)))
        taken, last = leaving.take(barrier)
        assert first <= last
        assert barrier is None or last < barrier
        found = list(transactions_of(taken))
        assert found == [one for one in left if one.commit_scn <= last]
        left = [one for one in left if one.commit_scn > last]
        # Those that share the last commit SCN go together, however many.
        by_view = [sum(one.xid == view and one.commit_scn < last for one in found)
                   for view in {one.xid for one in found}]  # fmt: skip
        assert min(by_view) < 256
    assert not leaving
