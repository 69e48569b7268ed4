"""Configurations that are changed between runs, while the source goes on, in drawn histories.

    uv run python -m tests.appliance.changed_configurations --count 20 --first 1

Before each run, a live source has drawn changes and DDL, and keys of the configuration can have
other values than before. In the end, with the first configuration again, each table of the target
must be equal to the source, or something must have told that it is not: an error that ended a run,
a stopped table, or a warning that names the table. Filters of columns and rows are left out: after
them, a table must be loaded again (docs/filters.md).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import oracledb
import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from structlog.testing import capture_logs

from olr_pg.appliance.appliance import run_appliance
from olr_pg.capture.logs import open_log
from olr_pg.cli.migration.load import initial_load
from olr_pg.config.reading import load_config
from olr_pg.errors import Code, OlrPgError
from olr_pg.schema.followed_steps import step_sql
from tests.appliance.operated_site import given
from tests.postgres.own_cluster import own_cluster
from tests.proving.served import Served, document_of, served_source
from tests.simulation.entry import spark_or_not
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_RUNS: Final = 4
TABLES: Final = {
    "A": "(id NUMBER(9) PRIMARY KEY, x NUMBER(9), v VARCHAR2(30))",
    "B": "(id NUMBER(9), x NUMBER(9))",
    "Z": "(id NUMBER(9) PRIMARY KEY, x NUMBER(9))",
    "P": "(id NUMBER(9) PRIMARY KEY, x NUMBER(9)) PARTITION BY RANGE (id)"
    " (PARTITION p1 VALUES LESS THAN (50), PARTITION p2 VALUES LESS THAN (1000000))",
}


Change = Callable[[dict[str, Any]], object]


def _apply(**keys: Any) -> Change:
    named = {key.replace("_", "-"): value for key, value in keys.items()}
    return lambda document: document["apply"].update(named)


def _section(name: str, **keys: Any) -> Change:
    named = {key.replace("_", "-"): value for key, value in keys.items()}
    return lambda document: document.setdefault(name, {}).update(named)


def _memory(document: dict[str, Any]) -> None:
    document["context"]["memory"] = {"max-mb": 64}


def _as_list(document: dict[str, Any]) -> None:
    document["target"] = [{"name": "one", "apply": document.pop("apply")}]


CHANGES: Final[Mapping[str, Change]] = {
    "none": lambda _: None,
    "tables without B": _apply(tables=["APP.*", "!APP.B"]),
    "tables without A": _apply(tables=["APP.*", "!APP.A"]),
    "tables by name": _apply(tables=["APP.A", "APP.B", "APP.P", "APP.Z"]),
    "tables without new": _apply(tables=["APP.?", "!APP.N", "!APP.M"]),
    "new tables ignored": _apply(ddl={"new-table": "ignore"}),
    "renames stop": _apply(ddl={"rename-table": "stop"}),
    "drops followed": _apply(ddl={"drop-table": "follow"}),
    "drops ignored": _apply(ddl={"drop-table": "ignore"}),
    "ddl stops": _apply(ddl={"add-column": "stop", "truncate": "stop"}),
    "transactions": _apply(consistency="transaction"),
    "one worker": _apply(workers=1),
    "small batches": _apply(batch_changes=1),
    "another subscription": _apply(subscription="other"),
    "another schema": _apply(schema_mapping={"APP": "app2"}),
    "another table": _apply(table_mapping={"APP.A": "app.aa"}),
    "another column": _apply(columns={"APP.A.V": {"name": "vv"}}),
    "numeric": _apply(types={"integers": "numeric"}),
    "names as in Oracle": _apply(names="exact"),
    "a list of targets": _as_list,
    "no checkpoint": _section("context", data="moved"),
    "no images": _section("context", bounded_recovery_mb=None),
    "online": _section("source", redo="online"),
    "little memory": _memory,
}


class Changed:
    """A live source, and a target whose configuration can be another one in each run.

    Args:
        target: the connection string of an empty database.
        apply: further keys of `apply`; with another `connect-string`, the applier has another role.

    Attributes:
        folder: where the configuration and `context.data` are.
        target: the connection string.
        told: the errors that ended runs, and the warnings.
        start_scn: `apply.start-scn`; None without it.
    """

    def __init__(
        self, served: Served, target: str, apply: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        self._served, self.target, self._apply = served, target, apply
        self.folder = served.folder.parent
        self._beats = 0
        for name, columns in TABLES.items():
            served.execute(f"CREATE TABLE {name} {columns}")
        self.start_scn: int | None = served.server.database.current_scn()
        self.told: list[str] = []

    def run(self, statements: Sequence[str], changes: Sequence[str] = ()) -> OlrPgError | None:
        """Change the source, and run until its end; return the error that ended the run.

        Args:
            changes: keys of `CHANGES`.
        """
        self.execute(statements)
        self.archive()
        with capture_logs() as logged:
            try:
                self._start([CHANGES[name] for name in changes])
            except OlrPgError as error:
                self.told.append(str(error))
                return error
            finally:
                self.told += [
                    f"{line['event']} {line.get('table', '')} {line.get('tables', '')}"
                    for line in logged
                    if line["log_level"] in ("warning", "error")
                ]
        return None

    def archive(self) -> None:
        """Wait until the redo so far is archived."""
        scn = self.current_scn()
        # An idle source archives nothing.
        self._beats += 1
        self._served.execute(f"INSERT INTO z (id, x) VALUES ({self._beats}, 1)")
        wait_until(lambda: self._end_scn() > scn)

    def current_scn(self) -> int:
        """Return the SCN of the source."""
        return self._served.server.database.current_scn()

    def execute(self, statements: Sequence[str]) -> None:
        """Change the source, each statement in a transaction of its own."""
        for statement in statements:
            self._served.execute(statement)

    def session(self) -> oracledb.Connection:
        """Return a session in the source."""
        return oracledb.connect(user="app", password="olr", dsn=self._served.dsn)

    def give(self, *words: str) -> tuple[int, str]:
        """Give a command; return its exit code, and its output on one line."""
        return given(self.written([]), words)

    def load(self, *anew: str) -> None:
        """Load all tables, so that the next run begins with their loads; or tables anew."""
        self.start_scn = None
        initial_load(self.written([]), table=list(anew) or None, anew=bool(anew))

    def _end_scn(self) -> int:
        logs = (self._served.folder / "logs").glob("[!.]*")
        return max((open_log(str(log)).header.next_scn or 0 for log in logs), default=0)

    def _start(self, changes: Sequence[Change]) -> None:
        config = load_config(self.written(changes))
        run_appliance(config, once=True, apply=True, translate=step_sql)

    def written(self, changes: Sequence[Change]) -> Path:
        """Write the configuration, and return its file."""
        document = document_of(self._served.folder) | {
            "context": {"data": "data"},
            "status": {"enabled": False},
            "apply": {
                "connect-string": self.target,
                "tables": ["APP.*"],
                "create-tables": True,
                **self._apply,
            },
        }
        if self.start_scn is not None:
            document["apply"]["start-scn"] = self.start_scn
        document.pop("prove", None)
        for change in sorted(changes, key=lambda one: one is _as_list):
            change(document)
        document["context"]["data"] = str(self.folder / document["context"]["data"])
        path = self.folder / "olr-pg.json"
        path.write_text(json.dumps(document), "utf-8")
        return path

    def is_same(self, table: str) -> bool:
        """Whether a table of the target has the rows of the source."""
        here, there = self.rows(table)
        return here == there

    def rows(self, table: str) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]] | None]:
        """Return a table's rows in the source and in the target; None if they cannot be read."""
        with self.session() as oracle, psycopg.connect(self.target) as connection:
            cursor = oracle.cursor()
            here = cursor.execute(f"SELECT * FROM {table}").fetchall()
            columns = ", ".join(one[0].lower() for one in cursor.description)
            try:
                query = f"SELECT {columns} FROM app.{table.lower()}"
                there = connection.execute(query.encode()).fetchall()
            except psycopg.Error:
                return _rows(here), None
            return _rows(here), _rows(there)

    def silent(self, tables: Iterable[str]) -> list[str]:
        """Return the tables that differ, and of which nothing has told it."""
        return [
            name for name in sorted(tables)
            if not self.is_same(name) and not any(f".{name}" in one for one in self.told)
        ]  # fmt: skip


