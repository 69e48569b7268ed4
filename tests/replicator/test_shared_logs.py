"""Several readers of one source: it is asked for what all of them want together."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from olr_pg.capture.logs import LogScan
from olr_pg.errors import OlrPgError
from olr_pg.observability.periodic import steady_time
from olr_pg.replicator.shared_logs import SharedLogs


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
