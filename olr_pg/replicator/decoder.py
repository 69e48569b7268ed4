"""The replicator's side of a session: archived logs, decoded on Spark, into the ready queue.

One decoder serves one appliance. A session subscribes (`resolve`), then starts at an SCN; from then
on a thread finds new logs, has their splits decoded by Spark tasks, merges the results and fills
the queue, until the session ends. Recovery is by SCN alone: a new session reads again, from the
first log that reaches its SCN.
"""

from __future__ import annotations

import pickle
import threading
import time
from collections import deque
from contextlib import closing
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final

import numpy as np
import structlog

from olr_pg.applier.schema_events import SchemaEvents
from olr_pg.capture.continuity import join_logs
from olr_pg.capture.logs import report_skipped
from olr_pg.capture.state import CaptureMonitor, CapturePhase, CaptureState
from olr_pg.dictionary.table_list import would_name
from olr_pg.errors import OlrPgError
from olr_pg.replicator.decode import thread_starts
from olr_pg.replicator.decoded_logs import DecodedLogs
from olr_pg.replicator.event_feed import EventFeed, FaultReporter
from olr_pg.replicator.filters import NO_FILTERS, Filters
from olr_pg.replicator.follower import DictionaryFollower
from olr_pg.replicator.incidents import with_incident
from olr_pg.replicator.losses import report_left_out
from olr_pg.replicator.merge import Merger, ThreadSplit, merge_splits
from olr_pg.replicator.progress import DecodeProgress
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
from olr_pg.server.queue import BYTES_MAX, ReadyQueue
from olr_pg.spark.jobs import run_tasks
from olr_pg.spark.session import SparkSettings, get_session
from olr_pg.transactions.storage import IN_MEMORY
from olr_pg.wire.chunks import CHUNK_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from pathlib import Path

    from olr_pg.capture.continuity import Gap
    from olr_pg.capture.logs import ArchivedLog, LogScan
    from olr_pg.dictionary.model import Snapshot
    from olr_pg.replicator.accounting import Accounting
    from olr_pg.replicator.source_database import SourceDatabase
    from olr_pg.server.queue import ReadyTransaction
    from olr_pg.transactions.faults import RowFault
    from olr_pg.transactions.storage import Storage

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
    """Decodes the archived logs of a source database; a `server.source.Source`.

    Args:
        source: where the dictionary and the logs come from.
        spark: the session to decode in; started with the first log.
        big_endian: byte order of the output.
        chunk_bytes: bytes of a LOB value in one Chunk element.
        transactions_max, bytes_max: the bound of the ready queue.
        once: decode what is there, then set `drained` and wait for the session's end, instead of
            looking for new logs.
        storage: where the bytes of unfinished and of large transactions wait.
        threads_file: remembers over restarts which redo threads were read.
        follow: makes the follower of a dictionary; called again only for another dictionary.
        schema_events: where the follower publishes to, for the bundled applier.
        incidents: the directory for the incident files of decoding errors.
        filters: which transactions are left out.

    Attributes:
        drained: set once everything that is there has been queued.
        progress: how far it has come.
        failure: what ended the last run's decoding, or kept it from starting, if anything did.
    """

    def __init__(
        self,
        source: SourceDatabase,
        spark: SparkSettings,
        *,
        big_endian: bool = False,
        chunk_bytes: int = CHUNK_BYTES,
        transactions_max: int = 10_000,
        bytes_max: int = BYTES_MAX,
        once: bool = False,
        threads_file: Path | None = None,
        follow: Callable[[Snapshot], DictionaryFollower] | None = None,
        schema_events: SchemaEvents | None = None,
        storage: Storage = IN_MEMORY,
        incidents: Path | None = None,
        filters: Filters = NO_FILTERS,
    ) -> None:
        self._source = source
        self._storage = storage
        self._filters = filters
        self._incidents = incidents
        self._make_follower = follow or _follow_alone
        self._snapshot: Snapshot | None = None
        self._follower: DictionaryFollower | None = None
        self._schema_events = schema_events or SchemaEvents()
        self._threads = KnownThreads(threads_file)
        self._spark = spark
        self._big_endian = big_endian
        self._chunk_bytes = chunk_bytes
        self._bounds = (transactions_max, bytes_max)
        self._once = once
        self._subscription: Subscription | None = None
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._open_scn = 0
        self._merger: Merger | None = None
        self._monitor = CaptureMonitor(time.time)
        self.progress = DecodeProgress()
        self.drained = threading.Event()
        self.failure: OlrPgError | None = None

    def resolve(self, sql: str) -> None:
        """Subscribe to the tables of a TableList query.

        Raises:
            OlrPgError: 3xxx or 7xxx, why it cannot be done.
        """
        snapshot, tables = self._source.resolve(sql)
        if self._follower is None or snapshot is not self._snapshot:
            self._snapshot, self._follower = snapshot, self._make_follower(snapshot)
        report_left_out(tables)
        self._subscription = self._follower.subscribe(
            tables,
            big_endian=self._big_endian,
            chunk_bytes=self._chunk_bytes,
            wanted=partial(would_name, sql),
        )
        _log.info("subscribed", tables=len(tables))

    def start(self, scn: int) -> ReadyQueue:
        """Begin to decode every transaction that began at or after `scn`; 0 is the oldest log.

        Raises:
            OlrPgError: 2010 the log that holds `scn` is not there; 2xxx the logs cannot be used.
        """
        assert self._subscription is not None  # the protocol asks for TableList first
        run = _Run(self, self._subscription, scn)
        self._merger = run.merger
        try:
            run.check_start()
        except OlrPgError as error:
            self.failure = error
            self._monitor.enter(CapturePhase.STOPPED, error)
            raise
        if scn == 0:
            self._threads.forget()
        self._schema_events.restart()
        run.events.publish_past(scn)
        self._open_scn = scn
        self._stopping.clear()
        self.drained.clear()
        self.failure = None
        self._thread = threading.Thread(target=run.run, name="olr-decode", daemon=True)
        self._thread.start()
        return run.queue

    @property
    def state(self) -> CaptureState:
        """What decoding is doing now, or why it waits; may be asked from any thread."""
        return self._monitor.state

    @property
    def follower(self) -> DictionaryFollower:
        """Follows the dictionary of the subscription."""
        assert self._follower is not None
        return self._follower

    def open_scn(self) -> int:
        """See `server.source.Source.open_scn`; what the applier's schema events wait for too."""
        waiting = self._schema_events.open_scn()
        return self._open_scn if waiting is None else min(self._open_scn, waiting)

    def accounting(self) -> Accounting | None:
        """The account of the run so far, for metrics; None before the first."""
        return None if self._merger is None else self._merger.accounting()

    def stop(self) -> None:
        """End the run and drop the subscription."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        self._thread, self._subscription = None, None
        if self.state.phase is not CapturePhase.STOPPED:
            self._monitor.enter(CapturePhase.WAITING_FOR_CLIENT)


class _Run:
    """One session's decoding, in a thread of its own."""

    def __init__(self, decoder: Decoder, subscription: Subscription, scn: int) -> None:
        transactions_max, bytes_max = decoder._bounds
        self._monitor = decoder._monitor
        self._progress = decoder.progress
        self._progress.begin()
        self.queue = ReadyQueue(transactions_max, bytes_max, self._pause_for_flow_control)
        self._decoder = decoder
        self._scn = scn
        self.merger = Merger(
            subscription,
            scn,
            {},
            decoder.follower,
            decoder._storage,
            decoder._source.lob_source,
            decoder._filters,
        )
        self.events = EventFeed(
            decoder.follower, decoder._schema_events, FaultReporter(self._with_incident)
        )
        self._logs: deque[ArchivedLog] = deque(maxlen=_LOGS_REMEMBERED)
        self._decoded = DecodedLogs()
        self._skipped: set[str] = set()
        self._begun = False

    def check_start(self) -> None:
        """Refuse a start before the oldest log.

        Raises:
            OlrPgError: 2010, and what the scan raises.
        """
        self._check_beginning(self._decoder._source.scan(self._scn, 0).logs)

    def _check_beginning(self, logs: Sequence[ArchivedLog]) -> None:
        """The oldest log of every thread must hold the SCN to start at, or what comes before."""
        oldest: dict[int, ArchivedLog] = {}
        for log in logs:
            oldest.setdefault(log.header.thread, log)
        for thread, log in oldest.items():
            if 0 < self._scn < log.header.first_scn:
                raise OlrPgError(
                    2010,
                    f"the oldest log begins at SCN {log.header.first_scn},"
                    f" decoding must start at {self._scn}",
                    thread=thread,
                    sequence=log.header.sequence,
                    scn=self._scn,
                )
        self._begun = bool(logs)

    def run(self) -> None:
        """Decode until the session ends; a failure ends the queue."""
        try:
            self._follow()
        except OlrPgError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001 - the thread's outer edge: the client must hear
            _log.exception("decoding has stopped")
            self._fail(OlrPgError(9001, f"{type(error).__name__}: {error}"))

    def _fail(self, error: OlrPgError) -> None:
        error = self._with_incident(error)
        self._decoder.failure = error
        self._monitor.enter(CapturePhase.STOPPED, error)
        self.queue.fail(error)

    def _with_incident(self, error: OlrPgError) -> OlrPgError:
        return with_incident(error, self._logs, self._decoder._incidents)

    def _pause_for_flow_control(self) -> None:
        self._monitor.enter(CapturePhase.PAUSED_FOR_FLOW_CONTROL)

    def _note_decoding(self) -> None:
        spilled = self._decoder._storage.waiting_bytes > 0
        self._monitor.enter(CapturePhase.SPILLING if spilled else CapturePhase.DECODING)

    def _note_waiting(self, scan: LogScan, gaps: Sequence[Gap]) -> None:
        """Why there is nothing to decode."""
        reason = scan.unusable[0] if scan.unusable else gaps[0].as_error() if gaps else None
        phase = CapturePhase.WAITING_FOR_REDO if reason else CapturePhase.CAUGHT_UP
        if not scan.source_answers:
            phase = CapturePhase.WAITING_FOR_SOURCE
        if self._monitor.enter(phase, reason) and reason is not None:
            _log.warning(phase.value, reason=str(reason))

    def _follow(self) -> None:
        stopping = self._decoder._stopping
        idle = 0
        while not stopping.is_set():
            logs = self._new_logs()
            if logs and not self._decode(logs):
                return
            if logs:
                idle = 0
                continue
            if self._decoder._once:
                self.merger.report_waiting()
                self._decoder.drained.set()
                return
            stopping.wait(self._decoder._source.pause(idle))
            idle += 1

    def _new_logs(self) -> list[ArchivedLog]:
        """Logs to decode now, oldest first."""
        delivered = max(self._scn, self.merger.watermark)
        scan = self._decoder._source.scan(delivered, self.merger.watermark)
        report_skipped([file for file in scan.skipped if file.path not in self._skipped])
        self._skipped = {file.path for file in scan.skipped}
        if self._decoder._once and scan.unusable:
            raise scan.unusable[0]
        if not self._begun:
            # A live source may have archived nothing yet when decoding started.
            self._check_beginning(scan.logs)
        stream = join_logs(scan.logs, self._decoder._source.database)
        self._progress.scanned(stream)
        self._admit_threads(stream.readable)
        for thread in scan.open_threads or ():
            # Nothing may leave before its first log has come.
            self.merger.add_thread(thread, self._scn)
        logs = [
            log
            for log in stream.readable
            if log.position not in self._decoded and log.next_scn > self._scn
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
            _log.info("redo thread closed", thread=thread)
            released = self.merger.close_thread(thread)
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
        by_path = {log.path: log for log in logs}
        for released, left_out, source in merge_splits(self.merger, sources, self._decode_splits):
            log = by_path.get(source.split.path)
            end = None if log is None else log.end_scn
            if end is not None:
                released = [t for t in released if t.commit_scn < end]
                left_out = [fault for fault in left_out if fault.commit_scn < end]
            if not self._deliver(released, left_out):
                return False
            self._note_decoding()
            if log is not None:
                self._progress.merged(source.split, log.header.block_size, self.merger)
            if self.merger.failure is not None:
                raise self.merger.failure
            if log is not None and source.split.end_block == log.blocks:
                self._decoded.add(log.position)
                self._progress.decoded(log, self.merger)
                self._report(log)
                if end is not None:
                    self.merger.abandon(end)
        return True

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
        """Queue transactions, and publish what of them was left out; False at the session's end.

        What `open_scn` answers covers a transaction until its `put_all` has returned.
        """
        self.events.add(left_out)
        rest = min([self.merger.open_scn(), *self.events.begins()])
        begins = np.array([t.begin_scn for t in transactions], np.int64)
        lowest = np.minimum.accumulate(begins[::-1])[::-1].tolist()
        start = 0
        while start < len(transactions):
            self.events.publish_before(transactions[start].commit_scn)
            end = self._queued_together(transactions, start)
            self._decoder._open_scn = min(rest, lowest[start])
            if not self.queue.put_all(transactions[start:end]):
                return False
            self._progress.queued.add(transactions[end - 1].commit_scn, time.time())
            self._note_decoding()
            start = end
        self.events.publish_before(self.merger.watermark)
        self._progress.queued.add(self.merger.watermark, time.time())
        self._decoder._open_scn = min([self.merger.open_scn(), *self.events.begins()])
        return not self._decoder._stopping.is_set()

    def _queued_together(self, transactions: Sequence[ReadyTransaction], start: int) -> int:
        """The end of the transactions that are queued at once: none behind the next event."""
        end = min(start + _PUT_TRANSACTIONS, len(transactions))
        barrier = self.events.barrier
        if barrier is None or transactions[end - 1].commit_scn < barrier:
            return end
        return next(at for at in range(start, end) if transactions[at].commit_scn >= barrier)

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
