"""Files of `context.data` and targets that were restored from different copies, in drawn
combinations.

    uv run python -m tests.appliance.restored_files --count 100 --first 1 --targets 2

A live source has DDL between two copies. Each file is from the older or the newer copy, or missing.
With several targets, each of them is from the older or the newer copy too. Then a run must bring
the missing changes, or end with OLR-03083 or OLR-05024. What this error advises must bring the
changes.
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
    from collections.abc import Mapping, Sequence

SHARED: Final = (
    *("dictionary.json", "dictionary-changes.jsonl"),
    *("threads.json", "incarnation.json", "created-tables.json"),
)
OF_TARGET: Final = "checkpoint.json", "applied.json"
CHOICES: Final = "older", "newer", "missing"
_ADVISED: Final = "dictionary.json", "dictionary-changes.jsonl"
_STEPS_MAX: Final = 4
_TABLES: Final = {
    "A": "(id NUMBER(9) PRIMARY KEY, x NUMBER(9), v VARCHAR2(30))",
    "B": "(id NUMBER(9), x NUMBER(9))",
    "P": "(id NUMBER(9) PRIMARY KEY) PARTITION BY RANGE (id)"
    " (PARTITION p1 VALUES LESS THAN (50), PARTITION p2 VALUES LESS THAN (100))",
}
_NEW: Final = "N"
"""A table that is created between the copies."""


class Restored:
    """A source, its targets, and two copies of `context.data` and of the targets.

    Args:
        postgres: the connection string of a superuser, for databases of its own.
        names: the names of the targets; an empty name if there is only one.
    """

    def __init__(self, served: Served, postgres: str, names: Sequence[str]) -> None:
        self._served, self._postgres, self.names = served, postgres, names
        self._folder = served.folder.parent
        self._number = 100
        for name, columns in _TABLES.items():
            served.execute(f"CREATE TABLE {name} {columns}")
        self._first_scn = served.server.database.current_scn()
        self._starts = dict.fromkeys(names, self._first_scn)
        self._admin(*(f"CREATE DATABASE live{name}" for name in names))
        self._change("INSERT INTO a VALUES (1, 1, 'a')", "INSERT INTO p VALUES (1)")
        self._copy("older")
        self._change(
            *("ALTER TABLE a ADD (w NUMBER(9))", "INSERT INTO a VALUES (2, 1, 'a', 7)"),
            *("TRUNCATE TABLE b", "INSERT INTO b VALUES (2, 2)"),
            *("ALTER TABLE p ADD PARTITION p3 VALUES LESS THAN (1000000)",),
            "INSERT INTO p VALUES (100)",
            f"CREATE TABLE {_NEW} (id NUMBER(9) PRIMARY KEY)",
            f"INSERT INTO {_NEW} VALUES (1)",
        )
        self._copy("newer")

    @property
    def files(self) -> list[str]:
        """The files of which each can be from another copy."""
        places = [f"targets/{name}/" if name else "" for name in self.names]
        return [*SHARED, *(place + file for place in places for file in OF_TARGET)]

    def problem(self, states: Mapping[str, str], databases: Mapping[str, str]) -> str:
        """Run with such files and databases, and return what is wrong; empty if nothing is."""
        self._put_back(states, databases)
        self._number += 1
        self._change(
            f"INSERT INTO a VALUES ({self._number}, 2, 'n', 8)",
            f"INSERT INTO b VALUES ({self._number}, 2)",
            f"INSERT INTO p VALUES ({self._number})",
            f"INSERT INTO {_NEW} VALUES ({self._number})",
        )
        for _ in range(_STEPS_MAX):
            try:
                self._run()
                break
            except OlrPgError as error:
                if not self._follow_advice(error):
                    return str(error)
        else:
            return "the advice leads to the same errors again"
        tables = (*_TABLES, _NEW)
        return ", ".join(
            f"{target}.{table}" for target in self.names for table in tables
            if not self._is_same(target, table)
        )  # fmt: skip

    def _follow_advice(self, error: OlrPgError) -> bool:
        """Do what an error advises, if it is one of the expected ones."""
        if error.code == Code.DICTIONARY_CHANGES_MISSING:
            for name in _ADVISED:
                (self._data / name).unlink(missing_ok=True)
            return True
        if error.code == Code.TARGET_PUT_BACK:
            directory = Path(str(error.where["file"])).parent
            (directory / "checkpoint.json").unlink(missing_ok=True)
            start = error.where["start_scn"]
            assert isinstance(start, int)
            self._starts[directory.name if len(self.names) > 1 else ""] = start
            return True
        return False

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _copy(self, copy: str) -> None:
        self._run()
        shutil.copytree(self._data, self._folder / copy)
        self._admin(*(f"CREATE DATABASE {copy}{one} TEMPLATE live{one}" for one in self.names))

    def _put_back(self, states: Mapping[str, str], databases: Mapping[str, str]) -> None:
        self._starts = dict.fromkeys(self.names, self._first_scn)
        for name, copy in databases.items():
            self._admin(
                f"DROP DATABASE live{name} WITH (FORCE)",
                f"CREATE DATABASE live{name} TEMPLATE {copy}{name}",
            )
        for name, state in states.items():
            (self._data / name).unlink(missing_ok=True)
            if state != "missing" and (self._folder / state / name).exists():
                shutil.copy(self._folder / state / name, self._data / name)

    def _change(self, *statements: str) -> None:
        for statement in statements:
            self._served.execute(statement)
        scn = self._served.server.database.current_scn()
        self._served.execute(f"COMMENT ON TABLE a IS '{scn}'")  # an idle source archives nothing
        wait_until(lambda: self._end_scn() > scn)

    def _end_scn(self) -> int:
        """The SCN up to which the logs reach."""
        logs = (self._served.folder / "logs").glob("[!.]*")
        return max((open_log(str(log)).header.next_scn or 0 for log in logs), default=0)

    def _run(self) -> None:
        document = document_of(self._served.folder) | {
            "context": {"data": str(self._data)},
            "status": {"enabled": False},
        }
        for name in ("prove", "apply"):
            document.pop(name, None)
        if len(self.names) == 1:
            document["apply"] = self._section("")
        else:
            document["target"] = [
                {"name": name, "apply": self._section(name)} for name in self.names
            ]
        path = self._folder / "olr-pg.json"
        path.write_text(json.dumps(document), "utf-8")
        run_appliance(load_config(path), once=True, apply=True, translate=step_sql)

    def _section(self, target: str) -> dict[str, Any]:
        return {
            "connect-string": self._place(target),
            "tables": ["APP.*"],
            "create-tables": True,
            "start-scn": self._starts[target],
        }

    def _place(self, target: str) -> str:
        return make_conninfo(self._postgres, dbname=f"live{target}")

    def _is_same(self, target: str, table: str) -> bool:
        with (
            oracledb.connect(user="app", password="olr", dsn=self._served.dsn) as oracle,
            psycopg.connect(self._place(target)) as connection,
        ):
            here = oracle.cursor().execute(f"SELECT * FROM {table}").fetchall()
            try:
                found = connection.execute(f"SELECT * FROM app.{table.lower()}".encode())
            except psycopg.errors.UndefinedTable:
                return False
            return _rows(here) == _rows(found.fetchall())

    def _admin(self, *statements: str) -> None:
        with psycopg.connect(self._postgres, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())


def _rows(rows: list[Any]) -> list[tuple[str, ...]]:
    return sorted(tuple(map(str, row)) for row in rows)


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--targets", type=int, choices=(1, 2), default=1)
    options = parser.parse_args()
    bad = 0
    with (
        pytest.MonkeyPatch.context() as patch,
        tempfile.TemporaryDirectory() as place,
        own_cluster("fsync = off") as cluster,
        served_source(Path(place) / "source") as served,
    ):
        spark_or_not(patch, None)
        names = [""] if options.targets == 1 else ["one", "two"]
        restored = Restored(served, cluster.connect_string, names)
        for seed in range(options.first, options.first + options.count):
            rng = Random(seed)
            states = {name: rng.choice(CHOICES) for name in restored.files}
            databases = dict.fromkeys(names, "newer")
            if len(names) > 1:
                databases = {name: rng.choice(CHOICES[:2]) for name in names}
                for name, copy in databases.items():
                    if copy == "older":  # only this file shows that a target was restored
                        states[f"targets/{name}/applied.json"] = "newer"
            problem = restored.problem(states, databases)
            bad += bool(problem)
            drawn = f"{states} {databases}" if problem else ""
            sys.stdout.write(f"seed {seed}: {problem or 'right'} {drawn}\n")
            sys.stdout.flush()
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
