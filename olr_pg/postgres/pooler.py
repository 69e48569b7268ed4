"""Detects connection poolers through which olr_pg must not work.

olr_pg sets parameters and takes locks in its PostgreSQL sessions, and relies on them. A pooler that
gives a client another session for each transaction (pgbouncer's pool_mode ``transaction`` or
``statement``) would silently break this in both directions: the applier would write in sessions
where triggers fire, and other applications would get sessions where they do not
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
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg.conninfo import make_conninfo

from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

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
        raise OlrPgError(code, "a client received a session with the parameters of an earlier one")


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
