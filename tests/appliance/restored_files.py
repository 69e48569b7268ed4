"""Files of `context.data` that were restored from different copies, in drawn combinations.

    uv run python -m tests.appliance.restored_files --count 100 --first 1

A live source has DDL between two copies. Each file is from the older or the newer copy, or missing;
the target has everything up to the newer copy. Then a run must bring the missing changes, or end
with OLR-03083. What this error advises must bring the changes.
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
    from collections.abc import Mapping

FILES: Final = (
    *("checkpoint.json", "dictionary.json", "dictionary-changes.jsonl"),
    *("threads.json", "incarnation.json", "applied.json", "created-tables.json"),
)
CHOICES: Final = "older", "newer", "missing"
_ADVISED: Final = "dictionary.json", "dictionary-changes.jsonl"
_TABLES: Final = {
    "A": "(id NUMBER(9) PRIMARY KEY, x NUMBER(9), v VARCHAR2(30))",
    "B": "(id NUMBER(9), x NUMBER(9))",
    "P": "(id NUMBER(9) PRIMARY KEY) PARTITION BY RANGE (id)"
    " (PARTITION p1 VALUES LESS THAN (50), PARTITION p2 VALUES LESS THAN (100))",
}
_NEW: Final = "N"
"""A table that is created between the copies."""


class Restored:
    """A source, its target, and two copies of `context.data`.

    Args:
        postgres: the connection string of a superuser, for a database of its own.
    """

    def __init__(self, served: Served, postgres: str) -> None:
        self._served, self._postgres = served, postgres
        self._folder = served.folder.parent
        self._number = 100
        for name, columns in _TABLES.items():
            served.execute(f"CREATE TABLE {name} {columns}")
        self._start_scn = served.server.database.current_scn()
        self._admin("CREATE DATABASE restored")
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

    def problem(self, states: Mapping[str, str]) -> str:
        """Run with such files, and return what is wrong; empty if nothing is."""
        self._put_back(states)
        self._number += 1
        self._change(
            f"INSERT INTO a VALUES ({self._number}, 2, 'n', 8)",
            f"INSERT INTO b VALUES ({self._number}, 2)",
            f"INSERT INTO p VALUES ({self._number})",
            f"INSERT INTO {_NEW} VALUES ({self._number})",
        )
        try:
            self._run()
        except OlrPgError as error:
            if error.code != Code.DICTIONARY_CHANGES_MISSING:
                return str(error)
            for name in _ADVISED:
                (self._data / name).unlink(missing_ok=True)
            self._run()
        return ", ".join(name for name in (*_TABLES, _NEW) if not self._is_same(name))

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _copy(self, name: str) -> None:
        self._run()
        shutil.copytree(self._data, self._folder / name)
        if name == "newer":
            self._admin("CREATE DATABASE kept TEMPLATE restored")

    def _put_back(self, states: Mapping[str, str]) -> None:
        self._admin("DROP DATABASE restored WITH (FORCE)", "CREATE DATABASE restored TEMPLATE kept")
        for name, state in states.items():
            (self._data / name).unlink(missing_ok=True)
            if state != "missing" and (self._folder / state / name).exists():
                shutil.copy(self._folder / state / name, self._data)

    def _change(self, *statements: str) -> None:
        for statement in statements:
            self._served.execute(statement)
        scn = self._served.server.database.current_scn()
        self._served.execute(f"COMMENT ON TABLE a IS '{scn}'")  # an idle source archives nothing
        wait_until(lambda: self._end_scn() > scn)

    def _end_scn(self) -> int:
        """The SCN up to which the logs reach."""
        logs = (self._served.folder / "logs").iterdir()
        return max(open_log(str(log)).header.next_scn or 0 for log in logs)

    def _run(self) -> None:
        document = document_of(self._served.folder) | {
            "context": {"data": str(self._data)},
            "status": {"enabled": False},
            "target": {"address": "127.0.0.1:0"},
            "apply": {
                "connect-string": make_conninfo(self._postgres, dbname="restored"),
                "tables": ["APP.*"],
                "create-tables": True,
                "start-scn": self._start_scn,
            },
        }
        document.pop("prove", None)
        path = self._folder / "olr-pg.json"
        path.write_text(json.dumps(document), "utf-8")
        run_appliance(load_config(path), once=True, apply=True, translate=step_sql)

    def _is_same(self, name: str) -> bool:
        with (
            oracledb.connect(user="app", password="olr", dsn=self._served.dsn) as oracle,
            psycopg.connect(make_conninfo(self._postgres, dbname="restored")) as target,
        ):
            here = oracle.cursor().execute(f"SELECT * FROM {name}").fetchall()
            there = target.execute(f"SELECT * FROM app.{name.lower()}".encode()).fetchall()
        return _rows(here) == _rows(there)

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
    options = parser.parse_args()
    bad = 0
    with (
        pytest.MonkeyPatch.context() as patch,
        tempfile.TemporaryDirectory() as place,
        own_cluster("fsync = off") as cluster,
        served_source(Path(place) / "source") as served,
    ):
        spark_or_not(patch, None)
        restored = Restored(served, cluster.connect_string)
        for seed in range(options.first, options.first + options.count):
            rng = Random(seed)
            states = {name: rng.choice(CHOICES) for name in FILES}
            problem = restored.problem(states)
            bad += bool(problem)
            sys.stdout.write(f"seed {seed}: {problem or 'right'} {states if problem else ''}\n")
            sys.stdout.flush()
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
