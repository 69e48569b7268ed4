"""The contract of whatever applies batches: a table by itself, or all tables in one stream."""

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
    """Applies batches and events in their order, from one thread; `prepare` may be in another.

    Attributes:
        name: ``OWNER.NAME``, or `changes_by_table.STREAM`.
    """

    name: str

    def forget(self) -> None:
        """Forget what was known of the target: the connection was lost."""

    def prepare(self, selection: Selection) -> Prepared | None:
        """Make the statements of a selection ahead of `apply`, if that is possible."""

    def apply(
        self,
        connection: Connection[Any],
        selection: Selection,
        prepared: Prepared | None = None,
        durability: CommitDurability | None = None,
    ) -> None:
        """Bring changes of whole transactions into the target, durably.

        Args:
            prepared: of this selection, where that was made.
            durability: of its commit; without it that waits for the disk.

        Raises:
            psycopg.Error: an error that may pass; nothing of the batch is applied.
        """

    def apply_slices(self, connection: Connection[Any], slices: Slices) -> None:
        """Do what `apply` does for one transaction that does not fit in memory."""

    def evolve(self, connection: Connection[Any], event: SchemaEvent) -> None:
        """Take an event of a table's definition over."""

    def settle(self, connection: Connection[Any]) -> None:
        """Bring everything that is committed to disk."""

    def reached(self) -> Mapping[str, int]:
        """Return each table's last commit SCN as of the last batch; called by its thread."""

    def progress(
        self, waiting: Sequence[Selection], changes: int, pending: int | None
    ) -> Callable[[], list[TableProgress]]:
        """Return what tells how far its tables are, for a thread that holds no lock by then.

        Args:
            waiting: changes that no batch has taken, those in the spool aside.
            changes: how many they are, those in the spool included.
            pending: the lowest commit SCN that was delivered and is not durable.
        """
