"""Histories of live tables, whose copies are verified beside a running replication.

    uv run python -m tests.load.verification.live_histories --seed 1 --quiet 1000 --damaged 200

A database that takes SQL has many tables (`--tables`), each with a random key, random columns of
every type, and a workload of its own: rows, LOBs whole and in parts, keys that move, rollbacks,
transactions that stay open, DDL, TRUNCATE, a table that is dropped and made again. `olr-pg run`
replicates it. Continuous verification walks through the tables meanwhile, in small ranges, begins
anew now and then in the middle of a walk, and often goes by definitions that it read before a DDL.
Tables are paused, stopped and resumed, the whole subscription is paused, replication is killed.

A history is what happens to one table in one run. In a quiet one no walk may find anything. In a
damaged one, a row of the copy is damaged now and then (a value, a LOB, a lost row, an extra one) in
the middle of a walk, while the workload goes on: the next walk must find and repair just that row,
and the one behind it nothing. At the end the whole copy is compared by `verify`.

The output says through how many tables in which state a walk has come (`STATES`). Exit code 1 if a
history is otherwise, or if a state was never met.
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
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, NoReturn

import oracledb
import psycopg
from psycopg import sql

from olr_pg.applier.batches.replay import replay
from olr_pg.applier.stopped.pausing import pause_all, pause_table, resume_all, unpause_table
from olr_pg.applier.target.connection import connect_with
from olr_pg.config.reading import load_config
from olr_pg.errors import Code, OlrPgError
from olr_pg.load import live_rows, sources
from olr_pg.load.initial import LoadOptions, initial_load
from olr_pg.load.verification import continuous
from olr_pg.load.verification.continuous import ContinuousVerification, Mending
from olr_pg.load.verification.verification import AT_POSITION, verify
from olr_pg.postgres.embedded import start_embedded
from olr_pg.simulator.database_shape import demo_shape
from olr_pg.simulator.oracle_net.serve import SqlServer
from tests.load.verification.damaged import damage_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.monitor.proofs import Proof

STATES: Final = (
    "replicated", "changed during the walk", "without a row",
    # as the ledger has the table (`cli.tables`)
    "paused", "stopped", "resumed, with changes that are still held",
    # its LOB values (`olr_pg.incomplete`)
    "lacks LOB values of rows with a key", "lacks LOB values of rows without a key",
    # the subscription
    "subscription paused", "another table holds changes", "replication is down",
    # its definition
    "DDL that the target does not have yet", "DDL that verification has not read yet",
    "rewritten during the walk", "made again",
    # the source
    "an open transaction",
    # the walk
    "by ranges", "whole", "went on from its file",
)  # fmt: skip
"""That a table can be in while a walk comes through it."""

_START: Final = datetime(2020, 2, 25)  # noqa: DTZ001 - Oracle's have no zone
KEYS: Final[dict[str, tuple[str, Callable[[int], dict[str, Any]]]]] = {
    "NUMBER": ("id NUMBER PRIMARY KEY", lambda n: {"id": Decimal(n * 37 % 100_003 - 300) / 8}),
    "VARCHAR2": ("id VARCHAR2(20) PRIMARY KEY",
                 lambda n: {"id": f"{'aAäz_€ '[n % 7]}{n * 13 % 97}-{n}"}),
    "NVARCHAR2": ("id NVARCHAR2(20) PRIMARY KEY", lambda n: {"id": f"{'aÄ€'[n % 3]}{n}"}),
    "CHAR": ("id CHAR(12) PRIMARY KEY", lambda n: {"id": f"{'ab' * (n % 3)}{n}"}),
    "RAW": ("id RAW(8) PRIMARY KEY",
            lambda n: {"id": bytes((n * 37 % 256,)) + n.to_bytes(3, "big")}),
    "DATE": ("id DATE PRIMARY KEY", lambda n: {"id": _START + timedelta(hours=n * 37 % 100_003)}),
    "PAIR": ("a VARCHAR2(9), b NUMBER(7), PRIMARY KEY (a, b)",
             lambda n: {"a": f"k{n % 4}", "b": n}),
    "": ("k NUMBER", lambda n: {"k": n}),
}  # fmt: skip
WHOLE: Final = ("", "NVARCHAR2")
"""Keys of tables that are compared whole."""


def _moment(rng: Random) -> datetime:
    return _START + timedelta(seconds=rng.randint(0, 10**8), microseconds=rng.randint(0, 999999))


def _stamp(rng: Random, digits: int) -> str:
    fraction = f"{rng.randint(0, 10**digits - 1):0{digits}}"
    text = f"{_moment(rng):%Y-%m-%d %H:%M:%S}.{fraction}"
    return f"TO_TIMESTAMP('{text}', 'YYYY-MM-DD HH24:MI:SS.FF{digits}')"


def _zoned(rng: Random) -> str:
    zone = rng.choice(("+00:00", "-09:30", "+05:45", "+14:00"))
    text = f"{_moment(rng):%Y-%m-%d %H:%M:%S}.{rng.randint(0, 999):03} {zone}"
    return f"TO_TIMESTAMP_TZ('{text}', 'YYYY-MM-DD HH24:MI:SS.FF3 TZH:TZM')"


def _text(rng: Random) -> str:
    return rng.choice(("short", "größer ", "x" * 3000, "wörtlich " * 900, "€" * 5000))


KINDS: Final[dict[str, Callable[[Random], tuple[str, Any] | str]]] = {
    "NUMBER": lambda rng: (
        "{}", rng.choice((0, -1, Decimal("0.001"), Decimal("12345678901234567890.5")))),
    "NUMBER(9,2)": lambda rng: ("{}", Decimal(rng.randint(-(10**8), 10**8)) / 100),
    "NUMBER(5)": lambda rng: ("{}", rng.randint(-99999, 99999)),
    "FLOAT": lambda rng: ("{}", rng.choice((Decimal("0.1"), Decimal("-1E+30"), 7))),
    "BINARY_FLOAT": lambda rng: (
        "TO_BINARY_FLOAT({})", rng.choice(("1.5", "-0.1", "3.4e38", "1e-40", "NaN"))),
    "BINARY_DOUBLE": lambda rng: (
        "TO_BINARY_DOUBLE({})",
        rng.choice(("0.1", "1e300", "-2.2250738585072014e-308", "5", "NaN"))),
    "VARCHAR2(40)": lambda rng: ("{}", rng.choice(("a", " b ", "ünïcode €", "tab\t", "é" * 10))),
    "NVARCHAR2(20)": lambda rng: ("{}", rng.choice(("a", " b ", "ünïcode €", "\U0001f600"))),
    "CHAR(8)": lambda rng: ("{}", rng.choice(("a", "ab ", "12345678", " x", "ä"))),
    "CHAR(6 CHAR)": lambda rng: ("{}", rng.choice(("a", "ä ", "€€€", "123456"))),
    "NCHAR(5)": lambda rng: ("{}", rng.choice(("a", "ä ", "€€€", "12345"))),
    "RAW(20)": lambda rng: ("{}", rng.randbytes(rng.randint(1, 20))),
    "DATE": lambda rng: ("{}", _moment(rng).replace(microsecond=0)),
    "TIMESTAMP(6)": lambda rng: _stamp(rng, 6),
    "TIMESTAMP(9)": lambda rng: _stamp(rng, 9),
    "TIMESTAMP(3) WITH TIME ZONE": _zoned,
    "INTERVAL YEAR TO MONTH": lambda rng: f"NUMTOYMINTERVAL({rng.randint(-99, 99)}, 'MONTH')",
    "INTERVAL DAY TO SECOND": lambda rng: f"NUMTODSINTERVAL({rng.randint(-9999, 9999)}, 'SECOND')",
    "CLOB": lambda rng: rng.choice((("{}", _text(rng)), "EMPTY_CLOB()")),
    "NCLOB": lambda rng: ("{}", _text(rng)),
    "BLOB": lambda rng: rng.choice((("{}", rng.randbytes(rng.choice((9, 9000)))), "EMPTY_BLOB()")),
}  # fmt: skip
"""Types of columns: draws the SQL of a value, and what is bound in it."""

WIDER: Final = {"VARCHAR2(40)": "VARCHAR2(60)", "NUMBER(9,2)": "NUMBER(12,2)"}
LOBS: Final = ("CLOB", "NCLOB", "BLOB")
_APPEND: Final = (
    "DECLARE l CLOB; BEGIN SELECT {1} INTO l FROM {0} WHERE v = {2} FOR UPDATE;"
    " DBMS_LOB.WRITEAPPEND(l, 900, RPAD('more', 900, '.')); END;"
)
ROWS: Final = 30
SECONDS_MAX: Final = 180.0
"""That replication may take to come to a commit."""

_LOOK: Final = """
SELECT l.paused, l.stopped, l.commit_scn, l.xids,
    EXISTS (SELECT FROM olr_pg.held h
            WHERE (h.subscription, h.source_table) = (l.subscription, l.source_table)),
    EXISTS (SELECT FROM olr_pg.incomplete i WHERE i.source_table = l.source_table
            AND key IS NOT NULL),
    EXISTS (SELECT FROM olr_pg.incomplete i WHERE i.source_table = l.source_table AND key IS NULL),
    EXISTS (SELECT FROM olr_pg.paused),
    (SELECT complete_scn FROM olr_pg.subscription s WHERE s.subscription = l.subscription)
        > olr_pg.consistent_scn(l.subscription),
    (SELECT array_agg(attname::text) FROM pg_attribute
        WHERE attrelid = to_regclass(l.target_table) AND attnum > 0 AND NOT attisdropped),
    (SELECT relfilenode::int8 FROM pg_class WHERE oid = to_regclass(l.target_table))
