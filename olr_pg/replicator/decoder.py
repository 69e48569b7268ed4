"""Decodes archived logs for the targets' sessions, and fills their ready queues.

An appliance has one decoder, with a `TargetFeed` for each target: its tables, its ready queue, and
its progress. A target's session subscribes to tables, and then starts at an SCN. From then on, a
thread finds new logs, decodes their splits on Spark or in this process, merges the results, and
fills the target's queue until the session ends. If possible, one thread does this for several
targets (`run_control`). After a restart, only the start SCN matters: a new session reads the redo
again, from the first log that contains its SCN on, or continues after a recovery image.
"""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING

import structlog

from olr_pg.capture.capture_state import CaptureMonitor, CapturePhase, CaptureState
from olr_pg.capture.redo_threads import KnownThreads
from olr_pg.capture.wanted_logs import check_beginning
from olr_pg.decoding.dictionary_follower import DictionaryFollower
from olr_pg.decoding.filters import EVERYTHING, NO_FILTERS, Filters, TargetView, report_idle
from olr_pg.decoding.left_out_report import report_left_out
from olr_pg.decoding.new_tables import any_wants
from olr_pg.dictionary.table_list import would_name
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.periodic import steady_time
from olr_pg.replicator.decoding_progress import DecodeProgress
from olr_pg.replicator.decoding_run import DecodingRun, FollowerPool, RunParts
from olr_pg.replicator.feed import Chosen, Feed
from olr_pg.replicator.run_control import Runs, SharedLogs
from olr_pg.replicator.spark_decoding import SparkDecoding
from olr_pg.server.queue import USUAL_BOUNDS, QueueBounds, ReadyQueue
from olr_pg.transactions.waiting_storage import IN_MEMORY
from olr_pg.wire.element_plan import check_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence, Set
    from pathlib import Path

    from olr_pg.capture.source_database import SourceDatabase
    from olr_pg.dictionary.model import Snapshot, Table
    from olr_pg.ordering.accounting import Accounting
    from olr_pg.ordering.run_end import Until
    from olr_pg.replicator.recovery.bounded_recovery import BoundedRecovery, NamedImage
    from olr_pg.server.port_session import RecoveryPoint
    from olr_pg.spark.session import SparkSettings
    from olr_pg.transactions.waiting_storage import Storage


_log = structlog.get_logger(__name__)


