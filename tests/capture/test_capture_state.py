"""The state of capture keeps its beginning for as long as it is the same."""

from __future__ import annotations

from itertools import count

from olr_pg.capture.capture_state import CaptureMonitor, CapturePhase
from olr_pg.errors import Code, OlrPgError


def test_the_beginning_stays_while_nothing_is_new() -> None:
    ticks = count(10)
    monitor = CaptureMonitor(lambda: float(next(ticks)))
    assert (monitor.state.phase, monitor.state.since) == (CapturePhase.WAITING_FOR_CLIENT, 10.0)
    assert monitor.enter(CapturePhase.DECODING)
    assert not monitor.enter(CapturePhase.DECODING)
    assert monitor.state.since == 11.0


def test_another_reason_is_another_state() -> None:
    monitor = CaptureMonitor(lambda: 1.0)
    missing = [OlrPgError(Code.LOG_MISSING, "gone", thread=thread) for thread in (1, 2)]
    assert monitor.enter(CapturePhase.WAITING_FOR_REDO, missing[0])
    assert not monitor.enter(CapturePhase.WAITING_FOR_REDO, missing[0])
    assert monitor.enter(CapturePhase.WAITING_FOR_REDO, missing[1])
    record = monitor.state.as_record()
    assert record["state"] == "WAITING_FOR_REDO"
    assert record["reason"]["where"]["thread"] == 2


def test_an_outage_of_the_source_is_one_whatever_each_attempt_meets() -> None:
    now = 1.0
    monitor = CaptureMonitor(lambda: now)
    for at, detail in ((2.0, "no answer"), (3.0, "refused")):
        now = at
        assert monitor.enter(
            CapturePhase.WAITING_FOR_SOURCE, OlrPgError(Code.ORACLE_UNREACHABLE, detail)
        )
    assert (monitor.state.since, str(monitor.state.reason)[-7:]) == (2.0, "refused")


def test_a_state_without_a_reason() -> None:
    assert CaptureMonitor(lambda: 1.0).state.as_record() == {
        "state": "WAITING_FOR_CLIENT", "since": 1.0, "reason": None,
    }  # fmt: skip
