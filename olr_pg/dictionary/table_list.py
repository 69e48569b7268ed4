"""The client's TableList query, run against a snapshot.

Where no Oracle is at hand, the query runs in an in-memory SQLite database that holds the snapshot
as ALL_TABLES, DBA_TABLES and USER_TABLES with the columns OWNER, TABLE_NAME and NAME (the same as
TABLE_NAME, for queries that were written for other views), each with or without the prefix
``SYS.``. USER_TABLES leaves Oracle's own schemas out. DUAL, NVL, Unicode UPPER and LOWER and a
case-sensitive LIKE are as in Oracle.

The query comes from a client over the network: it may only read, and neither its run time nor the
size of its values, nor what is kept of its rows, is unbounded.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING, Final

from olr_pg.dictionary.oracle_schemas import is_oracle_schema
from olr_pg.dictionary.selection import find_tables
from olr_pg.errors import OlrPgError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from olr_pg.dictionary.model import Snapshot, Table

_SqlValue = str | bytes | int | float | None

STEPS_MAX: Final = 20_000_000
"""SQLite instructions that a query may take; reading 100,000 names takes about a million."""

SECONDS_MAX: Final = 10.0

_STEPS_BETWEEN_CHECKS: Final = 1_000
_ALLOWED: Final = frozenset(
    {
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
    }
)
_LIMITS: Final = (
    (sqlite3.SQLITE_LIMIT_LENGTH, 2_000),
    (sqlite3.SQLITE_LIMIT_SQL_LENGTH, 1_000_000),
    (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 500),
    (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 256),
    (sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0),
)
_SCHEMA: Final = """
    PRAGMA case_sensitive_like = ON;
    ATTACH ':memory:' AS SYS;
    CREATE TABLE SYS.ALL_TABLES (OWNER TEXT, TABLE_NAME TEXT, NAME TEXT);
    CREATE TABLE SYS.DBA_TABLES (OWNER TEXT, TABLE_NAME TEXT, NAME TEXT);
    CREATE TABLE SYS.USER_TABLES (OWNER TEXT, TABLE_NAME TEXT, NAME TEXT);
    CREATE TABLE SYS.DUAL (DUMMY TEXT);
    INSERT INTO SYS.DUAL VALUES ('X');
"""


def query_tables(
    snapshot: Snapshot,
    query: str,
    *,
    steps_max: int = STEPS_MAX,
    seconds_max: float = SECONDS_MAX,
) -> tuple[Table, ...]:
    """The tables that a TableList query names, in the query's order, each once.

    Args:
        query: one SELECT of two columns, owner and table name.
        steps_max: SQLite instructions after which the query is stopped.
        seconds_max: run time after which the query is stopped.

    Raises:
        OlrPgError: 3010 not valid, 3011 not two columns, 3012 unknown table, 3013 table that
            cannot be replicated, 3014 no rows, 3015 too slow, 3016 not only reading, 3017 a value
            that is no name.
    """
    names = [(table.owner, table.name) for table in snapshot.tables]
    with closing(_run(names, query, steps_max, seconds_max)) as rows:
        tables = find_tables(snapshot, rows)
    if not tables:
        raise OlrPgError(3014, "it returns no row")
    return tables


def would_name(query: str, owner: str, name: str) -> bool:
    """Whether a TableList query names a table, if there is one of that owner and name.

    True where the query cannot be run here, because it was written for a live Oracle.
    """
    try:
        with closing(_run([(owner, name)], query, STEPS_MAX, SECONDS_MAX)) as rows:
            return (owner, name) in rows
    except OlrPgError:
        return True


def _run(
    names: Sequence[tuple[str, str]], query: str, steps_max: int, seconds_max: float
) -> Generator[tuple[str, str]]:
    """The rows of a query, in a database of the tables of these owners and names.

    One by one: a client's query may have any number of them.
    """
    with closing(_open_catalogue(names)) as connection:
        connection.set_authorizer(_authorize)
        connection.set_progress_handler(_limiter(steps_max, seconds_max), _STEPS_BETWEEN_CHECKS)
        try:
            yield from _rows(connection, query)
        except (sqlite3.Error, sqlite3.Warning, UnicodeEncodeError) as error:
            raise _coded(error) from error


def _open_catalogue(names: Sequence[tuple[str, str]]) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(_SCHEMA)
    rows = [(owner, name, name) for owner, name in names]
    connection.execute("BEGIN")
    for view in ("ALL_TABLES", "DBA_TABLES"):
        connection.executemany(f"INSERT INTO SYS.{view} VALUES (?, ?, ?)", rows)  # noqa: S608 - constant
    connection.executemany(
        "INSERT INTO SYS.USER_TABLES VALUES (?, ?, ?)",
        [row for row in rows if not is_oracle_schema(row[0])],
    )
    connection.execute("COMMIT")
    connection.create_function("NVL", 2, _nvl, deterministic=True)
    connection.create_function("UPPER", 1, _upper, deterministic=True)
    connection.create_function("LOWER", 1, _lower, deterministic=True)
    for limit, value in _LIMITS:
        connection.setlimit(limit, value)
    return connection


def _rows(connection: sqlite3.Connection, query: str) -> Iterator[tuple[str, str]]:
    if "\0" in query:
        raise OlrPgError(3010, "it holds a NUL character")
    cursor = connection.execute(query)
    width = len(cursor.description or ())
    if width != 2:
        raise OlrPgError(3011, f"it returns {width} columns" if width else "it is no query")
    for number, (owner, name) in enumerate(cursor, 1):
        if not isinstance(owner, str) or not isinstance(name, str):
            raise OlrPgError(3017, f"found {owner!r} and {name!r}", row=number)
        yield owner, name


def _authorize(
    action: int, _1: str | None, _2: str | None, _3: str | None, _4: str | None, /
) -> int:
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY


def _limiter(steps_max: int, seconds_max: float) -> Callable[[], int]:
    """A progress handler that stops the query at either limit (a non-zero return interrupts)."""
    deadline = time.monotonic() + seconds_max
    checks_left = max(steps_max // _STEPS_BETWEEN_CHECKS, 1)

    def check() -> int:
        nonlocal checks_left
        checks_left -= 1
        return int(checks_left < 0 or time.monotonic() > deadline)

    return check


def _coded(error: Exception) -> OlrPgError:
    name = getattr(error, "sqlite_errorname", "")
    if name == "SQLITE_INTERRUPT":
        return OlrPgError(3015, "it was stopped")
    if name == "SQLITE_AUTH":
        return OlrPgError(3016, str(error))
    return OlrPgError(
        3010,
        f"{error} (the snapshot offers ALL_TABLES, DBA_TABLES and USER_TABLES with OWNER,"
        " TABLE_NAME and NAME)",
    )


def _nvl(value: _SqlValue, default: _SqlValue) -> _SqlValue:
    return default if value is None else value


def _upper(value: _SqlValue) -> _SqlValue:
    return value.upper() if isinstance(value, str) else value


def _lower(value: _SqlValue) -> _SqlValue:
    return value.lower() if isinstance(value, str) else value
