"""Passes transactions from the merger to the queues of ready transactions, some at a time."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.ordering.ready_transactions import by_view

if TYPE_CHECKING:
    from collections.abc import Iterable

    from olr_pg.ordering.ready_transactions import ReadyRun

_TOGETHER: Final = 256
"""Maximum number of transactions of a view that are queued in one step. The checkpoint cannot
advance past transactions that are not queued yet.
"""


class _Next(NamedTuple):
    """A run of a view, and the lowest begin SCN of this run and all later runs of the view."""

    run: ReadyRun
    lowest_begin_scn: int


class Release:
    """Transactions that the merger released in one step. The object is true while it contains some.

    Args:
        runs: the released runs, for each view in commit order.
    """

    def __init__(self, runs: Iterable[ReadyRun]) -> None:
        self._views = [_waiting(of_view) for of_view in by_view(runs).values()]

    def __bool__(self) -> bool:
        return bool(self._views)

    @property
    def first_commit_scn(self) -> int:
        """The lowest commit SCN of the remaining transactions."""
        return min(view[0].run.first_commit_scn for view in self._views)

    @property
    def lowest_begin_scn(self) -> int:
        """The lowest begin SCN of the remaining transactions."""
        return min(view[0].lowest_begin_scn for view in self._views)

    def take(self, barrier: int | None) -> tuple[list[ReadyRun], int]:
        """Remove the next transactions. Return all transactions that commit up to an SCN, and this
        SCN.

        Args:
            barrier: transactions that commit at this SCN or later are not returned; it is higher
                than `first_commit_scn`. None for no limit.
        """
        heads = [view[0].run for view in self._views]
        last = min(run.cut(min(len(run), _TOGETHER))[0].last_commit_scn for run in heads)
        if barrier is not None:
            last = min(last, barrier - 1)
        taken = [run for view in self._views for run in _take_up_to(view, last)]
        self._views = [view for view in self._views if view]
        return taken, last


def _waiting(runs: list[ReadyRun]) -> deque[_Next]:
    waiting: deque[_Next] = deque()
    for run in reversed(runs):
        _put_before(waiting, run)
    return waiting


def _put_before(waiting: deque[_Next], run: ReadyRun) -> None:
    lowest = run.lowest_begin_scn
    if waiting:
        lowest = min(lowest, waiting[0].lowest_begin_scn)
    waiting.appendleft(_Next(run, lowest))


def _take_up_to(waiting: deque[_Next], scn: int) -> list[ReadyRun]:
    taken = []
    while waiting and waiting[0].run.first_commit_scn <= scn:
        run = waiting.popleft().run
        now, later = run.cut(run.count_up_to(scn))
        taken.append(now)
        if later:
            _put_before(waiting, later)
    return taken
