"""Pauses that an operator requests: of a table, or of the whole subscription.

If a *table* is paused, its changes are held like the changes of a stopped table (`hold`): they are
written to ``olr_pg.held`` in the target transaction that advances the table's position in the
ledger. So the confirmation and the checkpoint advance, the other tables continue, and the source's
redo can be deleted. A replay of the held changes resumes the table. The pause is a flag in the
table's row in the ledger. Each batch locks this row and reads the flag, so any process can set it,
with or without a running applier.

If a whole *subscription* is paused, the applier requests nothing from the server. The changes that
the applier has already received are still applied. Later changes are neither held nor confirmed, so
the checkpoint does not advance, and the source's redo must be kept. The pause is a row in
``olr_pg.paused``, which a running applier reads every second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from olr_pg.applier.target.ledger import SEED
from olr_pg.observability.periodic import steady_time

if TYPE_CHECKING:
    from psycopg import Connection

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
        since: when the pause began, in seconds of Unix time.
        by: who requested the pause.
    """

    since: float
    by: str


def pause_table(connection: Connection[Any], subscription: str, table: str, target: str) -> bool:
    """Pause a table: hold its changes from the next transaction on.

    Args:
        target: ``schema.name`` of the table's target.

    Returns:
        True if the table was not paused before.
    """
    with connection.transaction():
        connection.execute(SEED, (subscription, table, target))
        return connection.execute(_PAUSE, (subscription, table)).rowcount == 1


def unpause_table(connection: Connection[Any], subscription: str, table: str) -> bool:
    """Remove the pause of a table; a replay of its held changes then resumes it.

    Returns:
        True if the table was paused.
    """
    return connection.execute(_RESUME, (subscription, table)).rowcount == 1


def paused_tables(connection: Connection[Any], subscription: str) -> list[str]:
    """Return the paused source tables of a subscription."""
    return [row[0] for row in connection.execute(_TABLES, (subscription,)).fetchall()]


def pause_all(connection: Connection[Any], subscription: str, by: str) -> bool:
    """Pause a subscription. Return True if the subscription was not paused before."""
    return connection.execute(_PAUSE_ALL, (subscription, by)).rowcount == 1


def resume_all(connection: Connection[Any], subscription: str) -> bool:
    """Resume a subscription. Return True if the subscription was paused."""
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
