"""Groups received elements by table, and keeps changes until their Commit arrives.

The changes of a transaction whose Commit has not arrived wait in memory, or in the spool if they
are too large.

`Unconfirmed` counts the bytes of received changes that are not durable yet. The server keeps the
changes until they are confirmed.

`Distribution` distributes whole transactions, and the events between them, to the workers of their
tables. Transactions and events are passed on in the order in which they arrive. Only an event about
missing LOB values waits: its transaction's changes of the same table arrive later, and it is
applied together with them. If the transaction has no such changes, the event is applied alone,
before any later commit.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np
import structlog

from olr_pg.applier.batches.spool import Spool, SpoolFiles
from olr_pg.applier.received.change_reading import MessageReader, ReceivedChanges
from olr_pg.applier.settings import ApplierSettings, Consistency
from olr_pg.applier.statements.table_changes import (
    STREAM,
    LostValueMarks,
    Selection,
    by_name,
    join,
    row_changes,
    rows_of,
)
from olr_pg.applier.statements.table_changes import select as select_changes
from olr_pg.scalars import MAX_SCN, format_xid
from olr_pg.wire.elements import ElementCode
from olr_pg.wire.protocol import TRANSACTION_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    import numpy.typing as npt

    from olr_pg.applier.batches.worker import Workers
    from olr_pg.transactions.schema_event import SchemaEvent
    from olr_pg.wire.protocol import Elements


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
        """Process an event. All transactions before the event must have been delivered.

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


class Unconfirmed:
    """Counts unconfirmed bytes in the same way as the server. A transaction counts only after its
    Commit was received, because it cannot be confirmed earlier.

    Args:
        bytes_max: the limit of `is_too_much`.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._ended: deque[tuple[int, int]] = deque()
        self._bytes = 0
        self._open = 0

    @property
    def is_full(self) -> bool:
        """Whether the limit is exceeded, according to the last call of `is_too_much`;
        thread-safe.
        """
        return self._bytes > self._bytes_max

    def add(self, size: int) -> None:
        """Add the size of received messages."""
        self._open += size

    def end(self, transactions: int, last_scn: int) -> None:
        """Record that the Commits of transactions were received. `last_scn` is the last commit
        SCN.
        """
        size = self._open + transactions * TRANSACTION_BYTES
        self._ended.append((last_scn, size))
        self._bytes += size
        self._open = 0

    def is_too_much(self, pending_scn: int | None) -> bool:
        """Return whether the limit is exceeded. If so, the applier should request nothing more.

        Args:
            pending_scn: the lowest commit SCN that is not durable yet; None if all changes are
                durable.
        """
        while self._ended and (pending_scn is None or self._ended[0][0] < pending_scn):
            self._bytes -= self._ended.popleft()[1]
        return self._bytes > self._bytes_max

    def forget(self) -> None:
        """Reset the count, because the server delivers all these changes again."""
        self._ended.clear()
        self._bytes = self._open = 0


_log = structlog.get_logger(__name__)


class Reception:
    """Delivers the changes of transactions whose Commit was received, and keeps the changes of
    others.

    Args:
        unconfirmed: counts the received bytes.
        has_stopped: returns whether the workers have stopped, so that waiting is pointless.

    Attributes:
        open_scn: the commit SCN of the transaction that was received only partly; None if there is
            none.
        last_scn: the highest commit SCN received.
    """

    def __init__(
        self,
        settings: ApplierSettings,
        distribution: Distribution,
        unconfirmed: Unconfirmed,
        has_stopped: Callable[[], bool],
    ) -> None:
        self._settings = settings
        self._distribution = distribution
        self._unconfirmed = unconfirmed
        self._is_hopeless = has_stopped
        self._is_stream = settings.consistency is Consistency.TRANSACTION
        self._rows = MessageReader(settings.byte_order)
        self._tail: list[tuple[str, Selection]] = []
        self._tail_bytes = 0
        self._spools = SpoolFiles(settings.spool_directory, settings.spool_max)
        self._spool: Spool | None = None
        self.open_scn: int | None = None
        self.last_scn = 0

    def take(self, elements: Elements) -> None:
        """Process elements that were received together."""
        self._unconfirmed.add(elements.blob.size)
        for chunk in self._rows.feed(elements.blob):
            self._take_rows(chunk)

    def tell(self, event: SchemaEvent) -> None:
        """Process an event of a table, which arrives between two transactions."""
        self._distribution.tell(event)
        if not event.past:
            self.last_scn = max(self.last_scn, event.commit_scn)

    def forget(self, confirmed_scn: int) -> None:
        """Discard the kept changes, because the server delivers all unconfirmed changes again."""
        self._tail, self._tail_bytes, self._spool = [], 0, None
        self._rows.forget()
        self._unconfirmed.forget()
        self.open_scn = None
        self.last_scn = confirmed_scn

    def _take_rows(self, chunk: ReceivedChanges) -> None:
        elements, changes = chunk.changes, row_changes(chunk)
        commits = np.flatnonzero(elements.kind == ElementCode.COMMIT)
        first = int(commits[0]) if len(commits) else len(elements.kind)
        whole = int(commits[-1]) if len(commits) else -1
        if len(commits):
            self._unconfirmed.end(len(commits), int(elements.commit_scn[whole]))
        if self._spool is not None:
            # The changes before the first Commit belong to the transaction in the spool.
            for table, rows in self._by_name(chunk, changes[changes < first]):
                self._spool.add(table, select_changes(chunk, rows))
            changes = changes[changes > first]
            if len(commits):
                self._distribution.deliver_spooled(self._spool)
                self._spool = None
        delivered = self._tail if len(commits) else []
        if len(commits):
            self._tail, self._tail_bytes = [], 0
        for table, rows in self._by_name(chunk, changes):
            ready, rest = rows[rows < whole], rows[rows > whole]
            if len(ready):
                delivered.append((table, select_changes(chunk, ready)))
            if len(rest):
                self._keep_open(table, select_changes(chunk, rest))
        if self._tail_bytes > self._settings.spool_bytes:
            self._begin_spool()
        self.last_scn = int(elements.commit_scn[-1])
        self.open_scn = None if whole == len(elements.kind) - 1 else self.last_scn
        for table in dict.fromkeys(name for name, _ in delivered):
            parts = [part for name, part in delivered if name == table]
            self._distribution.deliver(table, join(parts))
        self._distribution.release(self.last_scn)

    def _by_name(
        self, chunk: ReceivedChanges, rows: npt.NDArray[np.int64]
    ) -> Iterator[tuple[str, npt.NDArray[np.int64]]]:
        """Group row changes by the name of their queue: their table, or the stream."""
        if not self._is_stream:
            yield from by_name(chunk, rows)
        elif len(rows):
            yield STREAM, rows

    def _keep_open(self, table: str, selection: Selection) -> None:
        """Keep changes of a transaction whose Commit has not arrived yet."""
        self._tail.append((table, selection))
        self._tail_bytes += selection.value_bytes()

    def _begin_spool(self) -> None:
        """Move the open transaction to the spool, because it is too large for memory."""
        spool = Spool(self._spools, self._settings.byte_order, self._is_hopeless)
        for table, selection in self._tail:
            spool.add(table, selection)
        self._tail, self._tail_bytes, self._spool = [], 0, spool
        _log.info("a large transaction is written to the spool", xid=format_xid(spool.xid))
