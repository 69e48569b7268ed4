"""Reports to the service manager that the appliance is alive, as long as its threads are.

The main loop asks. If a thread that has work does nothing for `STILL_SECONDS`, the reports end,
and systemd starts the process again (``WatchdogSec=``). What is waited for outside (a lock in
PostgreSQL, a source without an answer) does not count: such waits have limits, so that the thread
is scheduled again and again. A thread that decodes a backlog waits for Spark in the same way.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

import structlog

from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.thread_activity import ThreadActivity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.appliance.target import RunningTarget
    from olr_pg.observability.service_manager import ServiceManager

STILL_SECONDS: Final = 900.0
"""More than any answer of Oracle is waited for at once: that wait has no limit of its own."""

_DECODING: Final = "olr-decode"

_log = structlog.get_logger(__name__)


class Watchdog:
    """Asked by the main loop now and then.

    Args:
        targets: whose threads have to move.
        still_seconds: after so long without activity a thread counts as stuck.
    """

    def __init__(
        self,
        service_manager: ServiceManager,
        targets: Sequence[RunningTarget],
        activity: ThreadActivity | None = None,
        still_seconds: float = STILL_SECONDS,
    ) -> None:
        self._service_manager = service_manager
        self._targets = targets
        self._activity = activity or ThreadActivity()
        self._still_seconds = still_seconds
        self._is_told = False

    def poll(self) -> None:
        """Report that the appliance is alive, unless a thread is stuck."""
        seconds, names = self._activity.longest_still(self._busy())
        if seconds < self._still_seconds:
            self._is_told = False
            self._service_manager.alive()
        elif not self._is_told:
            self._is_told = True
            error = OlrPgError(
                Code.THREAD_STUCK, f"{names}: nothing for {seconds:.0f} s", threads=names
            )
            _log.error(str(error), code=error.label, action=error.action)

    def _busy(self) -> list[Sequence[threading.Thread]]:
        decoding = [(one,) for one in threading.enumerate() if one.name == _DECODING]
        return [*decoding, *(group for one in self._targets for group in one.busy_threads)]
