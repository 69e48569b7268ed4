"""The transactions of a ready queue that are transmitted and wait for their confirmation."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from olr_pg.ordering.ready_transactions import appended

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from olr_pg.ordering.ready_transactions import ReadyRun


class Transmitted:
    """Transmitted transactions, in commit order; its queue has the lock.

    Attributes:
        count: how many they are.
        confirmed: how many there were before them, which are confirmed.
    """

    def __init__(self) -> None:
        self._runs: deque[ReadyRun] = deque()
        self.count = 0
        self.confirmed = 0

    @property
    def runs(self) -> Collection[ReadyRun]:
        """The runs, in order."""
        return self._runs

    def add(self, run: ReadyRun) -> None:
        """Add the next ones."""
        self.count += len(run)
        if not appended(self._runs, run):
            self._runs.append(run)

    def count_up_to(self, scn: int) -> int:
        """Count those that commit at `scn` or before."""
        count = 0
        for run in self._runs:
            found = run.count_up_to(scn)
            count += found
            if found < len(run):
                break
        return count

    def confirms(self, scn: int) -> bool:
        """Tell whether any commits at `scn` or before."""
        return bool(self._runs) and self._runs[0].first_commit_scn <= scn

    def first_commit_scn(self, confirming: int) -> int | None:
        """Return the commit SCN of the first one behind SCN `confirming`; None without one."""
        for run in self._runs:
            dropped = run.count_up_to(confirming)
            if dropped < len(run):
                return run.cut(dropped)[1].first_commit_scn
        return None

    def confirm(self, count: int) -> Iterator[ReadyRun]:
        """Drop the first `count`, and yield them."""
        self.count -= count
        self.confirmed += count
        while count:
            run = self._runs.popleft()
            gone, rest = run.cut(min(count, len(run)))
            count -= len(gone)
            if rest:
                self._runs.appendleft(rest)
            yield gone

    def take_back(self, scn: int) -> Iterator[ReadyRun]:
        """Drop those that commit behind `scn`, and yield them, the last ones first."""
        while self._runs and self._runs[-1].last_commit_scn > scn:
            run = self._runs.pop()
            kept, again = run.cut(run.count_up_to(scn))
            if kept:
                self._runs.append(kept)
            self.count -= len(again)
            yield again
