"""Outages of the target: told once at their beginning and once at their end, by connections."""

from __future__ import annotations

import threading

import psycopg
import pytest
from structlog.testing import capture_logs

from olr_pg.applier.settings import ApplierSettings
from olr_pg.applier.target.outage import (
    TargetOutage,
    announce_retry,
    retry_seconds,
    retrying,
    target_place,
)

AWAY = psycopg.OperationalError("connection refused")
FULL = psycopg.errors.DiskFull("no space left on device")
DEADLOCK = psycopg.errors.DeadlockDetected("deadlock detected")

BEGIN = "the target cannot be reached: waiting for it"
OTHER = "the target cannot be reached, now for another reason"
END = "the target can be reached again"


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def is_away(outage: TargetOutage) -> bool:
    return outage.current is not None


def test_it_is_told_once_however_often_it_is_met() -> None:
    clock = Clock()
    outage = TargetOutage("db:5432, database app", clock)
    with capture_logs() as lines:
        for attempt in range(5):
            clock.now = 100.0 + attempt
            outage.failed("one", AWAY)
            outage.failed("two", AWAY)
        current = outage.current
        assert current is not None
        assert (current.since, current.error.code) == (100.0, 5003)
        assert "db:5432, database app" in str(current.error)
        outage.reached("one")
        assert is_away(outage)  # the other one still fails
        clock.now = 160.0
        outage.reached("two")
        assert not is_away(outage)
        outage.reached("two")
    assert [line["event"] for line in lines] == [BEGIN, END]
    assert lines[1]["away_seconds"] == 60.0


def test_each_cause_is_told_once() -> None:
    """The sessions were ended, and then the password is wrong: only this names what to do."""
    outage = TargetOutage("db", Clock())
    login = psycopg.OperationalError("password authentication failed for user", info=None)
    login.sqlstate = "28P01"
    with capture_logs() as lines:
        for error in (AWAY, login, AWAY, login, FULL):
            outage.failed("one", error)
        outage.reached("one")
        outage.failed("one", login)
    assert [line["event"] for line in lines] == [BEGIN, OTHER, OTHER, END, BEGIN]
    assert "pg_hba.conf" in lines[1]["action"]


def test_a_connection_that_it_ended_unseen_is_no_second_one() -> None:
    """Nobody used it meanwhile; when it is used, the others have the target again."""
    outage = TargetOutage("db", Clock())
    with capture_logs() as lines:
        for connection in ("one", "idle"):
            outage.reached(connection)
        outage.failed("one", AWAY)
        outage.reached("one")
        outage.failed("idle", AWAY)
        assert not is_away(outage)
        assert [line["event"] for line in lines] == [BEGIN, END]
        outage.failed("idle", AWAY)  # the one that was opened in its place
        assert is_away(outage)
        outage.reached("idle")
        outage.failed("one", AWAY)
        outage.reached("one")
        outage.failed("one", AWAY)
        assert is_away(outage)


def test_the_reason_is_that_of_the_last_failure() -> None:
    outage = TargetOutage("db", Clock())
    outage.failed("one", AWAY)
    outage.failed("one", FULL)
    assert outage.current is not None
    assert outage.current.error.code == 5090


def test_a_connection_that_rests_does_not_prolong_it_and_does_not_end_it() -> None:
    outage = TargetOutage("db", Clock())
    outage.failed("one", AWAY)
    outage.retry_ended("one")
    assert is_away(outage)
    outage.failed("two", AWAY)
    outage.reached("two")
    assert not is_away(outage)
    outage.failed("one", AWAY)
    outage.retry_ended("one")
    outage.failed("one", AWAY)  # it tries again
    outage.failed("two", AWAY)
    outage.reached("two")
    assert is_away(outage)


def test_what_concerns_one_batch_is_no_outage() -> None:
    outage = TargetOutage("db", Clock())
    with capture_logs() as lines:
        outage.failed("one", DEADLOCK)
        announce_retry("applying S.T again", 1, DEADLOCK)
        announce_retry("applying S.T again", 1, AWAY)
    assert outage.current is None
    assert [line["event"] for line in lines] == ["applying S.T again"]


def test_how_long_something_is_tried_again() -> None:
    settings = ApplierSettings("", "", 0, "", retry_seconds=3.0)
    assert (retry_seconds(settings, DEADLOCK), retry_seconds(settings, AWAY)) == (3.0, None)
    bounded = ApplierSettings("", "", 0, "", outage_seconds=9.0)
    assert retry_seconds(bounded, FULL) == 9.0


@pytest.mark.parametrize(
    ("connect_string", "place"),
    [
        ("host=db port=5433 dbname=app user=u password=secret", "db:5433, database app"),
        ("postgresql://u:secret@db.example.com/app", "db.example.com, database app"),
        ("dbname=app password=secret", "the local socket, database app"),
        ("user=u password=secret", "the local socket, database u"),
    ],
)
def test_the_place_of_a_target_has_nothing_secret(connect_string: str, place: str) -> None:
    assert target_place(connect_string) == place


# --- retries ---


def patience(_error: BaseException) -> float:
    return 120.0


class Failing:
    """Fails so many times; is stopped at a call."""

    def __init__(self, times: int, stopped_at: int = 0) -> None:
        self.left = times
        self.calls = 0
        self.stop = threading.Event()
        self._stopped_at = stopped_at

    def __call__(self) -> str:
        self.calls += 1
        if self.calls == self._stopped_at:
            self.stop.set()
        if self.left:
            self.left -= 1
            raise ConnectionError(f"{self.left} left")
        return "done"


def test_it_goes_on_until_it_passes_and_tells_each_failure() -> None:
    work = Failing(2)
    again = retrying("work", lambda error: isinstance(error, ConnectionError), patience, work.stop)
    with capture_logs() as logs:
        assert again(work) == "done"
    assert [(one["event"], one["attempt"], one["error"]) for one in logs] == [
        ("retrying: work", 1, "1 left"),
        ("retrying: work", 2, "0 left"),
    ]


def test_an_error_that_does_not_pass_is_raised_at_once() -> None:
    work = Failing(2)
    with pytest.raises(ConnectionError):
        retrying("work", lambda _: False, patience, work.stop)(work)
    assert work.calls == 1


def test_it_ends_where_it_is_stopped() -> None:
    work = Failing(1_000_000, stopped_at=2)
    with pytest.raises(ConnectionError):
        retrying("work", lambda _: True, patience, work.stop)(work)
    assert work.calls == 2


def test_each_error_has_its_own_patience() -> None:
    """Here the first may be met for ever, the second not at all."""
    errors = iter([KeyError("for ever"), KeyError("for ever"), ConnectionError("not at all")])

    def work() -> None:
        raise next(errors)

    again = retrying(
        "work", lambda _: True, lambda error: None if isinstance(error, KeyError) else 0.0,
        threading.Event(),
    )  # fmt: skip
    with pytest.raises(ConnectionError):
        again(work)
    assert next(errors, None) is None
