"""Publishes the events of tables, which are DDL and faults, at the right position between
transactions.

The module merges two streams of events, each in commit order: dictionary changes
(`dictionary_follower`) and changes that could not be decoded (`transactions.row_faults`). Each
event has a barrier, which is a commit SCN. The event is published after the transactions that
commit below the barrier, and before all others.

- DDL comes after the transactions that have the same commit SCN. DDL before the SCN at which
  decoding starts is `past`: it only defines the tables, and is not applied.
- A change that cannot be decoded comes before the transactions with the same commit SCN. So the
  table stops before its later changes are applied. Missing LOB values come before these
  transactions too, because they belong to one of them.

If DDL adds a column with a default such as ``seq.NEXTVAL``, Oracle updates the existing rows in the
same transaction (dictionary §10). These updates are before the commit of the DDL, so they name a
column that the table does not have at the SCN of the updates. Such updates are no fault: the event
of the DDL already contains the new values (`Evolution.filled`), and stops the table if it has rows.
"""

from __future__ import annotations

from collections import Counter, deque
from itertools import islice
from typing import TYPE_CHECKING

import structlog

from olr_pg.dictionary.evolution import OF_TWO, Evolution, filled_rows, unknown_half
from olr_pg.errors import Code
from olr_pg.transactions.schema_event import SchemaEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from olr_pg.decoding.dictionary_follower import DictionaryFollower
    from olr_pg.errors import OlrPgError
    from olr_pg.transactions.row_fault import RowFault

_log = structlog.get_logger(__name__)


class FaultReporter:
    """Logs faults: the first fault of each table in full, with an incident file. After the first
    fault, the reporter logs only the second, fourth, eighth fault and so on, with the number of
    faults so far.

    Args:
        explain: adds an explanation to an error.
    """

    def __init__(self, explain: Callable[[OlrPgError], OlrPgError]) -> None:
        self._explain = explain
        self.first: dict[object, OlrPgError] = {}
        self._counts: Counter[object] = Counter()

    def report(self, fault: RowFault) -> RowFault:
        """Log a fault; return it with the explanation."""
        table = fault.error.where["table"]
        self._counts[table] += 1
        count = self._counts[table]
        if count > 1:
            if count.bit_count() == 1:
                _log.warning(
                    "could not decode more changes of a table",
                    transactions=count,
                    last=str(fault.error),
                )
            return fault
        error = self.first[table] = self._explain(fault.error)
        _log.error("could not decode a change", reason=str(error), action=error.action)
        return fault._replace(error=error)


def filled_by_ddl(fault: RowFault, events: Iterable[SchemaEvent]) -> OlrPgError | None:
    """Return the error of a table whose existing rows got the default of a new column, if the fault
    consists of these updates. Return None for other faults.

    Args:
        events: DDL, including the DDL of the fault's transaction.
    """
    if fault.error.code != Code.ROW_DOES_NOT_FIT_TABLE:
        return None
    table = str(fault.error.where["table"])
    identity = table, fault.commit_scn, fault.xid
    for event in events:
        if event.identity == identity and (step := event.evolution.filled):
            return filled_rows(step, table)
    return None


class EventFeed:
    """The events of one run of decoding that are not published yet.

    Args:
        publish: publishes an event of a table of the subscription; returns False if it was
            cancelled.
        reporter: logs every fault.
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
        """Publish the changes of the dictionary that were committed before `scn`. They only define
        tables.
        """
        for event in self._follower.events:
            if event.commit_scn >= scn:
                break
            self._published += 1
            self._publish(event._replace(past=True))

    def add(self, faults: Iterable[RowFault]) -> None:
        """Add faults and missing LOB values, in commit order."""
        events = self._follower.events
        self._faults.extend(
            _as_event(fault if fault.lobs else self._reporter.report(fault))
            for fault in faults
            if filled_by_ddl(fault, events) is None
        )

    def publish_before(self, scn: int) -> bool:
        """Publish the events before a transaction that commits at `scn`.

        Returns: False if a publication was cancelled.
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
        """The commit SCN from which on transactions must wait for the next event; None if there is
        no event.
        """
        event = self._next()
        return None if event is None else event.barrier

    def begins(self) -> list[int]:
        """Return the begin SCNs of unpublished events."""
        waiting = self._follower.events[self._published :]
        return [event.begin_scn for event in (*waiting, *self._faults)]

    def _next(self) -> SchemaEvent | None:
        heads = [*islice(self._faults, 1), *self._follower.events[self._published :][:1]]
        # If the barriers are equal, order by commit SCN: the ledger skips an event if it already
        # contains a later commit.
        return min(heads, key=lambda event: (event.barrier, event.commit_scn), default=None)

    def _publish(self, event: SchemaEvent) -> bool:
        if event.table not in self._follower.names:
            return True
        if event.evolution.concerns_two:
            event = checked_halves(event, self._follower.replicated.__contains__)
        return self._publish_to(event)


def checked_halves(event: SchemaEvent, is_replicated: Callable[[str], bool]) -> SchemaEvent:
    """Return the event. If a step concerns a second table that is not replicated, return an event
    that stops the table instead.

    Args:
        is_replicated: returns whether a table of this name is replicated and its rows are known.
    """
    for step in event.evolution.steps:
        if step.kind in OF_TWO and not is_replicated(step.table):
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
