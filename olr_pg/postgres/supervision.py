"""Starts an embedded server again that was killed while somebody works with it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

import structlog
import tenacity

from olr_pg.errors import OlrPgError

if TYPE_CHECKING:
    from types import TracebackType

    from olr_pg.postgres.embedded import EmbeddedPostgres

_PAUSE_SECONDS_MAX: Final = 30.0
_LASTING_SECONDS: Final = 1.0
"""How long it is let alone after a start: one that is killed over and over costs no processor."""

_log = structlog.get_logger(__name__)


class ClusterSupervisor:
    """Keeps the server of a cluster up, in a thread of its own, for its span as a context.

    It acts where it is told that the server does not answer, and only if its process is gone: one
    that recovers from a crash of one of its processes, or shuts down, is left alone. After a
    failed start it tries again in pauses that grow to half a minute.

    Args:
        cluster: of this process.
        patience: seconds that one outage is tried for; None as long as it takes.
    """

    def __init__(self, cluster: EmbeddedPostgres, patience: float | None = None) -> None:
        self._cluster = cluster
        self._patience = patience
        self._away = threading.Event()
        self._closing = threading.Event()
        self._failure: OlrPgError | None = None
        self._thread = threading.Thread(target=self._run, name="olr-postgres", daemon=True)

    def __enter__(self) -> ClusterSupervisor:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End; a start that is under way is waited for."""
        self._closing.set()
        self._away.set()
        self._thread.join()

    def missed(self) -> OlrPgError | None:
        """Note that the server does not answer; from any thread, at once.

        Returns:
            5002, why it could not be started so far; None where nothing failed.
        """
        self._away.set()
        return self._failure

    def _run(self) -> None:
        while self._away.wait() and not self._closing.is_set():
            self._away.clear()
            if self._cluster.is_running:
                self._failure = None  # somebody else may have started it
            else:
                self._start()
                self._closing.wait(_LASTING_SECONDS)

    def _start(self) -> None:
        starting = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(OlrPgError),
            wait=tenacity.wait_exponential(multiplier=0.25, max=_PAUSE_SECONDS_MAX),
            stop=tenacity.stop_any(
                tenacity.stop_when_event_set(self._closing),
                tenacity.stop_never
                if self._patience is None
                else tenacity.stop_after_delay(self._patience),
            ),
            sleep=tenacity.sleep_using_event(self._closing),
            before_sleep=self._failed,
            reraise=True,
        )
        try:
            starting(self._cluster.start_again)
        except OlrPgError as error:
            self._failure = error
        else:
            self._failure = None

    def _failed(self, state: tenacity.RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        assert isinstance(error, OlrPgError)  # what is tried again has failed
        if self._failure is None:
            _log.error(
                "the embedded PostgreSQL does not start and is tried again",
                code=error.label,
                reason=str(error),
                action=error.action,
            )
        self._failure = error
