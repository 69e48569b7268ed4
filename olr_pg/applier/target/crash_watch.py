"""Detects that a crash of PostgreSQL has emptied UNLOGGED target tables. The ledger does not show
that a table was emptied.

PostgreSQL empties every UNLOGGED table in crash recovery, when a standby is promoted, and when a
base backup is restored. An empty table proves nothing, because the source's table may also be
empty. So ``olr_pg.crash_mark`` is an UNLOGGED table with one row for each subscription, and
``olr_pg.crash_watch`` is an ordinary table that records that the row was inserted. Each new
connection compares the two tables before it writes: if the row is missing, a crash has emptied all
UNLOGGED tables. The missing row also shows emptied partitions, and tables that were set to UNLOGGED
just before the crash.

UNLOGGED tables are recorded in ``olr_pg.unlogged`` before any crash, because an operator may set a
table to LOGGED after it was emptied. Changes of emptied tables are refused until a new load deletes
the record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import structlog

from olr_pg.applier.target.catalogue import relation_exists
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Callable

    from psycopg import Connection

# A standby cannot read UNLOGGED tables, and nothing is written to it.
_IS_STANDBY: Final = "SELECT pg_is_in_recovery()"
# Begin with the UNLOGGED tables: the applier's sessions have no hash joins, so a comparison of the
# names of all tables with the ledger would take minutes for 20,000 tables. Because all tables can
# be UNLOGGED, IS TRUE prevents a join with the ledger: PostgreSQL hashes the names instead.
_UNLOGGED: Final = """
WITH RECURSIVE known AS (
    SELECT source_table, target_table FROM olr_pg.ledger WHERE subscription = %(subscription)s
  UNION
    SELECT source_table, target_table FROM olr_pg.load WHERE subscription = %(subscription)s
), part AS (
    SELECT oid FROM pg_class WHERE relpersistence = 'u' AND relkind = 'r'
  UNION
    SELECT i.inhparent FROM pg_inherits i JOIN part ON i.inhrelid = part.oid
), named AS MATERIALIZED (
    SELECT n.nspname || '.' || c.relname AS target_table
    FROM part JOIN pg_class c ON c.oid = part.oid AND c.relkind IN ('r', 'p')
    JOIN pg_namespace n ON n.oid = c.relnamespace
), unlogged AS (
    SELECT DISTINCT source_table FROM known
    WHERE (target_table IN (SELECT target_table FROM named)) IS TRUE
), noted AS (
    SELECT source_table, lost_at FROM olr_pg.unlogged WHERE subscription = %(subscription)s
)
"""
_LOOK: Final = (
    _UNLOGGED  # noqa: S608 - constants alone
    + """
SELECT EXISTS (SELECT FROM olr_pg.crash_mark WHERE subscription = %(subscription)s),
    EXISTS (SELECT source_table FROM unlogged EXCEPT SELECT source_table FROM noted)
    OR EXISTS (SELECT source_table FROM noted WHERE lost_at IS NULL
        EXCEPT SELECT source_table FROM unlogged)
"""
)
_WATCH: Final = """
INSERT INTO olr_pg.crash_watch (subscription) VALUES (%s)
ON CONFLICT (subscription) DO NOTHING
"""
_LOCK: Final = """
UPDATE olr_pg.crash_watch SET looked_at = now() WHERE subscription = %s
"""
_MARK: Final = """
INSERT INTO olr_pg.crash_mark (subscription) VALUES (%s) ON CONFLICT DO NOTHING
"""
_NOTE: Final = (
    _UNLOGGED  # noqa: S608 - constants alone
    + """
, forgotten AS (
    DELETE FROM olr_pg.unlogged u WHERE subscription = %(subscription)s AND lost_at IS NULL
        AND NOT %(crashed)s AND source_table NOT IN (SELECT source_table FROM unlogged)
)
INSERT INTO olr_pg.unlogged (subscription, source_table)
SELECT %(subscription)s, source_table FROM unlogged ON CONFLICT DO NOTHING
"""
)
_LOSE: Final = """
UPDATE olr_pg.unlogged SET lost_at = now() WHERE subscription = %s AND lost_at IS NULL
"""
_LOST: Final = """
SELECT source_table FROM olr_pg.unlogged
WHERE subscription = %s AND lost_at IS NOT NULL ORDER BY source_table
"""

_log = structlog.get_logger(__name__)


def watched(
    subscription: str, check: Callable[[Connection[Any]], None]
) -> Callable[[Connection[Any]], None]:
    """Return a check for new connections that runs `check` and then checks for a crash."""

    def both(connection: Connection[Any]) -> None:
        check(connection)
        look_for_crash(connection, subscription)

    return both


def look_for_crash(connection: Connection[Any], subscription: str) -> None:
    """Record the UNLOGGED tables of a subscription, and which of them a crash has emptied.

    Args:
        connection: in autocommit mode. If the ledger's tables do not exist yet, nothing is done.
    """
    if not relation_exists(connection, "olr_pg.crash_mark"):
        return
    if connection.execute(_IS_STANDBY).fetchone() == (True,):
        return
    if connection.execute(_LOOK, {"subscription": subscription}).fetchone() != (True, False):
        with connection.transaction():
            _note(connection, subscription)


def _note(connection: Connection[Any], subscription: str) -> None:
    is_first = connection.execute(_WATCH, (subscription,)).rowcount == 1
    # Another connection could change the row at the same time.
    connection.execute(_LOCK, (subscription,))
    known = {"subscription": subscription}
    row = connection.execute(_LOOK, known).fetchone()
    assert row is not None
    crashed = not is_first and not row[0]
    connection.execute(_NOTE, {**known, "crashed": crashed})
    if crashed and connection.execute(_LOSE, (subscription,)).rowcount > 0:
        lost = lost_tables(connection, subscription)
        _log.error("a crash of PostgreSQL emptied UNLOGGED tables", tables=", ".join(lost))
    connection.execute(_MARK, (subscription,))


def lost_tables(connection: Connection[Any], subscription: str) -> list[str]:
    """Return the source tables whose target rows were lost in a crash."""
    if not relation_exists(connection, "olr_pg.crash_mark"):
        return []
    return [name for (name,) in connection.execute(_LOST, (subscription,))]


def lost_rows(source: str) -> OlrPgError:
    """Return the error for a table whose rows were lost in a crash.

    Args:
        source: ``OWNER.NAME`` of the source's table.
    """
    return OlrPgError(
        Code.TARGET_ROWS_LOST,
        "the table, or one of its partitions, was UNLOGGED when PostgreSQL crashed; its"
        " rows are lost, although the ledger records them as applied",
        table=source,
    )
