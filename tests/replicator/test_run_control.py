"""Which runs there are, as targets come, leave, fall behind and come together again.

Several readers of one source: it is asked for what all of them want together.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.capture.logs import LogScan
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.periodic import steady_time
from olr_pg.replicator.decoding_progress import DecodeProgress
from olr_pg.replicator.run_control import Runs, SharedLogs
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


class Source:
    """Notes what it is asked for; its logs end at `ends`."""

    is_online = True
    is_copying = False

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []
        self.ends: list[int] = []
        self.news = False
        self.scns: list[int | None] = []
        self.answers = True

    def current_scn(self) -> int | None:
        return self.scns.pop(0)

    def has_news(self) -> bool:
        return self.news

    def scan(self, scn: int, delivered_scn: int) -> LogScan:
        self.asked.append((scn, delivered_scn))
        logs: Any = tuple(SimpleNamespace(next_scn=end) for end in self.ends)
        return LogScan(logs, (), (), None, source_answers=self.answers)


def test_the_lowest_start_and_the_highest_delivery_count() -> None:
    source = Source()
    logs = SharedLogs(source)  # type: ignore[arg-type]
    logs.scan("ahead", 100, 200)
    logs.scan("behind", 50, 60)
    logs.scan("ahead", 120, 220)
    logs.remove_reader("behind")
    logs.scan("ahead", 130, 230)
    assert source.asked == [(100, 200), (50, 200), (50, 220), (130, 230)]
    logs.remove_reader("nobody")


def test_what_was_seen_once_is_reached() -> None:
    source = Source()
    logs = SharedLogs(source)  # type: ignore[arg-type]
    assert logs.reach_scn == 0
    source.ends = [40, 70, 60]
    logs.scan("one", 1, 1)
    source.ends = [50]
    logs.scan("one", 1, 1)
    assert logs.reach_scn == 70


def test_a_look_that_the_source_did_not_answer_is_none() -> None:
    """What it has written since the last one that it did answer nobody knows."""
    source = Source()
    logs = SharedLogs(source)  # type: ignore[arg-type]
    before = steady_time()
    logs.scan("one", 1, 1)
    answered = logs.answered_at
    assert answered is not None
    assert before <= answered <= steady_time()
    source.answers = False
    logs.scan("one", 1, 1)
    assert logs.answered_at == answered


def test_the_source_is_asked_until_it_has_come_to_an_scn() -> None:
    source = Source()
    logs = SharedLogs(source)  # type: ignore[arg-type]
    source.scns = [None, 5, 12]
    assert [logs.is_reached(10) for _ in range(3)] == [False, False, True]
    assert logs.is_reached(12)
    source.scns = [13]
    assert logs.current_scn() == 13


def test_what_is_new_was_written_since_the_last_look_that_did_not_find_it() -> None:
    source = Source()
    logs = SharedLogs(source)  # type: ignore[arg-type]
    logs.scan("one", 1, 1)
    assert [logs.unseen_since] == [None]
    begin = steady_time()
    assert not logs.has_news()
    end = steady_time()
    source.news = True
    assert logs.has_news()
    logs.scan("one", 1, 1)
    assert logs.unseen_since is not None
    assert begin <= logs.unseen_since <= end
    found = steady_time()
    logs.scan("one", 1, 1)
    assert end <= logs.unseen_since <= found


def test_an_awaited_copy_ends_the_wait_and_says_nothing_of_the_source() -> None:
    source = Source()
    source.is_online, source.is_copying = False, True
    logs = SharedLogs(source)  # type: ignore[arg-type]
    logs.scan("one", 1, 1)
    scanned = steady_time()
    assert not logs.has_news()
    source.news = True
    logs.await_redo(3_600.0, threading.Event())
    logs.scan("one", 1, 1)
    assert logs.unseen_since is not None
    assert logs.unseen_since <= scanned


def test_the_oldest_log_of_each_thread_must_begin_early_enough() -> None:
    source = Source()
    logs = SharedLogs(source)  # type: ignore[arg-type]
    heads = [
        SimpleNamespace(thread=t, first_scn=scn, sequence=9, resetlogs_scn=1)
        for t, scn in ((1, 40), (2, 60))
    ]
    found: Any = tuple(
        SimpleNamespace(header=head, next_scn=99, previous_end=None) for head in heads
    )
    scan = LogScan(found, (), (), None)
    source.scan = lambda scn, delivered_scn: scan  # type: ignore[method-assign]
    logs.check_from(60)
    with pytest.raises(OlrPgError, match=r"OLR-02010.*60.*50"):
        logs.check_from(50)
    with pytest.raises(OlrPgError, match=r"OLR-02010.*40.*30"):
        logs.check_from(30)
