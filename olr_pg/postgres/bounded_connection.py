"""A connection to PostgreSQL with a time limit for the answer to each statement.

psycopg waits for an answer as long as the socket is open. A silent network keeps a socket open
forever, and TCP's timeouts do not help if a proxy answers for a dead server. So the waiting thread
checks ten times a second whether its statement has exceeded its time limit, and whether another
thread has ended the connection. If so, the thread closes the connection, because it is unknown
whether the server ran the statement.

`with_timeouts` adds timeouts and keepalives to a connection string.

**Poolers.** A connection is refused if it leads through a connection pooler through which olr_pg
must not work. olr_pg sets parameters and takes locks in its PostgreSQL sessions, and relies on
them. A pooler that gives a client another session for each transaction (pgbouncer's pool_mode
``transaction`` or ``statement``) would silently break this in both directions: the applier would
write in sessions where triggers fire, and other applications would get sessions where they do not
(``session_replication_role``). A pooler that gives each client its own session, but passes it on
without a reset (pgbouncer with an empty ``server_reset_query``), also has the second of these
effects: other applications get sessions with changed settings. olr_pg refuses both kinds of poolers
before it sets a parameter. A pooler that gives each client its own session and resets it afterwards
is accepted.

A pooler is detected by process ids: the pooler invents the process id that a client receives when
it connects, but ``pg_backend_pid()`` returns the real one.

The checks need a second client. If each client keeps its own session, perhaps none is free: then
the first client shows whether it keeps its session while the second one waits.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import struct
import time
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from psycopg.abc import PQGen


_PID: Final = "SELECT pg_catalog.pg_backend_pid()"
# Nothing reads this parameter except the check, so it does no harm in another client's session.
_LEFT: Final = """
SELECT pg_catalog.pg_backend_pid(), pg_catalog.current_setting('olr_pg.left', true)
"""
_LEAVE: Final = "SELECT pg_catalog.set_config('olr_pg.left', %s, false)"

_NO_TRANSACTIONS: Final = "not allowed in statement pooling mode"
_WAIT_ENDED: Final = "query_wait_timeout"
"""Texts of pgbouncer. All its errors have the same SQLSTATE, also that of a session that ends."""

_WAIT_SECONDS: Final = 5.0
"""How long the checks wait for a session of the second client."""

_LOOK_SECONDS: Final = 0.1
"""Interval of looking at the first client's session while the second client waits."""

_ROUNDS: Final = 10
"""In a busy pool, other clients can have the session of the first client at the moment at which
the second one asks for a session. So both ask several times.
"""

_SESSIONS_MAX: Final = 20
"""Maximum number of sessions in which the second client leaves a parameter until it gets one of
them again. A pooler can give its sessions in turn.
"""


def refuse_unfit_pooler(connection: psycopg.Connection[Any], session: int) -> None:
    """Check that the pooler in front of the server keeps a session for each client, and resets it
    for the next client.

    Args:
        connection: a new connection that has set nothing.
        session: the process id of the connection's session. Do not pass the process id that the
            client received when the connection was opened.

    Raises:
        OlrPgError: 5029, other clients get the session between the connection's transactions;
            5172, other clients get the session with its settings.
        psycopg.Error: the server cannot be reached.
    """
    code = asyncio.run(_examine(_same_pool(connection), connection, session))
    if code is Code.POOLER_SHARES_SESSIONS:
        raise OlrPgError(code, f"session {session} of the server was given to another client")
    if code is not None:
        raise OlrPgError(
            code, "a client received a session with the parameters of an earlier client"
        )


def _same_pool(connection: psycopg.Connection[Any]) -> str:
    info = connection.info
    own = make_conninfo("", **info.get_parameters())
    return make_conninfo(own, host=info.host, port=info.port, password=info.password or None)


