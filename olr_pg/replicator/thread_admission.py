"""Decides for which redo threads a run must wait before it can release transactions."""

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
        known: the threads that were read in this run or in earlier runs.
        scn: the start SCN of the run.
        known_scn: the SCN up to which the dictionary is known (`check_beginning`).
        waits: whether the run waits if the first redo of a thread is missing.

    Attributes:
        silent: threads that were read before this run and have no log here, so that it is unknown
            whether another log will appear.
    """

    def __init__(
        self,
        merger: Merger,
        known: KnownThreads,
        scn: int,
        *,
        known_scn: int = 0,
        waits: bool = False,
    ) -> None:
        self._known_scn = known_scn
        self._waits = waits
        self._merger = merger
        self._known = known
        self._scn = scn
        self._begun: set[int] = set()
        self._newest: dict[int, LogPosition] = {}
        self._closed: dict[int, LogPosition | None] = {}
        self.silent: frozenset[int] = frozenset()

    def check_beginnings(self, logs: Sequence[ArchivedLog], reached: Mapping[int, Reached]) -> None:
        """Check that the first available log of each thread contains the run's start SCN, or begins
        before it.

        A thread is checked when its first log is available, because an open thread may have no
        archived log when the run begins.

        Args:
            reached: the position of each thread in the recovery image.

        Raises:
            OlrPgError: 2010, the oldest log of a thread begins too late.
        """
        unread = unread_logs(logs, self._scn, reached) if reached else logs
        new = [log for log in unread if log.header.thread not in self._begun]
        check_beginning(new, self._scn, reached, known_scn=self._known_scn)
        self._begun.update(log.header.thread for log in new)

    def missing_beginnings(
        self, logs: Sequence[ArchivedLog], reached: Mapping[int, Reached]
    ) -> list[OlrPgError]:
        """Call `check_beginnings`. If it fails and the run waits for missing redo, return the error
        instead of raising it.

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
        """Wait for all threads that have unread logs now, or may have some later.

        If it is unknown which threads are open, the run also waits for a thread that was read
        before and has no log here. Its logs can be confirmed and deleted, and its next log can
        contain older redo than the logs of other threads.

        Raises:
            OlrPgError: 2014, a new thread has redo that is older than transactions that were
                already released.
        """
        logs, opened = stream.readable, scan.open_threads
        starts = thread_starts(logs)
        self.silent = frozenset()
        if opened is None:
            # This check is not needed if the open threads are known: the run then waits for an open
            # thread even before its first log is archived.
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
        """Return an error for each silent redo thread, for which the run waits although no log
        shows that it is open.
        """
        detail = (
            "transactions of the other threads that committed since then wait for the"
            " thread's next log"
        )
        return [
            OlrPgError(Code.REDO_THREAD_MISSING, detail, thread=thread)
            for thread in sorted(self.silent)
        ]

    def closed(self, thread: int) -> None:
        """Stop waiting for a closed thread that was read to its end. Only a newer log of the thread
        reopens it.
        """
        self._closed[thread] = self._newest.get(thread)

    def _check_in_time(self, starts: Mapping[int, int]) -> None:
        known = self._known.known
        delivered = max(self._scn, self._merger.watermark)
        for thread, first_scn in starts.items():
            if known and thread not in known and first_scn < delivered:
                raise OlrPgError(
                    Code.REDO_TOO_LATE,
                    f"the logs of the thread begin at SCN {first_scn}, but transactions"
                    f" of other threads up to SCN {delivered} are already delivered",
                    thread=thread,
                    scn=first_scn,
                )

    def _is_closed(self, thread: int) -> bool:
        if thread not in self._closed:
            return False
        last = self._closed[thread]
        return last is not None and self._newest[thread] <= last

    def _wait_for(self, thread: int, scn: int) -> None:
        """Make the merger wait for a thread, from `scn` on.

        If a thread was closed for some time, its logs of that time can be deleted. So the merger
        waits for it only from the SCN of the last released transaction on.
        """
        self._closed.pop(thread, None)
        self._merger.add_thread(thread, max(scn, self._merger.left_scn))
