"""The changes of one table as record batches, straight from messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from olr_pg.rendering.arrow_changes import (
    ChangeFacts,
    TableBatches,
    by_table,
    delivered_column,
    schema_of,
)
from olr_pg.rendering.json_lines import JsonLines
from olr_pg.wire.elements import ElementCode
from olr_pg.wire.packed_changes import ReadChanges

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from olr_pg.dictionary.model import Database, Table
    from olr_pg.transactions.finished_columns import ChangeColumns
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
    """

    def __init__(self, table: Table, database: Database) -> None:
        columns = [delivered_column(column) for column in table.delivered]
        self._messages = JsonLines(database)
        self._directory = self._messages.directory
        self._table = TableBatches(table.owner, table.name, columns, database, self._directory)

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
        for changes in self._messages.changes(framed):
            read = _read(changes)
            facts = ChangeFacts(read, self._directory)
            for number, elements in by_table(read):
                if self._directory.tables[number] == mine:
                    yield self._table.batch(changes, facts, elements, lambda _: {})


def _read(changes: ChangeColumns) -> ReadChanges:
    """What packed transactions tell of their changes beside the columns."""
    is_commit = changes.kind == ElementCode.COMMIT
    transaction = np.append(0, np.cumsum(is_commit)[:-1]).astype(np.int32)
    begins = np.maximum.accumulate(
        np.where(changes.kind == ElementCode.BEGIN, np.arange(changes.kind.size), 0)
    )
    return ReadChanges(
        changes,
        session=np.zeros(changes.kind.size, np.int64),
        commit_time=changes.time[is_commit][transaction],
        transaction=transaction,
        position=(np.arange(changes.kind.size) - begins - 1).astype(np.int32),
    )
