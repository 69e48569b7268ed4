"""Decides when the redo of a new incarnation of the source database can be read.

An ``OPEN RESETLOGS`` at an SCN begins a new incarnation, and orphans the parent incarnation's redo
from that SCN on. Every redo thread must be read up to that SCN before the first log of the new
incarnation: transactions that are open at that point are dropped, so no thread may still contain
the commit of one.
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
        """Continue after the logs that an earlier run has read, given by their positions."""
        self._current = max(position.resetlogs_id for position in positions)

    def limit(self, logs: Iterable[ArchivedLog]) -> None:
        """Lower the merger's watermarks, so that it does not release transactions that a RESETLOGS
        has orphaned after they were read.

        Args:
            logs: the known logs; `end_scn` is set if a RESETLOGS has orphaned a log's redo from
                there on.
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
            # A thread that has a log of this incarnation has no more redo of the previous
            # incarnation.
            threads = frozenset(log.header.thread for log in found)
            self._behind = self._merger.threads_before(scn) - threads
            if self._behind:
                return []
        return found

    def reasons(self) -> list[OlrPgError]:
        """Return one error for each redo thread whose logs of the previous incarnation are missing,
        so that the next incarnation cannot be read.
        """
        detail = (
            "the logs do not contain the redo of this thread up to the RESETLOGS at SCN"
            f" {self._next_scn}"
        )
        return [
            OlrPgError(
                Code.LOG_MISSING, detail, thread=thread, scn=self._merger.watermark_of(thread)
            )
            for thread in sorted(self._behind)
        ]

    def begin(self, log: ArchivedLog) -> int | None:
        """Record that `log` is read next. If it begins a new incarnation that replaces redo that
        was already read, return the SCN from which it replaces the redo, else None.

        The result is also None if transactions from that redo were already released; then the
        merger reports that the log comes too late.
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
