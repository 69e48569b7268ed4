"""The lowest begin SCN in a queue of transactions, kept current while they come and go."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from olr_pg.ordering.ready_transactions import U64, ReadyRun

_TOGETHER: Final = 256
"""Transactions that become one stretch, where they come in smaller ones."""


class _Stretch(NamedTuple):
    """Transactions number `first` to `end` (exclusive) in the order of their coming.

    Attributes:
        lowest: the lowest begin SCN of all of them.
        begins: shape (end - first), those of each; None where only `lowest` is known.
    """

    first: int
    end: int
    lowest: int
    begins: U64 | None


class LowestBegin:
    """A sliding minimum: stretches that a later one undercuts are forgotten.

    Each stretch comes and goes once, so that asking costs the same however many wait.
    """

    def __init__(self) -> None:
        self._stretches: deque[_Stretch] = deque()
        self._put = 0
        self._dropped = 0

    def put(self, run: ReadyRun, *, roughly: bool = False) -> None:
        """Add transactions that came.

        Args:
            roughly: the lowest of them stands for all until the last is dropped.
        """
        lowest, stretches = run.lowest_begin_scn, self._stretches
        first, self._put = self._put, self._put + len(run)
        begins = None if roughly else run.begin_scn
        while stretches and stretches[-1].lowest >= lowest:
            stretches.pop()
        if stretches and self._put - stretches[-1].first <= _TOGETHER:
            before = stretches.pop()
            # What was undercut between them is as good as what undercut it.
            gap = np.full(first - before.end, lowest, np.uint64)
            both = begins is not None and before.begins is not None
            begins = np.concatenate([before.begins, gap, begins]) if both else None
            first, lowest = before.first, before.lowest
        stretches.append(_Stretch(first, self._put, lowest, begins))

    def drop(self, count: int) -> None:
        """Drop the oldest `count`, which went."""
        self._dropped += count
        while self._stretches and self._stretches[0].end <= self._dropped:
            self._stretches.popleft()

    def lowest(self, dropping: int = 0) -> int | None:
        """Return the lowest of all but the oldest `dropping`; None where that is nothing."""
        gone = self._dropped + dropping
        found: int | None = None
        for stretch in self._stretches:
            if stretch.end <= gone:
                continue
            if stretch.begins is None or stretch.first >= gone:
                return stretch.lowest if found is None else min(found, stretch.lowest)
            # Those behind `gone` may be above the next stretch's, which is above all of these.
            found = int(stretch.begins[gone - stretch.first :].min())
        return found


def lower_of(one: int | None, other: int | None) -> int | None:
    """Return the lower of two SCNs, either of which may be missing."""
    return min((scn for scn in (one, other) if scn is not None), default=None)
