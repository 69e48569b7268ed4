"""Replicates once with each setting of PostgreSQL that a role or a database can have. By hand.

    uv run python -m tests.postgres.every_setting            # all: an hour of one core
    uv run python -m tests.postgres.every_setting DateStyle work_mem

Each setting of ``pg_settings`` that a session may change gets the values that are as far from its
default as possible, by ``ALTER DATABASE … SET``. Then ``olr-pg run --once`` replicates a simulated
database with every type. The rows must be those of a run without the setting, and the exit code 0.
A line is printed for each value that is not so. The exit code is the number of these lines.

Expected lines: ``default_tablespace=pg_global``, ``default_transaction_read_only``, and
``session_preload_libraries`` prevent any work, and time limits of 1 ms end a session before the
applier can set its own (`applier.target.connection`). Each of them ends with an error that names
PostgreSQL's reason.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from tests.postgres.own_cluster import own_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

RUN_SECONDS: Final = 600
SEED: Final = 5
CHOSEN: Final[dict[str, tuple[str, ...]]] = {
    "DateStyle": ("SQL, DMY", "German, YMD"),
    "TimeZone": ("Asia/Kathmandu", "America/St_Johns"),
    "client_encoding": ("LATIN1", "SQL_ASCII", "SJIS"),
    "default_tablespace": ("pg_global",),
    "default_text_search_config": ("simple",),
    "dynamic_library_path": ("/nonexistent",),
    "extra_float_digits": ("-15", "3"),
    "search_path": ("nowhere",),
    "session_preload_libraries": ("nowhere",),
    "timezone_abbreviations": ("India",),
    "commit_delay": ("100000",),
    "work_mem": ("64",),
    "temp_buffers": ("100",),
    "wal_consistency_checking": ("all",),
}
"""Values of settings whose type does not say which values they can have, or would say useless
ones.
"""

_SETTINGS: Final = """
SELECT name, setting, vartype, min_val, max_val, enumvals FROM pg_settings
WHERE context IN ('user', 'superuser') ORDER BY name
"""
_TABLES: Final = "SELECT schemaname, tablename FROM pg_tables WHERE schemaname = 'sim' ORDER BY 2"
_DIGEST: Final = """
SELECT count(*), md5(string_agg(t::text, '\n' ORDER BY t::text COLLATE "C")) FROM {} t
"""


class Setting(NamedTuple):
    """A setting as `pg_settings` describes it."""

    name: str
    value: str
    kind: str
    least: str | None
    most: str | None
    choices: list[str] | None

    def values(self) -> Iterator[str]:
        """Yield the values to replicate with."""
        if self.name in CHOSEN:
            yield from CHOSEN[self.name]
        elif self.kind == "bool":
            yield "off" if self.value == "on" else "on"
        else:
            for one in self.choices or (self.least, self.most):
                if one is not None and one != self.value:
                    yield one


class Lab:
    """A cluster with a database per run, and the simulated database."""

    def __init__(self, connect_string: str, folder: Path) -> None:
        self._connect_string = connect_string
        self._folder = folder
        simulate = ("simulate", "--seed", SEED, "--size", "500KB", "--out", folder / "sim")
        self._command(*simulate).check_returncode()

    def settings(self) -> list[Setting]:
        """Read the settings of the server."""
        with psycopg.connect(self._connect_string) as connection:
            return [Setting(*row) for row in connection.execute(_SETTINGS)]

    def replicate(self, number: int, name: str = "", value: str = "") -> tuple[object, str]:
        """Return the rows of each table after a run with a setting, and the end of its log."""
        database, data = f"setting_{number}", self._folder / f"data{number}"
        target = make_conninfo(self._connect_string, dbname=database)
        with psycopg.connect(self._connect_string, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {database}".encode())
            if name:
                change = sql.SQL("ALTER DATABASE {} SET {} = {}").format(
                    sql.Identifier(database), sql.Identifier(name), sql.Literal(value)
                )
                if name in ("DateStyle", "search_path"):  # lists, not one quoted value
                    text = f"ALTER DATABASE {database} SET {name} = {value}"
                    connection.execute(text.encode())
                else:
                    connection.execute(change)
            done = self._command("run", "--once", "--config", self._config(target, data))
            connection.execute(f"ALTER DATABASE {database} RESET ALL".encode())
            rows = _rows(target)
            connection.execute(f"DROP DATABASE {database} WITH (FORCE)".encode())
        return (done.returncode, rows), done.stderr[-600:]

    def _config(self, target: str, data: Path) -> Path:
        sim = self._folder / "sim"
        document = {
            "context": {"data": str(data)},
            "source": {
                "kind": "offline",
                "dictionary": str(sim / "dictionary.json"),
                "logs": [str(sim / "logs")],
            },
            "apply": {"connect-string": target, "tables": ["SIM.*"], "create-tables": True},
            "target": {"address": "127.0.0.1:0"},
            "status": {"address": "127.0.0.1:0"},
        }
        path = self._folder / "olr-pg.json"
        path.write_text(json.dumps(document))
        return path

    @staticmethod
    def _command(*arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-P", "-m", "olr_pg", *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )


def _rows(target: str) -> list[tuple[object, object]]:
    with psycopg.connect(target, autocommit=True) as connection:
        tables = connection.execute(_TABLES.encode()).fetchall()
        return [
            (name, connection.execute(sql.SQL(_DIGEST).format(sql.Identifier(*name))).fetchone())
            for name in tables
        ]


def say(text: str) -> None:
    """Print at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    """Replicate with each setting; return the number of values with other rows or an error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="settings; default: all")
    names = {name.lower() for name in parser.parse_args().names}
    number = wrong = 0
    with own_cluster() as cluster, tempfile.TemporaryDirectory() as folder:
        lab = Lab(cluster.connect_string, Path(folder))
        expected, log = lab.replicate(number)
        assert expected[0] == 0, log  # type: ignore[index]
        for setting in lab.settings():
            if names and setting.name.lower() not in names:
                continue
            for value in setting.values():
                number += 1
                try:
                    found, log = lab.replicate(number, setting.name, value)
                except psycopg.Error as error:  # the server refuses the value
                    say(f"{setting.name}={value}: not set: {error}")
                    continue
                if found != expected:
                    wrong += 1
                    say(f"{setting.name}={value}: {found}\n{log}")
    say(f"{number} values, {wrong} with other rows or an error")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
