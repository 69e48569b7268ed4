"""The order of incarnations: decides when the redo of a new incarnation can be read.

An ``OPEN RESETLOGS`` at an SCN orphans the redo of the parent from that SCN on. Every redo thread
must be read up to that SCN before the first log after it. Transactions that are open then are
dropped, so no thread may still have a commit of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from olr_pg.capture.archived_log import ArchivedLog, LogPosition
    from olr_pg.ordering.merger import Merger


class Incarnations:
    """The incarnations that a run reads, one after the other."""

    def __init__(self, merger: Merger) -> None:
        self._merger = merger
        self._current = 0
        self._read_scn = 0
        self._next_scn = 0
        self._behind: frozenset[int] = frozenset()

    def restored(self, positions: Iterable[LogPosition]) -> None:
        """Continue after logs that another run has read."""
        self._current = max(position.resetlogs_id for position in positions)

    def limit(self, logs: Iterable[ArchivedLog]) -> None:
        """Do not release transactions that a RESETLOGS orphaned after they were read.

        Args:
            logs: the known logs, with their currently known ends.
        """
        for log in logs:
            if log.end_scn is not None and log.position.resetlogs_id == self._current:
                self._merger.limit(log.end_scn)

    def readable(self, logs: Sequence[ArchivedLog]) -> list[ArchivedLog]:
        """Return the next logs that belong to the oldest incarnation, in order.

        The result is empty if a thread was not read to the end of the previous incarnation.
        """
        self._behind = frozenset()
        if not logs:
            return []
        first = logs[0].position.resetlogs_id
        found = [log for log in logs if log.position.resetlogs_id == first]
        if 0 < self._current < first:
            self._next_scn = scn = found[0].header.resetlogs_scn
            # A thread with a log of this incarnation has no more redo of the previous one.
            threads = frozenset(log.header.thread for log in found)
            self._behind = self._merger.threads_before(scn) - threads
            if self._behind:
                return []
        return found

    def reasons(self) -> list[OlrPgError]:
        """Return errors for what is missing of the previous incarnation, so that the next one is
        not read.
        """
        detail = f"its redo up to the RESETLOGS at SCN {self._next_scn} is not among the logs"
        return [
            OlrPgError(
                Code.LOG_MISSING, detail, thread=thread, scn=self._merger.watermark_of(thread)
            )
            for thread in sorted(self._behind)
        ]

    def begin(self, log: ArchivedLog) -> int | None:
        """Start reading `log`. Return the SCN from which it replaces redo that was already read, or
        None.

        If transactions from that redo were already released, the merger reports that the log comes
        too late.
        """
        position, scn = log.position, log.header.resetlogs_scn
        if position.resetlogs_id <= self._current:
            return None
        replaces = scn < self._read_scn and self._merger.left_scn <= scn
        self._current, self._read_scn = position.resetlogs_id, 0
        return scn if replaces else None

    def decoded(self, log: ArchivedLog) -> None:
        """Record that a log was read to its end."""
        self._read_scn = max(self._read_scn, log.next_scn)
