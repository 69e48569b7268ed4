"""The interface through which decoding gets the dictionary and the logs of a source database."""

from __future__ import annotations

import time
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from olr_pg.capture.continuity import check_origin
from olr_pg.capture.logs import LogPlaces, files_at
from olr_pg.capture.wanted_logs import extent, follow_resetlogs, incarnations_of
from olr_pg.dictionary.table_list import query_tables
from olr_pg.errors import OlrPgError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from olr_pg.capture.archived_log import ArchivedLog
    from olr_pg.capture.lineage import Lineage
    from olr_pg.capture.logs import LogScan
    from olr_pg.capture.online_logs import OnlineLogs
    from olr_pg.dictionary.model import Database, Snapshot, Table
    from olr_pg.transactions.lobs.source_reads import LobSource
    from olr_pg.transactions.schema_event import Ancestry

_IDLE_GROWTH: Final = 1.5
_IDLE_FACTOR_MAX: Final = 10.0
"""Maximum factor by which the pause between scans grows while a source is quiet."""

_LOOK_SHARE: Final = 0.05
"""Maximum share of the time that is spent in scans. This share matters if a scan takes long because
there are many files.
"""


def idle_factor(idle: int) -> float:
    """Return the factor by which the pause between scans grows after `idle` scans without news."""
    growth: float = _IDLE_GROWTH ** min(idle, _IDLE_FACTOR_MAX)
    return min(growth, _IDLE_FACTOR_MAX)


class NeededChanges(NamedTuple):
    """The changes that one target, or several ones together, need from a run that begins.

    Attributes:
        start_scn: the SCN from which redo is needed; 0 if it is unknown for a target.
        confirmed_scn: the lowest SCN of the targets that have a checkpoint or `apply.start-scn`; 0
            without such a target. These targets have confirmed all changes of earlier commits,
            except those of loaded tables.
        rows_scn: the lowest SCN as of which a table was loaded that replication has not reached; 0
            without such a table.
        recorded_scn: the highest SCN of a checkpoint, up to which runs have recorded all DDL; 0
            without a checkpoint.
        loaded: for the TableList query of a target that begins with its loads, the tables with a
            complete load that the query does not select.
    """

    start_scn: int
    confirmed_scn: int
    rows_scn: int = 0
    recorded_scn: int = 0
    loaded: Mapping[str, Collection[str]] = MappingProxyType({})

    @classmethod
    def of_all(cls, targets: Sequence[NeededChanges]) -> NeededChanges:
        """Return the changes that at least one of the targets needs."""
        return cls(
            min((one.start_scn for one in targets), default=0),
            min((one.confirmed_scn for one in targets if one.confirmed_scn), default=0),
            min((one.rows_scn for one in targets if one.rows_scn), default=0),
            max((one.recorded_scn for one in targets), default=0),
            {query: names for one in targets for query, names in one.loaded.items()},
        )


class SourceDatabase(Protocol):
    """A source: a live Oracle database, or files copied from one.

    The methods are called from several threads, but never at the same time.
    """

    @property
    def database(self) -> Database:
        """The database that logs must belong to. A call of `scan` can replace it by its new
        incarnation.
        """

    @property
    def ancestry(self) -> Ancestry | None:
        """The current incarnation of the source and the earlier ones, as of the last call of
        `scan`; None if they are not known.
        """

    @property
    def lob_source(self) -> LobSource | None:
        """The reader of LOB values that the redo contains only partly; None if the source cannot be
        queried for them.
        """

    def resolve(
        self, sql: str, is_abandoned: Callable[[], bool] | None = None
    ) -> tuple[Snapshot, tuple[Table, ...]]:
        """Return the dictionary, and the tables of the dictionary that a TableList query selects.

        Args:
            is_abandoned: returns whether the client has disconnected; if so, the query is
                cancelled.

        Raises:
            OlrPgError: 3xxx errors of the query or its tables, 7xxx errors of the database.
        """

    def scan(self, scn: int, delivered_scn: int) -> LogScan:
        """Return the archived logs with redo from `scn` on, and for each thread the last log before
        them.

        Args:
            scn: redo with a lower SCN is no longer needed.
            delivered_scn: transactions with a lower commit SCN may already have been delivered.

        Raises:
            OlrPgError: an error that does not disappear by waiting.
        """

    def confirmed_scn(self) -> int:
        """Return an SCN up to which runs have recorded all DDL, because a client has confirmed all
        transactions below it: the lowest SCN of a checkpoint, or of the `apply.start-scn` of a
        target without a checkpoint; 0 without both.
        """

    @property
    def delivered_scn(self) -> int:
        """Transactions with a lower commit SCN may have been delivered, so that all DDL up to it is
        recorded; 0 if unknown.
        """

    def current_scn(self) -> int | None:
        """Return an SCN that the source database has reached; None if unknown."""

    def delivering(self, scn: int) -> None:
        """Record durably that transactions with a commit SCN below `scn` may be delivered from now
        on.

        Raises:
            OlrPgError: the SCN cannot be stored.
        """

    def end_of(self, resetlogs_id: int) -> int | None:
        """Return the SCN from which on a RESETLOGS has orphaned the redo of an incarnation; None
        if no RESETLOGS of it is known.
        """

    def pause(self, idle: int) -> float:
        """Return the seconds to wait before the next `scan`, after `idle` scans without new
        logs.
        """

    @property
    def is_online(self) -> bool:
        """Whether logs are read while Oracle writes them; if so, `has_news` must be called."""

    @property
    def is_copying(self) -> bool:
        """Whether archived logs are being copied from Oracle's host; if so, `has_news` must be
        called.
        """

    def has_news(self) -> bool:
        """Return whether an online log has grown, or a copy of an archived log has arrived, since
        the last `scan`.

        Raises:
            OlrPgError: the redo that was read cannot be stored.
        """


