"""The distribution of whole transactions, and of DDL in between, to the workers of the tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import structlog

from olr_pg.applier.batches.changes_by_table import STREAM, rows_of
from olr_pg.applier.statements.lost_marks import Marking
from olr_pg.scalars import format_xid

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from olr_pg.applier.batches.spool import Spool
    from olr_pg.applier.batches.worker_pool import Workers
    from olr_pg.applier.statements.table_changes import Selection
    from olr_pg.ordering.schema_events import SchemaEvents
    from olr_pg.transactions.schema_event import SchemaEvent

_log = structlog.get_logger(__name__)


class Distribution:
    """Hands out to the workers; a table's changes and events each in their order.

    Args:
        tables: whose events count.
        is_stream: all tables are one stream.
    """

    def __init__(
        self, workers: Workers, events: SchemaEvents, tables: Collection[str], *, is_stream: bool
    ) -> None:
        self._workers = workers
        self._events = events
        self._tables = tables
        self._is_stream = is_stream
        self._announced: dict[tuple[str, int, int], SchemaEvent] = {}
        self._along: dict[tuple[str, int, int], SchemaEvent] = {}

    def deliver(self, table: str, selection: Selection) -> None:
        """Hand changes of a table to its worker, and what happened to the table in between."""
        last = int(selection.commit_scn[-1])
        published = self._events.published()
        selection = self._with_lost(table, selection, published)
        for event in published:
            if table not in (event.table, STREAM) or event.due > last or self._goes_along(event):
                continue
            before = selection.commit_scn < np.uint64(event.due)
            if before.any():
                self._workers.deliver(table, selection.part(before))
                selection = selection.part(~before)
            self.announce([event])
        self._workers.deliver(table, selection)

    def deliver_spooled(self, spool: Spool) -> None:
        """Hand a whole spooled transaction to the workers of its tables."""
        _log.info("a spooled transaction is whole", xid=format_xid(spool.xid), bytes=spool.size)
        for table, spooled in spool.finish().items():
            published = self._events.published()
            for event in published:
                is_its = self._is_of(event, table, spooled.commit_scn, spooled.xid)
                if is_its and spooled.add_lost(event.table, event.lobs):
                    self._along[event.identity] = event
            self.announce(
                event
                for event in published
                if event.due <= spooled.commit_scn and table in (event.table, STREAM)
            )
            self._workers.of(table).deliver_spooled(table, spooled)

    def _with_lost(
        self, table: str, selection: Selection, published: Iterable[SchemaEvent]
    ) -> Selection:
        """Return the selection with the LOB values that are left out of its changes."""
        for event in published:
            if not event.lobs or table not in (event.table, STREAM):
                continue
            rows = rows_of(selection, event.table, event.commit_scn, event.xid)
            if len(rows):
                marking = Marking(event.table, event.lobs, len(rows))
                selection = marking.mark(selection, rows)
                self._along[event.identity] = event
        return selection

    @staticmethod
    def _is_of(event: SchemaEvent, table: str, commit_scn: int, xid: int) -> bool:
        """Tell whether it tells LOB values of a transaction."""
        is_of_table = table in (event.table, STREAM)
        return bool(event.lobs) and is_of_table and event.identity[1:] == (commit_scn, xid)

    def _goes_along(self, event: SchemaEvent) -> bool:
        """Tell whether it goes in with changes, not by itself."""
        return bool(event.lobs) and self._along.get(event.identity) is event

    def confirming(self, scn: int) -> None:
        """Drop what went in with changes: everything up to this SCN is durable."""
        if not self._along:
            return
        for identity, event in list(self._along.items()):
            if event.commit_scn <= scn:
                del self._along[identity]
                self._events.done(event)

    def announce_up_to(self, scn: int) -> None:
        """Announce events up to this SCN: every transaction before it has been delivered."""
        self.announce(event for event in self._events.published() if event.due <= scn)

    def announce(self, events: Iterable[SchemaEvent]) -> None:
        """Hand events to the workers of their tables, each once."""
        for event in events:
            known = self._announced.get(event.identity)
            # A fault that is published once more was done in between.
            is_news = known is None or (event.is_of_rows and known is not event)
            if event.table in self._tables and is_news and not self._goes_along(event):
                self._announced[event.identity] = event
                self._workers.of(STREAM if self._is_stream else event.table).announce(event)

    def forget(self) -> None:
        """Forget what was handed out and is not done: it is handed out again."""
        done = (event for event in self._events.published() if self._events.is_done(event))
        self._announced = {event.identity: event for event in done}
        self._along.clear()

    def forget_faults(self) -> None:
        """Forget which faults were announced that are done: a stopped table has any number."""
        known = {event.identity for event in self._events.published()}
        self._announced = {key: event for key, event in self._announced.items() if key in known}
