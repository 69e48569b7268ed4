"""A run of decoding: decodes archived logs in order, and fills the ready queues of its targets.

All runs of a decoder share its logs, its threads, its storage and its filters. Followers of the
dictionary are kept after a run for the next one. A run waits for some redo threads before it
releases transactions.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import structlog

from olr_pg.capture.capture_state import CapturePhase
from olr_pg.capture.logs import report_skipped
from olr_pg.capture.wanted_logs import (
    DecodedLogs,
    check_beginning,
    check_order,
    orphaning_log,
    unread_logs,
    wanted_stream,
)
from olr_pg.decoding.incidents import LogFile, with_incident
from olr_pg.errors import Code, OlrPgError
from olr_pg.files.system_errors import unexpected_failure
from olr_pg.observability.periodic import join_started, steady_time
from olr_pg.ordering.merger import Merger
from olr_pg.ordering.new_incarnation import Incarnations, behind_delivered
from olr_pg.ordering.ready_transactions import Release, by_view
from olr_pg.ordering.split_merging import merge_splits, move_on, thread_splits
from olr_pg.ordering.table_events import EventFeed, FaultReporter
from olr_pg.ordering.transaction_filters import TransactionFilters
from olr_pg.replicator.decode_once import thread_starts
from olr_pg.replicator.decoding_progress import enter_phase, tell_end_ahead, tell_waiting
from olr_pg.replicator.recovery.bounded_recovery import RecoveryRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from olr_pg.capture.archived_log import ArchivedLog, LogPosition, Reached
    from olr_pg.capture.continuity import LogStream
    from olr_pg.capture.logs import LogScan
    from olr_pg.capture.redo_threads import KnownThreads
    from olr_pg.decoding.dictionary_follower import DictionaryFollower
    from olr_pg.decoding.filters import Filters
    from olr_pg.decoding.split import Decode, Split, Subscription
    from olr_pg.dictionary.model import Snapshot
    from olr_pg.ordering.ready_transactions import ReadyRun
    from olr_pg.ordering.run_end import Until
    from olr_pg.ordering.split_merging import Merged
    from olr_pg.replicator.decoding_progress import DecodeProgress
    from olr_pg.replicator.feed import Feed
    from olr_pg.replicator.recovery.bounded_recovery import BoundedRecovery, NamedImage
    from olr_pg.replicator.run_control import Runs, SharedLogs
    from olr_pg.transactions.row_fault import RowFault
    from olr_pg.transactions.schema_event import SchemaEvent
    from olr_pg.transactions.waiting_storage import Storage


class Admission:
    """The redo threads of one run.

    Args:
        known: the threads that were read in this run or in earlier runs.
        scn: the start SCN of the run.
        known_scn: the SCN up to which the dictionary is known (`check_beginning`).
        waits: whether the run waits if the first redo of a thread is missing.

    Attributes:
        silent: threads that were read before this run and have no log here, so that it is unknown
            whether another log will appear.
    """

    def __init__(
        self,
        merger: Merger,
        known: KnownThreads,
        scn: int,
        *,
        known_scn: int = 0,
        waits: bool = False,
    ) -> None:
        self._known_scn = known_scn
        self._waits = waits
        self._merger = merger
        self._known = known
        self._scn = scn
        self._begun: set[int] = set()
        self._newest: dict[int, LogPosition] = {}
        self._closed: dict[int, LogPosition | None] = {}
        self.silent: frozenset[int] = frozenset()

    def check_beginnings(self, logs: Sequence[ArchivedLog], reached: Mapping[int, Reached]) -> None:
        """Check that the first available log of each thread contains the run's start SCN, or begins
        before it.

        A thread is checked when its first log is available, because an open thread may have no
        archived log when the run begins.

        Args:
            reached: the position of each thread in the recovery image.

        Raises:
            OlrPgError: 2010, the oldest log of a thread begins too late.
        """
        unread = unread_logs(logs, self._scn, reached) if reached else logs
        new = [log for log in unread if log.header.thread not in self._begun]
        check_beginning(new, self._scn, reached, known_scn=self._known_scn)
        self._begun.update(log.header.thread for log in new)

    def missing_beginnings(
        self, logs: Sequence[ArchivedLog], reached: Mapping[int, Reached]
    ) -> list[OlrPgError]:
        """Call `check_beginnings`. If `check_beginnings` fails and the run waits for missing redo,
        return the error instead of raising it.

        Raises:
            OlrPgError: 2010, as for `check_beginnings`, if the run does not wait.
        """
        try:
            self.check_beginnings(logs, reached)
        except OlrPgError as error:
            if not self._waits:
                raise
            return [error]
        return []

    def admit(self, stream: LogStream, scan: LogScan) -> None:
        """Wait for all threads that have unread logs now, or may have some later.

        If it is unknown which threads are open, the run also waits for a thread that was read
        before and has no log here. The logs of such a thread can be confirmed and deleted, and its
        next log can contain older redo than the logs of other threads.

        Raises:
            OlrPgError: 2014, a new thread has redo that is older than transactions that were
                already released.
        """
        logs, opened = stream.readable, scan.open_threads
        starts = thread_starts(logs)
        self.silent = frozenset()
        if opened is None:
            # This check is not needed if the open threads are known: the run then waits for an open
            # thread even before its first log is archived.
            self._check_in_time(starts)
            if scan.source_answers:
                here = {log.header.thread for log in stream.logs}
                self.silent = self._known.known - here - self._begun - self._closed.keys()
        self._newest.update((log.header.thread, log.position) for log in logs)
        for thread, scn in thread_starts(logs, self._scn).items():
            if not self._is_closed(thread):
                self._wait_for(thread, scn)
        for thread in {*(opened or ()), *self.silent, *(gap.thread for gap in stream.gaps)}:
            self._wait_for(thread, self._scn)
        self._known.add(starts)

    def reasons(self) -> list[OlrPgError]:
        """Return an error for each silent redo thread, for which the run waits although no log
        shows that it is open.
        """
        detail = (
            "transactions of the other threads that committed since then wait for the"
            " thread's next log"
        )
        return [
            OlrPgError(Code.REDO_THREAD_MISSING, detail, thread=thread)
            for thread in sorted(self.silent)
        ]

    def closed(self, thread: int) -> None:
        """Stop waiting for a closed thread that was read to its end. Only a newer log of the thread
        reopens it.
        """
        self._closed[thread] = self._newest.get(thread)

    def _check_in_time(self, starts: Mapping[int, int]) -> None:
        known = self._known.known
        delivered = max(self._scn, self._merger.watermark)
        for thread, first_scn in starts.items():
            if known and thread not in known and first_scn < delivered:
                raise OlrPgError(
                    Code.REDO_TOO_LATE,
                    f"the logs of the thread begin at SCN {first_scn}, but transactions"
                    f" of other threads up to SCN {delivered} are already delivered",
                    thread=thread,
                    scn=first_scn,
                )

    def _is_closed(self, thread: int) -> bool:
        if thread not in self._closed:
            return False
        last = self._closed[thread]
        return last is not None and self._newest[thread] <= last

    def _wait_for(self, thread: int, scn: int) -> None:
        """Make the merger wait for a thread, from `scn` on.

        If a thread was closed for some time, its logs of that time can be deleted. So the merger
        waits for it only from the SCN of the last released transaction on.
        """
        self._closed.pop(thread, None)
        self._merger.add_thread(thread, max(scn, self._merger.left_scn))


class FollowerPool:
    """Followers of runs that have ended. The next run need not follow the same dictionary changes
    again.

    Args:
        make: creates a follower of a dictionary.
    """

    def __init__(self, make: Callable[[Snapshot], DictionaryFollower]) -> None:
        self._make = make
        self._idle: list[DictionaryFollower] = []
        self._lock = threading.Lock()

    def take(self, snapshot: Snapshot) -> DictionaryFollower:
        """Return the idle follower of this dictionary that has followed it the furthest, or a new
        one. The other idle followers are discarded.
        """
        with self._lock:
            idle = [one for one in self._idle if one.snapshot is snapshot]
            self._idle = []
            if not idle:
                return self._make(snapshot)
            return max(idle, key=lambda one: one.done)

    def give_back(self, follower: DictionaryFollower) -> None:
        """Keep the follower of a run that has ended."""
        with self._lock:
            self._idle.append(follower)


@dataclass(frozen=True, kw_only=True)
class RunParts:
    """The objects that all runs of a decoder share.

    Attributes:
        decode: decodes splits, on Spark or in this process.
        followers: provides followers of the dictionary, and takes a run's follower back at its end.
        threads: the redo threads that were read.
        storage: stores the bytes of open and of large transactions.
        filters: the filters for all targets.
        incidents: the directory for the incident files of decoding errors.
        recovery: stores the changes of open transactions for restarts; None to read their redo
            again.
        once: whether a run ends when all available logs are decoded.
        until: where a run ends; None for no end.
    """

    logs: SharedLogs
    decode: Decode
    followers: FollowerPool
    threads: KnownThreads
    storage: Storage
    filters: Filters
    incidents: Path | None
    recovery: BoundedRecovery | None
    once: bool
    until: Until | None

    @property
    def waits_for_beginning(self) -> bool:
        """Whether a run waits if its first log is missing, because the log can still appear.

        If online logs are read, the source may still be archiving the log, although its group is
        already reused.
        """
        return self.logs.source.is_online and not self.once


_ROOM_SECONDS: Final = 0.2
"""Seconds of one wait for space in a full queue; after each wait, the run checks whether it must
end.
"""

_LOGS_REMEMBERED: Final = 1024
"""Number of recent logs in which the redo of a failure is searched for an incident file. This
number is limited because a run can last for years.
"""

_log = structlog.get_logger(__name__)


class DecodingRun:
    """A run of decoding for some targets, in its own thread; implements `run_control.Run`."""

    def __init__(
        self,
        parts: RunParts,
        listener: Runs,
        subscription: Subscription,
        follower: DictionaryFollower,
        feeds: dict[Feed, int],
        view_filters: Sequence[Filters],
        progress: DecodeProgress,
    ) -> None:
        self._parts = parts
        self._listener = listener
        self._follower = follower
        self._views = feeds
        self.feeds = tuple(feeds)
        self.progress = progress
        self._scn = min(feed.open_scn for feed in feeds)
        progress.begin(self._scn)
        self.merger = Merger(
            subscription,
            self._scn,
            {},
            follower,
            parts.storage,
            parts.logs.source.lob_source,
            TransactionFilters(parts.filters, view_filters),
            parts.until,
        )
        self._until = parts.until
        self.reached = self.recent_scn = self._scn
        self.ending = threading.Event()
        self._events = EventFeed(follower, self._publish, FaultReporter(self._with_incident))
        self._logs: deque[LogFile] = deque(maxlen=_LOGS_REMEMBERED)
        self._decoded = DecodedLogs()
        self._more_is_coming = False
        self._held_up: OlrPgError | None = None
        self._skipped: set[str] = set()
        self._ends: dict[int, ArchivedLog] = {}
        self._starts = {feed: feed.open_scn for feed in feeds}
        self._incarnations = Incarnations(self.merger, self._starts.values())
        self._admission = Admission(
            self.merger,
            parts.threads,
            self._scn,
            known_scn=parts.logs.known_scn(follower.snapshot),
            waits=parts.waits_for_beginning,
        )
        self._recovery: RecoveryRun | None = None
        if parts.recovery is not None:
            self._recovery = RecoveryRun(
                parts.recovery, self._scn, lambda: [feed.delivery.name for feed in self.feeds]
            )
        self._reached: Mapping[int, Reached] = {}
        self._lobs_scn = -1
        self._is_orphaned = False
        self._thread = threading.Thread(target=self.run, name="olr-decode", daemon=True)

    def restore(self, image: NamedImage) -> None:
        """Restore the open transactions from a recovery image, if it can be used.

        Raises:
            OlrPgError: 2010 the logs after the image are missing; 2xxx the logs cannot be used.
        """
        assert self._recovery is not None
        try:
            self._restore(self._recovery, image)
        except OlrPgError:
            self._recovery.end()
            raise

    def _restore(self, recovery: RecoveryRun, image: NamedImage) -> None:
        restored = recovery.restore(image, self.merger.subscription)
        try:
            logs = self._parts.logs.scan(self, self._scn, self._promised_scn).logs
        finally:
            self._parts.logs.remove_reader(self)
        if restored is not None:
            orphaning = orphaning_log(unread_logs(logs, self._scn, restored.marks), restored.marks)
            if orphaning is None:
                self._reached = restored.marks
                self._decoded.begin_at(restored.marks.values())
                self._incarnations.restored(restored.marks.values())
                self.merger.restore(restored.state)
            else:
                first_scn = orphaning.header.first_scn
                detail = f"{orphaning.path} begins at SCN {first_scn}, before its end"
                recovery.refuse(image, OlrPgError(Code.RECOVERY_IMAGE_UNFIT, detail))
        if not self._parts.waits_for_beginning:
            assert self._parts.recovery is not None
            try:
                check_beginning(logs, self._scn, self._reached)
            except OlrPgError as error:
                raise self._parts.recovery.explained(error) from None

    def begin(self) -> None:
        """Start the thread.

        Raises:
            OlrPgError: 1108, the operating system refuses the thread.
        """
        self._announce_incarnations()
        self._events.publish_past(self._scn)
        try:
            self._thread.start()
        except RuntimeError as error:  # the system cannot start more threads
            raise unexpected_failure(error) from error

    def join(self) -> None:
        """Wait until the thread has ended."""
        join_started(self._thread)

    def run(self) -> None:
        """Decode until the run must end. An error ends the targets' queues with that error."""
        failed = True
        try:
            self._follow()
            failed = False
        except OlrPgError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001 - the thread's outer edge: the client must hear
            self._fail(_coded(error))
        finally:
            self._parts.logs.remove_reader(self)
            if not (failed or self._is_orphaned):
                # After a failure, do not reuse the follower, because an update of it may be
                # incomplete. The next run creates a new one from durable state.
                self._parts.followers.give_back(self._follower)
            if self._recovery is not None:
                self._recovery.end()
            self._listener.ended(self, failed=failed)

    def _fail(self, error: OlrPgError) -> None:
        error = self._with_incident(error)
        for feed in self.feeds:
            feed.fail(error)

    def _with_incident(self, error: OlrPgError) -> OlrPgError:
        return with_incident(error, self._logs, self._parts.incidents)

    def _enter(self, phase: CapturePhase, reason: OlrPgError | None = None) -> bool:
        """Set the phase of the targets; return whether the phase of a target has changed."""
        return enter_phase([feed.delivery.monitor for feed in self.feeds], phase, reason)

    def _note_decoding(self) -> None:
        spilled = self._parts.storage.waiting_bytes > 0
        phase = CapturePhase.SPILLING if spilled else CapturePhase.DECODING
        # While redo is missing, changes that are decoded from later redo wait for it too.
        self._enter(CapturePhase.WAITING_FOR_REDO if self._held_up else phase, self._held_up)

    def _note_waiting(self, scan: LogScan, missing: Sequence[OlrPgError]) -> None:
        """Set the phase and the reason for which there is nothing to decode."""
        reason = next(iter([*scan.unusable, *missing, *self._admission.reasons()]), None)
        phase = CapturePhase.WAITING_FOR_REDO if reason else CapturePhase.CAUGHT_UP
        self._held_up = reason if scan.source_answers else None
        if not scan.source_answers:
            phase = CapturePhase.WAITING_FOR_SOURCE
        is_caught_up = phase is CapturePhase.CAUGHT_UP
        is_new = self._note_caught_up() if is_caught_up else self._enter(phase, reason)
        if is_new and reason is not None:
            tell_waiting(phase, reason)
        elif is_new and self._until is not None:
            tell_end_ahead(self.merger.watermark, self._until.scn)

    def _note_caught_up(self) -> bool:
        """Report that all available redo is decoded. For a target whose start SCN is after all
        known redo, report that its redo is missing.

        The missing redo is not reported if the start SCN comes from the checkpoint, or if the
        source has reached this SCN. In both cases, the redo exists, but is not archived yet.

        Returns:
            Whether the phase of a target has changed.
        """
        logs, is_new = self._parts.logs, False
        for feed in self.feeds:
            monitor, scn = feed.delivery.monitor, feed.start_scn
            if feed.resumed or scn <= logs.reach_scn or logs.is_reached(scn):
                is_new |= monitor.enter(CapturePhase.CAUGHT_UP)
                continue
            ends = (
                f"the redo ends at {logs.reach_scn}" if logs.reach_scn else ("no log contains it")
            )
            error = OlrPgError(Code.START_BEYOND_REDO, f"SCN {scn}, {ends}")
            if monitor.enter(CapturePhase.WAITING_FOR_REDO, error):
                tell_waiting(CapturePhase.WAITING_FOR_REDO, error)
        return is_new

    def _follow(self) -> None:
        idle = 0
        while not self.ending.is_set():
            if self._recovery is not None:
                self._recovery.settle(self.merger)
            logs = self._new_logs()
            if self.ending.is_set():  # a closed thread has released orphaned transactions
                return
            if not self._is_through() and logs and not self._decode(logs):
                return
            if self._is_through():
                self._end_until()
                return
            self._listener.join_with_near(self)
            if logs:
                idle = 0
                continue
            if self._parts.once and not self._more_is_coming:
                self.merger.report_waiting()
                for feed in self.feeds:
                    feed.delivery.drained.set()
                return
            self._parts.logs.await_redo(self._parts.logs.source.pause(idle), self.ending)
            idle += 1

    def _is_through(self) -> bool:
        """Return whether the run has an end SCN, and has read all redo before it."""
        return self._until is not None and self._until.is_passed(self.merger.watermark)

    def _end_until(self) -> None:
        assert self._until is not None
        _log.info("all redo up to the end of the run was read", until_scn=self._until.scn)
        for feed in self.feeds:
            feed.delivery.drained.set()

    def _new_logs(self) -> list[ArchivedLog]:
        """Return the logs to decode now, oldest first."""
        needed = max(self._scn, self.merger.needed_scn)
        scan = self._parts.logs.scan(self, needed, self._promised_scn)
        report_skipped([file for file in scan.skipped if file.path not in self._skipped])
        self._skipped = {file.path for file in scan.skipped}
        lasting = [one for one in scan.unusable if one.code != Code.LOG_ON_ITS_WAY]
        self._more_is_coming = len(lasting) < len(scan.unusable)
        if self._parts.once and lasting:
            raise lasting[0]
        missing = self._admission.missing_beginnings(scan.logs, self._reached)
        if missing:
            self._note_waiting(scan, missing)
            return []
        database = self._parts.logs.source.database
        stream = wanted_stream(scan, database, self._scn, self._reached, self._decoded)
        self.progress.scanned(stream, self._parts.logs.unseen_since, self._parts.logs.answered_at)
        self._limit(stream.logs)
        self._admission.admit(stream, scan)
        unread = unread_logs(stream.readable, self._scn, self._reached)
        if self._parts.logs.source.is_online:
            self._decoded.expect((*unread, *(log for log in stream.readable if log.grows)))
        logs = [log for log in unread if not self._decoded.has_all(log)]
        if scan.open_threads is not None and not stream.gaps and not scan.unusable:
            self._close_threads(scan.open_threads, logs)
        check_order(logs, self._decoded)
        logs = self._incarnations.readable(sorted(logs, key=lambda log: log.header.first_scn))
        missing = [*(gap.as_error() for gap in stream.gaps), *self._incarnations.reasons()]
        if not logs:
            if missing and self._parts.once and not self._more_is_coming:
                raise missing[0]
            self._note_waiting(scan, missing)
        elif str(self._held_up) not in map(
            str, [*scan.unusable, *missing, *self._admission.reasons()]
        ):
            self._held_up = None
        return logs

    @property
    def _promised_scn(self) -> int:
        """The SCN below which a restart delivers no transaction, because a checkpoint has passed
        it. The source knows the SCN up to which transactions were delivered.
        """
        return max([0, *(feed.saved_scn for feed in self.feeds)])

    def _limit(self, logs: Iterable[ArchivedLog]) -> None:
        """If a RESETLOGS has orphaned the redo of the current incarnation from an SCN on, release
        no transactions from this SCN on.
        """
        scn = self._incarnations.limit(logs)
        if scn is not None:
            for feed in self._begun_before(scn):
                feed.limit_open(scn)

    def _begun_before(self, scn: int) -> list[Feed]:
        """Return the targets for which the run began at an SCN or before it. The other targets
        began after this SCN, in a later incarnation.
        """
        return [feed for feed in self.feeds if self._starts[feed] <= scn]

    def _close_threads(self, opened: frozenset[int], logs: Sequence[ArchivedLog]) -> None:
        """Stop waiting for redo threads that are closed in the source and were read to their
        end.
        """
        unread = {log.header.thread for log in logs}
        for thread in self.merger.threads - opened - unread:
            if not self._move_on(partial(self.merger.close_thread, thread)):
                return
            self._admission.closed(thread)
            _log.info("redo thread closed", thread=thread)

    def _move_on(self, step: Callable[[], list[ReadyRun]]) -> bool:
        """Deliver the transactions that the merger releases in a step; return False if the run must
        end.
        """
        return self._take(move_on(self.merger, step, self._parts.decode), {})

    def _report_restarts(self, logs: Sequence[ArchivedLog]) -> None:
        """Log where a redo thread continues at a higher SCN than the one at which its previous log
        ends. Such a gap is usual after a restart of the instance (redo-format §1.5). But if a log
        were truncated, only this line of the log would show the truncation.
        """
        for log in logs:
            header, before = log.header, self._ends.get(log.header.thread)
            if (
                before is not None
                and before.header.resetlogs_id == header.resetlogs_id
                and before.header.sequence + 1 == header.sequence
                and before.next_scn < header.first_scn
            ):
                _log.info(
                    "a redo thread continues at a higher SCN: its instance was restarted",
                    thread=header.thread,
                    sequence=header.sequence,
                    previous_end=before.next_scn,
                    first_scn=header.first_scn,
                )
            self._ends[header.thread] = log

    def _decode(self, logs: Sequence[ArchivedLog]) -> bool:
        """Decode logs of one incarnation; return False if the run must end."""
        self._logs += map(LogFile.of, logs)
        self._report_restarts(logs)
        if self._until is not None:
            for log in logs:
                self._until.see_log(log)
        self._note_decoding()
        self._announce_incarnations()
        scn = self._incarnations.begin(logs[0])
        if scn is not None:
            saved = max((feed.saved_scn for feed in self._begun_before(scn)), default=-1)
            if saved > scn:
                raise behind_delivered(logs[0], saved)
            if not self._begin_incarnation(scn):
                return False
        sources = thread_splits(logs, self._decoded.goes_on_at)
        merged = merge_splits(self.merger, sources, self._parts.decode)
        return self._take(merged, {log.path: log for log in logs})

    def _announce_incarnations(self) -> None:
        """Announce the incarnations of the source before changes of a new one are delivered."""
        ancestry = self._parts.logs.ancestry
        for feed in self.feeds:
            feed.announce(ancestry)

    def _take(self, merged: Iterable[Merged], logs: Mapping[str, ArchivedLog]) -> bool:
        """Deliver the transactions that the merger releases; return False if the run must end.

        Args:
            logs: the logs that are read for the first time, by path.
        """
        for released, left_out, source in self._in_time(merged):
            if not self._deliver(released, left_out):
                return False
            if source is not None and not self._merged(source.split, logs):
                return False
            if self.merger.failure is not None:
                raise self.merger.failure
            if self._is_through():
                return True  # the run's end is reached: ignore the rest
        return True

    def _in_time(self, merged: Iterable[Merged]) -> Iterator[Merged]:
        """Yield the merged splits. If a transaction was read too late, record it, because a restart
        would skip it.
        """
        try:
            yield from merged
        except OlrPgError as error:
            if error.code == Code.REDO_TOO_LATE:
                names = [feed.delivery.name for feed in self.feeds]
                self._parts.threads.note_late(names, error)
            raise

    def _merged(self, split: Split, logs: Mapping[str, ArchivedLog]) -> bool:
        """Record that a split was merged; return False if the run must end.

        Args:
            logs: the logs that are read for the first time, by path.
        """
        self._note_decoding()
        log = logs.get(split.path)
        if log is not None:
            self.progress.merged(split, log.header.block_size, self.merger)
        if self.merger.failure is None:
            if log is not None and (split.joined or split.end_block == log.blocks):
                return self._logs_read([logs[one.path] for one in split.joined] or [log])
            if self._recovery is not None:
                self._recovery.settle(self.merger)
        return True

    def _logs_read(self, logs: Sequence[ArchivedLog]) -> bool:
        """Record that logs were read to their end, or that a growing log was read up to its known
        end.

        Return False if the run must end.
        """
        log = logs[-1]
        if log.grows:
            self._decoded.read_up_to(log.position, log.blocks)
            self.progress.read_up_to(log)
        else:
            for one in logs:
                self._decoded.add(one.position)
                if self._until is not None:
                    self._until.see_end(one)
            self.progress.decoded(logs, self.merger)
            self.progress.report(logs, self.merger)
        for one in logs:
            self._incarnations.decoded(one)
        if self._recovery is not None:
            self._recovery.logs_read(logs, self.merger)
        self.reached = self.merger.watermark
        self.recent_scn = log.header.first_scn
        self._listener.join_with_near(self)
        return not self.ending.is_set()

    def _begin_incarnation(self, scn: int) -> bool:
        """Drop the redo from `scn` on, which a RESETLOGS has orphaned; the new incarnation's redo
        replaces it.

        Return False if the run must end.
        """
        if not self._move_on(partial(self.merger.pass_scn, scn)):
            return False
        _log.info("discarding redo that a RESETLOGS made invalid", resetlogs_scn=scn)
        self.merger.abandon(scn)
        for feed in self._begun_before(scn):
            feed.abandon(scn)
        if self._recovery is not None:
            self._recovery.abandoned()
        return True

    def _deliver(self, released: Sequence[ReadyRun], left_out: Sequence[RowFault]) -> bool:
        """Queue transactions, and publish the faults; return False if the run must end.

        Until a transaction is queued, `Feed.open_scn` is at or below its begin SCN.
        """
        if released or left_out or self.merger.left_dictionary:
            # Record this SCN before the delivery: if the source is opened with RESETLOGS before the
            # next scan, the scan must know what was delivered.
            left = self.merger.left_scn
            end = self._parts.logs.delivering(left, self._incarnations.current)
            if end is not None and end < left:
                self._begin_again(end)
                return False
        self._events.add(left_out)
        rest = min([self.merger.open_scn(), *self._events.begins()])
        leaving = Release(released)
        while leaving:
            if not self._events.publish_before(leaving.first_commit_scn):
                return False
            self._note_open(min(rest, leaving.lowest_begin_scn))
            together, last = leaving.take(self._events.barrier)
            if not self._put(together):
                return False
            self.progress.queued.add(last, steady_time())
            self._note_decoding()
        if not self._events.publish_before(self.merger.deliverable_scn):
            return False
        self.progress.queued.add(self.merger.deliverable_scn, steady_time())
        self._note_open(min([self.merger.open_scn(), *self._events.begins()]))
        for feed in self.feeds:
            feed.note_passed(self.merger.left_scn - 1)
        return not self.ending.is_set()

    def _begin_again(self, scn: int) -> None:
        """End the run, so that a new run reads the redo before `scn`, and then the new incarnation.

        The run would otherwise deliver orphaned redo: it found its logs before the RESETLOGS, and
        delivers slowly. Meanwhile, the reader of another target has found the RESETLOGS.
        """
        _log.info("reading the redo again, up to a RESETLOGS", resetlogs_scn=scn)
        for feed in self._begun_before(scn):
            feed.abandon(scn)
        self._is_orphaned = True
        self.ending.set()

    def _note_open(self, scn: int) -> None:
        for feed in self.feeds:
            feed.note_open(scn)

    def _put(self, runs: Sequence[ReadyRun]) -> bool:
        """Queue transactions for all targets; return False if the run must end."""
        of_view = by_view(runs)
        for feed in self.feeds:
            if not self._put_for(feed, of_view.get(self._views[feed], [])):
                return False
        return not self.ending.is_set()

    def _put_for(self, feed: Feed, runs: Iterable[ReadyRun]) -> bool:
        """Queue transactions for one target; return False if the run must end.

        If the target's queue is full, wait for space. If other targets would have to wait too, move
        this target to its own run instead.
        """
        for run in map(feed.wanted, runs):
            while run:
                _, run = run.cut(feed.offer(run))
                if run and not self._await(feed, partial(feed.queue.await_room, run)):
                    return not self.ending.is_set()
        return True

    def _await(self, feed: Feed, has_room: Callable[[float], bool]) -> bool:
        """Wait for space in a target's queue; return False if this run does not feed the target any
        more, or must end.

        Args:
            has_room: waits for space for at most the given seconds; returns whether there is space.
        """
        if feed.queue.closed:
            self._listener.drop(self, feed)
            return False
        if len(self.feeds) > 1:
            self._detach(feed)
            return False
        self._enter(CapturePhase.PAUSED_FOR_FLOW_CONTROL)
        while not has_room(_ROOM_SECONDS):
            if self.ending.is_set():
                return False
        return True

    def _detach(self, feed: Feed) -> None:
        reason = feed.too_far_behind()
        _log.warning(
            "a target is too far behind the others: decoding continues without it",
            code=reason.label,
            reason=str(reason),
        )
        self._listener.detach(self, feed)

    def _publish(self, event: SchemaEvent) -> bool:
        """Send an event of a table to the targets; return False if the run must end."""
        for feed in self.feeds:
            if event.view not in (None, self._views[feed]):
                continue
            has_room = partial(feed.await_event_room, event)
            if self._waits_for_room(event) and not (has_room(0) or self._await(feed, has_room)):
                continue
            error = feed.publish(event)
            if error is not None:
                feed.fail(error)
                self._listener.drop(self, feed)
        if event.lobs:
            self._lobs_scn = event.commit_scn
        return not self.ending.is_set()

    def _waits_for_room(self, event: SchemaEvent) -> bool:
        """Return whether an event must wait for space in the queue. If several events report
        missing LOB values of the same commit SCN, only the first of them waits.
        """
        is_first = bool(event.lobs) and event.commit_scn != self._lobs_scn
        return event.is_fault or is_first or event.evolution.concerns_two


def _coded(error: Exception) -> OlrPgError:
    """Convert an unexpected exception to an error with a code; log a defect with its calls."""
    failure = unexpected_failure(error)
    if failure.code == Code.INTERNAL:
        _log.error("decoding failed", exc_info=error)
    return failure
