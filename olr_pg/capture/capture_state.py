"""The state of capture, and why it waits: for whoever shows or measures it."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from olr_pg.observability.error_records import failure_record

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.errors import OlrPgError


class CapturePhase(StrEnum):
    """The phases of capture: what it is doing, or what it waits for."""

    WAITING_FOR_CLIENT = "WAITING_FOR_CLIENT"
    """No client has said where to start: nothing is decoded."""

    DECODING = "DECODING"
    """Logs are being decoded."""

    SPILLING = "SPILLING"
    """Logs are being decoded, and transactions wait on disk because memory does not hold them."""

    PAUSED_FOR_FLOW_CONTROL = "PAUSED_FOR_FLOW_CONTROL"
    """The ready queue is full until the client takes or confirms some."""

    CAUGHT_UP = "CAUGHT_UP"
    """Everything that is archived has been decoded; the next log is looked for."""

    WAITING_FOR_REDO = "WAITING_FOR_REDO"
    """A log is missing, or not whole yet, and nothing behind it can be decoded."""

    WAITING_FOR_SOURCE = "WAITING_FOR_SOURCE"
    """The source database does not answer; it is asked again."""

    STOPPED = "STOPPED"
    """Decoding has ended with an error; the client's next session starts it again."""


@dataclass(frozen=True, slots=True)
class CaptureState:
    """The state of capture at a moment.

    Attributes:
        phase: what it does, or waits for.
        since: when that began, in seconds of Unix time.
        reason: what it waits for, or what ended it; None where the phase says it all.
    """

    phase: CapturePhase
    since: float
    reason: OlrPgError | None = None

    def as_record(self) -> dict[str, Any]:
        """Return ``state``, ``since`` and ``reason``, an error's record or None, for JSON."""
        reason = None if self.reason is None else failure_record(self.reason)
        return {"state": self.phase.value, "since": self.since, "reason": reason}


class CaptureMonitor:
    """Holds the state of capture; may be read from any thread.

    Args:
        clock: seconds of Unix time.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._state = CaptureState(CapturePhase.WAITING_FOR_CLIENT, clock())

    @property
    def state(self) -> CaptureState:
        """The state now."""
        return self._state

    def enter(self, phase: CapturePhase, reason: OlrPgError | None = None) -> bool:
        """Note that capture is in `phase` now.

        Returns:
            Whether that, or the reason, is new; where it is not, the state keeps its beginning.
        """
        with self._lock:
            before = self._state
            if (before.phase, str(before.reason)) == (phase, str(reason)):
                return False
            # It is one outage of the source, whatever each attempt meets.
            lasts = before.phase is phase is CapturePhase.WAITING_FOR_SOURCE
            since = before.since if lasts else self._clock()
            self._state = CaptureState(phase, since, reason)
            return True
