"""Displays the progress of work on many tables: as bars on a terminal, otherwise as a line every
few seconds.

The output goes to stderr. The first line shows the total: rows, percent, rate and the remaining
time. On a terminal, a bar for each table in progress follows.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from olr_pg.observability.wording import counted, one_line, span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rich.table import Table

    from olr_pg.load.load_progress import Amount

LINE_SECONDS: Final = 15.0
"""Interval between two lines if stderr is not a terminal. Work that takes less time prints no
line.
"""

RATE_SECONDS: Final = 20.0
"""Length of the period over which the rate is measured."""

_SAMPLE_SECONDS: Final = 0.5
_BAR_WIDTH: Final = 16
_SHOWN_MAX: Final = 12
"""Maximum number of tables in progress that are shown on a terminal."""


class Meter:
    """Measures the progress of one table, and its recent rate.

    Args:
        total: total number of rows; None if unknown.
        now: the monotonic time in seconds.
    """

    def __init__(self, total: int | None, now: float) -> None:
        self.total = total
        self.rows = 0
        self.is_done = False
        self._samples = deque([(now, 0)])
        self._begun = False

    def update(self, rows: int, now: float) -> None:
        """Set the number of rows that are done.

        The rows of the first update do not count for the rate, because a resumed load has loaded
        them earlier.
        """
        self.rows = rows
        if not self._begun:
            self._begun = True
            if rows:
                self._samples = deque([(now, rows)])
                return
        if now - self._samples[-1][0] >= _SAMPLE_SECONDS:
            self._samples.append((now, rows))
            while len(self._samples) > 2 and now - self._samples[0][0] > RATE_SECONDS:
                self._samples.popleft()

    @property
    def rate(self) -> float:
        """Recent rows per second."""
        (then, before), (now, after) = self._samples[0], self._samples[-1]
        return (after - before) / (now - then) if now > then else 0.0

    @property
    def share(self) -> float | None:
        """The share that is done, from 0 to 1; None if unknown. The share can be inexact, because
        totals can be estimates.
        """
        return min(self.rows / self.total, 1.0) if self.total else None

    @property
    def seconds_left(self) -> float | None:
        """The remaining seconds at the current rate; None if unknown."""
        if not self.total or self.rate <= 0:
            return None
        return max(self.total - self.rows, 0) / self.rate

    def words(self) -> str:
        """Return the progress as one line of text."""
        share, left = self.share, self.seconds_left
        parts = [
            counted(self.rows, "row") if share is None else f"{self.rows:,} of {self.total:,} rows",
            "" if share is None else f"{100 * share:.0f} %",
            f"{self.rate:,.0f} rows/s",
            "" if left is None else f"{span(left)} left",
        ]
        return ", ".join(part for part in parts if part)


class RowProgress:
    """The progress of the tables; can be updated from any thread.

    Args:
        what: the kind of work: "loading".
        totals: number of rows of each table; None if unknown.
        clock: monotonic.
    """

    def __init__(
        self,
        what: str,
        totals: Mapping[str, int | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        now = clock()
        self._what, self._clock, self._lock = what, clock, threading.Lock()
        self._tables = {name: Meter(total, now) for name, total in totals.items()}
        self._untold = {name for name, total in totals.items() if total is None}
        self.whole = Meter(None if self._untold else sum(t or 0 for t in totals.values()), now)

    def update(self, amounts: Mapping[str, Amount]) -> None:
        """Set the amount of each table; other tables are ignored.

        If a table's total is unknown, it is estimated from the loaded partitions.
        """
        now = self._clock()
        with self._lock:
            for table in self._tables.keys() & amounts.keys():
                meter, amount = self._tables[table], amounts[table]
                if table in self._untold:
                    meter.total = amount.expected
                meter.is_done = amount.is_done
                meter.update(amount.rows, now)
            totals = [meter.total for meter in self._tables.values()]
            self.whole.total = None if None in totals else sum(one or 0 for one in totals)
            self.whole.update(sum(meter.rows for meter in self._tables.values()), now)

    def advance(self, table: str, rows: int) -> None:
        """Add to the number of rows of a table that are done."""
        now = self._clock()
        with self._lock:
            for meter in (self._tables[table], self.whole):
                meter.update(meter.rows + rows, now)
                meter.is_done = meter.total is not None and meter.rows >= meter.total

    def line(self) -> str:
        """Return the total progress as one line."""
        with self._lock:
            tables = counted(len(self._tables), "table")
            done = sum(meter.is_done for meter in self._tables.values())
            return f"{self._what}: {done:,} of {tables} done, {self.whole.words()}"

    def grid(self) -> Table:
        """Return the display of the progress for a terminal."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 1))
        grid.add_column(overflow="fold")
        grid.add_column(width=_BAR_WIDTH)
        grid.add_column(overflow="fold")
        title = self.line()
        with self._lock:
            under_way = [
                (name, meter)
                for name, meter in self._tables.items()
                if meter.rows and not meter.is_done
            ]
            for name, meter in under_way[:_SHOWN_MAX]:
                bar = ProgressBar(total=meter.total or None, completed=meter.rows, width=_BAR_WIDTH)
                grid.add_row(Text(one_line(name)), bar, Text(meter.words()))
            if len(under_way) > _SHOWN_MAX:
                grid.add_row(Text(f"and {len(under_way) - _SHOWN_MAX} more"))
            whole = ProgressBar(
                total=self.whole.total or None, completed=self.whole.rows, width=_BAR_WIDTH
            )
        outer = Table.grid()
        outer.add_column(overflow="fold")
        outer.add_row(Group(Text(title), whole, grid))
        return outer


@contextmanager
def row_progress(what: str, totals: Mapping[str, int | None]) -> Iterator[RowProgress]:
    """Show progress on stderr while the context is active; see `RowProgress` for the arguments."""
    progress = RowProgress(what, totals)
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.live import Live

        live = Live(
            get_renderable=progress.grid,
            console=Console(stderr=True),
            refresh_per_second=4,
            transient=True,
        )
        with live:
            yield progress
        return
    over = threading.Event()
    thread = threading.Thread(target=_lines, args=(progress, over), name="olr-progress")
    thread.start()
    try:
        yield progress
    finally:
        over.set()
        thread.join()


def _lines(progress: RowProgress, over: threading.Event) -> None:
    """Print the progress periodically."""
    while not over.wait(LINE_SECONDS):
        try:
            sys.stderr.write(progress.line() + "\n")
            sys.stderr.flush()
        except OSError:  # stderr is closed: stop printing, but do not stop the work
            return
