"""The replicator's side of sessions: archived logs, decoded on Spark, into the ready queues.

One decoder serves one appliance. The session of a target subscribes, then starts at an SCN
(`delivery`); from then on a thread finds new logs, has their splits decoded by Spark tasks, merges
the results and fills the target's queue, until the session ends. The sessions of several targets
are fed by the same thread as far as possible (`runs`). Recovery is by SCN alone: a new session
reads again, from the first log that reaches its SCN.
"""

from __future__ import annotations

import pickle
import threading
import time
from collections import deque
from contextlib import closing
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
import structlog

from olr_pg.capture.continuity import join_logs
from olr_pg.capture.logs import report_skipped
from olr_pg.capture.state import CapturePhase
from olr_pg.errors import OlrPgError
from olr_pg.replicator.decode import thread_starts
from olr_pg.replicator.decoded_logs import DecodedLogs
from olr_pg.replicator.event_feed import EventFeed, FaultReporter
from olr_pg.replicator.filters import NO_FILTERS, Filters
from olr_pg.replicator.follower import DictionaryFollower
from olr_pg.replicator.incidents import with_incident
from olr_pg.replicator.merge import Merger, ThreadSplit, merge_splits
from olr_pg.replicator.runs import Runs
from olr_pg.replicator.split import (
    Split,
    SplitResult,
    Subscription,
    decode_split,
    open_for_decoding,
    pack_result,
    plan_splits,
    unpack_result,
)
from olr_pg.replicator.threads import KnownThreads
from olr_pg.spark.jobs import run_tasks
from olr_pg.spark.session import SparkSettings, get_session
from olr_pg.transactions.storage import IN_MEMORY

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from pathlib import Path

    from olr_pg.applier.schema_events import SchemaEvent
    from olr_pg.capture.continuity import Gap
    from olr_pg.capture.logs import ArchivedLog, LogScan
    from olr_pg.dictionary.model import Snapshot, Table
    from olr_pg.replicator.delivery import Feed
    from olr_pg.replicator.progress import DecodeProgress
    from olr_pg.replicator.recovery import BoundedRecovery, Reached
    from olr_pg.replicator.source_database import SourceDatabase
    from olr_pg.replicator.view import TargetView
    from olr_pg.server.queue import ReadyTransaction
    from olr_pg.transactions.faults import RowFault
    from olr_pg.transactions.storage import Storage

_ROOM_SECONDS: Final = 0.2
"""How long room in a full queue is waited for before looking whether the run is to end."""

_PUT_TRANSACTIONS: Final = 256
"""Transactions that are queued at once: until then the checkpoint does not move past them."""

_LOGS_REMEMBERED: Final = 1024
"""The latest logs, where a failure's redo is looked for: a run may last for years."""

PRELOAD: Final = ("olr_pg.replicator.warm:warm_kernels",)
"""What Spark's daemon does before it forks workers."""

_log = structlog.get_logger(__name__)


def decode_task(payload: bytes, subscription: bytes) -> memoryview:
    """What a Spark task does: decode one split, send back its packed result."""
    split: Split = pickle.loads(payload)  # noqa: S301 - made by this driver
    log = open_for_decoding(split.path)
    result = decode_split(_subscription(subscription), log, split.first_block, split.end_block)
    return pack_result(result)


@lru_cache(maxsize=2)
def _subscription(packed: bytes) -> Subscription:
    subscription: Subscription = pickle.loads(packed)  # noqa: S301 - made by this driver
    return subscription


def _follow_alone(snapshot: Snapshot) -> DictionaryFollower:
    """Follows the dictionary where nobody but clients is told of its changes."""
    return DictionaryFollower(snapshot, ends_delivery=True)


