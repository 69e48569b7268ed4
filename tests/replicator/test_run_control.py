"""Which runs there are, as targets come, leave, fall behind and come together again."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from olr_pg.errors import Code, OlrPgError
from olr_pg.replicator.decoding_progress import DecodeProgress
from olr_pg.replicator.run_control import Runs
from olr_pg.server.queue import ReadyQueue

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(eq=False)
class Feed:
    """What `Runs` has to do with of a feed."""

    name: str
    queue: ReadyQueue = field(default_factory=ReadyQueue)
    failure: OlrPgError | None = None

    def __post_init__(self) -> None:
        self.delivery = SimpleNamespace(name=self.name, progress=DecodeProgress())

    def fail(self, error: OlrPgError) -> None:
        self.failure = error


@dataclass(eq=False)
class Run:
    """A run without a thread: the test says how far it is, and when it ends."""

    feeds: tuple[Any, ...]
    progress: DecodeProgress
    reached: int = 0
    recent_scn: int = 0
    ending: threading.Event = field(default_factory=threading.Event)
    begun: bool = False
    joined: bool = False

    def begin(self) -> None:
        if "refused" in self.names:
            raise OlrPgError(Code.SYSTEM_REFUSED, "can't start new thread")
        self.begun = True

    def join(self) -> None:
        self.joined = True

    @property
    def names(self) -> list[str]:
        return [feed.name for feed in self.feeds]


class Bench:
    """The runs, and all that were made."""

    def __init__(self, *, apart: Sequence[str] = (), **options: Any) -> None:
        self.made: list[Run] = []
        self._apart = apart
        self.runs = Runs(self._make, self._groups, **options)

    def _make(self, feeds: Sequence[Any], progress: DecodeProgress) -> Run:
        if any(feed.name == "broken" for feed in feeds):
            raise OlrPgError(Code.INTERNAL, "no run")
        run = Run(tuple(feeds), progress)
        self.made.append(run)
        return run

    def _groups(self, feeds: Sequence[Any]) -> list[list[Any]]:
        apart = [[feed] for feed in feeds if feed.name in self._apart]
        together = [feed for feed in feeds if feed.name not in self._apart]
        return [*apart, together] if together else apart

    def start(self, *names: str, **options: Any) -> list[Any]:
        feeds = [Feed(name) for name in names]
        for feed in feeds:
            self.runs.start(feed, **options)  # type: ignore[arg-type]
        return feeds


def test_targets_that_are_expected_begin_in_one_run() -> None:
    bench = Bench(expected=("a", "b", "c"))
    bench.start("a", "b")
    assert bench.made == []
    bench.runs.stop_expecting("c")
    assert [run.names for run in bench.made] == [["a", "b"]]
    assert bench.made[0].begun
    bench.start("d")
    assert [run.names for run in bench.made] == [["a", "b"], ["d"]]


def test_those_that_cannot_begin_together_begin_in_several() -> None:
    bench = Bench(expected=("a", "b", "c"), apart=("b",))
    bench.start("a", "b", "c")
    assert [run.names for run in bench.made] == [["b"], ["a", "c"]]


def test_the_last_target_that_leaves_ends_its_run() -> None:
    bench = Bench(expected=("a", "b"))
    one, other = bench.start("a", "b")
    (run,) = bench.made
    bench.runs.leave(one)
    assert (run.names, run.ending.is_set(), run.joined) == (["b"], False, False)
    bench.runs.leave(other)
    assert (run.names, run.ending.is_set(), run.joined) == ([], True, True)


def test_one_that_holds_up_the_others_gets_a_run_of_its_own() -> None:
    bench = Bench(expected=("slow", "quick"))
    slow, _ = bench.start("slow", "quick")
    (run,) = bench.made
    bench.runs.detach(run, slow)
    assert [made.names for made in bench.made] == [["quick"], ["slow"]]
    assert bench.made[1].progress is not run.progress
    bench.runs.detach(run, slow)
    assert len(bench.made) == 2


def together_again(bench: Bench) -> tuple[Run, Run]:
    """Two runs of which the second has come to where the first one is."""
    bench.start("a", "b")
    first, second = bench.made
    first.reached, first.recent_scn = 100, 90
    second.reached, second.recent_scn = 95, 85
    return first, second


def test_a_run_whose_thread_cannot_be_started_is_none() -> None:
    bench = Bench(expected=("refused", "a"), apart=("refused",))
    refused, _ = bench.start("refused", "a")
    assert refused.failure is not None
    bench.runs.leave(refused)
    assert [(run.names, run.joined) for run in bench.made] == [(["refused"], False), (["a"], False)]


def test_runs_that_have_come_to_one_place_are_joined() -> None:
    bench = Bench()
    first, second = together_again(bench)
    second.reached = 89
    bench.runs.join_with_near(second)
    assert not second.ending.is_set()
    second.reached = 95
    bench.runs.join_with_near(second)
    assert first.ending.is_set()
    assert second.ending.is_set()
    second.progress.queued.add(95, 1.0)
    first.progress.queued.add(100, 1.0)
    bench.runs.ended(second, failed=False)
    assert len(bench.made) == 2, "the other one is still at work"
    bench.runs.ended(first, failed=False)
    assert sorted(bench.made[2].names) == ["a", "b"]
    assert bench.made[2].progress is first.progress


def test_runs_go_on_by_themselves_where_they_cannot_begin_together() -> None:
    for bench in (Bench(apart=("a",)), Bench(joins=False)):
        first, second = together_again(bench)
        bench.runs.join_with_near(second)
        assert not first.ending.is_set()


def test_a_run_that_failed_takes_nobody_along() -> None:
    bench = Bench()
    bench.start("a")
    (run,) = bench.made
    bench.runs.ended(run, failed=True)
    assert len(bench.made) == 1


def test_all_begin_anew_where_one_needs_the_others_with_it() -> None:
    bench = Bench()
    bench.start("a")
    bench.start("b", together=True)
    (run,) = bench.made
    assert run.ending.is_set()
    bench.runs.ended(run, failed=False)
    assert sorted(bench.made[1].names) == ["a", "b"]


def test_a_run_that_cannot_be_made_fails_its_targets() -> None:
    bench = Bench(expected=("broken", "a"), apart=("broken",))
    broken, _ = bench.start("broken", "a")
    assert broken.failure is not None
    assert [run.names for run in bench.made] == [["a"]]
