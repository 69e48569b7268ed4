"""Sources of the dictionary and the archived logs: what decoding asks of a source database."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, Protocol

from olr_pg.capture.continuity import check_origin
from olr_pg.capture.logs import LogPlaces, files_at
from olr_pg.capture.orphans import follow_resetlogs, incarnations_of
from olr_pg.dictionary.table_list import query_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from olr_pg.capture.archived_log import ArchivedLog
    from olr_pg.capture.lineage import Lineage
    from olr_pg.capture.logs import LogScan
    from olr_pg.capture.online_logs import OnlineLogs
    from olr_pg.dictionary.model import Database, Snapshot, Table
    from olr_pg.transactions.lobs.source_reads import LobSource

_IDLE_GROWTH: Final = 1.5
_IDLE_FACTOR_MAX: Final = 10.0
"""How much longer the pause between looks grows where online logs tell what is new."""

_LOOK_SHARE: Final = 0.05
"""How much of the time may go into looking, where there are so many files that a look is long."""


class SourceDatabase(Protocol):
    """A source: an Oracle that is there, or what was copied from one.

    The calls come from several threads, but never two at once.
    """

    @property
    def database(self) -> Database:
        """The database that logs must belong to; may move on to a new incarnation with `scan`."""

    @property
    def lob_source(self) -> LobSource | None:
        """The reader of LOB values that the redo does not hold whole; None: there is none."""

    def resolve(
        self, sql: str, is_abandoned: Callable[[], bool] | None = None
    ) -> tuple[Snapshot, tuple[Table, ...]]:
        """Return the tables that a TableList query names, and the dictionary they are from.

        Args:
            is_abandoned: whether nobody waits for the answer any more: the query ends then.

        Raises:
            OlrPgError: 3xxx the query or its tables, 7xxx the database.
        """

    def scan(self, scn: int, delivered_scn: int) -> LogScan:
        """Find the archived logs with redo from `scn` on, and of each thread the one before.

        Args:
            scn: redo below it is not wanted any more.
            delivered_scn: transactions that commit below it may have left already.

        Raises:
            OlrPgError: what waiting does not mend.
        """

    def current_scn(self) -> int | None:
        """Return an SCN that the source has come to by now; None where nobody can tell."""

    def delivering(self, scn: int) -> None:
        """Note that what commits below `scn` may leave from now on; durable when it returns.

        Raises:
            OlrPgError: that cannot be kept.
        """

    def pause(self, idle: int) -> float:
        """Return the seconds to wait before the next `scan`, after `idle` ones without news."""

    @property
    def is_online(self) -> bool:
        """Whether logs are read while they are written, so that `has_news` has to be asked."""

    def has_news(self) -> bool:
        """Tell whether an online log has grown since the last `scan`.

        Raises:
            OlrPgError: what was read cannot be kept.
        """


class OfflineDatabase:
    """A dictionary snapshot, and archived logs at fixed places.

    Args:
        specs: files, directories or globs of archived logs.
        poll_seconds: between looks at these places while there is nothing to decode.
        lineage: remembers over restarts what was delivered from which incarnation; None: nobody.
        online: reads the logs that are not archived yet; None: only archived logs are read.
        online_specs: files, directories or globs of the online logs.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        specs: Sequence[str],
        *,
        poll_seconds: float = 0.1,
        lineage: Lineage | None = None,
        online: OnlineLogs | None = None,
        online_specs: Sequence[str] = (),
    ) -> None:
        self._lineage = lineage
        self._online = online
        self._online_specs = tuple(online_specs)
        self._incarnations: set[tuple[int, int]] = set()
        self._newest: dict[tuple[int, int], ArchivedLog] = {}
        self._snapshot = snapshot
        self._places = LogPlaces(specs)
        self._poll_seconds = poll_seconds
        self._look_seconds = self._look_again = 0.0
        self._found: LogScan | None = None

    @property
    def database(self) -> Database:
        """See `SourceDatabase.database`."""
        return self._snapshot.database

    @property
    def lob_source(self) -> None:
        """See `SourceDatabase.lob_source`: there is nobody to ask."""
        return None

    def resolve(
        self, sql: str, is_abandoned: Callable[[], bool] | None = None
    ) -> tuple[Snapshot, tuple[Table, ...]]:
        """See `SourceDatabase.resolve`."""
        return self._snapshot, query_tables(self._snapshot, sql, is_abandoned=is_abandoned)

    def scan(self, scn: int, delivered_scn: int) -> LogScan:
        """See `SourceDatabase.scan`; every log is found, whatever its SCNs.

        Where an incarnation ends behind a thread's last log of it, the next one is absent.

        Raises:
            OlrPgError: 2009 a log of another database, 7020 a RESETLOGS behind what was delivered.
        """
        self.delivering(delivered_scn)
        found = self._look()
        if self._online is not None:
            found = self._online.add_to(found, scn)
        if self._lineage is None:
            return found
        self._follow(self._lineage, found.logs)
        self._remember(found.logs)
        if len(self._incarnations) == 1:
            return found
        return follow_resetlogs(found, self._incarnations, scn, self._newest.values())

    def _look(self) -> LogScan:
        """Look for archived logs, and for online logs that are new.

        Where online logs grow many times a second, archived ones are looked for as often as ever.
        """
        start = time.monotonic()
        found = self._found
        if found is None or self._online is None or start >= self._look_again:
            self._found = found = self._places.scan()
            if self._online is not None:
                self._online.use([path] for path in files_at(self._online_specs))
            end = time.monotonic()
            self._look_seconds = end - start
            self._look_again = end + self.pause(0)
        return found

    def _remember(self, logs: Sequence[ArchivedLog]) -> None:
        """Keep the last log of each thread and incarnation, whose file may go once it is read."""
        for log in logs:
            key = log.header.resetlogs_id, log.header.thread
            known = self._newest.get(key)
            if known is None or known.header.sequence < log.header.sequence:
                self._newest[key] = log

    def current_scn(self) -> None:
        """See `SourceDatabase.current_scn`: what was copied says nothing of what was not."""

    def delivering(self, scn: int) -> None:
        """See `SourceDatabase.delivering`.

        Raises:
            OlrPgError: 1092, it cannot be kept.
        """
        if self._lineage is not None:
            self._lineage.delivered(scn)

    def _follow(self, lineage: Lineage, logs: Sequence[ArchivedLog]) -> None:
        """Take note of the incarnations that there are logs of; their headers tell of them."""
        seen = incarnations_of(logs)
        if seen <= self._incarnations:
            return
        for log in logs:
            check_origin(log, self.database)
        lineage.follow_logs(seen | self._incarnations)
        self._incarnations |= seen

    def pause(self, idle: int) -> float:
        """See `SourceDatabase.pause`: longer where a look takes long.

        Where online logs are read, too, archived ones are looked for less and less in a quiet time.
        """
        factor = 1.0
        if self._online is not None:
            factor = min(_IDLE_GROWTH ** min(idle, _IDLE_FACTOR_MAX), _IDLE_FACTOR_MAX)
        return max(factor * self._poll_seconds, self._look_seconds / _LOOK_SHARE)

    @property
    def is_online(self) -> bool:
        """See `SourceDatabase.is_online`."""
        return self._online is not None

    def has_news(self) -> bool:
        """See `SourceDatabase.has_news`.

        Raises:
            OlrPgError: 1092, what was read cannot be kept.
        """
        return self._online is not None and self._online.poll()
