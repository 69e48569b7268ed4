"""Work that is done now and then.

Time goes on where the clock is moved, and tells by how much it was.
"""

from __future__ import annotations

import os
import threading
import time

import pytest
from structlog.testing import capture_logs

from olr_pg.observability import periodic as steady
from olr_pg.observability.periodic import Periodic, clock_shift, steady_time
from tests.files.limits import no_more_files, no_more_threads


def test_it_works_at_once_and_again_until_it_is_stopped() -> None:
    often = threading.Semaphore(0)
    periodic = Periodic("test", 0.001, often.release, at_once=True)
    periodic.start()
    for _ in range(3):
        assert often.acquire(timeout=60)
    periodic.stop()
    while often.acquire(blocking=False):
        pass
    assert not [one for one in threading.enumerate() if one.name == "test"]


def test_a_run_that_fails_is_logged_once_and_repeated() -> None:
    """What watches over statements must not end because no file could be opened for a moment."""
    runs = threading.Semaphore(0)
    errors = iter([no_files(), no_files(), None, no_files(), ZeroDivisionError("x")])

    def work() -> None:
        runs.release()
        error = next(errors, None)
        if error is not None:
            raise error

    with capture_logs() as logs, Periodic("test", 0.001, work):
        for _ in range(7):
            assert runs.acquire(timeout=60)
    assert [one["code"] for one in logs] == ["OLR-01108", "OLR-01108", "OLR-09001"]
    assert {one["task"] for one in logs} == {"test"}
    assert "ulimit -n" in logs[0]["action"]
    assert [one["exc_info"] is None for one in logs] == [True, True, False]


def no_files() -> OSError:
    with no_more_files(), pytest.raises(OSError, match="Too many") as caught:
        os.open("/", os.O_RDONLY)
    return caught.value


def test_one_that_the_system_refused_to_start_can_be_stopped() -> None:
    """Its owner stops it because of the error, which must not be replaced by another."""
    periodic = Periodic("test", 3600, lambda: None)
    with no_more_threads(), pytest.raises(RuntimeError, match="can't start new thread"):
        periodic.start()
    periodic.stop()


def test_it_may_be_stopped_before_its_first_turn() -> None:
    done = []
    periodic = Periodic("test", 3600, lambda: done.append(1))
    periodic.start()
    periodic.stop()
    assert done == []


def test_it_is_the_clock_s_until_somebody_moves_that() -> None:
    assert steady_time() == pytest.approx(time.time(), abs=steady.SHIFT_SECONDS_MIN)
    assert clock_shift() == 0.0


@pytest.mark.parametrize("seconds", [-3600.0, 3600.0])
def test_a_clock_that_jumps(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    real = time.time
    before = steady_time()
    monkeypatch.setattr(time, "time", lambda: real() + seconds)
    assert before <= steady_time() < before + 60
    assert clock_shift() == pytest.approx(seconds, abs=1)
