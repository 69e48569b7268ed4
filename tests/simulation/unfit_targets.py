"""Targets that do not fit, under simulated histories with kills, locks and crashes.

    uv run python -m tests.simulation.unfit_targets --first 0 --count 200

A seed draws a simulated source and a target: the database's encoding, the role's settings, rights
and number of connections, and for each table what may be odd about it (unlogged, row security,
triggers and rules that always fire, children by inheritance, foreign partitions, …). Meanwhile the
appliance and PostgreSQL are killed, sessions are ended, tables are locked, and rights are taken and
given back. Then a last run goes to the end. Every table must be equal to the source's, or stopped
with an error of the catalogue; or the run ends with one. A stopped table has exactly the rows of
what its ledger has and the hold does not. There is no traceback, no success with other rows, and no
last run that waits for longer than `LAST_SECONDS`: the time in which neither it nor a session of
PostgreSQL that works for it runs or wants to run, so that a busy machine does not count. Exit code
1 where that does not hold.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import wait
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psutil
import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from olr_pg.appliance import appliance
from olr_pg.applier.batches import table_queue
from olr_pg.applier.settings import ApplierSettings
from olr_pg.applier.target_checks import check_target
from olr_pg.config.reading import load_config
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.dictionary.table_list import query_tables
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.findings import Severity
from olr_pg.postgres import embedded
from olr_pg.postgres.embedded import start_embedded
from olr_pg.simulator.simulation import simulate
from tests.simulation.children import _forks, _say_into
from tests.simulation.entry import applier_of, spark_or_not
from tests.simulation.laws import read_ledger
from tests.simulation.plan import MOMENTS, draw_plan
from tests.simulation.proxy import LOOPBACK, Proxy, Trip
from tests.simulation.truth import Truth
from tests.target_rows import differing_rows
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.dictionary.model import Table
    from olr_pg.postgres.embedded import EmbeddedPostgres
    from tests.simulation.truth import SourceTransaction

Connection = psycopg.Connection[tuple[Any, ...]]

LAST_SECONDS: Final = 30.0
"""How long the last run may wait, or compute; nothing keeps it from its end."""

START_SECONDS: Final = 90.0
LOOK_SECONDS: Final = 0.05
HOLD_SECONDS: Final = 1.5
"""After which changes of a locked table are held; the locks here last for 7 seconds at most."""

LIFE_SECONDS: Final = 6.0
"""How long a fault that needs traffic is waited for."""

OFTEN: Final = 0.3
SELDOM: Final = 0.08
FAILED: Final = 3
SUBSCRIPTION: Final = "olr_pg"

ENCODINGS: Final = ("LATIN1", "WIN1252", "LATIN9", "SQL_ASCII")

ROLE_SETTINGS: Final = (
    "SET statement_timeout = '40ms'",
    "SET lock_timeout = '100ms'",
    "SET idle_in_transaction_session_timeout = '50ms'",
    "SET default_transaction_isolation = 'serializable'",
    "SET default_transaction_read_only = on",
    "SET search_path = ''",
    "SET DateStyle = 'German'",
    "SET IntervalStyle = 'sql_standard'",
    "SET TimeZone = 'Asia/Kathmandu'",
    "SET bytea_output = 'escape'",
    "SET extra_float_digits = '-10'",
    "SET standard_conforming_strings = off",
    "SET synchronous_commit = off",
    "SET transform_null_equals = on",
    "SET client_encoding = 'LATIN1'",
    "SET client_min_messages = 'error'",
    "SET row_security = off",
    "SET check_function_bodies = off",
    "SET work_mem = '64kB'; ALTER ROLE {role} SET temp_file_limit = '0'",
    "SET enable_indexscan = off",
    "CONNECTION LIMIT 2",
    "CONNECTION LIMIT 4",
)

DATABASE_EXTRAS: Final = (
    (
        "CREATE FUNCTION public.no_ddl() RETURNS event_trigger LANGUAGE plpgsql AS"
        " $$BEGIN RAISE EXCEPTION 'no DDL here'; END$$;"
        "CREATE EVENT TRIGGER no_ddl ON ddl_command_start EXECUTE FUNCTION public.no_ddl();"
        "ALTER EVENT TRIGGER no_ddl ENABLE ALWAYS"
    ),
    "CREATE PUBLICATION everything FOR ALL TABLES",
    "REVOKE CREATE ON DATABASE {database} FROM {role}",
)

TABLE_EXTRAS: Final = {
    "unlogged": "ALTER TABLE {t} SET UNLOGGED",
    "row security": "ALTER TABLE {t} ENABLE ROW LEVEL SECURITY;"
    "CREATE POLICY p ON {t} USING (random() < 0.5) WITH CHECK (true)",
    "forced row security": "ALTER TABLE {t} ENABLE ROW LEVEL SECURITY;"
    "ALTER TABLE {t} FORCE ROW LEVEL SECURITY",
    "instead": "CREATE TABLE {x} (LIKE {t});"
    "CREATE RULE r AS ON INSERT TO {t} DO INSTEAD INSERT INTO {x} SELECT NEW.*;"
    "ALTER TABLE {t} ENABLE ALWAYS RULE r",
    "no deletes": "CREATE RULE d AS ON DELETE TO {t} DO INSTEAD NOTHING;"
    "ALTER TABLE {t} ENABLE REPLICA RULE d",
    "dropping trigger": "CREATE FUNCTION {f}() RETURNS trigger LANGUAGE plpgsql AS"
    " 'BEGIN RETURN NULL; END';"
    "CREATE TRIGGER f BEFORE INSERT OR UPDATE ON {t} FOR EACH ROW EXECUTE FUNCTION {f}();"
    "ALTER TABLE {t} ENABLE ALWAYS TRIGGER f",
    "raising trigger": "CREATE FUNCTION {f}r() RETURNS trigger LANGUAGE plpgsql AS"
    " 'BEGIN RAISE EXCEPTION ''not this one''; END';"
    "CREATE TRIGGER r BEFORE UPDATE OR DELETE ON {t} FOR EACH ROW EXECUTE FUNCTION {f}r();"
    "ALTER TABLE {t} ENABLE ALWAYS TRIGGER r",
    "ordinary trigger": "CREATE FUNCTION {f}o() RETURNS trigger LANGUAGE plpgsql AS"
    " 'BEGIN RETURN NULL; END';"
    "CREATE TRIGGER g BEFORE INSERT ON {t} FOR EACH ROW EXECUTE FUNCTION {f}o()",
    "child": "CREATE TABLE {x} () INHERITS ({t}); INSERT INTO {x} DEFAULT VALUES",
    "parent": "CREATE TABLE {x} (LIKE {t}); ALTER TABLE {t} INHERIT {x}",
    "published": "CREATE PUBLICATION {p} FOR TABLE {t}; ALTER TABLE {t} REPLICA IDENTITY NOTHING",
    "no updates": "REVOKE UPDATE ON {t} FROM {role}",
    "no reading": "REVOKE SELECT ON {t} FROM {role}",
    "no inserts": "REVOKE INSERT ON {t} FROM {role}",
    "never": "ALTER TABLE {t} ADD CHECK (false) NOT VALID",
    "one row": "CREATE UNIQUE INDEX ON {t} ((1))",
    "hash index": "CREATE INDEX ON {t} USING hash (({t}.*::text))",
    "view": "ALTER TABLE {t} RENAME TO {below}; CREATE VIEW {t} AS SELECT * FROM {s}.{below};"
    "GRANT ALL ON {t} TO {role}",
    "partitioned": "ALTER TABLE {t} RENAME TO {below};"
    "CREATE TABLE {t} (LIKE {s}.{below}) PARTITION BY HASH ({key});"
    "CREATE TABLE {x} PARTITION OF {t} FOR VALUES WITH (MODULUS 2, REMAINDER 0);"
    "CREATE {unlogged} TABLE {x}1 PARTITION OF {t} FOR VALUES WITH (MODULUS 2, REMAINDER 1);"
    "ALTER TABLE {t} ADD PRIMARY KEY ({key}); GRANT ALL ON {t} TO {role}",
    "foreign partition": "CREATE FOREIGN DATA WRAPPER w; CREATE SERVER w FOREIGN DATA WRAPPER w;"
    "ALTER TABLE {t} RENAME TO {below};"
    "CREATE TABLE {t} (LIKE {s}.{below}) PARTITION BY HASH ({key});"
    "CREATE TABLE {x} PARTITION OF {t} FOR VALUES WITH (MODULUS 2, REMAINDER 0);"
    "CREATE FOREIGN TABLE {x}1 PARTITION OF {t} FOR VALUES WITH (MODULUS 2, REMAINDER 1) SERVER w;"
    "GRANT ALL ON {t} TO {role}",
}
"""What may be odd about a table; what does not go with something that was drawn before is left."""

FAULTS: Final = ("kill", "kill", "terminate", "cut", "lock", "lock", "prepared", "right", "crash")


@dataclass
class Drawn:
    """What a seed drew, and what came of it.

    Attributes:
        properties: of the target.
        faults: that happened.
        codes: of the stopped tables and of the last run.
        held: transactions of stopped tables.
        seconds: that the last run waited or computed.
    """

    seed: int
    properties: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)
    held: int = 0
    seconds: float = 0.0


class BrokenError(Exception):
    """Something that must hold did not."""


class Orders(NamedTuple):
    """What a child process is to do."""

    folder: Path
    once: bool
    copy_rows: int
    window: int


def live(orders: Orders) -> None:
    """Replicate, in a child process."""
    from functools import partial

    _say_into(orders.folder / "log")
    (orders.folder / "alive").touch()
    config = load_config(orders.folder / "config.json")
    with pytest.MonkeyPatch.context() as patch:
        spark_or_not(patch, None)
        patch.setattr(table_queue, "HOLD_SECONDS", HOLD_SECONDS)
        patch.setattr(
            appliance,
            "ApplierSettings",
            partial(
                ApplierSettings,
                copy_rows=orders.copy_rows,
                window=orders.window,
                poll_milliseconds=20,
            ),
        )
        try:
            appliance.run_appliance(config, once=orders.once, apply=True)
        except OlrPgError as error:
            (orders.folder / "ending").write_text(f"{error.label} {error}", "utf-8")
            if error.code == Code.INTERNAL:
                traceback.print_exc()
            raise SystemExit(FAILED) from error


class Course:
    """One seed at work."""

    def __init__(
        self, seed: int, folder: Path, cluster: EmbeddedPostgres, stack: ExitStack
    ) -> None:
        self.rng = Random(f"unfit {seed}")
        self.drawn = Drawn(seed)
        self.folder = folder
        self.cluster = cluster
        plan = draw_plan(seed)
        self.settings = plan.settings
        source = folder / "source"
        summary = simulate(
            seed, source, workload=plan.workload, size=plan.size,
            shape=replace(plan.shape, unlogged=False),
        )  # fmt: skip
        self.truth = Truth(source, [table.full_name for table in summary.tables])
        self.name, self.role = f"unfit_{seed}", f"unfit_role_{seed}"
        self.schema = summary.tables[0].owner.lower()
        self._make_database()
        stack.callback(self._drop_database)
        parts = conninfo_to_dict(cluster.connect_string)
        place = str(parts["host"]), int(str(parts["port"]))
        self.proxy = stack.enter_context(Proxy("postgres", lambda: place))
        self._write_config(source)
        self.child: Any = None
        stack.callback(self.kill)

    # --- the target ---

    @property
    def superuser(self) -> str:
        return make_conninfo(self.cluster.connect_string, dbname=self.name, client_encoding="UTF8")

    def execute(self, statement: str, database: str | None = None) -> None:
        string = self.superuser if database is None else self.cluster.connect_string
        with psycopg.connect(string, autocommit=True) as connection:
            connection.execute(statement.encode())

    def _make_database(self) -> None:
        encoding = self.rng.choice(ENCODINGS) if self.rng.random() < SELDOM else "UTF8"
        if encoding != "UTF8":
            self.drawn.properties.append(encoding)
        self.execute(
            f"CREATE DATABASE {self.name} ENCODING '{encoding}' TEMPLATE template0"
            " LOCALE_PROVIDER libc LC_COLLATE 'C' LC_CTYPE 'C'",
            "postgres",
        )
        self.execute(f"CREATE ROLE {self.role} LOGIN PASSWORD 'x'", "postgres")
        self.execute(
            f"CREATE SCHEMA {self.schema};"
            f"GRANT ALL ON DATABASE {self.name} TO {self.role};"
            f"GRANT ALL ON SCHEMA {self.schema} TO {self.role};"
            f"GRANT SET ON PARAMETER session_replication_role TO {self.role}"
        )

    def _allow_ddl(self) -> None:
        with suppress(psycopg.errors.UndefinedObject):
            self.execute("ALTER EVENT TRIGGER no_ddl DISABLE")

    def _drop_database(self) -> None:
        self.execute(f"DROP DATABASE IF EXISTS {self.name} WITH (FORCE)", "postgres")
        self.execute(f"DROP OWNED BY {self.role}; DROP ROLE {self.role}", "postgres")

    def _write_config(self, source: Path) -> None:
        settings = self.settings
        unlogged = self.rng.choice(["refuse", "refuse", "accept"])
        document = {
            "context": {"data": str(self.folder / "data")},
            "source": {
                "kind": "offline",
                "poll-ms": 20,
                "dictionary": str(source / "dictionary.json"),
                "logs": str(source / "logs"),
            },
            "target": {"address": f"{LOOPBACK}:0", "byte-order": settings.byte_order},
            "apply": {
                "connect-string": make_conninfo(
                    self.cluster.connect_string, dbname=self.name, user=self.role, password="x",
                    port=self.proxy.port, sslmode="disable", gssencmode="disable",
                    connect_timeout=2,
                ),
                "tables": self.truth.tables,
                "workers": settings.workers,
                "batch-changes": settings.batch_changes,
                "batch-ms": settings.batch_ms,
                "answer-seconds": 2,
                "retry-seconds": 20,
                "unlogged-tables": unlogged,
            },
            "status": {"enabled": False},
        }  # fmt: skip
        (self.folder / "data").mkdir()
        (self.folder / "log").touch()
        (self.folder / "config.json").write_text(json.dumps(document, indent=2), "utf-8")

    def make_tables(self) -> None:
        """Make the tables as doctor says, and then what was drawn for them."""
        config = load_config(self.folder / "config.json")
        assert config.apply is not None
        snapshot = load_snapshot(str(self.folder / "source/dictionary.json"))
        tables = query_tables(snapshot, config.apply.table_query)
        settings = replace(
            applier_of(config, (LOOPBACK, 1))._settings, connect_string=self.superuser
        )
        for one in check_target(settings, tables):
            if one.severity is Severity.ERROR and one.mend[0].startswith("CREATE TABLE"):
                self.execute(one.mend[0])
        whole_owner = self.rng.random() < OFTEN
        for table in tables:
            name = self._name(table.full_name)
            if table.refusal is None and self._exists(name):
                change = f"ALTER TABLE {name} OWNER TO {self.role}" if whole_owner else ""
                self.execute(change or f"GRANT ALL ON {name} TO {self.role}")
                self._make_odd(table, name)
        self._draw_database()

    def _name(self, table: str) -> str:
        owner, _, name = table.lower().partition(".")
        return f'"{owner}"."{name}"'

    def _exists(self, name: str) -> bool:
        with psycopg.connect(self.superuser) as connection:
            return connection.execute("SELECT to_regclass(%s) IS NULL", (name,)).fetchone() == (
                False,
            )

    def _make_odd(self, table: Table, name: str) -> None:
        below = f"{table.name.lower()}_below"
        known = {column.intcol: column.name.lower() for column in table.columns}
        key = ", ".join(f'"{known[one]}"' for one in table.key if one in known) or "id"
        names = {
            "t": name, "s": f'"{table.owner.lower()}"', "below": f'"{below}"', "key": key,
            "x": f'"{table.owner.lower()}"."{table.name.lower()}_x"', "role": self.role,
            "f": f"{table.owner.lower()}.f_{table.obj}", "p": f"p_{table.obj}",
            "unlogged": "UNLOGGED" if self.rng.random() < OFTEN else "",
        }  # fmt: skip
        for extra, text in TABLE_EXTRAS.items():
            if self.rng.random() >= SELDOM:
                continue
            with suppress(psycopg.Error):
                self.execute(f"BEGIN; {text.format(**names)}; COMMIT")
                self.drawn.properties.append(f"{table.name}: {extra}")

    def _draw_database(self) -> None:
        for setting in ROLE_SETTINGS:
            if self.rng.random() < SELDOM / 2:
                with suppress(psycopg.errors.FeatureNotSupported):
                    # Not every client_encoding goes with that of every database.
                    self.execute(f"ALTER ROLE {self.role} {setting.format(role=self.role)}")
                    self.drawn.properties.append(setting)
        for extra in DATABASE_EXTRAS:
            if self.rng.random() < SELDOM / 2:
                self.execute(extra.format(role=self.role, database=self.name))
                self.drawn.properties.append(extra[:40])

    # --- lives and faults ---

    def start(self, *, once: bool = False) -> None:
        for name in ("ending", "alive"):
            (self.folder / name).unlink(missing_ok=True)
        orders = Orders(self.folder, once, self.settings.copy_rows, self.settings.window)
        self.child = _forks().Process(target=live, args=(orders,), daemon=True)
        self.child.start()
        wait_until((self.folder / "alive").exists, START_SECONDS)

    def kill(self) -> None:
        if self.child is not None:
            self.child.kill()
            self.child.join()
            self.child = None

    def run(self) -> Drawn:
        self.make_tables()
        for _ in range(self.rng.randint(2, 5)):
            self._fault(self.rng.choice(FAULTS))
            self.look_at_log()
        self.kill()
        self._run_last()
        return self.drawn

    def _fault(self, fault: str) -> None:
        if self.child is None or not self.child.is_alive():
            self.start()
        count = self.rng.randint(1, 250)
        moment = self.rng.choice(MOMENTS)
        begin = getattr(self, f"_{fault}")
        is_one_of_traffic = fault in {"kill", "terminate", "cut"}
        act: Callable[[], None] = begin if is_one_of_traffic else lambda: None
        trip = Trip("requests", lambda _: True, count, moment, act, cuts=fault == "cut")
        self.proxy.arm(trip)
        tripped = trip.tripped.wait(LIFE_SECONDS / 2 if not is_one_of_traffic else LIFE_SECONDS)
        self.proxy.arm(None)
        if is_one_of_traffic:
            self.drawn.faults.append(fault if tripped else f"no {fault}")
            if fault == "kill":
                self.kill()
        else:
            begin()
            self.drawn.faults.append(fault)

    def _kill(self) -> None:
        with suppress(AttributeError):
            self.child.kill()

    def _terminate(self) -> None:
        self.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            f" AND datname = '{self.name}'"
        )

    def _cut(self) -> None:
        """The proxy cuts the connection by itself."""

    def _some_table(self) -> str:
        return self._name(self.rng.choice(self.truth.tables))

    def _lock(self) -> None:
        """Hold a lock for a while, as a session that somebody forgot."""
        mode = self.rng.choice(("ACCESS EXCLUSIVE", "EXCLUSIVE", "SHARE ROW EXCLUSIVE", "SHARE"))
        table = self.rng.choice([*map(self._name, self.truth.tables), "olr_pg.ledger"])
        seconds = self.rng.choice((0.2, 2.0, 7.0))
        with suppress(psycopg.Error), psycopg.connect(self.superuser) as connection:
            connection.execute("SET lock_timeout = '5s'")
            connection.execute(f"LOCK TABLE {table} IN {mode} MODE".encode())
            time.sleep(seconds)  # the lock's time, no condition

    def _prepared(self) -> None:
        with (
            suppress(psycopg.Error),
            psycopg.connect(self.superuser, autocommit=True) as connection,
        ):
            connection.execute("SET lock_timeout = '5s'")
            connection.execute("BEGIN")
            connection.execute(f"LOCK TABLE {self._some_table()} IN SHARE MODE".encode())
            connection.execute("PREPARE TRANSACTION 'forgotten'")
            time.sleep(self.rng.choice((0.2, 3.0)))  # the lock's time, no condition
            connection.execute("ROLLBACK PREPARED 'forgotten'")

    def _right(self) -> None:
        """Take a right away and give it back."""
        table = self._some_table()
        right = self.rng.choice(("INSERT", "UPDATE", "DELETE", "SELECT", "ALL"))
        with suppress(psycopg.Error):
            self.execute(f"SET lock_timeout = '5s'; REVOKE {right} ON {table} FROM {self.role}")
            time.sleep(self.rng.choice((0.1, 1.0)))  # the time without it, no condition
            self.execute(f"SET lock_timeout = '5s'; GRANT {right} ON {table} TO {self.role}")

    def _crash(self) -> None:
        pid = self.cluster.pid
        assert pid is not None
        os.kill(pid, 9)
        while not self.cluster.is_gone():
            time.sleep(0.05)
        self.cluster.revive()

    # --- the end ---

    def look_at_log(self) -> None:
        text = (self.folder / "log").read_text("utf-8", "replace")
        if "Traceback" in text or "OLR-09001" in text:
            raise BrokenError(f"a traceback:\n{text[-6000:]}")

    def _run_last(self) -> None:
        with psycopg.connect(self.superuser, autocommit=True) as connection:
            for (gid,) in connection.execute("SELECT gid FROM pg_prepared_xacts").fetchall():
                connection.execute(sql.SQL("ROLLBACK PREPARED {}").format(sql.Literal(gid)))
        self.start(once=True)
        self._await_end()
        code = self.child.exitcode
        if code is None:
            raise BrokenError(f"the last run does not end:\n{self._log()}")
        self.look_at_log()
        ending = self.folder / "ending"
        told = ending.read_text("utf-8") if ending.exists() else ""
        if code not in (0, FAILED) or (code == FAILED) != bool(told):
            raise BrokenError(f"the last run ended with {code}: {told}\n{self._log()}")
        if told:
            self.drawn.codes.append(told)
        if code == 0 or told.startswith(f"OLR-{Code.TABLES_STOPPED:05}"):
            self._compare(may_stop=code != 0)

    def _await_end(self) -> None:
        """Wait until the last run ends, or has waited or computed for too long."""
        waited, last = 0.0, time.monotonic()
        process = psutil.Process(self.child.pid)
        with suppress(psutil.Error):
            while not wait([self.child.sentinel], LOOK_SECONDS):
                now = time.monotonic()
                if not self._is_busy(process):
                    # What passed while this process was not run is nobody's wait.
                    waited += min(now - last, 2 * LOOK_SECONDS)
                last = now
                computed = sum(process.cpu_times()[:2])
                self.drawn.seconds = max(waited, computed)
                if self.drawn.seconds > LAST_SECONDS:
                    return
        self.child.join()

    def _is_busy(self, process: psutil.Process) -> bool:
        """Tell whether the run, or a session that works for it, runs or wants to run."""
        pids = {f"/proc/{process.pid}/task/{thread.id}" for thread in process.threads()}
        server = psutil.Process(self.cluster.pid)
        pids |= {
            f"/proc/{one.pid}"
            for one in server.children()
            if self.name in "".join(one.cmdline()) or "startup" in "".join(one.cmdline())
        }
        for place in pids:
            with suppress(OSError):
                if Path(place, "stat").read_text().rpartition(")")[2].split()[0] in "RD":
                    return True
        return False

    def _log(self) -> str:
        return (self.folder / "log").read_text("utf-8", "replace")[-6000:]

    def _compare(self, *, may_stop: bool) -> None:
        self._allow_ddl()
        with psycopg.connect(self.superuser, autocommit=True) as connection:
            rows = connection.execute(
                "SELECT DISTINCT ON (l.source_table) l.source_table, e.message FROM olr_pg.ledger l"
                " LEFT JOIN olr_pg.error e USING (subscription, source_table) WHERE l.stopped"
            ).fetchall()
            stopped: dict[str, str | None] = dict(rows)
            if stopped and not may_stop:
                raise BrokenError(f"a success with stopped tables: {stopped}")
            for table, message in stopped.items():
                if not message:
                    raise BrokenError(f"{table} is stopped without a reason")
                self.drawn.codes.append(f"{table}: {message}")
            for table in self.truth.tables:
                if table not in stopped:
                    self._compare_table(connection, table, lambda _: True)
                elif not self._is_emptied(connection, table):
                    self._compare_table(connection, table, self._applied(connection, table))

    def _is_emptied(self, connection: Connection, table: str) -> bool:
        """Tell whether a crash emptied the table, or partitions of it."""
        found = connection.execute(
            "SELECT FROM olr_pg.error WHERE source_table = %s AND code = %s",
            (table, Code.TARGET_ROWS_LOST),
        ).fetchone()
        name = table.partition(".")[2]
        odd = {f"{name}: unlogged", f"{name}: partitioned"} & set(self.drawn.properties)
        return found is not None or (bool(odd) and "crash" in self.drawn.faults)

    def _applied(self, connection: Connection, table: str) -> Callable[[SourceTransaction], bool]:
        """Return which transactions a stopped table has, by its ledger and its hold."""
        ledger = read_ledger(connection, SUBSCRIPTION)[table]
        rows = connection.execute(
            "SELECT commit_scn, xid FROM olr_pg.held WHERE source_table = %s", (table,)
        ).fetchall()
        held = frozenset(rows)
        self.drawn.held += len(held)
        return lambda one: ledger.has(one) and one.identity not in held

    def _compare_table(
        self, connection: Connection, table: str, applied: Callable[[SourceTransaction], bool]
    ) -> None:
        # Ledger and hold of this table say nothing about rows of other tables.
        expected = self.truth.rows(table, lambda one, name: name != table or applied(one))
        owner, _, name = table.lower().partition(".")
        row = connection.execute(
            "SELECT relkind::text FROM pg_class WHERE oid = to_regclass(%s)", (self._name(table),)
        ).fetchone()
        if row is None:
            if expected:
                raise BrokenError(f"{table} is not there, and should have rows")
            return
        differing = differing_rows(connection, owner, name, expected, only=row == ("r",))
        if differing:
            raise BrokenError(f"{table} differs from what its ledger says: {differing[:5]}")


def prepare_cluster(cluster: EmbeddedPostgres) -> None:
    """Set what the faults need, and spare what no fault needs."""
    with psycopg.connect(cluster.connect_string, autocommit=True) as connection:
        for setting in (
            "max_prepared_transactions = 5", "fsync = off", "wal_level = logical",
            "scram_iterations = 1", "autovacuum = off",
        ):  # fmt: skip
            with suppress(psycopg.errors.UndefinedObject):  # of later versions
                connection.execute(f"ALTER SYSTEM SET {setting}".encode())
    pid = cluster.pid
    assert pid is not None
    os.kill(pid, 9)
    while not cluster.is_gone():
        time.sleep(0.05)
    cluster.revive()


def use_binaries(folder: Path) -> None:
    """Take another PostgreSQL than the packaged one, which may be too old for `builtin`."""
    run = embedded._Tools._run

    def run_older(tools: Any, program: str, *arguments: Any, cwd: Path) -> None:
        run(tools, program, *(one for one in arguments if "builtin" not in str(one)), cwd=cwd)

    embedded.packaged_installation = lambda: folder
    embedded._Tools._run = run_older  # type: ignore[method-assign,assignment]


def run_seed(seed: int, folder: Path, cluster: EmbeddedPostgres) -> Drawn:
    """Run a seed.

    Raises:
        BrokenError: something does not hold.
    """
    with ExitStack() as stack:
        course = Course(seed, folder, cluster, stack)
        try:
            return course.run()
        except Exception as error:
            raise BrokenError(f"{course.drawn}\n{error}") from error


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation.unfit_targets",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--binaries", type=Path, help="another PostgreSQL: the folder with bin/")
    parser.add_argument("--keep", type=Path, help="a folder for what failing seeds leave behind")
    options = parser.parse_args()
    if options.binaries is not None:
        use_binaries(options.binaries)
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
    failed, codes = 0, Counter[str]()
    home = Path(tempfile.mkdtemp(prefix="olr-pg-unfit-"))
    cluster = start_embedded(home)
    try:
        prepare_cluster(cluster)
        for seed in range(options.first, options.first + options.count):
            folder = Path(tempfile.mkdtemp(prefix=f"olr-pg-unfit-{seed}-", dir=options.keep))
            try:
                drawn = run_seed(seed, folder, cluster)
            except Exception:  # noqa: BLE001 - each seed is reported
                failed += 1
                sys.stdout.write(f"seed {seed} FAILED in {folder}\n{traceback.format_exc()}\n")
                if options.keep is None:
                    shutil.rmtree(folder)
            else:
                codes.update({one.split()[0] for one in drawn.codes} or {"equal"})
                sys.stdout.write(f"seed {seed}: {drawn}\n")
                shutil.rmtree(folder)
            sys.stdout.flush()
    finally:
        cluster.stop()
        shutil.rmtree(home)
    sys.stdout.write(f"{failed} failed; {codes}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
