"""A target's share of decoding: its tables, its ready queue, how far it has got."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import structlog

from olr_pg.applier.schema_events import SchemaEvent, SchemaEvents
from olr_pg.capture.state import CaptureMonitor, CapturePhase, CaptureState
from olr_pg.dictionary.evolution import UNKNOWN_DDL
from olr_pg.dictionary.table_list import would_name
from olr_pg.errors import OlrPgError
from olr_pg.replicator.filters import NO_FILTERS, Filters
from olr_pg.replicator.losses import report_idle, report_left_out
from olr_pg.replicator.progress import DecodeProgress
from olr_pg.replicator.recovery import Need
from olr_pg.replicator.view import TargetView
from olr_pg.server.queue import BYTES_MAX, TRANSACTIONS_MAX, ReadyQueue
from olr_pg.server.ready import CommitPosition
from olr_pg.wire.chunks import CHUNK_BYTES
from olr_pg.wire.plan import check_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from olr_pg.dictionary.model import Snapshot, Table
    from olr_pg.replicator.accounting import Accounting
    from olr_pg.replicator.decoder import Decoder
    from olr_pg.server.backlog import Backlog
    from olr_pg.server.ready import CommitKey, ReadyRun
    from olr_pg.server.source import RecoveryPoint

_FAULT_BYTES: Final = 4096
"""What a fault takes while it waits for the applier, about."""

_log = structlog.get_logger(__name__)


class Chosen(NamedTuple):
    """What a TableList names.

    Attributes:
        snapshot: the dictionary that the tables are from.
        tables: as they are decoded: the target's own filter may leave columns out of them.
        would_name: whether it would name a table of that owner and name, if there were one.
    """

    snapshot: Snapshot
    tables: tuple[Table, ...]
    would_name: Callable[[str, str], bool]


@dataclass(eq=False)
class Feed:
    """One session of a target: from its StartSCN until its client leaves.

    It may be fed by one run of decoding after the other. What each of them decodes is the same, in
    the same order, so that `wants` tells what the queue has not been given yet.

    Attributes:
        start_scn: transactions that began before it are not delivered.
        resumed: whether it is where the target's checkpoint says.
        open_scn: no transaction that the queue was not given yet began before it.
        last: where the last transaction that the queue was given committed.
        passed_scn: of what began at `start_scn` or later, everything that commits at this SCN or
            before was given to the queue, or is confirmed.
    """

    delivery: Delivery
    chosen: Chosen
    queue: ReadyQueue
    start_scn: int
    open_scn: int
    last: CommitKey | None = None
    passed_scn: int = -1
    resumed: bool = False

    @property
    def names(self) -> frozenset[str]:
        """``OWNER.NAME`` of its tables."""
        return frozenset(table.full_name for table in self.chosen.tables)

    @property
    def need(self) -> Need:
        """What it lacks."""
        objects = frozenset(table.obj for table in self.chosen.tables)
        return Need(self.open_scn, self.passed_scn, objects)

    def view(self, tables: Sequence[Table]) -> TargetView:
        """What it gets of a subscription to `tables`."""
        objects = self.need.objects
        everything = objects.issuperset(table.obj for table in tables)
        return replace(self.delivery.view, objects=None if everything else objects)

    def wanted(self, run: ReadyRun) -> ReadyRun:
        """Those of a run of its view that it lacks."""
        if self.last is not None:
            _, run = run.cut(run.count_up_to_key(self.last))
        return run.where(run.begin_scn >= np.uint64(self.start_scn))

    def offer(self, run: ReadyRun) -> int:
        """Put transactions into the queue until it is full; how many it took."""
        taken = self.queue.offer(run)
        if taken:
            self.last = run.cut(taken)[0].last_key
        return taken

    def note_open(self, scn: int) -> None:
        """No transaction that may still come began before `scn`."""
        self.open_scn = max(self.open_scn, scn)

    def note_passed(self, scn: int) -> None:
        """It has been given all that commits at this SCN or before."""
        self.passed_scn = max(self.passed_scn, scn)

    def abandon(self, scn: int) -> None:
        """The redo from `scn` on was given up by a RESETLOGS: the new one counts on from there."""
        self.open_scn = min(self.open_scn, scn)
        self.passed_scn = min(self.passed_scn, scn - 1)
        if self.last is not None and self.last[0] >= scn:
            self.last = scn, CommitPosition(0, 0, 0, 0)

    def publish(self, event: SchemaEvent) -> OlrPgError | None:
        """Tell what happened to a table; the error that ends the delivery for it, if any."""
        if event.table not in self.names:
            return None
        if not event.is_fault:
            try:
                evolution, definition = self.delivery.view.filters.shape_evolution(
                    event.evolution, event.definition
                )
            except OlrPgError as unfit:
                return unfit
            past = event.commit_scn < self.start_scn
            event = event._replace(past=past, evolution=evolution, definition=definition)
        elif event.begin_scn < self.start_scn or event.commit_scn < (self.last or (0,))[0]:
            return None  # its transaction is not delivered, or was passed already
        self.delivery.schema_events.publish(event)
        error = event.evolution.error
        if error is None or not self.delivery.ends_with_table:
            return None
        return error if event.is_fault or error.code == UNKNOWN_DDL else None

    def await_room_for_fault(self, timeout: float) -> bool:
        """Wait until another fault may be published; whether it may, after so many seconds.

        As many may wait as transactions may.
        """
        transactions_max, bytes_max = self.queue.bounds
        faults_max = max(1, min(transactions_max, bytes_max // _FAULT_BYTES))
        return self.queue.closed or self.delivery.schema_events.await_room(faults_max, timeout)

    def fail(self, error: OlrPgError) -> None:
        """Nothing more comes."""
        self.delivery.failure = error
        self.delivery.monitor.enter(CapturePhase.STOPPED, error)
        self.queue.fail(error)


class Delivery:
    """A target, as its port's `server.source.Source`.

    Args:
        decoder: decodes for it, and for others.
        name: of the target; empty where there is only one.
        big_endian: byte order of the output.
        chunk_bytes: bytes of a LOB value in one Chunk element.
        transactions_max, bytes_max: the bound of its ready queue.
        backlog: where ready transactions wait beyond that; None: decoding waits instead.
        filters: what of the decoder's tables and transactions it does not get.
        schema_events: where changes of definitions are published to, for a bundled applier.
        ends_with_table: whether a table that ends without anyone being told ends the delivery.

    Attributes:
        drained: set once everything that is there has been queued.
        failure: what ended the last session's decoding, or kept it from starting, if anything did.
        progress: how far decoding for it has come.
        monitor: what decoding for it is doing.
    """

    def __init__(
        self,
        decoder: Decoder,
        name: str = "",
        *,
        big_endian: bool = False,
        chunk_bytes: int = CHUNK_BYTES,
        transactions_max: int = TRANSACTIONS_MAX,
        bytes_max: int = BYTES_MAX,
        backlog: Backlog | None = None,
        filters: Filters = NO_FILTERS,
        schema_events: SchemaEvents | None = None,
        ends_with_table: bool = False,
    ) -> None:
        self._decoder = decoder
        self.name = name
        self.view = TargetView(big_endian, chunk_bytes, None, filters)
        self._bounds = (transactions_max, bytes_max)
        self._backlog = backlog
        self.schema_events = schema_events or SchemaEvents()
        self.ends_with_table = ends_with_table
        self.monitor = CaptureMonitor(time.time)
        self.progress = DecodeProgress()
        self.drained = threading.Event()
        self.failure: OlrPgError | None = None
        self._chosen: Chosen | None = None
        self._feed: Feed | None = None

    def tables(self, sql: str) -> tuple[Table, ...]:
        """The tables of a TableList query, as this target gets them.

        Raises:
            OlrPgError: 3xxx or 7xxx, why it cannot be done; 1095 nothing is left.
        """
        return self.view.filters.chosen(self._decoder.resolve(sql)[1])

    def resolve(self, sql: str) -> None:
        """Subscribe to the tables of a TableList query.

        Raises:
            OlrPgError: as `tables`; 4006 a name does not fit the protocol.
        """
        snapshot, tables = self._decoder.resolve(sql)
        report_idle(self.view.filters, snapshot.tables, **self.named)
        report_left_out(self.view.filters.chosen(tables))
        tables = tuple(t for t in tables if self.view.filters.wants(t.owner, t.name))
        # Here only this client is refused; a run would fail for all that it decodes for.
        check_tables(tables)
        self._chosen = Chosen(snapshot, tables, partial(would_name, sql))
        _log.info("subscribed", tables=len(tables), **self.named)

    def start(self, scn: int, image: str | None = None, *, resumed: bool = False) -> ReadyQueue:
        """Begin to decode every transaction that began at or after `scn`; 0 is the oldest log.

        Args:
            image, resumed: see `server.source.Source.start`.

        Raises:
            OlrPgError: 2010 the log that holds `scn` is not there; 2xxx the logs cannot be used.
        """
        assert self._chosen is not None  # the protocol asks for TableList first
        queue = ReadyQueue(*self._bounds, self._backlog)
        feed = Feed(self, self._chosen, queue, scn, scn, resumed=resumed)
        self.schema_events.restart()
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
        """See `server.source.Source.open_scn`; what the applier's schema events wait for too."""
        assert self._feed is not None
        waiting = self.schema_events.open_scn()
        open_scn = self._feed.open_scn
        return open_scn if waiting is None else min(open_scn, waiting)

    def recovery_points(self) -> Sequence[RecoveryPoint]:
        """See `server.source.Source.recovery_points`.

        None of them passes what the queue was given, nor what the applier was told of a table and
        has not made durable: changes of it that were left out are told from the redo only.
        """
        recovery, feed = self._decoder.recovery, self._feed
        if recovery is None or feed is None:
            return ()
        points = recovery.points(self.name)
        passed, waiting = feed.passed_scn, self.schema_events.unconfirmed_scn()
        if waiting is not None:
            passed = min(passed, waiting - 1)
        return [point for point in points if point.commit_scn <= passed]

    def saved(self, scn: int, image: str | None) -> None:
        """See `server.source.Source.saved`."""
        if self._decoder.recovery is not None:
            self._decoder.recovery.saved(self.name, scn, image)

    def stop(self) -> None:
        """The client has left: nothing is decoded for it any more."""
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
        """What decoding for it is doing now, or why it waits; may be asked from any thread."""
        return self.monitor.state

    @property
    def named(self) -> dict[str, str]:
        """For log lines: which target it is, where there are several."""
        return {"target": self.name} if self.name else {}

    def accounting(self) -> Accounting | None:
        """The account of decoding for it, up to the last whole log; None before the first."""
        return self.progress.accounting
