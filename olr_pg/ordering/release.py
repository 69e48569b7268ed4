"""Passes transactions from the merger to the ready queues, some at a time."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.ordering.ready_transactions import by_view

if TYPE_CHECKING:
    from collections.abc import Iterable

    from olr_pg.ordering.ready_transactions import ReadyRun

_TOGETHER: Final = 256
"""Number of transactions of a view that are queued at once; until then the checkpoint does not move
past them.
"""


class _Next(NamedTuple):
    """A run of a view, and the lowest begin SCN of it and of later ones."""

    run: ReadyRun
    lowest_begin_scn: int


class Release:
    """Transactions that the merger released together; true while some remain.

    Args:
        runs: those of each view in commit order.
    """

    def __init__(self, runs: Iterable[ReadyRun]) -> None:
        self._views = [_waiting(of_view) for of_view in by_view(runs).values()]

    def __bool__(self) -> bool:
        return bool(self._views)

    @property
    def first_commit_scn(self) -> int:
        """The lowest commit SCN of the next transactions."""
        return min(view[0].run.first_commit_scn for view in self._views)

    @property
    def lowest_begin_scn(self) -> int:
        """The lowest begin SCN of everything that remains."""
        return min(view[0].lowest_begin_scn for view in self._views)

    def take(self, barrier: int | None) -> tuple[list[ReadyRun], int]:
        """Return the next transactions: everything that commits up to an SCN, and that SCN.

        Args:
            barrier: a commit SCN after the first, from which on nothing may be released; None for
                no limit.
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
