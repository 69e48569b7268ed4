"""Whether threads still do anything, as the system counts it: what a stuck thread does not report.

A thread that works uses processor time. One that waits with a limit is scheduled again when the
limit is over. One that waits for a lock that nobody releases does neither. So a thread that was not
scheduled for minutes, although it has work, is stuck. Threads without work may wait for as long as
they like: the caller says which have work.
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
    """Notes since when threads have done nothing.

    Args:
        clock: seconds that do not go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[tuple[int, ...], _Seen] = {}

    def longest_still(self, busy: Iterable[Sequence[threading.Thread]]) -> tuple[float, str]:
        """Look at groups of threads that have work, of each of which one at least has to move.

        A group that had no work at the last look counts from now on.

        Returns:
            The longest time in which no thread of a group has moved, and the group's names.
        """
        now = self._clock()
        seen: dict[tuple[int, ...], _Seen] = {}
        longest, names = 0.0, ""
        for group in busy:
            tasks = tuple(thread.native_id for thread in group if thread.native_id is not None)
            counts = tuple(map(_counts, tasks))
            if "" in counts:  # one has ended, or the system does not count
                continue
            before = self._seen.get(tasks)
            since = now if before is None or before.counts != counts else before.since
            seen[tasks] = _Seen(counts, since)
            if now - since > longest:
                longest, names = now - since, ", ".join(thread.name for thread in group)
        self._seen = seen
        return longest, names


def _counts(task: int) -> str:
    """Return a thread's processor time and how often it was scheduled; empty where unknown."""
    try:
        return (_TASKS / str(task) / "schedstat").read_text("ascii")
    except OSError:
        return ""
