"""Runs a task periodically in a thread, with a clock that never jumps.

A machine's clock is corrected from time to time, perhaps by an hour. Ages, lags and rates are
differences of two times. If the clock was changed by an hour between the two times, a table that is
behind would show no lag for an hour, or a lag that is an hour too long. So a steady time is the
Unix time at the start of the process plus the time since then, including time in which the machine
was suspended. To show a steady time to people, or to compare it with the time of a file, add
`clock_shift`.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final, Self

import structlog

from olr_pg.errors import Code
from olr_pg.files.system_errors import unexpected_failure

if TYPE_CHECKING:
    from collections.abc import Callable

_log = structlog.get_logger(__name__)


def join_started(thread: threading.Thread) -> None:
    """Wait until a thread has ended. Return at once if the system refused to start it, so that this
    error is reported and not the missing thread.
    """
    if thread.ident is not None:
        thread.join()


class Periodic:
    """Runs a task periodically, from `start` to `stop`, or while the context is active.

    Args:
        name: the name of the thread.
        seconds: pause between two runs.
        work: the task. If it raises an exception, the exception is logged, and the task runs again
            after `seconds`: the limit of open files, for example, may be reached only for a moment.
            A task that cancels statements after a loss of the connection must not stop running.
        at_once: whether the task first runs at the start; otherwise it first runs after `seconds`.
    """

    def __init__(
        self, name: str, seconds: float, work: Callable[[], None], *, at_once: bool = False
    ) -> None:
        self._seconds = seconds
        self._work = work
        self._at_once = at_once
        self._over = threading.Event()
        self._logged = ""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, and wait until a run in progress has ended."""
        self._over.set()
        join_started(self._thread)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    def _run(self) -> None:
        if self._at_once:
            self._run_once()
        while not self._over.wait(self._seconds):
            self._run_once()

    def _run_once(self) -> None:
        try:
            self._work()
        except Exception as error:  # noqa: BLE001 - the thread's outer edge: the next run may succeed
            self._log_once(error)
        else:
            self._logged = ""

    def _log_once(self, error: Exception) -> None:
        """Log an error, unless the last run has ended with the same error."""
        failure = unexpected_failure(error)
        if str(failure) == self._logged:
            return
        self._logged = str(failure)
        _log.error(
            "a periodic task has failed: repeating it",
            task=self._thread.name,
            code=failure.label,
            reason=str(failure),
            action=failure.action,
            exc_info=error if failure.code == Code.INTERNAL else None,
        )


SHIFT_SECONDS_MIN: Final = 0.5
"""A smaller difference between the two clocks is ignored, because they are read one after the
other.
"""

_AHEAD: Final = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


def steady_time() -> float:
    """Return the Unix time in seconds as if the clock had not been changed since the process
    began.
    """
    return _AHEAD + time.clock_gettime(time.CLOCK_BOOTTIME)


def clock_shift() -> float:
    """Return by how many seconds the clock was changed since the process began; usually 0."""
    shift = time.time() - steady_time()
    return shift if abs(shift) >= SHIFT_SECONDS_MIN else 0.0
