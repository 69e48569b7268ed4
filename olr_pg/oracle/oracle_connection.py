"""Connections to the source database, through SQLAlchemy and python-oracledb."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import oracledb
import sqlalchemy.exc
import structlog
from sqlalchemy import create_engine, event, text
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.oracle.oracledb import OracleDialect_oracledb
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential_jitter

from olr_pg.oracle.driver.bounded_calls import BoundedCalls
from olr_pg.oracle.driver.driver_failures import is_transient, oracle_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection, Engine
    from sqlalchemy.engine.interfaces import IsolationLevel
    from tenacity import RetryCallState

    from olr_pg.config.source_section import OracleSource

CONNECT_SECONDS: Final = 15.0
KEEPALIVE_MINUTES: Final = 1
ATTEMPTS: Final = 4
FIRST_WAIT_SECONDS: Final = 0.1
LAST_WAIT_SECONDS: Final = 3.0

_SESSION: Final = "ALTER SESSION SET NLS_CALENDAR = 'GREGORIAN' NLS_COMP = 'BINARY'"
"""TO_CHAR of dates follows the calendar, comparisons of names follow NLS_COMP (Globalization
Support Guide); both may be set for a whole database."""

_Result = TypeVar("_Result")

_log = structlog.get_logger(__name__)


def open_connection(source: OracleSource, seconds: float | None = None) -> oracledb.Connection:
    """Open one connection of the driver's own, for what SQLAlchemy does not do.

    Args:
        seconds: that the login and each of its calls may take, where that is less than usual.

    Raises:
        oracledb.Error: what the driver reports, or that nobody answers.
    """
    if source.thick_mode:
        library = source.client_library
        oracledb.init_oracle_client(lib_dir=str(library) if library else None)
    calls = BoundedCalls(_connect_arguments(source))
    connection = calls.connect(seconds)
    calls.closed(connection)  # its calls have the driver's bound alone
    _prepare(connection, source, next(iter(source.containers), None), seconds)
    return connection


def _prepare(
    connection: Any, source: OracleSource, container: str | None, seconds: float | None = None
) -> None:
    """Bound the calls of a new session, and let its answers not depend on the database's NLS."""
    bound = source.query_timeout if seconds is None else min(source.query_timeout, seconds)
    connection.call_timeout = int(bound * 1000)
    with connection.cursor() as cursor:
        cursor.execute(_SESSION)
    if container is not None:
        _enter(connection, container)


def _enter(connection: Any, container: str) -> None:
    """Go into a container; names of PDBs are in upper case."""
    with connection.cursor() as cursor:
        name = container.upper().replace('"', "")
        cursor.execute(f'ALTER SESSION SET CONTAINER = "{name}"')


def _connect_arguments(source: OracleSource) -> dict[str, Any]:
    return {
        "user": source.user,
        "password": source.password.get_secret_value(),
        "dsn": source.server,
        "tcp_connect_timeout": CONNECT_SECONDS,
        "expire_time": KEEPALIVE_MINUTES,
    }


class OracleDatabase:
    """The source database; connections are opened when they are needed and checked before use.

    Args:
        source: where it is and who we are.
        container: that connections are in; by default the first one of `source.containers`, else
            that of the service.

    Raises:
        OlrPgError: 7008, thick mode is asked for and the client libraries do not load.

    Attributes:
        query_seconds: that one call of the driver may take.
    """

    def __init__(self, source: OracleSource, container: str | None = None) -> None:
        self.query_seconds = float(source.query_timeout)
        self._calls = BoundedCalls(_connect_arguments(source))
        container = container or next(iter(source.containers), None)
        self._engine = _make_engine(source, container, self._calls)
        self._is_told = False

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()
        self._calls.close()

    def read(
        self, doing: str, work: Callable[[Connection], _Result], *, action: str | None = None
    ) -> _Result:
        """Run `work` in a transaction that cannot change anything; again where that may help.

        Args:
            doing: what for, for messages.
            work: called anew, with another connection, when the connection is lost.
            action: what to do about an error, where the caller knows better than the catalogue.

        Raises:
            OlrPgError: 7001 to 7009, what the driver reports; what `work` raises.
        """
        retrying = Retrying(
            retry=retry_if_exception(is_transient),
            stop=stop_after_attempt(ATTEMPTS),
            wait=wait_exponential_jitter(
                max=LAST_WAIT_SECONDS, jitter=FIRST_WAIT_SECONDS, multiplier=FIRST_WAIT_SECONDS
            ),
            before_sleep=self._report,
            reraise=True,
        )
        result: _Result = retrying(self._read_once, doing, work, action)
        if self._is_told:
            self._is_told = False
            _log.info("Oracle answers again")
        return result

    def _read_once(
        self, doing: str, work: Callable[[Connection], _Result], action: str | None
    ) -> _Result:
        try:
            with (
                self._engine.connect() as connection,
                self._calls.giving_up_silence(connection.connection.dbapi_connection),
            ):
                connection.execute(text("SET TRANSACTION READ ONLY"))
                return work(connection)
        except (sqlalchemy.exc.DBAPIError, oracledb.Error) as error:
            raise oracle_error(error, doing, action=action) from error

    def _report(self, state: RetryCallState) -> None:
        """Tell of an outage once, however often and by whomever it is met until it is over."""
        assert state.outcome is not None
        if not self._is_told:
            self._is_told = True
            _log.warning("Oracle: trying again", reason=str(state.outcome.exception()))


def _make_engine(source: OracleSource, container: str | None, calls: BoundedCalls) -> Engine:
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
            **options,
        )
    except (sqlalchemy.exc.DBAPIError, oracledb.Error) as error:
        raise oracle_error(error, "loading the Oracle client libraries") from error

    def prepare(connection: Any, _record: object) -> None:
        try:
            with calls.giving_up_silence(connection):
                _prepare(connection, source, container)
        except BaseException:
            calls.closed(connection)  # it is in no pool yet, which would say so
            raise

    # Before SQLAlchemy asks the first connection what it wants to know.
    event.listen(engine, "connect", prepare, insert=True)
    event.listen(engine, "close", lambda one, _record: calls.closed(one))
    dialect = engine.dialect
    assert isinstance(dialect, ReadingDialect)
    dialect.calls = calls
    return engine


class ReadingDialect(OracleDialect_oracledb):
    """SQLAlchemy's dialect, but for a question that begins a transaction in the source.

    To learn the isolation level it would ask DBMS_TRANSACTION for a transaction's number, which
    takes a slot of an undo segment, and then V$TRANSACTION, which the account may not read.
    """

    supports_statement_cache = True
    calls: BoundedCalls

    def do_ping(self, dbapi_connection: Any) -> bool:
        """Ask a connection of the pool whether it is there still, before it is used."""
        with self.calls.giving_up_silence(dbapi_connection):
            return super().do_ping(dbapi_connection)

    def get_default_isolation_level(self, dbapi_conn: object) -> IsolationLevel:
        """Return what Oracle's sessions begin with."""
        return "READ COMMITTED"


registry.register("olr_pg.oracledb", __name__, ReadingDialect.__name__)
