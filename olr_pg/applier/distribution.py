"""Who gets what: the changes of whole transactions to their tables, and DDL in between."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import structlog

from olr_pg.applier.stream import STREAM
from olr_pg.scalars import format_xid

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from olr_pg.applier.changes import Selection
    from olr_pg.applier.schema_events import SchemaEvent, SchemaEvents
    from olr_pg.applier.spool import Spool
    from olr_pg.applier.workers import Workers

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

    def deliver(self, table: str, selection: Selection) -> None:
        """Hand changes of a table to its worker, and what happened to the table in between."""
        last = int(selection.commit_scn[-1])
        for event in self._events.published():
            if table not in (event.table, STREAM) or event.barrier > last:
                continue
            before = selection.commit_scn < np.uint64(event.barrier)
            if before.any():
                self._workers.deliver(table, selection.part(before))
                selection = selection.part(~before)
            self.announce([event])
        self._workers.deliver(table, selection)

    def deliver_spooled(self, spool: Spool) -> None:
        """Hand a whole spooled transaction to the workers of its tables."""
        _log.info("a spooled transaction is whole", xid=format_xid(spool.xid), bytes=spool.size)
        for table, spooled in spool.finish().items():
            self.announce(
                event
                for event in self._events.published()
                if event.barrier <= spooled.commit_scn and table in (event.table, STREAM)
            )
            self._workers.of(table).deliver_spooled(table, spooled)

    def announce_up_to(self, scn: int) -> None:
        """Every transaction that committed before this SCN has been delivered."""
        self.announce(event for event in self._events.published() if event.barrier <= scn)

    def announce(self, events: Iterable[SchemaEvent]) -> None:
        """Hand events to the workers of their tables, each once."""
        for event in events:
            known = self._announced.get(event.identity)
            # A fault that is published once more was done in between.
            is_news = known is None or (event.is_fault and known is not event)
            if event.table in self._tables and is_news:
                self._announced[event.identity] = event
                self._workers.of(STREAM if self._is_stream else event.table).announce(event)

    def forget(self) -> None:
        """What was handed out and is not done is handed out again."""
        done = (event for event in self._events.published() if self._events.is_done(event))
        self._announced = {event.identity: event for event in done}

    def forget_faults(self) -> None:
        """Forget which faults were announced that are done: a stopped table has any number."""
        known = {event.identity for event in self._events.published()}
        self._announced = {key: event for key, event in self._announced.items() if key in known}
