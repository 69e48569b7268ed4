"""The interface of a batch applier: one applies a single table, another all tables in one
stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from psycopg import Connection

    from olr_pg.applier.batches.commit_durability import CommitDurability
    from olr_pg.applier.batches.slices import Slices
    from olr_pg.applier.batches.table_progress import TableProgress
    from olr_pg.applier.batches.table_writer import Prepared
    from olr_pg.applier.statements.table_changes import Selection
    from olr_pg.transactions.schema_event import SchemaEvent


class BatchApplier(Protocol):
    """Applies batches and events in order, in one thread; `prepare` can run in another thread.

    Attributes:
        name: ``OWNER.NAME``, or `changes_by_table.STREAM`.
    """

    name: str

    def forget(self) -> None:
        """Discard what is known about the target, because the connection was lost."""

    def prepare(self, selection: Selection) -> Prepared | None:
        """Make the statements of a selection before `apply`, if possible."""

    def apply(
        self,
        connection: Connection[Any],
        selection: Selection,
        prepared: Prepared | None = None,
        durability: CommitDurability | None = None,
    ) -> None:
        """Apply changes of whole transactions to the target, durably.

        Args:
            prepared: the prepared statements of this selection, if any.
            durability: of the commit; None to wait for the disk.

        Raises:
            psycopg.Error: a transient error; nothing of the batch is applied.
        """

    def apply_slices(self, connection: Connection[Any], slices: Slices) -> None:
        """Apply one transaction that does not fit in memory; otherwise like `apply`."""

    def evolve(self, connection: Connection[Any], event: SchemaEvent) -> None:
        """Apply a change of a table's definition."""

    def settle(self, connection: Connection[Any]) -> None:
        """Flush everything that is committed to disk."""

    def reached(self) -> Mapping[str, int]:
        """Return the commit SCN of each table's last transaction as of the last batch; called by
        the applying thread.
        """

    def progress(
        self, waiting: Sequence[Selection], changes: int, pending: int | None
    ) -> Callable[[], list[TableProgress]]:
        """Return a function that reports the tables' progress; call it without the lock.

        Args:
            waiting: changes in no batch yet, without those in the spool.
            changes: their number, including those in the spool.
            pending: the lowest commit SCN that was delivered and is not durable yet.
        """
