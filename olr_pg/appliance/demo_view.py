"""Displays throughput, lag and row counts during the demo: as a table on a terminal, otherwise as
lines.
"""

from __future__ import annotations

import time
from collections import deque
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg import sql
from rich.live import Live
from rich.table import Table as Grid

from olr_pg.capture.logs import scan_logs
from olr_pg.errors import OlrPgError
from olr_pg.monitor.lag import Lag
from olr_pg.monitor.status_client import ask_status
from olr_pg.observability.wording import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rich.console import Console

    from olr_pg.config.model import Config
    from olr_pg.dictionary.model import Table

RATE_SECONDS: Final = 5.0
LINE_SECONDS: Final = 2.0
WAITING_SECONDS: Final = 5.0
"""Interval between lines before the first changes are applied."""
_LEDGER: Final = """
SELECT source_table, commit_scn, inserted, updated, deleted, stopped FROM olr_pg.ledger
"""


@dataclass(frozen=True, slots=True)
class DemoTableProgress:
    """Counts of the changes that were applied to a table. `rows` is the number of rows that the
    target table contains now.
    """

    commit_scn: int
    inserted: int
    updated: int
    deleted: int
    rows: int
    stopped: bool

    @property
    def changes(self) -> int:
        """Number of rows written."""
        return self.inserted + self.updated + self.deleted


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of replication. `lag` is the lag of the table that is furthest behind."""

    tables: Mapping[str, DemoTableProgress]
    logs: int
    lag: Lag

    @property
    def changes(self) -> int:
        """Number of rows written in all tables."""
        return sum(table.changes for table in self.tables.values())

    def has(self, last_commits: Mapping[str, int]) -> bool:
        """Return whether the last commit of every table has been applied; stopped tables do not
        count.
        """
        nothing = DemoTableProgress(0, 0, 0, 0, 0, stopped=False)
        found = ((self.tables.get(name, nothing), scn) for name, scn in last_commits.items())
        return all(table.stopped or table.commit_scn >= scn for table, scn in found)


def read_lag(config: Config) -> Lag:
    """Query the appliance for the lag of the table that is furthest behind; there is no lag while
    it starts.
    """
    try:
        tables = ask_status(config)["tables"]
    except OlrPgError:
        return Lag()
    lags = (Lag(**table["lag"]) for table in tables if table["lag"] is not None)
    return max(lags, key=lambda lag: lag.total, default=Lag())


def read_progress(
    connection: psycopg.Connection[Any], tables: Sequence[Table], logs: Path, lag: Lag
) -> Progress:
    """Read the ledger, count rows, and check the logs.

    Args:
        connection: a connection to the target in autocommit mode.
        logs: the folder of archived logs.
        lag: the lag of the table that is furthest behind.
    """
    found = dict[str, DemoTableProgress]()
    if connection.execute("SELECT to_regclass('olr_pg.ledger')").fetchone() != (None,):
        for name, scn, inserted, updated, deleted, stopped in connection.execute(_LEDGER):
            rows = _count(connection, name) if inserted else 0
            found[name] = DemoTableProgress(scn, inserted, updated, deleted, rows, stopped)
    ordered = {table.full_name: found[table.full_name] for table in tables
               if table.full_name in found}  # fmt: skip
    return Progress(ordered, len(scan_logs([str(logs)]).logs), lag)


def _count(connection: psycopg.Connection[Any], table: str) -> int:
    name = sql.Identifier(*table.lower().split("."))
    row = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(name)).fetchone()
    return int(row[0]) if row else 0


def _parts(lag: Lag) -> str:
    return ", ".join(f"{cause} {seconds:.2f}" for cause, seconds in lag._asdict().items())


class DemoView:
    """Displays progress on a console: a table that is updated in place, or lines."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, refresh_per_second=4) if console.is_terminal else None
        self._history = deque[tuple[float, int]]()
        self._next_line = 0.0
        self._began = time.monotonic()
        self._has_begun = False

    def shown(self) -> AbstractContextManager[object]:
        """Display the table in place while the context is active."""
        return self._live or nullcontext()

    def show(self, progress: Progress) -> None:
        """Display the progress."""
        now = time.monotonic()
        self._history.append((now, progress.changes))
        while now - self._history[0][0] > RATE_SECONDS:
            self._history.popleft()
        if progress.changes and not self._has_begun:
            self._has_begun, self._next_line = True, now
        if self._live is not None:
            self._live.update(self._grid(progress))
        elif now >= self._next_line:
            self._next_line = now + (LINE_SECONDS if progress.changes else WAITING_SECONDS)
            self._console.print(self._line(progress), highlight=False)

    @property
    def rate(self) -> float:
        """Recent changes per second."""
        (then, before), (now, changes) = self._history[0], self._history[-1]
        return (changes - before) / (now - then) if now > then else 0.0

    def _line(self, progress: Progress) -> str:
        if not progress.changes:
            waited = time.monotonic() - self._began
            return (
                f"{counted(progress.logs, 'log')} archived, nothing applied yet: starting"
                f" Java and loading kernels ({waited:.0f} s)"
            )
        return (
            f"{counted(progress.logs, 'log')} archived, {progress.changes:,} changes applied,"
            f" {self.rate:,.0f}/s, lag {progress.lag.total:.2f} s ({_parts(progress.lag)})"
        )

    def _grid(self, progress: Progress) -> Grid:
        grid = Grid(title=self._line(progress))
        grid.add_column("Table")
        for heading in ("Inserted", "Updated", "Deleted", "Rows in PostgreSQL"):
            grid.add_column(heading, justify="right")
        for name, table in progress.tables.items():
            counts = (table.inserted, table.updated, table.deleted, table.rows)
            grid.add_row(name, *(f"{count:,}" for count in counts))
        return grid
