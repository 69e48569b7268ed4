"""Decides whether a commit waits for the disk. It does not if another commit follows at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from psycopg import Connection, Cursor

_PLACES: Final = """
SELECT (pg_current_wal_insert_lsn() - '0/0')::int8, (pg_current_wal_flush_lsn() - '0/0')::int8
"""
MAX_PLACE: Final = 2**64 - 1
"""A position that no WAL position of PostgreSQL exceeds."""

# Only if no commit has to wait for a standby: synchronous_commit = off would skip that wait, too.
_LAG: Final = """
SELECT set_config('synchronous_commit', 'off', true)
WHERE current_setting('synchronous_standby_names') = ''
"""


class CommitDurability:
    """Decides whether the commit of a batch waits for the disk, and reads the WAL positions after
    it.

    Args:
        follows: called before the commit; returns whether another batch follows. Then this commit
            does not need to wait, because a later commit that waits for the disk flushes this
            commit too.

    Attributes:
        lags: whether the commit did not wait for the disk.
    """

    def __init__(self, follows: Callable[[], bool] = lambda: False) -> None:
        self._follows = follows
        self._places: Cursor[Any] | None = None
        self.lags = False

    def loosen(self, connection: Connection[Any]) -> None:
        """If another batch follows, let the open transaction commit without waiting for the
        disk.
        """
        self.lags = self._follows()
        if self.lags:
            connection.execute(_LAG)

    def commit(self, connection: Connection[Any]) -> None:
        """Commit, and query the WAL positions. The caller's pipeline sends both statements."""
        self.loosen(connection)
        connection.execute("COMMIT")
        self._places = connection.execute(_PLACES)

    def places(self, connection: Connection[Any]) -> tuple[int, int]:
        """Return two WAL positions, as of a moment after the commit.

        Returns:
            (the end of the WAL, the position up to which it is flushed to disk).
        """
        cursor, self._places = self._places, None
        if cursor is None or cursor.description is None:  # not queried, or no answer
            cursor = connection.execute(_PLACES)
        row = cursor.fetchone()
        assert row is not None
        return row[0], row[1]
