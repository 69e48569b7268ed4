"""Faults that are made on purpose."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

Phase = str
"""``connect``, ``execute``, ``fetch`` or ``lob``."""


@dataclass(slots=True)
class Fault:
    """A fault that is going to strike.

    Attributes:
        phase: when; of every statement where `contains` is in it.
        contains: part of the statement's text, in any case; all where empty.
        error: the ORA number and its words; None for none.
        drop: cut the connection.
        delay: seconds to wait before the answer.
        times: how often; 0 for always.
        after: how many it lets pass before.
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
    """The faults that are still to come; may be changed from any thread."""

    def __init__(self) -> None:
        self._pending: list[Fault] = []
        self._lock = threading.Lock()

    def add(self, fault: Fault) -> Fault:
        """Let something go wrong from now on."""
        with self._lock:
            self._pending.append(fault)
        return fault

    def clear(self) -> None:
        """Let everything go right again."""
        with self._lock:
            self._pending.clear()

    def take(self, phase: Phase, sql: str = "") -> Fault | None:
        """Take the fault that strikes now, if one does."""
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