def _rows(rows: list[Any]) -> list[tuple[str, ...]]:
    return sorted(tuple(map(str, row)) for row in rows)


class Drawn:
    """Statements and configurations of a seed.

    Args:
        kinds: letters of kinds of statements, from which one is drawn.

    Attributes:
        tables: those that exist now.
    """

    def __init__(self, seed: int, only: Sequence[str] = (), kinds: str = "iiiiiuuddatcnr") -> None:
        self._rng, self._only, self._kinds = Random(seed), only, kinds
        self._ids = iter(range(1, 1_000))
        self.tables = [*TABLES]

    def changes(self) -> list[str]:
        """One or two keys of `CHANGES`."""
        return self._rng.sample([*(self._only or CHANGES)], self._rng.randint(1, 2))

    def statements(self) -> list[str]:
        """Up to five statements."""
        return [self._statement() for _ in range(self._rng.randint(1, 5))]

    def _statement(self) -> str:
        rng, tables = self._rng, self.tables
        name = rng.choice([one for one in tables if one != "Z"])
        kind = rng.choice(self._kinds)
        chosen = rng.choice([one for one in tables if one not in ("P", "Z")] or ["P"])
        free = [one for one in ("N", "M", "A", "B") if one not in tables]
        if kind == "u":
            return f"UPDATE {name} SET x = x + 10 WHERE id > {rng.randint(0, 20)}"
        if kind == "d":
            return f"DELETE FROM {name} WHERE x = {rng.randint(0, 9)}"
        if kind == "a":
            return f"ALTER TABLE {name} ADD (y{next(self._ids)} NUMBER(9))"
        if kind == "t":
            return f"TRUNCATE TABLE {name}"
        if kind == "r" and chosen != "P" and free:
            tables.remove(chosen)
            tables.append(free[0])
            return f"ALTER TABLE {chosen} RENAME TO {free[0]}"
        if kind == "n" and chosen != "P":
            tables.remove(chosen)
            return f"DROP TABLE {chosen}"
        if kind == "c" and free:
            tables.append(free[0])
            return f"CREATE TABLE {free[0]} (id NUMBER(9) PRIMARY KEY, x NUMBER(9))"
        return f"INSERT INTO {name} (id, x) VALUES ({next(self._ids)}, {rng.randint(0, 9)})"


