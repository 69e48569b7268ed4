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
    """Retry with pauses that grow to two seconds; after the last attempt raise its error.

    Args:
        passes: returns whether an error is transient.
        seconds: the time limit after the first attempt, depending on the last error; None for no
            limit.
        stop: ends the pauses and the attempts.
        announce: called after each failed attempt that is retried, with its number from 1 and the
            error.
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
    assert error is not None  # there is a retry only after a failure
    return error


class _Over(tenacity.stop.stop_base):
    """Stops the retries when the time limit for the last error has passed."""

    def __init__(self, seconds: Callable[[BaseException], float | None]) -> None:
        self._seconds = seconds

    def __call__(self, retry_state: tenacity.RetryCallState) -> bool:
        bound = self._seconds(_failure(retry_state))
        return bound is not None and (retry_state.seconds_since_start or 0.0) >= bound
