"""The decoding for one target: its tables, its ready queue, and its progress."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING

import structlog

from olr_pg.capture.capture_state import CaptureMonitor, CapturePhase, CaptureState
from olr_pg.decoding.filters import EVERYTHING, TargetView, report_idle
from olr_pg.decoding.left_out_report import report_left_out
from olr_pg.dictionary.table_list import would_name
from olr_pg.errors import OlrPgError
from olr_pg.observability.periodic import steady_time
from olr_pg.replicator.decoding_progress import DecodeProgress
from olr_pg.replicator.feed import Chosen, Feed
from olr_pg.server.queue import USUAL_BOUNDS, QueueBounds, ReadyQueue
from olr_pg.wire.element_plan import check_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from olr_pg.dictionary.model import Table
    from olr_pg.ordering.accounting import Accounting
    from olr_pg.replicator.decoder import Decoder
    from olr_pg.server.port_session import RecoveryPoint


_log = structlog.get_logger(__name__)


class Delivery:
    """A target of decoding; implements its port's `server.port_session.ReplicationSource`.

    Args:
        decoder: the decoder, which all targets share.
        name: the name of the target; empty if there is only one target.
        view: the form and the selection of row changes; its filters apply in addition to the
            decoder's.
        bounds: the limits of its ready queue.
        is_told: whether its client is the bundled applier, which receives events of tables.

    Attributes:
        view, is_told: see above.
        ends_with_table: whether the delivery ends with an error when changes of a table cannot be
            delivered any more, because the client receives no events; initially False. It must be
            set before the first session begins.
        drained: set when everything available was queued.
        failure: the error that ended the decoding for the last session, or prevented its start;
            None if there was none.
        progress: the progress of decoding for this target.
        monitor: the state of decoding for this target.
        told: called when something was added to the queue. It must be set before the first session
            begins.
        is_renewed: returns whether the bundled applier is ending, because the next one has other
            tables.
    """

    def __init__(
        self,
        decoder: Decoder,
        name: str = "",
        view: TargetView = EVERYTHING,
        bounds: QueueBounds = USUAL_BOUNDS,
        *,
        is_told: bool = False,
    ) -> None:
        self._decoder = decoder
        self.name = name
        self.view = view
        self._bounds = bounds
        self.is_told = is_told
        self.ends_with_table = False
        self.monitor = CaptureMonitor(steady_time)
        self.progress = DecodeProgress()
        self.drained = threading.Event()
        self.failure: OlrPgError | None = None
        self.told: Callable[[], None] = lambda: None
        self.is_renewed: Callable[[], bool] = lambda: False
        self._chosen: Chosen | None = None
        self._feed: Feed | None = None

    def tables(self, sql: str) -> tuple[Table, ...]:
        """Return the tables of a TableList query, in the form for this target.

        Raises:
            OlrPgError: 3xxx or 7xxx, the query fails; 1095 the filters leave no table.
        """
        snapshot, tables = self._decoder.logs.resolve(sql)
        return self.view.filters.chosen(tables, snapshot.database)

    def resolve(self, sql: str, is_abandoned: Callable[[], bool] | None = None) -> None:
        """Subscribe to the tables of a TableList query.

        Args:
            is_abandoned: see `server.port_session.ReplicationSource.resolve`.

        Raises:
            OlrPgError: as for `tables`; 4006 a name is too long for the protocol.
        """
        snapshot, tables = self._decoder.logs.resolve(sql, is_abandoned)
        report_idle(self.view.filters, snapshot.tables, **self.named)
        report_left_out(self.view.filters.chosen(tables, snapshot.database))
        tables = tuple(t for t in tables if self.view.filters.wants(t))
        # Check this now: an error here refuses only this client, but an error in the run would stop
        # all clients.
        check_tables(tables)
        self._chosen = Chosen(snapshot, tables, partial(would_name, sql))
        _log.info("subscribed", tables=len(tables), **self.named)

    def start(self, scn: int, image: str | None = None, *, resumed: bool = False) -> ReadyQueue:
        """Begin to decode all transactions that began at `scn` or later; 0 means to begin with the
        oldest log.

        Args:
            image, resumed: see `server.port_session.ReplicationSource.start`.

        Raises:
            OlrPgError: 2010 the log with `scn` is missing; 2xxx the logs cannot be used.
        """
        assert self._chosen is not None  # the protocol requires TableList first
        queue = ReadyQueue(*self._bounds, self.told)
        saved = scn if resumed else -1
        feed = Feed(self, self._chosen, queue, scn, scn, resumed=resumed, saved_scn=saved)
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
        """See `server.port_session.ReplicationSource.open_scn`."""
        assert self._feed is not None
        return self._feed.open_scn

    @property
    def begun_scn(self) -> int:
        """All transactions that are not queued yet began at this SCN or later; 0 if there is no
        session.
        """
        feed = self._feed
        return 0 if feed is None else feed.open_scn

    def reach_scn(self) -> int:
        """See `server.port_session.ReplicationSource.reach_scn`."""
        return self._decoder.logs.reach_scn

    def recovery_points(self) -> Sequence[RecoveryPoint]:
        """See `server.port_session.ReplicationSource.recovery_points`.

        Points beyond the queued transactions are left out.
        """
        recovery, feed = self._decoder.recovery, self._feed
        if recovery is None or feed is None:
            return ()
        points = recovery.points(self.name)
        return [point for point in points if point.commit_scn <= feed.passed_scn]

    def saved(self, scn: int, image: str | None) -> None:
        """See `server.port_session.ReplicationSource.saved`."""
        if self._feed is not None:
            self._feed.saved_scn = max(self._feed.saved_scn, scn)
        if self._decoder.recovery is not None:
            self._decoder.recovery.saved(self.name, scn, image)

    def stop(self) -> None:
        """Stop decoding for a client that has disconnected."""
        if self._feed is not None:
            self._decoder.leave(self._feed)
            if self._decoder.recovery is not None:
                self._decoder.recovery.leave(self.name)
            if self._bounds.backlog is not None:
                self._bounds.backlog.clear()
        self._feed = self._chosen = None
        if self.state.phase is not CapturePhase.STOPPED:
            self.monitor.enter(CapturePhase.WAITING_FOR_CLIENT)

    @property
    def state(self) -> CaptureState:
        """The state of decoding for this target, and the reason if it waits; thread-safe."""
        return self.monitor.state

    @property
    def named(self) -> dict[str, str]:
        """The target's name as a field of log events; empty if there is only one target."""
        return {"target": self.name} if self.name else {}

    def accounting(self) -> Accounting | None:
        """Return the account of decoding up to the last complete log; None before the first
        complete log.
        """
        return self.progress.accounting
