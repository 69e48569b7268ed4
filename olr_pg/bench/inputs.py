"""The archived logs and the PostgreSQL clusters of the benchmarks.

The simulator makes the logs; they are kept for the next run. A local PostgreSQL cluster is created
once; each run gets a new database.
"""

from __future__ import annotations

import gc
import shutil
from bisect import bisect_right
from contextlib import ExitStack, contextmanager
from dataclasses import fields, replace
from functools import partial
from itertools import accumulate, count
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from olr_pg.bench.suite import do_apart
from olr_pg.capture.logs import open_log
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.postgres.embedded import EmbeddedPostgres, start_embedded
from olr_pg.simulator.database_shape import choose_shape
from olr_pg.simulator.sessions.row_shape import RowShape
from olr_pg.simulator.simulation import WORKLOADS, simulate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from psycopg import Connection

    from olr_pg.dictionary.model import Snapshot
    from olr_pg.simulator.database_shape import DatabaseShape


SEED: Final = 42
USUAL: Final = RowShape()
_MADE_BEFORE_COLLECTION: Final = 100_000
"""Number of new objects after which the garbage collector runs. It is high, because the simulator
makes many objects that stay alive, and searching them took a third of its time.
"""

CASES: Final = tuple(name for name in ("orders", "bulk", "wide", "lobs") if name in WORKLOADS)
"""The workloads that are measured."""

SITES: Final = {
    **{f"{count:,} columns": RowShape(count) for count in (12, 50, 200, 400, 1_000)},
    "200 columns, 20 sets of them": RowShape(200, sets=20),
    "200 columns, up to 199 set": RowShape(200, set_max=199),
    "200 columns, 95 % NULL": RowShape(200, nulls=0.95),
    "rows of 20 bytes": RowShape(4, row_bytes=20),
    "rows of 8 KB": RowShape(12, row_bytes=8_000),
    "transactions of one statement": RowShape(12, statements=1),
}
"""Shapes of rows of the workload `wide`, like those in real databases."""

ONE_TRANSACTION: Final = RowShape(statements=0)
"""A workload with all statements in one transaction. Its logs have no file with the true changes
(`truth.jsonl`).
"""


class LogSet(NamedTuple):
    """Archived logs and their dictionary.

    Attributes:
        logs: paths of the logs, in the order of their sequence numbers.
        size: bytes of the logs.
    """

    folder: Path
    logs: tuple[Path, ...]
    snapshot: Snapshot
    size: int

    def beginning(self, size: int) -> LogSet:
        """Return the first logs that together have at most `size` bytes; at least one log."""
        ends = list(accumulate(log.stat().st_size for log in self.logs))
        count = max(1, bisect_right(ends, size))
        return self._replace(logs=self.logs[:count], size=ends[count - 1])