async def _examine(
    connect_string: str, connection: psycopg.Connection[Any], session: int
) -> Code | None:
    deadline = asyncio.get_running_loop().time() + _WAIT_SECONDS
    try:
        if await _shares_sessions(connect_string, connection, session, deadline):
            return Code.POOLER_SHARES_SESSIONS
        if await _keeps_settings(connect_string, deadline):
            return Code.POOLER_KEEPS_SETTINGS
    except _NoSessionError:
        pass
    return None


class _NoSessionError(Exception):
    """Raised if the pooler has no session for the second client."""


@asynccontextmanager
async def _second_client(
    connect_string: str, deadline: float, *, autocommit: bool
) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    other = await psycopg.AsyncConnection.connect(connect_string, autocommit=autocommit)
    # If the query were cancelled, psycopg would wait for the answer of the pooler, which may answer
    # only when a session is free.
    loop = asyncio.get_running_loop()
    ending = loop.call_at(deadline, _shut_down, other.fileno())
    try:
        yield other
    except psycopg.Error as error:
        # The deadline has passed, or the pooler has ended the wait.
        if loop.time() >= deadline or _WAIT_ENDED in str(error):
            raise _NoSessionError from error
        raise
    finally:
        ending.cancel()
        await other.close()


def _shut_down(descriptor: int) -> None:
    with socket.socket(fileno=os.dup(descriptor)) as there, suppress(OSError):
        there.shutdown(socket.SHUT_RDWR)


async def _shares_sessions(
    connect_string: str, connection: psycopg.Connection[Any], session: int, deadline: float
) -> bool:
    try:
        with connection.transaction():
            connection.execute(_PID)
    except psycopg.Error as error:
        if _NO_TRANSACTIONS not in str(error):
            raise
        return True
    async with _second_client(connect_string, deadline, autocommit=False) as other:
        for _ in range(_ROUNDS):
            # Its transaction stays open, so the pooler cannot give its session to the first client.
            asking = asyncio.ensure_future(_pid_of(other))
            while not asking.done():
                await asyncio.wait([asking], timeout=_LOOK_SECONDS)
                if not asking.done() and _pid(connection) != session:
                    _shut_down(other.fileno())
                    await asyncio.wait([asking])
                    return True
            if asking.result() == session or _pid(connection) != session:
                return True
            await other.rollback()
    return False


async def _keeps_settings(connect_string: str, deadline: float) -> bool:
    mark = secrets.token_hex(8)
    marked: set[int] = set()
    while len(marked) < _SESSIONS_MAX:
        async with _second_client(connect_string, deadline, autocommit=True) as other:
            row = await (await other.execute(_LEFT)).fetchone()
            assert row is not None
            pid, left = row
            if left == mark:
                return True
            if pid in marked:
                return False
            marked.add(pid)
            await other.execute(_LEAVE, (mark,))
    return False


def _pid(connection: psycopg.Connection[Any]) -> int:
    row = connection.execute(_PID).fetchone()
    assert row is not None
    if not connection.autocommit:
        connection.commit()
    return int(row[0])


async def _pid_of(connection: psycopg.AsyncConnection[Any]) -> int:
    row = await (await connection.execute(_PID)).fetchone()
    assert row is not None
    return int(row[0])


RV = TypeVar("RV")

_TICK_SECONDS: Final = 0.1
_STYLES: Final = {"DateStyle": "ISO", "IntervalStyle": "postgres"}
"""The styles in which psycopg can read times and intervals. The settings of the role, the database
or the server may name other styles. PostgreSQL reports both when a session begins, so the check
needs no statement.
"""

_SET_SECONDS: Final = 30.0
"""Time limit for reading and setting the parameters of a new session."""

_END_SECONDS: Final = 5.0
"""Time limit for the statement that ends a session behind a pooler."""

_BEGUN: Final = """
SELECT pid, extract(epoch FROM backend_start)::pg_catalog.text,
    pg_catalog.current_setting('search_path')
FROM pg_catalog.pg_stat_activity WHERE pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid()
"""
_END: Final = """
SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity
WHERE pid = %s AND extract(epoch FROM backend_start)::text = %s
"""

