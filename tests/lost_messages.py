"""The connection to PostgreSQL is cut at each message of a command: the target is the same at last.

    uv run python -m tests.lost_messages --command run --step 40
    uv run python -m tests.lost_messages --command "errors retry" --consistency table

A source of a fixed script has tables with and without a key, partitions, LOBs, DDL, TRUNCATE, a
renamed table and a new one. The command works on copies of one database and one `context.data`.
First nothing is lost; this gives the expected rows and ledger, and the number of messages. Then the
connection is cut before the first answer, the second one, … (`--requests`: before a request;
`--step`: not each). If the command ends with an error, it is started again as it was. At the end
the rows of all tables, the ledger with its counts, and the hold must be as expected. In a table
without a key, a change that was applied twice shows as a row more. Exit code 1 if one differs.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.cli.fork_server import ForkServer, fork_server
from tests.postgres.own_cluster import own_cluster
from tests.simulation.proxy import LOOPBACK, Proxy, Trip

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.simulation.proxy import Direction

SCRIPT: Final = """
CREATE TABLE k (id NUMBER(9) PRIMARY KEY, n NUMBER(9));
CREATE TABLE u (a NUMBER(9), b VARCHAR2(30), SUPPLEMENTAL LOG DATA (ALL) COLUMNS);
CREATE TABLE p (id NUMBER(9) PRIMARY KEY, v VARCHAR2(20)) PARTITION BY RANGE (id) \
(PARTITION p1 VALUES LESS THAN (100), PARTITION p2 VALUES LESS THAN (1000));
CREATE TABLE l (id NUMBER(9) PRIMARY KEY, doc CLOB, bin BLOB);
CREATE TABLE r (id NUMBER(9) PRIMARY KEY, v VARCHAR2(20));
INSERT INTO k SELECT LEVEL, LEVEL FROM dual CONNECT BY LEVEL <= 10;
INSERT INTO u SELECT 1, 'dup' FROM dual CONNECT BY LEVEL <= 4;
INSERT INTO r VALUES (1, 'one');
COMMIT;
-- start
INSERT INTO u VALUES (1, 'dup');
UPDATE k SET n = n + 1;
COMMIT;
UPDATE k SET id = 11 - id;
DELETE FROM u WHERE a = 1 AND ROWNUM <= 2;
COMMIT;
INSERT INTO l VALUES (1, RPAD('doc', 9000, 'd'), NULL);
INSERT INTO p VALUES (50, 'fifty');
COMMIT;
ALTER TABLE k ADD (extra VARCHAR2(10) DEFAULT 'new' NOT NULL);
UPDATE k SET extra = 'set' WHERE id < 4;
COMMIT;
ALTER TABLE p ADD PARTITION p3 VALUES LESS THAN (2000);
INSERT INTO p VALUES (1500, 'p3');
COMMIT;
TRUNCATE TABLE r;
INSERT INTO r VALUES (2, 'again');
COMMIT;
ALTER TABLE r RENAME TO rr;
INSERT INTO rr VALUES (3, 'renamed');
COMMIT;
INSERT INTO u SELECT LEVEL, 'many' FROM dual CONNECT BY LEVEL <= 40;
UPDATE l SET bin = HEXTORAW('00ff') WHERE id = 1;
COMMIT;
CREATE TABLE nn (id NUMBER(9) PRIMARY KEY, v VARCHAR2(9));
INSERT INTO nn VALUES (1, 'new');
INSERT INTO u VALUES (7, 'last');
COMMIT;
"""
REFUSING: Final = "ALTER TABLE app.u ADD CONSTRAINT no CHECK (b <> 'many') NOT VALID"
ACCEPTING: Final = "ALTER TABLE app.u DROP CONSTRAINT no"
ATTEMPTS: Final = 4
_TABLES: Final = """
SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace('app') AND relkind IN ('r', 'p')
AND NOT relispartition ORDER BY 1
"""
_LEDGER: Final = """
SELECT source_table, target_table, commit_scn, xids, stopped, inserted, updated, deleted, conflicts,
    (SELECT count(*) FROM olr_pg.held) FROM olr_pg.ledger ORDER BY 1
