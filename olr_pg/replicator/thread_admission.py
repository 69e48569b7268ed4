"""Decides which redo threads a run waits for before transactions can be released."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.capture.wanted_logs import check_beginning, unread_logs
from olr_pg.errors import Code, OlrPgError
from olr_pg.replicator.decode_once import thread_starts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from olr_pg.capture.archived_log import ArchivedLog, LogPosition, Reached
    from olr_pg.capture.continuity import LogStream
    from olr_pg.capture.logs import LogScan
    from olr_pg.capture.redo_threads import KnownThreads
    from olr_pg.ordering.merger import Merger


class Admission:
    """The redo threads of one run.

    Args:
        known: the threads that were read in this or earlier runs.
        scn: the start SCN of the run.
        waits: whether the run waits if the beginning of a thread is missing.

    Attributes:
        silent: threads that were read before this run, that have no log here, and for which it is
            unknown whether a log will come.
    """

    def __init__(
        self, merger: Merger, known: KnownThreads, scn: int, *, waits: bool = False
    ) -> None:
        self._waits = waits
        self._merger = merger
        self._known = known
        self._scn = scn
        self._begun: set[int] = set()
        self._newest: dict[int, LogPosition] = {}
        self._closed: dict[int, LogPosition | None] = {}
        self.silent: frozenset[int] = frozenset()

    def check_beginnings(self, logs: Sequence[ArchivedLog], reached: Mapping[int, Reached]) -> None:
        """Check that every thread is complete from the run's SCN on, when its first log is
        available.

        An open thread may not have had any archived log when the run began.

        Args:
            reached: the position of each thread in the recovery image.

        Raises:
            OlrPgError: 2010, the oldest log of a thread begins too late.
        """
        unread = unread_logs(logs, self._scn, reached) if reached else logs
        new = [log for log in unread if log.header.thread not in self._begun]
        check_beginning(new, self._scn, reached)
        self._begun.update(log.header.thread for log in new)

    def missing_beginnings(
        self, logs: Sequence[ArchivedLog], reached: Mapping[int, Reached]
    ) -> list[OlrPgError]:
        """Check as `check_beginnings` does; if the run waits for missing beginnings, return them
        instead.

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
        """Add every thread that has logs to read now or later.

        If it is unknown which threads are open, a thread that was read before is waited for, even
        if it has no log here. Its logs may be confirmed and deleted, and its next log may contain
        redo that is older than that of other threads.

        Raises:
            OlrPgError: 2014, later transactions of other threads were already released.
        """
        logs, opened = stream.readable, scan.open_threads
        starts = thread_starts(logs)
        self.silent = frozenset()
        if opened is None:
            # If the source answers, an open thread is waited for even before its first log is
            # archived.
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
        """Return errors for the redo threads that are waited for although no log shows that they
        are open.
        """
        detail = "what others have committed since then waits for its next one"
        return [
            OlrPgError(Code.REDO_THREAD_MISSING, detail, thread=thread)
            for thread in sorted(self.silent)
        ]

    def closed(self, thread: int) -> None:
        """Close a thread that was read to its end; only a newer log reopens it."""
        self._closed[thread] = self._newest.get(thread)

    def _check_in_time(self, starts: Mapping[int, int]) -> None:
        known = self._known.known
        delivered = max(self._scn, self._merger.watermark)
        for thread, first_scn in starts.items():
            if known and thread not in known and first_scn < delivered:
                raise OlrPgError(
                    Code.REDO_TOO_LATE,
                    f"its logs begin at SCN {first_scn}, others are delivered up to {delivered}",
                    thread=thread,
                    scn=first_scn,
                )

    def _is_closed(self, thread: int) -> bool:
        if thread not in self._closed:
            return False
        last = self._closed[thread]
        return last is not None and self._newest[thread] <= last

    def _wait_for(self, thread: int, scn: int) -> None:
        """Release nothing until the thread has been read further.

        A thread that was closed for a while starts at what was released since, because its logs of
        that time may be deleted.
        """
        self._closed.pop(thread, None)
        self._merger.add_thread(thread, max(scn, self._merger.left_scn))
