"""The interface of a batch applier. One implementation applies a single table, the other one all
tables in one stream.
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
    from olr_pg.applier.target.ledger import Reach
    from olr_pg.transactions.schema_event import SchemaEvent


class BatchApplier(Protocol):
    """Applies batches and events in order, in one thread; `prepare` can run in another thread.

    Attributes:
        name: ``OWNER.NAME``, or `changes_by_table.STREAM`.
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
        """Apply one transaction that does not fit in memory. Otherwise, this works like `apply`."""

    def evolve(self, connection: Connection[Any], event: SchemaEvent) -> None:
        """Apply an event of a table: a change of its definition, or a fault."""

    def settle(self, connection: Connection[Any]) -> None:
        """Make PostgreSQL flush all commits to disk."""

    def reached(self) -> Mapping[str, Reach]:
        """Return how far each table is. Only the applying thread may call this."""

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
