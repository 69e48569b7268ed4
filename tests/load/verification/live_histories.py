"""Histories of a live database, whose copy is verified beside a running replication.

    uv run python -m tests.load.verification.live_histories --seed 1 --quiet 1000 --damaged 200

A database that takes SQL changes at random in several tables: rows of every type that it knows,
LOBs whole and in parts, keys that move, rollbacks, transactions that stay open, DDL. `olr-pg run`
replicates it. Continuous verification walks through the tables meanwhile, in small ranges, begins
anew now and then in the middle of a walk, and tables are paused.

A history is what happens to one table between two walks through it. A quiet one has at least one
commit or DDL in between, and the walk must find nothing. In a damaged one the table has a rest,
one row of the copy is damaged (a value, a LOB, a lost row, an extra one), and the walk must find
just that one, and mend it: the next walk must find nothing. Exit code 1 if one is otherwise.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import contextmanager
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, NoReturn

import oracledb
import psycopg

from olr_pg.applier.stopped.pausing import pause_table, unpause_table
from olr_pg.config.reading import load_config
from olr_pg.load import live_rows, sources
from olr_pg.load.initial import LoadOptions, initial_load
from olr_pg.load.verification import continuous
from olr_pg.load.verification.continuous import ContinuousVerification, Mending
from olr_pg.postgres.embedded import start_embedded
from olr_pg.simulator.database_shape import demo_shape
from olr_pg.simulator.oracle_net.sql_serving import SqlServer
from tests.load.verification.damaged import damage_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from olr_pg.monitor.proofs import Proof

_START: Final = datetime(2020, 2, 25)  # noqa: DTZ001 - Oracle's have no zone
KEYS: Final[dict[str, tuple[str, Callable[[int], dict[str, Any]]]]] = {
    "NUMBERS": ("id NUMBER PRIMARY KEY", lambda n: {"id": Decimal(n * 37 % 100_003 - 300) / 8}),
    "WORDS": ("id VARCHAR2(20) PRIMARY KEY",
              lambda n: {"id": f"{'aAäz_€ '[n % 7]}{n * 13 % 97}-{n}"}),
    "PADDED": ("id CHAR(12) PRIMARY KEY", lambda n: {"id": f"{'ab' * (n % 3)}{n}"}),
    "BYTES": ("id RAW(8) PRIMARY KEY",
              lambda n: {"id": bytes((n * 37 % 256,)) + n.to_bytes(2, "big")}),
    "DAYS": ("id DATE PRIMARY KEY", lambda n: {"id": _START + timedelta(hours=n * 37 % 100_003)}),
    "PAIRS": ("a VARCHAR2(9), b NUMBER(7), PRIMARY KEY (a, b)",
              lambda n: {"a": f"k{n % 4}", "b": n}),
    "KEYLESS": ("k NUMBER", lambda n: {"k": n}),
}  # fmt: skip
COLUMNS: Final = (
    "n NUMBER, s VARCHAR2(40), c CHAR(8), f BINARY_FLOAT, d BINARY_DOUBLE, t TIMESTAMP(6),"
    " z TIMESTAMP(3) WITH TIME ZONE, r RAW(20), lob CLOB, v NUMBER(12) NOT NULL"
)
_ZONED: Final = "TO_TIMESTAMP_TZ('{}', 'YYYY-MM-DD HH24:MI:SS.FF3 TZH:TZM')"
_APPEND: Final = (
    "DECLARE l CLOB; BEGIN SELECT lob INTO l FROM {} WHERE v = {} FOR UPDATE;"
    " DBMS_LOB.WRITEAPPEND(l, 900, RPAD('more', 900, '.')); END;"
)
ROWS: Final = 60
SECONDS_MAX: Final = 100.0
"""That replication may take to come to a commit."""


class Writer:
    """Changes tables at random, as sessions of an application do.

    Attributes:
        resting: tables that are left alone.
        changes: commits and DDL, by table.
    """

    def __init__(self, dsn: str, rng: Random) -> None:
        self._dsn, self._rng = dsn, rng
        self._sessions = [self._connect() for _ in range(2)]
        self._rows: dict[str, list[int]] = {name: [] for name in KEYS}
        self._next = 0
        self._added: dict[str, int] = dict.fromkeys(KEYS, 0)
        self.lock = threading.Lock()
        self.resting = set[str]()
        self.changes = Counter[str]()
        self.failure: BaseException | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _connect(self) -> oracledb.Connection:
        return oracledb.connect(user="app", password="olr", dsn=self._dsn)

    def define(self) -> None:
        cursor = self._sessions[0].cursor()
        for name, (key, _) in KEYS.items():
            cursor.execute(f"CREATE TABLE {name} ({key}, {COLUMNS})")
            for _ in range(ROWS):
                self._insert(cursor, name)
            self._sessions[0].commit()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()
        for session in self._sessions:
            session.close()

    def _run(self) -> None:
        try:
            while not self._stopping.wait(0.03):
                with self.lock:
                    self._transaction()
        except BaseException as error:  # noqa: BLE001 - told by the campaign
            self.failure = error

    def _transaction(self) -> None:
        names = [name for name in KEYS if name not in self.resting]
        if not names:
            return
        name, session = self._rng.choice(names), self._sessions[0]
        if self._rng.random() < 0.02:
            self._define_more(name)
            self.changes[name] += 1
            return
        before, cursor = list(self._rows[name]), session.cursor()
        for _ in range(self._rng.randint(1, 5)):
            self._rng.choice((self._insert, self._update, self._update, self._delete, self._append,
                              self._move))(cursor, name)  # fmt: skip
        if self._rng.random() < 0.15:
            session.rollback()
            self._rows[name] = before
        else:
            session.commit()
            self.changes[name] += 1

    def _define_more(self, name: str) -> None:
        cursor, what = self._sessions[0].cursor(), self._rng.random()
        self._added[name] += 1
        number = self._added[name]
        if what < 0.25:
            cursor.execute(f"TRUNCATE TABLE {name}")
            self._rows[name] = []
        elif what < 0.7 or number == 1:
            cursor.execute(f"ALTER TABLE {name} ADD (x{number} VARCHAR2(20))")
        else:
            cursor.execute(f"ALTER TABLE {name} MODIFY (s VARCHAR2({40 + number}))")

    def _values(self) -> dict[str, tuple[str, Any]]:
        """Draw the columns: the SQL around the bind, and the value."""
        rng = self._rng
        moment = _START + timedelta(
            seconds=rng.randint(0, 10**8), microseconds=rng.randint(0, 999999)
        )
        zone = rng.choice(("+00:00", "-09:30", "+05:45", "+14:00"))
        zoned = _ZONED.format(f"{moment:%Y-%m-%d %H:%M:%S}.{rng.randint(0, 999):03d} {zone}")
        stamp = f"TO_TIMESTAMP('{moment:%Y-%m-%d %H:%M:%S.%f}', 'YYYY-MM-DD HH24:MI:SS.FF6')"
        text = rng.choice(("short", "größer ", "x" * 3000, "wörtlich " * 1500))
        choices: dict[str, tuple[str, Any]] = {
            "n": (":n", rng.choice((0, -1, Decimal("0.001"), Decimal("12345678901234567890.5")))),
            "s": (":s", rng.choice(("a", " b ", "ünïcode €", "tab\t", "é" * 10))),
            "c": (":c", rng.choice(("a", "ab ", "12345678", " x"))),
            "f": ("TO_BINARY_FLOAT(:f)", rng.choice(("1.5", "-0.1", "3.4e38", "1e-40"))),
            "d": ("TO_BINARY_DOUBLE(:d)",
                  rng.choice(("0.1", "1e300", "-2.2250738585072014e-308", "5"))),
            "t": (stamp, _NO_BIND),
            "z": (zoned, _NO_BIND),
            "r": (":r", bytes(rng.randint(0, 255) for _ in range(rng.randint(1, 20)))),
            "lob": (":lob", text),
        }  # fmt: skip
        return {
            name: one if rng.random() < 0.85 else ("NULL", _NO_BIND)
            for name, one in choices.items()
        }

    def _insert(self, cursor: oracledb.Cursor, name: str) -> None:
        self._next += 1
        number, values = self._next, self._values()
        key = KEYS[name][1](number)
        values |= {column: (f":{column}", value) for column, value in key.items()}
        values["v"] = (":v", number)
        binds = {column: value for column, (_, value) in values.items() if value is not _NO_BIND}
        expressions = ", ".join(expression for expression, _ in values.values())
        cursor.execute(f"INSERT INTO {name} ({', '.join(values)}) VALUES ({expressions})", binds)
        self._rows[name].append(number)

    def _update(self, cursor: oracledb.Cursor, name: str) -> None:
        if not self._rows[name]:
            return
        values = self._values()
        chosen = self._rng.sample(sorted(values), self._rng.randint(1, 4))
        binds = {c: values[c][1] for c in chosen if values[c][1] is not _NO_BIND}
        sets = ", ".join(f"{column} = {values[column][0]}" for column in chosen)
        row = self._rng.choice(self._rows[name])
        cursor.execute(f"UPDATE {name} SET {sets} WHERE v = {row}", binds)

    def _delete(self, cursor: oracledb.Cursor, name: str) -> None:
        if len(self._rows[name]) > ROWS // 2:
            row = self._rows[name].pop(self._rng.randrange(len(self._rows[name])))
            cursor.execute(f"DELETE FROM {name} WHERE v = {row}")

    def _append(self, cursor: oracledb.Cursor, name: str) -> None:
        if not self._rows[name] or self._rng.random() < 0.7:
            return
        row = self._rng.choice(self._rows[name])
        cursor.execute(f"SELECT COUNT(*) FROM {name} WHERE v = {row} AND lob IS NOT NULL")
        if cursor.fetchone() == (1,):
            cursor.execute(_APPEND.format(name, row))

    def _move(self, cursor: oracledb.Cursor, name: str) -> None:
        """Give a row another key."""
        if not self._rows[name] or self._rng.random() < 0.5:
            return
        self._next += 1
        row, key = self._rng.choice(self._rows[name]), KEYS[name][1](self._next)
        sets = ", ".join(f"{column} = :{column}" for column in key)
        cursor.execute(f"UPDATE {name} SET {sets} WHERE v = {row}", key)


_NO_BIND: Final = object()


class Campaign:
    """The database, its copy, and what was found."""

    def __init__(self, served: SqlServer, folder: Path, database: str, seed: int) -> None:
        self._served, self._folder, self._database = served, folder, database
        self.rng = Random(seed)
        self._writer = Writer(served.server.connect_string, Random(seed + 1))
        self._reader = oracledb.connect(
            user="olr", password="olr", dsn=served.server.connect_string
        )
        self._target = psycopg.connect(database, autocommit=True)
        self._seen = Counter[str]()
        self.counts = Counter[str]()
        self.faults: list[str] = []
        self._pausing = ""

    def write_config(self) -> Path:
        document = json.loads((self._folder / "source" / "olr-pg.json").read_text())
        document["apply"] |= {
            "connect-string": self._database, "tables": [f"APP.{name}" for name in KEYS],
        }  # fmt: skip
        document["context"]["data"] = str(self._folder / "data")
        document["source"]["poll-ms"] = 50
        document["target"] = {"address": "127.0.0.1:0"}
        document["status"] = {"enabled": False}
        path = self._folder / "olr-pg.json"
        path.write_text(json.dumps(document))
        return path

    @contextmanager
    def running(self) -> Iterator[None]:
        """Load the tables, and replicate them."""
        self._writer.define()
        config = load_config(self.write_config())
        with sources.open_tables(config, for_load=True) as source:
            settings = sources.target_settings(config, source.snapshot, self._database)
            done = initial_load(
                settings, source.sources(source.choose(())), no_session, LoadOptions()
            )
        assert not done.failures, done.failures
        path = str(self._folder / "olr-pg.json")
        command = [sys.executable, "-m", "olr_pg", "run", "--config", path]
        with (self._folder / "run.log").open("w") as log:
            run = subprocess.Popen(command, stdout=log, stderr=log)
            try:
                self._writer.start()
                yield
            finally:
                self._writer.stop()
                if run.poll() is None:
                    run.send_signal(signal.SIGTERM)
                run.wait(120)
                self._reader.close()
                self._target.close()

    def round(self) -> None:
        """Walk through every table once, in another order each time."""
        if self._writer.failure is not None:
            raise self._writer.failure
        names = self.rng.sample(sorted(KEYS), len(KEYS))
        self._pause_or_resume()
        for name in names:
            if name == self._pausing or self.rng.random() < 0.75:
                self._quiet(name)
            else:
                self._damaged(name)

    def _pause_or_resume(self) -> None:
        if self._pausing:
            unpause_table(self._target, "olr_pg", f"APP.{self._pausing}")
            self._pausing = ""
        elif self.rng.random() < 0.1:
            self._pausing = self.rng.choice(sorted(KEYS))
            pause_table(
                self._target, "olr_pg", f"APP.{self._pausing}", f"app.{self._pausing.lower()}"
            )

    def _quiet(self, name: str) -> None:
        before = self._writer.changes[name]
        found = self._walk(name, None)
        has_changed, self._seen[name] = before > self._seen[name], before
        if found.differences:
            self._fault(f"false alarm: {found}")
        elif found.failure:
            self.counts[f"not compared: {found.failure[:9]}"] += 1
        else:
            self.counts["quiet" if has_changed else "quiet without a change"] += 1
            self.counts["rows that lack LOB values"] += found.lacking

    def _damaged(self, name: str) -> None:
        with self._writer.lock:
            self._writer.resting.add(name)
        try:
            self._await_applied()
            known = self._walk(name, None)
            if known.failure or known.differences:
                self.counts[f"not compared: {known.failure[:9]}"] += 1
                if known.differences:
                    self._fault(f"false alarm: {known}")
                return
            words = damage_row(self._target, self.rng, f"app.{name.lower()}")
            if not words:
                return
            found = self._walk(name, Mending(5))
            wanted = (1, 2) if name == "KEYLESS" and words in ("a value", "a LOB") else (1,)
            if found.mended not in wanted or found.differences:
                self._fault(f"{words} of {name}, but found {found}")
                return
            after = self._walk(name, None)
            if not after.is_equal:
                self._fault(f"{words} of {name} mended, but then {after}")
                return
            self.counts[f"damaged: {words}"] += 1
        finally:
            with self._writer.lock:
                self._writer.resting.discard(name)

    def _fault(self, words: str) -> None:
        self.faults.append(words)
        sys.stdout.write(f"FAILED ({self._folder}): {words}\n")
        path = self._folder / "differences.jsonl"
        if path.exists():
            shutil.copy(path, self._folder / f"fault-{len(self.faults)}.jsonl")
        sys.stdout.flush()

    def _await_applied(self) -> None:
        query = "SELECT CURRENT_SCN FROM V$DATABASE"
        ((scn,),) = self._reader.cursor().execute(query).fetchall()
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            row = self._target.execute("SELECT olr_pg.consistent_scn('olr_pg')").fetchone()
            if row and (row[0] or 0) >= scn:
                return
            if self._writer.failure is not None:
                raise self._writer.failure
            assert time.monotonic() < deadline, f"replication does not come to SCN {scn}: {row}"
            time.sleep(0.2)

    def _walk(self, name: str, mending: Mending | None) -> Proof:
        """Walk through a table, now and then by an object that begins in the middle."""
        proof = None
        while proof is None:
            steps = self.rng.randint(1, 3) if self.rng.random() < 0.2 else 10_000
            proof = self._steps(name, mending, steps)
        return proof

    def _steps(self, name: str, mending: Mending | None, steps: int) -> Proof | None:
        config = load_config(self.write_config())
        with sources.open_tables(config) as source:
            settings = sources.target_settings(config, source.snapshot, self._database)
            verification = ContinuousVerification(
                settings, source, self._folder, no_session, mending, time.sleep
            )
            (table,) = source.choose([f"APP.{name}"])
            for _ in range(steps):
                proof = verification.prove(table)
                self.counts["ranges"] += 1
                if proof.failure or not verification.is_walking(table.full_name):
                    return proof
        return None


def no_session() -> NoReturn:
    """Refuse a session: so few rows are compared in this process."""
    raise AssertionError("so few rows are compared in this process")


def campaign(
    folder: Path, database: str, seed: int, quiet: int, damaged: int, seconds: float
) -> Campaign:
    """Go on until there were so many histories, or for so many seconds."""
    for module, name, value in (
        *((continuous, f"ROWS_{which}", 25) for which in ("FIRST", "MIN", "MAX")),
        (live_rows, "RANGE_BYTES", 0),
    ):
        setattr(module, name, value)
    end = time.monotonic() + seconds
    with SqlServer(seed, folder / "source", demo_shape(), switch_seconds=0.5) as served:
        one = Campaign(served, folder, database, seed)
        with one.running():
            while time.monotonic() < end:
                one.round()
                sys.stderr.write(f"{dict(one.counts)}\n")
                done = sum(n for words, n in one.counts.items() if words.startswith("damaged"))
                if one.counts["quiet"] >= quiet and done >= damaged:
                    break
    return one


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.load.verification.live_histories")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quiet", type=int, default=10)
    parser.add_argument("--damaged", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=3600.0)
    options = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="olr-pg-histories-"))
    cluster = start_embedded(home / "cluster")
    try:
        (home / "work").mkdir()
        found = campaign(
            home / "work", cluster.connect_string, options.seed, options.quiet, options.damaged,
            options.seconds,
        )  # fmt: skip
    finally:
        cluster.stop()
    sys.stdout.write(f"{len(found.faults)} faults; {dict(found.counts)}\n")
    if not found.faults:
        shutil.rmtree(home)
    return 1 if found.faults else 0


if __name__ == "__main__":
    sys.exit(main())
