"""Runs the client's TableList query in the source database.

The query comes from a client over the network. It is checked (`plain_query`). It runs as an inline
view in a read-only transaction, so it cannot be anything but a query. Its time and the size of its
result are limited, and it is cancelled if the client disconnects.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.driver.driver_failures import OTHER, PRIVILEGE, TIMEOUT
from olr_pg.oracle.plain_query import check_plain

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
        raise OlrPgError(Code.TABLE_QUERY_INVALID, "it contains a NUL character", action=_ACTION)
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
        raise OlrPgError(Code.TABLE_QUERY_SELECTS_NOTHING, "it returns no row")
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
        raise OlrPgError(Code.TABLE_QUERY_NOT_TWO_COLUMNS, f"it returns {width} columns")
    names: list[tuple[str, str]] = []
    while rows := result.fetchmany(_FETCH_ROWS):
        for row in rows:
            names.append(_name(row, len(names) + 1))
        if len(names) > ROWS_MAX:
            raise OlrPgError(Code.TABLE_QUERY_TOO_SLOW, f"it returns more than {ROWS_MAX} rows")
        # The driver limits the time of each call; this check limits the time of all calls together.
        if time.monotonic() > deadline:
            raise OlrPgError(
                Code.TABLE_QUERY_TOO_SLOW, "it takes longer than `source.query-timeout`"
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
