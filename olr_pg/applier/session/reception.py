"""Groups received elements by table, and keeps changes until their Commit arrives.

The changes of a transaction whose Commit has not arrived wait in memory, or in the spool if they
are too large.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import structlog

from olr_pg.applier.batches.changes_by_table import STREAM
from olr_pg.applier.batches.spool import Spool, SpoolFiles
from olr_pg.applier.received.change_reading import MessageReader
from olr_pg.applier.settings import Consistency
from olr_pg.applier.statements.table_changes import Selection, by_name, join, row_changes
from olr_pg.applier.statements.table_changes import select as select_changes
from olr_pg.scalars import format_xid
from olr_pg.wire.elements import ElementCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from olr_pg.applier.received.change_reading import ReceivedChanges
    from olr_pg.applier.session.distribution import Distribution
    from olr_pg.applier.session.unconfirmed import Unconfirmed
    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.transactions.schema_event import SchemaEvent
    from olr_pg.wire.client import Elements

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
