"""The steps of a migration, and their progress: rows of the tables that are being loaded, lag, and
actions for an operator.

The states of the steps are stored in the target beside those of the cut-over, so they survive the
loss of this host. A completed step does not run again, except the step `replication` as long as
later steps remain. An interrupted or failed step runs again; each step can be repeated at any time.

`MigrationWatch` observes the migration from a thread of its own: the load over a separate
connection, and replication through the status of the appliance, which runs in the same process.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg

from olr_pg.errors import OlrPgError
from olr_pg.load.cutover_steps import MIGRATION, StepState, note_step, read_steps
from olr_pg.load.load_progress import LoadWatch
from olr_pg.monitor.status_client import ask_status
from olr_pg.observability.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from psycopg import Connection

    from olr_pg.config.model import Config
    from olr_pg.load.load_progress import Amount


class MigrationStep(NamedTuple):
    """A step, with a description of what it does."""

    name: str
    title: str


STEPS: Final = (
    MigrationStep("doctor", "source, target and this machine fulfil the requirements"),
    MigrationStep(
        "schema", "schemas, sequences, tables, primary keys, checks and defaults are created"
    ),
    MigrationStep("load", "the tables are loaded, with their keys and indexes"),
    MigrationStep("indexes", "the other indexes are created"),
    MigrationStep("replication", "the changes since the load are applied"),
    MigrationStep("verify", "the tables are compared with the source"),
    MigrationStep("rest", "foreign keys, views and grants are created"),
)
"""The steps in order. After the last step, the target is ready for the cut-over."""


def migration_state(connection: Connection[Any], subscription: str) -> dict[str, StepState]:
    """Read the recorded steps, by name."""
    found = read_steps(connection, subscription)
    return {
        name.removeprefix(MIGRATION): state._replace(step=name.removeprefix(MIGRATION))
        for name, state in found.items()
        if name.startswith(MIGRATION)
    }


def note_migration(
    connection: Connection[Any], subscription: str, step: str, state: str, detail: dict[str, Any]
) -> None:
    """Store the state of a step in the target."""
    note_step(connection, subscription, MIGRATION + step, state, detail)


_WINDOW_SECONDS: Final = 30.0
"""Length of the period over which rates are measured."""

_REPLICATING: Final = ("replication", "")


class LoadingTable(NamedTuple):
    """A table that is being loaded.

    Attributes:
        total: total number of rows; None if the source does not know it.
        rate: recent rows per second.
        seconds_left: estimated remaining seconds; None if unknown.
    """

    name: str
    rows: int
    total: int | None
    bytes: int
    rate: float
    seconds_left: float | None


class Replicating(NamedTuple):
    """The state of replication.

    Attributes:
        state: the appliance's state, such as WAITING_FOR_REDO.
        lag_seconds: lag of the table that is furthest behind; None if unknown.
        rate: recent changes applied per second.
        waiting: number of changes that are decoded but not applied yet.
    """

    state: str
    lag_seconds: float | None
    rate: float
    waiting: int


class MigrationProgress(NamedTuple):
    """The progress of a migration.

    Attributes:
        step: name of the current step; empty when the target is ready and replication continues.
        seconds: seconds since the step began.
        needs: the actions that an operator must take.
    """

    step: str
    title: str
    seconds: float
    tables: tuple[LoadingTable, ...] = ()
    replicating: Replicating | None = None
    needs: tuple[str, ...] = ()


class RowRates:
    """Rows per second for each table, over the last half minute."""

    def __init__(self) -> None:
        self._samples = deque[tuple[float, dict[str, int]]]()

    def add(self, at: float, rows: Mapping[str, int]) -> None:
        """Add the number of rows that each table has at the time `at`."""
        self._samples.append((at, dict(rows)))
        while len(self._samples) > 2 and self._samples[1][0] <= at - _WINDOW_SECONDS:
            self._samples.popleft()

    def rate(self, table: str) -> float:
        """Return the rows per second of a table; 0 before there are two measurements."""
        if len(self._samples) < 2:
            return 0.0
        (first, before), (last, now) = self._samples[0], self._samples[-1]
        more = now.get(table, 0) - before.get(table, 0)
        return max(more, 0) / (last - first) if last > first else 0.0


def table_loads(
    amounts: Mapping[str, Amount], totals: Mapping[str, int | None], rates: RowRates
) -> tuple[LoadingTable, ...]:
    """Return the progress of each table's load."""
    found = []
    for name, total in totals.items():
        amount = amounts.get(name)
        rows, size = (0, 0) if amount is None else (amount.rows, amount.bytes)
        rate = rates.rate(name)
        left = None if total is None else max(total - rows, 0)
        seconds = left / rate if left is not None and rate > 0 else 0.0 if left == 0 else None
        found.append(LoadingTable(name, rows, total, size, rate, seconds))
    return tuple(found)