FROM olr_pg.ledger l WHERE l.source_table = %s
"""


@dataclass
class Live:
    """A table of the source.

    Attributes:
        columns: their types by name, without the key's and `v`, the number of a row.
        rows: the numbers of its rows.
        spared: rows that the workload leaves alone.
        resting: the workload leaves the table alone.
        changes, ddl: commits and DDL so far.
        lives: how often it was made.
    """

    name: str
    key: str
    columns: dict[str, str] = field(default_factory=dict)
    rows: list[int] = field(default_factory=list)
    spared: set[int] = field(default_factory=set)
    resting: bool = False
    changes: int = 0
    ddl: int = 0
    lives: int = 0
    added: int = 0

    @property
    def target(self) -> str:
        """The name of its copy."""
        return f"app.{self.name.lower()}"

    @property
    def names(self) -> set[str]:
        """The columns that its copy should have."""
        return {*self.columns, *KEYS[self.key][1](0), "v"}


class Writer:
    """Changes tables at random, as sessions of an application do."""

    def __init__(self, dsn: str, rng: Random, count: int) -> None:
        self._dsn, self._rng = dsn, rng
        self._sessions = [self._connect() for _ in range(3)]
        kinds = list(KEYS)
        self.tables = [Live(f"T{n:03}", kinds[n % len(kinds)]) for n in range(count)]
        self._next, self._beats = 0, 0
        self.open: tuple[Live, list[int]] | None = None
        self.lock = threading.Lock()
        self.failure: BaseException | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _connect(self) -> oracledb.Connection:
        return oracledb.connect(user="app", password="olr", dsn=self._dsn)

    def define(self) -> None:
        cursor = self._sessions[0].cursor()
        cursor.execute("CREATE TABLE beats (n NUMBER PRIMARY KEY)")
        for table in self.tables:
            self._create(cursor, table)
            for _ in range(self._rng.choice((0, ROWS, ROWS))):
                self._insert(cursor, table)
            self._sessions[0].commit()

    def _create(self, cursor: oracledb.Cursor, table: Live) -> None:
        rng = self._rng
        kinds = rng.sample(list(KINDS), rng.randint(3, 8)) + rng.choices(LOBS, k=rng.randint(0, 2))
        policy = rng.choice(("fetch", "null"))
        table.columns = {
            f"lob_{policy}{n}" if kind in LOBS else f"c{n}": kind for n, kind in enumerate(kinds)
        }
        columns = ", ".join(f"{name} {kind}" for name, kind in table.columns.items())
        key = KEYS[table.key][0]
        cursor.execute(f"CREATE TABLE {table.name} ({key}, {columns}, v NUMBER(12) NOT NULL)")
        table.rows, table.lives, table.added = [], table.lives + 1, len(kinds)

    def beat(self) -> None:
        """Commit something, so that there is redo behind all other commits."""
        self._beats += 1
        self._sessions[2].cursor().execute(f"INSERT INTO beats VALUES ({self._beats})")
        self._sessions[2].commit()

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
            while not self._stopping.wait(0.02):
                with self.lock:
                    self._transaction()
        except BaseException as error:  # noqa: BLE001 - told by the campaign
            self.failure = error

    def _transaction(self) -> None:
        tables = [one for one in self.tables if not one.resting]
        if not tables:
            return
        table, session = self._rng.choice(tables), self._sessions[0]
        if self._rng.random() < 0.03:
            self._hold_open(table)
            return
        if self._rng.random() < 0.03 and (self.open is None or self.open[0] is not table):
            self._define_more(table)
            table.changes += 1
            return
        before, cursor = list(table.rows), session.cursor()
        for _ in range(self._rng.randint(1, 5)):
            self._rng.choice((self._insert, self._update, self._update, self._delete, self._append,
                              self._append, self._move))(cursor, table)  # fmt: skip
        if self._rng.random() < 0.15:
            session.rollback()
            table.rows = before
        else:
            session.commit()
            table.changes += 1

    def _hold_open(self, table: Live) -> None:
        """Begin a transaction that stays open, or end the one that was."""
        session = self._sessions[1]
        if self.open is None:
            before = len(table.rows)
            for _ in range(3):
                self._insert(session.cursor(), table)
            self.open = table, table.rows[before:]
            del table.rows[before:]
            return
        table, rows = self.open
        if table.resting:
            return
        self.open = None
        if self._rng.random() < 0.3:
            session.rollback()
        else:
            session.commit()
            table.rows += rows
            table.changes += 1

    def _define_more(self, table: Live) -> None:
        cursor, rng, what = self._sessions[0].cursor(), self._rng, self._rng.random()
        wider = [name for name, kind in table.columns.items() if kind in WIDER]
        free = sorted(table.columns) if not table.spared else []
        if what < 0.2 and not table.spared:
            cursor.execute(f"TRUNCATE TABLE {table.name}")
            table.rows = []
        elif what < 0.35 and not table.spared:
            cursor.execute(f"DROP TABLE {table.name}")
            self._create(cursor, table)
        elif what < 0.5 and wider:
            name = rng.choice(wider)
            table.columns[name] = WIDER[table.columns[name]]
            cursor.execute(f"ALTER TABLE {table.name} MODIFY ({name} {table.columns[name]})")
        elif what < 0.65 and free and len(free) > 2:
            name = rng.choice(free)
            del table.columns[name]
            cursor.execute(f"ALTER TABLE {table.name} SET UNUSED ({name})")
        elif what < 0.8 and table.columns:
            name, table.added = rng.choice(sorted(table.columns)), table.added + 1
            new = f"{name.rstrip('0123456789')}{table.added}"
            table.columns = {new if one == name else one: k for one, k in table.columns.items()}
            cursor.execute(f"ALTER TABLE {table.name} RENAME COLUMN {name} TO {new}")
        else:
            table.added += 1
            kind = rng.choice([kind for kind in KINDS if kind not in LOBS])
            table.columns[f"c{table.added}"] = kind
            cursor.execute(f"ALTER TABLE {table.name} ADD (c{table.added} {kind})")
        table.ddl += 1

    def _value(self, name: str, kind: str, binds: dict[str, Any]) -> str:
        """Draw the value of a column: return its SQL, and add what it binds."""
        base = {wide: narrow for narrow, wide in WIDER.items()}.get(kind, kind)
        drawn = "NULL" if self._rng.random() < 0.15 else KINDS[base](self._rng)
        if isinstance(drawn, str):
            return drawn
        expression, binds[name] = drawn
        return expression.format(f":{name}")

    def _insert(self, cursor: oracledb.Cursor, table: Live) -> None:
        self._next += 1
        binds: dict[str, Any] = {}
        values = {
            name: self._value(name, kind, binds) for name, kind in table.columns.items()
        } | {"v": str(self._next)}  # fmt: skip
        for name, value in KEYS[table.key][1](self._next).items():
            values[name], binds[name] = f":{name}", value
        cursor.execute(
            f"INSERT INTO {table.name} ({', '.join(values)}) VALUES ({', '.join(values.values())})",
            binds,
        )
        table.rows.append(self._next)

    def _row(self, table: Live) -> int | None:
        rows = [row for row in table.rows if row not in table.spared]
        return self._rng.choice(rows) if rows else None

    def _update(self, cursor: oracledb.Cursor, table: Live) -> None:
        row = self._row(table)
        if row is None:
            return
        binds: dict[str, Any] = {}
        names = self._rng.sample(sorted(table.columns), min(len(table.columns), 3))
        sets = ", ".join(f"{name} = {self._value(name, table.columns[name], binds)}"
                         for name in names)  # fmt: skip
        cursor.execute(f"UPDATE {table.name} SET {sets} WHERE v = {row}", binds)

    def _delete(self, cursor: oracledb.Cursor, table: Live) -> None:
        row = self._row(table)
        if row is not None and len(table.rows) > ROWS // 2:
            table.rows.remove(row)
            cursor.execute(f"DELETE FROM {table.name} WHERE v = {row}")

    def _append(self, cursor: oracledb.Cursor, table: Live) -> None:
        row = self._row(table)
        lobs = [name for name, kind in table.columns.items() if kind == "CLOB"]
        if row is None or not lobs:
            return
        lob = self._rng.choice(lobs)
        cursor.execute(f"SELECT COUNT(*) FROM {table.name} WHERE v = {row} AND {lob} IS NOT NULL")
        if cursor.fetchone() == (1,):
            cursor.execute(_APPEND.format(table.name, lob, row))

    def _move(self, cursor: oracledb.Cursor, table: Live) -> None:
        """Give a row another key."""
        row = self._row(table)
        if row is None or self._rng.random() < 0.5:
            return
        self._next += 1
        key = KEYS[table.key][1](self._next)
        sets = ", ".join(f"{column} = :{column}" for column in key)
        cursor.execute(f"UPDATE {table.name} SET {sets} WHERE v = {row}", key)


class Campaign:
    """The database, its copy, and what was found."""

    def __init__(
        self, served: SqlServer, folder: Path, database: str, seed: int, tables: int, share: float
    ) -> None:
        self._folder, self._database, self._share = folder, database, share
        self.rng = Random(seed)
        dsn = served.server.connect_string
        self._writer = Writer(dsn, Random(seed + 1), tables)
        self._reader = oracledb.connect(user="olr", password="olr", dsn=dsn)
        self._target = psycopg.connect(database, autocommit=True)
        self._run: subprocess.Popen[bytes] | None = None
        self._stack = ExitStack()
        self._verification: ContinuousVerification | None = None
        self._known_ddl: dict[str, int] = {}
        self._quiet: dict[str, int] = {}
        self._damaged: dict[str, int] = {}
        self._compared = set[str]()
        self._stands = False
        self._held: dict[str, str] = {}
        self.counts, self.states = Counter[str](), Counter[str]()
        self.faults: list[str] = []

    def write_config(self) -> Path:
        document = json.loads((self._folder / "source" / "olr-pg.json").read_text())
        document["apply"] |= {
            "connect-string": self._database,
            "tables": ["APP.BEATS", *(f"APP.{table.name}" for table in self._writer.tables)],
            "ddl": {"drop-table": "follow"},
            "incomplete-lobs": {"*.*.LOB_FETCH*": "fetch", "*": "null"},
        }
        document["context"]["data"] = str(self._folder / "data")
        document["source"]["poll-ms"] = 50
        document["target"] = {"address": "127.0.0.1:0"}
        document["status"] = {"enabled": False}
        path = self._folder / "olr-pg.json"
        path.write_text(json.dumps(document))
        return path

    # --- replication ---

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
        self._begin_run()
        try:
            self._writer.start()
            yield
        finally:
            self._writer.stop()
            self._end_run(signal.SIGTERM)
            self._stack.close()
            self._reader.close()
            self._target.close()

    def _begin_run(self) -> None:
        command = [sys.executable, "-m", "olr_pg", "run", "--config"]
        with (self._folder / "run.log").open("ab") as log:
            path = str(self._folder / "olr-pg.json")
            self._run = subprocess.Popen([*command, path], stdout=log, stderr=log)

    def _end_run(self, number: signal.Signals) -> None:
        if self._run is not None:
            if self._run.poll() is None:
                self._run.send_signal(number)
            self._run.wait(120)
        self._run = None

    def _await_applied(self) -> None:
        """Wait until the target has, or holds, what has committed so far."""
        query = "SELECT CURRENT_SCN FROM V$DATABASE"
        ((scn,),) = self._reader.cursor().execute(query).fetchall()
        self._writer.beat()
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            row = self._target.execute("SELECT complete_scn FROM olr_pg.subscription").fetchone()
            if row and (row[0] or 0) >= scn:
                return
            self._check_alive()
            assert time.monotonic() < deadline, f"replication does not come to SCN {scn}: {row}"
            time.sleep(0.2)

    def _check_alive(self) -> None:
        if self._writer.failure is not None:
            raise self._writer.failure
        assert self._run is None or self._run.poll() is None, "replication has ended"

    # --- what happens to tables beside the workload ---

    def _disturb(self, table: Live) -> None:
        """Now and then pause or stop a table, or let it go on again."""
        name, what = f"APP.{table.name}", self._held.get(table.name)
        if what is None:
            if self.rng.random() < 0.04:
                self._held[table.name] = "paused"
                pause_table(self._target, "olr_pg", name, table.target)
            elif self.rng.random() < 0.06 and self._run is not None:
                self._held[table.name] = "stopped"
                self._constrain("ADD CONSTRAINT refused CHECK (v < 0) NOT VALID", table)
        elif self.rng.random() < 0.4:
            self._resume(table)

    def _constrain(self, change: str, table: Live) -> None:
        name = sql.Identifier(*table.target.split("."))
        self._target.execute(sql.SQL("ALTER TABLE {} ").format(name) + sql.SQL(change))

    def _resume(self, table: Live) -> None:
        if self._held.pop(table.name) == "paused":
            unpause_table(self._target, "olr_pg", f"APP.{table.name}")
        else:
            self._constrain("DROP CONSTRAINT IF EXISTS refused", table)
        self._walk(table)
        settings = self._settings()
        with connect_with(settings) as connection:
            done = replay(connection, settings, f"APP.{table.name}")
        if done.error is not None:
            self._fault(f"{table.name} does not go on: {done.error}")

    def _settings(self) -> ApplierSettings:
        if self._verification is None:
            self._open()
        assert self._verification is not None
        return self._verification._settings

    # --- walks ---

    def round(self) -> None:
        """Walk through every table once, in another order each time."""
        self._check_alive()
        damaged = self._damage()
        event = self.rng.choice(("", "pause", "kill"))
        if event == "pause":
            pause_all(self._target, "olr_pg", "the campaign")
        elif event == "kill":
            self._end_run(signal.SIGKILL)
        tables = self.rng.sample(self._writer.tables, len(self._writer.tables))
        tables.sort(key=lambda table: table.name in damaged)  # the others meet the event
        for number, table in enumerate(tables):
            if number == 5 and event == "pause":
                resume_all(self._target, "olr_pg")
            elif number == 5 and event == "kill":
                self._begin_run()
            self._stands = number < 5 and event != ""
            if table.name in damaged:
                self._find(table, *damaged[table.name])
                continue
            self._disturb(table)
            before, lives = table.changes, table.lives
            found = self._walk(table)
            if found.failure:
                self.counts[f"not compared: {found.failure[:9]}"] += 1
                if "OLR-05111" not in found.failure:
                    sys.stderr.write(f"{found.failure}\n")
                self._judge_failure(table, found)
                continue
            if found.differences:
                self._fault(f"false alarm: {found}")
            has_changed, self._quiet[table.name] = before > self._quiet.get(table.name, -1), before
            self.counts["quiet walks" if has_changed else "quiet walks without a change"] += 1
            if has_changed:
                self._compared.add(table.name)
            if found.lacking:
                self.counts["walks with rows that lack LOB values"] += 1
            if lives > 1:
                self.states["made again"] += 1

    def _judge_failure(self, table: Live, found: Proof) -> None:
        """A table that is not held is compared when the definitions are read again."""
        if self._held.get(table.name) or "OLR-05111" in found.failure or self._stands:
            return
        self._await_applied()
        self._open()
        again = self._walk(table)
        if again.failure and "OLR-05111" not in again.failure:
            self._fault(f"{table.name} is not compared: {again.failure}")

    def _damage(self) -> dict[str, tuple[str, int, int]]:
        """Damage some tables' copies; return what was done, the row, and the rows that differ."""
        chosen = [
            table for table in self._writer.tables
            if table.name not in self._held and self.rng.random() < self._share
        ]  # fmt: skip
        with self._writer.lock:
            for table in chosen:
                table.resting = True
        if chosen:
            self._await_applied()
        done = {}
        for table in chosen:
            with self._writer.lock:
                pending = self._writer.open is not None and self._writer.open[0] is table
            if table.rows and not pending:
                for _ in range(self.rng.randint(0, 2)):
                    self._prove(table)  # so that it happens in the middle of a walk
                row = self.rng.choice(table.rows)
                lacking = self._target.execute(
                    "SELECT target_column FROM olr_pg.incomplete WHERE source_table = %s",
                    (f"APP.{table.name}",),
                ).fetchall()
                words = damage_row(
                    self._target,
                    self.rng,
                    table.target,
                    f"v = {row}",
                    [name for (name,) in lacking],
                )
                if words:
                    changed = not table.key and words in ("a value", "a LOB")
                    done[table.name] = words, row, 2 if changed else 1
                    table.spared.add(row)
            with self._writer.lock:
                table.resting = False
        return done

    def _find(self, table: Live, words: str, row: int, count: int) -> None:
        """The walk at work may end; the next one must find the damage, and mend it."""
        # What a walk has mended before a DDL let it begin anew is in no proof.
        mending, damaged_at = Mending(15), time.time()
        for _ in range(5):
            ddl = table.ddl
            proof = self._walk(table, mending)
            if proof.failure:
                self.counts[f"not compared: {proof.failure[:9]}"] += 1
                self._judge_failure(table, proof)
            elif proof.at >= damaged_at and (not proof.differences or ddl == table.ddl):
                break  # else a DDL came between the comparison and the repair, which refuses then
        found = sum(rows for _, rows in mending._mended)
        after = self._walk(table)
        if proof.failure or proof.differences or found != count:
            self._fault(f"{words} of {table.name}, but {found} were mended, and found {proof}")
        elif after.differences:
            self._fault(f"{words} of {table.name} mended, but then {after}")
        else:
            self.counts[f"damaged: {words}"] += 1
            self._damaged[table.name] = self._damaged.get(table.name, 0) + 1
        table.spared.discard(row)

    def _is_walking(self, table: Live) -> bool:
        return self._verification is not None and self._verification.is_walking(f"APP.{table.name}")

    def _walk(self, table: Live, mending: Mending | None = None) -> Proof:
        """Walk to the end, now and then by an object that begins in the middle."""
        states, before = set[str](), table.changes
        if self._is_walking(table):
            states.add("went on from its file")
        files = set[int | None]()
        while True:
            if self._verification is None or self.rng.random() < 0.02:
                self._open()
            states |= self._states(table, files)
            proof = self._prove(table, mending)
            if proof.failure or not self._is_walking(table):
                break
        states |= self._states(table, files)
        if table.changes > before:
            states.add("changed during the walk")
        if len(files - {None}) > 1:
            states.add("rewritten during the walk")
        self.states.update(states)
        return proof

    def _prove(self, table: Live, mending: Mending | None = None) -> Proof:
        if self._verification is None:
            self._open()
        assert self._verification is not None
        self._verification._mending = mending
        self.counts["ranges"] += 1
        proof = self._verification.prove(self._tables[f"APP.{table.name}"])
        if proof.failure and self._held.get(table.name) is None:
            self._verification = None  # `verify` reads definitions again behind a failure
        return proof

    def _open(self) -> None:
        """Read the definitions of the tables, and what the files say of earlier walks."""
        config = load_config(self.write_config())
        while True:
            self._stack.close()
            self._known_ddl = {table.name: table.ddl for table in self._writer.tables}
            source = self._stack.enter_context(sources.open_tables(config))
            try:
                tables = source.choose(())
                break
            except OlrPgError as error:
                # Between DROP and CREATE; the statements are one after the other.
                if error.code is not Code.TABLE_UNKNOWN:
                    raise
        settings = sources.target_settings(config, source.snapshot, self._database)
        self._verification = ContinuousVerification(
            settings, source, self._folder, no_session, None, time.sleep
        )
        self._tables = {table.full_name: table for table in tables}

    def _states(self, table: Live, files: set[int | None]) -> set[str]:
        row = self._target.execute(_LOOK, (f"APP.{table.name}",)).fetchone()
        assert row is not None
        paused, stopped, _, _, held, keyed, keyless, whole, elsewhere, columns, file = row
        files.add(file)
        is_open = self._writer.open is not None and self._writer.open[0] is table
        flags = {
            "replicated": not stopped,
            "paused": paused,
            "stopped": stopped and not paused and self._held.get(table.name) == "stopped",
            "resumed, with changes that are still held": held and not paused
            and table.name not in self._held,
            "lacks LOB values of rows with a key": keyed,
            "lacks LOB values of rows without a key": keyless,
            "subscription paused": whole,
            "another table holds changes": elsewhere and not stopped,
            "replication is down": self._run is None,
            "DDL that the target does not have yet": set(columns or ()) != table.names,
            "DDL that verification has not read yet":
                table.ddl != self._known_ddl.get(table.name, table.ddl),
            "an open transaction": is_open,
            "without a row": not table.rows,
            "whole": table.key in WHOLE,
            "by ranges": table.key not in WHOLE,
        }  # fmt: skip
        return {words for words, is_so in flags.items() if is_so}

    def _fault(self, words: str) -> None:
        self.faults.append(words)
        sys.stdout.write(f"FAILED ({self._folder}): {words}\n")
        path = self._folder / "differences.jsonl"
        if path.exists():
            shutil.copy(path, self._folder / f"fault-{len(self.faults)}.jsonl")
        sys.stdout.flush()

    # --- the end ---

    def finish(self) -> None:
        """Let everything go on, and compare the whole copy by `verify`."""
        resume_all(self._target, "olr_pg")
        if self._run is None:
            self._begin_run()
        for table in self._writer.tables:
            if table.name in self._held:
                self._resume(table)
        with self._writer.lock:
            for table in self._writer.tables:
                table.resting = True
        self._await_applied()
        config = load_config(self.write_config())
        lacking = {
            str(name) for (name,) in
            self._target.execute("SELECT DISTINCT source_table FROM olr_pg.incomplete")
        }  # fmt: skip
        with sources.open_tables(config) as source:
            settings = sources.target_settings(config, source.snapshot, self._database)
            works = source.sources(source.choose(()))
            found = verify(settings, works, no_session, AT_POSITION)
        for failure in found.failures:
            self._fault(f"at the end: {failure}")
        for one in found.tables:
            name = one.table.source.full_name
            if not one.identical and name not in lacking:
                self._fault(f"at the end {name} differs: {one.differences[:3]}")
        for table in self._writer.tables:
            if table.name in self._damaged:
                self.counts["damaged histories"] += 1
            elif table.name in self._compared:
                self.counts["quiet histories"] += 1
            else:
                self.counts["histories without a walk behind a change"] += 1


