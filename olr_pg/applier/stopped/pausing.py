"""Pauses that an operator requests: of a table, or of the whole subscription.

Changes of a paused *table* are held like those of a stopped one (`hold`): they go to
``olr_pg.held`` in the target transaction that advances the ledger's row past them. So the
confirmation, the checkpoint and the other tables continue, and the source's redo can be deleted.
Resuming the table is a replay. The pause is a flag in the ledger's row. Each batch locks that row
and sees whether the table is paused, so the flag can be set by any process, with or without a
running applier.

A paused *subscription* requests nothing from the server. Received changes are applied; later ones
are neither held nor confirmed, so the checkpoint does not advance and the redo must be kept. The
pause is a row of ``olr_pg.paused``, which a running applier reads every second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.observability.steady_time import steady_time

if TYPE_CHECKING:
    from typing import Any

    from psycopg import Connection

_SEED: Final = """
INSERT INTO olr_pg.ledger (subscription, source_table, target_table, commit_scn)
VALUES (%s, %s, %s, 0) ON CONFLICT DO NOTHING
"""
_PAUSE: Final = """
UPDATE olr_pg.ledger SET paused = true, stopped = true
WHERE subscription = %s AND source_table = %s AND NOT paused
"""
_RESUME: Final = """
UPDATE olr_pg.ledger SET paused = false WHERE subscription = %s AND source_table = %s AND paused
"""
_TABLES: Final = """
SELECT source_table FROM olr_pg.ledger WHERE subscription = %s AND paused ORDER BY source_table
"""
_PAUSE_ALL: Final = """
INSERT INTO olr_pg.paused (subscription, paused_by) VALUES (%s, %s) ON CONFLICT DO NOTHING
"""
_RESUME_ALL: Final = "DELETE FROM olr_pg.paused WHERE subscription = %s"
_ALL: Final = """
SELECT extract(epoch FROM clock_timestamp() - paused_at)::float8, paused_by
FROM olr_pg.paused WHERE subscription = %s
"""


class Pause(NamedTuple):
    """The pause of a whole subscription.

    Attributes:
        since: seconds of Unix time.
        by: who requested it.
    """

    since: float
    by: str


def pause_table(connection: Connection[Any], subscription: str, table: str, target: str) -> bool:
    """Pause a table: hold its changes from the next transaction on.

    Args:
        target: ``schema.name`` of its target table.

    Returns:
        Whether it was not paused before.
    """
    with connection.transaction():
        connection.execute(_SEED, (subscription, table, target))
        return connection.execute(_PAUSE, (subscription, table)).rowcount == 1


def unpause_table(connection: Connection[Any], subscription: str, table: str) -> bool:
    """Remove the pause of a table; a replay of its held changes then resumes it.

    Returns:
        Whether it was paused.
    """
    return connection.execute(_RESUME, (subscription, table)).rowcount == 1


def paused_tables(connection: Connection[Any], subscription: str) -> list[str]:
    """Return the paused source tables of a subscription."""
    return [row[0] for row in connection.execute(_TABLES, (subscription,)).fetchall()]


def pause_all(connection: Connection[Any], subscription: str, by: str) -> bool:
    """Pause a subscription; return whether it was not paused before."""
    return connection.execute(_PAUSE_ALL, (subscription, by)).rowcount == 1


def resume_all(connection: Connection[Any], subscription: str) -> bool:
    """Resume a subscription; return whether it was paused."""
    return connection.execute(_RESUME_ALL, (subscription,)).rowcount == 1


def read_pause(connection: Connection[Any], subscription: str) -> Pause | None:
    """Read the pause of a subscription; None if it is not paused."""
    row = connection.execute(_ALL, (subscription,)).fetchone()
    return None if row is None else Pause(steady_time() - max(row[0], 0.0), row[1])


class Pauses:
    """The pauses of a subscription as of the last `look`; thread-safe.

    Attributes:
        whole: the pause of the whole subscription, or None.
        tables: the tables that are paused individually.
    """

    def __init__(self, subscription: str) -> None:
        self._subscription = subscription
        self.whole: Pause | None = None
        self.tables: frozenset[str] = frozenset()

    def look(self, connection: Connection[Any]) -> None:
        """Read the pauses from the target."""
        found = read_pause(connection, self._subscription)
        if found is None or self.whole is None:
            self.whole = found
        self.tables = frozenset(paused_tables(connection, self._subscription))
