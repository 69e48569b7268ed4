"""Events of tables, which are in the ready queue between the transactions: DDL, and changes that
cannot be decoded.

The position of an event is the number of transactions that were put into the queue before it. The
event can be taken when this number of transactions is completely transmitted. After it was taken,
the event behaves like a transaction: it waits for its confirmation (`confirm`), and is sent again
after a rewind (`rewind`). Only the bundled applier receives events; the queue of an external client
contains none.

**Missing LOB values** (`SchemaEvent.lobs`): an event with missing values precedes the transaction
that contains the changes with these values. If that transaction has no other changes, it is not
delivered at all. If nothing more is ready after the event, the client concludes that the
transaction is not delivered. So the event is not sent before all transactions with its commit SCN
are in the queue (`pass_scn`).

**Changes of definitions before the start** (`SchemaEvent.past`) are not needed for a restart. Such
changes do not keep the checkpoint at a lower SCN, and a queue that contains nothing else counts as
empty.
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
    """The events of one queue. The queue calls the methods with its lock held.

    Args:
        rows_max: maximum number of unconfirmed events about row changes. At this limit, the next
            fault must wait, because a stopped table can have any number of faults.
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
        """Record that all transactions that commit at or before this SCN were put."""
        self._passed_scn = max(self._passed_scn, scn)

    def abandon(self, scn: int) -> None:
        """Record that a RESETLOGS has orphaned the redo from this SCN on; other redo replaces
        it.
        """
        self._passed_scn = min(self._passed_scn, scn - 1)

    def ahead(self, transmitted: int) -> int | None:
        """Return the number of transactions before the next event; None if no event waits.

        Args:
            transmitted: the number of transactions that were taken completely.
        """
        return self._ready[0].place - transmitted if self._ready else None

    def is_due(self, transmitted: int) -> bool:
        """Return whether the next event can be taken now."""
        if self.ahead(transmitted) != 0:
            return False
        event = self._ready[0].event
        return not event.lobs or event.commit_scn <= self._passed_scn

    def is_in_the_way(self, transmitted: int) -> bool:
        """Return whether the next event precedes the next transaction, and cannot be taken yet."""
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
        """Drop the taken events with a commit SCN up to `scn`.

        Returns:
            The number of dropped events that a restart would need.
        """
        count = 0
        while self._sent and self._sent[0].event.commit_scn <= scn:
            event = self._sent.popleft().event
            self._rows -= event.is_of_rows
            count += not event.past
        return count

    def rewind(self, scn: int) -> None:
        """Make the taken events with a commit SCN above `scn` ready again."""
        while self._sent and self._sent[-1].event.commit_scn > scn:
            self._ready.appendleft(self._sent.pop())

    def lowest_begin_scn(self, confirming: int) -> int | None:
        """Return the lowest begin SCN of the unconfirmed events; None if there are none.

        Args:
            confirming: the events that `confirm(confirming)` would drop do not count.
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
