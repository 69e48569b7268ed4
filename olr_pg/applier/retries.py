"""Retries of what may fail and pass by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tenacity

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable


def retrying(
    passes: Callable[[BaseException], bool],
    seconds: float,
    stop: threading.Event,
    announce: Callable[[int, str], None],
) -> tenacity.Retrying:
    """Call again, after pauses that grow to two seconds; raise the last error in the end.

    Args:
        passes: whether an error may pass by itself.
        seconds: to go on for.
        stop: ends pauses, and with them the attempts.
        announce: is told of each failed attempt that another one follows: its number from 1, and
            the error's text.
    """
    return tenacity.Retrying(
        retry=tenacity.retry_if_exception(passes),
        wait=tenacity.wait_random_exponential(multiplier=0.05, max=2),
        stop=tenacity.stop_any(
            tenacity.stop_after_delay(seconds), tenacity.stop_when_event_set(stop)
        ),
        sleep=tenacity.sleep_using_event(stop),
        before_sleep=lambda state: announce(
            state.attempt_number,
            str(state.outcome.exception()).strip() if state.outcome else "",
        ),
        reraise=True,
    )
