"""Detects stuck threads by the operating system's counters, because a stuck thread cannot report
that it is stuck.

A working thread uses processor time. A thread that waits with a time limit is scheduled when the
limit expires. A thread that waits for a lock that is never released neither uses processor time nor
is scheduled. So a thread that has work and was not scheduled for minutes is stuck. Threads without
work may wait as long as they like; the caller says which threads have work.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable, Sequence

_TASKS: Final = Path("/proc/self/task")


class _Seen(NamedTuple):
    counts: tuple[str, ...]
    since: float


class ThreadActivity:
    """Records since when threads have been inactive.

    Args:
        clock: returns monotonic time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[tuple[int, ...], _Seen] = {}

    def longest_still(self, busy: Iterable[Sequence[threading.Thread]]) -> tuple[float, str]:
        """Find the group of threads that has been inactive for the longest time.

        A group is active if at least one of its threads is active. The inactive time of a group
        that was not in `busy` at the last call starts now.

        Returns:
            (the longest inactive time of a group in seconds, the names of that group's threads).
        """
        now = self._clock()
        seen: dict[tuple[int, ...], _Seen] = {}
        longest, names = 0.0, ""
        for group in busy:
            tasks = tuple(thread.native_id for thread in group if thread.native_id is not None)
            counts = tuple(map(_counts, tasks))
            if "" in counts:  # a thread has ended, or the system has no such counters
                continue
            before = self._seen.get(tasks)
            since = now if before is None or before.counts != counts else before.since
            seen[tasks] = _Seen(counts, since)
            if now - since > longest:
                longest, names = now - since, ", ".join(thread.name for thread in group)
        self._seen = seen
        return longest, names


def _counts(task: int) -> str:
    """Return a thread's processor time and the number of times it was scheduled; empty if
    unknown.
    """
    try:
        return (_TASKS / str(task) / "schedstat").read_text("ascii")
    except OSError:
        return ""
