"""Manages the runs of decoding, and assigns the targets to them.

Usually one run feeds all targets: it decodes the redo once, from the lowest SCN that a target
needs, and each target receives the transactions that it lacks (`feed.Feed`). There are several runs
only while the targets are at different positions:

- Targets that start at the same time wait for each other (`expected`), and begin in one run.
- A target that connects later, or reconnects, begins in its own run, at its own SCN. The other
  targets continue.
- A target whose queue and backlog are full (OLR-04040) is moved to its own run, which waits for it,
  so that it does not delay the other targets.
- Runs at about the same position are joined if the queues of all their targets are far from full:
  the runs end, and a new run begins at the lowest begin SCN of their open transactions.
- If no recovery image (`recovery`) can be used for all targets, the targets begin in several runs,
  and these runs are not joined.

Alternatively, the common run could wait for a target whose queue is full. But if the run waited,
one broken client would stop replication for all targets. Separate runs avoid this, although the
same redo is decoded more than once for some time.

The runs share the logs of their source (`SharedLogs`).
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final, Protocol

import structlog

from olr_pg.capture.wanted_logs import check_beginning
from olr_pg.errors import OlrPgError
from olr_pg.observability.periodic import steady_time
from olr_pg.replicator.decoding_progress import DecodeProgress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from olr_pg.capture.logs import LogScan
    from olr_pg.capture.source_database import SourceDatabase
    from olr_pg.dictionary.model import Snapshot, Table
    from olr_pg.replicator.feed import Feed
    from olr_pg.transactions.schema_event import Ancestry


EXPECTED_SECONDS: Final = 30.0
"""Maximum time that a started target waits for the other expected targets."""

_log = structlog.get_logger(__name__)


class Run(Protocol):
    """A run of decoding, in its own thread.

    Attributes:
        feeds: the targets that it feeds; replaced, never modified.
        progress: the progress of the run.
        reached: all transactions that commit below this SCN were delivered.
        recent_scn: the first SCN of the last decoded log.
        ending: set this event to end the run.
    """

    feeds: tuple[Feed, ...]
    progress: DecodeProgress
    reached: int
    recent_scn: int
    ending: threading.Event

    def begin(self) -> None:
        """Start the thread. When the run ends, it calls `Runs.ended`."""

    def join(self) -> None:
        """Wait until the thread has ended."""


class Runs:
    """The runs of one decoder; thread-safe.

    Args:
        make: creates a run for some feeds.
        groups: divides feeds into groups; the feeds of a group can begin in one run.
        joins: whether runs can be joined; otherwise each run continues to its own end.
        expected: the names of the targets that wait for each other.
    """

    def __init__(
        self,
        make: Callable[[Sequence[Feed], DecodeProgress], Run],
        groups: Callable[[Sequence[Feed]], list[list[Feed]]],
        *,
        joins: bool = True,
        expected: Iterable[str] = (),
    ) -> None:
        self._make = make
        self._groups = groups
        self._joins = joins
        self._expected = set(expected)
        self._lock = threading.RLock()
        self._running: list[Run] = []
        self._waiting: list[Feed] = []
        self._front: DecodeProgress | None = None
        self._timer: threading.Timer | None = None

    def start(self, feed: Feed, *, together: bool = False) -> None:
        """Begin to decode for a target, which has a start SCN.

        Args:
            together: whether to end all runs, and to begin new ones for all targets.

        Raises:
            OlrPgError: the run cannot begin.
        """
        with self._lock:
            if together and self._running:
                for run in self._running:
                    run.ending.set()
                self._waiting.append(feed)
                return
            if not self._expected:
                self._begin([feed])
                return
            self._expected.discard(feed.delivery.name)
            self._waiting.append(feed)
            if self._timer is None:
                self._timer = threading.Timer(EXPECTED_SECONDS, self._expect_no_more)
                self._timer.daemon = True
                self._timer.start()
            self._begin_waiting()

    def stop_expecting(self, name: str) -> None:
        """Stop waiting for an expected target."""
        with self._lock:
            self._expected.discard(name)
            self._begin_waiting()

    def leave(self, feed: Feed) -> None:
        """Remove a feed from its run. If the run has no other feeds, wait for its end."""
        with self._lock:
            self._waiting = [one for one in self._waiting if one is not feed]
            left = [run for run in self._running if feed in run.feeds]
            for run in left:
                self._remove(run, feed)
        for run in left:
            if not run.feeds:
                run.join()

    def detach(self, run: Run, feed: Feed) -> None:
        """Move a feed that delays the other feeds of its run to its own run."""
        with self._lock:
            if feed not in run.feeds or run.ending.is_set():
                return
            self._remove(run, feed)
            try:
                self._begin([feed])
            except OlrPgError as error:
                feed.fail(error)

    def drop(self, run: Run, feed: Feed) -> None:
        """Remove a feed that has ended from its run."""
        with self._lock:
            self._remove(run, feed)

    def join_with_near(self, run: Run) -> None:
        """If other runs are near the position of this run, end all of them, so that one new run
        continues for all their targets.
        """
        if not self._joins:
            return
        with self._lock:
            if len(self._running) < 2 or any(one.ending.is_set() for one in self._running):
                return
            calm = [one for one in self._running if all(f.queue.is_calm() for f in one.feeds)]
            front = max(calm, key=lambda one: one.reached, default=run)
            near = [front]
            for one in calm:
                feeds = [feed for other in (*near, one) for feed in other.feeds]
                is_near = one is not front and one.reached >= front.recent_scn
                if is_near and len(self._groups(feeds)) == 1:
                    near.append(one)
            if run not in near or len(near) < 2:
                return
            names = [feed.delivery.name for one in near for feed in one.feeds]
            _log.info("targets share one decoding run from now on", targets=names)
            for one in near:
                one.ending.set()

    def ended(self, run: Run, *, failed: bool) -> None:
        """Record that a run has ended, and begin a new run for its feeds if `ending` was set."""
        with self._lock:
            self._running.remove(run)
            if run.ending.is_set() and not failed and run.feeds:
                if self._front is None or run.progress.queued.scn >= self._front.queued.scn:
                    self._front = run.progress
                self._waiting += run.feeds
            self._begin_waiting()

    def _expect_no_more(self) -> None:
        with self._lock:
            if self._waiting and self._expected:
                _log.warning(
                    "decoding starts without the targets that have not connected in time",
                    late=sorted(self._expected),
                )
            self._expected.clear()
            self._begin_waiting()

    def _begin_waiting(self) -> None:
        """Begin runs for the waiting targets, unless other targets are expected or a run must still
        end.
        """
        if self._expected or any(run.ending.is_set() for run in self._running):
            return
        feeds, self._waiting = self._waiting, []
        progress, self._front = self._front, None
        if self._timer is not None:
            self._timer.cancel()
        if not feeds:
            return
        for group in self._groups(feeds):
            try:
                self._begin(group, progress)
            except OlrPgError as error:
                for feed in group:
                    feed.fail(error)
            progress = None

    def _begin(self, feeds: Sequence[Feed], progress: DecodeProgress | None = None) -> None:
        if progress is None:
            progress = feeds[0].delivery.progress
            if any(run.progress is progress for run in self._running):
                progress = DecodeProgress()
        for feed in feeds:
            feed.delivery.progress = progress
        run = self._make(feeds, progress)
        self._running.append(run)
        try:
            run.begin()
        except BaseException:
            self._running.remove(run)
            raise

    def _remove(self, run: Run, feed: Feed) -> None:
        run.feeds = tuple(one for one in run.feeds if one is not feed)
        if not run.feeds:
            run.ending.set()


_BUSY_SECONDS: Final = 0.01
"""Interval in seconds of the checks whether an online log has grown. Oracle does not report
writes.
"""

_QUIET_AFTER: Final = 1.0
_QUIET_SECONDS: Final = 0.025
"""Interval in seconds of these checks after some time without writes."""


class SharedLogs:
    """The source database, for several readers (runs of decoding). Each reader has its own
    position.

    Only one reader queries the source at a time. All methods are thread-safe.

    Args:
        source: provides the dictionary and the logs.

    Attributes:
        source: see above; its constant properties can be read without a lock.
        reach_scn: the highest SCN at which a log ends, of all logs found so far; 0 before the first
            log.
        unseen_since: new redo that the last `scan` found in online logs was written after this Unix
            time in seconds; None before the second scan.
        answered_at: start time of the last `scan` that the source answered; None before the first
            answer.
    """

    def __init__(self, source: SourceDatabase) -> None:
        self.source = source
        self.reach_scn = 0
        self._lock = threading.Lock()
        self._wanted: dict[object, tuple[int, int]] = {}
        self._source_scn = 0
        self._news_at = 0.0
        self._looked_at: float | None = None
        self.answered_at: float | None = None
        self.unseen_since: float | None = None

    def resolve(
        self, sql: str, is_abandoned: Callable[[], bool] | None = None
    ) -> tuple[Snapshot, tuple[Table, ...]]:
        """Return the tables that a TableList query selects, and their dictionary.

        Args:
            is_abandoned: returns whether the client has disconnected; then the query is cancelled.

        Raises:
            OlrPgError: 3xxx or 7xxx, the query fails.
        """
        with self._lock:
            return self.source.resolve(sql, is_abandoned)

    def known_scn(self, dictionary: Snapshot) -> int:
        """Return the SCN up to which a dictionary is known: the higher of the dictionary's SCN and
        the checkpoint's SCN, because all DDL before the checkpoint is recorded. 0 if the dictionary
        has no SCN.
        """
        if not dictionary.scn:
            return 0
        with self._lock:
            return max(dictionary.scn, self.source.confirmed_scn())

    def scan(self, reader: object, scn: int, delivered_scn: int) -> LogScan:
        """Scan for logs (`SourceDatabase.scan`), on behalf of all readers.

        Args:
            reader: the calling reader.
            scn: the SCN from which on the reader reads.
            delivered_scn: the SCN up to which the reader has delivered.
        """
        with self._lock:
            self._wanted[reader] = scn, delivered_scn
            lowest, highest = zip(*self._wanted.values(), strict=True)
            self.unseen_since, self._looked_at = self._looked_at, steady_time()
            found = self.source.scan(min(lowest), max(highest))
            if found.source_answers:
                self.answered_at = self._looked_at
            self.reach_scn = max([self.reach_scn, *(log.next_scn for log in found.logs)])
            return found

    def is_reached(self, scn: int) -> bool:
        """Return whether the source has reached an SCN, even if no available log contains it yet.

        Return False if it is unknown whether the source has reached the SCN. After the source has
        reached the SCN, it is not queried again.
        """
        with self._lock:
            if scn > self._source_scn:
                self._source_scn = max(self._source_scn, self.source.current_scn() or 0)
            return scn <= self._source_scn

    def current_scn(self) -> int | None:
        """Return an SCN that the source has reached (`SourceDatabase.current_scn`)."""
        with self._lock:
            return self.source.current_scn()

    @property
    def ancestry(self) -> Ancestry | None:
        """The incarnations of the source, as of the last scan (`SourceDatabase.ancestry`)."""
        with self._lock:
            return self.source.ancestry

    def check_from(self, scn: int) -> None:
        """Check that the oldest log of every redo thread begins at `scn` or before it.

        Raises:
            OlrPgError: 2010, the oldest log begins later; or any error of the source.
        """
        reader = object()
        try:
            check_beginning(self.scan(reader, 0, 0).logs, scn)
        finally:
            self.remove_reader(reader)

    def has_news(self) -> bool:
        """Return whether there are new logs (`SourceDatabase.has_news`)."""
        with self._lock:
            begin = steady_time()
            news = self.source.has_news()
            # Without online logs, nothing was read from the source.
            if self.source.is_online and not news:
                self._looked_at = begin
            return news

    def await_redo(self, seconds: float, ending: threading.Event) -> None:
        """Wait until the next scan is due, there are new logs, or `ending` is set."""
        begin = time.monotonic()
        while (rest := begin + seconds - time.monotonic()) > 0:
            idle = time.monotonic() - self._news_at
            pause = _QUIET_SECONDS if idle > _QUIET_AFTER else _BUSY_SECONDS
            polls = self.source.is_online or self.source.is_copying
            if ending.wait(min(rest, pause) if polls else rest):
                return
            if polls and self.has_news():
                self._news_at = time.monotonic()
                return

    def delivering(self, scn: int, resetlogs_id: int) -> int | None:
        """Record that transactions of an incarnation with a commit SCN below `scn` can be delivered
        from now on (`SourceDatabase.delivering`).

        Returns:
            The SCN from which on the redo of the incarnation is orphaned (`SourceDatabase.end_of`).
            Another reader can have found the RESETLOGS. If the returned SCN is lower than `scn`,
                nothing is recorded.
        """
        with self._lock:
            end = self.source.end_of(resetlogs_id)
            if end is None or end >= scn:
                self.source.delivering(scn)
            return end

    def remove_reader(self, reader: object) -> None:
        """Remove a reader."""
        with self._lock:
            self._wanted.pop(reader, None)