"""


class Course:
    """A database and a `context.data` from which the command begins each time."""

    def __init__(
        self, folder: Path, commands: ForkServer, cluster: str, consistency: str, command: str
    ) -> None:
        self._folder, self._commands, self._cluster = folder, commands, cluster
        self._consistency, self._command = consistency, shlex.split(command)
        given = conninfo_to_dict(cluster)
        place = str(given["host"]), int(str(given["port"]))
        self.proxy = Proxy("postgres", lambda: place)
        (folder / "script.sql").write_text(SCRIPT, "utf-8")
        simulate = ["simulate", "--seed", "1", "--out", str(folder / "sim")]
        self._run(folder, [*simulate, "--sql", str(folder / "script.sql")], 0)
        self._execute("CREATE DATABASE base")
        (folder / "base").mkdir()
        self._configure("base")
        self._run(folder / "base", ["initial-load"], 0)
        if self._command[0] == "errors":
            self._at("base", REFUSING)
            self._run(folder / "base", ["run", "--once"])
            self._at("base", ACCEPTING)

    def carry_out(self, trip: Trip | None) -> tuple[Sequence[int], Any]:
        """Carry the command out on a copy, again after each error.

        Returns:
            The exit codes; the rows of all tables, and the ledger.
        """
        self.proxy.settle()
        self._execute(
            "DROP DATABASE IF EXISTS copy WITH (FORCE)", "CREATE DATABASE copy TEMPLATE base"
        )
        shutil.rmtree(self._folder / "copy", ignore_errors=True)
        shutil.copytree(self._folder / "base", self._folder / "copy")
        self._configure("copy")
        self.proxy.arm(trip)
        codes = [self._run(self._folder / "copy", self._command)]
        self.proxy.arm(None)
        while codes[-1] != 0 and len(codes) < ATTEMPTS:
            codes.append(self._run(self._folder / "copy", self._command))
        return codes, self._found()

    def _found(self) -> Any:
        with psycopg.connect(make_conninfo(self._cluster, dbname="copy")) as connection:
            names = [name for (name,) in connection.execute(_TABLES).fetchall()]
            rows = {
                name: connection.execute(
                    sql.SQL("SELECT t::text FROM {} t ORDER BY 1").format(
                        sql.Identifier("app", name)
                    )
                ).fetchall()
                for name in names
            }
            return rows, connection.execute(_LEDGER).fetchall()

    def _run(self, folder: Path, arguments: Sequence[str], wanted: int | None = None) -> int:
        config = [] if arguments[0] == "simulate" else ["--config", "olr-pg.json"]
        done = self._commands.run([*arguments, *config], folder, {**os.environ, "NO_COLOR": "1"})
        assert wanted in (None, done.returncode), done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode

    def _configure(self, name: str) -> None:
        through = make_conninfo(
            self._cluster, dbname=name, host=LOOPBACK, port=self.proxy.port, sslmode="disable",
            gssencmode="disable",
        )  # fmt: skip
        sim = self._folder / "sim"
        document = {
            "context": {"data": "data"},
            "source": {
                "kind": "offline",
                "dictionary": str(sim / "dictionary.json"),
                "logs": str(sim / "logs"),
                "tables": str(sim / "tables"),
            },
            "target": {"address": f"{LOOPBACK}:0"},
            "apply": {
                "connect-string": through,
                "tables": ["APP.*"],
                "create-tables": True,
                "workers": 1,
                "batch-ms": 5,
                "batch-changes": 7,
                "answer-seconds": 1,
                "consistency": self._consistency,
            },
            "status": {"enabled": False},
        }
        (self._folder / name / "olr-pg.json").write_text(json.dumps(document), "utf-8")

    def _execute(self, *statements: str) -> None:
        with psycopg.connect(self._cluster, autocommit=True) as connection:
            for one in statements:
                connection.execute(one.encode())

    def _at(self, name: str, statement: str) -> None:
        database = make_conninfo(self._cluster, dbname=name)
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute(statement.encode())


def campaign(course: Course, direction: Direction, step: int) -> int:
    """Cut at each `step`-th message; return how many ends were not as expected."""
    wrong, number = 0, 1
    counting = Trip(direction, lambda _: True, -1, "before", lambda: None, cuts=True)
    codes, expected = course.carry_out(counting)
    assert codes == [0], codes
    while True:
        trip = Trip(direction, lambda _: True, number, "before", lambda: None, cuts=True)
        codes, found = course.carry_out(trip)
        if codes[-1] != 0 or found != expected:
            wrong += 1
            sys.stdout.write(f"cut before {direction} {number}: {codes}\n{found}\nnot {expected}\n")
        if not trip.tripped.is_set():
            sys.stdout.write(f"{number} {direction}, {wrong} wrong\n")
            return wrong
        number += step


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--command", choices=("run", "errors retry"), default="run")
    parser.add_argument("--consistency", choices=("table", "transaction"), default="table")
    parser.add_argument("--requests", action="store_true")
    parser.add_argument("--step", type=int, default=1)
    options = parser.parse_args()
    command = "run --once" if options.command == "run" else options.command
    with (
        tempfile.TemporaryDirectory() as folder,
        own_cluster("fsync = off") as cluster,
        fork_server() as commands,
    ):
        course = Course(
            Path(folder), commands, cluster.connect_string, options.consistency, command
        )
        with course.proxy:
            direction: Direction = "requests" if options.requests else "answers"
            return 1 if campaign(course, direction, options.step) else 0


if __name__ == "__main__":
    sys.exit(main())
