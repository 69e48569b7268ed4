"""Keeps the embedded PostgreSQL running: restarts a server that was killed.

The embedded PostgreSQL is not a service of the host, so nothing else restarts it. During the outage
the applier waits as for any unreachable target (WAITING_FOR_TARGET); then it continues from its
ledger.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import structlog
import tenacity

from olr_pg.errors import OlrPgError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.postgres.embedded import EmbeddedPostgres

LOOK_SECONDS: Final = 1.0
ATTEMPTS: Final = 8
"""Number of attempts in a series, with pauses of 1 to 30 seconds."""

REST_SECONDS: Final = 300.0
"""Pause after a series of failed attempts. It is long, because an operator may have to solve the
cause.
"""

_log = structlog.get_logger(__name__)


@contextmanager
def supervised(cluster: EmbeddedPostgres) -> Iterator[None]:
    """Restart the cluster's server whenever it ends, while the context is active."""
    over = threading.Event()
    supervisor = Supervisor(cluster, over)
    thread = threading.Thread(target=supervisor.run, name="olr-embedded", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class Supervisor:
    """Supervises one cluster; `run` is called in a separate thread.

    The supervisor logs one line when the server runs again, and one line for each series of failed
    attempts. The threads that use the server log the outage itself.

    Args:
        over: an event; it is set to end the thread.
        look_seconds: interval between two checks. rest_seconds: pause after a series of failed
            attempts.
        attempts: number of attempts in a series.
    """

    def __init__(
        self,
        cluster: EmbeddedPostgres,
        over: threading.Event,
        *,
        look_seconds: float = LOOK_SECONDS,
        rest_seconds: float = REST_SECONDS,
        attempts: int = ATTEMPTS,
    ) -> None:
        self._cluster = cluster
        self._over = over
        self._look_seconds = look_seconds
        self._rest_seconds = rest_seconds
        self._retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(OlrPgError),
            wait=tenacity.wait_exponential(multiplier=look_seconds, max=30),
            stop=tenacity.stop_any(
                tenacity.stop_after_attempt(attempts), tenacity.stop_when_event_set(over)
            ),
            sleep=tenacity.sleep_using_event(over),
            reraise=True,
        )

    def run(self) -> None:
        """Supervise the cluster until `over` is set."""
        while not self._over.wait(self._look_seconds):
            if self._cluster.is_gone():
                self._revive()

    def _revive(self) -> None:
        began = time.monotonic()
        where = {"port": self._cluster.port, "directory": str(self._cluster.directory)}
        while not self._over.is_set():
            try:
                self._retrying(self._cluster.revive)
            except OlrPgError as error:
                if self._over.is_set():
                    return
                _log.error(
                    "embedded PostgreSQL could not be started; it is retried later",
                    code=error.label,
                    reason=str(error),
                    action=error.action,
                    again_in_seconds=self._rest_seconds,
                )
                self._over.wait(self._rest_seconds)
            else:
                away = round(time.monotonic() - began, 1)
                _log.warning(
                    "embedded PostgreSQL had stopped and was restarted",
                    away_seconds=away,
                    **where,
                )
                return
