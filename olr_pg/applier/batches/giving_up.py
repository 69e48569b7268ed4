"""What is done with a batch whose error should pass by itself, and did not.

PostgreSQL says XX000 of a row that is too large for its memory, and 53200 of a table with more
partitions than it has room for locks, as it does of what passes. So such an error is tried again
first, as long as `apply.retry-seconds`; then it is the table's: it stops, and the others go on.
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
    """Apply the transactions of a batch one by one; stop the table with the first that fails.

    Raises:
        psycopg.Error: another error that may pass; what is applied or held so far stays.
    """
    for rows in selection.transactions():
        part = selection.part(rows)
        try:
            applier.apply(connection, part)
        except psycopg.Error as error:
            if not may_last(error):
                raise
            applier.stop_with(connection, part, refusal(error))
