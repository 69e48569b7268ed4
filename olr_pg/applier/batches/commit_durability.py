"""Commits that need not wait for the disk, because others follow them at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from psycopg import Connection, Cursor

_PLACES: Final = """
SELECT (pg_current_wal_insert_lsn() - '0/0')::int8, (pg_current_wal_flush_lsn() - '0/0')::int8
"""
MAX_PLACE: Final = 2**64 - 1
"""Behind everything in PostgreSQL's log."""

# A standby that commits are to wait for would not be waited for either.
_LAG: Final = """
SELECT set_config('synchronous_commit', 'off', true)
WHERE current_setting('synchronous_standby_names') = ''
"""


class CommitDurability:
    """Decides what the commit of one batch waits for, and tells how far PostgreSQL's log was then.

    Args:
        follows: asked before the commit: whether another batch does, so that it need not wait
            for the disk. Every later commit that does brings it to disk, too.

    Attributes:
        lags: the commit did not wait.
    """

    def __init__(self, follows: Callable[[], bool] = lambda: False) -> None:
        self._follows = follows
        self._places: Cursor[Any] | None = None
        self.lags = False

    def loosen(self, connection: Connection[Any]) -> None:
        """Let the commit of the open transaction return before it is on disk, if it may."""
        self.lags = self._follows()
        if self.lags:
            connection.execute(_LAG)

    def commit(self, connection: Connection[Any]) -> None:
        """Commit, and ask for the places: in the caller's pipeline, which then sends it all."""
        self.loosen(connection)
        connection.execute("COMMIT")
        self._places = connection.execute(_PLACES)

    def places(self, connection: Connection[Any]) -> tuple[int, int]:
        """Return places in PostgreSQL's write-ahead log, as of some time after the commit.

        Returns:
            (its end, up to where it is on disk).
        """
        cursor, self._places = self._places, None
        if cursor is None or cursor.description is None:  # the commit failed: nobody answered
            cursor = connection.execute(_PLACES)
        row = cursor.fetchone()
        assert row is not None
        return row[0], row[1]
