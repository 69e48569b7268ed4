"""Commits that do not wait for the disk, because another commit follows at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from psycopg import Connection, Cursor

_PLACES: Final = """
SELECT (pg_current_wal_insert_lsn() - '0/0')::int8, (pg_current_wal_flush_lsn() - '0/0')::int8
"""
MAX_PLACE: Final = 2**64 - 1
"""The highest position in PostgreSQL's WAL."""

# With synchronous_commit off, commits do not wait for standbys either.
_LAG: Final = """
SELECT set_config('synchronous_commit', 'off', true)
WHERE current_setting('synchronous_standby_names') = ''
"""


class CommitDurability:
    """Decides whether the commit of a batch waits for the disk, and reads the WAL positions after
    it.

    Args:
        follows: called before the commit; returns whether another batch follows, so that this
            commit does not need to wait. A later commit that waits flushes this one too.

    Attributes:
        lags: the commit did not wait.
    """

    def __init__(self, follows: Callable[[], bool] = lambda: False) -> None:
        self._follows = follows
        self._places: Cursor[Any] | None = None
        self.lags = False

    def loosen(self, connection: Connection[Any]) -> None:
        """Set the open transaction to commit asynchronously, if allowed."""
        self.lags = self._follows()
        if self.lags:
            connection.execute(_LAG)

    def commit(self, connection: Connection[Any]) -> None:
        """Commit and query the WAL positions, within the caller's pipeline, which then sends
        everything.
        """
        self.loosen(connection)
        connection.execute("COMMIT")
        self._places = connection.execute(_PLACES)

    def places(self, connection: Connection[Any]) -> tuple[int, int]:
        """Return positions in PostgreSQL's WAL from some moment after the commit.

        Returns:
            (the end of the WAL, the position up to which it is flushed to disk).
        """
        cursor, self._places = self._places, None
        if cursor is None or cursor.description is None:  # the commit failed, so there is no answer
            cursor = connection.execute(_PLACES)
        row = cursor.fetchone()
        assert row is not None
        return row[0], row[1]
