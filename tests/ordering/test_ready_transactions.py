"""Runs of ready transactions: cut, joined and interleaved, beside lists of their transactions."""

from __future__ import annotations

import random

import pytest

from olr_pg.ordering.ready_transactions import (
    ReadyRun,
    in_commit_order,
    joined,
    split_runs,
    transactions_of,
)
from olr_pg.redo.commit_position import CommitPosition
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
