"""PostgreSQL's own full disk: files of tables that have no row yet are links to /dev/full.

What PostgreSQL writes there fails as on a file system without space (ENOSPC, SQLSTATE 53100), and a
table of which nothing can be stored reads as what it is: empty. Nothing has to be mounted.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final, Self

import psycopg
from psycopg import sql

FULL: Final = Path("/dev/full")
NO_SPACE: Final = b"C53100\0"
"""The field of an ErrorResponse that names the SQLSTATE."""

LOCK_MILLISECONDS: Final = 200
GONE_SECONDS: Final = 30

_TABLES: Final = """
SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(%s) AND relkind = 'r'
"""
_FILE: Final = "SELECT pg_relation_size({0}::regclass), pg_relation_filepath({0}::regclass)"
_TERMINATE: Final = """
SELECT array_agg(pid) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE application_name = 'olr_pg applier' AND datname = current_database()
"""


class FullDisk:
    """The disk below the tables of a schema.

    Args:
        postgres: a connection string; the role is a superuser, and the server is of this machine.
    """

    def __init__(self, postgres: str, schema: str) -> None:
        self._postgres = postgres
        self._schema = schema
        self._files: list[Path] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.free()

    @property
    def is_full(self) -> bool:
        return bool(self._files)

    def fill(self) -> bool:
        """Leave no space for the tables that are empty; whether there is such a table.

        The applier's connections are ended, because they may have files open.
        """
        with psycopg.connect(self._postgres) as connection:
            connection.execute(f"SET lock_timeout = {LOCK_MILLISECONDS}")
            (directory,) = connection.execute("SHOW data_directory").fetchone() or ("",)
            tables = connection.execute(_TABLES, (self._schema,)).fetchall()
            files = (self._empty_file(connection, table) for (table,) in tables)
            empty = [Path(directory) / file for file in files if file is not None]
            if empty:
                # Of what was written before, nothing must be left to be synced.
                connection.execute("CHECKPOINT")
                for file in empty:
                    file.rename(_kept(file))
                    file.symlink_to(FULL)
                    self._files.append(file)
                self._end_backends()
        return self.is_full

    def _empty_file(self, connection: psycopg.Connection, table: str) -> str | None:
        """The file of a table without a page, which is locked until the transaction ends."""
        name = sql.Identifier(self._schema, table)
        try:
            with connection.transaction():
                lock = sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE")
                connection.execute(lock.format(name))
        except (psycopg.errors.LockNotAvailable, psycopg.errors.UndefinedTable):
            return None
        # Only now: a TRUNCATE gives it another file.
        query = sql.SQL(_FILE).format(name.as_string(connection))
        size, file = connection.execute(query).fetchone() or (None, None)
        return file if size == 0 else None

    def _end_backends(self) -> None:
        with psycopg.connect(self._postgres, autocommit=True) as connection:
            (ended,) = connection.execute(_TERMINATE).fetchone() or (None,)
            until = time.monotonic() + GONE_SECONDS
            left = "SELECT count(*) FROM pg_stat_activity WHERE pid = ANY(%s)"
            while connection.execute(left, (ended or [],)).fetchone() != (0,):
                assert time.monotonic() < until, f"backends {ended} do not end"
                time.sleep(0.01)

    def free(self) -> None:
        """There is space again."""
        files, self._files = self._files, []
        for file in files:
            _kept(file).replace(file)


def _kept(file: Path) -> Path:
    return file.with_name(file.name + ".kept")
