"""Records the state of capture, and the reason why it waits, for status displays and metrics."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from olr_pg.observability.advised_commands import failure_record

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.errors import OlrPgError


class CapturePhase(StrEnum):
    """The phases of capture. A phase says what capture does, or what it waits for."""

    WAITING_FOR_CLIENT = "WAITING_FOR_CLIENT"
    """No client has requested a start position, so nothing is decoded."""

    DECODING = "DECODING"
    """Logs are being decoded."""

    SPILLING = "SPILLING"
    """Logs are being decoded, and transactions are spilled to disk because they do not fit in
    memory.
    """

    PAUSED_FOR_FLOW_CONTROL = "PAUSED_FOR_FLOW_CONTROL"
    """The queue of ready transactions is full. Capture waits until the client receives or confirms
    some of these transactions.
    """

    CAUGHT_UP = "CAUGHT_UP"
    """All archived redo has been decoded; capture polls for the next log."""

    WAITING_FOR_REDO = "WAITING_FOR_REDO"
    """A log is missing or incomplete, and later logs cannot be decoded before it."""

    WAITING_FOR_SOURCE = "WAITING_FOR_SOURCE"
    """The source database does not answer; capture retries."""

    STOPPED = "STOPPED"
    """Decoding has ended with an error; the client's next session restarts it."""


@dataclass(frozen=True, slots=True)
class CaptureState:
    """The state of capture at a point in time.

    Attributes:
        phase: what capture does, or what it waits for.
        since: Unix time in seconds at which the phase began.
        reason: an error that says what capture waits for, or that ended it; None if the phase says
            everything.
    """

    phase: CapturePhase
    since: float
    reason: OlrPgError | None = None

    def as_record(self) -> dict[str, Any]:
        """Return the keys ``state``, ``since`` and ``reason`` for JSON; the reason is an error's
        record or None.
        """
        reason = None if self.reason is None else failure_record(self.reason)
        return {"state": self.phase.value, "since": self.since, "reason": reason}


class CaptureMonitor:
    """Holds the state of capture; can be read from any thread.

    Args:
        clock: returns the Unix time in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._state = CaptureState(CapturePhase.WAITING_FOR_CLIENT, clock())

    @property
    def state(self) -> CaptureState:
        """The current state."""
        return self._state

    def enter(self, phase: CapturePhase, reason: OlrPgError | None = None) -> bool:
        """Record that capture is in `phase` now.

        Returns:
            Whether the phase or the reason has changed; if not, the state keeps its start time.
        """
        with self._lock:
            before = self._state
            if (before.phase, str(before.reason)) == (phase, str(reason)):
                return False
            # If attempts to reach the source fail with different errors, it is still the same
            # outage: keep its start time.
            lasts = before.phase is phase is CapturePhase.WAITING_FOR_SOURCE
            since = before.since if lasts else self._clock()
            self._state = CaptureState(phase, since, reason)
            return True
