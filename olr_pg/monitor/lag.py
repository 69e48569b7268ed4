"""Lag, divided by cause: by the times at which each stage passed an SCN.

Oracle's clock and time zone can differ from ours, so no times from the redo are compared here. Each
stage has `Milestones`: the SCNs that it reached, with the time by our clock. For a change that a
table may lack, the times are as follows. It was written when the first log after it was written. It
was read when its log was found here. It left decoding when it entered the ready queue, and left the
queue when it was sent to the client. Since then it waits for the applier. For redo in an online
log, the time of the last unsuccessful check is the earliest possible time of writing, so its
reading time is a maximum. Redo that Oracle has not written yet is unknown here; the time since the
newest redo limits it.
"""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MILESTONES_MAX: Final = 4096
_MORE: Final = MILESTONES_MAX // 8
"""How many milestones can be added before they are thinned out."""

_COARSENESS: Final = 1 / 256
"""Maximum error of a milestone's time, as a share of its age: a second and a half in six
minutes.
"""


class Lag(NamedTuple):
    """Seconds that the oldest change which a table may lack has spent in each stage.

    Attributes:
        reading: from the writing of its redo until it was found here; everything if redo is
            missing.
        decoding: from there to the ready queue.
        queue: in the ready queue, until the client received it.
        apply: from the client to its commit in the target; everything if the table is stopped.
    """

    reading: float = 0.0
    decoding: float = 0.0
    queue: float = 0.0
    apply: float = 0.0

    @property
    def total(self) -> float:
        """The age of that change since its redo was written."""
        return self.reading + self.decoding + self.queue + self.apply


class Milestones:
    """The times at which a stage passed SCNs; thread-safe.

    About `MILESTONES_MAX` are stored, however long a stage runs. Older ones are thinned out: one
    replaces its neighbours, with the earliest time. So an age is never too low, and only slightly
    too high (`_COARSENESS`). SCNs before the first milestone count as passed at its time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Use arrays, not objects: objects would fill a megabyte in the first hours of a run.
        self._scns = array("Q")
        self._times = array("d")

    def add(self, scn: int, at: float) -> None:
        """Record that the stage has processed everything below `scn`; ignored if it is not higher
        than before.

        Args:
            at: Unix time in seconds.
        """
        with self._lock:
            if not self._scns or scn > self._scns[-1]:
                self._scns.append(scn)
                self._times.append(max(at, self._times[-1]) if self._times else at)
                if len(self._scns) > MILESTONES_MAX + _MORE:
                    self._thin_out()

    def _thin_out(self) -> None:
        coarseness = _COARSENESS
        while len(self._scns) > MILESTONES_MAX:
            kept = [*_kept(self._times, coarseness), len(self._times)]
            # Keep the last SCN of each group, with the group's first time.
            self._scns = array("Q", (self._scns[end - 1] for end in kept[1:]))
            self._times = array("d", (self._times[begin] for begin in kept[:-1]))
            coarseness *= 2

    @property
    def kept(self) -> int:
        """The number of stored milestones."""
        with self._lock:
            return len(self._scns)

    def passed(self, scn: int) -> float | None:
        """Return when the stage passed `scn`; None if it has not."""
        with self._lock:
            index = bisect_right(self._scns, scn)
            return None if index == len(self._scns) else self._times[index]

    @property
    def scn(self) -> int:
        """The SCN that the stage has reached; 0 before it begins."""
        with self._lock:
            return self._scns[-1] if self._scns else 0

    @property
    def at(self) -> float | None:
        """The time at which the stage reached `scn`."""
        with self._lock:
            return self._times[-1] if self._times else None


def _kept(times: Sequence[float], coarseness: float) -> Iterator[int]:
    """Yield the start of each group that one milestone can replace; the last one is its own
    group.
    """
    begin = 0
    yield begin
    for index in range(1, len(times) - 1):
        if times[index + 1] - times[begin] > coarseness * (times[-1] - times[begin]):
            begin = index
            yield begin
    if len(times) > 1:
        yield len(times) - 1


def held_lag(lag: Lag, since: float, now: float) -> Lag:
    """Return the lag of a stopped table, which is behind since its first held change.

    Args:
        lag: of that change, if the earlier stages still have it.
        since: when it was held; known after a restart, too.
        now: Unix time in seconds.
    """
    return Lag(apply=max(lag.total, now - since))


def split_lag(
    scn: int,
    now: float,
    *,
    archived: Milestones,
    read: Milestones,
    queued: Milestones,
    taken: Milestones,
    missing_since: float | None = None,
) -> Lag:
    """Divide the age of the change at `scn` by stages; zero if no such change exists.

    Args:
        scn: of the first commit that a table may lack.
        now: Unix time in seconds.
        archived, read, queued, taken: the stages before the applier.
        missing_since: since when logs are missing after the readable ones; None if none are
            missing.
    """
    since = archived.passed(scn)
    if since is None:
        # The missing redo may contain that change, and nobody can rule it out.
        return Lag() if missing_since is None else Lag(reading=max(0.0, now - missing_since))
    times = [min(since, now)]
    for stage in (read, queued, taken):
        times.append(min(max(stage.passed(scn) or now, times[-1]), now))
    return Lag(*(end - begin for begin, end in pairwise([*times, now])))