def no_session() -> NoReturn:
    """Refuse a session: so few rows are compared in this process."""
    raise AssertionError("so few rows are compared in this process")


def campaign(
    folder: Path, database: str, seed: int, tables: int, rounds: int, share: float
) -> Campaign:
    """One run: so many rounds of walks through so many tables.

    Args:
        share: of the tables whose copies are damaged, in each round.
    """
    for module, name, value in (
        *((continuous, f"ROWS_{which}", 15) for which in ("FIRST", "MIN", "MAX")),
        (live_rows, "RANGE_BYTES", 0),
    ):
        setattr(module, name, value)
    with SqlServer(seed, folder / "source", demo_shape(), switch_seconds=0.5) as served:
        one = Campaign(served, folder, database, seed, tables, share)
        with one.running():
            for _ in range(rounds):
                one.round()
                sys.stderr.write(f"{dict(one.counts)}\n")
            one.finish()
    return one


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.load.verification.live_histories")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quiet", type=int, default=10, help="histories without damage")
    parser.add_argument("--damaged", type=int, default=2, help="damaged histories")
    parser.add_argument("--tables", type=int, default=48, help="in one run")
    parser.add_argument("--rounds", type=int, default=5, help="of walks in one run")
    options = parser.parse_args()
    counts, states, faults, seed = Counter[str](), Counter[str](), 0, options.seed
    while True:
        wants_damage = counts["damaged histories"] < options.damaged
        if counts["quiet histories"] >= options.quiet and not wants_damage:
            break
        home = Path(tempfile.mkdtemp(prefix=f"olr-pg-histories-{seed}-"))
        cluster = start_embedded(home / "cluster")
        try:
            (home / "work").mkdir()
            found = campaign(
                home / "work", cluster.connect_string, seed, options.tables, options.rounds,
                0.09 if wants_damage else 0.0,
            )  # fmt: skip
        finally:
            cluster.stop()
        counts, states = counts + found.counts, states + found.states
        faults += len(found.faults)
        sys.stdout.write(f"after seed {seed}: {faults} faults; {dict(counts)}\n")
        sys.stdout.flush()
        if not found.faults:
            shutil.rmtree(home)
        seed += 1
    for state in STATES:
        sys.stdout.write(f"{states[state]:6} walks: {state}\n")
    return 1 if faults or not all(states[state] for state in STATES) else 0


if __name__ == "__main__":
    sys.exit(main())
