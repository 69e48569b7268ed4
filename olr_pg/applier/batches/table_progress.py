"""The progress of a table, as a worker reports it to the session and to status displays."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from olr_pg.applier.stopped.held_tables import FirstHeld
    from olr_pg.applier.target.ledger import ChangeCounts
    from olr_pg.errors import OlrPgError


class TableProgress(NamedTuple):
    """The position of a table and its waiting changes.

    Attributes:
        commit_scn: of the last transaction that is in the table (for a stopped table: in the hold);
            0 if there is none since the start.
        waiting: changes in no batch yet. For a stream, changes of a spooled transaction are not
            counted, because their tables are not known yet.
        pending: the lowest commit SCN that was delivered and is not durable yet; for a stream, that
            of all tables together.
        counters: of what was applied since the start.
        error: why the table is stopped.
        altered: number of values that a policy has changed.
        held: the first held change of a stopped table.
        incomplete: number of its missing LOB values (`incomplete_values`).
        paused: whether an operator has paused it.
        behind: the table of the same worker whose batches take most of the worker's time while
            changes of this one wait; None if there is none.
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