class OfflineDatabase:
    """A source that consists of a dictionary snapshot, and of archived logs at given places.

    Args:
        specs: files, directories or globs of archived logs.
        poll_seconds: interval between scans while there is nothing to decode.
        lineage: the persistent record of the incarnation from which transactions were delivered, or
            None.
        online: reads the logs that are not archived yet; None to read only archived logs.
        online_specs: files, directories or globs of the online logs.
        recorded_scn: see `SourceDatabase.confirmed_scn`.
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
        recorded_scn: Callable[[], int] = lambda: 0,
    ) -> None:
        self._recorded_scn = recorded_scn
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
    def ancestry(self) -> Ancestry | None:
        """See `SourceDatabase.ancestry`."""
        return None if self._lineage is None else self._lineage.ancestry

    @property
    def lob_source(self) -> None:
        """See `SourceDatabase.lob_source`; there is no database to query."""
        return None

    def resolve(
        self, sql: str, is_abandoned: Callable[[], bool] | None = None
    ) -> tuple[Snapshot, tuple[Table, ...]]:
        """See `SourceDatabase.resolve`."""
        return self._snapshot, query_tables(self._snapshot, sql, is_abandoned=is_abandoned)

    def scan(self, scn: int, delivered_scn: int) -> LogScan:
        """See `SourceDatabase.scan`; returns all logs, regardless of their SCNs.

        If an incarnation continues after a thread's last log, the next log is reported as absent.

        Raises:
            OlrPgError: 2009 a log of another database, 7020 a RESETLOGS to an SCN before
                transactions that were already delivered.
        """
        self.delivering(delivered_scn)
        found = self._look().without_passed(scn)
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
        """Scan for archived logs, and for new files of online logs.

        Even if online logs grow many times a second, archived logs are scanned only at the usual
        interval.
        """
        start = time.monotonic()
        found = self._found
        if found is None or self._online is None or start >= self._look_again:
            is_first = found is None
            found = self._places.scan()
            if self._online is not None:
                problems = self._use_online(self._online, is_first=is_first)
                found = replace(found, unusable=(*found.unusable, *problems))
            self._found = found
            end = time.monotonic()
            self._look_seconds = end - start
            self._look_again = end + self.pause(0)
        return found

    def _use_online(self, online: OnlineLogs, *, is_first: bool) -> list[OlrPgError]:
        """Set the files of the online logs. If the places of the online logs cannot be listed,
        return the error, and keep the files.

        Raises:
            OlrPgError: 2002, a place does not exist at the first scan.
        """
        try:
            online.use([path] for path in files_at(self._online_specs))
        except OlrPgError as error:
            if is_first:
                raise
            return [error]
        return []

    def _remember(self, logs: Sequence[ArchivedLog]) -> None:
        """Keep the last log of each thread and incarnation in memory, because its file may be
        deleted later.
        """
        for log in logs:
            key = log.header.resetlogs_id, log.header.thread
            known = self._newest.get(key)
            if known is None or extent(known) < extent(log):
                self._newest[key] = log

    def confirmed_scn(self) -> int:
        """See `SourceDatabase.confirmed_scn`."""
        return self._recorded_scn()

    @property
    def delivered_scn(self) -> int:
        """See `SourceDatabase.delivered_scn`."""
        return 0 if self._lineage is None else self._lineage.delivered_scn

    def current_scn(self) -> None:
        """See `SourceDatabase.current_scn`; always None, because copied files do not show how far
        the source has advanced since.
        """

    def delivering(self, scn: int) -> None:
        """See `SourceDatabase.delivering`.

        Raises:
            OlrPgError: 1092, the SCN cannot be stored.
        """
        if self._lineage is not None:
            self._lineage.delivered(scn)

    def end_of(self, resetlogs_id: int) -> int | None:
        """See `SourceDatabase.end_of`."""
        return None if self._lineage is None else self._lineage.end_of(resetlogs_id)

    def _follow(self, lineage: Lineage, logs: Sequence[ArchivedLog]) -> None:
        """Record the incarnations that the logs' headers name."""
        seen = incarnations_of(logs)
        if seen <= self._incarnations:
            return
        for log in logs:
            check_origin(log, self.database)
        lineage.follow_logs(seen | self._incarnations)
        assert lineage.ancestry is not None  # `follow_logs` has set it
        self._incarnations = {(one, scn) for one, scn in lineage.ancestry.line}

    def pause(self, idle: int) -> float:
        """See `SourceDatabase.pause`; the pause is longer if a scan takes long.

        If online logs are read, the pause between scans of archived logs grows while the source is
        quiet.
        """
        factor = 1.0
        if self._online is not None:
            factor = idle_factor(idle)
        return max(factor * self._poll_seconds, self._look_seconds / _LOOK_SHARE)

    @property
    def is_online(self) -> bool:
        """See `SourceDatabase.is_online`."""
        return self._online is not None

    @property
    def is_copying(self) -> bool:
        """See `SourceDatabase.is_copying`; always False, because other programs copy the logs."""
        return False

    def has_news(self) -> bool:
        """See `SourceDatabase.has_news`.

        Raises:
            OlrPgError: 1092, the redo that was read cannot be stored.
        """
        return self._online is not None and self._online.poll()
