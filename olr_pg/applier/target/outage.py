"""Detects outages of the target: PostgreSQL is unreachable or cannot write. An outage is logged
once at its start, once for each further cause, and once at its end.

Each connection of an applier notices an outage and retries by itself, but operators want one
message for an outage, not one for each attempt. The cause can change, or the first error can hide
it: a failover first ends the sessions, and then the server is read-only or rejects the password.
So an error is also logged if its code or its action is new in this outage.

`retrying` retries an operation after transient errors.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

import psycopg
import structlog
import tenacity
from psycopg.conninfo import conninfo_to_dict

from olr_pg.observability.periodic import steady_time
from olr_pg.postgres.sqlstates import is_out_of_reach, plain_words, target_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.errors import OlrPgError

_log = structlog.get_logger(__name__)


class Outage(NamedTuple):
    """A target outage in progress.

    Attributes:
        since: the time of the first failure, as Unix time in seconds.
        error: the reason, such as 5003, the target cannot be reached, or 5090, its disk is full
            (`postgres.sqlstates`).
    """

    since: float
    error: OlrPgError


class TargetOutage:
    """Decides whether the target is unavailable, from the errors of its connections; thread-safe.

    Args:
        target: the target's address for messages (`target_place`).
        clock: returns Unix time in seconds (`periodic.steady_time`).
    """

    def __init__(self, target: str, clock: Callable[[], float] = steady_time) -> None:
        self._target = target
        self._clock = clock
        self._lock = threading.Lock()
        self._failing: set[object] = set()
        self._resting: set[object] = set()
        self._current: Outage | None = None
        self._ended = 0
        self._causes: set[tuple[str, str]] = set()
        # For each connection, how many outages it knew of when it was last used: ended ones, and
        # the current one if the connection has noticed it.
        self._met: dict[object, int] = {}

    @property
    def current(self) -> Outage | None:
        """The outage in progress; None if the target answers."""
        return self._current

    def failed(self, connection: object, error: psycopg.Error) -> None:
        """Record an error of a connection, if the error means an outage.

        A connection that was idle during an outage can notice it after its end. Such a late notice
        does not begin a second outage.

        Args:
            connection: a key that identifies the connection.
        """
        if not is_out_of_reach(error):
            return
        with self._lock:
            is_of_last = (
                self._current is None and self._met.get(connection, self._ended) < self._ended
            )
            self._met[connection] = self._ended if is_of_last else self._ended + 1
            if is_of_last:
                return
            self._failing.add(connection)
            self._resting.discard(connection)
            reason = target_error(error, target=self._target)
            before = self._current
            self._current = Outage(self._clock() if before is None else before.since, reason)
            cause = reason.label, reason.action
            is_new = cause not in self._causes
            self._causes.add(cause)
        if is_new:
            _log.warning(
                "the target cannot be reached: waiting for it"
                if before is None
                else "the target cannot be reached, now for another reason",
                code=reason.label,
                reason=str(reason),
                action=reason.action,
            )

    def retry_ended(self, connection: object) -> None:
        """Record that nothing is retried over a connection for now. So the outage can end before
        this connection has succeeded again.
        """
        with self._lock:
            if connection in self._failing:
                self._resting.add(connection)

    def reached(self, connection: object) -> None:
        """Record that the target answered on a connection."""
        self._met[connection] = self._ended
        if self._current is None:
            return
        with self._lock:
            self._failing.discard(connection)
            if self._current is None or self._failing - self._resting:
                return
            self._failing.clear()
            self._resting.clear()
            self._causes.clear()
            seconds = self._clock() - self._current.since
            self._current = None
            self._ended += 1
            self._met[connection] = self._ended
        _log.info(
            "the target can be reached again", target=self._target, away_seconds=round(seconds, 1)
        )


def target_place(connect_string: str) -> str:
    """Return the target's host, port and database for messages, without secrets.

    Args:
        connect_string: libpq's connect string, as a URL or as parameters.
    """
    given = conninfo_to_dict(connect_string)
    host = given.get("host") or given.get("hostaddr") or "the local socket"
    port = f":{given['port']}" if given.get("port") else ""
    database = given.get("dbname") or given.get("user")
    return f"{host}{port}" + (f", database {database}" if database else "")


def retry_seconds(settings: ApplierSettings, error: BaseException) -> float | None:
    """Return how many seconds an operation is retried after its first attempt; None for no limit.

    Args:
        error: the error of the last attempt.
    """
    if isinstance(error, psycopg.Error) and is_out_of_reach(error):
        return settings.outage_seconds
    return settings.retry_seconds


def announce_retry(doing: str, attempt: int, error: BaseException) -> None:
    """Log a retry, unless the error means an outage, which `TargetOutage` logs once."""
    if not (isinstance(error, psycopg.Error) and is_out_of_reach(error)):
        words = plain_words(error) if isinstance(error, psycopg.Error) else str(error).strip()
        _log.warning(doing, attempt=attempt, error=words)


def retrying(
    doing: str,
    passes: Callable[[BaseException], bool],
    seconds: Callable[[BaseException], float | None],
    stop: threading.Event,
) -> tenacity.Retrying:
    """Return an object that calls a function again after transient errors, with pauses that grow to
    two seconds. The object raises the error of the last attempt.

    Args:
        doing: the purpose of the function, for `announce_retry` before each retry.
        passes: returns whether an error is transient, so that a retry may succeed.
        seconds: returns for how long an operation with this error is retried, counted from its
            first attempt; None for no limit.
        stop: when it is set, the current pause ends and nothing is retried any more.
    """

    def announce(state: tenacity.RetryCallState) -> None:
        announce_retry(f"retrying: {doing}", state.attempt_number, _failure(state))

    return tenacity.Retrying(
        retry=tenacity.retry_if_exception(passes),
        wait=tenacity.wait_random_exponential(multiplier=0.05, max=2),
        stop=tenacity.stop_any(_Over(seconds), tenacity.stop_when_event_set(stop)),
        sleep=tenacity.sleep_using_event(stop),
        before_sleep=announce,
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
