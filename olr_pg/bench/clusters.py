"""Local PostgreSQL clusters for the benchmarks. A cluster is created once; each run gets a new
database.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from olr_pg.postgres.embedded import EmbeddedPostgres, start_embedded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from psycopg import Connection

SETTINGS = {
    "wal_level": "logical",
    "max_wal_size": "8GB",
    "shared_buffers": "512MB",
    "checkpoint_timeout": "30min",
    "autovacuum": "off",
}

_COPY_BYTES: Final = 1 << 20
"""Number of bytes read from a file at a time. The pages of the file are in the system's cache."""


class Cluster:
    """A running cluster.

    Attributes:
        last_database: connection string of the newest database.
    """

    def __init__(self, server: EmbeddedPostgres) -> None:
        self._server = server
        self._numbers = count()
        self.last_database = server.connect_string

    @property
    def pid(self) -> int:
        """The process id of the postmaster."""
        pid = self._server.pid
        assert pid is not None
        return pid

    @property
    def connect_string(self) -> str:
        """The connection string of the maintenance database."""
        return self._server.connect_string

    def new_database(self) -> str:
        """Create an empty database, drop the earlier databases, and return the connection string of
        the new database.
        """
        return self.new_databases(1)[0]

    def new_databases(self, number: int) -> list[str]:
        """Create empty databases, drop the earlier databases, and return the connection strings of
        the new databases.
        """
        with psycopg.connect(self.connect_string, autocommit=True) as connection:
            for (name,) in connection.execute(
                "SELECT datname FROM pg_database WHERE datname LIKE 'bench%'"
            ).fetchall():
                connection.execute(
                    sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
                )
            names = [f"bench{next(self._numbers)}" for _ in range(number)]
            for name in names:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        made = [make_conninfo(self.connect_string, dbname=name) for name in names]
        self.last_database = made[-1]
        return made


@contextmanager
def running(folders: Sequence[Path]) -> Iterator[list[Cluster]]:
    """Run clusters in the given folders, with settings for a server with a high load."""
    with ExitStack() as stack:
        clusters = []
        for folder in folders:
            server = start_embedded(folder)
            with psycopg.connect(server.connect_string, autocommit=True) as connection:
                for name, value in SETTINGS.items():
                    connection.execute(
                        sql.SQL("ALTER SYSTEM SET {} = {}").format(
                            sql.Identifier(name), sql.Literal(value)
                        )
                    )
            server.stop()
            server = start_embedded(folder)
            stack.callback(server.stop)
            clusters.append(Cluster(server))
        yield clusters


def copy_to(file: Path, connection: Connection[Any], table: sql.Identifier) -> None:
    """Write the rows of a table to a file, in the format of a binary COPY."""
    query = sql.SQL("COPY {} TO STDOUT (FORMAT BINARY)").format(table)
    with file.open("wb") as out, connection.cursor().copy(query) as copy:
        out.writelines(copy)


def copy_from(file: Path, connection: Connection[Any], table: sql.Identifier) -> int:
    """Copy the rows of a file from `copy_to` into a table; return their number."""
    query = sql.SQL("COPY {} FROM STDIN (FORMAT BINARY)").format(table)
    cursor = connection.cursor()
    buffer = memoryview(bytearray(_COPY_BYTES))
    with file.open("rb", buffering=0) as data, cursor.copy(query) as copy:
        while size := data.readinto(buffer):
            copy.write(buffer[:size])
    return cursor.rowcount
