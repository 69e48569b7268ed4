"""Detects connection poolers between the applier and PostgreSQL that share sessions.

The applier sets parameters and takes locks in its PostgreSQL sessions, and relies on them. A pooler
that gives a client another session for each transaction (pgbouncer's pool_mode ``transaction`` or
``statement``) would silently break this: triggers would fire, and two appliers could write to one
table. Such a pooler is refused. A pooler that gives each client its own session is accepted.

A pooler is detected by process ids: the pooler invents the process id that a client receives when
it connects, but ``pg_backend_pid()`` returns the real one.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import psycopg

from olr_pg.errors import Code, OlrPgError
from olr_pg.postgres.sqlstates import PROTOCOL_VIOLATION

if TYPE_CHECKING:
    from psycopg import Connection

_PID: Final = "SELECT pg_backend_pid()"
_WAIT_SECONDS: Final = 5.0
"""How long the second client of the check waits for a session. If each client keeps its own
session, perhaps none is free.
"""


def refuse_shared_sessions(connection: Connection[Any], connect_string: str) -> None:
    """Check that the connection keeps its own session in PostgreSQL.

    Args:
        connection: in autocommit mode.
        connect_string: the connect string of the connection.

    Raises:
        OlrPgError: 5029, other clients get the session between the connection's transactions.
    """
    session = _pid(connection)
    if session == connection.info.backend_pid:
        return
    if asyncio.run(_gets(connect_string, session, connection)):
        raise OlrPgError(
            Code.POOLER_SHARES_SESSIONS,
            f"session {session} of the server was given to another client",
        )


def _pid(connection: Connection[Any]) -> int:
    row = connection.execute(_PID).fetchone()
    assert row is not None
    return int(row[0])


async def _gets(connect_string: str, session: int, connection: Connection[Any]) -> bool:
    """Return whether a second client gets the session, or the first client gets another session."""
    try:
        async with asyncio.timeout(_WAIT_SECONDS):
            return await _is_shared(connect_string, session, connection)
    except TimeoutError:
        return False


async def _is_shared(connect_string: str, session: int, connection: Connection[Any]) -> bool:
    other = await psycopg.AsyncConnection.connect(connect_string, autocommit=False)
    try:
        row = await (await other.execute(_PID)).fetchone()
        # The second client's transaction is open, so the pooler cannot give its session to the
        # first client.
        return row == (session,) or _pid(connection) != session
    except psycopg.Error as error:
        if error.sqlstate != PROTOCOL_VIOLATION:
            raise
        # pgbouncer's pool_mode ``statement`` has no transactions.
        return True
    finally:
        await other.close()
