"""The way back, with appliance, PostgreSQL and Oracle's sessions killed at random moments.

    uv run python -m tests.fallback.kills --count 30 [--seed 1]

Somebody writes to PostgreSQL all the time: small and large transactions, key changes, savepoints,
TRUNCATE. Between two kills the way back works. At the end it is drained: the rows are the same, no
table has stopped, and nothing was applied twice (an insert or a delete would be a conflict then).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg

from olr_pg.config.reading import load_config
from olr_pg.errors import OlrPgError
from olr_pg.fallback.fallback_run import prepare, run
from olr_pg.load.cutover.cut_back import open_ways_back
from olr_pg.postgres.embedded import EmbeddedPostgres
from tests.fallback.made_way import MadeWay
from tests.postgres.own_cluster import own_cluster
from tests.proving.served import served_source

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

VICTIMS: Final = ("appliance", "PostgreSQL", "Oracle")
_SECONDS_MAX: Final = 2.5
_KEYS: Final = 600


class Outcome(NamedTuple):
    """What a campaign found; `wrong` is empty where all is as it must be."""

    kills: int
    transactions: int
    wrong: str


@contextmanager
def logical_postgres() -> Iterator[EmbeddedPostgres]:
    """A cluster with wal_level = logical."""
    settings = "wal_level = logical", "fsync = off", "logical_decoding_work_mem = 64"
    with own_cluster(*settings) as cluster:
        yield cluster


class _Writer:
    """Writes to PostgreSQL until it is stopped; begins anew where the server was killed."""

    def __init__(self, database: str, table: str, seed: int) -> None:
        self._database, self._table, self._rng = database, table, Random(seed)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.committed = 0

    def __enter__(self) -> _Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(60)

    def _run(self) -> None:
        while not self._stopping.is_set():
            with suppress(psycopg.OperationalError), psycopg.connect(self._database) as connection:
                while not self._stopping.is_set():
                    self._transaction(connection)
                    connection.commit()
                    self.committed += 1
                    self._stopping.wait(0.05)
            self._stopping.wait(0.05)

    def _transaction(self, connection: psycopg.Connection[Any]) -> None:
        rng, kind = self._rng, self._rng.random()
        if kind < 0.01:
            connection.execute(f"TRUNCATE app.{self._table}".encode())
        if kind < 0.06:
            self._fill(connection, rng.randint(100, 400))
            if kind < 0.04:
                connection.execute("SAVEPOINT a")
                self._fill(connection, rng.randint(100, 400))
                connection.execute(rng.choice(("ROLLBACK TO a", "RELEASE a")).encode())
            return
        for _ in range(rng.randint(1, 8)):
            self._change(connection)

    def _fill(self, connection: psycopg.Connection[Any], count: int) -> None:
        first = self._rng.randrange(_KEYS)
        connection.execute(
            f"INSERT INTO app.{self._table} SELECT n, 'f' || n, n, repeat('x', 300)"
            f" FROM generate_series({first}, {first + count}) n"
            " ON CONFLICT (id) DO UPDATE SET w = excluded.w + 1, v = 'again'".encode()
        )

    def _change(self, connection: psycopg.Connection[Any]) -> None:
        one, other = self._rng.randrange(_KEYS), self._rng.randrange(_KEYS)
        statement = self._rng.choice(
            (
                f"INSERT INTO app.{{t}} VALUES ({one}, 'i', {other}, NULL) ON CONFLICT DO NOTHING",
                f"UPDATE app.{{t}} SET w = w + 1, v = 'u{other}' WHERE id = {one}",
                f"DELETE FROM app.{{t}} WHERE id = {one}",
                (
                    f"UPDATE app.{{t}} SET id = {other} WHERE id = {one} AND NOT EXISTS"
                    f" (SELECT FROM app.{{t}} WHERE id = {other})"
                ),
            )
        )
        connection.execute(statement.format(t=self._table).encode())


class _Appliance:
    """``olr-pg fallback run`` in a process of its own."""

    def __init__(self, config: Path) -> None:
        self._command = [
            *(sys.executable, "-m", "olr_pg", "fallback", "run", "--config", str(config)),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, unless it is there."""
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )

    def kill(self) -> None:
        """Kill it."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()


def campaign(folder: Path, count: int, seed: int, victims: Sequence[str] = VICTIMS) -> Outcome:
    """Kill so many times, and compare."""
    rng, kills, transactions = Random(seed), 0, 0
    with (
        logical_postgres() as cluster,
        served_source(folder / "source", seed) as served,
    ):
        made = MadeWay(served, cluster.connect_string, "killed")
        config = made.config_file(folder)
        appliance = _Appliance(config)
        with open_ways_back(load_config(config)) as (way,):
            prepare(way)
        try:
            with _Writer(made.database, made.name, seed) as writer:
                for number in range(count):
                    appliance.start()
                    before = transactions
                    deadline = time.monotonic() + 60
                    while transactions == before and time.monotonic() < deadline:
                        transactions = _transactions(made)  # it works again
                        time.sleep(0.05)
                    time.sleep(rng.uniform(0, _SECONDS_MAX))
                    _kill(victims[number % len(victims)], appliance, cluster, served)
                    kills += 1
                    sys.stderr.write(f"{kills} of {count} killed, {transactions} transactions\n")
        finally:
            appliance.kill()
        wrong = ""
        try:
            with open_ways_back(load_config(config)) as (way,):
                run(way, once=True)
        except OlrPgError as error:
            wrong = str(error)
        there, here = made.rows()
        if there != here:
            differing = len(set(map(str, there)) ^ set(map(str, here)))
            wrong += f" {differing} rows differ of {len(there)}"
        return Outcome(kills, writer.committed, wrong)


def _transactions(made: MadeWay) -> int:
    with made.oracle_cursor() as cursor:
        cursor.execute("SELECT transactions FROM olr_pg_fallback WHERE source_table = '-'")
        row = cursor.fetchone()
        return int(row[0]) if row else 0


def _kill(victim: str, appliance: _Appliance, cluster: EmbeddedPostgres, served: Any) -> None:
    if victim == "appliance":
        appliance.kill()
    elif victim == "Oracle":
        served.server.server.cut()
    else:
        pid = cluster.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        cluster.revive()


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = campaign(Path(folder), options.count, options.seed)
    sys.stdout.write(json.dumps(found._asdict()) + "\n")
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
