"""Handles a batch whose error looked transient but did not go away.

PostgreSQL also reports XX000 for a row that is too large for its memory, and 53200 for a table with
more partitions than its lock table can hold. So such an error is first retried for
`apply.retry-seconds`. After that it counts as the table's error: the table is stopped, and the
others continue.
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
    """Apply the transactions of a batch one by one; stop the table at the first that fails.

    Raises:
        psycopg.Error: a different transient error; what is applied or held so far stays.
    """
    for rows in selection.transactions():
        part = selection.part(rows)
        try:
            applier.apply(connection, part)
        except psycopg.Error as error:
            if not may_last(error):
                raise
            applier.stop_with(connection, part, refusal(error))