class Delivery:
    """A target of decoding; implements its port's `server.port_session.ReplicationSource`.

    Args:
        decoder: the decoder, which all targets share.
        name: the name of the target; empty if there is only one target.
        view: the form and the selection of row changes; its filters apply in addition to the
            decoder's.
        bounds: the limits of its ready queue.
        is_told: whether the target's client is the bundled applier, which receives events of
            tables.

    Attributes:
        view, is_told: see above.
        ends_with_table: whether the delivery ends with an error when changes of a table cannot be
            delivered any more, because the client receives no events; initially False. Set it
            before the first session begins.
        drained: set when everything available was queued.
        failure: the error that ended the decoding for the last session, or prevented its start;
            None if there was none.
        progress: the progress of decoding for this target.
        monitor: the state of decoding for this target.
        told: called when something was added to the queue. Set it before the first session begins.
        followed_scn: returns the SCN up to which earlier runs have stored all dictionary changes;
            None if unknown. Set it before the first session begins.
        is_renewed: returns whether the bundled applier is ending, because the next applier has
            other tables.
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
        self.followed_scn: Callable[[], int | None] = lambda: None
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
        names = frozenset((table.owner, table.name) for table in tables)
        self._chosen = Chosen(snapshot, tables, partial(_would_name, sql, names))
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
        feed.followed_scn = self.followed_scn() or 0
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


def _follow_alone(snapshot: Snapshot) -> DictionaryFollower:
    """Return a follower of the dictionary for clients that do not receive events of tables."""
    return DictionaryFollower(snapshot, ends_delivery=True)


def _lacks_changes(known_scn: int, feeds: Sequence[Feed]) -> bool:
    """Return whether stored dictionary changes are missing, for example because somebody has
    restored the dictionary or the file of its changes from an older copy. Without such a change,
    rows of new partitions or new tables would be lost, and columns would be confused.

    Args:
        known_scn: see `DictionaryFollower.known_scn`.

    Raises:
        OlrPgError: 3083, changes are missing, and the run does not read their redo again.
    """
    followed = max(feed.followed_scn for feed in feeds)
    start = min(feed.open_scn for feed in feeds)
    if known_scn < min(followed, start):
        raise OlrPgError(
            Code.DICTIONARY_CHANGES_MISSING,
            f"the dictionary and its changes are known up to SCN {known_scn}, but an earlier run"
            f" has followed them up to SCN {followed}",
            start_scn=start,
        )
    return known_scn < followed


def _warn_of_unread_ddl(known_scn: int, feeds: Sequence[Feed]) -> None:
    """Log a warning if the run begins after the DDL that is known: `apply.start-scn` or the client
    has chosen its beginning. The redo before it may be damaged or deleted, so it is not read.

    Args:
        known_scn: the SCN up to which the DDL is known; 0 if unknown.
    """
    start = min(feed.open_scn for feed in feeds)
    if 0 < known_scn < start and not any(feed.resumed for feed in feeds):
        _log.warning(
            "the start SCN is after the dictionary: DDL between them is not read",
            dictionary_scn=known_scn,
            start_scn=start,
            action="if there was DDL of replicated tables between them, stop the run, and start at"
            " an SCN that is not after the dictionary. Or, with an offline source, take the"
            " dictionary snapshot as of the start SCN",
        )


class Decoder:
    """Decodes the archived logs of a source database, for one or several targets.

    Args:
        source: provides the dictionary and the logs.
        spark: the settings of the Spark session, which is started when a backlog must be decoded.
        once: whether to decode only the available logs, and then set `Delivery.drained`, instead of
            waiting for new logs.
        storage: stores the bytes of open and of large transactions.
        threads_file: the file that records which redo threads were read.
        follow: creates a follower of a dictionary.
        incidents: the directory for the incident files of decoding errors.
        filters: the tables, columns, operations and transactions that are left out for all targets.
        expected: the names of the targets that begin in one run.
        recovery: stores the changes of open transactions for restarts; None to read their redo
            again.
        until: where decoding ends; then `Delivery.drained` is set. None for no end.

    Attributes:
        splits: decodes splits, and counts them.
        decode: the method `decode` of `splits`.
        filters, recovery, until: see above.
        logs: the logs of the source, shared by all runs.
        threads: the redo threads that were read.
    """

    def __init__(
        self,
        source: SourceDatabase,
        spark: SparkSettings,
        *,
        once: bool = False,
        threads_file: Path | None = None,
        follow: Callable[[Snapshot], DictionaryFollower] | None = None,
        storage: Storage = IN_MEMORY,
        incidents: Path | None = None,
        filters: Filters = NO_FILTERS,
        expected: Sequence[str] = (),
        recovery: BoundedRecovery | None = None,
        until: Until | None = None,
    ) -> None:
        self.until = until
        self.logs = SharedLogs(source)
        self.recovery = recovery
        self._storage = storage
        self.filters = filters
        self._incidents = incidents
        self._followers = FollowerPool(follow or _follow_alone)
        self._snapshot: Snapshot | None = None
        self.threads = KnownThreads(threads_file)
        self.splits = SparkDecoding(spark, waits=not source.is_online)
        self.decode = self.splits.decode
        self._once = once
        self._lock = threading.Lock()
        self._connected: list[Feed] = []
        ends = once or until is not None
        self.runs = Runs(self._make_run, self._groups, joins=not ends, expected=expected)

    def start(self, feed: Feed, image: str | None = None) -> None:
        """Begin to decode for a target, from its start SCN on.

        Args:
            image: the recovery image that the target's checkpoint names for its start SCN.

        Raises:
            OlrPgError: 2010 the log with the start SCN is missing, and the run does not wait for
                it; 2014 an earlier run has read a transaction too late; 2xxx the logs cannot be
                used.
        """
        self.threads.check_late(feed.delivery.name)
        if self.recovery is not None:
            point = self.recovery.enter(feed.delivery.name, image, feed.need)
            if point is not None:
                feed.note_passed(point.commit_scn)
        if self.recovery is None or self.recovery.find([feed.need]) is None:
            self._check_logs(feed)
        if feed.start_scn == 0:
            self.threads.forget()
        snapshot = feed.chosen.snapshot
        with self._lock:
            known, self._snapshot = self._snapshot, snapshot
            self._connected.append(feed)
        try:
            # If the dictionary is a new one, all runs begin again with it, because a run has only
            # one dictionary.
            self.runs.start(feed, together=known is not None and snapshot is not known)
        except BaseException:
            self._forget(feed)  # otherwise later runs would decode its tables
            raise

    def _check_logs(self, feed: Feed) -> None:
        """Check that the logs reach back to the start SCN of a target, unless the run waits for
        them. If a log cannot be read, its error is raised: that log may be the missing one.
        """
        try:
            # Everything up to a saved checkpoint was delivered, by this process or an earlier one.
            delivered = feed.start_scn if feed.resumed else 0
            scan = self.logs.scan(feed, feed.start_scn, delivered)
            if self._once or not self.logs.source.is_online:
                known_scn = self.logs.known_scn(feed.chosen.snapshot)
                try:
                    check_beginning(scan.logs, feed.start_scn, known_scn=known_scn)
                except OlrPgError as error:
                    unread = [one for one in scan.unusable if one.code == Code.LOG_UNREADABLE]
                    if unread:
                        raise unread[0] from None
                    raise self._explained(error) from None
        finally:
            self.logs.remove_reader(feed)

    def _explained(self, missing: OlrPgError) -> OlrPgError:
        return missing if self.recovery is None else self.recovery.explained(missing)

    def leave(self, feed: Feed) -> None:
        """Remove a target whose client has disconnected."""
        self._forget(feed)
        self.runs.leave(feed)

    def _forget(self, feed: Feed) -> None:
        with self._lock:
            self._connected = [one for one in self._connected if one is not feed]

    def _make_run(self, feeds: Sequence[Feed], progress: DecodeProgress) -> DecodingRun:
        assert self._snapshot is not None  # `start` has set it
        follower = self._followers.take(self._snapshot)
        try:
            return self._make_run_with(follower, feeds, progress)
        except OlrPgError:
            self._followers.give_back(follower)
            raise

    def _make_run_with(
        self, follower: DictionaryFollower, feeds: Sequence[Feed], progress: DecodeProgress
    ) -> DecodingRun:
        lacks_changes = _lacks_changes(follower.known_scn, feeds)
        _warn_of_unread_ddl(max(follower.known_scn, self.logs.source.delivered_scn), feeds)
        image = self._find_image(feeds, of_others=not follower.ends_delivery)
        if image is not None and lacks_changes:
            self._refuse_images(feeds, of_others=not follower.ends_delivery)
            image = None
        tables = self._tables_of_run(feeds, image)
        views, numbered = _views_of(feeds, tables)
        subscription = follower.subscribe(
            tables,
            views=views,
            wanted=lambda owner, name: any_wants(f.chosen.would_name(owner, name) for f in feeds),
        )
        filters = [view.filters for view in views]
        run = DecodingRun(
            self._parts(), self.runs, subscription, follower, numbered, filters, progress
        )
        if image is not None:
            run.restore(image)
        return run

    def _find_image(self, feeds: Sequence[Feed], *, of_others: bool) -> NamedImage | None:
        if self.recovery is None:
            return None
        return self.recovery.find([feed.need for feed in feeds], of_others=of_others)

    def _refuse_images(self, feeds: Sequence[Feed], *, of_others: bool) -> None:
        """Refuse the images with which a run could begin, because dictionary changes are missing,
        and a run with an image does not read the redo before the image. No later checkpoint may
        name these images: each checkpoint replaces the SCN up to which the changes were stored, so
        no later start would notice that changes are missing.

        Raises:
            OlrPgError: 2010, the logs do not reach back to the start SCN.
        """
        assert self.recovery is not None
        for feed in feeds:
            self._check_logs(feed)
        reason = OlrPgError(
            Code.RECOVERY_IMAGE_UNFIT, "dictionary changes before the image are missing"
        )
        while (image := self._find_image(feeds, of_others=of_others)) is not None:
            self.recovery.refuse(image.name, reason)

    def _parts(self) -> RunParts:
        return RunParts(
            logs=self.logs,
            decode=self.decode,
            followers=self._followers,
            threads=self.threads,
            storage=self._storage,
            filters=self.filters,
            incidents=self._incidents,
            recovery=self.recovery,
            once=self._once,
            until=self.until,
        )

    def _groups(self, feeds: Sequence[Feed]) -> list[list[Feed]]:
        """Group the targets so that one run can feed each group."""
        raw = [feed for feed in feeds if feed.delivery.view.raw_xml]
        text = [feed for feed in feeds if not feed.delivery.view.raw_xml]
        return [group for alike in (raw, text) if alike for group in self._restartable(alike)]

    def _restartable(self, feeds: Sequence[Feed]) -> list[list[Feed]]:
        """Divide targets, which must have the same form of XML, into groups: each group can begin
        with one recovery image, or without any.
        """
        if self.recovery is None:
            return [list(feeds)]
        groups = self.recovery.groups([feed.need for feed in feeds])
        return [[feeds[number] for number in group] for group in groups]

    def _tables_of_run(self, feeds: Sequence[Feed], image: NamedImage | None) -> list[Table]:
        """Return the tables that a run decodes: the tables of its recovery image if it has one,
        otherwise the tables of its feeds.

        If recovery images are written, the tables of all other connected targets are added, so that
        these targets can use the images too.
        """
        assert self._snapshot is not None
        if image is not None:
            objects = {table.object_key: table for table in self._snapshot.tables}
            return [objects[key] for key in image.image.objects if key in objects]
        others = self._connected if self.recovery is not None else []
        chosen = [self._tables_of(feed) for feed in (*feeds, *others)]
        return list({table.object_key: table for part in chosen for table in part}.values())

    def _tables_of(self, feed: Feed) -> Sequence[Table]:
        """Return a target's tables as defined in the newest dictionary."""
        assert self._snapshot is not None
        if feed.chosen.snapshot is self._snapshot:
            return feed.chosen.tables
        found = [self._snapshot.find(table.owner, table.name) for table in feed.chosen.tables]
        return self.filters.chosen([table for table in found if table is not None])


def _views_of(
    feeds: Sequence[Feed], tables: Sequence[Table]
) -> tuple[list[TargetView], dict[Feed, int]]:
    """Return the distinct views, and for each feed the index of its view."""
    views: list[TargetView] = []
    numbered: dict[Feed, int] = {}
    for feed in feeds:
        view = feed.view(tables)
        if view not in views:
            views.append(view)
        numbered[feed] = views.index(view)
    return views, numbered


def _would_name(sql: str, names: Set[tuple[str, str]], owner: str, name: str) -> bool | None:
    """Return whether a TableList query selects a table that may have been created later.

    Args:
        names: the owners and names of the tables that the query has selected. Each of these tables
            may be dropped and created again.
    """
    return (owner, name) in names or would_name(sql, owner, name)
