"""The order of incarnations: when the redo of a new one may be read.

An ``OPEN RESETLOGS`` at an SCN gives up the redo of its parent from there on. Every redo thread
must have been read up to that SCN before the first log behind it: what is open then is dropped, and
must not be what another thread still commits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from olr_pg.capture.archived_log import ArchivedLog, LogPosition
    from olr_pg.ordering.merger import Merger


class Incarnations:
    """The incarnations that one run reads, one behind the other."""

    def __init__(self, merger: Merger) -> None:
        self._merger = merger
        self._current = 0
        self._read_scn = 0
        self._next_scn = 0
        self._behind: frozenset[int] = frozenset()

    def restored(self, positions: Iterable[LogPosition]) -> None:
        """Go on behind logs that another run has read."""
        self._current = max(position.resetlogs_id for position in positions)

    def limit(self, logs: Iterable[ArchivedLog]) -> None:
        """Let nothing leave that turned out to be orphaned after it was read.

        Args:
            logs: those that are known, with the ends that are known now.
        """
        for log in logs:
            if log.end_scn is not None and log.position.resetlogs_id == self._current:
                self._merger.limit(log.end_scn)

    def readable(self, logs: Sequence[ArchivedLog]) -> list[ArchivedLog]:
        """Return those of the oldest incarnation, of the logs that are to be read next, in order.

        Empty where a thread was not read to the end of the one before.
        """
        self._behind = frozenset()
        if not logs:
            return []
        first = logs[0].position.resetlogs_id
        found = [log for log in logs if log.position.resetlogs_id == first]
        if 0 < self._current < first:
            self._next_scn = scn = found[0].header.resetlogs_scn
            # A thread that has a log of this incarnation has no more of the one before.
            threads = frozenset(log.header.thread for log in found)
            self._behind = self._merger.threads_before(scn) - threads
            if self._behind:
                return []
        return found

    def reasons(self) -> list[OlrPgError]:
        """List what is missing of the incarnation before, so that the next one is not read."""
        detail = f"its redo up to the RESETLOGS at SCN {self._next_scn} is not among the logs"
        return [
            OlrPgError(
                Code.LOG_MISSING, detail, thread=thread, scn=self._merger.watermark_of(thread)
            )
            for thread in sorted(self._behind)
        ]

    def begin(self, log: ArchivedLog) -> int | None:
        """Read a log next; the SCN from which it takes the place of what was read, if it does.

        Where that has left already, the merger finds that the log comes too late.
        """
        position, scn = log.position, log.header.resetlogs_scn
        if position.resetlogs_id <= self._current:
            return None
        replaces = scn < self._read_scn and self._merger.left_scn <= scn
        self._current, self._read_scn = position.resetlogs_id, 0
        return scn if replaces else None

    def decoded(self, log: ArchivedLog) -> None:
        """Note that a log was read to its end."""
        self._read_scn = max(self._read_scn, log.next_scn)
