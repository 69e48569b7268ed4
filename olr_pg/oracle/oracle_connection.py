"""Connections to the source database, through SQLAlchemy and python-oracledb."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

import oracledb
import sqlalchemy.exc
import structlog
from sqlalchemy import create_engine, event, text
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.oracle.oracledb import (
    OracleDialect_oracledb,
    OracleExecutionContext_oracledb,
)
from sqlalchemy.util import LRUCache
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential_jitter

from olr_pg.config.source_section import Standby
from olr_pg.oracle.driver.bounded_calls import BoundedCalls, is_transient, oracle_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sqlalchemy import Connection, Engine
    from sqlalchemy.engine.interfaces import IsolationLevel
    from tenacity import RetryCallState

    from olr_pg.config.source_section import OracleSource, StandbyMode

CONNECT_SECONDS: Final = 15.0
KEEPALIVE_MINUTES: Final = 1
WHOLE_TABLE_SECONDS: Final = 86_400
ATTEMPTS: Final = 4
FIRST_WAIT_SECONDS: Final = 0.1
LAST_WAIT_SECONDS: Final = 3.0

_MODES: Final[dict[StandbyMode, oracledb.AuthMode]] = {
    "SYSDG": oracledb.AuthMode.SYSDGD,
    "SYSBACKUP": oracledb.AuthMode.SYSBKP,
    "SYSDBA": oracledb.AuthMode.SYSDBA,
}
_STANDBY_ACTION: Final = (
    "check `source.standby`: `server`, and whether `user` may log in there with `mode` and"
    " `password`. Run GRANT SYSDG TO the user on the primary, and copy the password file to the"
    " standby (docs/mounted-standby.md). olr_pg connects again by itself"
)

_SESSION: Final = (
    "ALTER SESSION SET NLS_CALENDAR = 'GREGORIAN' NLS_COMP = 'BINARY' QUERY_REWRITE_ENABLED = FALSE"
)
"""TO_CHAR of dates then uses the Gregorian calendar, and names are compared byte by byte. The
defaults of a database can differ (Globalization Support Guide). Rows are read from the table, not
from a materialized view, which may be stale if QUERY_REWRITE_INTEGRITY is STALE_TOLERATED.
"""

_ALL_ROWS: Final = "ALTER SESSION SET ROW ARCHIVAL VISIBILITY = ALL"
"""Without this, queries of a table with ROW ARCHIVAL do not return the rows that are archived
(VLDB and Partitioning Guide, “Using In-Database Archiving”). Redo contains them.
"""

FETCHED_ROWS: Final = 1_000
"""Rows of a query that one round trip returns."""

_COMPILED: Final = LRUCache[Any, Any](500)
"""The compiled statements of all connections. Compiling takes a third of the processor time of the
first queries of a database, and a command connects to it several times.
"""

_FIRST_WITH_ARCHIVAL: Final = 12
_ARCHIVAL_UNKNOWN: Final = "ORA-00406"
"""The error if COMPATIBLE is below 12.0. Then no table can have ROW ARCHIVAL."""

_Result = TypeVar("_Result")

_log = structlog.get_logger(__name__)


def open_connection(source: OracleSource, seconds: float | None = None) -> oracledb.Connection:
    """Open a connection of the driver itself, for work that SQLAlchemy does not support.

    Args:
        seconds: time limit for the login and for each call, if it must be lower than usual.

    Raises:
        oracledb.Error: any error of the driver, also if Oracle does not answer.
    """
    if source.thick_mode:
        library = source.client_library
        oracledb.init_oracle_client(lib_dir=str(library) if library else None)
    calls = BoundedCalls(_connect_arguments(source))
    connection = calls.connect(seconds)
    calls.closed(connection)  # do not watch this connection
    _prepare(connection, source, next(iter(source.containers), None), seconds)
    _show_archived_rows(connection)
    return connection


@contextmanager
def of_whole_table(connection: oracledb.Connection) -> Iterator[None]:
    """While the context is active, let a call take as long as Oracle needs for a whole table: to
    delete its rows, to validate a constraint, or to find a maximum without an index.

    `source.query-timeout` would end such a call each time that it is retried. Keepalives detect a
    lost network (`KEEPALIVE_MINUTES`).
    """
    usual = connection.call_timeout
    connection.call_timeout = WHOLE_TABLE_SECONDS * 1000
    try:
        yield
    finally:
        with suppress(oracledb.Error):  # the connection is lost
            connection.call_timeout = usual


def execute(
    connection: oracledb.Connection,
    statement: str,
    values: Sequence[object] | Mapping[str, object] = (),
) -> list[tuple[Any, ...]]:
    """Execute a statement, and return its rows; none if it is no query."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall()) if cursor.description else []


