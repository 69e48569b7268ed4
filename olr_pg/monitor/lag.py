"""Lag, split into its causes, by when each stage passed an SCN.

Oracle's clock and time zone are not ours, so nothing here compares times of the redo. Each stage
has `Milestones`: the SCN that it had come to, and when by our clock. A change that a table may lack
was written when the first log behind it was, was read when that log was found here, left decoding
when the ready queue got it, left the queue when it was given to the client, and has waited for the
applier since then. Redo of an online log was written, at the earliest, when it was looked for in
vain the last time: so its reading is what it can have taken at most. What Oracle has not written
yet nobody here can know: that is bounded by the time since the newest redo.
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
"""How many more there may be before they are thinned out."""

_COARSENESS: Final = 1 / 256
"""What part of its age the time of a milestone may be off: a second and a half in six minutes."""


class Lag(NamedTuple):
    """Seconds that the oldest change which a table may lack has spent where.

    Attributes:
        reading: between the writing of its redo and its being found here; all of it where redo is
            missing.
        decoding: from there to the ready queue.
        queue: in the ready queue, until the client took it.
        apply: between the client and its commit in the target; all of it where a table has stopped.
    """

    reading: float = 0.0
    decoding: float = 0.0
    queue: float = 0.0
    apply: float = 0.0

    @property
    def total(self) -> float:
        """The age of that change, since its redo was written."""
        return self.reading + self.decoding + self.queue + self.apply


class Milestones:
    """Keeps the times at which a stage passed SCNs; may be used from any thread.

    About `MILESTONES_MAX` are kept, however long a stage works. Older ones are thinned out: one of
    them stands for its neighbours, with the time of the earliest. So an age is never told too low,
    and too high by little (`_COARSENESS`). What lies before the first counts as passed when that
    was.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Not objects: they would fill a megabyte in the first hours of a run.
        self._scns = array("Q")
        self._times = array("d")

    def add(self, scn: int, at: float) -> None:
        """Note that the stage has come to `scn` and lacks nothing below it; not further is no news.

        Args:
            at: seconds of Unix time.
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
            # The SCN of the last of each group, with the time of its first.
            self._scns = array("Q", (self._scns[end - 1] for end in kept[1:]))
            self._times = array("d", (self._times[begin] for begin in kept[:-1]))
            coarseness *= 2

    @property
    def kept(self) -> int:
        """Is the number of milestones that are kept."""
        with self._lock:
            return len(self._scns)

    def passed(self, scn: int) -> float | None:
        """Return when the stage came past `scn`; None where it has not."""
        with self._lock:
            index = bisect_right(self._scns, scn)
            return None if index == len(self._scns) else self._times[index]

    @property
    def scn(self) -> int:
        """Is the SCN that the stage has come to; 0 where it has not begun."""
        with self._lock:
            return self._scns[-1] if self._scns else 0

    @property
    def at(self) -> float | None:
        """Is the time at which the stage came to `scn`."""
        with self._lock:
            return self._times[-1] if self._times else None


def _kept(times: Sequence[float], coarseness: float) -> Iterator[int]:
    """Give where groups begin that a milestone each can stand for; the last is by itself."""
    begin = 0
    yield begin
    for index in range(1, len(times) - 1):
        if times[index + 1] - times[begin] > coarseness * (times[-1] - times[begin]):
            begin = index
            yield begin
    if len(times) > 1:
        yield len(times) - 1


def held_lag(lag: Lag, since: float, now: float) -> Lag:
    """Return the lag of a stopped table, which is behind by its first held change.

    Args:
        lag: of that change, as far as the stages before still tell.
        since: when it was held, which outlasts a restart.
        now: seconds of Unix time.
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
    """Split the time of the change at `scn` into stages; nothing where nothing of it is there.

    Args:
        scn: of the first commit that a table may lack.
        now: seconds of Unix time.
        archived, read, queued, taken: the stages before the applier.
        missing_since: since when logs are missing behind those that can be read; None: none are.
    """
    since = archived.passed(scn)
    if since is None:
        # What is missing may hold that change: nobody can say that it does not.
        return Lag() if missing_since is None else Lag(reading=max(0.0, now - missing_since))
    times = [min(since, now)]
    for stage in (read, queued, taken):
        times.append(min(max(stage.passed(scn) or now, times[-1]), now))
    return Lag(*(end - begin for begin, end in pairwise([*times, now])))
