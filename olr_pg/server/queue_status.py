"""The contents of a ready queue in numbers."""

from __future__ import annotations

from typing import NamedTuple


class QueueStatus(NamedTuple):
    """The content of the queue in numbers.

    Attributes:
        ready: transactions whose first message has not been taken.
        transmitting: 0 or 1.
        transmitted: waiting for confirmation.
        held_bytes: of all three, `TRANSACTION_BYTES` for each included.
        full: `put` would wait.
        held_back: the bound is passed for the sake of a client that does not confirm.
        next_scn: commit SCN of the first transaction that is not transmitted; None without one.
        spilled, spilled_bytes: those of `ready` that are in the backlog, not in `held_bytes`.
        events: events of tables that have not been taken.
    """

    ready: int
    transmitting: int
    transmitted: int
    held_bytes: int
    full: bool
    held_back: bool
    next_scn: int | None = None
    spilled: int = 0
    spilled_bytes: int = 0
    events: int = 0
