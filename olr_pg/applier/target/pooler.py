"""Connection poolers between the applier and PostgreSQL.

The applier's sessions have settings, locks and a ledger row that is theirs. A pooler that gives
each transaction another session of the server (pgbouncer's pool_mode ``transaction`` or
``statement``) would take them away without a word: triggers would fire, and two appliers write one
table. Such a pooler is refused; one that gives a client a session to keep is not noticed.

A pooler invents the process id that a client gets when it connects; PostgreSQL's own is in
``pg_backend_pid()``.
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
"""How long another client waits for a session; where each keeps its own, there may be none left."""


def refuse_shared_sessions(connection: Connection[Any], connect_string: str) -> None:
    """See that the connection has a session of the server for itself.

    Args:
        connection: in autocommit.
        connect_string: what it was made with.

    Raises:
        OlrPgError: 5029, others get its session between its transactions.
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
    """Tell whether another client gets the session, or the first one another."""
    try:
        async with asyncio.timeout(_WAIT_SECONDS):
            return await _is_shared(connect_string, session, connection)
    except TimeoutError:
        return False


async def _is_shared(connect_string: str, session: int, connection: Connection[Any]) -> bool:
    other = await psycopg.AsyncConnection.connect(connect_string, autocommit=False)
    try:
        row = await (await other.execute(_PID)).fetchone()
        # Its transaction is open: what it has, nobody else gets meanwhile.
        return row == (session,) or _pid(connection) != session
    except psycopg.Error as error:
        if error.sqlstate != PROTOCOL_VIOLATION:
            raise
        # pgbouncer's pool_mode ``statement`` has no transactions.
        return True
    finally:
        await other.close()
