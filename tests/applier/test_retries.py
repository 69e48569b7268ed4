"""Retries: as long as the error may pass, until the time is over or somebody stops them."""

from __future__ import annotations

import threading

import pytest

from olr_pg.applier.retries import retrying


def patience(_error: BaseException) -> float:
    return 120.0


class Failing:
    """Fails so many times."""

    def __init__(self, times: int) -> None:
        self.left = times
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.left:
            self.left -= 1
            raise ConnectionError(f"{self.left} left")
        return "done"


def test_it_goes_on_until_it_passes_and_tells_each_failure() -> None:
    told: list[tuple[int, str]] = []
    again = retrying(
        lambda error: isinstance(error, ConnectionError), patience, threading.Event(),
        lambda attempt, error: told.append((attempt, str(error))),
    )  # fmt: skip
    assert again(Failing(2)) == "done"
    assert told == [(1, "1 left"), (2, "0 left")]


def test_an_error_that_does_not_pass_is_raised_at_once() -> None:
    work = Failing(2)
    again = retrying(lambda _: False, patience, threading.Event(), lambda *_: None)
    with pytest.raises(ConnectionError):
        again(work)
    assert work.calls == 1


def test_it_ends_where_it_is_stopped() -> None:
    stop, work = threading.Event(), Failing(1_000_000)
    again = retrying(lambda _: True, patience, stop, lambda *_: stop.set())
    with pytest.raises(ConnectionError):
        again(work)
    assert work.calls == 2


def test_each_error_has_its_own_patience() -> None:
    """Here the first may be met for ever, the second not at all."""
    errors = iter([KeyError("for ever"), KeyError("for ever"), ConnectionError("not at all")])

    def work() -> None:
        raise next(errors)

    again = retrying(
        lambda _: True, lambda error: None if isinstance(error, KeyError) else 0.0,
        threading.Event(), lambda *_: None,
    )  # fmt: skip
    with pytest.raises(ConnectionError):
        again(work)
    assert next(errors, None) is None
