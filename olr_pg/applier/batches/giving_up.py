"""Handles a batch that keeps failing with an error that is usually transient.

Two such errors can also be permanent: PostgreSQL reports XX000 for a row that is too large for its
memory, and 53200 for a table with more partitions than its lock table can contain. So the batch is
first retried for `apply.retry-seconds`. If it still fails, the error is attributed to the table:
the table is stopped, and the others continue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg

from olr_pg.applier.stopped.refused_changes import refusal
from olr_pg.postgres.sqlstates import may_last

if TYPE_CHECKING:
    from psycopg import Connection

    from olr_pg.applier.batches.table_applier import TableApplier
    from olr_pg.applier.statements.table_changes import Selection


def give_up(applier: TableApplier, connection: Connection[Any], selection: Selection) -> None:
    """Apply the transactions of a batch one by one; stop the table at the first transaction that
    fails.

    Raises:
        psycopg.Error: a transient error that cannot be the table's own. Transactions that were
            applied or held before stay so.
    """
    for rows in selection.transactions():
        part = selection.part(rows)
        try:
            applier.apply(connection, part)
        except psycopg.Error as error:
            if not may_last(error):
                raise
            applier.stop_with(connection, part, refusal(error))