def log_set(
    cache: Path,
    workload: str,
    size: int,
    log_bytes: int | None = None,
    *,
    rows: RowShape = USUAL,
    copies: bool = False,
) -> LogSet:
    """Return the logs of a workload. If the cache does not contain them, make them.

    Args:
        size: approximate bytes of redo.
        log_bytes: bytes of one log; if given, no file of the true changes is written. By default
            the simulator chooses the size, and writes that file.
        rows: shape of the rows of the workload `wide`.
        copies: whether redo of 8 MB or more consists of copies of one piece of 4 MB. Otherwise all
            changes are drawn at random.

    Raises:
        OlrPgError: 8001 and 8002, errors of the simulator.
    """
    shape = choose_shape(SEED, workload, size=size, rows=rows)
    folder = cache / f"{workload}-{SEED}-{size}"
    if not copies:
        folder = folder.with_name(f"{folder.name}-{_name(rows)}")
    truth = log_bytes is None and rows.statements != 0
    if log_bytes is not None:
        pace = replace(shape.pace, log_blocks=log_bytes // shape.redo.block_size)
        shape = replace(shape, pace=pace)
        folder = folder.with_name(f"{folder.name}-{log_bytes}")
    if not (folder / "whole").exists():
        shutil.rmtree(folder, ignore_errors=True)
        make = partial(_simulate, workload, size, folder, shape, truth=truth, copies=copies)
        do_apart(f"the simulation of {workload}", make)
        (folder / "whole").touch()
    logs = tuple(sorted((folder / "logs").iterdir(), key=_sequence))
    snapshot = load_snapshot(str(folder / "dictionary.json"))
    return LogSet(folder, logs, snapshot, sum(log.stat().st_size for log in logs))


def _name(rows: RowShape) -> str:
    """Return a part of the folder's name that describes how the rows differ from the usual ones."""
    own = {
        one.name: value
        for one in fields(rows)
        if (value := getattr(rows, one.name)) != getattr(USUAL, one.name)
    }
    return "-".join(["drawn", *(f"{name}-{value}" for name, value in own.items())])


def _simulate(
    workload: str, size: int, folder: Path, shape: DatabaseShape, *, truth: bool, copies: bool
) -> None:
    """Write a folder of the cache with the simulator."""
    gc.set_threshold(_MADE_BEFORE_COLLECTION, *gc.get_threshold()[1:])
    simulate(SEED, folder, workload=workload, size=size, shape=shape, truth=truth, copies=copies)


def _sequence(log: Path) -> int:
    return open_log(str(log)).header.sequence


SETTINGS = {
    "wal_level": "logical",
    "max_wal_size": "8GB",
    "shared_buffers": "512MB",
    "checkpoint_timeout": "30min",
    "autovacuum": "off",
}

_COPY_BYTES: Final = 1 << 20
"""Number of bytes read from a file at a time. The pages of the file are in the system's cache."""


class Cluster:
    """A running cluster.

    Attributes:
        last_database: connection string of the newest database.
    """

    def __init__(self, server: EmbeddedPostgres) -> None:
        self._server = server
        self._numbers = count()
        self.last_database = server.connect_string

    @property
    def pid(self) -> int:
        """The process id of the postmaster."""
        pid = self._server.pid
        assert pid is not None
        return pid

    @property
    def connect_string(self) -> str:
        """The connection string of the maintenance database."""
        return self._server.connect_string

    def new_database(self) -> str:
        """Create an empty database, drop the earlier databases, and return the connection string of
        the new database.
        """
        return self.new_databases(1)[0]

    def new_databases(self, number: int) -> list[str]:
        """Create empty databases, drop the earlier databases, and return the connection strings of
        the new databases.
        """
        with psycopg.connect(self.connect_string, autocommit=True) as connection:
            for (name,) in connection.execute(
                "SELECT datname FROM pg_database WHERE datname LIKE 'bench%'"
            ).fetchall():
                connection.execute(
                    sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
                )
            names = [f"bench{next(self._numbers)}" for _ in range(number)]
            for name in names:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        made = [make_conninfo(self.connect_string, dbname=name) for name in names]
        self.last_database = made[-1]
        return made


@contextmanager
def running(folders: Sequence[Path]) -> Iterator[list[Cluster]]:
    """Run clusters in the given folders, with settings for a server with a high load."""
    with ExitStack() as stack:
        clusters = []
        for folder in folders:
            server = start_embedded(folder)
            with psycopg.connect(server.connect_string, autocommit=True) as connection:
                for name, value in SETTINGS.items():
                    connection.execute(
                        sql.SQL("ALTER SYSTEM SET {} = {}").format(
                            sql.Identifier(name), sql.Literal(value)
                        )
                    )
            server.stop()
            server = start_embedded(folder)
            stack.callback(server.stop)
            clusters.append(Cluster(server))
        yield clusters


def copy_to(file: Path, connection: Connection[Any], table: sql.Identifier) -> None:
    """Write the rows of a table to a file, in the format of a binary COPY."""
    query = sql.SQL("COPY {} TO STDOUT (FORMAT BINARY)").format(table)
    with file.open("wb") as out, connection.cursor().copy(query) as copy:
        out.writelines(copy)


def copy_from(file: Path, connection: Connection[Any], table: sql.Identifier) -> int:
    """Copy the rows of a file from `copy_to` into a table; return their number."""
    query = sql.SQL("COPY {} FROM STDIN (FORMAT BINARY)").format(table)
    cursor = connection.cursor()
    buffer = memoryview(bytearray(_COPY_BYTES))
    with file.open("rb", buffering=0) as data, cursor.copy(query) as copy:
        while size := data.readinto(buffer):
            copy.write(buffer[:size])
    return cursor.rowcount
