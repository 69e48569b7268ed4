"""Runs of ready transactions: cut, joined and interleaved, beside lists of their transactions.

What leaves the merger on its way into the ready queues, beside a model of lists.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from olr_pg.ordering.ready_transactions import (
    ReadyRun,
    Release,
    in_commit_order,
    joined,
    split_runs,
    transactions_of,
    whole,
)
from olr_pg.redo.commit_position import CommitPosition
from olr_pg.wire.protocol import TRANSACTION_BYTES
from tests.server.ready_one import ready_one


def one(commit_scn: int, thread: int = 1, size: int = 9) -> ReadyRun:
    place = CommitPosition(0, thread, 7, commit_scn, 16)
    return ready_one(commit_scn, commit_scn - 5, commit_scn, place, b"%d" % thread * size, 1)


def run_of(scns: list[int], thread: int = 1) -> ReadyRun:
    return joined([one(scn, thread) for scn in scns])


def keys(runs: list[ReadyRun]) -> list[tuple[int, int]]:
    return [(t.commit_scn, t.position.thread) for t in transactions_of(runs)]


def test_a_run_is_cut_where_it_is_said() -> None:
    run = run_of([10, 20, 20, 30])
    assert (run.first_commit_scn, run.last_commit_scn) == (10, 30)
    assert [run.count_up_to(scn) for scn in (9, 10, 20, 99)] == [0, 1, 3, 4]
    first, rest = run.cut(1)
    assert keys([first]) + keys([rest]) == keys([run])
    assert len(first) == 1


@pytest.mark.parametrize("seed", range(20))
def test_how_many_of_a_run_come_before_a_key_or_fit(seed: int) -> None:
    """Of parts of runs in which several transactions commit at one SCN, beside their lists."""
    rng = random.Random(seed)
    places = sorted((rng.randint(20, 30), rng.randint(1, 99)) for _ in range(rng.randint(1, 12)))
    run = joined(
        [
            ready_one(scn, scn - 5, scn, CommitPosition(0, 1, 7, block, 16), b"x" * size, 1)
            for scn, block in dict.fromkeys(places)
            for size in [rng.randint(1, 300)]
        ]
    )
    middle = rng.randint(0, len(run))
    for part in (run, *run.cut(middle)):
        listed = list(part.transactions())
        known = [(one.commit_scn, one.position) for one in listed]
        assert known == sorted(known)
        between = [(scn, CommitPosition(0, 1, 7, 50, 16)) for scn in range(18, 33)]
        for key in (*known, *between):
            assert part.count_before_key(key) == sum(one < key for one in known)
            assert part.count_up_to_key(key) == sum(one <= key for one in known)
        for scn in range(-1, 33):
            assert part.count_up_to(scn) == sum(one <= scn for one, _ in known)
        sizes = [len(one.blob) for one in listed]
        for limit in range(0, 2_000, 37):
            within = [sum(sizes[: at + 1]) for at in range(len(sizes))]
            assert part.count_whole(99, limit) == sum(one <= limit for one in within)
            assert part.count_whole(limit // 37, 9_999) == min(limit // 37, len(sizes))
            costs = [one + TRANSACTION_BYTES * (at + 1) for at, one in enumerate(within)]
            assert part.count_fitting(limit) == sum(one <= limit for one in costs)


def test_what_commits_below_an_scn_is_parted_from_the_rest() -> None:
    before, rest = split_runs([run_of([10, 30]), run_of([20], 2)], 20)
    assert keys(before) == [(10, 1)]
    assert keys(rest) == [(30, 1), (20, 2)]


@pytest.mark.parametrize("seed", range(20))
def test_runs_of_several_threads_are_interleaved(seed: int) -> None:
    rng = random.Random(seed)
    runs = [
        run_of(sorted(rng.sample(range(100, 160), rng.randint(1, 30))), thread)
        for thread in range(1, rng.randint(2, 5))
    ]
    ordered = in_commit_order(runs)
    assert keys(ordered) == sorted(keys(runs))
    for run in ordered:
        for transaction in run.transactions():
            assert bytes(transaction.blob) == b"%d" % transaction.position.thread * 9


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
