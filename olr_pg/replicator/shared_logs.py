"""The logs of a source, as all who read them want them together."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from olr_pg.observability.steady_time import steady_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.capture.logs import LogScan
    from olr_pg.capture.source_database import SourceDatabase
    from olr_pg.dictionary.model import Snapshot, Table

_BUSY_SECONDS: Final = 0.01
"""Between looks at the ends of online logs: nobody tells when Oracle has written."""

_QUIET_AFTER: Final = 1.0
_QUIET_SECONDS: Final = 0.025
"""Between looks where nothing was written for so long."""


class SharedLogs:
    """One source database for several readers, each at a place of its own.

    The source is asked by one of them at a time. All methods may be called from any thread.

    Args:
        source: where the dictionary and the logs come from.

    Attributes:
        source: as given; what does not change of it may be read at any time.
        reach_scn: the end of all logs that were seen so far, 0 before the first.
        unseen_since: what the last `scan` found new of online logs was written after this, in
            seconds of Unix time; None before the second look.
        answered_at: when the last `scan` began that the source answered; None before the first.
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
        """Find the tables that a TableList query names, and the dictionary they are from.

        Args:
            is_abandoned: whether nobody waits for the answer any more: the query ends then.

        Raises:
            OlrPgError: 3xxx or 7xxx, why it cannot be done.
        """
        with self._lock:
            return self.source.resolve(sql, is_abandoned)

    def scan(self, reader: object, scn: int, delivered_scn: int) -> LogScan:
        """Look which logs there are (`SourceDatabase.scan`), for everyone who has asked.

        Args:
            reader: who asks.
            scn: from where it reads.
            delivered_scn: up to where it has delivered.
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
        """Tell whether the source has come to an SCN, though no log with it may be here yet.

        False where nobody can tell; the source is asked until it has.
        """
        with self._lock:
            if scn > self._source_scn:
                self._source_scn = max(self._source_scn, self.source.current_scn() or 0)
            return scn <= self._source_scn

    def current_scn(self) -> int | None:
        """Ask for an SCN that the source has come to (`SourceDatabase.current_scn`)."""
        with self._lock:
            return self.source.current_scn()

    def has_news(self) -> bool:
        """Tell whether an online log has grown (`SourceDatabase.has_news`)."""
        with self._lock:
            begin = steady_time()
            news = self.source.has_news()
            if not news:
                self._looked_at = begin
            return news

    def await_redo(self, seconds: float, ending: threading.Event) -> None:
        """Wait until it is time to look for logs, an online log has grown, or `ending` is set."""
        if not self.source.is_online:
            ending.wait(seconds)
            return
        begin = time.monotonic()
        while (rest := begin + seconds - time.monotonic()) > 0:
            idle = time.monotonic() - self._news_at
            pause = _QUIET_SECONDS if idle > _QUIET_AFTER else _BUSY_SECONDS
            if ending.wait(min(rest, pause)):
                return
            if self.has_news():
                self._news_at = time.monotonic()
                return

    def delivering(self, scn: int) -> None:
        """Note what is delivered (`SourceDatabase.delivering`)."""
        with self._lock:
            self.source.delivering(scn)

    def remove_reader(self, reader: object) -> None:
        """Remove a reader, which asks no more."""
        with self._lock:
            self._wanted.pop(reader, None)
