"""Runs the client's TableList query in the source database.

The query comes from a client over the network. It is checked (`plain_query`) and runs as an inline
view in a read-only transaction, so it can only be a query. Its time and its result are limited, and
it is cancelled if the client disconnects.
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
    " (ALL_TABLES shows what the user may read)"
)


def run_table_list(
    database: OracleDatabase, query: str, is_abandoned: Callable[[], bool] | None = None
) -> list[tuple[str, str]]:
    """Return (owner, table name) from each row of a TableList query, without duplicates, in its
    order.

    Args:
        is_abandoned: tells whether the client has gone; called from another thread.

    Raises:
        OlrPgError: 3010 not valid, 3011 not two columns, 3014 no rows, 3015 too slow, too many rows
            or abandoned, 3016 refused, 3017 a value is no name; 70xx errors of the database.
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
        has_fired: whether it has cancelled the call.
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
                connection.invalidate()  # a late cancel could hit the next query on this connection

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
        # The driver limits each call; this limits all calls together.
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
