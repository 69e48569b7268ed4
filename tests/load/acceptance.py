"""The whole way at size: load while the source works on, replicate, compare. By hand.

``python -m tests.load.acceptance --rows 1000000 --seeds 1``; with ``--kill`` the load, the
hand-over and the replication are killed with -9 as well.

The source has a table of so many rows and twenty small random ones. Most of the large table's rows
were there before the first redo; the simulated workload works on all the tables, and its logs come
into the directory one after the other while the commands run.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from olr_pg.postgres.embedded import start_embedded
from olr_pg.simulator.database_shape import DatabaseShape
from olr_pg.simulator.fields.redo_format import COMPATIBLE, RedoFormat
from olr_pg.simulator.model.column_types import (
    date_type,
    number_type,
    nvarchar,
    raw_type,
    timestamp_type,
    varchar,
)
from olr_pg.simulator.model.tables import ROW_MAX, Logging, SimColumn
from olr_pg.simulator.sessions.placement import TableSpec
from olr_pg.simulator.sessions.workload import ACTIONS, RandomWorkload
from olr_pg.simulator.writer.instance import Pace
from tests.load.conftest import Loads
from tests.load.table_data import Source, simulated
from tests.load.test_kills import CHANGES, FINISHED, PARTS, TAKEN_OVER, finish, killed_at, start

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from olr_pg.simulator.model.tables import SimTable
    from olr_pg.simulator.sessions.session import SimSession

SMALL_TABLES = 20
WIDTH_MAX = 14
LARGE = "SIM.LEDGER_ENTRIES"
ROW_GROUP = 100_000
COLUMNS = (
    SimColumn("ENTRY_ID", number_type(12, 0), nullable=False),
    SimColumn("ACCOUNT", varchar(20), nullable=False),
    SimColumn("CITY", nvarchar(20)),
    SimColumn("AMOUNT", number_type(12, 2), nullable=False),
    SimColumn("DAY", date_type()),
    SimColumn("ENTERED", timestamp_type(6)),
    SimColumn("TAG", raw_type(16)),
    SimColumn("NOTE", varchar(100)),
)


class LargeAndSmall(RandomWorkload):
    """Twenty random tables, and one that a third of the work goes to."""

    def __init__(self, rng: Random, logging: Sequence[Logging], owner: str = "SIM") -> None:
        super().__init__(rng, logging, owner)
        # Inserts prevail, and transactions are short.
        often = {"insert": 4, "insert_many": 6, "commit": 8}
        self._weights = [often.get(action, 1) for action in ACTIONS]

    def _small(self, number: int) -> TableSpec:
        while True:
            spec = self._table(number)
            if len(spec.columns) <= WIDTH_MAX and spec.row_max == ROW_MAX:
                return spec

    def tables(self) -> list[TableSpec]:
        """The small ones, then the large one."""
        small = [self._small(number) for number in range(SMALL_TABLES)]
        owner, name = LARGE.split(".")
        return [*small, TableSpec(owner, name, COLUMNS, (0,), self._logging[0], (((0,), True),))]

    def step(self, session: SimSession, tables: Sequence[SimTable]) -> None:
        """One random action."""
        *small, large = tables
        super().step(session, [large] if self._rng.random() < 0.3 else small)


def make_source(folder: Path, seed: int, size: int) -> Source:
    """Simulate it; the large table's keys begin above those of `old_rows`."""
    shape = DatabaseShape(RedoFormat(COMPATIBLE["19"]), con_id=3, pace=Pace(log_blocks=400))
    return simulated(seed, folder, size, shape, lambda rng, own, _: LargeAndSmall(rng, own.logging))


def old_rows(rows: int) -> pa.Table:
    """Rows that were there before the first redo, with keys below 0."""
    number = np.arange(rows)
    text: Any = pc.cast(pa.array(number), pa.string())
    rng = np.random.default_rng(2)
    join: Any = pc.binary_join_element_wise
    tags = pa.Array.from_buffers(pa.binary(16), rows, [None, pa.py_buffer(rng.bytes(16 * rows))])
    columns: dict[str, Any] = {
        "ROWID": pa.nulls(rows, pa.string()),
        "ENTRY_ID": pa.array(-1 - number).cast(pa.decimal128(19, 0)),
        "ACCOUNT": join(pa.scalar("account"), text, " "),
        "CITY": pc.if_else(pa.array(number % 7 == 0), pa.scalar(None, pa.string()), "Łódź"),
        "AMOUNT": pa.array(number % 10**9).cast(pa.decimal128(19, 0)),
        "DAY": pa.array(number % 10**9, pa.timestamp("s")),
        "ENTERED": pa.array(number * 10**9, pa.timestamp("us")),
        "TAG": tags.cast(pa.binary()),
        "NOTE": join(pa.scalar("the note of entry"), text, " "),
    }
    return pa.table(columns)


