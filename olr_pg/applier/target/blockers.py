"""Finds out which session blocks one of our statements in PostgreSQL, and describes it for a
DBA.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from psycopg.rows import namedtuple_row

from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.wording import some, span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg import Connection

_SESSIONS: Final = """
SELECT pid, usename, application_name, state, query,
    extract(epoch FROM clock_timestamp() - xact_start)::float8 AS seconds
FROM pg_stat_activity WHERE pid = ANY(pg_blocking_pids(%s)) ORDER BY xact_start, pid
"""
"""Selects the sessions that block a session. `pg_blocking_pids` returns 0 for a prepared
transaction, which has no session; see `_PREPARED`.
"""

_PREPARED: Final = """
SELECT p.gid, p.owner, extract(epoch FROM clock_timestamp() - p.prepared)::float8 AS seconds
FROM pg_prepared_xacts p WHERE 0 = ANY(pg_blocking_pids(%(pid)s)) AND EXISTS (
    SELECT FROM pg_locks own
    JOIN pg_locks held ON held.pid IS NULL AND held.granted
        AND held.virtualtransaction = own.virtualtransaction
    JOIN pg_locks wanted ON held.locktype = wanted.locktype
        AND held.database IS NOT DISTINCT FROM wanted.database
        AND held.relation IS NOT DISTINCT FROM wanted.relation
        AND held.transactionid IS NOT DISTINCT FROM wanted.transactionid
    WHERE own.locktype = 'transactionid' AND own.transactionid = p.transaction AND own.pid IS NULL
        AND wanted.pid = %(pid)s AND NOT wanted.granted
) ORDER BY p.prepared
"""
_STANDBYS: Final = "SHOW synchronous_standby_names"

_KINDS: Final = re.compile(
    r"(?:\s|/\*.*?\*/|--[^\n]*\n)*"
    r"((?:LOCK|ALTER|CREATE(?:\s+UNIQUE)?|DROP|REFRESH|COMMENT|REINDEX|TRUNCATE)\s+[A-Z]+|[A-Z]+)",
    re.DOTALL | re.IGNORECASE,
)
_BLOCKING_TYPES: Final = frozenset({"Lock", "BufferPin"})
_STANDBY: Final = "SyncRep"


class Blocked(NamedTuple):
    """A statement of ours that another session blocks.

    Attributes:
        table: ``OWNER.NAME`` of the table that the statement is for; `STREAM` for the stream of all
            tables; empty for other statements of the applier.
        since: the time when it was blocked, as Unix time in seconds (`periodic.steady_time`).
        error: 5098, which names the blocking session.
        is_held: whether the table's changes wait in the hold, not in memory.
    """

    table: str
    since: float
    error: OlrPgError
    is_held: bool = False


def is_blocked(wait_event_type: str | None, wait_event: str | None) -> bool:
    """Return whether a session waits for another session or a standby. The arguments are columns of
    pg_stat_activity.
    """
    return wait_event_type in _BLOCKING_TYPES or wait_event == _STANDBY


def who_blocks(connection: Connection[Any], pid: int, wait_event: str | None) -> OlrPgError:
    """Return an error that names the session that blocks another session.

    Args:
        pid: the process id of the blocked session.
        wait_event: the session's `wait_event` in pg_stat_activity.

    Returns:
        The error 5098.

    Raises:
        psycopg.Error: PostgreSQL cannot be queried.
    """
    if wait_event == _STANDBY:
        names = connection.execute(_STANDBYS).fetchone()
        assert names is not None
        text = f"no standby confirms the commit; synchronous_standby_names is {names[0]!r}"
        return OlrPgError(Code.STATEMENT_BLOCKED, text)
    cursor = connection.cursor(row_factory=namedtuple_row)
    sessions = [session_words(row) for row in cursor.execute(_SESSIONS, (pid,)).fetchall()]
    prepared = [_prepared(row) for row in cursor.execute(_PREPARED, {"pid": pid}).fetchall()]
    by: Sequence[str] = [*sessions, *prepared] or ["a session that PostgreSQL does not name"]
    return OlrPgError(Code.STATEMENT_BLOCKED, f"blocked by {some(by)}")


def statement_kind(query: str | None) -> str:
    """Return the kind of a statement, such as "ALTER TABLE", without its contents; empty if the
    role may not see the statement.
    """
    found = _KINDS.match(query or "")
    return "" if found is None else " ".join(found[1].upper().split())


def session_words(row: Any) -> str:
    """Describe a session by its columns of pg_stat_activity, without data of any table."""
    kind = statement_kind(row.query)
    parts = [
        f"pid {row.pid}",
        repr(row.application_name) if row.application_name else "",
        f"user {row.usename}" if row.usename else "",
        row.state or "",
        f"transaction open for {span(row.seconds)}" if row.seconds is not None else "",
        f"last statement {kind}" if kind else "",
    ]
    return parts[0] + f" ({', '.join(part for part in parts[1:] if part)})"


def _prepared(row: Any) -> str:
    return f"the prepared transaction {row.gid!r} of user {row.owner}, {span(row.seconds)} old"
