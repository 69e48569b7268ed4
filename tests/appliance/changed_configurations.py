"""Configurations that are changed between runs, while the source goes on, in drawn histories.

    uv run python -m tests.appliance.changed_configurations --count 20 --first 1

Before each run, a live source has drawn changes and DDL, and keys of the configuration can have
other values than before. In the end, with the first configuration again, each table of the target
must be equal to the source, or something must have told that it is not: an error that ended a run,
a stopped table, or a warning that names the table.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

import oracledb
import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from structlog.testing import capture_logs

from olr_pg.appliance.appliance import run_appliance
from olr_pg.capture.logs import open_log
from olr_pg.config.reading import load_config
from olr_pg.errors import Code, OlrPgError
from olr_pg.schema.followed_steps import step_sql
from tests.postgres.own_cluster import own_cluster
from tests.proving.served import Served, document_of, served_source
from tests.simulation.entry import spark_or_not
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_RUNS: Final = 4
_DATABASE: Final = "target"
_TABLES: Final = {
    "A": "(id NUMBER(9) PRIMARY KEY, x NUMBER(9), v VARCHAR2(30))",
    "B": "(id NUMBER(9), x NUMBER(9))",
    "Z": "(id NUMBER(9) PRIMARY KEY, x NUMBER(9))",
    "P": "(id NUMBER(9) PRIMARY KEY, x NUMBER(9)) PARTITION BY RANGE (id)"
    " (PARTITION p1 VALUES LESS THAN (50), PARTITION p2 VALUES LESS THAN (1000000))",
}


def _apply(**keys: Any) -> Callable[[dict[str, Any]], object]:
    named = {key.replace("_", "-"): value for key, value in keys.items()}
    return lambda document: document["apply"].update(named)


def _section(name: str, **keys: Any) -> Callable[[dict[str, Any]], object]:
    named = {key.replace("_", "-"): value for key, value in keys.items()}
    return lambda document: document.setdefault(name, {}).update(named)


def _memory(document: dict[str, Any]) -> None:
    document["context"]["memory"] = {"max-mb": 64}


def _as_list(document: dict[str, Any]) -> None:
    document["target"] = [{"name": "one", "apply": document.pop("apply")}]


CHANGES: Final[Mapping[str, Callable[[dict[str, Any]], object]]] = {
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
    "column filter": _section("filter", columns={"APP.A": ["X"]}),
    "no checkpoint": _section("context", data="moved"),
    "no images": _section("context", bounded_recovery_mb=None),
    "online": _section("source", redo="online"),
    "little memory": _memory,
}


class Changed:
    """A source and a target."""

    def __init__(
        self, served: Served, postgres: str, rng: Random, only: Sequence[str] = ()
    ) -> None:
        self._only = only
        self._served, self._postgres, self._rng = served, postgres, rng
        self._folder = served.folder.parent
        self._ids = iter(range(1, 1_000))
        for name, columns in _TABLES.items():
            served.execute(f"CREATE TABLE {name} {columns}")
        self._names = [*_TABLES]
        self._first_scn = served.server.database.current_scn()
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {_DATABASE} WITH (FORCE)".encode())
            connection.execute(f"CREATE DATABASE {_DATABASE}".encode())
        self.told: list[str] = []

    def run(self) -> tuple[list[str], list[str]]:
        """Run a history; return what was done, and the tables that differ."""
        done = list[str]()
        for number in range(_RUNS + 2):
            statements = self._draw() if number <= _RUNS else []
            names = ["none"]
            if 0 < number < _RUNS:
                names = self._rng.sample([*(self._only or CHANGES)], self._rng.randint(1, 2))
            done += [*statements, f"run with {', '.join(names)}"]
            self._do(statements)
            failed = False
            try:
                self._start([CHANGES[name] for name in names])
            except OlrPgError as error:
                failed = error.code != Code.TABLES_STOPPED
                self.told.append(f"run {number}: {error}")
                done.append(f"-> {str(error)[:300]}")
        if failed:
            return done, []  # the last run has told why
        differing = [name for name in sorted(self._names) if not self._is_same(name)]
        return done, differing

    def _draw(self) -> list[str]:
        found = list[str]()
        for _ in range(self._rng.randint(1, 5)):
            found.append(self._draw_one())
        return found

    def _draw_one(self) -> str:
        rng, names = self._rng, self._names
        name = rng.choice([one for one in names if one != "Z"])
        kind = rng.choice("iiiiiuuddatcnr")
        if kind == "i":
            return f"INSERT INTO {name} (id, x) VALUES ({next(self._ids)}, {rng.randint(0, 9)})"
        if kind == "u":
            return f"UPDATE {name} SET x = x + 10 WHERE id > {rng.randint(0, 20)}"
        if kind == "d":
            return f"DELETE FROM {name} WHERE x = {rng.randint(0, 9)}"
        if kind == "a":
            return f"ALTER TABLE {name} ADD (y{next(self._ids)} NUMBER(9))"
        if kind == "t":
            return f"TRUNCATE TABLE {name}"
        new = [one for one in names if one not in _TABLES]
        free = [one for one in ("N", "M") if one not in names]
        if kind == "r" and new and free:
            names.remove(new[0])
            names.append(free[0])
            return f"ALTER TABLE {new[0]} RENAME TO {free[0]}"
        if kind == "n" and new:
            names.remove(new[0])
            return f"DROP TABLE {new[0]}"
        if kind == "c" and free:
            names.append(free[0])
            return f"CREATE TABLE {free[0]} (id NUMBER(9) PRIMARY KEY, x NUMBER(9))"
        return f"INSERT INTO {name} (id, x) VALUES ({next(self._ids)}, 1)"

    def _do(self, statements: Sequence[str]) -> None:
        for statement in statements:
            self._served.execute(statement)
        scn = self._served.server.database.current_scn()
        # An idle source archives nothing.
        self._served.execute(f"INSERT INTO z (id, x) VALUES ({next(self._ids)}, 1)")
        wait_until(lambda: self._end_scn() > scn)

    def _end_scn(self) -> int:
        logs = (self._served.folder / "logs").glob("[!.]*")
        return max((open_log(str(log)).header.next_scn or 0 for log in logs), default=0)

    def _start(self, changes: Sequence[Callable[[dict[str, Any]], object]]) -> None:
        document = document_of(self._served.folder) | {
            "context": {"data": "data"},
            "status": {"enabled": False},
            "apply": {
                "connect-string": self._place,
                "tables": ["APP.*"],
                "create-tables": True,
                "start-scn": self._first_scn,
            },
        }
        document.pop("prove", None)
        for change in sorted(changes, key=lambda one: one is _as_list):
            change(document)
        data = self._folder / document["context"]["data"]
        document["context"]["data"] = str(data)
        path = self._folder / "olr-pg.json"
        path.write_text(json.dumps(document), "utf-8")
        with capture_logs() as logged:
            try:
                run_appliance(load_config(path), once=True, apply=True, translate=step_sql)
            finally:
                self.told += [
                    f"{line['event']} {line.get('table', '')} {line.get('reason', '')}"
                    f" {line.get('tables', '')}"
                    for line in logged
                    if line["log_level"] in ("warning", "error")
                ]

    @property
    def _place(self) -> str:
        return make_conninfo(self._postgres, dbname=_DATABASE)

    def _is_same(self, table: str) -> bool:
        with (
            oracledb.connect(user="app", password="olr", dsn=self._served.dsn) as oracle,
            psycopg.connect(self._place) as connection,
        ):
            cursor = oracle.cursor()
            here = cursor.execute(f"SELECT * FROM {table}").fetchall()
            columns = [one[0].lower() for one in cursor.description]
            try:
                there = connection.execute(
                    f"SELECT {', '.join(columns)} FROM app.{table.lower()}".encode()
                ).fetchall()
            except psycopg.Error:
                return False
            return _rows(here) == _rows(there)


def _rows(rows: list[Any]) -> list[tuple[str, ...]]:
    return sorted(tuple(map(str, row)) for row in rows)


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--only", action="append", choices=CHANGES, default=[])
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    bad = 0
    with pytest.MonkeyPatch.context() as patch, own_cluster("fsync = off") as cluster:
        spark_or_not(patch, None)
        for seed in range(options.first, options.first + options.count):
            with tempfile.TemporaryDirectory() as place:
                with served_source(Path(place) / "source") as served:
                    rng = Random(seed)
                    changed = Changed(served, cluster.connect_string, rng, options.only)
                    try:
                        done, differing = changed.run()
                    except (oracledb.Error, AssertionError) as error:
                        sys.stdout.write(f"seed {seed}: the stand-in failed: {error}\n")
                        continue
                silent = [
                    name for name in differing if not any(f".{name}" in one for one in changed.told)
                ]
                bad += bool(silent)
                word = (
                    f"SILENT {silent}" if silent else f"told {differing}" if differing else "same"
                )
                sys.stdout.write(f"seed {seed}: {word}\n")
                if differing or options.verbose:
                    sys.stdout.write("".join(f"    {one}\n" for one in done))
                    sys.stdout.write("".join(f"    told: {one[:300]}\n" for one in changed.told))
                sys.stdout.flush()
                shutil.rmtree(place, ignore_errors=True)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
