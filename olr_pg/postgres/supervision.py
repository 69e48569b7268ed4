"""Keeps the embedded PostgreSQL running: one that was killed is started again.

Nobody else does: it is no service of the machine. The applier waits meanwhile, as for any target
that is away (WAITING_FOR_TARGET), and goes on where its ledger says.
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
"""How often it is started in one go, with pauses of 1 to 30 seconds."""

REST_SECONDS: Final = 300.0
"""How long it is left alone after that: what keeps it from starting may take somebody."""

_log = structlog.get_logger(__name__)


@contextmanager
def supervised(cluster: EmbeddedPostgres) -> Iterator[None]:
    """Start the cluster's server again whenever it ends, for as long as this lasts."""
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
    """Looks after one cluster, in a thread of its own.

    Logs one line when the server runs again, and one per series of attempts that were in vain. That
    it is away whoever writes to it says.

    Args:
        over: ends it.
        look_seconds, rest_seconds: between looks, and after a series of attempts in vain.
        attempts: of a series.
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
        """Look after it until `over`."""
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
                    "embedded PostgreSQL does not start and is tried again later",
                    code=error.label,
                    reason=str(error),
                    action=error.action,
                    again_in_seconds=self._rest_seconds,
                )
                self._over.wait(self._rest_seconds)
            else:
                away = round(time.monotonic() - began, 1)
                _log.warning(
                    "embedded PostgreSQL had ended and was started again",
                    away_seconds=away,
                    **where,
                )
                return
