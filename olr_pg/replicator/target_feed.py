"""A target's share of decoding: its tables, its ready queue, how far it has got."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING

import structlog

from olr_pg.capture.capture_state import CaptureMonitor, CapturePhase, CaptureState
from olr_pg.decoding.filters import NO_FILTERS, Filters, report_idle
from olr_pg.decoding.left_out_report import report_left_out
from olr_pg.decoding.target_view import TargetView
from olr_pg.dictionary.table_list import would_name
from olr_pg.errors import OlrPgError
from olr_pg.observability.steady_time import steady_time
from olr_pg.replicator.decoding_progress import DecodeProgress
from olr_pg.replicator.feed import Chosen, Feed
from olr_pg.server.queue import BYTES_MAX, TRANSACTIONS_MAX, ReadyQueue
from olr_pg.wire.chunks import CHUNK_BYTES
from olr_pg.wire.element_plan import check_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from olr_pg.dictionary.model import Table
    from olr_pg.ordering.accounting import Accounting
    from olr_pg.replicator.decoder import Decoder
    from olr_pg.server.backlog import Backlog
    from olr_pg.server.replication_source import RecoveryPoint


_log = structlog.get_logger(__name__)


class Delivery:
    """A target, as its port's `server.replication_source.ReplicationSource`.

    Args:
        decoder: decodes for it, and for others.
        name: of the target; empty where there is only one.
        big_endian: byte order of the output.
        chunk_bytes: bytes of a LOB value in one Chunk element.
        raw_xml: binary XML goes out as it is stored.
        transactions_max, bytes_max: the bound of its ready queue.
        backlog: where ready transactions wait beyond that; None: decoding waits instead.
        filters: what of the decoder's tables and transactions it does not get.
        is_told: whether its client is the bundled applier, which is told what happens to tables.
        ends_with_table: whether a table that ends without anyone being told ends the delivery.

    Attributes:
        drained: set once everything that is there has been queued.
        failure: what ended the last session's decoding, or kept it from starting, if anything did.
        progress: how far decoding for it has come.
        monitor: what decoding for it is doing.
        told: called when the queue of a session has got something; set before the first session.
    """

    def __init__(
        self,
        decoder: Decoder,
        name: str = "",
        *,
        big_endian: bool = False,
        chunk_bytes: int = CHUNK_BYTES,
        raw_xml: bool = False,
        transactions_max: int = TRANSACTIONS_MAX,
        bytes_max: int = BYTES_MAX,
        backlog: Backlog | None = None,
        filters: Filters = NO_FILTERS,
        is_told: bool = False,
        ends_with_table: bool = False,
    ) -> None:
        self._decoder = decoder
        self.name = name
        self.view = TargetView(big_endian, chunk_bytes, None, filters, raw_xml)
        self._bounds = (transactions_max, bytes_max)
        self._backlog = backlog
        self.is_told = is_told
        self.ends_with_table = ends_with_table
        self.monitor = CaptureMonitor(steady_time)
        self.progress = DecodeProgress()
        self.drained = threading.Event()
        self.failure: OlrPgError | None = None
        self.told: Callable[[], None] = lambda: None
        self._chosen: Chosen | None = None
        self._feed: Feed | None = None

    def tables(self, sql: str) -> tuple[Table, ...]:
        """Find the tables of a TableList query, as this target gets them.

        Raises:
            OlrPgError: 3xxx or 7xxx, why it cannot be done; 1095 nothing is left.
        """
        snapshot, tables = self._decoder.logs.resolve(sql)
        return self.view.filters.chosen(tables, snapshot.database)

    def resolve(self, sql: str, is_abandoned: Callable[[], bool] | None = None) -> None:
        """Subscribe to the tables of a TableList query.

        Args:
            is_abandoned: see `server.replication_source.ReplicationSource.resolve`.

        Raises:
            OlrPgError: as `tables`; 4006 a name does not fit the protocol.
        """
        snapshot, tables = self._decoder.logs.resolve(sql, is_abandoned)
        report_idle(self.view.filters, snapshot.tables, **self.named)
        report_left_out(self.view.filters.chosen(tables, snapshot.database))
        tables = tuple(t for t in tables if self.view.filters.wants(t))
        # Here only this client is refused; a run would fail for all that it decodes for.
        check_tables(tables)
        self._chosen = Chosen(snapshot, tables, partial(would_name, sql))
        _log.info("subscribed", tables=len(tables), **self.named)

    def start(self, scn: int, image: str | None = None, *, resumed: bool = False) -> ReadyQueue:
        """Begin to decode every transaction that began at or after `scn`; 0 is the oldest log.

        Args:
            image, resumed: see `server.replication_source.ReplicationSource.start`.

        Raises:
            OlrPgError: 2010 the log that holds `scn` is not there; 2xxx the logs cannot be used.
        """
        assert self._chosen is not None  # the protocol asks for TableList first
        queue = ReadyQueue(*self._bounds, self._backlog, self.told)
        feed = Feed(self, self._chosen, queue, scn, scn, resumed=resumed)
        self.drained.clear()
        self.failure = None
        try:
            self._decoder.start(feed, image)
        except OlrPgError as error:
            self.failure = error
            self.monitor.enter(CapturePhase.STOPPED, error)
            raise
        self._feed = feed
        return queue

    def open_scn(self) -> int:
        """See `server.replication_source.ReplicationSource.open_scn`."""
        assert self._feed is not None
        return self._feed.open_scn

    @property
    def begun_scn(self) -> int:
        """No transaction that its client was not given yet began before it; 0 nobody knows."""
        feed = self._feed
        return 0 if feed is None else feed.open_scn

    def reach_scn(self) -> int:
        """See `server.replication_source.ReplicationSource.reach_scn`."""
        return self._decoder.logs.reach_scn

    def recovery_points(self) -> Sequence[RecoveryPoint]:
        """See `server.replication_source.ReplicationSource.recovery_points`.

        None of them passes what the queue was given.
        """
        recovery, feed = self._decoder.recovery, self._feed
        if recovery is None or feed is None:
            return ()
        points = recovery.points(self.name)
        return [point for point in points if point.commit_scn <= feed.passed_scn]

    def saved(self, scn: int, image: str | None) -> None:
        """See `server.replication_source.ReplicationSource.saved`."""
        if self._decoder.recovery is not None:
            self._decoder.recovery.saved(self.name, scn, image)

    def stop(self) -> None:
        """End the session of a client that has left: nothing is decoded for it any more."""
        if self._feed is not None:
            self._decoder.leave(self._feed)
            if self._decoder.recovery is not None:
                self._decoder.recovery.leave(self.name)
            if self._backlog is not None:
                self._backlog.clear()
        self._feed = self._chosen = None
        if self.state.phase is not CapturePhase.STOPPED:
            self.monitor.enter(CapturePhase.WAITING_FOR_CLIENT)

    @property
    def state(self) -> CaptureState:
        """The state of decoding for it, and why it waits; may be asked from any thread."""
        return self.monitor.state

    @property
    def named(self) -> dict[str, str]:
        """For log lines: which target it is, where there are several."""
        return {"target": self.name} if self.name else {}

    def accounting(self) -> Accounting | None:
        """Give the account of decoding for it, up to the last whole log; None before the first."""
        return self.progress.accounting
