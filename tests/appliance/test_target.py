"""A target of the appliance: its applier's thread, as the main thread sees it."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

import pytest

from olr_pg.appliance.target import RunningTarget
from olr_pg.errors import Code, OlrPgError


class Applier:
    """Works until it is told to end.

    Attributes:
        error: what it ends with.
    """

    def __init__(self, tables: Any = None, error: OlrPgError | None = None) -> None:
        self.tables = tables
        self.over = threading.Event()
        self.began = threading.Event()
        self.error = error

    def run(self, **_: Any) -> None:
        self.began.set()
        self.over.wait()
        if self.error is not None:
            raise self.error

    drain = stop = lambda self: self.over.set()


class Delivery:
    drained = threading.Event()
    failure = None


def test_a_signal_while_it_is_waited_for_does_not_end_the_applier() -> None:
    """As SIGTERM does, whose SystemExit lets the applier apply what it has received."""
    applier: Any = Applier()
    one: Any = None
    delivery: Any = Delivery()
    target = RunningTarget(one, delivery, one, one, make_applier=lambda _config: applier)

    def leave(_signal: int, _frame: FrameType | None) -> None:
        raise SystemExit

    def is_alive() -> bool:
        return target.is_alive

    before = signal.signal(signal.SIGALRM, leave)
    try:
        target.start(once=False)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(SystemExit):
            target.join(60.0)
        assert is_alive()
        target.join(0.05)
        assert is_alive()
    finally:
        signal.signal(signal.SIGALRM, before)
        applier.over.set()
        target.join()
    assert not is_alive()
    assert target.failure is None


def renewable(*errors: OlrPgError | None) -> tuple[RunningTarget, list[Applier]]:
    """A target whose first appliers end with these errors, and all that it has made."""
    made: list[Applier] = []
    left = list(errors)

    def make(tables: Any) -> Any:
        made.append(Applier(tables, left.pop(0) if left else None))
        return made[-1]

    one: Any = None
    first: Any = "one table"
    delivery: Any = Delivery()
    return RunningTarget(first, delivery, one, one, make_applier=make), made


def test_an_applier_with_other_tables_follows_the_one_before() -> None:
    stopped = OlrPgError(Code.TABLES_STOPPED, "S.T")
    target, made = renewable(stopped)  # which stay so, for the one that follows
    target.start(once=False)
    assert made[0].began.wait(60)
    other: Any = "two tables"
    target.renew(other)
    while len(made) < 2:
        assert target.is_alive
    assert made[1].began.wait(60)
    assert [one.tables for one in made] == ["one table", "two tables"]
    assert not target.is_renewed
    target.stop()
    target.join()
    assert (target.failure, len(made)) == (None, 2)


def test_an_applier_that_fails_meanwhile_is_a_failure() -> None:
    lost = OlrPgError(Code.POSTGRES_UNREACHABLE, "gone")
    target, made = renewable(lost)
    target.start(once=False)
    assert made[0].began.wait(60)
    other: Any = "two tables"
    target.renew(other)
    target.join()
    assert target.failure is lost
