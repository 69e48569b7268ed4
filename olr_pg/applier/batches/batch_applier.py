"""The interface of a batch applier. There are two implementations: one applies a single table, the
other applies all tables in one stream.

`CommitDurability` decides whether a commit waits for the disk. A commit does not wait for the disk
if another commit follows at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from psycopg import Connection, Cursor

    from olr_pg.applier.batches.slices import Slices
    from olr_pg.applier.batches.table_writer import Prepared
    from olr_pg.applier.statements.table_changes import Selection
    from olr_pg.applier.stopped.held_tables import FirstHeld
    from olr_pg.applier.target.ledger import ChangeCounts, Reach
    from olr_pg.errors import OlrPgError
    from olr_pg.transactions.schema_event import SchemaEvent

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


class TableProgress(NamedTuple):
    """The position of a table, and the number of changes that wait for it.

    Attributes:
        commit_scn: the commit SCN of the last transaction that is in the table, or in the hold if
            the table is stopped; 0 if it is not known yet.
        waiting: the number of changes that are not part of a batch yet. In a stream, changes in the
            spool are not counted.
        pending: the lowest commit SCN of the changes that were delivered and are not durable yet.
            In a stream, the lowest one of all tables.
        counters: counts of what was applied since the start.
        error: why the table is stopped; None if it is not.
        altered: the number of values that a policy has changed to fit the target.
        held: the first held change, if the table is stopped.
        incomplete: the number of LOB values that the table lacks (`incomplete_values`).
        paused: whether an operator has paused the table.
        behind: the table for which this table waits: batches of that table take most of the time of
            the same worker. None if this table does not wait.
    """

    name: str
    commit_scn: int
    waiting: int
    pending: int | None
    counters: ChangeCounts
    error: OlrPgError | None
    altered: int = 0
    held: FirstHeld | None = None
    incomplete: int = 0
    paused: bool = False
    behind: str | None = None


class CommitDurability:
    """Decides whether the commit of a batch waits for the disk, and reads the WAL positions after
    it.

    Args:
        follows: called before the commit; returns whether another batch follows. If another batch
            follows, this commit does not need to wait for the disk. A later commit that waits for
            the disk also flushes this commit.

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


class BatchApplier(Protocol):
    """Applies batches and events in order, in one thread; `prepare` can run in another thread.

    Attributes:
        name: ``OWNER.NAME``, or `table_changes.STREAM`.
    """

    name: str

    def forget(self) -> None:
        """Discard the cached state of the target, because the connection was lost."""

    def prepare(self, selection: Selection) -> Prepared | None:
        """Make the statements for a selection of changes before `apply` is called, if possible."""

    def apply(
        self,
        connection: Connection[Any],
        selection: Selection,
        prepared: Prepared | None = None,
        durability: CommitDurability | None = None,
    ) -> None:
        """Apply changes of whole transactions to the target and commit.

        Args:
            prepared: the prepared statements of this selection, if any.
            durability: whether the commit waits for the disk; None to wait.

        Raises:
            psycopg.Error: a transient error; nothing of the batch is applied.
        """

    def apply_slices(self, connection: Connection[Any], slices: Slices) -> None:
        """Apply one transaction that does not fit in memory. In all other respects, the method
        works like `apply`.
        """

    def evolve(self, connection: Connection[Any], event: SchemaEvent) -> None:
        """Apply an event of a table: a change of its definition, or a fault."""

    def settle(self, connection: Connection[Any]) -> None:
        """Make PostgreSQL flush all commits to disk."""

    def reached(self) -> Mapping[str, Reach]:
        """Return how far each table is. Only the applying thread may call this method."""

    def progress(
        self, waiting: Sequence[Selection], changes: int, pending: int | None
    ) -> Callable[[], list[TableProgress]]:
        """Return a function that reports the tables' progress. Call the returned function without
        holding the worker's lock, because it can take long.

        Args:
            waiting: changes that are not part of a batch yet, without the changes in the spool.
            changes: the number of changes that wait, including changes in the spool.
            pending: the lowest commit SCN of the changes that were delivered and are not durable
                yet.
        """
