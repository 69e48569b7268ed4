"""Time goes on where the clock is moved, and tells by how much it was."""

from __future__ import annotations

import time

import pytest

from olr_pg.observability import steady_time as steady
from olr_pg.observability.steady_time import clock_shift, steady_time


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
