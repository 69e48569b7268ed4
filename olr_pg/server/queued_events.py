"""Events of tables in the ready queue, between the transactions: DDL and changes that cannot be
decoded.

The position of an event is the number of transactions that were put into the queue before it. It is
taken when that many are completely transmitted. Then it behaves like a transaction: it waits for
its confirmation (`confirm`), and is sent again after a rewind (`rewind`). Only the bundled applier
receives events; the queue of an external client contains none.

**Missing LOB values** (`SchemaEvent.lobs`) belong to a later transaction with the same commit SCN,
if that changes anything else. A client that has received such an event and then finds nothing more
ready concludes that there is no such transaction. So the event is not sent before all transactions
of its commit SCN are in the queue (`pass_scn`).

**Definitions from before the start** (`SchemaEvent.past`) are not needed by a restart: they do not
hold the checkpoint back, and a queue that contains nothing else counts as empty.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.transactions.schema_event import SchemaEvent

EVENT_BYTES: Final = 4096
"""Approximate memory of a row event while it waits for the applier."""


class _Placed(NamedTuple):
    """An event, with the number of transactions that were put into the queue before it."""

    event: SchemaEvent
    place: int


class QueuedEvents:
    """The events of one queue, which holds the lock.

    Args:
        rows_max: maximum number of row events that wait for confirmation before the next one must
            wait; a stopped table can have any number of them.
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
        """Return whether another event can be put."""
        return not event.is_of_rows or self._rows < self._rows_max

    def put(self, event: SchemaEvent, place: int) -> None:
        """Append an event.

        Args:
            place: the number of transactions that were put before it.
        """
        self._ready.append(_Placed(event, place))
        self._rows += event.is_of_rows

    def pass_scn(self, scn: int) -> None:
        """Record that every transaction that commits at or before this SCN was put."""
        self._passed_scn = max(self._passed_scn, scn)

    def abandon(self, scn: int) -> None:
        """Record that other redo replaces the redo from this SCN on."""
        self._passed_scn = min(self._passed_scn, scn - 1)

    def ahead(self, transmitted: int) -> int | None:
        """Return the number of transactions before the next event; None if no event waits.

        Args:
            transmitted: the number of transactions that were taken whole.
        """
        return self._ready[0].place - transmitted if self._ready else None

    def is_due(self, transmitted: int) -> bool:
        """Return whether the next event can be taken now."""
        if self.ahead(transmitted) != 0:
            return False
        event = self._ready[0].event
        return not event.lobs or event.commit_scn <= self._passed_scn

    def is_in_the_way(self, transmitted: int) -> bool:
        """Return whether the next event precedes the next transaction, and is not due yet."""
        return self.ahead(transmitted) == 0 and not self.is_due(transmitted)

    def take(self) -> SchemaEvent:
        """Take the next event."""
        placed = self._ready.popleft()
        self._sent.append(placed)
        return placed.event

    def confirms(self, scn: int) -> bool:
        """Return whether `confirm(scn)` would drop an event that a restart needs."""
        return any(True for _ in self._confirmed(scn))

    def confirm(self, scn: int) -> int:
        """Drop the taken events with this commit SCN or a lower one.

        Returns:
            The number of those that a restart would need.
        """
        count = 0
        while self._sent and self._sent[0].event.commit_scn <= scn:
            event = self._sent.popleft().event
            self._rows -= event.is_of_rows
            count += not event.past
        return count

    def rewind(self, scn: int) -> None:
        """Make the events after this commit SCN ready again."""
        while self._sent and self._sent[-1].event.commit_scn > scn:
            self._ready.appendleft(self._sent.pop())

    def lowest_begin_scn(self, confirming: int) -> int | None:
        """Return the lowest begin SCN of the unconfirmed events, or None.

        Args:
            confirming: events that `confirm(confirming)` would drop do not count.
        """
        return min((event.begin_scn for event in self._kept(confirming)), default=None)

    def lowest_commit_scn(self, confirming: int) -> int | None:
        """Return the lowest commit SCN of the unconfirmed events, as for `lowest_begin_scn`."""
        return next((event.commit_scn for event in self._kept(confirming)), None)

    @property
    def is_empty(self) -> bool:
        """Return whether there are no events that a restart needs."""
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
