"""Faults that tests inject on purpose."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

Phase = str
"""``connect``, ``execute``, ``fetch`` or ``lob``."""


@dataclass(slots=True)
class Fault:
    """A fault that will happen.

    Attributes:
        phase: the phase of a call in which it happens.
        contains: happens only for statements with this text (case is ignored); empty for all.
        error: number and text of the ORA error; None for no error.
        drop: cut the connection.
        delay: seconds to wait before the answer.
        times: number of times that it happens; 0 for every time.
        after: number of matching calls that succeed before the fault happens.
    """

    phase: Phase
    contains: str = ""
    error: tuple[int, str] | None = None
    drop: bool = False
    delay: float = 0.0
    times: int = 1
    after: int = 0
    hits: int = field(default=0, init=False)


class Faults:
    """The pending faults; any thread may change them."""

    def __init__(self) -> None:
        self._pending: list[Fault] = []
        self._lock = threading.Lock()

    def add(self, fault: Fault) -> Fault:
        """Add a fault; return it."""
        with self._lock:
            self._pending.append(fault)
        return fault

    def clear(self) -> None:
        """Remove all faults."""
        with self._lock:
            self._pending.clear()

    def take(self, phase: Phase, sql: str = "") -> Fault | None:
        """Return the fault that happens now, if there is one, and count it."""
        with self._lock:
            for fault in self._pending:
                if fault.phase == phase and fault.contains.upper() in sql.upper():
                    if fault.after:
                        fault.after -= 1
                        continue
                    fault.hits += 1
                    if fault.times and fault.hits >= fault.times:
                        self._pending.remove(fault)
                    return fault
        return None
