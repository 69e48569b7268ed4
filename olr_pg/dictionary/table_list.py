"""Runs the client's TableList query on a snapshot.

Without Oracle, the query runs in an in-memory SQLite database. The SQLite database has the views
ALL_TABLES, DBA_TABLES and USER_TABLES, each also with the prefix ``SYS.``. The views have the
columns OWNER, TABLE_NAME and NAME. NAME is the same as TABLE_NAME; queries that were written for
other views use it. If there are several containers, OWNER is ``PDB.OWNER``; comparisons, and LIKE,
accept it with and without ``PDB.``. USER_TABLES excludes Oracle's own schemas. DUAL, NVL, Unicode
UPPER and LOWER and a case-sensitive LIKE work as in Oracle.

The query comes from a client over the network. The query can only read, and can call only the
functions in `FUNCTIONS`. A running function cannot be interrupted, so each of them must be fast for
any input. Run time, memory and the size of values are limited, and the query is stopped if the
client disconnects.
"""

from __future__ import annotations

import re
import sqlite3
import time
from contextlib import closing
from functools import cache
from typing import TYPE_CHECKING, Final

from olr_pg.dictionary.containers import ContainerNames
from olr_pg.dictionary.oracle_schemas import is_oracle_schema
from olr_pg.dictionary.selection import find_tables
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Collection,
        Generator,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )

    from olr_pg.dictionary.model import Snapshot, Table

_SqlValue = str | bytes | int | float | None

WITH_REDO: Final = (
    "TEMPORARY = 'N'"
    " AND (TABLESPACE_NAME IS NOT NULL OR PARTITIONED = 'YES' OR IOT_TYPE IS NOT NULL)"
)
"""The condition for tables whose rows are in the redo. The condition leaves out temporary tables,
and external tables, which have no TABLESPACE_NAME. A partitioned or index-organised table may also
have no TABLESPACE_NAME, so the condition includes such tables explicitly (Oracle Database
Reference, DBA_TABLES).

All tables of a snapshot have their rows in the redo, so a query on a snapshot runs without this
condition. The snapshot does not contain its columns. A query that uses them otherwise is refused:
with assumed values, it would select other tables than in Oracle.
"""

STEPS_MAX: Final = 20_000_000
"""Maximum number of SQLite instructions of a query; reading 100,000 names takes about a million."""

SECONDS_MAX: Final = 10.0

MEMORY_BYTES: Final = 256 << 20
"""Memory limit of SQLite in this process, which uses SQLite only for these queries. A dictionary of
500,000 tables takes 170 MiB.
"""

FUNCTIONS: Final = frozenset(
    {
        *("abs", "avg", "coalesce", "count", "ifnull", "instr", "length", "like", "lower"),
        *("ltrim", "max", "min", "nullif", "nvl", "replace", "round", "rtrim", "substr"),
        *("substring", "sum", "trim", "upper"),
    }
)
"""The functions that a query can call. A query cannot call functions that make large values from
small ones (``printf``, ``zeroblob``, ``hex``, ``group_concat``), parsers (``json_…``), and
functions that are of no use for names.
"""

_NAMED_STEPS_MAX: Final = 2_000_000
_NAMED_SECONDS_MAX: Final = 1.0
"""Time limit for a query about a single table (`would_name`), which runs while redo is decoded."""

