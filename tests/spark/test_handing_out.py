"""Which tasks workers get: every one, in bounds, however slow, lost or late workers are."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from olr_pg.errors import OlrPgError
from olr_pg.spark.handing_out import TURN_SECONDS, WINDOW_BYTES, HandingOut, Portions
from olr_pg.spark.result_cells import Cell, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def handed_out(
    portions: Portions, width: int = 2, clock: Clock | None = None
) -> tuple[HandingOut, list[int]]:
    turns: list[int] = []
    handing_out = HandingOut(portions, width, turns.append, clock or Clock())
    handing_out.start()
    return handing_out, turns


def cell(task: int) -> list[Cell]:
    return [Cell(task, Kind.RESULT, 0, b"%d" % task)]


def test_tasks_of_unknown_size_go_out_one_by_one_and_two_for_each_worker() -> None:
    handing_out, turns = handed_out(Portions.of(9, None, 2))
    assert [handing_out.share(1, wait=False) for _ in range(5)] == [[0], [1], [2], [3], []]
    for task in (1, 0):
        handing_out.put(task, cell(task))
        assert handing_out.result(task) == cell(task)
        handing_out.taken(task)
    assert [handing_out.share(1, wait=False) for _ in range(3)] == [[4], [5], []]
    assert turns == [1]


def test_shares_are_smaller_at_the_end() -> None:
    portions = Portions([10] * 24, 60, 10_000, ahead=True)
    handing_out, _ = handed_out(portions)
    shares = []
    while share := handing_out.share(1, wait=True):
        shares.append(len(share))
    assert shares == [6, 4, 3, 2, 2, 1, 1, 1, 1, 1, 1, 1]


def test_a_task_larger_than_the_window_is_handed_out_alone() -> None:
    handing_out, _ = handed_out(Portions([5 * WINDOW_BYTES, 1], 1, WINDOW_BYTES, ahead=True))
    assert handing_out.share(1, wait=False) == [0]
    assert handing_out.share(1, wait=False) == []


def test_a_turn_ends_and_the_next_one_begins_at_once() -> None:
    clock = Clock()
    handing_out, turns = handed_out(Portions.of(9, None, 2), clock=clock)
    clock.now += 2 * TURN_SECONDS  # Spark had no core for it
    assert handing_out.share(1, wait=False) == [0]
    clock.now += TURN_SECONDS
    assert handing_out.share(1, wait=True) == []
    assert turns == [1, 2]
    handing_out.turn_ended(1, None)
    assert handing_out.share(1, wait=True) == []
    assert handing_out.share(2, wait=True) == [1]
    assert turns == [1, 2]


def test_no_turn_begins_where_nothing_can_be_handed_out() -> None:
    handing_out, turns = handed_out(Portions.of(3, None, 1))
    assert handing_out.share(1, wait=True) == [0]
    assert handing_out.share(1, wait=True) == [1]
    handing_out.turn_ended(1, None)
    assert turns == [1]
    handing_out.put(0, cell(0))
    handing_out.result(0)
    handing_out.taken(0)
    assert turns == [1, 2]
    assert handing_out.share(2, wait=True) == [2]
    handing_out.turn_ended(2, None)
    handing_out.give_back([2])
    assert turns == [1, 2, 3]
    assert handing_out.share(3, wait=True) == [2]


def test_a_worker_waits_for_room() -> None:
    handing_out, _ = handed_out(Portions.of(5, None, 1))
    assert handing_out.share(1, wait=True) == [0]
    assert handing_out.share(1, wait=True) == [1]
    shares: list[list[int]] = []
    worker = threading.Thread(target=lambda: shares.append(handing_out.share(1, wait=True)))
    worker.start()
    handing_out.put(0, cell(0))
    handing_out.result(0)
    handing_out.taken(0)
    worker.join()
    assert shares == [[2]]


def test_a_worker_that_waits_goes_when_nobody_wants_more() -> None:
    handing_out, _ = handed_out(Portions.of(5, None, 1))
    handing_out.share(1, wait=True)
    handing_out.share(1, wait=True)
    shares: list[list[int]] = []
    worker = threading.Thread(target=lambda: shares.append(handing_out.share(1, wait=True)))
    worker.start()
    handing_out.close()
    worker.join()
    assert shares == [[]]


def test_results_that_are_there_come_before_a_failure() -> None:
    handing_out, _ = handed_out(Portions.of(3, None, 2))
    handing_out.share(1, wait=True)
    handing_out.put(0, cell(0))
    handing_out.turn_ended(1, OlrPgError(6005, "Java has gone"))
    assert handing_out.result(0) == cell(0)
    with pytest.raises(OlrPgError, match="Java has gone"):
        handing_out.result(1)


def test_a_task_that_loses_its_workers_is_an_error() -> None:
    handing_out, _ = handed_out(Portions.of(3, None, 2))
    for _ in range(2):
        handing_out.give_back(handing_out.share(1, wait=True))
    assert handing_out.share(1, wait=True) == [0]
    handing_out.give_back([0])
    with pytest.raises(OlrPgError, match="lost 3 times") as raised:
        handing_out.result(1)
    assert (raised.value.code, raised.value.where) == (6005, {"task": 0})


class Workers(RuleBasedStateMachine):
    """Workers ask, finish and are lost, turns end, results are taken; in any order."""

    @initialize(
        sizes=st.lists(st.integers(0, 30), min_size=1, max_size=40),
        share=st.integers(1, 40),
        window=st.integers(1, 60),
        width=st.integers(1, 4),
    )
    def begin(self, sizes: list[int], share: int, window: int, width: int) -> None:
        self.clock = Clock()
        self.sizes, self.window = sizes, window
        self.portions = Portions(sizes, share, window, ahead=True)
        self.handing_out, self.turns = handed_out(self.portions, width, self.clock)
        self.ended: set[int] = set()
        self.held: list[int] = []
        self.done: set[int] = set()
        self.taken = 0
        self.losses: Counter[int] = Counter()

    def _keep(self, share: Sequence[int]) -> None:
        assert not set(share) & (set(self.held) | self.done)
        self.held.extend(share)

    @rule(turn=st.integers(0, 3))
    def ask(self, turn: int) -> None:
        if self.turns:
            self._keep(self.handing_out.share(max(1, self.turns[-1] - turn), wait=False))

    @rule(at=st.integers(0, 9))
    def finish(self, at: int) -> None:
        if self.held:
            task = self.held.pop(at % len(self.held))
            self.handing_out.put(task, cell(task))
            self.done.add(task)

    @rule(at=st.integers(0, 9))
    def lose(self, at: int) -> None:
        if self.held and self.losses[self.held[at % len(self.held)]] < 2:
            task = self.held.pop(at % len(self.held))
            self.losses[task] += 1
            self.handing_out.give_back([task])

    @rule(seconds=st.sampled_from([1.0, TURN_SECONDS]))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule(at=st.integers(0, 9))
    def end_a_turn(self, at: int) -> None:
        going = [turn for turn in self.turns if turn not in self.ended]
        if going:
            self.ended.add(going[at % len(going)])
            self.handing_out.turn_ended(going[at % len(going)], None)

    @rule()
    def take(self) -> None:
        if self.taken in self.done:
            assert self.handing_out.result(self.taken) == cell(self.taken)
            self.handing_out.taken(self.taken)
            self.taken += 1

    @invariant()
    def what_is_under_way_is_bounded(self) -> None:
        if hasattr(self, "sizes"):
            known = self.done | set(self.held)
            under_way = [self.sizes[task] for task in known if task >= self.taken]
            assert len(under_way) == 1 or sum(under_way) <= self.window

    def teardown(self) -> None:
        """However it went, the rest is done by whoever asks in the turn that there is."""
        if not hasattr(self, "sizes"):
            return
        for _ in range(10 * len(self.sizes)):
            if self.held:
                self.finish(0)
            self.take()
            self.ask(0)
        assert self.taken == len(self.sizes)


TestWorkers = Workers.TestCase
TestWorkers.settings = settings(max_examples=60, stateful_step_count=40)