class MigrationWatch:
    """Observes a migration. One thread calls `read` and `close`; the thread of the migration calls
    the other methods.

    Args:
        clock: returns the monotonic time in seconds.
    """

    def __init__(self, config: Config, clock: Callable[[], float] = time.monotonic) -> None:
        self._config = config
        self._clock = clock
        self._lock = threading.Lock()
        self._step, self._title, self._began = "", "", clock()
        self._noted: tuple[str, ...] = ()
        self._opened: Callable[[], LoadWatch] | None = None
        self._watch: LoadWatch | None = None
        self._totals: Mapping[str, int | None] = {}
        self._rates = RowRates()

    def begin(self, step: MigrationStep | None) -> None:
        """Record that a step begins; None if the last step is done and replication continues."""
        with self._lock:
            self._step = "" if step is None else step.name
            self._title = (
                "the target is ready, and replication continues" if step is None else step.title
            )
            self._began = self._clock()

    def loading(
        self,
        connect_string: str,
        subscription: str,
        targets: Mapping[str, tuple[str, str]],
        totals: Mapping[str, int | None],
    ) -> None:
        """Record the tables that are being loaded.

        Args:
            targets: ``OWNER.NAME`` → (schema, table) in the target.
            totals: number of rows of each table; None if unknown.
        """
        with self._lock:
            self._totals = totals
            self._opened = lambda: LoadWatch(connect_string, subscription, targets)

    def loaded(self) -> None:
        """Record that the load has ended."""
        with self._lock:
            self._opened = None

    def note(self, needs: tuple[str, ...]) -> None:
        """Record the actions that an operator must take, in addition to the problems in the
        status.
        """
        with self._lock:
            self._noted = needs

    def read(self) -> MigrationProgress:
        """Read the progress. Values that cannot be read now are left out."""
        with self._lock:
            step, title, noted, began = self._step, self._title, self._noted, self._began
        tables = self._tables()
        behind, problems = self._replicating() if step in _REPLICATING else (None, ())
        seconds = self._clock() - began
        return MigrationProgress(step, title, seconds, tables, behind, (*noted, *problems))

    def close(self) -> None:
        """Close the connection; called by the thread that calls `read`."""
        if self._watch is not None:
            self._watch.__exit__()
            self._watch = None

    def _tables(self) -> tuple[LoadingTable, ...]:
        with self._lock:
            opened, totals = self._opened, self._totals
        if opened is None:
            self.close()
            return ()
        try:
            self._watch = self._watch or opened()
            amounts = self._watch.read()
        except (psycopg.Error, OlrPgError):
            self.close()
            return ()
        self._rates.add(self._clock(), {name: one.rows for name, one in amounts.items()})
        return table_loads(amounts, totals, self._rates)

    def _replicating(self) -> tuple[Replicating | None, tuple[str, ...]]:
        try:
            record = ask_status(self._config)
        except OlrPgError:
            return None, ()
        return replicating(record), tuple(_problems(record))


def replicating(record: Mapping[str, Any]) -> Replicating:
    """Return the state of replication from the appliance's status."""
    tables = record["tables"]
    lags = [table["lag_seconds"] for table in tables]
    return Replicating(
        state=record["state"]["name"],
        lag_seconds=max((one for one in lags if one is not None), default=None),
        rate=record["rates"]["applied_changes"],
        waiting=sum(table["waiting"] for table in tables),
    )


def _problems(record: Mapping[str, Any]) -> Iterator[str]:
    yield from record["problems"]
    stopped = [table["name"] for table in record["tables"] if table["stopped"]]
    if stopped:
        yield f"stopped: {', '.join(stopped)} (`olr-pg errors list`)"


def progress_lines(progress: MigrationProgress) -> list[str]:
    """Return the progress as text, with a line for each table that is being loaded."""
    head = f"{progress.step or 'ready'}: {progress.title}, {_span(progress.seconds)}"
    lines = [head]
    under_way = [table for table in progress.tables if table.rows and table.seconds_left != 0.0]
    lines += [f"    {table_line(table)}" for table in under_way]
    done = sum(table.seconds_left == 0.0 for table in progress.tables)
    if progress.tables:
        rows = sum(table.rows for table in progress.tables)
        lines[0] += (
            f": {counted(rows, 'row')}, {done} of {counted(len(progress.tables), 'table')} loaded"
        )
    if progress.replicating is not None:
        lines[0] += f": {replicating_line(progress.replicating)}"
    return [*lines, *(f"    action required: {one}" for one in progress.needs)]


def table_line(table: LoadingTable) -> str:
    """Return a table's progress: ``SHOP.ORDERS: 1,200 of 5,000 rows, 300/s, 13 s left``."""
    of = "" if table.total is None else f" of {table.total:,}"
    left = "" if table.seconds_left is None else f", {_span(table.seconds_left)} left"
    return f"{table.name}: {table.rows:,}{of} rows, {table.rate:,.0f}/s{left}"


def replicating_line(one: Replicating) -> str:
    """Describe the lag of replication as text."""
    lag = "unknown" if one.lag_seconds is None else _span(one.lag_seconds)
    return f"{one.state}, lag {lag}, {one.rate:,.0f} changes/s, {one.waiting:,} waiting"


def _span(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