def _prepare(
    connection: Any, source: OracleSource, container: str | None, seconds: float | None = None
) -> None:
    """Set the time limit of calls, and the NLS settings, so that results do not depend on the
    database's NLS settings. Then enter the container, if one is given.
    """
    bound = source.query_timeout if seconds is None else min(source.query_timeout, seconds)
    connection.call_timeout = int(bound * 1000)
    with connection.cursor() as cursor:
        cursor.execute(_SESSION)
    if container is not None:
        _enter(connection, container)


def _enter(connection: Any, container: str) -> None:
    """Switch the session to a container; names of PDBs are in upper case."""
    with connection.cursor() as cursor:
        name = container.upper().replace('"', "")
        cursor.execute(f'ALTER SESSION SET CONTAINER = "{name}"')


def _show_archived_rows(connection: Any) -> None:
    """Let queries also return rows that are archived in the database."""
    if int(str(connection.version).partition(".")[0]) < _FIRST_WITH_ARCHIVAL:
        return
    try:
        with connection.cursor() as cursor:
            cursor.execute(_ALL_ROWS)
    except oracledb.DatabaseError as error:
        if _ARCHIVAL_UNKNOWN not in str(error):
            raise


def _connect_arguments(login: OracleSource | Standby) -> dict[str, Any]:
    arguments = {
        "user": login.user,
        "password": login.password.get_secret_value(),
        "dsn": login.server,
        "tcp_connect_timeout": CONNECT_SECONDS,
        "expire_time": KEEPALIVE_MINUTES,
    }
    return arguments | ({"mode": _MODES[login.mode]} if isinstance(login, Standby) else {})


class OracleDatabase:
    """The source database; opens connections on demand and checks them before use.

    Args:
        source: the address of the database, and the account. Connections switch to the first of
            its containers; if there are none, connections stay in the container of the service.
        standby: connect to this database instead of the source. A standby can be mounted and not
            open, so only fixed views can be read, and no transaction can begin.

    Raises:
        OlrPgError: 7008, thick mode is configured and the client libraries cannot be loaded.

    Attributes:
        query_seconds: time limit of one call of the driver.
    """

    def __init__(self, source: OracleSource, *, standby: Standby | None = None) -> None:
        self.query_seconds = float(source.query_timeout)
        self._standby = standby
        self._calls = BoundedCalls(_connect_arguments(standby or source))
        self._engine = _make_engine(source, self._calls, reads_rows=standby is None)
        self._is_told = False

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()
        self._calls.close()

    def read(
        self,
        doing: str,
        work: Callable[[Connection], _Result],
        *,
        action: str | None = None,
        attempts: int = ATTEMPTS,
    ) -> _Result:
        """Run `work` in a read-only transaction; retry if the error is transient.

        Args:
            doing: the purpose of `work`, for messages.
            work: the function to run; it is called again with another connection if the connection
                is lost.
            action: the action to recommend in an error; None for the action of the error catalogue.
            attempts: how often `work` is tried.

        Raises:
            OlrPgError: 7001 to 7009, errors of the driver; any error of `work`.
        """
        retrying = Retrying(
            retry=retry_if_exception(is_transient),
            stop=stop_after_attempt(attempts),
            wait=wait_exponential_jitter(
                max=LAST_WAIT_SECONDS, jitter=FIRST_WAIT_SECONDS, multiplier=FIRST_WAIT_SECONDS
            ),
            before_sleep=self._report,
            reraise=True,
        )
        result: _Result = retrying(self._read_once, doing, work, action)
        if self._is_told:
            self._is_told = False
            _log.info("Oracle can be reached again")
        return result

    def _read_once(
        self, doing: str, work: Callable[[Connection], _Result], action: str | None
    ) -> _Result:
        try:
            with (
                self._engine.connect() as connection,
                self._calls.giving_up_silence(connection.connection.dbapi_connection),
            ):
                if self._standby is None:
                    connection.execute(text("SET TRANSACTION READ ONLY"))
                return work(connection)
        except (sqlalchemy.exc.DBAPIError, oracledb.Error) as error:
            if action is None and self._standby is not None:
                action = _STANDBY_ACTION
            raise oracle_error(error, doing, action=action) from error

    def _report(self, state: RetryCallState) -> None:
        """Log an outage once, although several calls notice it; log again only after it is over."""
        assert state.outcome is not None
        if not self._is_told:
            self._is_told = True
            _log.warning(
                "a query to Oracle failed; retrying", reason=str(state.outcome.exception())
            )


