"""The changes of one table as record batches, straight from messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.rendering.arrow_batches import TableBatches, delivered_column, schema_of
from olr_pg.rendering.arrow_changes import ChangeReader
from olr_pg.wire.frames import ByteOrder

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from olr_pg.dictionary.model import Database, Table
    from olr_pg.redo.sessions import SessionDirectory
    from olr_pg.wire.frames import Buffer


def changes_schema(table: Table) -> pa.Schema:
    """Return the schema of a table's changes."""
    return schema_of([delivered_column(column) for column in table.delivered])


class ChangeBatches:
    """The record batches of one table's changes, from messages (`changes_schema`).

    Args:
        table: whose changes; its columns decide the types. Values of columns that it does not have
            are left out, values of another type are converted, if Arrow can.
        database: whose values they are.
        order: byte order of the messages.
        sessions: the sessions of the transactions; None: nothing is known of them.
    """

    def __init__(
        self,
        table: Table,
        database: Database,
        *,
        order: ByteOrder = ByteOrder.LITTLE,
        sessions: SessionDirectory | None = None,
    ) -> None:
        columns = [delivered_column(column) for column in table.delivered]
        self._table = TableBatches(table.owner, table.name, columns, database)
        self._reader = ChangeReader(order, sessions)

    @property
    def schema(self) -> pa.Schema:
        """The schema of the batches."""
        return self._table.schema

    def feed(self, framed: Buffer) -> Iterator[pa.RecordBatch]:
        """Yield the batches of whole transactions; those of other tables are counted in `position`.

        Args:
            framed: Data messages; must stay as they are until the batches are made.

        Raises:
            OlrPgError: 2050, 2051, 2053 or 2056 with the value's place; 4001, 4005, 5013, the
                messages are malformed.
        """
        mine = self._table.owner, self._table.name
        for changes in self._reader.read(framed):
            for name, elements in changes.by_table():
                if name == mine:
                    yield self._table.batch(changes, elements)
