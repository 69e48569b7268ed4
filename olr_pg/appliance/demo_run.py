"""``olr-pg demo``: replicates a simulated order-entry database into an embedded PostgreSQL.

The simulator is the source. The simulator runs in a separate process, and archives logs like a
database. At the end, the simulator writes the final rows of its tables, so that source and target
can be compared row by row.

During the demo, throughput, lag and row counts are displayed: as a table on a terminal, otherwise
as lines. `remove_demos` removes the folders that demos leave, and stops the PostgreSQL in them.
"""

from __future__ import annotations

import _thread
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict, deque
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
from psycopg import sql
from rich.console import Console
from rich.filesize import decimal
from rich.live import Live
from rich.table import Table as Grid

from olr_pg.appliance.appliance import run_appliance
from olr_pg.appliance.data_lock import hold_data_lock
from olr_pg.applier.target.catalogue import relation_exists
from olr_pg.capture.logs import scan_logs
from olr_pg.config.reading import load_config
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.errors import Code, OlrPgError, system_reason
from olr_pg.monitor.lag import Lag
from olr_pg.monitor.status_client import ask_status
from olr_pg.observability.wording import counted
from olr_pg.postgres.embedded import (
    EmbeddedPostgres,
    packaged_installation,
    remove_embedded,
    start_embedded,
)
from olr_pg.simulator.truth import ROWID, read_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from olr_pg.config.model import Config
    from olr_pg.dictionary.model import Table

PREFIX: Final = "olr-pg-demo-"


class Removed(NamedTuple):
    """The result of removing a demo's folder.

    Attributes:
        size: bytes of the files in the folder.
        stopped: whether a PostgreSQL was running in the folder and was stopped.
        kept: the reason why the folder was not removed; empty if it was removed.
    """

    folder: Path
    size: int
    stopped: bool = False
    kept: str = ""


def new_folder() -> Path:
    """Create a folder for a demo."""
    return Path(tempfile.mkdtemp(prefix=PREFIX))


def folder_size(folder: Path) -> int:
    """Return the total size in bytes of all readable files below a folder."""
    size = 0
    for place, _, names in os.walk(folder, followlinks=True):
        for name in names:
            try:
                size += os.lstat(os.path.join(place, name)).st_size  # noqa: PTH118 - of many
            except OSError:  # the file was just removed
                continue
    return size


def remove_demos(root: Path | None = None) -> Iterator[Removed]:
    """Remove the folder of every demo of this user that is not running, and stop its PostgreSQL.

    Args:
        root: the parent folder; None for the system's temporary folder.
    """
    for folder in sorted((root or Path(tempfile.gettempdir())).glob(f"{PREFIX}*")):
        # Never follow a symbolic link: another user may have created it, with a target that is not
        # the folder of a demo.
        if not folder.is_symlink() and folder.is_dir() and folder.stat().st_uid == os.geteuid():
            yield _remove(folder)


def _remove(folder: Path) -> Removed:
    size = folder_size(folder)
    data = folder / "data"
    try:
        if not data.is_dir():
            shutil.rmtree(folder)
            return Removed(folder, size)
        with hold_data_lock(data):
            stopped = remove_embedded(data / "postgres")
            shutil.rmtree(folder)
    except OlrPgError as error:
        at_work = error.code == Code.ANOTHER_APPLIANCE
        return Removed(folder, size, kept="a demo is running in it" if at_work else str(error))
    except OSError as error:
        return Removed(folder, size, kept=f"{error.filename}: {system_reason(error)}")
    return Removed(folder, size, stopped)


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
    if relation_exists(connection, "olr_pg.ledger"):
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


DEMO_SEED: Final = 42
DEMO_RATE: Final = 40_000
DEMO_SECONDS: Final = 10.0
DIFFERENCES_SHOWN: Final = 5
_LOOK_SECONDS: Final = 0.3


class TableOutcome(NamedTuple):
    """The result of comparing a table.

    Attributes:
        missing: number of rows of the source that are missing in the target, including duplicates.
        surplus: number of rows of the target that are missing in the source.
    """

    name: str
    source_rows: int
    target_rows: int
    missing: Counter[tuple[Any, ...]]
    surplus: Counter[tuple[Any, ...]]

    @property
    def identical(self) -> bool:
        """Whether source and target contain the same rows."""
        return not self.missing and not self.surplus


