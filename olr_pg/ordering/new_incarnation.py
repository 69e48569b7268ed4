"""Decides when the redo of a new incarnation of the source database can be read.

An ``OPEN RESETLOGS`` at an SCN begins a new incarnation, and orphans the parent incarnation's redo
from that SCN on. Every redo thread must be read up to that SCN before the first log of the new
incarnation: transactions that are open at that point are dropped, so no thread may still contain
the commit of one.

A run may have read orphaned redo before the RESETLOGS was known. If no transaction that was
committed in this redo was released, the run drops the changes of this redo, and continues at the
RESETLOGS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from olr_pg.capture.archived_log import ArchivedLog, Reached
    from olr_pg.ordering.merger import Merger


class Incarnations:
    """The incarnations that a run reads, one after the other.

    Args:
        starts: the SCN at which the run begins for each of its targets.
    """

    def __init__(self, merger: Merger, starts: Collection[int] = (0,)) -> None:
        self._merger = merger
        self._starts = frozenset(starts)
        self._current = 0
        self._read_scn = 0
        self._unaware_scn = 0
        self._next_scn = 0
        self._behind: frozenset[int] = frozenset()

    @property
    def current(self) -> int:
        """The resetlogs id of the incarnation that is read; 0 before the first log."""
        return self._current

    def restored(self, marks: Iterable[Reached]) -> None:
        """Continue at the positions up to which an earlier run has read the redo threads."""
        for mark in marks:
            self._current = max(self._current, mark.log.resetlogs_id)
            self._read_scn = self._unaware_scn = max(self._read_scn, mark.scn)

    def limit(self, logs: Iterable[ArchivedLog]) -> int | None:
        """Lower the merger's watermarks, so that it does not release transactions that a RESETLOGS
        has orphaned after they were read.

        Args:
            logs: the known logs; `end_scn` is set if a RESETLOGS has orphaned a log's redo from
                there on.

        Returns:
            The SCN from which on the redo of the current incarnation is orphaned; None if it is
            not.
        """
        ends = [
            log.end_scn
            for log in logs
            if log.end_scn is not None and log.position.resetlogs_id == self._current
        ]
        if not ends:
            return None
        self._merger.limit(min(ends))
        return min(ends)

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
        """Return one error for each redo thread whose logs of the previous incarnation are missing.
        The next incarnation can be read only when they are available.
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
        """Record that `log` is read next. If the log begins a new incarnation that replaces redo
        that was already read, return the SCN from which it replaces the redo, else None.

        Raises:
            OlrPgError: 7020, transactions or DDL from the replaced redo were already released, or
                the run began within that redo for a target.
        """
        position, scn = log.position, log.header.resetlogs_scn
        if position.resetlogs_id <= self._current:
            return None
        within = [start for start in self._starts if scn < start < self._unaware_scn]
        given = max(self._merger.given_scn, *within) if within else self._merger.given_scn
        # If the run starts after this RESETLOGS, it needs no redo of the earlier incarnation.
        replaces = min(self._starts) <= scn < self._read_scn
        if self._current and scn <= given:
            raise behind_delivered(log, given)
        self._current, self._read_scn, self._unaware_scn = position.resetlogs_id, 0, 0
        return scn if replaces else None

    def decoded(self, log: ArchivedLog) -> None:
        """Record that a log was read to its end."""
        self._read_scn = max(self._read_scn, log.next_scn)
        if log.end_scn is None:
            self._unaware_scn = max(self._unaware_scn, log.next_scn)


def behind_delivered(log: ArchivedLog, scn: int) -> OlrPgError:
    """Return the error that changes up to `scn` were delivered or passed, although `log` begins a
    new incarnation before this SCN.
    """
    resetlogs, begin = log.position.resetlogs_id, log.header.resetlogs_scn
    return OlrPgError(
        Code.RESETLOGS_BEHIND_DELIVERED,
        f"incarnation {resetlogs} begins at SCN {begin}, but the earlier incarnation was delivered"
        f" up to SCN {scn}",
        resetlogs=resetlogs,
        scn=begin,
    )
