"""Distributes whole transactions, and the events between them, to the workers of their tables.

Transactions and events are passed on in the order in which they arrive. Only an event about missing
LOB values waits: its transaction's changes of the same table arrive later, and it is applied
together with them. If the transaction has no such changes, the event is applied alone, before any
later commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import structlog

from olr_pg.applier.batches.changes_by_table import STREAM, rows_of
from olr_pg.applier.statements.lost_value_marks import LostValueMarks
from olr_pg.scalars import MAX_SCN, format_xid

if TYPE_CHECKING:
    from collections.abc import Collection

    from olr_pg.applier.batches.spool import Spool
    from olr_pg.applier.batches.worker_pool import Workers
    from olr_pg.applier.statements.table_changes import Selection
    from olr_pg.transactions.schema_event import SchemaEvent

_log = structlog.get_logger(__name__)


class Distribution:
    """Passes changes and events to the workers, for each table in the right order.

    Args:
        tables: the replicated tables; events of other tables are ignored.
        is_stream: whether all tables form one stream.
    """

    def __init__(self, workers: Workers, tables: Collection[str], *, is_stream: bool) -> None:
        self._workers = workers
        self._tables = tables
        self._is_stream = is_stream
        self._lost: list[SchemaEvent] = []

    @property
    def waiting_scn(self) -> int | None:
        """The lowest commit SCN of the events that wait here; None if none waits."""
        return min((event.commit_scn for event in self._lost), default=None)

    def tell(self, event: SchemaEvent) -> None:
        """Process an event. All transactions before it must have been delivered.

        Raises:
            ConnectionAbortedError: the event concerns two tables, and their earlier changes cannot
                be applied because the workers have stopped. The session must end, and the server
                delivers the event again.
        """
        self.release(event.barrier)
        if event.table not in self._tables:
            return
        if event.lobs:
            self._lost.append(event)
            return
        if event.evolution.concerns_two and not event.past and not self._workers.finish():
            raise ConnectionAbortedError(
                "not all changes before a DDL that affects two tables are applied"
            )
        self._announce(event)

    def deliver(self, table: str, selection: Selection) -> None:
        """Give changes of a table to its worker, together with their missing LOB values."""
        for event in self._lost_of(table):
            rows = rows_of(selection, event.table, event.commit_scn, event.xid)
            if len(rows):
                selection = LostValueMarks(event.table, event.lobs, len(rows)).mark(selection, rows)
                self._lost.remove(event)
                continue
            before = selection.commit_scn <= np.uint64(event.commit_scn)
            if before.all():
                continue
            if before.any():
                self._workers.deliver(table, selection.part(before))
                selection = selection.part(~before)
            self._lost.remove(event)
            self._announce(event)
        self._workers.deliver(table, selection)

    def deliver_spooled(self, spool: Spool) -> None:
        """Give a whole spooled transaction to the workers of its tables."""
        _log.info(
            "a spooled transaction was received completely",
            xid=format_xid(spool.xid),
            bytes=spool.size,
        )
        for table, spooled in spool.finish().items():
            self.release(spooled.commit_scn)
            for event in self._lost_of(table):
                is_its = event.commit_scn == spooled.commit_scn and event.xid == spooled.xid
                if is_its and spooled.add_lost(event.table, event.lobs):
                    self._lost.remove(event)
            self._workers.of(table).deliver_spooled(table, spooled)

    def release(self, scn: int = MAX_SCN) -> None:
        """Pass on the waiting events with a commit SCN below `scn`. All changes before `scn` must
        have been delivered.
        """
        for event in [event for event in self._lost if event.commit_scn < scn]:
            self._lost.remove(event)
            self._announce(event)

    def forget(self) -> None:
        """Discard the waiting events, because the server delivers them again."""
        self._lost.clear()

    def _lost_of(self, table: str) -> list[SchemaEvent]:
        """Return the events that wait for changes of a table, in commit order."""
        return [event for event in self._lost if table in (event.table, STREAM)]

    def _announce(self, event: SchemaEvent) -> None:
        self._workers.of(STREAM if self._is_stream else event.table).deliver_event(event)
