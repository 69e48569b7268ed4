"""Stuck threads are told from those that wait with a limit, work, or wait for PostgreSQL."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psycopg
import pytest

from olr_pg.observability.thread_activity import ThreadActivity
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

Work = Callable[[threading.Event], None]


@contextmanager
def at_work(work: Work) -> Iterator[threading.Thread]:
    over = threading.Event()
    thread = threading.Thread(target=work, args=(over,), name="worker")
    thread.start()
    try:
        yield thread
    finally:
        over.set()
        thread.join()


def poll(over: threading.Event) -> None:
    while not over.wait(0.01):
        pass


def compute(over: threading.Event) -> None:
    while not over.is_set():
        sum(range(1000))


def wait_for_ever(over: threading.Event) -> None:
    over.wait()


class Clock:
    """Seconds that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("work", [poll, compute])
def test_what_works_or_waits_with_a_limit_moves(work: Work) -> None:
    clock = Clock()
    activity = ThreadActivity(clock)
    with at_work(work) as thread:

        def moved() -> bool:
            clock.now += 1000
            return activity.longest_still([(thread,)])[0] == 0

        activity.longest_still([(thread,)])
        for _ in range(3):
            wait_until(moved, pause=0.05)


def test_what_waits_for_ever_is_still_and_is_named() -> None:
    clock = Clock()
    activity = ThreadActivity(clock)
    with at_work(wait_for_ever) as thread, at_work(poll) as other:

        def settled() -> bool:
            clock.now += 1
            return activity.longest_still([(thread,)])[0] >= 2

        wait_until(settled)
        clock.now += 1000
        seconds, names = activity.longest_still([(thread,)])
        assert seconds > 1000
        assert names == "worker"
        # Another of its group moves.
        activity.longest_still([(thread, other)])
        clock.now += 1000
        wait_until(lambda: activity.longest_still([(thread, other)])[0] == 0)


def test_without_work_in_between_it_counts_anew() -> None:
    clock = Clock()
    activity = ThreadActivity(clock)
    with at_work(wait_for_ever) as thread:
        activity.longest_still([(thread,)])
        activity.longest_still([])
        clock.now += 1000
        assert activity.longest_still([(thread,)]) == (0.0, "")


def test_a_long_statement_of_postgresql_is_no_standstill(postgres_database: str) -> None:
    clock = Clock()
    activity = ThreadActivity(clock)

    def sleep(_: threading.Event) -> None:
        with psycopg.connect(postgres_database) as connection:
            connection.execute("SELECT pg_sleep(3)")

    with at_work(sleep) as thread:

        def moved() -> bool:
            clock.now += 1000
            return activity.longest_still([(thread,)])[0] == 0

        activity.longest_still([(thread,)])
        for _ in range(4):
            wait_until(moved, pause=0.3)
