"""Transmitted transactions: confirmed from the front, taken back from the end."""

from __future__ import annotations

import random

import pytest

from olr_pg.ordering.ready_transactions import ReadyRun, joined, transactions_of
from olr_pg.redo.commit_position import CommitPosition
from olr_pg.server.queue import Transmitted
from tests.server.ready_one import ready_one


def one(scn: int) -> ReadyRun:
    return ready_one(scn, scn - 5, scn, CommitPosition(0, 1, 7, scn, 16), b"x" * 9, 1)


def run_of(*scns: int) -> ReadyRun:
    return joined([one(scn) for scn in scns])


def transmitted(*runs: ReadyRun) -> Transmitted:
    made = Transmitted()
    for run in runs:
        made.add(run)
    return made


def scns(runs: list[ReadyRun]) -> list[int]:
    return [one.commit_scn for one in transactions_of(runs)]


def test_nothing_is_transmitted_yet() -> None:
    none = Transmitted()
    assert (none.count, none.confirmed, none.count_up_to(99), none.confirms(99)) == (0, 0, 0, False)
    assert none.first_commit_scn(0) is None
    assert list(none.confirm(0)) == list(none.take_back(0)) == []


def test_transactions_of_one_scn_are_confirmed_together() -> None:
    waiting = transmitted(run_of(10, 20), run_of(20, 30))
    assert [waiting.count_up_to(scn) for scn in (9, 10, 19, 20, 30)] == [0, 1, 1, 3, 4]
    assert [waiting.confirms(scn) for scn in (9, 10)] == [False, True]
    assert [waiting.first_commit_scn(scn) for scn in (9, 10, 20, 30)] == [10, 20, 30, None]


def test_confirming_ends_within_a_run() -> None:
    waiting = transmitted(run_of(10, 20), run_of(30, 40, 50))
    assert scns(list(waiting.confirm(3))) == [10, 20, 30]
    assert (waiting.count, waiting.confirmed) == (2, 3)
    assert scns(list(waiting.runs)) == [40, 50]


def test_what_is_taken_back_comes_last_first() -> None:
    waiting = transmitted(run_of(10, 20), run_of(30, 40), run_of(50))
    assert [scns([run]) for run in waiting.take_back(20)] == [[50], [30, 40]]
    assert scns(list(waiting.runs)) == [10, 20]
    assert [scns([run]) for run in waiting.take_back(10)] == [[20]]
    assert (waiting.count, waiting.confirmed) == (1, 0)


def test_parts_of_one_batch_are_one_run_again() -> None:
    whole = run_of(10, 20, 30)
    first, rest = whole.cut(1)
    assert len(transmitted(first, rest).runs) == 1
    assert len(transmitted(rest, first).runs) == 2
    assert len(transmitted(first, run_of(20)).runs) == 2


@pytest.mark.parametrize("seed", range(20))
def test_any_order_of_calls_keeps_the_transactions(seed: int) -> None:
    rng = random.Random(seed)
    waiting, model, scn, confirmed = Transmitted(), list[int](), 100, 0
    for _ in range(60):
        action = rng.randrange(3)
        if action == 0:
            added = sorted(scn + rng.randrange(4) for _ in range(rng.randint(1, 5)))
            scn = added[-1]
            waiting.add(run_of(*added))
            model += added
        elif action == 1:
            count = waiting.count_up_to(rng.randint(100, scn + 1))
            assert scns(list(waiting.confirm(count))) == model[:count]
            model, confirmed = model[count:], confirmed + count
        else:
            back_to = rng.randint(scn - 5, scn + 1)
            taken = [scns([run]) for run in waiting.take_back(back_to)]
            again = [one for run in reversed(taken) for one in run]
            assert again == [one for one in model if one > back_to]
            model = [one for one in model if one <= back_to]
        assert (waiting.count, waiting.confirmed) == (len(model), confirmed)
        assert scns(list(waiting.runs)) == model