class Decoder:
    """Decodes the archived logs of a source database, for one target or several.

    Args:
        source: where the dictionary and the logs come from.
        spark: the session to decode in; started with the first log.
        once: decode what is there, then set `Delivery.drained` and wait for the session's end,
            instead of looking for new logs.
        storage: where the bytes of unfinished and of large transactions wait.
        threads_file: remembers over restarts which redo threads were read.
        follow: makes the follower of a dictionary.
        incidents: the directory for the incident files of decoding errors.
        filters: which tables, columns, operations and transactions are left out for everyone.
        expected: names of the targets that are started together.
        recovery: keeps what open transactions changed over restarts; None: they are read again.
            Only with one target, since it serves one run at a time.

    Attributes:
        runs: the runs of decoding.
        recovery: as given.
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
    ) -> None:
        self._source = source
        self.recovery = recovery
        self._storage = storage
        self._filters = filters
        self._incidents = incidents
        self._make_follower = follow or _follow_alone
        self._snapshot: Snapshot | None = None
        self._followers: list[DictionaryFollower] = []
        self._threads = KnownThreads(threads_file)
        self._spark = spark
        self._once = once
        self._lock = threading.Lock()
        self._followers_lock = threading.Lock()
        self._wanted: dict[object, tuple[int, int]] = {}
        self.runs = Runs(self._make_run, joins=not once, expected=expected)

    def resolve(self, sql: str) -> tuple[Snapshot, tuple[Table, ...]]:
        """The tables that a TableList query names, and the dictionary they are from.

        Raises:
            OlrPgError: 3xxx or 7xxx, why it cannot be done.
        """
        with self._lock:
            return self._source.resolve(sql)

    def start(self, feed: Feed) -> None:
        """Begin to decode for a target, from its start SCN on.

        Raises:
            OlrPgError: 2010 the log that holds it is not there; 2xxx the logs cannot be used.
        """
        if self.recovery is None or feed.image is None:
            try:
                _check_beginning(self.scan(feed, feed.start_scn, 0).logs, feed.start_scn)
            finally:
                self.scanned_last(feed)
        if feed.start_scn == 0:
            self._threads.forget()
        snapshot = feed.chosen.snapshot
        with self._lock:
            known, self._snapshot = self._snapshot, snapshot
        # With another dictionary, what is under way begins again: a run has only one.
        self.runs.start(feed, together=known is not None and snapshot is not known)

    def leave(self, feed: Feed) -> None:
        """The client of a target has left."""
        self.runs.leave(feed)

    def scan(self, reader: object, scn: int, delivered_scn: int) -> LogScan:
        """See `SourceDatabase.scan`: what everyone wants together, who may be at different places.

        Args:
            reader: who asks.
        """
        with self._lock:
            self._wanted[reader] = scn, delivered_scn
            lowest, highest = zip(*self._wanted.values(), strict=True)
            return self._source.scan(min(lowest), max(highest))

    def scanned_last(self, reader: object) -> None:
        """That was the last time that a reader asked."""
        with self._lock:
            self._wanted.pop(reader, None)

    def _make_run(self, feeds: Sequence[Feed], progress: DecodeProgress) -> _Run:
        assert self._snapshot is not None  # a target was started
        follower = self._take_follower(self._snapshot)
        chosen = [self._tables_of(feed) for feed in feeds]
        tables = list({table.obj: table for part in chosen for table in part}.values())
        views: list[TargetView] = []
        numbers = []
        for feed in feeds:
            view = feed.view(tables)
            if view not in views:
                views.append(view)
            numbers.append(views.index(view))
        subscription = follower.subscribe(
            tables,
            views=views,
            wanted=lambda owner, name: any(f.chosen.would_name(owner, name) for f in feeds),
        )
        filters = [view.filters for view in views]
        numbered = dict(zip(feeds, numbers, strict=True))
        run = _Run(self, subscription, follower, numbered, filters, progress)
        try:
            run.restore()
        except OlrPgError:
            self.give_back(follower)
            raise
        return run

    def _tables_of(self, feed: Feed) -> Sequence[Table]:
        """A target's tables in the newest dictionary."""
        assert self._snapshot is not None
        if feed.chosen.snapshot is self._snapshot:
            return feed.chosen.tables
        found = [self._snapshot.find(table.owner, table.name) for table in feed.chosen.tables]
        return self._filters.chosen([table for table in found if table is not None])

    def _take_follower(self, snapshot: Snapshot) -> DictionaryFollower:
        """A follower that no run uses: the one that has come furthest, or a new one."""
        with self._followers_lock:
            idle = [one for one in self._followers if one.snapshot is snapshot]
            self._followers = []
            if not idle:
                return self._make_follower(snapshot)
            return max(idle, key=lambda one: one.done)

    def give_back(self, follower: DictionaryFollower) -> None:
        """The run of a follower is over."""
        with self._followers_lock:
            self._followers.append(follower)