def run_demo(
    directory: Path | None = None,
    *,
    rate: int = DEMO_RATE,
    seconds: float = DEMO_SECONDS,
    keep_running: bool = True,
    console: Console | None = None,
) -> int:
    """Start the source, replicate while it runs, compare the rows, and print how to query the
    target.

    Must be called in the main thread.

    Args:
        directory: an empty or new folder; None for a new one in the system's temporary folder.
        rate: bytes of redo per second that the source writes.
        seconds: time for which the source continues after the first changes have been applied.
        keep_running: whether to leave PostgreSQL running, so that the user can query the tables.
        console: the console to print to; None for standard output.

    Returns:
        0 if every table is identical, otherwise 1.

    Raises:
        OlrPgError: a part of the appliance or the source has failed.
        KeyboardInterrupt: raised again, after everything has been stopped.
    """
    console = console or Console()
    folder = directory or new_folder()
    console.print(
        f"Starting a simulated Oracle database with a workload of orders in {folder} …",
        highlight=False,
    )
    source = DemoSource(folder, DEMO_SEED, rate)
    cluster: EmbeddedPostgres | None = None
    try:
        source.wait_until_archiving()
        source.pause()  # until the appliance runs
        console.print("The first log is archived. Starting PostgreSQL …", highlight=False)
        cluster = start_embedded(folder / "data" / "postgres")
        console.print(
            f"PostgreSQL runs on port {cluster.port}. Starting replication …", highlight=False
        )
        watch = _Watch(source, cluster.connect_string, seconds, DemoView(console))
        watch.replicate(_write_config(folder))
        outcomes = compare_tables(folder / "final", watch.tables, cluster.connect_string)
    except BaseException:
        if cluster is not None:
            cluster.stop()
        raise
    finally:
        source.abandon()
    console.print(_outcome_grid(outcomes))
    _print_verdict(console, outcomes)
    _print_places(console, folder, cluster, keep_running=keep_running)
    if not keep_running:
        cluster.stop()
    return 0 if all(outcome.identical for outcome in outcomes) else 1


class _Watch:
    """Runs the appliance in the main thread; another thread watches it and ends it."""

    def __init__(
        self, source: DemoSource, connect_string: str, seconds: float, view: DemoView
    ) -> None:
        self.tables: Sequence[Table] = load_snapshot(str(source.folder / "dictionary.json")).tables
        self._source, self._connect_string = source, connect_string
        self._seconds, self._view = seconds, view
        self._over = threading.Event()
        self._reached = False
        self._failure: BaseException | None = None

    def replicate(self, config: Path) -> None:
        """Replicate until the target contains all transactions that the source has committed."""
        loaded = load_config(config)
        thread = threading.Thread(target=self._watch, args=(loaded,), name="olr-demo")
        # `_watch` ends the run with SIGINT, which is ignored if a shell has started this process in
        # the background.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        thread.start()
        try:
            run_appliance(loaded, once=False, apply=True, interpret=True)
        except KeyboardInterrupt:
            if self._failure is not None:
                raise self._failure from None
            if not self._reached:
                raise
        finally:
            self._over.set()
            thread.join()
            signal.signal(signal.SIGINT, before)

    def _watch(self, config: Config) -> None:
        try:
            self._follow(config)
        except Exception as error:  # noqa: BLE001 - raised again in the main thread
            self._failure = error
        if not self._over.is_set():
            _thread.interrupt_main()

    def _follow(self, config: Config) -> None:
        logs, stop_at = self._source.folder / "logs", 0.0
        last_commits: dict[str, int] | None = None
        with (
            psycopg.connect(self._connect_string, autocommit=True) as connection,
            self._view.shown(),
        ):
            while not self._over.wait(_LOOK_SECONDS):
                progress = read_progress(connection, self.tables, logs, read_lag(config))
                self._view.show(progress)
                if progress.changes and not stop_at:
                    self._source.resume()
                    stop_at = time.monotonic() + self._seconds
                if stop_at and last_commits is None and time.monotonic() >= stop_at:
                    self._source.stop()
                    last_commits = self._source.last_commits()
                if last_commits is not None and progress.has(last_commits):
                    self._reached = True
                    return


def _write_config(folder: Path) -> Path:
    path = folder / "config.json"
    document = {
        "context": {"data": str(folder / "data")},
        "source": {
            "kind": "offline",
            "dictionary": str(folder / "dictionary.json"),
            "logs": str(folder / "logs"),
            "redo": "online",
            "online-logs": str(folder / "online"),
        },
        "target": {"address": "127.0.0.1:0"},
        "apply": {
            "connect-string": "embedded",
            "tables": "SELECT OWNER, TABLE_NAME FROM USER_TABLES",
            "create-tables": True,
        },
        "spark": {"master": "local[2,3]"},
    }
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return path


def compare_tables(
    folder: Path, tables: Sequence[Table], connect_string: str
) -> list[TableOutcome]:
    """Compare every table of the source with the target's table of the same name, as multisets of
    rows.

    Args:
        folder: the folder that contains the source's rows as Parquet files.
    """
    with psycopg.connect(connect_string) as connection:
        return [_compare(connection, folder, table) for table in tables]


