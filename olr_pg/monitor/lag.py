"""The lag of a table, divided by cause: computed from the times at which each stage passed an SCN.

Oracle's clock and time zone can differ from those of this host, so no times from the redo are used.
Each stage has `Milestones`: the SCNs that it reached, with the time by the clock of this host. For
a change that a table may lack, the times are as follows. A change counts as written when the first
log after it was written. A change counts as read when this host found the change's log. Decoding of
the change ends when it enters the ready queue. The stage of the queue ends when the change is sent
to the client. From that time on, the change waits for the applier. Redo in an online log counts as
written at the last check that did not find it. The redo cannot have been written earlier, so the
lag of the stage `reading` is an upper limit. olr_pg does not know whether Oracle has written more
redo since the newest known redo.
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
"""Number of milestones that can be added above `MILESTONES_MAX` before they are thinned out."""

_COARSENESS: Final = 1 / 256
"""Maximum error of a milestone's time, as a share of its age; for example, 1.5 seconds for an age
of six minutes.
"""


class Lag(NamedTuple):
    """The number of seconds that a change has spent in each stage. The change is the oldest one
    that a table may lack.

    Attributes:
        reading: from the writing of the change's redo until this host found this redo. If redo is
            missing, `reading` contains the whole lag.
        decoding: from the end of `reading` until the change entered the ready queue.
        queue: from the end of `decoding` until the client received the change.
        apply: from the end of `queue` until the change's commit in the target. If the table is
            stopped, `apply` contains the whole lag.
    """

    reading: float = 0.0
    decoding: float = 0.0
    queue: float = 0.0
    apply: float = 0.0

    @property
    def total(self) -> float:
        """The time since the redo of the change was written."""
        return self.reading + self.decoding + self.queue + self.apply


class Milestones:
    """The times at which a stage passed SCNs; thread-safe.

    About `MILESTONES_MAX` milestones are stored, however long a stage runs. Older milestones are
    thinned out: one milestone replaces a group of neighbours and has the earliest time of the
    group. So a computed age is never too low, and only slightly too high (`_COARSENESS`). SCNs
    before the first milestone count as passed at the time of the first milestone.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Use arrays: objects would need a megabyte after the first hours of a run.
        self._scns = array("Q")
        self._times = array("d")

    def add(self, scn: int, at: float) -> None:
        """Record that the stage has processed everything below `scn`. Ignore the call if `scn` is
        not higher than the last recorded SCN.

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
            # Keep the last SCN and the first time of each group.
            self._scns = array("Q", (self._scns[end - 1] for end in kept[1:]))
            self._times = array("d", (self._times[begin] for begin in kept[:-1]))
            coarseness *= 2

    @property
    def kept(self) -> int:
        """The number of stored milestones."""
        with self._lock:
            return len(self._scns)

    def passed(self, scn: int) -> float | None:
        """Return the time at which the stage passed `scn`; None if it has not passed it."""
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
        """The time at which the stage reached its current SCN (see `scn`)."""
        with self._lock:
            return self._times[-1] if self._times else None


def _kept(times: Sequence[float], coarseness: float) -> Iterator[int]:
    """Yield the index of the first milestone of each group that one milestone can replace. The last
    milestone is a group of its own.
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
    """Return the lag of a stopped table. The lag of a stopped table is counted from its first held
    change.

    Args:
        lag: the lag of this change, if the milestones of the earlier stages still contain it.
        since: the time when the change was held; it is also known after a restart.
        now: Unix time in seconds.
    """
    return Lag(apply=max(lag.total, now - since))


class Stages(NamedTuple):
    """The milestones of the stages before the applier."""

    archived: Milestones
    read: Milestones
    queued: Milestones
    taken: Milestones


def split_lag(
    scn: int,
    now: float,
    stages: Stages,
    missing_since: float | None = None,
) -> Lag:
    """Divide the age of the change at `scn` by stages. All stages are 0 if no redo reaches `scn`
    yet.

    Args:
        scn: the SCN of the first commit that a table may lack.
        now: Unix time in seconds.
        missing_since: the time since which logs are missing after the last readable log; None if no
            log is missing.
    """
    since = stages.archived.passed(scn)
    if since is None:
        # The missing redo may contain that change, so its whole lag counts as reading.
        return Lag() if missing_since is None else Lag(reading=max(0.0, now - missing_since))
    times = [min(since, now)]
    for stage in (stages.read, stages.queued, stages.taken):
        times.append(min(max(stage.passed(scn) or now, times[-1]), now))
    return Lag(*(end - begin for begin, end in pairwise([*times, now])))