def _check_beginning(
    logs: Sequence[ArchivedLog], scn: int, reached: Mapping[int, Reached] | None = None
) -> None:
    """The oldest log of every thread must hold the SCN to start at, or what comes before.

    Args:
        reached: how far each thread is in the recovery image.

    Raises:
        OlrPgError: 2010, it does not.
    """
    oldest: dict[int, ArchivedLog] = {}
    for log in _unread(logs, scn, reached) if reached else logs:
        oldest.setdefault(log.header.thread, log)
    for thread, log in oldest.items():
        mark = reached.get(thread) if reached else None
        start = scn if mark is None else mark.scn
        if 0 < start < log.header.first_scn:
            raise OlrPgError(
                2010,
                f"the oldest log begins at SCN {log.header.first_scn},"
                f" decoding must start at {start}",
                thread=thread,
                sequence=log.header.sequence,
                scn=start,
            )


def _unread(
    logs: Sequence[ArchivedLog], scn: int, reached: Mapping[int, Reached]
) -> list[ArchivedLog]:
    """The logs with redo that is wanted from an SCN on, and that is not in the recovery image."""
    return [
        log
        for log in logs
        if log.next_scn > scn
        and ((mark := reached.get(log.header.thread)) is None or log.position > mark.log)
    ]


def _orphaning(logs: Sequence[ArchivedLog], reached: Mapping[int, Reached]) -> ArchivedLog | None:
    """A log behind the recovery image that gives up redo that is in it, by a RESETLOGS."""
    for log in logs:
        mark = reached.get(log.header.thread)
        if mark is not None and log.header.first_scn < mark.scn:
            return log
    return None


