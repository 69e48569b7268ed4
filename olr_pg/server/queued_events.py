"""Events of tables in the ready queue: DDL and changes that cannot be decoded, in band.

An event has its place between the transactions: how many were put into the queue before it. It is
taken when as many are transmitted, whole, and then lives as a transaction does: it waits for its
confirmation (`confirm`), and comes again after a rewind (`rewind`). Only the bundled applier is
given events; the queue of an external client gets none.

**LOB values that are left out** (`SchemaEvent.lobs`) belong to a transaction of the same commit SCN
that comes behind them, if it changes anything else. The client that has such an event, and then
finds nothing more ready, takes it that there is no such transaction. So the event is not given
before all transactions of its commit SCN are in the queue (`pass_scn`).

**Definitions from before the start** (`SchemaEvent.past`) are nothing that a restart would miss:
they hold no checkpoint, and a queue that holds nothing else is empty.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.transactions.schema_event import SchemaEvent

EVENT_BYTES: Final = 4096
"""What an event of rows takes while it waits for the applier, about."""


class _Placed(NamedTuple):
    """An event, and how many transactions were put into the queue before it."""

    event: SchemaEvent
    place: int


class QueuedEvents:
    """The events of one queue, which has the lock.

    Args:
        rows_max: so many events of rows may wait for their confirmation before the next one has to
            wait: a table that has stopped may have any number of them.
    """

    def __init__(self, rows_max: int) -> None:
        self._rows_max = max(1, rows_max)
        self._sent: deque[_Placed] = deque()
        self._ready: deque[_Placed] = deque()
        self._rows = 0
        self._passed_scn = -1

    @property
    def ready(self) -> int:
        """The number of events that have not been taken."""
        return len(self._ready)

    def has_room(self, event: SchemaEvent) -> bool:
        """Tell whether one more event may be put."""
        return not event.is_of_rows or self._rows < self._rows_max

    def put(self, event: SchemaEvent, place: int) -> None:
        """Add an event behind all others.

        Args:
            place: how many transactions were put before it.
        """
        self._ready.append(_Placed(event, place))
        self._rows += event.is_of_rows

    def pass_scn(self, scn: int) -> None:
        """Note that every transaction that commits at this SCN or before was put."""
        self._passed_scn = max(self._passed_scn, scn)

    def abandon(self, scn: int) -> None:
        """Note that other redo takes the place of that from this SCN on."""
        self._passed_scn = min(self._passed_scn, scn - 1)

    def ahead(self, transmitted: int) -> int | None:
        """Count the transactions in front of the next event; None where no event waits.

        Args:
            transmitted: how many transactions were taken whole.
        """
        return self._ready[0].place - transmitted if self._ready else None

    def is_due(self, transmitted: int) -> bool:
        """Tell whether the next event may be taken now."""
        if self.ahead(transmitted) != 0:
            return False
        event = self._ready[0].event
        return not event.lobs or event.commit_scn <= self._passed_scn

    def is_in_the_way(self, transmitted: int) -> bool:
        """Tell whether the next event comes before the next transaction, and is not due yet."""
        return self.ahead(transmitted) == 0 and not self.is_due(transmitted)

    def take(self) -> SchemaEvent:
        """Take the next event."""
        placed = self._ready.popleft()
        self._sent.append(placed)
        return placed.event

    def confirms(self, scn: int) -> bool:
        """Tell whether `confirm(scn)` would drop what a restart would miss."""
        return any(True for _ in self._confirmed(scn))

    def confirm(self, scn: int) -> int:
        """Drop what was taken and is of this commit SCN or before.

        Returns:
            How many of them a restart would have missed.
        """
        count = 0
        while self._sent and self._sent[0].event.commit_scn <= scn:
            event = self._sent.popleft().event
            self._rows -= event.is_of_rows
            count += not event.past
        return count

    def rewind(self, scn: int) -> None:
        """Make the events behind this commit SCN ready again."""
        while self._sent and self._sent[-1].event.commit_scn > scn:
            self._ready.appendleft(self._sent.pop())

    def lowest_begin_scn(self, confirming: int) -> int | None:
        """Return the lowest begin SCN of what is not confirmed, less what would be; None: nothing.

        Args:
            confirming: what `confirm` of it would drop does not count.
        """
        return min((event.begin_scn for event in self._kept(confirming)), default=None)

    def lowest_commit_scn(self, confirming: int) -> int | None:
        """Return the lowest commit SCN of what is not confirmed, as `lowest_begin_scn`."""
        return next((event.commit_scn for event in self._kept(confirming)), None)

    @property
    def is_empty(self) -> bool:
        """Tell whether a restart would miss nothing."""
        return next(self._kept(-1), None) is None

    def _confirmed(self, scn: int) -> Iterator[SchemaEvent]:
        for placed in self._sent:
            if placed.event.commit_scn > scn:
                return
            if not placed.event.past:
                yield placed.event

    def _kept(self, confirming: int) -> Iterator[SchemaEvent]:
        for placed in self._sent:
            if placed.event.commit_scn > confirming and not placed.event.past:
                yield placed.event
        for placed in self._ready:
            if not placed.event.past:
                yield placed.event
