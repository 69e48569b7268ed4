"""Shares the logs of one source between several readers."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from olr_pg.capture.wanted_logs import check_beginning
from olr_pg.observability.periodic import steady_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.capture.logs import LogScan
    from olr_pg.capture.source_database import SourceDatabase
    from olr_pg.dictionary.model import Snapshot, Table
    from olr_pg.transactions.schema_event import Ancestry

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