class _Run:
    """One stretch of decoding for some targets, in a thread of its own; a `runs.Run`."""

    def __init__(
        self,
        decoder: Decoder,
        subscription: Subscription,
        follower: DictionaryFollower,
        feeds: dict[Feed, int],
        view_filters: Sequence[Filters],
        progress: DecodeProgress,
    ) -> None:
        self._decoder = decoder
        self._follower = follower
        self._views = feeds
        self.feeds = tuple(feeds)
        self.progress = progress
        progress.begin()
        self._scn = min(feed.open_scn for feed in feeds)
        self.merger = Merger(
            subscription,
            self._scn,
            {},
            follower,
            decoder._storage,
            decoder._source.lob_source,
            decoder._filters,
            view_filters,
        )
        self.reached = self.recent_scn = self._scn
        self.ending = threading.Event()
        self._events = EventFeed(follower, self._publish, FaultReporter(self._with_incident))
        self._logs: deque[ArchivedLog] = deque(maxlen=_LOGS_REMEMBERED)
        self._decoded = DecodedLogs()
        self._skipped: set[str] = set()
        self._begun = False
        self._recovery = decoder.recovery
        self._reached: Mapping[int, Reached] = {}
        self._thread = threading.Thread(target=self.run, name="olr-decode", daemon=True)

    def restore(self) -> None:
        """Begin with the recovery image that the session starts with, if it can be used.

        Raises:
            OlrPgError: 2010 the logs behind it are not there; 2xxx the logs cannot be used.
        """
        if self._recovery is None:
            return
        (feed,) = self.feeds
        # Whatever feeds it later goes on from where this run ends.
        image, feed.image = feed.image, None
        restored = self._recovery.begin(image, self.merger.subscription)
        if image is None:
            return
        try:
            logs = self._decoder.scan(self, self._scn, 0).logs
        finally:
            self._decoder.scanned_last(self)
        if restored is not None:
            orphaning = _orphaning(_unread(logs, self._scn, restored.marks), restored.marks)
            if orphaning is None:
                self._reached = restored.marks
                self.merger.restore(restored.state)
            else:
                first_scn = orphaning.header.first_scn
                detail = f"{orphaning.path} begins at SCN {first_scn}, before its end"
                self._recovery.refuse(OlrPgError(2073, detail))
        _check_beginning(logs, self._scn, self._reached)

    def begin(self) -> None:
        """Start the thread."""
        self._events.publish_past(self._scn)
        self._thread.start()

    def join(self) -> None:
        """Wait for the thread's end."""
        self._thread.join()

    def run(self) -> None:
        """Decode until there is nobody to decode for; a failure ends the queues."""
        failed = True
        try:
            self._follow()
            failed = False
        except OlrPgError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001 - the thread's outer edge: the client must hear
            _log.exception("decoding has stopped")
            self._fail(OlrPgError(9001, f"{type(error).__name__}: {error}"))
        finally:
            self._decoder.scanned_last(self)
            self._decoder.give_back(self._follower)
            self._decoder.runs.ended(self, failed=failed)

    def _fail(self, error: OlrPgError) -> None:
        error = self._with_incident(error)
        for feed in self.feeds:
            feed.fail(error)

    def _with_incident(self, error: OlrPgError) -> OlrPgError:
        return with_incident(error, self._logs, self._decoder._incidents)

    def _enter(self, phase: CapturePhase, reason: OlrPgError | None = None) -> bool:
        """Tell the targets what is done; whether that is new."""
        news = [feed.delivery.monitor.enter(phase, reason) for feed in self.feeds]
        return any(news)

    def _note_decoding(self) -> None:
        spilled = self._decoder._storage.waiting_bytes > 0
        self._enter(CapturePhase.SPILLING if spilled else CapturePhase.DECODING)

    def _note_waiting(self, scan: LogScan, gaps: Sequence[Gap]) -> None:
        """Why there is nothing to decode."""
        reason = scan.unusable[0] if scan.unusable else gaps[0].as_error() if gaps else None
        phase = CapturePhase.WAITING_FOR_REDO if reason else CapturePhase.CAUGHT_UP
        if not scan.source_answers:
            phase = CapturePhase.WAITING_FOR_SOURCE
        if self._enter(phase, reason) and reason is not None:
            _log.warning(phase.value, reason=str(reason))

    def _follow(self) -> None:
        idle = 0
        while not self.ending.is_set():
            if self._recovery is not None:
                self._recovery.settle(self.merger)
            logs = self._new_logs()
            if logs and not self._decode(logs):
                return
            self._decoder.runs.consider(self)
            if logs:
                idle = 0
                continue
            if self._decoder._once:
                self.merger.report_waiting()
                for feed in self.feeds:
                    feed.delivery.drained.set()
                return
            self.ending.wait(self._decoder._source.pause(idle))
            idle += 1

    def _new_logs(self) -> list[ArchivedLog]:
        """Logs to decode now, oldest first."""
        delivered = max(self._scn, self.merger.watermark)
        scan = self._decoder.scan(self, delivered, self.merger.watermark)
        report_skipped([file for file in scan.skipped if file.path not in self._skipped])
        self._skipped = {file.path for file in scan.skipped}
        if self._decoder._once and scan.unusable:
            raise scan.unusable[0]
        if not self._begun:
            # A live source may have archived nothing yet when decoding started.
            _check_beginning(scan.logs, self._scn, self._reached)
            self._begun = bool(scan.logs)
        stream = join_logs(scan.logs, self._decoder._source.database)
        self.progress.scanned(stream)
        self._admit_threads(stream.readable)
        for thread in scan.open_threads or ():
            # Nothing may leave before its first log has come.
            self.merger.add_thread(thread, self._scn)
        logs = [
            log
            for log in _unread(stream.readable, self._scn, self._reached)
            if log.position not in self._decoded
        ]
        if scan.open_threads is not None and not stream.gaps and not scan.unusable:
            self._close_threads(scan.open_threads, logs)
        if not logs:
            if stream.gaps and self._decoder._once:
                raise stream.gaps[0].as_error()
            self._note_waiting(scan, stream.gaps)
        self._check_order(logs)
        return sorted(logs, key=lambda log: log.header.first_scn)

    def _check_order(self, logs: Sequence[ArchivedLog]) -> None:
        """Logs that precede what was read of their thread cannot take their place any more.

        Raises:
            OlrPgError: 2014, such a log.
        """
        for log in logs:
            newest = self._decoded.newest(log.header.thread)
            if newest is not None and log.position < newest:
                raise OlrPgError(
                    2014,
                    f"sequence {newest.sequence} has been read without it",
                    file=log.path,
                    thread=log.header.thread,
                    sequence=log.header.sequence,
                )

    def _admit_threads(self, logs: Sequence[ArchivedLog]) -> None:
        """Count every redo thread in, unless it comes too late to be waited for.

        Raises:
            OlrPgError: 2014, transactions of other threads left that had to wait for this one.
        """
        starts = thread_starts(logs)
        known = self._decoder._threads.known
        delivered = max(self._scn, self.merger.watermark)
        for thread, first_scn in starts.items():
            if known and thread not in known and first_scn < delivered:
                raise OlrPgError(
                    2014,
                    f"its logs begin at SCN {first_scn}, others are delivered up to {delivered}",
                    thread=thread,
                    scn=first_scn,
                )
        for thread, scn in thread_starts(logs, self._scn).items():
            self.merger.add_thread(thread, scn)
        self._decoder._threads.add(starts)

    def _close_threads(self, opened: frozenset[int], logs: Sequence[ArchivedLog]) -> None:
        """Wait no longer for threads that are closed and read to their end."""
        unread = {log.header.thread for log in logs}
        for thread in self.merger.threads - opened - unread:
            released = self.merger.close_thread(thread)
            while self.merger.again:
                sources, self.merger.again = self.merger.again, []
                if not self._merge(sources, {}):
                    return
                released = self.merger.close_thread(thread)
            _log.info("redo thread closed", thread=thread)
            self._deliver(released, self.merger.left_out)
            if self.merger.failure is not None:
                raise self.merger.failure

    def _decode(self, logs: Sequence[ArchivedLog]) -> bool:
        """Decode whole logs; False where the session has ended."""
        self._logs += logs
        self._note_decoding()
        sources = [
            ThreadSplit(log.header.thread, split) for log in logs for split in plan_splits(log)
        ]
        return self._merge(sources, {log.path: log for log in logs})

    def _merge(self, sources: Sequence[ThreadSplit], logs: Mapping[str, ArchivedLog]) -> bool:
        """Decode splits and deliver what leaves then; False where the session has ended.

        Args:
            logs: by path, those that are read for the first time.
        """
        for released, left_out, source in merge_splits(self.merger, sources, self._decode_splits):
            log = logs.get(source.split.path)
            end = None if log is None else log.end_scn
            if end is not None:
                released = [t for t in released if t.commit_scn < end]
                left_out = [fault for fault in left_out if fault.commit_scn < end]
            if not self._deliver(released, left_out):
                return False
            self._note_decoding()
            if log is not None:
                self.progress.merged(source.split, log.header.block_size, self.merger)
            if self.merger.failure is not None:
                raise self.merger.failure
            if log is not None and source.split.end_block == log.blocks:
                self._decoded.add(log.position)
                self.progress.decoded(log, self.merger)
                self._report(log)
                if end is not None:
                    self._abandon(end)
                if self._recovery is not None:
                    self._recovery.log_read(log, self.merger)
                self.reached = self.merger.watermark
                self.recent_scn = log.header.first_scn
                self._decoder.runs.consider(self)
                if self.ending.is_set():
                    return False
            elif self._recovery is not None:
                self._recovery.settle(self.merger)
        return True

    def _abandon(self, scn: int) -> None:
        """The redo from `scn` on was given up by a RESETLOGS; other redo takes its place."""
        self.merger.abandon(scn)
        for feed in self.feeds:
            feed.abandon(scn)

    def _decode_splits(
        self, subscription: Subscription, splits: Sequence[Split]
    ) -> Generator[SplitResult, None, None]:
        """The results of Spark tasks, in order; closing it cancels what is under way."""
        session = get_session(self._decoder._spark)
        tasks = run_tasks(
            session,
            [pickle.dumps(split) for split in splits],
            decode_task,
            broadcast=pickle.dumps(subscription),
            sizes=[split.size for split in splits],
        )
        with closing(tasks) as results:
            for _, packed in results:
                yield unpack_result(packed)

    def _deliver(
        self, transactions: Sequence[ReadyTransaction], left_out: Sequence[RowFault]
    ) -> bool:
        """Queue transactions, and publish what of them was left out; False at the run's end.

        `Feed.open_scn` covers a transaction until it is queued.
        """
        self._events.add(left_out)
        rest = min([self.merger.open_scn(), *self._events.begins()])
        begins = np.array([t.begin_scn for t in transactions], np.int64)
        lowest = np.minimum.accumulate(begins[::-1])[::-1].tolist()
        start = 0
        while start < len(transactions):
            self._events.publish_before(transactions[start].commit_scn)
            end = self._queued_together(transactions, start)
            self._note_open(min(rest, lowest[start]))
            if not self._put(transactions[start:end]):
                return False
            self.progress.queued.add(transactions[end - 1].commit_scn, time.time())
            self._note_decoding()
            start = end
        self._events.publish_before(self.merger.watermark)
        self.progress.queued.add(self.merger.watermark, time.time())
        self._note_open(min([self.merger.open_scn(), *self._events.begins()]))
        return not self.ending.is_set()

    def _note_open(self, scn: int) -> None:
        for feed in self.feeds:
            feed.note_open(scn)

    def _put(self, transactions: Sequence[ReadyTransaction]) -> bool:
        """Queue transactions for everyone; False where the run is to end."""
        for feed in self.feeds:
            view = self._views[feed]
            own = [t for t in transactions if t.view == view]
            if not self._put_for(feed, feed.wanted(own)):
                return False
        return not self.ending.is_set()

    def _put_for(self, feed: Feed, transactions: Sequence[ReadyTransaction]) -> bool:
        """Queue transactions for one target; False where the run is to end.

        Where its queue is full, it is waited for, unless others would have to wait with it.
        """
        while True:
            transactions = transactions[feed.offer(transactions) :]
            if not transactions:
                return True
            if feed.queue.closed:
                self._decoder.runs.drop(self, feed)
                return bool(self.feeds)
            if len(self.feeds) > 1:
                self._detach(feed)
                return not self.ending.is_set()
            self._enter(CapturePhase.PAUSED_FOR_FLOW_CONTROL)
            while not feed.queue.await_room(transactions[0], _ROOM_SECONDS):
                if self.ending.is_set():
                    return False

    def _detach(self, feed: Feed) -> None:
        held = feed.queue.status()
        reason = OlrPgError(
            4040,
            f"{held.ready} transactions are ready, {held.spilled_bytes} bytes of them on disk,"
            f" {held.transmitted} are not confirmed",
            target=feed.delivery.name,
        )
        _log.warning("a target is at its limit", code=reason.label, reason=str(reason))
        self._decoder.runs.detach(self, feed)

    def _queued_together(self, transactions: Sequence[ReadyTransaction], start: int) -> int:
        """The end of the transactions that are queued at once: none behind the next event."""
        end = min(start + _PUT_TRANSACTIONS, len(transactions))
        barrier = self._events.barrier
        if barrier is None or transactions[end - 1].commit_scn < barrier:
            return end
        return next(at for at in range(start, end) if transactions[at].commit_scn >= barrier)

    def _publish(self, event: SchemaEvent) -> None:
        """Tell the targets what happened to a table."""
        for feed in self.feeds:
            error = feed.publish(event)
            if error is not None:
                feed.fail(error)
                self._decoder.runs.drop(self, feed)

    def _report(self, log: ArchivedLog) -> None:
        account = self.merger.account
        _log.info(
            "log decoded",
            thread=log.header.thread,
            sequence=log.header.sequence,
            next_scn=log.next_scn,
            transactions=account.committed,
            rows=account.rows,
            waiting=self.merger.waiting,
        )
        if account.unmatched or account.lost:
            _log.warning(
                "the redo is not whole",
                undo_without_change=account.unmatched,
                transactions_without_end=account.lost,
            )