def _compare(connection: psycopg.Connection[Any], folder: Path, table: Table) -> TableOutcome:
    query = sql.SQL("SELECT {} FROM {}").format(
        sql.SQL(", ").join(sql.Identifier(column.name.lower()) for column in table.columns),
        sql.Identifier(table.owner.lower(), table.name.lower()),
    )
    target = Counter(connection.execute(query))
    rows = read_table(folder, table.full_name).drop_columns([ROWID])
    expected = Counter(tuple(row.values()) for row in rows.to_pylist())
    return TableOutcome(
        *(table.full_name, expected.total(), target.total()),
        *(expected - target, target - expected),
    )


def _outcome_grid(outcomes: Sequence[TableOutcome]) -> Grid:
    grid = Grid(title="Replicated")
    grid.add_column("Table")
    for heading in ("Source rows", "Target rows"):
        grid.add_column(heading, justify="right")
    grid.add_column("Identical")
    for outcome in outcomes:
        grid.add_row(
            outcome.name,
            f"{outcome.source_rows:,}",
            f"{outcome.target_rows:,}",
            "yes" if outcome.identical else "NO",
        )
    return grid


def _print_verdict(console: Console, outcomes: Sequence[TableOutcome]) -> None:
    if all(outcome.identical for outcome in outcomes):
        console.print("Source and target are identical.")
        return
    for outcome in outcomes:
        for label, rows in (
            ("only in Oracle", outcome.missing),
            ("only in PostgreSQL", outcome.surplus),
        ):
            for row in list(rows)[:DIFFERENCES_SHOWN]:
                console.print(f"{outcome.name}, {label}: {row}", highlight=False, markup=False)


def _print_places(
    console: Console, folder: Path, cluster: EmbeddedPostgres, *, keep_running: bool
) -> None:
    lines = [
        "",
        f"{decimal(folder_size(folder))} of logs, expected changes and data are kept in {folder}.",
        "To decode the logs without Spark or a database, run:",
        f"    olr-pg decode --dictionary {folder / 'dictionary.json'} {folder / 'logs'}",
    ]
    if keep_running:
        password = cluster.directory / "password"
        psql = "psql" if shutil.which("psql") else packaged_installation() / "bin" / "psql"
        server = f"-h 127.0.0.1 -p {cluster.port} -U postgres"
        lines += [
            f"PostgreSQL still runs (process {cluster.pid}). To show rows of a table, run:",
            f"    PGPASSWORD=$(cat {password}) {psql} {server} -c 'TABLE shop.orders LIMIT 10'",
        ]
    lines += [
        "To stop PostgreSQL and remove all files of this demo and earlier demos, run:",
        "    olr-pg demo --clean",
    ]
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True, markup=False)


SEARCH_SECONDS: Final = 0.1
START_SECONDS: Final = 120
STOP_SECONDS: Final = 120


class DemoSource:
    """A simulated order-entry database that runs until `stop` is called.

    Args:
        folder: the folder to which it writes ``logs/``, ``dictionary.json``, ``truth.jsonl``,
            ``tables/`` and ``final/``.
        rate: bytes of redo to write per second.
    """

    def __init__(self, folder: Path, seed: int, rate: int) -> None:
        self.folder = folder
        self._process = subprocess.Popen(  # noqa: S603 - our own command
            [
                *(sys.executable, "-P", "-m", "olr_pg", "simulate", "--live", "--json"),
                *("--workload", "orders", "--switch-seconds", "1"),
                *("--seed", str(seed), "--rate", str(rate), "--out", str(folder)),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            # Use a new session, because Ctrl-C must reach only the demo, which then stops the
            # source.
            start_new_session=True,
        )

    def wait_until_archiving(self) -> None:
        """Wait for the dictionary and the first archived log.

        Raises:
            OlrPgError: 8051, the source has ended, or has archived no log within two minutes.
        """
        deadline = time.monotonic() + START_SECONDS
        while not any((self.folder / "logs").glob("*")):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise self._failure()
            time.sleep(SEARCH_SECONDS)

    def pause(self) -> None:
        """Pause the source until `resume` or `stop`."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume the paused source."""
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Make the source commit its open transactions and archive its redo; then end it.

        Raises:
            OlrPgError: 8051, the source failed.
        """
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self.resume()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            raise self._failure() from None
        if self._process.returncode:
            raise self._failure()

    def abandon(self) -> None:
        """Kill the source's process."""
        self._process.kill()
        self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()

    def last_commits(self) -> dict[str, int]:
        """Return the SCN of each table's last commit; the source must have stopped."""
        last = defaultdict[str, int](int)
        with (self.folder / "truth.jsonl").open(encoding="utf-8") as lines:
            for line in lines:
                change = json.loads(line)
                if "table" in change:
                    last[change["table"]] = change["commit_scn"]
        return dict(last)

    def _failure(self) -> OlrPgError:
        if self._process.poll() is None:
            self._process.kill()
        _, said = self._process.communicate()
        return OlrPgError(
            Code.DEMO_SOURCE_FAILED, (said or "").strip() or "it was killed", path=str(self.folder)
        )