def write_tables(source: Source, folder: Path, scn: int, rows: int) -> Path:
    """Every table as of `scn`, the old rows among them."""
    source.write_tables(folder, scn, ROW_GROUP)
    path = folder / f"{LARGE}.parquet"
    new = pq.read_table(path)
    old = old_rows(rows).select(new.column_names).cast(new.schema)
    pq.write_table(pa.concat_tables([old, new]), path, row_group_size=ROW_GROUP)
    return folder


class Everything:
    """A source and its tables in the middle and at the end, made once for all seeds."""

    def __init__(self, folder: Path, seed: int, rows: int) -> None:
        self.source = make_source(folder / "source", seed, 2_000_000)
        self.names = [table.full_name for table in self.source.summary.tables]
        self.tables = write_tables(
            self.source, folder / "tables", self.source.scn(Random(seed).uniform(0.3, 0.7)), rows
        )
        last = self.source.transactions[-1].commit_scn
        self.final = write_tables(self.source, folder / "final", last, rows)

    def copy(self, folder: Path) -> Path:
        """A copy of what comes into the source's folder in the course of a seed."""
        folder.mkdir()
        shutil.copytree(self.source.folder / "logs", folder / "logs")
        shutil.copy(self.source.folder / "dictionary.json", folder)
        return folder


class Arrival(threading.Thread):
    """Archived logs come into the directory one after the other."""

    def __init__(self, folder: Path, seconds: float) -> None:
        super().__init__(name="arrival")
        self._logs, self._seconds = folder / "logs", seconds
        self._later = folder / "later"
        self._logs.rename(self._later)
        self._logs.mkdir()
        self._names = sorted(self._later.iterdir(), key=lambda path: path.stat().st_mtime_ns)
        self._next()

    def _next(self) -> None:
        path = self._names.pop(0)
        path.rename(self._logs / path.name)

    def run(self) -> None:
        """Let the rest come."""
        while self._names:
            time.sleep(self._seconds)
            self._next()


class Clock:
    """How long each step took."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self.steps = list[str]()

    def done(self, step: str) -> None:
        """A step is done."""
        now = time.monotonic()
        self.steps.append(f"{step} {now - self._began:.1f} s")
        self._began = now


def whole_way(
    folder: Path, everything: Everything, database: str, seed: int, *, kill: bool
) -> list[str]:
    """One seed; how long its steps took."""
    rng, clock = Random(seed), Clock()
    loads = Loads(folder, everything.copy(folder / "source"), everything.names, database)
    loads.tables = everything.tables
    arrival = Arrival(loads.source_folder, 1.0)
    arrival.start()
    codes = list[int]()
    if kill:
        parts = [PARTS.format(rng.randint(0, 30)), FINISHED.format(rng.randint(1, SMALL_TABLES))]
        for query in parts:
            options = ["--resume"] if codes else []
            codes.append(killed_at(loads, query, "initial-load", *options))
        clock.done("killed loads")
    loaded = json.loads(finish(loads, "initial-load", "--json", *(["--resume"] if kill else [])))
    (large,) = (one for one in loaded["tables"] if one["table"] == LARGE)
    clock.done(f"load ({LARGE}: {large['rows']:,} rows in {large['seconds']} s)")
    if kill:
        for query in (TAKEN_OVER.format(2), CHANGES.format(rng.randint(1, 2_000))):
            codes.append(killed_at(loads, query, "run", "--once"))
        clock.done("killed runs")
    with start(loads, "run") as running:
        arrival.join()
        wait_for_changes(database)
        running.kill() if kill else running.terminate()
        running.communicate()
    finish(loads, "run", "--once")
    clock.done("runs")
    final = str(everything.final)
    result = json.loads(finish(loads, "verify", "--json", "--tables", final))
    assert result["identical"], result
    compared = sum(one["source_rows"] for one in result["tables"])
    clock.done(f"verify ({compared:,} rows)")
    return [*clock.steps, f"exit codes of killed commands {codes}"]


def wait_for_changes(database: str) -> None:
    """Wait until replication has begun to apply."""
    with psycopg.connect(database, autocommit=True) as connection:
        while connection.execute(CHANGES.format(1).encode()).fetchone() != (True,):
            time.sleep(0.1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--kill", action="store_true")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="olr-pg-load-")))
        cluster = start_embedded(folder / "postgres")
        stack.callback(cluster.stop)
        everything = Everything(folder, 1, options.rows)
        say(f"{len(everything.source.transactions)} transactions in"
            f" {len(everything.source.summary.logs)} logs")  # fmt: skip
        for seed in range(1, options.seeds + 1):
            own = folder / f"seed-{seed}"
            own.mkdir()
            with database(cluster.connect_string, f"seed_{seed}") as target:
                steps = whole_way(own, everything, target, seed, kill=options.kill)
            say(f"seed {seed}: identical; " + ", ".join(steps))


@contextmanager
def database(server: str, name: str) -> Iterator[str]:
    """A database of its own; its connection string."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        yield psycopg.conninfo.make_conninfo(server, dbname=name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