_CANCEL_SECONDS: Final = 0.5
"""Time limit for requesting the server to cancel a statement."""

_TCP_INFO: Final[int] = getattr(socket, "TCP_INFO", -1)  # valid only on Linux
_TCP_INFO_BYTES: Final = 136
_TCP_COUNTS: Final = struct.Struct("=120xQQ")
"""Reads tcpi_bytes_acked and tcpi_bytes_received from Linux's `struct tcp_info`."""


class BoundedConnection(psycopg.Connection[Any]):
    """A connection that can be ended while a statement waits for its answer.

    One thread runs the statements; any other thread can call `give_up`.

    Attributes:
        answer_seconds: maximum time to wait for an answer; None for no limit.
        waiting_since: the time at which the thread began to wait for an answer (`time.monotonic`);
            None while it does not wait.
        given_up: the reason why the connection was ended; None if it was not ended.
        serves: the purpose of the running statements, for threads that watch the connection.
        closing: a function that is called once, before the connection is closed.
        defers_keys: whether each transaction checks deferrable constraints only at its end.
        mark: a value that was set in the connection's own session in PostgreSQL; None if none was
            set (`applier.target.connection`).
        pooled: behind a pooler, the process id and the start of the session in PostgreSQL;
            otherwise None.
    """

    answer_seconds: float | None = None
    waiting_since: float | None = None
    given_up: str | None = None
    serves: str = ""
    defers_keys: bool = False
    mark: str | None = None
    pooled: tuple[int, str] | None = None
    closing: Callable[[BoundedConnection], None] | None = None
    _reason: str | None = None
    _cancels = False

    @classmethod
    def connect(cls, *args: Any, **options: Any) -> Self:
        """Connect as psycopg does, unless an unfit pooler is in front of the server. If psycopg
        cannot read the session's styles of times and intervals, set styles that it can read. If the
        `search_path` names a schema before ``pg_catalog``, put ``pg_catalog`` first, so that no
        object replaces a system object.

        Raises:
            OlrPgError: 5029 and 5172, an unfit pooler (`refuse_unfit_pooler`).
            psycopg.Error: the server cannot be reached.
        """
        connection = super().connect(*args, **options)
        try:
            connection._set_session()
        except BaseException:
            connection.close()
            raise
        return connection

    def _set_session(self) -> None:
        self.answer_seconds = _SET_SECONDS
        found = self.cursor(row_factory=tuple_row).execute(_BEGUN).fetchone()
        assert found is not None
        pid = found[0]
        # psycopg returns texts of a database with the encoding SQL_ASCII as bytes.
        began, path = (one.decode() if isinstance(one, bytes) else one for one in found[1:])
        if not self.autocommit:
            self.commit()
        if pid != self.info.backend_pid:
            refuse_unfit_pooler(self, pid)
            self.pooled = pid, began
        wrong = [
            f"SET {name} = '{style}'"
            for name, style in _STYLES.items()
            if not (self.info.parameter_status(name) or style).startswith(style)
        ]
        if "pg_catalog" in path.lower() and not path.lower().startswith("pg_catalog"):
            # A path of the server's configuration or of the options can contain names that SET
            # accepts only in quotation marks, such as $user.
            first = sql.Literal(f"pg_catalog, {path}").as_string(self)
            wrong.append(f"SELECT pg_catalog.set_config('search_path', {first}, false)")
        if wrong:
            self.execute("; ".join(wrong))
        if not self.autocommit:
            self.commit()  # otherwise, a rollback would undo SET
        self.answer_seconds = None

    def give_up(self, reason: str, *, cancel: bool = False) -> None:
        """Close the connection, so that the running statement and all later statements fail.

        Args:
            reason: the message of the psycopg.OperationalError.
            cancel: whether to request the server first to cancel the statement.
        """
        self._cancels = cancel
        self._reason = reason

    def close(self) -> None:
        """Close the connection."""
        closing, self.closing = self.closing, None
        try:
            if closing is not None:
                closing(self)
        finally:
            self._end_pooled_session()
            super().close()

    def _end_pooled_session(self) -> None:
        """End the session in PostgreSQL instead of returning it to the pooler. If somebody has
        changed the pooler's mode since the connection was opened, another application would get the
        session with our settings.
        """
        session, self.pooled = self.pooled, None
        if session is None or self.info.transaction_status != TransactionStatus.IDLE:
            return  # a pooler ends a session whose client leaves in the middle of its work
        self.answer_seconds = _END_SECONDS
        with suppress(psycopg.Error):
            self.execute(_END, session)

    def __exit__(self, *ending: Any) -> None:
        try:
            super().__exit__(*ending)
        finally:
            self.close()  # psycopg does not close a broken connection itself

    @contextmanager
    def transaction(
        self, savepoint_name: str | None = None, force_rollback: bool = False
    ) -> Iterator[psycopg.Transaction]:
        """Begin a transaction, or a savepoint within one, as psycopg does."""
        begins = self.info.transaction_status == TransactionStatus.IDLE
        with super().transaction(savepoint_name, force_rollback) as begun:
            if begins and self.defers_keys:
                self.execute("SET CONSTRAINTS ALL DEFERRED")
            yield begun

    def wait(
        self, gen: PQGen[RV], interval: float = _TICK_SECONDS, timeout: float | None = None
    ) -> RV:
        """Wait as psycopg does, but stop when the connection is ended by `give_up`.

        Raises:
            psycopg.OperationalError: the connection was ended.
        """
        self.waiting_since = time.monotonic()
        try:
            return super().wait(self._bounded(gen), min(interval, _TICK_SECONDS), timeout)
        finally:
            self.waiting_since = None

    def _bounded(self, gen: PQGen[RV]) -> PQGen[RV]:
        began = time.monotonic()
        try:
            if self._reason is not None:
                self._end(self._reason)
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready:
                    self._check(time.monotonic() - began)
                wanted = gen.send(ready)
        except StopIteration as end:
            result: RV = end.value
            return result

    def _check(self, seconds: float) -> None:
        bound = self.answer_seconds
        if self._reason is not None:
            self._end(self._reason)
        elif bound is not None and seconds >= bound:
            self._end(f"PostgreSQL gave no answer for {bound:g} s")

    def _end(self, reason: str) -> None:
        """Close the connection.

        Raises:
            psycopg.OperationalError: always.
        """
        if self.given_up is None:
            self.given_up = reason
            if self._cancels and self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                with suppress(psycopg.Error):
                    self.cancel_safe(timeout=_CANCEL_SECONDS)
            self.pgconn.finish()
        raise psycopg.OperationalError(reason)

    def transported(self) -> tuple[int, int] | None:
        """Return the number of bytes that the server has acknowledged, and the number received from
        it.

        Return None if the system does not report them: for a local socket, or after the connection
        has ended.
        """
        try:
            with socket.socket(fileno=self.fileno()) as there:
                try:
                    found = there.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _TCP_INFO_BYTES)
                finally:
                    there.detach()
        except (OSError, psycopg.Error):
            return None
        return None if len(found) < _TCP_INFO_BYTES else _TCP_COUNTS.unpack(found)


# A server can disappear without closing its connections, for example if its host loses power or a
# firewall forgets the connection. With these settings a client notices this after about a minute.
# Without them, a statement would wait for hours.
_VIGILANCE: Final[dict[str, str | int | None]] = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}


def with_timeouts(connect_string: str, **options: str | int | None) -> str:
    """Add timeouts and keepalives to a connection string, unless it sets them itself.

    Args:
        options: parameters that override the connection string.

    Raises:
        psycopg.ProgrammingError: the connection string is invalid.
    """
    return make_conninfo("", **{**_VIGILANCE, **conninfo_to_dict(connect_string), **options})
