"""The main loop of the appliance, in the main thread: restarts failed appliers, and decides when to
end.

It also reports to the service manager (systemd) that the appliance is alive (`Watchdog`). If a
thread that has work makes no progress for `STILL_SECONDS`, the reports end, and systemd restarts
the process (``WatchdogSec=``). A thread that waits for something external (a lock in PostgreSQL, a
source that does not answer) does not count as stuck: its waits have time limits, so it runs
periodically. The same applies to a thread that waits for Spark while a backlog is decoded.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

import structlog

from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.thread_activity import ThreadActivity

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from olr_pg.appliance.target import RunningTarget
    from olr_pg.observability.service_manager import ServiceManager
    from olr_pg.replicator.decoder import Decoder

_WAIT_SECONDS: Final = 0.2
_REST_SECONDS: Final = 2.0
"""The last seconds of the time limit; they are reserved for cancelling statements and closing
connections and files.
"""

_log = structlog.get_logger(__name__)


class Serving:
    """Starts the targets' appliers, and ends when there is no more work.

    If there are several targets, the failure of an applier does not end the others: the failed
    applier is restarted after a pause (OLR-04043). The appliance ends only if all appliers have
    failed and there are no external clients.

    If the disk of `context.data` is full (OLR-01160), the appliance does not end: the affected
    appliers restart when there is space.

    Args:
        decoder: the decoder; it is told which targets are unavailable.
        once: end when all available changes are confirmed; failed appliers are not restarted.
        polls: functions that are called periodically.
    """

    def __init__(
        self,
        targets: Sequence[RunningTarget],
        decoder: Decoder,
        *,
        once: bool,
        polls: Sequence[Callable[[], None]],
    ) -> None:
        self._targets = targets
        self._applied = [target for target in targets if target.is_applied]
        self._served = [target for target in targets if not target.is_applied]
        self._decoder = decoder
        self._once = once
        self._polls = polls
        self._says_waiting = False

    def run(self, drain_seconds: float, ending_seconds: float) -> None:
        """Serve until the end.

        Args:
            drain_seconds: time limit, after SystemExit, to apply and confirm the transactions that
                were received.
            ending_seconds: time limit from the end of the loop, whatever its reason, to the end of
                the process.

        Raises:
            OlrPgError: the error of the first failed target.
        """
        try:
            for target in self._applied:
                target.start(once=self._once)
            while not self._is_over():
                self._wait()
                for poll in self._polls:
                    poll()
        except SystemExit:
            began = time.monotonic()
            abandons_in = ending_seconds - min(_REST_SECONDS, ending_seconds / 4)
            self._drain(min(drain_seconds, abandons_in))
            ending_seconds -= time.monotonic() - began
            raise
        finally:
            self._end(time.monotonic() + ending_seconds)
        for target in self._applied:
            target.report()

    def _end(self, deadline: float) -> None:
        """Stop the appliers. Shortly before `deadline`, abandon the appliers that have not
        ended.
        """
        rest = min(_REST_SECONDS, max(0.0, deadline - time.monotonic()) / 4)
        for target in self._applied:
            target.stop()
        for target in self._applied:
            target.join(max(0.0, deadline - rest - time.monotonic()))
        late = [target for target in self._applied if target.is_alive]
        for target in late:
            _log.warning(
                "the applier did not stop in time: cancelling its running statements",
                **target.delivery.named,
            )
            target.abandon()
        for target in late:
            target.join(max(0.0, deadline - rest / 4 - time.monotonic()))

    def _wait(self) -> None:
        """Wait for `_WAIT_SECONDS`, or until the first applier ends."""
        at_work = [target for target in self._applied if target.is_alive]
        if at_work:
            at_work[0].join(_WAIT_SECONDS)
        else:
            time.sleep(_WAIT_SECONDS)

    def _is_over(self) -> bool:
        """Return whether the loop can end. Otherwise restart failed appliers whose pause is over.

        Raises:
            OlrPgError: a failure that ends the loop.
        """
        at_work = [target for target in self._applied if target.is_alive]
        failed = [target for target in self._applied if target.failure and not target.is_alive]
        for target in self._applied:
            if target in failed or target.is_waiting:
                self._decoder.runs.stop_expecting(target.name)
        if self._once:
            if at_work:
                return False
            if failed:
                raise _failure(failed[0])
            return self._is_taken()
        lasting = [target for target in failed if target.full is None]
        if lasting and len(lasting) == len(self._targets):
            raise _failure(lasting[0])
        for target in failed:
            if target.is_due():
                target.start(once=False)
            elif not target.is_postponed:
                target.postpone()
        return bool(self._applied) and not (at_work or failed or self._served)

    def _is_taken(self) -> bool:
        """Return whether the external clients have confirmed all transactions. The first time that
        they have not, log that the appliance waits for them.
        """
        waiting = [target for target in self._served if not target.is_confirmed]
        if waiting and not self._says_waiting:
            self._says_waiting = True
            addresses = [":".join(map(str, target.listener.address)) for target in waiting]
            _log.info("waiting for external clients to confirm all transactions", ports=addresses)
        return not waiting

    def _drain(self, seconds: float) -> None:
        """Make the appliers apply and confirm the transactions that they have received."""
        _log.info("terminating: applying the transactions received so far", seconds_max=seconds)
        deadline = time.monotonic() + seconds
        for target in self._applied:
            if target.applier is not None:
                target.applier.drain()
        for target in self._applied:
            target.join(max(0.0, deadline - time.monotonic()))
            if target.applier is not None:
                confirmed = target.applier.confirmed_scn
                _log.info(
                    "the applier has ended",
                    confirmed_scn=confirmed or "none yet",
                    **target.delivery.named,
                )


def _failure(target: RunningTarget) -> BaseException:
    assert target.failure is not None
    return target.failure


STILL_SECONDS: Final = 900.0
"""Seconds without progress after which a thread counts as stuck. This time is longer than any wait
for an answer of Oracle, during which a thread makes no progress.
"""

_DECODING: Final = "olr-decode"


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
