"""Detects connection poolers between the applier and PostgreSQL that share sessions.

The applier sets parameters and takes locks in its PostgreSQL sessions, and relies on them. A pooler
that gives a client another session for each transaction (pgbouncer's pool_mode ``transaction`` or
``statement``) would silently break this: triggers would fire, and two appliers could write to one
table. The applier refuses to work through such a pooler. A pooler that gives each client its own
session is accepted.

A pooler is detected by process ids: the pooler invents the process id that a client receives when
it connects, but ``pg_backend_pid()`` returns the real one.

An operator can change the mode of a pooler while the appliance runs (pgbouncer's ``RELOAD``), and
the check of a new connection does not find every pooler. So each connection also sets a mark in its
session, a parameter with a random value. Each target transaction reads it together with the
ledger's row. If the mark is missing, the session's other settings are missing too.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Any, Final

import psycopg

from olr_pg.errors import Code, OlrPgError
from olr_pg.postgres.bounded_connection import BoundedConnection
from olr_pg.postgres.sqlstates import PROTOCOL_VIOLATION

if TYPE_CHECKING:
    from psycopg import Connection

_PID: Final = "SELECT pg_catalog.pg_backend_pid()"
_MARK: Final = "SELECT set_config('olr_pg.session', %s, false)"
OWN_MARK: Final = "current_setting('olr_pg.session', true)"
"""SQL expression for the mark of the session that runs the query."""

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


def mark_session(connection: BoundedConnection) -> None:
    """Set a mark in the connection's session, which `check_session` expects from then on."""
    connection.mark = secrets.token_hex(8)
    connection.execute(_MARK, (connection.mark,))


def check_session(connection: Connection[Any], mark: str | None) -> None:
    """Check that a query ran in the connection's own session. Connections without a mark pass.

    Args:
        mark: the value of `OWN_MARK` in the query's answer.

    Raises:
        OlrPgError: 5029, it ran in another session, or the session has lost its settings. The
            caller must roll back.
    """
    own = connection.mark if isinstance(connection, BoundedConnection) else None
    if own is not None and mark != own:
        raise OlrPgError(
            Code.POOLER_SHARES_SESSIONS,
            "a transaction ran in a session without the settings of the connection. Nothing of it"
            " is applied",
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
