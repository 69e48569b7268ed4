"""Works with each setting of PostgreSQL that a role or a database can have. By hand.

    uv run python -m tests.postgres.every_setting            # all: half an hour of one core
    uv run python -m tests.postgres.every_setting DateStyle work_mem

Each setting of ``pg_settings`` that a session may change gets the values that are as far from its
default as possible, by ``ALTER ROLE … IN DATABASE … SET``. Then a table with every type is loaded,
replicated in sets and row by row, verified, and repaired (`tests.applier.test_every_way`). The rows
must be those of a role without the setting. A line is printed for each value that is not so. The
exit code is the number of these lines.

`test_every_setting` sets many of them at once, on each run of the tests. It leaves out those of
`PREVENTING`, which prevent any work, with an error that names PostgreSQL's reason.

``OLR_PG_TEST_POSTGRES`` names a server of another version.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from olr_pg.errors import OlrPgError
from tests.applier.conftest import Replication
from tests.applier.test_every_way import Target, write
from tests.postgres.own_cluster import own_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from olr_pg.load.table_data import SourcePartition

CHOSEN: Final[dict[str, tuple[str, ...]]] = {
    "DateStyle": ("SQL, DMY", "German, YMD"),
    "TimeZone": ("Asia/Kathmandu", "America/St_Johns"),
    "client_encoding": ("LATIN1", "SQL_ASCII", "SJIS"),
    "default_tablespace": ("pg_global",),
    "default_text_search_config": ("simple",),
    "dynamic_library_path": ("/nonexistent",),
    "extra_float_digits": ("-15", "3"),
    "max_stack_depth": ("100",),
    "search_path": ("nowhere", "public, pg_catalog", "''"),
    "session_preload_libraries": ("nowhere",),
    "timezone_abbreviations": ("India",),
    "commit_delay": ("100000",),
    "work_mem": ("64",),
    "temp_buffers": ("100",),
    "wal_consistency_checking": ("all",),
    # A limit of this many milliseconds ends no quick statement, but everything that waits.
    "idle_in_transaction_session_timeout": ("1",),
    "idle_session_timeout": ("1000",),
    "statement_timeout": ("1000",),
    "transaction_timeout": ("1000",),
    # Messages of these levels are larger than everything else that the server writes.
    "client_min_messages": ("debug1", "error"),
    "log_min_messages": ("panic",),
    "log_min_error_statement": ("panic",),
}
"""Values of settings whose type does not say which values they can have, or would say useless
ones.
"""

PREVENTING: Final = (
    "default_tablespace",
    "default_transaction_read_only",
    "dynamic_library_path",  # with another client_encoding, whose conversion is in a library
    "session_preload_libraries",
)
"""Settings with which nobody can work."""

_LISTS: Final = ("DateStyle", "search_path")
"""Settings whose value is no single quoted text."""

_SETTINGS: Final = """
SELECT name, setting, vartype, min_val, max_val, enumvals FROM pg_settings
WHERE context IN ('user', 'superuser') AND name !~ '^transaction_(isolation|deferrable|read)'
ORDER BY name
"""
"""Without those that only a transaction can have."""

_WAYS: Final = ("in_set", "single_update")


class Setting(NamedTuple):
    """A setting as `pg_settings` describes it."""

    name: str
    value: str
    kind: str
    least: str | None
    most: str | None
    choices: list[str] | None

    def values(self) -> Iterator[str]:
        """Yield the values to work with."""
        if self.name in CHOSEN:
            yield from CHOSEN[self.name]
        elif self.kind == "bool":
            yield "off" if self.value == "on" else "on"
        else:
            for one in self.choices or (self.least, self.most):
                if one is not None and one != self.value:
                    yield one


def settings_of(server: str) -> list[Setting]:
    """Read the settings of a server."""
    with psycopg.connect(server) as connection:
        return [Setting(*row) for row in connection.execute(_SETTINGS)]


@contextmanager
def stranger(database: str, settings: Sequence[tuple[str, str]]) -> Iterator[str]:
    """The connection string of a role that has these settings in the database.

    Raises:
        psycopg.Error: the server refuses a value.
    """
    name = str(conninfo_to_dict(database)["dbname"])
    role = f"stranger_{name}"
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} SUPERUSER LOGIN PASSWORD 'x'".encode())
        try:
            for setting, value in settings:
                given = value if setting in _LISTS else sql.Literal(value).as_string(connection)
                connection.execute(
                    f'ALTER ROLE {role} IN DATABASE "{name}" SET {setting} = {given}'.encode()
                )
            yield make_conninfo(database, user=role, password="x")
        finally:
            connection.execute(f"REASSIGN OWNED BY {role} TO CURRENT_USER".encode())
            connection.execute(f"DROP ROLE {role}".encode())


def rows_of_each_way(
    database: str, settings: Sequence[tuple[str, str]], part: SourcePartition
) -> dict[str, list[str]]:
    """Work as a role with these settings; return the rows of each way, as its owner sees them."""
    found = dict[str, list[str]]()
    with stranger(database, settings) as string, ExitStack() as stack:
        loaded = Target(string, "loaded", database)
        loaded.load(part)
        found["loaded"] = texts(loaded)
        images = loaded.verify(part)
        for way in _WAYS:
            target = Target(string, way, database)
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            replication = Replication(string, folder)
            stack.callback(replication.close)
            target.replicate(replication)
            found[way] = texts(target)
            target.verify(part)
        repaired = Target(string, "repaired", database)
        repaired.repair(images)
        found["repaired"] = texts(repaired)
    return found


def texts(target: Target) -> list[str]:
    """The rows as text: their bytes contain the OIDs of the database's own types."""
    return [text for text, _bytes in target.rows()]


@contextmanager
def fresh_database(server: str) -> Iterator[str]:
    """A database of one run."""
    name = "every_setting"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())
        connection.execute(f"CREATE DATABASE {name} STRATEGY file_copy".encode())
        yield make_conninfo(server, dbname=name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def say(text: str) -> None:
    """Print at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    """Work with each setting; return the number of values with other rows or an error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="settings; default: all")
    names = {name.lower() for name in parser.parse_args().names}
    number = wrong = 0
    with ExitStack() as stack:
        part = write(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        server = os.environ.get("OLR_PG_TEST_POSTGRES")
        if server is None:
            server = stack.enter_context(own_cluster()).connect_string
        with fresh_database(server) as database:
            expected = rows_of_each_way(database, [], part)
        for setting in settings_of(server):
            if names and setting.name.lower() not in names:
                continue
            for value in setting.values():
                number += 1
                try:
                    with fresh_database(server) as database:
                        found = rows_of_each_way(database, [(setting.name, value)], part)
                    reason = [way for way, rows in found.items() if rows != expected[way]]
                except (psycopg.Error, OlrPgError) as error:
                    reason = [f"{type(error).__name__}: {error}"]
                if reason:
                    wrong += 1
                    say(f"{setting.name}={value}: {', '.join(reason)}")
    say(f"{number} values, {wrong} with other rows or an error")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
