"""Reports to the service manager (systemd) that the appliance is alive, as long as its threads make
progress.

The main loop calls it. If a thread that has work makes no progress for `STILL_SECONDS`, the reports
end, and systemd restarts the process (``WatchdogSec=``). A thread that waits for something external
(a lock in PostgreSQL, a source that does not answer) does not count as stuck: its waits have time
limits, so it runs periodically. The same applies to a thread that waits for Spark while a backlog
is decoded.
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
"""Seconds without progress after which a thread counts as stuck. This time is longer than any wait
for an answer of Oracle, during which a thread makes no progress.
"""

_DECODING: Final = "olr-decode"

_log = structlog.get_logger(__name__)


class Watchdog:
    """Reports that the appliance is alive; the main loop calls `poll` periodically.

    Args:
        targets: the targets whose threads must make progress.
        still_seconds: seconds without activity after which a thread counts as stuck.
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
                Code.THREAD_STUCK, f"{names}: no progress for {seconds:.0f} s", threads=names
            )
            _log.error(str(error), code=error.label, action=error.action)

    def _busy(self) -> list[Sequence[threading.Thread]]:
        decoding = [(one,) for one in threading.enumerate() if one.name == _DECODING]
        return [*decoding, *(group for one in self._targets for group in one.busy_threads)]