_STEPS_BETWEEN_CHECKS: Final = 200
_ALLOWED: Final = frozenset(
    {
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
    }
)
_PATTERN_MAX: Final = 256
_LIMITS: Final = (
    (sqlite3.SQLITE_LIMIT_LENGTH, 2_000),
    (sqlite3.SQLITE_LIMIT_SQL_LENGTH, 1_000_000),
    (sqlite3.SQLITE_LIMIT_COLUMN, 200),
    (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 500),
    (sqlite3.SQLITE_LIMIT_FUNCTION_ARG, 16),
    (sqlite3.SQLITE_LIMIT_VDBE_OP, 5_000_000),
    (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, _PATTERN_MAX),
    (sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0),
)
_REFUSED: Final = re.compile(r"^not authorized to use function:")
_SCHEMA: Final = """
    PRAGMA temp_store = MEMORY;
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
    with_refused: bool = False,
    is_abandoned: Callable[[], bool] | None = None,
    steps_max: int = STEPS_MAX,
    seconds_max: float = SECONDS_MAX,
) -> tuple[Table, ...]:
    """Return the tables that a TableList query selects, in the query's order, each once.

    Args:
        query: one SELECT of two columns, owner and table name.
        with_refused: as for `find_tables`.
        is_abandoned: returns whether the client has disconnected; called repeatedly.
        steps_max: SQLite instructions after which the query is stopped.
        seconds_max: run time after which the query is stopped.

    Raises:
        OlrPgError: 3010 the query is invalid, 3011 it does not have two columns, 3012 a table is
            unknown, 3013 a table cannot be replicated, 3014 the query returns no rows, 3015 it
            takes too much time or memory, or the client has disconnected, 3016 it does more than
            read, or calls a disallowed function, 3017 a value is not a name.
    """
    names = [
        (container.spellings(table.source_owner)[-1], table.name)
        for member in snapshot.containers
        for container in [ContainerNames.of(member)]
        for table in member.tables
    ]
    watch = _Watch(steps_max, seconds_max, is_abandoned)
    with closing(_run(names, query, watch, snapshot.database.containers)) as rows:
        tables = find_tables(snapshot, rows, with_refused=with_refused)
    if not tables:
        raise OlrPgError(Code.TABLE_QUERY_SELECTS_NOTHING, "the query returns no row")
    return tables


def names_in_containers(
    known: Mapping[str, Collection[tuple[str, str]]],
    query: str,
    is_abandoned: Callable[[], bool] | None = None,
) -> list[tuple[str, str]]:
    """Return the tables that a TableList query on several containers selects, each once.

    Args:
        known: (owner, name) of all tables, by name of the container.
        is_abandoned: as for `query_tables`.

    Returns:
        (``PDB.OWNER``, name) of each table.

    Raises:
        OlrPgError: 3010 to 3017, as for `query_tables`.
    """
    names = [(f"{one}.{owner}", name) for one, tables in known.items() for owner, name in tables]
    there, found = set(names), dict[tuple[str, str], None]()
    watch = _Watch(STEPS_MAX, SECONDS_MAX, is_abandoned)
    with closing(_run(names, query, watch, tuple(known))) as rows:
        for owner, name in rows:
            fitting = _fitting(owner, name, there, known)
            if not fitting:
                full_name = f"{owner}.{name}"
                raise OlrPgError(Code.TABLE_UNKNOWN, f"there is no {full_name}", table=full_name)
            found.update(dict.fromkeys(fitting))
    if not found:
        raise OlrPgError(Code.TABLE_QUERY_SELECTS_NOTHING, "the query returns no row")
    return list(found)


def selected_names(
    known: Sequence[tuple[str, str]], query: str, containers: Sequence[str] = ()
) -> list[tuple[str, str]]:
    """Return those of the known tables that a TableList query selects, each once; none if only
    Oracle can run the query.

    Args:
        known: (owner, name); with several containers, owners are ``PDB.OWNER``.
        containers: the names of the containers, if there are several.
    """
    there, found = set(known), dict[tuple[str, str], None]()
    try:
        with closing(_run(known, query, _Watch(STEPS_MAX, SECONDS_MAX), containers)) as rows:
            for owner, name in rows:
                found.update(dict.fromkeys(_fitting(owner, name, there, containers)))
    except OlrPgError:
        return []
    return list(found)


def _fitting(
    owner: str, name: str, there: Collection[tuple[str, str]], containers: Iterable[str]
) -> list[tuple[str, str]]:
    """Return the known tables that a row of a query names. A row without a container names the
    tables of all containers.
    """
    places = [(owner, name), *((f"{one}.{owner}", name) for one in containers)]
    return [place for place in places if place in there]


def would_name(query: str, owner: str, name: str) -> bool | None:
    """Return whether a TableList query would select a table of that owner and name.

    Return None if the query fails in SQLite because it was written for a live Oracle, or if the
    query takes too long.
    """
    watch = _Watch(_NAMED_STEPS_MAX, _NAMED_SECONDS_MAX)
    try:
        with closing(_run([(owner, name)], query, watch)) as rows:
            return (owner, name) in rows
    except OlrPgError:
        return None


class _Watch:
    """Stops a query at its limits, and if the client disconnects.

    SQLite calls `progress` between the instructions of a running query. While SQLite compiles a
    query, it calls only `authorize`, for each SELECT, column and function.

    Attributes:
        reason: why the query was stopped or refused; None if it was not.
    """

    def __init__(
        self,
        steps_max: int,
        seconds_max: float,
        is_abandoned: Callable[[], bool] | None = None,
    ) -> None:
        self._deadline = time.monotonic() + seconds_max
        self._seconds = seconds_max
        self._checks_left = max(steps_max // _STEPS_BETWEEN_CHECKS, 1)
        self._is_abandoned = is_abandoned
        self.reason: str | None = None

    def progress(self) -> int:
        """Check the limits while a query runs. A result other than 0 makes SQLite stop the
        query.
        """
        self._checks_left -= 1
        if self._checks_left < 0:
            self.reason = "the query needed too many steps"
        return int(self._is_over())

    def authorize(
        self, action: int, _1: str | None, name: str | None, _3: str | None, _4: str | None, /
    ) -> int:
        """Allow or deny an action of a query while SQLite compiles it."""
        if self._is_over():
            return sqlite3.SQLITE_DENY
        if action not in _ALLOWED:
            return sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_FUNCTION and (name or "").lower() not in FUNCTIONS:
            return sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK

    def _is_over(self) -> bool:
        if self.reason is None:
            if time.monotonic() > self._deadline:
                self.reason = f"the query has taken more than {self._seconds:g} s"
            elif self._is_abandoned is not None and self._is_abandoned():
                self.reason = "the client has disconnected"
        return self.reason is not None


def _run(
    names: Sequence[tuple[str, str]], query: str, watch: _Watch, containers: Sequence[str] = ()
) -> Generator[tuple[str, str]]:
    """Run a query in a database whose views contain these (owner, name) pairs; yield its rows.

    Rows are yielded one by one, because a client's query can return any number of rows.
    """
    with closing(_open_catalogue(names, containers)) as connection:
        connection.set_authorizer(watch.authorize)
        connection.set_progress_handler(watch.progress, _STEPS_BETWEEN_CHECKS)
        try:
            yield from _rows(connection, query.replace(WITH_REDO, "TRUE"))
        except (sqlite3.Error, sqlite3.Warning, UnicodeEncodeError, MemoryError) as error:
            raise _coded(error, watch.reason) from error


def _open_catalogue(
    names: Sequence[tuple[str, str]], containers: Sequence[str]
) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    spellings = _Spellings(containers)
    connection.create_collation("OWNERS", spellings.compare)
    connection.execute(f"PRAGMA hard_heap_limit = {MEMORY_BYTES}")
    kind = "TEXT COLLATE OWNERS" if containers else "TEXT"
    connection.executescript(_SCHEMA.replace("OWNER TEXT", f"OWNER {kind}"))
    rows = [(owner, name, name) for owner, name in names]
    connection.execute("BEGIN")
    for view in ("ALL_TABLES", "DBA_TABLES"):
        insert = f"INSERT INTO SYS.{view} VALUES (?, ?, ?)"  # noqa: S608 - constant
        connection.executemany(insert, rows)
    connection.executemany(
        "INSERT INTO SYS.USER_TABLES VALUES (?, ?, ?)",
        [row for row in rows if not is_oracle_schema(spellings.plain(row[0]))],
    )
    connection.execute("COMMIT")
    if containers:
        connection.create_function("LIKE", 2, spellings.like, deterministic=True)
        connection.create_function("LIKE", 3, spellings.like, deterministic=True)
    connection.create_function("NVL", 2, _nvl, deterministic=True)
    connection.create_function("UPPER", 1, _upper, deterministic=True)
    connection.create_function("LOWER", 1, _lower, deterministic=True)
    for limit, value in _LIMITS:
        connection.setlimit(limit, value)
    return connection


class _Spellings:
    """Compares owners that can begin with the name of a container."""

    def __init__(self, containers: Sequence[str]) -> None:
        self._containers = frozenset(containers)

    def plain(self, owner: str) -> str:
        """Return an owner without its container."""
        return self._parts(owner)[0]

    def _parts(self, owner: str) -> tuple[str, str]:
        container, _, rest = owner.partition(".")
        return (rest, container) if rest and container in self._containers else (owner, "")

    def compare(self, one: str, other: str) -> int:
        """Compare two owners. If only one of them includes a container, only the owners are
        compared.

        Owners are compared before containers, because SQLite sorts the values of an IN list, and
        equal values must be adjacent.
        """
        key, other_key = self._parts(one), self._parts(other)
        if key[0] == other_key[0] and not (key[1] and other_key[1]):
            return 0
        return (key > other_key) - (key < other_key)

    def like(self, pattern: _SqlValue, text: _SqlValue, escape: _SqlValue = "") -> bool | None:
        """Return whether a text matches a LIKE pattern, either with or without its container."""
        if pattern is None or text is None:
            return None
        form = _like_form(str(pattern)[:_PATTERN_MAX], str(escape))
        return any(_fits(one, form) for one in {str(text), self.plain(str(text))})


@cache
def _like_form(pattern: str, escape: str) -> tuple[tuple[str, bool], ...]:
    """Return (character, whether it is a wildcard) for each character of a LIKE pattern."""
    chars, form = iter(pattern), list[tuple[str, bool]]()
    for char in chars:
        form.append((next(chars, ""), False) if char == escape else (char, char in "%_"))
    return tuple(form)


def _fits(text: str, form: Sequence[tuple[str, bool]]) -> bool:
    """Return whether a text matches a pattern. The number of steps is at most the product of their
    lengths, also for patterns with many wildcards.
    """
    at = place = 0
    open_at, open_place = -1, 0
    while at < len(text):
        char, is_wild = form[place] if place < len(form) else ("", False)
        if (char, is_wild) == ("%", True):
            open_at, open_place = at, place
            place += 1
        elif char == text[at] or (char, is_wild) == ("_", True):
            at, place = at + 1, place + 1
        elif open_at >= 0:
            open_at += 1
            at, place = open_at, open_place + 1
        else:
            return False
    return all(one == ("%", True) for one in form[place:])


def _rows(connection: sqlite3.Connection, query: str) -> Iterator[tuple[str, str]]:
    if "\0" in query:
        raise OlrPgError(Code.TABLE_QUERY_INVALID, "the query contains a NUL character")
    cursor = connection.execute(query)
    width = len(cursor.description or ())
    if width != 2:
        raise OlrPgError(
            Code.TABLE_QUERY_NOT_TWO_COLUMNS,
            f"the query returns {width} columns" if width else "the text is not a query",
        )
    for number, (owner, name) in enumerate(cursor, 1):
        if not isinstance(owner, str) or not isinstance(name, str):
            raise OlrPgError(
                Code.TABLE_QUERY_RETURNS_NO_NAME, f"found {owner!r} and {name!r}", row=number
            )
        yield owner, name


def _coded(error: Exception, stopped: str | None) -> OlrPgError:
    if stopped is not None:
        return OlrPgError(Code.TABLE_QUERY_TOO_SLOW, stopped)
    if isinstance(error, MemoryError):
        return OlrPgError(
            Code.TABLE_QUERY_TOO_SLOW,
            f"the query has taken more than {MEMORY_BYTES >> 20} MiB of memory",
        )
    # SQLite reports a rejected function as a generic error, and a rejected action as SQLITE_AUTH.
    if getattr(error, "sqlite_errorname", "") == "SQLITE_AUTH" or _REFUSED.search(str(error)):
        return OlrPgError(Code.TABLE_QUERY_NOT_READ_ONLY, str(error))
    return OlrPgError(
        Code.TABLE_QUERY_INVALID,
        f"{error} (the snapshot offers ALL_TABLES, DBA_TABLES and USER_TABLES with OWNER,"
        " TABLE_NAME and NAME)",
    )


def _nvl(value: _SqlValue, default: _SqlValue) -> _SqlValue:
    return default if value is None else value


def _upper(value: _SqlValue) -> _SqlValue:
    return value.upper() if isinstance(value, str) else value


def _lower(value: _SqlValue) -> _SqlValue:
    return value.lower() if isinstance(value, str) else value
