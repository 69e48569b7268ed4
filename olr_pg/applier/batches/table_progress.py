"""The position of a table as a worker tells it to the session's thread and to whoever watches."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from olr_pg.applier.stopped.held_tables import FirstHeld
    from olr_pg.applier.target.ledger import ChangeCounts
    from olr_pg.errors import OlrPgError


class TableProgress(NamedTuple):
    """The position of a table and what waits for it.

    Attributes:
        commit_scn: of the last transaction that is in the table (of a stopped table: held), 0 for
            none since the start.
        waiting: changes that no batch has taken. Of a stream those of a spooled transaction do not
            count: which tables they are of is not known yet.
        pending: the lowest commit SCN that was delivered and is not durable; of a stream that of
            all tables, which go on together.
        counters: of what was applied since the start.
        error: why the table stopped.
        altered: values that a policy has changed.
        held: the first change that is held of it, where it has stopped.
        incomplete: LOB values that it lacks (`incomplete_values`).
        paused: whether somebody has paused it.
        behind: the table of the same worker whose batches take most of its time, where changes of
            this one wait meanwhile; None where there is none.
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
