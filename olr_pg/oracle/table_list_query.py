"""Runs the client's TableList query in the source database.

The query comes from a client over the network. The server accepts the query only if it is a single
SELECT that calls only known functions. The check reads the text as tokens, so literals, quoted
names and comments can contain anything. The text does not show two cases: a user's function that is
called without brackets, and a view that calls a user's function. The read-only transaction and the
privileges of the account protect against both.

The query runs as an inline view in a read-only transaction, so it cannot be anything but a query.
The time of the query and the size of its result are limited. The query is cancelled if the client
disconnects.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from olr_pg.dictionary.client_queries import END, Token, tokens_of
from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.driver.bounded_calls import OTHER, PRIVILEGE, TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sqlalchemy import Connection

    from olr_pg.oracle.oracle_connection import OracleDatabase

ROWS_MAX: Final = 100_000
NAME_BYTES_MAX: Final = 128
"""Maximum bytes of a name in Oracle."""

_FETCH_ROWS: Final = 1_000
_LOOK_SECONDS: Final = 0.05
"""Interval at which to check whether the client has disconnected."""

_ACTION: Final = (
    "correct the query: one SELECT of owner and table name from DBA_TABLES or ALL_TABLES"
    " (ALL_TABLES contains only the tables that the user may read)"
)


def run_table_list(
    database: OracleDatabase, query: str, is_abandoned: Callable[[], bool] | None = None
) -> list[tuple[str, str]]:
    """Return (owner, table name) from each row of a TableList query, in the order of the rows and
    without duplicates.

    Args:
        is_abandoned: returns whether the client has disconnected; called from another thread.

    Raises:
        OlrPgError: 3010 the query is not valid, 3011 the query does not have two columns, 3014 it
            returns no rows, 3015 it is too slow, returns too many rows or was cancelled, 3016 the
            query is refused, 3017 a value is not a name; 70xx errors of the database.
    """
    text = query.strip().rstrip(";").rstrip()
    if "\0" in text:
        raise OlrPgError(
            Code.TABLE_QUERY_INVALID, "the query contains a NUL character", action=_ACTION
        )
    check_plain(text)
    deadline = time.monotonic() + database.query_seconds
    watch = _Watch(is_abandoned)
    try:
        names = database.read(
            "running the table query",
            lambda connection: _run_watched(connection, text, watch, deadline),
        )
    except OlrPgError as error:
        if watch.has_fired:
            raise OlrPgError(Code.TABLE_QUERY_TOO_SLOW, "the client has disconnected") from error
        raise _coded(error) from error
    if not names:
        raise OlrPgError(Code.TABLE_QUERY_SELECTS_NOTHING, "the query returns no row")
    return list(dict.fromkeys(names))


class _Watch:
    """Cancels a connection's current call if the client has disconnected.

    Attributes:
        has_fired: whether the call was cancelled.
    """

    def __init__(self, is_abandoned: Callable[[], bool] | None) -> None:
        self._is_abandoned = is_abandoned
        self.has_fired = False

    @contextmanager
    def over(self, connection: Connection) -> Iterator[None]:
        """Watch a connection while the context is active."""
        if self._is_abandoned is None:
            yield
            return
        done = threading.Event()
        arguments = connection, self._is_abandoned, done
        watching = threading.Thread(target=self._watch, args=arguments, name="olr-table-list")
        watching.start()
        try:
            yield
        finally:
            done.set()
            watching.join()
            if self.has_fired:
                connection.invalidate()  # a late cancel could reach the next query

    def _watch(
        self, connection: Connection, is_abandoned: Callable[[], bool], done: threading.Event
    ) -> None:
        while not done.wait(_LOOK_SECONDS):
            if is_abandoned():
                self.has_fired = True
                driver: Any = connection.connection.driver_connection
                driver.cancel()
                return


def _run_watched(
    connection: Connection, text: str, watch: _Watch, deadline: float
) -> list[tuple[str, str]]:
    with watch.over(connection):
        return _run(connection, text, watch, deadline)


def _run(
    connection: Connection, text: str, watch: _Watch, deadline: float
) -> list[tuple[str, str]]:
    query = f"SELECT * FROM (\n{text}\n)"  # noqa: S608 - the text is the client's own query
    result = connection.exec_driver_sql(query)
    width = len(result.keys())
    if width != 2:
        raise OlrPgError(Code.TABLE_QUERY_NOT_TWO_COLUMNS, f"the query returns {width} columns")
    names: list[tuple[str, str]] = []
    while rows := result.fetchmany(_FETCH_ROWS):
        for row in rows:
            names.append(_name(row, len(names) + 1))
        if len(names) > ROWS_MAX:
            raise OlrPgError(
                Code.TABLE_QUERY_TOO_SLOW, f"the query returns more than {ROWS_MAX} rows"
            )
        # The driver limits the time of each call; this check limits the time of all calls together.
        if time.monotonic() > deadline:
            raise OlrPgError(
                Code.TABLE_QUERY_TOO_SLOW, "the query takes longer than `source.query-timeout`"
            )
        if watch.has_fired:
            raise OlrPgError(Code.TABLE_QUERY_TOO_SLOW, "the client has disconnected")
    return names


def _name(row: Sequence[Any], number: int) -> tuple[str, str]:
    owner, name = row
    if not isinstance(owner, str) or not isinstance(name, str):
        raise OlrPgError(
            Code.TABLE_QUERY_RETURNS_NO_NAME, f"found {owner!r} and {name!r}", row=number
        )
    if max(len(owner.encode()), len(name.encode())) > NAME_BYTES_MAX:
        raise OlrPgError(
            Code.TABLE_QUERY_RETURNS_NO_NAME,
            f"found a value of more than {NAME_BYTES_MAX} bytes",
            row=number,
        )
    return owner, name


def _coded(error: OlrPgError) -> OlrPgError:
    if error.code == TIMEOUT:
        return OlrPgError(Code.TABLE_QUERY_TOO_SLOW, error.detail)
    if error.code in (OTHER, PRIVILEGE):
        return OlrPgError(Code.TABLE_QUERY_INVALID, error.detail, action=_ACTION)
    return error


_FIRST: Final = ("SELECT", "WITH")

FUNCTIONS: Final = frozenset(
    {
        *("ABS", "ADD_MONTHS", "ASCII", "AVG", "CAST", "CHR", "COALESCE", "CONCAT", "COUNT"),
        *("DECODE", "DENSE_RANK", "EXTRACT", "GREATEST", "INITCAP", "INSTR", "LEAST", "LENGTH"),
        *("LENGTHB", "LISTAGG", "LNNVL", "LOWER", "LPAD", "LTRIM", "MAX", "MIN", "MOD"),
        *("MONTHS_BETWEEN", "NLS_LOWER", "NLS_UPPER", "NULLIF", "NVL", "NVL2", "ORA_HASH", "RANK"),
        *("REGEXP_COUNT", "REGEXP_INSTR", "REGEXP_LIKE", "REGEXP_REPLACE", "REGEXP_SUBSTR"),
        *("REPLACE", "ROUND", "ROW_NUMBER", "RPAD", "RTRIM", "SIGN", "SUBSTR", "SUBSTRB", "SUM"),
        *("SYS_CONTEXT", "TO_CHAR", "TO_DATE", "TO_NUMBER", "TO_TIMESTAMP", "TRANSLATE", "TRIM"),
        *("TRUNC", "UPPER"),
    }
)
"""Oracle's functions that a query can call; their result depends only on their arguments, and they
have no side effects.
"""

_BEFORE_BRACKETS: Final = FUNCTIONS | {
    *("ALL", "AND", "ANY", "AS", "BETWEEN", "BY", "CASE", "CHAR", "DISTINCT", "ELSE", "EXCEPT"),
    *("EXISTS", "FROM", "GROUP", "HAVING", "IN", "INTERSECT", "JOIN", "LATERAL", "LIKE", "MINUS"),
    *("NCHAR", "NOT", "NUMBER", "NVARCHAR2", "ON", "OR", "OVER", "PRIOR", "RAW", "SELECT", "SOME"),
    *("THEN", "TIMESTAMP", "UNION", "UNIQUE", "USING", "VARCHAR2", "WHEN", "WHERE", "WITH"),
}


def check_plain(query: str) -> None:
    """Refuse a query that is not a single SELECT, or that uses locks, database links, sequences or
    unknown functions.

    Args:
        query: the query, without a semicolon at its end.

    Raises:
        OlrPgError: 3010 a literal or a comment is not closed, 3016 the query is refused.
    """
    tokens = tokens_of(query)
    first = next((token for token in tokens if token.text != "("), END)
    if first.word not in _FIRST:
        raise OlrPgError(
            Code.TABLE_QUERY_NOT_READ_ONLY, "the query does not begin with SELECT or WITH"
        )
    depth = 0
    for at, token in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth < 0:
            break
        reason = _reason(tokens, at)
        if reason is not None:
            raise OlrPgError(Code.TABLE_QUERY_NOT_READ_ONLY, reason)
    if depth:
        raise OlrPgError(Code.TABLE_QUERY_NOT_READ_ONLY, "the brackets of the query do not match")


def _reason(tokens: list[Token], at: int) -> str | None:
    """Return the reason why a token is not allowed; None if it is allowed."""
    token = tokens[at]
    before = tokens[at - 1] if at else END
    if token.text == ";":
        return "the query is more than one statement"
    if token.text == "@":
        return "the query reads over a database link"
    if before.word == "FOR" and token.word == "UPDATE":
        return "the query locks rows (FOR UPDATE)"
    if before.word == "WITH" and token.word in ("FUNCTION", "PROCEDURE"):
        return f"the query contains PL/SQL (WITH {token.word})"
    if before.text == "." and token.text.strip('"').upper() in ("NEXTVAL", "CURRVAL"):
        return "the query reads a sequence"
    if token.text == "(" and not _may_open(tokens, at):
        return f"the query calls {before.text}, which is not an allowed function"
    return None


def _may_open(tokens: list[Token], at: int) -> bool:
    """Return whether the opening bracket is allowed: it belongs to no function call, or to the call
    of an allowed function.
    """
    name = tokens[at - 1] if at else END
    before = tokens[at - 2] if at > 1 else END
    if name.kind not in ("word", "quoted"):
        return True
    if [token.text for token in tokens[at + 1 : at + 3]] == ["+", ")"]:
        return True  # outer join in Oracle's syntax
    if before.text != "." and name.word in _BEFORE_BRACKETS:
        return True
    return (before.word == "WITH" or before.text == ",") and _names_columns(tokens, at)


def _names_columns(tokens: list[Token], at: int) -> bool:
    """Return whether the bracket contains the column names of a WITH clause: it contains only
    names, and AS follows it.
    """
    end = next((n for n, token in enumerate(tokens) if n > at and token.text == ")"), len(tokens))
    names = all(
        token.kind in ("word", "quoted") or token.text == "," for token in tokens[at + 1 : end]
    )
    behind = tokens[end + 1 : end + 3]
    return names and [token.text.upper() for token in behind] == ["AS", "("]
