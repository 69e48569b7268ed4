"""Proves for each target transaction that it runs in the connection's own session.

An operator can change the mode of a pooler while the appliance runs (pgbouncer's ``RELOAD``), and
the check of a new connection (`postgres.pooler`) does not recognise every pooler. So each
connection also sets a mark in its session, a parameter with a random value. Each target transaction
reads the mark together with the ledger's row. If the mark is missing, the session's other settings
are missing too.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final

from olr_pg.errors import Code, OlrPgError
from olr_pg.postgres.bounded_connection import BoundedConnection

if TYPE_CHECKING:
    from psycopg import Connection

_MARK: Final = "SELECT set_config('olr_pg.session', %s, false)"
OWN_MARK: Final = "current_setting('olr_pg.session', true)"
"""SQL expression for the mark of the session that runs the query."""


def mark_session(connection: BoundedConnection) -> None:
    """Set a mark in the connection's session, which `check_session` expects from then on."""
    connection.mark = secrets.token_hex(8)
    connection.execute(_MARK, (connection.mark,))


def check_session(connection: Connection[Any], mark: str | None) -> None:
    """Check that a query ran in the connection's own session. Connections without a mark pass.

    Args:
        mark: the value of `OWN_MARK` in the query's answer.

    Raises:
        OlrPgError: 5029, the query ran in another session, or the session has lost its settings.
            The caller must roll back.
    """
    own = connection.mark if isinstance(connection, BoundedConnection) else None
    if own is not None and mark != own:
        raise OlrPgError(
            Code.POOLER_SHARES_SESSIONS,
            "a transaction ran in a session without the settings of the connection. Nothing of it"
            " is applied",
        )
