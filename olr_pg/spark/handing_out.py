"""Hands tasks out to the workers of this machine, and takes their results in order.

Workers ask for tasks; a worker is given few at a time, in the order of their numbers, so that
results come about in the order in which they are taken and all workers end at the same time. What a
lost worker had is handed out again, first of all.

**Turns.** Workers ask during a turn: the time of one Spark job, which keeps its cores meanwhile. A
turn ends after `TURN_SECONDS`, so that other jobs get their share of the cores, and the next one
begins as soon as there is something to hand out.

**Window.** What was handed out and not taken yet is bounded. A worker that finds the window full
waits for room as long as its turn lasts.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from olr_pg.spark.result_cells import Cell

TURN_SECONDS: Final = 4.0
"""A job costs Spark some 50 ms of the processor, whatever it does."""

SHARE_BYTES: Final = 16 << 20
"""Bytes of input that a worker is given at a time."""

WINDOW_BYTES: Final = 256 << 20
"""Bytes of input for each core that are handed out before their results are taken."""

_WINDOW_TASKS: Final = 2
"""The same as a number of tasks, where nobody knows their input."""

_LOSSES_MAX: Final = 3


class Portions(NamedTuple):
    """Says how much a worker gets.

    Attributes:
        sizes: of each task.
        share: size that a worker is given at a time, if a task is not larger.
        window: size that is handed out before it is taken.
        ahead: whether a worker is given the next share before it has finished one.
    """

    sizes: Sequence[int]
    share: int
    window: int
    ahead: bool

    @classmethod
    def of(cls, count: int, sizes: Sequence[int] | None, width: int) -> Self:
        """Share `count` tasks among `width` workers; tasks of unknown size go out one by one."""
        if sizes is None:
            return cls([1] * count, 1, _WINDOW_TASKS * width, ahead=False)
        return cls(sizes, SHARE_BYTES, WINDOW_BYTES * width, ahead=True)

    @property
    def tasks_at_once(self) -> int:
        """About how many tasks the window has room for."""
        mean = max(1, sum(self.sizes) // len(self.sizes))
        return min(len(self.sizes), self.window // mean + 1)


class HandingOut:
    """The tasks of one call, for any thread.

    Args:
        portions: of one task or more.
        width: workers of a turn.
        begin_turn: submits the Spark job of a turn; called with its number, and must not wait.
        clock: seconds.
    """

    def __init__(
        self,
        portions: Portions,
        width: int,
        begin_turn: Callable[[int], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._portions = portions
        self._width = width
        self._begin_turn = begin_turn
        self._clock = clock
        self._changed = threading.Condition()
        self._next = 0
        self._left = sum(portions.sizes)
        self._again: list[int] = []
        self._losses: Counter[int] = Counter()
        self._untaken = 0
        self._taken = 0
        self._results: dict[int, list[Cell]] = {}
        self._failure: BaseException | None = None
        self._closed = False
        self._turns = 0
        self._turn: int | None = None
        self._ends = 0.0

    @property
    def ahead(self) -> bool:
        """Is true where a worker is given the next share before it has finished one."""
        return self._portions.ahead

    def start(self) -> None:
        """Begin the first turn."""
        with self._changed:
            self._have_turn()

    def share(self, turn: int, *, wait: bool) -> list[int]:
        """Take the tasks that a worker of `turn` is to do next.

        Args:
            wait: for room in the window.

        Returns:
            Numbers; empty: none now, and none any more in this turn if it was waited for.
        """
        with self._changed:
            while self._lasts(turn):
                share = self._next_share()
                if share or not wait or self._next == len(self._portions.sizes):
                    return share
                self._changed.wait(max(0.0, self._ends - self._clock()))
            return []

    def put(self, task: int, cells: list[Cell]) -> None:
        """Put the result of a task here."""
        with self._changed:
            self._results[task] = cells
            self._changed.notify_all()

    def give_back(self, tasks: Iterable[int]) -> None:
        """Take back the tasks of a worker that is lost."""
        with self._changed:
            for task in tasks:
                self._losses[task] += 1
                heappush(self._again, task)
                if self._losses[task] >= _LOSSES_MAX:
                    detail = f"the Python worker that had this task was lost {_LOSSES_MAX} times"
                    self.fail(OlrPgError(Code.SPARK_JOB_FAILED, detail, task=task))
            self._have_turn()
            self._changed.notify_all()

    def fail(self, failure: BaseException) -> None:
        """End all handing out with this failure."""
        with self._changed:
            self._failure = self._failure or failure
            self._changed.notify_all()

    def turn_ended(self, turn: int, failure: BaseException | None) -> None:
        """Note that the job of a turn has ended."""
        with self._changed:
            if self._turn == turn:
                self._turn = None
            self._failure = self._failure or failure
            self._have_turn()
            self._changed.notify_all()

    def result(self, task: int) -> list[Cell]:
        """Wait for the result of a task, and return it.

        Raises:
            OlrPgError: 6005 and what else ended a job, if the result did not come before that.
        """
        with self._changed:
            while task not in self._results:
                if self._failure is not None:
                    raise self._failure
                self._changed.wait()
            return self._results.pop(task)

    def taken(self, task: int) -> None:
        """Nobody waits for the result of this task any more: there is room for another."""
        with self._changed:
            self._untaken -= self._portions.sizes[task]
            self._taken += 1
            self._have_turn()
            self._changed.notify_all()

    def close(self) -> None:
        """Hand out nothing more."""
        with self._changed:
            self._closed = True
            # It knows this object: so nothing of a call is left to the garbage collector, which a
            # process with a large heap calls too seldom.
            self._begin_turn = _begin_none
            self._changed.notify_all()

    def _lasts(self, turn: int) -> bool:
        """Tell whether a turn has not ended; it begins with the first worker that asks."""
        if self._closed or self._failure is not None or self._turn != turn:
            return False
        now = self._clock()
        if not self._ends:
            self._ends = now + TURN_SECONDS
        if now < self._ends:
            return True
        self._turn = None
        self._have_turn()
        return False

    def _have_turn(self) -> None:
        """Begin a turn where none is and something can be handed out."""
        if self._turn is not None or self._closed or self._failure is not None:
            return
        if self._again or self._has_room():
            self._turns += 1
            self._turn = self._turns
            self._ends = 0.0
            self._begin_turn(self._turn)

    def _has_room(self) -> bool:
        """Tell whether the next task may be handed out: there is one, and it fits the window."""
        sizes, window = self._portions.sizes, self._portions.window
        if self._next == len(sizes):
            return False
        return self._next == self._taken or self._untaken + sizes[self._next] <= window

    def _next_share(self) -> list[int]:
        if self._again:
            return [heappop(self._again)]
        # Less towards the end, so that no worker has much to do when the others have finished.
        room = min(self._portions.share, self._left // (2 * self._width))
        share: list[int] = []
        while self._has_room() and (not share or self._portions.sizes[self._next] <= room):
            size = self._portions.sizes[self._next]
            room -= size
            self._untaken += size
            self._left -= size
            share.append(self._next)
            self._next += 1
        return share


def _begin_none(_: int) -> None:
    """Begin no turn: the object is closed."""