def _make_engine(source: OracleSource, calls: BoundedCalls, *, reads_rows: bool) -> Engine:
    # A mounted CDB has no open PDB. The fixed views in its root show the logs.
    container = next(iter(source.containers), None) if reads_rows else None
    options: dict[str, Any] = {}
    if source.thick_mode:
        library = source.client_library
        options["thick_mode"] = {"lib_dir": str(library)} if library else True
    try:
        engine = create_engine(
            "olr_pg+oracledb://",
            creator=calls.connect,
            pool_pre_ping=True,
            pool_size=2,
            max_overflow=2,
            arraysize=FETCHED_ROWS,
            execution_options={"compiled_cache": _COMPILED},
            **options,
        )
    except (sqlalchemy.exc.DBAPIError, oracledb.Error) as error:
        raise oracle_error(error, "loading the Oracle client libraries") from error

    def prepare(connection: Any, _record: object) -> None:
        try:
            with calls.giving_up_silence(connection):
                _prepare(connection, source, container)
                if reads_rows:
                    _show_archived_rows(connection)
        except BaseException:
            # The connection is not in a pool yet, so no event will report that it was closed.
            calls.closed(connection)
            raise

    # `insert=True` makes this handler run before SQLAlchemy's own, so that the first connection is
    # prepared before SQLAlchemy uses it.
    event.listen(engine, "connect", prepare, insert=True)
    event.listen(engine, "close", lambda one, _record: calls.closed(one))
    dialect = engine.dialect
    assert isinstance(dialect, ReadingDialect)
    dialect.calls = calls
    return engine


class _ReadingContext(OracleExecutionContext_oracledb):
    """Executes a statement; its first rows come with the answer to the statement."""

    def create_cursor(self) -> Any:
        """Return a cursor of the driver."""
        cursor: Any = super().create_cursor()  # type: ignore[no-untyped-call]
        cursor.prefetchrows = FETCHED_ROWS
        return cursor


class ReadingDialect(OracleDialect_oracledb):
    """SQLAlchemy's dialect for Oracle, without the query that would start a transaction in the
    source.

    To find the isolation level, SQLAlchemy would ask DBMS_TRANSACTION for a transaction id, which
    allocates a slot in an undo segment. With this id, SQLAlchemy would query V$TRANSACTION, which
    the account may not be allowed to read.

    Two dialects are equal if they compile statements in the same way: SQLAlchemy looks for a
    compiled statement by its dialect.
    """

    supports_statement_cache = True
    execution_ctx_cls = _ReadingContext
    calls: BoundedCalls

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReadingDialect) and (
            (self.server_version_info, self.max_identifier_length)
            == (other.server_version_info, other.max_identifier_length)
        )

    def __hash__(self) -> int:
        # The version is unknown before the first connection, and a hash must not change.
        return hash(ReadingDialect)

    def do_ping(self, dbapi_connection: Any) -> bool:
        """Check that a pooled connection is still alive before it is used."""
        with self.calls.giving_up_silence(dbapi_connection):
            return super().do_ping(dbapi_connection)

    def get_default_isolation_level(self, dbapi_conn: object) -> IsolationLevel:
        """Return the initial isolation level of Oracle's sessions."""
        return "READ COMMITTED"


registry.register("olr_pg.oracledb", __name__, ReadingDialect.__name__)
