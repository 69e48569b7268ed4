"""The warning of a client that holds the claim to replicate and asks for nothing."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import structlog

from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.server.port_session import PortSession

WARN_SECONDS: Final = 15.0
"""A client that applies a batch may be silent for a while; it is warned of sooner where its time is
over sooner."""
LOOK_SECONDS: Final = 0.5

_log = structlog.get_logger(__name__)


class Silence:
    """Tells how long a session has asked for nothing, and logs it once for each silence.

    Args:
        clock: seconds, as those of `PortSession.asked_at`.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._said: tuple[PortSession, float] | None = None

    def seconds(self, session: PortSession) -> float:
        """Return the seconds since it last asked for something."""
        return 0.0 if session.is_served else self._clock() - session.asked_at

    def of(
        self, session: PortSession, saved_scn: int | None, limit: float | None
    ) -> OlrPgError | None:
        """Return 4054, where it is worth a warning.

        Args:
            saved_scn: where the checkpoint waits.
            limit: seconds after which another client may take its place, None for never.
        """
        seconds = self.seconds(session)
        if seconds < (WARN_SECONDS if limit is None else min(WARN_SECONDS, limit / 2)):
            return None
        queue = session.queue
        if queue is None:
            waits = "it has not said where to start"
        else:
            held = queue.status()
            waits = f"{held.transmitted} transactions sent to it are not confirmed"
        saved = "nothing is saved" if saved_scn is None else f"the saved SCN stays at {saved_scn}"
        end = "no time-out ends it"
        if limit is not None:
            end = f"another client may take its place after {limit:g} s"
        since = time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(time.time() - seconds))
        return OlrPgError(
            Code.CLIENT_SILENT, f"since {since}: {waits}, {saved}, {end}", client=session.peer
        )

    def report(self, session: PortSession, warning: OlrPgError | None) -> None:
        """Log the warning, unless it was logged since the session last asked."""
        now = session, session.asked_at
        if warning is None or now == self._said:
            return
        self._said = now
        _log.warning(
            "the client that replicates asks for nothing",
            reason=str(warning),
            action=warning.action,
        )
