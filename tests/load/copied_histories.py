"""Rows that another tool copies, in any order of commands: at last both sides have the same rows.

    uv run python -m tests.load.copied_histories --count 50 --first 1

A bank's database takes SQL. Sessions change it, also over the begin and the end of copies. An
operator gives commands in any order, and some are killed at a statement. Another tool reads tables
as of the SCN that was last printed, and writes them. At the end everything that is begun is ended,
and all tables are compared.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
from contextlib import contextmanager, redirect_stdout, suppress
from functools import partial
from io import StringIO
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

import oracledb
import psycopg
import structlog
import typer
from psycopg import sql
from psycopg.conninfo import make_conninfo

from olr_pg.appliance.appliance import run_appliance
from olr_pg.cli.migration.load import initial_load
from olr_pg.cli.tables import add, pause, remove, resume
from olr_pg.config.reading import load_config
from olr_pg.errors import OlrPgError
from olr_pg.load import copy_task
from olr_pg.observability import logging_setup
from tests.postgres.own_cluster import own_cluster
from tests.proving.served import Served, document_of, served_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

SESSIONS: Final = 3
CREATED: Final = {
    "K": "CREATE TABLE k (id NUMBER(9) PRIMARY KEY, owner NUMBER(3), v VARCHAR2(60), n NUMBER(9),"
    " SUPPLEMENTAL LOG DATA (ALL) COLUMNS)",
    "U": "CREATE TABLE u (id NUMBER(9), owner NUMBER(3), v VARCHAR2(60), n NUMBER(9),"
    " SUPPLEMENTAL LOG DATA (ALL) COLUMNS)",
    "L": "CREATE TABLE l (id NUMBER(9) PRIMARY KEY, owner NUMBER(3), v CLOB, n NUMBER(9),"
    " SUPPLEMENTAL LOG DATA (ALL) COLUMNS)",
    "P": "CREATE TABLE p (id NUMBER(9) PRIMARY KEY, owner NUMBER(3), v VARCHAR2(60), n NUMBER(9),"
    " SUPPLEMENTAL LOG DATA (ALL) COLUMNS) PARTITION BY HASH (id) PARTITIONS 3",
    "F": "CREATE TABLE f (id NUMBER(9) PRIMARY KEY, owner NUMBER(3), v VARCHAR2(60), n NUMBER(9),"
    " secret VARCHAR2(9), SUPPLEMENTAL LOG DATA (ALL) COLUMNS)",
    "X": "CREATE TABLE x (id NUMBER(9) PRIMARY KEY, owner NUMBER(3), v VARCHAR2(60), n NUMBER(9),"
    " SUPPLEMENTAL LOG DATA (ALL) COLUMNS)",
}
MAPPED: Final = {"P": "bank.pp"}
KEPT: Final = {"F": "n < 500"}
LISTED: Final = ("K", "U", "L", "P", "F")
ADDED: Final = "X"


class Killed(BaseException):
    """The process is killed at a statement."""


@contextmanager
def killed_at(number: int) -> Iterator[list[int]]:
    """Kill the command at a statement to PostgreSQL; 0 for never. Yield a list with the count."""
    seen = [0]
    original = psycopg.Connection.execute

    def execute(self: Any, *arguments: Any, **options: Any) -> Any:
        if threading.current_thread() is threading.main_thread():
            seen[0] += 1
            if seen[0] == number:
                self.close()
                raise Killed
        return original(self, *arguments, **options)

    psycopg.Connection.execute = execute  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        psycopg.Connection.execute = original  # type: ignore[method-assign]


def ordered(rows: Iterable[tuple[Any, ...]]) -> list[tuple[str, ...]]:
    """Rows of either side, to compare them."""
    return sorted(tuple(map(str, row)) for row in rows)


class Copied:
    """What the other tool has of a table.

    Attributes:
        scn: as of which it was told to read; 0 if it was told none.
        rows: what it has read as of `rows_scn`.
        lost_scn: up to which Oracle cannot read any more, because the table was dropped; else 0.
        is_written: whether the target has exactly these rows from it.
    """

    def __init__(self) -> None:
        self.scn = 0
        self.rows_scn = 0
        self.lost_scn = 0
        self.names: list[str] = []
        self.rows: list[tuple[Any, ...]] = []
        self.is_written = False


class Bank:
    """The database, its sessions, the operator, the other tool."""

    def __init__(
        self, served: Served, target: str, rng: Random, say: Callable[[str], None]
    ) -> None:
        self.served, self.target, self.rng, self.say = served, target, rng, say
        self.sessions = [self._connect() for _ in range(SESSIONS)]
        self.next_id = 1
        self.copies = {name: Copied() for name in CREATED}
        self.done: set[str] = set()  # loaded or ended
        self.listed = set(LISTED)
        self.columns = 0
        self.dropped: set[str] = set()
        self.kills = True
        for statement in CREATED.values():
            served.execute(statement)
        for name in CREATED:
            for session in range(SESSIONS):
                for _ in range(3):
                    self.insert(session, name)
        self.commit_all()
        served.server.database.switch_logs()
        document = document_of(served.folder)
        document["context"] = {"data": str(served.folder / "data")}
        document["apply"] = {
            "connect-string": target,
            "create-tables": True,
            "tables": [f"APP.{one}" for one in LISTED],
            "table-mapping": {f"APP.{name}": there for name, there in MAPPED.items()},
        }
        document["filter"] = {
            "columns": {"APP.F": ["SECRET"]},
            "rows": [{"table": f"APP.{name}", "where": where} for name, where in KEPT.items()],
        }
        document.setdefault("target", {"address": "127.0.0.1:0"})
        document["status"] = {"enabled": False}
        document["source"]["poll-ms"] = 20
        self.config = served.folder / "bank.json"
        self.config.write_text(json.dumps(document), "utf-8")

    def _connect(self) -> oracledb.Connection:
        return oracledb.connect(user="app", password="olr", dsn=self.served.dsn)

    # --- the source ---

    def execute(self, session: int, statement: str) -> None:
        self.sessions[session].cursor().execute(statement)

    def insert(self, session: int, name: str) -> None:
        number, self.next_id = self.next_id, self.next_id + 1
        more = ", 'hidden'" if name == "F" else ""
        names = "id, owner, v, n" + (", secret" if name == "F" else "")
        size = self.rng.choice((3, 40)) if name != "L" else self.rng.choice((3, 9000))
        self.execute(
            session,
            f"INSERT INTO {name} ({names}) VALUES ({number}, {session},"
            f" RPAD('v{number}', {size}, 'x'), {self.rng.randrange(600)}{more})",
        )

    def change(self) -> None:
        session, name = self.rng.randrange(SESSIONS), self.rng.choice(list(CREATED))
        kind = self.rng.choice(("insert", "insert", "update", "delete", "values"))
        self.say(f"session {session}: {kind} {name}")
        if kind == "insert":
            self.insert(session, name)
        elif kind == "update":
            self.execute(
                session,
                f"UPDATE {name} SET n = n + {self.rng.randrange(1, 90)}"
                f" WHERE owner = {session} AND MOD(id, 2) = {self.rng.randrange(2)}",
            )
        elif kind == "values":
            self.execute(
                session,
                f"UPDATE {name} SET v = 'w{self.next_id}' WHERE owner = {session}"
                f" AND MOD(id, 3) = {self.rng.randrange(3)}",
            )
        else:
            self.execute(
                session,
                f"DELETE FROM {name} WHERE owner = {session}"
                f" AND MOD(id, 4) = {self.rng.randrange(4)}",
            )

    def end_transaction(self) -> None:
        session = self.rng.randrange(SESSIONS)
        kind = self.rng.choice(("commit", "commit", "commit", "rollback", "savepoint", "partly"))
        self.say(f"session {session}: {kind}")
        if kind == "commit":
            self.sessions[session].commit()
        elif kind == "rollback":
            self.sessions[session].rollback()
        elif kind == "savepoint":
            self.execute(session, "SAVEPOINT s")
        else:
            self.execute(session, "SAVEPOINT t")
            self.insert(session, self.rng.choice(list(CREATED)))
            self.execute(session, "ROLLBACK TO t")

    def commit_all(self) -> None:
        for session in self.sessions:
            session.commit()

    def ddl(self) -> None:
        self.commit_all()
        name = self.rng.choice(list(CREATED))
        kind = self.rng.choice(("ADD", "TRUNCATE", "RENAME COLUMN", "UNUSED", "DROP", "MOVE"))
        self.columns += 1
        column = f"C{self.columns}"
        if kind == "ADD":
            statements = [f"ALTER TABLE {name} ADD ({column} NUMBER(9))"]
        elif kind == "MOVE" and name not in {"P", "L"}:
            statements = [f"ALTER TABLE {name} MOVE"]
        elif kind in ("TRUNCATE", "MOVE"):
            statements = [f"TRUNCATE TABLE {name}"]
        elif kind == "RENAME COLUMN":
            statements = [
                f"ALTER TABLE {name} RENAME COLUMN v TO {column}",
                f"ALTER TABLE {name} RENAME COLUMN {column} TO v",
            ]
        elif kind == "UNUSED":
            statements = [
                f"ALTER TABLE {name} ADD ({column} NUMBER(9))",
                f"ALTER TABLE {name} SET UNUSED ({column})",
            ]
        else:
            statements = [f"DROP TABLE {name}", CREATED[name]]
            self.dropped.add(name)
            self.copies[name].lost_scn = self.served.server.database.current_scn()
        self.say(f"DDL {statements}")
        for one in statements:
            self.execute(0, one)

    def forget(self) -> None:
        """Oracle has no undo of the dictionary up to now any more."""
        state = self.served.server.server.state
        state.catalogue.undo_scn = state.scn
        self.say(f"no undo before {state.scn}")

    def switch(self) -> None:
        self.served.server.database.switch_logs()

    # --- the operator ---

    def command(self, words: str, act: Callable[[], None]) -> str | None:
        """Give a command; return what it printed, or None if it failed or was killed."""
        number = self.rng.randrange(1, 60) if self.kills and self.rng.random() < 0.25 else 0
        out = StringIO()
        try:
            with killed_at(number), redirect_stdout(out):
                act()
        except Killed:
            self.say(f"{words}: killed at statement {number}")
            return None
        except OlrPgError as error:
            self.say(f"{words}: {error}")
            return None
        self.say(f"{words}: done")
        return out.getvalue()

    def some(self) -> list[str]:
        return self.rng.sample(LISTED, self.rng.randint(1, 2)) if self.rng.random() < 0.7 else []

    def _named(self, names: Sequence[str]) -> list[str] | None:
        return [f"APP.{one}" for one in names] or None

    def begin(self, *, restart: bool = False, anew: bool = False) -> None:
        names = self.some() or (list(LISTED) if anew else [])
        printed = self.command(
            f"begin {names} restart={restart} anew={anew}",
            lambda: initial_load(
                self.config,
                table=self._named(names),
                begin_copy=True,
                as_json=True,
                restart=restart,
                anew=anew,
            ),
        )
        self.told(printed, are_emptied=restart or anew)
        if anew:
            self.done.difference_update(names)
        if (restart or anew) and printed is None:
            for name in names or LISTED:  # it may have emptied them
                self.copies[name].is_written = False
                self.copies[name].scn = 0

    def told(self, printed: str | None, *, are_emptied: bool = False) -> None:
        if printed is None:
            return
        for one in json.loads(printed.splitlines()[-1])["tables"]:
            copy = self.copies[one["table"].removeprefix("APP.")]
            self.say(f"    {one['table']} as of {one['scn']} from {one['start_scn']}")
            if copy.scn != one["scn"] or are_emptied:
                copy.is_written = False
            copy.scn = one["scn"]

    def end(self) -> None:
        names = self.some()
        if all(self.copies[one].is_written or one in self.done for one in names or LISTED):
            done = self.command(
                f"end {names}",
                lambda: initial_load(self.config, table=self._named(names), end_copy=True),
            )
            if done is not None:
                self.done.update(names or LISTED)

    def load(self, *, restart: bool = False) -> None:
        names = self.some()
        done = self.command(
            f"load {names} restart={restart}",
            lambda: initial_load(self.config, table=self._named(names), restart=restart),
        )
        for name in names or LISTED:
            if done is not None:
                self.done.add(name)
            if restart:
                self.copies[name].is_written = False
                self.copies[name].scn = 0

    def add_begin(self) -> None:
        if ADDED in self.listed:
            return
        out = self.command("add-begin", lambda: add(self.config, [f"APP.{ADDED}"], begin_copy=True))
        if out is None:
            return
        scn = int(out.split("as of SCN ")[1].split(":")[0]) if "as of SCN" in out else 0
        copy = self.copies[ADDED]
        if scn and copy.scn != scn:
            copy.scn, copy.is_written = scn, False

    def add_end(self) -> None:
        if (
            ADDED not in self.listed
            and self.copies[ADDED].is_written
            and self.command("add-end", lambda: add(self.config, [f"APP.{ADDED}"], end_copy=True))
            is not None
        ):
            self.listed.add(ADDED)

    def remove_added(self) -> None:
        self.command("remove", lambda: remove(self.config, [f"APP.{ADDED}"]))
        self.listed.discard(ADDED)
        copy = self.copies[ADDED] = Copied()
        copy.lost_scn = self.served.server.database.current_scn()
        with psycopg.connect(self.target, autocommit=True) as connection:
            if connection.execute("SELECT to_regclass('app.x')").fetchone() != (None,):
                connection.execute("TRUNCATE app.x")

    def pause(self) -> None:
        name = self.rng.choice(LISTED)
        self.command(f"pause {name}", lambda: pause(self.config, table=[f"APP.{name}"]))

    def resume(self) -> None:
        name = self.rng.choice(LISTED)
        try:
            self.command(f"resume {name}", lambda: resume(self.config, table=[f"APP.{name}"]))
        except typer.Exit as ended:
            self.say(f"    exit {ended.exit_code}")

    def run(self) -> None:
        self.command("run", lambda: self._run())

    def _run(self) -> None:
        run_appliance(load_config(self.config), once=True, apply=True)

    # --- the other tool ---

    def read(self) -> None:
        name = self.rng.choice(list(CREATED))
        copy = self.copies[name]
        if copy.scn <= copy.lost_scn or copy.scn == copy.rows_scn:
            return
        self.read_table(name)

    def read_table(self, name: str) -> None:
        copy = self.copies[name]
        where = f" WHERE {KEPT[name]}" if name in KEPT else ""
        with self._connect() as connection:
            cursor = connection.cursor()
            try:
                cursor.execute(f"SELECT * FROM {name} AS OF SCN {copy.scn}{where}")
            except oracledb.Error as error:
                self.say(f"read {name}: {error}")
                return
            names = [one[0] for one in cursor.description]
            rows = [tuple(v.read() if hasattr(v, "read") else v for v in row) for row in cursor]
        with psycopg.connect(self.target) as connection:
            there = {
                one
                for (one,) in connection.execute(
                    "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s)",
                    (MAPPED.get(name, f"app.{name.lower()}"),),
                )
            }
        # A flashback query may show columns that were added later.
        keep = [at for at, one in enumerate(names) if one.lower() in there]
        copy.names = [names[at].lower() for at in keep]
        copy.rows = [tuple(row[at] for at in keep) for row in rows]
        copy.rows_scn = copy.scn
        copy.is_written = False
        self.say(f"read {name}: {len(copy.rows)} rows as of {copy.scn}")

    def write(self) -> None:
        name = self.rng.choice(list(CREATED))
        copy = self.copies[name]
        if copy.scn and copy.rows_scn == copy.scn and not copy.is_written and name not in self.done:
            self.write_table(name, fails=self.rng.random() < 0.2)

    def write_table(self, name: str, *, fails: bool = False) -> None:
        """Empty the table, and write what was read; or a part of it only."""
        copy = self.copies[name]
        target = sql.Identifier(*MAPPED.get(name, f"app.{name.lower()}").split("."))
        rows = copy.rows[: len(copy.rows) // 2] if fails else copy.rows
        with psycopg.connect(self.target, autocommit=True) as connection, connection.transaction():
            connection.execute("SET session_replication_role = replica")
            connection.execute(sql.SQL("TRUNCATE {}").format(target))
            statement = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
                target,
                sql.SQL(", ").join(map(sql.Identifier, copy.names)),
                sql.SQL(", ").join([sql.Placeholder()] * len(copy.names)),
            )
            for row in rows:
                connection.execute(statement, row)
        copy.is_written = not fails
        self.say(f"write {name}: {len(rows)} rows{' of ' + str(len(copy.rows)) if fails else ''}")

    # --- the end ---

    def finish(self) -> None:
        """End everything that is begun; nothing is killed any more."""
        self.kills = False
        for name in LISTED:
            if name in self.done:
                continue
            full = f"APP.{name}"
            self.say(f"-- finish {name}")
            try:
                out = StringIO()
                with redirect_stdout(out):
                    initial_load(self.config, table=[full], begin_copy=True, as_json=True)
                self.told(out.getvalue())
            except OlrPgError as error:
                self.say(f"finish {name}: {error}")
            copy = self.copies[name]
            try:
                if copy.scn and not copy.is_written:
                    if copy.scn > copy.lost_scn and copy.scn != copy.rows_scn:
                        self.read_table(name)
                    if copy.rows_scn == copy.scn:
                        self.write_table(name)
                if copy.is_written:
                    with redirect_stdout(StringIO()):
                        initial_load(self.config, table=[full], end_copy=True)
                    continue
            except (OlrPgError, psycopg.Error) as error:
                self.say(f"finish {name}: {error}")
            self.insist(lambda: initial_load(self.config, table=[full], restart=True))  # noqa: B023
        self.insist(lambda: initial_load(self.config, resume=True))
        self.commit_all()
        self.switch()
        self.say("-- last run")
        for name in LISTED:
            with suppress(OlrPgError, typer.Exit), redirect_stdout(StringIO()):
                resume(self.config, table=[f"APP.{name}"])
        try:
            self._run()
        except OlrPgError as error:
            if error.code != 5010:
                raise
            self.say(str(error))

    def insist(self, act: Callable[[], None]) -> None:
        """Do as errors advise: add a column that the target lacks, or load a table anew."""
        for _ in range(9):
            try:
                with redirect_stdout(StringIO()):
                    act()
            except OlrPgError as error:
                if error.code == 5105:  # `run` was started before any load
                    table = str(error.where["table"])
                    with redirect_stdout(StringIO()):
                        initial_load(self.config, table=[table], anew=True)
                    continue
                if error.code != 5006:
                    raise
                self.say(str(error))
                name = str(error.where["table"]).removeprefix("APP.")
                target = MAPPED.get(name, f"app.{name.lower()}")
                with psycopg.connect(self.target, autocommit=True) as connection:
                    connection.execute(
                        f"ALTER TABLE {target} ADD {error.where['column']} numeric".encode()
                    )
            else:
                return

    def differences(self) -> list[str]:
        """Return what is different at the end, in words."""
        found = []
        for name in sorted(self.listed):
            where = f" WHERE {KEPT[name]}" if name in KEPT else ""
            with self._connect() as connection:
                cursor = connection.cursor()
                cursor.execute(f"SELECT * FROM {name}{where}")
                names = [one[0] for one in cursor.description]
                rows = [tuple(v.read() if hasattr(v, "read") else v for v in row) for row in cursor]
            keep = [at for at, one in enumerate(names) if one != "SECRET"]
            there = [tuple(row[at] for at in keep) for row in rows]
            with psycopg.connect(self.target) as connection:
                stopped = connection.execute(
                    "SELECT code, message FROM olr_pg.error WHERE source_table = %s"
                    " AND resolution = 'stopped'",
                    (f"APP.{name}",),
                ).fetchall()
                if stopped:  # the target may lack columns that were added later
                    if name in self.dropped and stopped[0][0] == 3071:
                        self.say(f"{name} stopped by DROP")
                    else:
                        found.append(f"{name} stopped: {stopped}")
                    continue
                target = sql.Identifier(*MAPPED.get(name, f"app.{name.lower()}").split("."))
                here = connection.execute(
                    sql.SQL("SELECT {} FROM {}").format(
                        sql.SQL(", ").join(sql.Identifier(names[at].lower()) for at in keep), target
                    )
                ).fetchall()
            if ordered(there) != ordered(here):
                found.append(f"{name} differs: {ordered(there)} and {ordered(here)}")
        return found


def history(
    seed: int, folder: Path, target: str, steps: int = 90, *, with_ddl: bool = True
) -> tuple[list[str], list[str]]:
    """Play a history; return what is wrong at the end, and what was done."""
    rng = Random(seed)
    said: list[str] = []
    with served_source(folder, seed % 7 + 1) as served:
        bank = Bank(served, target, rng, said.append)
        acts: dict[Callable[[], None], int] = {
            bank.change: 30, bank.end_transaction: 15, bank.switch: 4, bank.begin: 8, bank.read: 12,
            bank.write: 12, bank.end: 8, bank.load: 1, bank.run: 4, bank.add_begin: 4,
            bank.add_end: 5, bank.remove_added: 1, bank.pause: 2, bank.resume: 2,
            partial(bank.begin, restart=True): 1, partial(bank.load, restart=True): 1,
            partial(bank.begin, anew=True): 1,
            bank.ddl: 4 * with_ddl, bank.forget: 3,
        }  # fmt: skip
        for _ in range(steps):
            (act,) = rng.choices(list(acts), list(acts.values()))
            act()
        bank.finish()
        return bank.differences(), said


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--steps", type=int, default=90)
    options = parser.parse_args()
    logging_setup.configure_logging = lambda *_, **__: None
    vars(copy_task)["HERE_BYTES"] = 1 << 40  # without Spark
    bad = 0
    with own_cluster("fsync = off") as cluster, tempfile.TemporaryDirectory() as place:
        structlog.configure(
            logger_factory=structlog.PrintLoggerFactory((Path(place) / "log").open("w"))
        )
        for seed in range(options.first, options.first + options.count):
            with psycopg.connect(cluster.connect_string, autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE h{seed}".encode())
            target = make_conninfo(cluster.connect_string, dbname=f"h{seed}")
            wrong, said = history(seed, Path(place) / str(seed), target, options.steps)
            bad += bool(wrong)
            sys.stdout.write("\n".join([*(said if wrong else ()), *wrong, f"seed {seed}\n"]))
            sys.stdout.flush()
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
