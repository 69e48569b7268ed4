"""The progress of a table, as a worker reports it to the session and to status displays."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from olr_pg.applier.stopped.held_tables import FirstHeld
    from olr_pg.applier.target.ledger import ChangeCounts
    from olr_pg.errors import OlrPgError


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
        behind: another table, whose batches take most of the time of the same worker, so that
            changes of this table wait; None if there is no such table.
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
