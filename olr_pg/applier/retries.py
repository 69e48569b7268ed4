"""Retries transient failures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tenacity

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable


def retrying(
    passes: Callable[[BaseException], bool],
    seconds: Callable[[BaseException], float | None],
    stop: threading.Event,
    announce: Callable[[int, BaseException], None],
) -> tenacity.Retrying:
    """Return an object that calls a function again after transient errors, with pauses that grow to
    two seconds. The object raises the error of the last attempt.

    Args:
        passes: returns whether an error is transient, so that a retry may succeed.
        seconds: returns for how long an operation with this error is retried, counted from its
            first attempt; None for no limit.
        stop: when it is set, the current pause ends and nothing is retried any more.
        announce: called before each retry with the number of failed attempts and the last error.
    """
    return tenacity.Retrying(
        retry=tenacity.retry_if_exception(passes),
        wait=tenacity.wait_random_exponential(multiplier=0.05, max=2),
        stop=tenacity.stop_any(_Over(seconds), tenacity.stop_when_event_set(stop)),
        sleep=tenacity.sleep_using_event(stop),
        before_sleep=lambda state: announce(state.attempt_number, _failure(state)),
        reraise=True,
    )


def _failure(state: tenacity.RetryCallState) -> BaseException:
    error = state.outcome.exception() if state.outcome else None
    assert error is not None  # tenacity calls this only after a failure
    return error


class _Over(tenacity.stop.stop_base):
    """Ends the retries when the time limit for the last error has passed."""

    def __init__(self, seconds: Callable[[BaseException], float | None]) -> None:
        self._seconds = seconds

    def __call__(self, retry_state: tenacity.RetryCallState) -> bool:
        bound = self._seconds(_failure(retry_state))
        return bound is not None and (retry_state.seconds_since_start or 0.0) >= bound
