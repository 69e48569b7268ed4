"""A target of the appliance: its applier's thread, as the main thread sees it."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

import pytest

from olr_pg.appliance.target import RunningTarget


class Applier:
    """Works until it is told to end."""

    def __init__(self) -> None:
        self.over = threading.Event()

    def run(self, **_: Any) -> None:
        self.over.wait()


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
