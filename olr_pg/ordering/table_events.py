"""Events of tables, put between the transactions that come before and behind them.

Two streams of events meet here, each in commit order: those of the dictionary
(`dictionary_follower`) and what could not be decoded (`transactions.row_faults`). An event is
published when every transaction in front of its barrier is queued, and none behind it.

- A DDL comes behind the transactions of its own commit SCN. Those from before the SCN that decoding
  starts at are `past`: they only tell the tables' definitions.
- What cannot be decoded comes before every transaction of its commit SCN, so that the table stops
  in front of whatever may follow from it; and so do LOB values that are left out, which belong to
  a transaction behind them.
"""

from __future__ import annotations

from collections import Counter, deque
from itertools import islice
from typing import TYPE_CHECKING

import structlog

from olr_pg.dictionary.evolution import RENAMES, Evolution, unknown_half
from olr_pg.transactions.schema_event import SchemaEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from olr_pg.decoding.dictionary_follower import DictionaryFollower
    from olr_pg.errors import OlrPgError
    from olr_pg.transactions.row_fault import RowFault

_log = structlog.get_logger(__name__)


class FaultReporter:
    """Reports what cannot be decoded: of each table the first in full, with an incident file.

    Of the others the second, the fourth, the eighth and so on, with their number.

    Args:
        explain: adds to an error what explains it.
    """

    def __init__(self, explain: Callable[[OlrPgError], OlrPgError]) -> None:
        self._explain = explain
        self.first: dict[object, OlrPgError] = {}
        self._counts: Counter[object] = Counter()

    def report(self, fault: RowFault) -> RowFault:
        """Log a fault; the fault with what explains it."""
        table = fault.error.where["table"]
        self._counts[table] += 1
        count = self._counts[table]
        if count > 1:
            if count.bit_count() == 1:
                _log.warning("changes cannot be decoded", transactions=count, last=str(fault.error))
            return fault
        error = self.first[table] = self._explain(fault.error)
        _log.error("a change cannot be decoded", reason=str(error), action=error.action)
        return fault._replace(error=error)


class EventFeed:
    """The events of one run of decoding.

    Args:
        publish: publishes one of a table of the subscription; False: it was given up.
        reporter: is told of every fault.
    """

    def __init__(
        self,
        follower: DictionaryFollower,
        publish: Callable[[SchemaEvent], bool],
        reporter: FaultReporter,
    ) -> None:
        self._follower = follower
        self._publish_to = publish
        self._reporter = reporter
        self._published = 0
        self._faults: deque[SchemaEvent] = deque()

    def publish_past(self, scn: int) -> None:
        """Publish what the dictionary went through before `scn`: it only tells definitions."""
        for event in self._follower.events:
            if event.commit_scn >= scn:
                break
            self._published += 1
            self._publish(event._replace(past=True))

    def add(self, faults: Iterable[RowFault]) -> None:
        """Take what could not be decoded, and LOB values that are left out, in commit order."""
        self._faults.extend(
            _as_event(fault if fault.lobs else self._reporter.report(fault)) for fault in faults
        )

    def publish_before(self, scn: int) -> bool:
        """Publish what comes before a transaction that commits at `scn`.

        Returns:
            False where that was given up.
        """
        while (event := self._next()) is not None and event.barrier <= scn:
            if not self._publish(event):
                return False
            if event.is_of_rows:
                self._faults.popleft()
            else:
                self._published += 1
        return True

    @property
    def barrier(self) -> int | None:
        """The lowest commit SCN that has to wait for the next event; None where there is none."""
        event = self._next()
        return None if event is None else event.barrier

    def begins(self) -> list[int]:
        """Return the begin SCNs of what is not published yet."""
        waiting = self._follower.events[self._published :]
        return [event.begin_scn for event in (*waiting, *self._faults)]

    def _next(self) -> SchemaEvent | None:
        heads = [*islice(self._faults, 1), *self._follower.events[self._published :][:1]]
        return min(heads, key=lambda event: event.barrier, default=None)

    def _publish(self, event: SchemaEvent) -> bool:
        if event.table not in self._follower.names:
            return True
        if event.evolution.is_rename:
            event = checked_rename(event, self._follower.replicated.__contains__)
        return self._publish_to(event)


def checked_rename(event: SchemaEvent, is_replicated: Callable[[str], bool]) -> SchemaEvent:
    """Return an event, which stops its table where the other half of a rename is unknown.

    Args:
        is_replicated: whether a table of that name is replicated, and its rows are known.
    """
    for step in event.evolution.steps:
        if step.kind in RENAMES and not is_replicated(step.table):
            error = unknown_half(step, event.table, event.statement)
            return event._replace(evolution=Evolution((), error))
    return event


def _as_event(fault: RowFault) -> SchemaEvent:
    evolution = Evolution((), fault.error)
    return SchemaEvent(
        str(fault.error.where["table"]),
        fault.commit_scn,
        fault.xid,
        fault.begin_scn,
        Evolution() if fault.lobs else evolution,
        None,
        is_fault=not fault.lobs,
        lobs=fault.lobs,
        view=fault.view,
    )