def judge(changed: Changed, seed: int, only: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    """Live through a seed; return the tables that differ silently, and what was done."""
    drawn, done = Drawn(seed, only), list[str]()
    error = None
    for number in range(_RUNS + 2):
        statements = drawn.statements() if number <= _RUNS else []
        changes = drawn.changes() if 0 < number < _RUNS else ["none"]
        error = changed.run(statements, changes)
        done += [*statements, f"run with {', '.join(changes)}: {error or 'right'}"]
    if error is not None and error.code != Code.TABLES_STOPPED:
        return [], done  # the last run has told why it ended
    return changed.silent(drawn.tables), done


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--only", action="append", choices=CHANGES, default=[])
    options = parser.parse_args()
    bad = 0
    with pytest.MonkeyPatch.context() as patch, own_cluster("fsync = off") as cluster:
        spark_or_not(patch, None)
        target = make_conninfo(cluster.connect_string, dbname="target")
        for seed in range(options.first, options.first + options.count):
            with psycopg.connect(cluster.connect_string, autocommit=True) as connection:
                connection.execute("DROP DATABASE IF EXISTS target WITH (FORCE)")
                connection.execute("CREATE DATABASE target")
            with (
                tempfile.TemporaryDirectory() as place,
                served_source(Path(place) / "source") as served,
            ):
                changed = Changed(served, target)
                silent, done = judge(changed, seed, options.only)
            bad += bool(silent)
            lines = [f"seed {seed}: {silent or 'right'}"]
            if silent:
                lines += (f"    {one}" for one in (*done, *changed.told))
            sys.stdout.write("\n".join(lines) + "\n")
            sys.stdout.flush()
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
