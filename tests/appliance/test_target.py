"""A target of the appliance: its applier's thread, as the main thread sees it."""

from __future__ import annotations

import errno
import os
import signal
import threading
import time
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any, Final

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
    named: Final = {"target": "one"}


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
        with pytest.raises(SystemExit):  # noqa: PT012 - the signal may come before the wait
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            target.join(60.0)
        assert is_alive()
        target.join(0.05)
        assert is_alive()
    finally:
        signal.signal(signal.SIGALRM, before)
        applier.over.set()
        target.join(60.0)
    assert not is_alive()
    assert target.failure is None


def configured(tables: str, data: Path = Path("/")) -> Any:
    return SimpleNamespace(tables=tables, context=SimpleNamespace(data=data))


def renewable(
    *errors: OlrPgError | None, data: Path = Path("/tmp")
) -> tuple[RunningTarget, list[Applier]]:
    """A target whose first appliers end with these errors, and all that it has made."""
    made: list[Applier] = []
    left = list(errors)

    def make(config: Any) -> Any:
        made.append(Applier(config.tables, left.pop(0) if left else None))
        return made[-1]

    one: Any = None
    first = configured("one table", data)
    delivery: Any = Delivery()
    return RunningTarget(first, delivery, one, one, make_applier=make), made


def test_an_applier_with_other_tables_follows_the_one_before() -> None:
    stopped = OlrPgError(Code.TABLES_STOPPED, "S.T")
    target, made = renewable(stopped)  # which stay so, for the one that follows
    target.start(once=False)
    assert made[0].began.wait(60)
    target.renew(configured("two tables"))
    while len(made) < 2:
        assert target.is_alive
        time.sleep(0.002)
    assert made[1].began.wait(60)
    assert [one.tables for one in made] == ["one table", "two tables"]
    assert not target.is_renewed
    target.stop()
    target.join(60.0)
    assert (target.failure, len(made)) == (None, 2)


def test_an_applier_that_fails_meanwhile_is_a_failure() -> None:
    lost = OlrPgError(Code.POSTGRES_UNREACHABLE, "gone")
    target, made = renewable(lost)
    target.start(once=False)
    assert made[0].began.wait(60)
    target.renew(configured("two tables"))
    target.join(60.0)
    assert target.failure is lost


def no_space(code: int) -> OlrPgError:
    cause = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    error = OlrPgError(code, str(cause))
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "is_full"),
    [
        (no_space(Code.SPILL_FAILED), True),
        # What the port tells the applier of a checkpoint that cannot be written.
        (OlrPgError(Code.SERVER_REFUSED, "OLR-04013: No space left on device"), True),
        (OlrPgError(Code.SERVER_REFUSED, "OLR-04013: Read-only file system"), False),
        # PostgreSQL's own.
        (OlrPgError(Code.TARGET_DISK_FULL, "No space left on device"), False),
    ],
)
def test_a_full_disk_is_waited_for(
    error: OlrPgError, is_full: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, made = renewable(error, data=tmp_path)
    target.start(once=False)
    assert made[0].began.wait(60)
    made[0].over.set()
    target.join(60.0)
    assert target.failure is error
    assert (target.full is not None) == is_full
    if target.full is None:
        return
    assert target.full.error.code == Code.DATA_DISK_FULL
    assert str(error) in str(target.full.error)
    target.postpone()
    assert not target.is_due()  # it has failed at once: a moment later
    monkeypatch.setattr(target, "_again_at", 0.0)
    due = target.is_due()
    assert due
    target.start(once=False)
    is_full = target.full is not None
    assert not is_full
    while len(made) < 2:
        assert target.is_alive
        time.sleep(0.002)
    target.stop()
    target.join(60.0)
    assert len(made) == 2
    assert getattr(target, "failure") is None  # noqa: B009 - it is another one by now
