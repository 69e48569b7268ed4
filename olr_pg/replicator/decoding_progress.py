"""The progress of decoding. The decoder's thread updates the progress; the status display reads
it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import structlog

from olr_pg.capture.capture_state import CapturePhase
from olr_pg.monitor.lag import Milestones
from olr_pg.monitor.status_values import STATE_WORDS, SourceStatus, ThreadStatus
from olr_pg.observability.periodic import clock_shift, steady_time
from olr_pg.scalars import MAX_SCN, format_xid

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from olr_pg.capture.archived_log import ArchivedLog, LogPosition
    from olr_pg.capture.capture_state import CaptureMonitor
    from olr_pg.capture.continuity import Gap, LogStream
    from olr_pg.decoding.split import Split
    from olr_pg.errors import OlrPgError
    from olr_pg.ordering.accounting import Accounting
    from olr_pg.ordering.merger import Merger

_log = structlog.get_logger(__name__)


class DecodeProgress:
    """The progress of decoding for some targets, over several runs.

    Args:
        clock: returns the Unix time in seconds (`periodic.steady_time`).

    Attributes:
        archived: the SCNs at which logs end, with the times at which the logs were written.
        read: the SCNs at which logs end, with the times at which the logs were found here.
        queued: the SCNs up to which all transactions were queued, with the times at which this was
            reached.
        looked_at: the time of the last query that the source answered; None before the first
            answer.
        source: the values for the status display; the object is replaced, never modified.
        accounting: the account of the run, up to the last complete log; None before the first
            complete log.
    """

    def __init__(self, clock: Callable[[], float] = steady_time) -> None:
        self._clock = clock
        self._written: dict[LogPosition, float] = {}
        self._grown: dict[LogPosition, tuple[int, float]] = {}
        self._noticed: dict[Gap, float] = {}
        self._not_whole = 0, 0
        self.archived = Milestones()
        self.read = Milestones()
        self.queued = Milestones()
        self.looked_at: float | None = None
        self.source = SourceStatus()
        self.accounting: Accounting | None = None

    def begin(self, scn: int = 0) -> None:
        """Record that a run begins. The new run can begin at an earlier position than the last run.
        Counters are kept.

        Args:
            scn: the start SCN of the run; transactions that commit before it were already
                delivered.
        """
        self._written = {}
        self._grown = {}
        self.archived = Milestones()
        self.read = Milestones()
        self.queued = Milestones()
        self.looked_at = None
        self.source = replace(
            self.source, decoded_scn=scn or None, threads=(), gaps=(), missing_since=None,
            waiting_transactions=0, open_transactions=0, oldest_open_xid=None, oldest_open_scn=None,
            oldest_open_seconds=0.0,
        )  # fmt: skip

    def scanned(
        self,
        stream: LogStream,
        unseen_since: float | None = None,
        answered_at: float | None = None,
    ) -> None:
        """Record the result of a scan for logs.

        Args:
            unseen_since: the time of the previous check of the online logs; new redo in them was
                written after it. None if unknown.
            answered_at: the time of the last query that the source answered.
        """
        self.looked_at = answered_at
        now = self._clock()
        since = now if unseen_since is None else min(unseen_since, now)
        # Include the logs after a gap: they cannot be read yet, but the status shows them.
        self._written = {log.position: self._written_at(log, since) for log in stream.logs}
        self._grown = {at: seen for at, seen in self._grown.items() if at in self._written}
        for log in sorted(stream.readable, key=lambda log: log.next_scn):
            self.archived.add(log.next_scn, self._written[log.position])
            self.read.add(log.next_scn, now)
        last = {log.header.thread: log for log in sorted(stream.logs, key=lambda log: log.next_scn)}
        known = {one.thread: one for one in self.source.threads}
        threads = tuple(
            ThreadStatus(
                thread,
                log.header.sequence,
                log.next_scn or None,
                self._written[log.position],
                known[thread].decoded_sequence if thread in known else None,
                known[thread].decoded_scn if thread in known else None,
            )
            for thread, log in sorted(last.items())
        )
        gaps = tuple(str(gap.as_error()) for gap in stream.gaps)
        self._noticed = {gap: at for gap, at in self._noticed.items() if gap in stream.gaps}
        missing_since = min((self._missing_since(gap) for gap in stream.gaps), default=None)
        self.source = replace(self.source, threads=threads, gaps=gaps, missing_since=missing_since)

    def _written_at(self, log: ArchivedLog, since: float) -> float:
        """Return the time at which a log was written. For a complete log, it is determined once,
        when the log is first seen.
        """
        if log.grows:
            return self._grown_at(log, since)
        at = self._written.get(log.position)
        return _file_time(log, self._clock()) if at is None else at

    def _grown_at(self, log: ArchivedLog, since: float) -> float:
        """Return the earliest possible time at which the newest redo of a growing log was
        written.
        """
        known = self._grown.get(log.position)
        if known is None or known[0] != log.next_scn:
            known = self._grown[log.position] = log.next_scn, since
        return known[1]

    def _missing_since(self, gap: Gap) -> float:
        """Return the time since which redo is missing: the time of the last log before the gap.

        If that log does not exist any more, the function uses the time of the first log after the
        gap, because the missing redo is older. If there is no such log either, it is the time at
        which the gap was noticed.
        """
        place = gap.resetlogs_id, gap.thread, gap.first_sequence
        here = {
            position[:3]: at
            for position, at in self._written.items()
            if position.thread == gap.thread
        }
        before = max((one for one in here if one < place), default=None)
        behind = min((one for one in here if one > place), default=None)
        neighbour = before or behind
        at = self._clock() if neighbour is None else here[neighbour]
        self._noticed[gap] = min(at, self._noticed.get(gap, at))
        return self._noticed[gap]

    def merged(self, split: Split, block_bytes: int, merger: Merger) -> None:
        """Record that a split was decoded and merged, and that the transactions that it completed
        are queued.
        """
        opened = [t for t in merger.open_transactions if t.begin_scn is not None]
        oldest = min(opened, key=lambda t: t.begin_scn or 0, default=None)
        began = None if oldest is None else self.archived.passed(oldest.begin_scn or 0)
        account = merger.account
        self.source = replace(
            self.source,
            decoded_scn=merger.watermark or None,
            redo_bytes=self.source.redo_bytes + (split.end_block - split.first_block) * block_bytes,
            transactions=account.committed,
            rows=account.rows,
            rows_filtered=account.rows_filtered,
            transactions_filtered=account.transactions_filtered,
            lob_unavailable=account.lob_unavailable,
            lob_unclaimed=account.lob_unclaimed,
            waiting_transactions=merger.waiting,
            open_transactions=len(opened),
            oldest_open_xid=None if oldest is None else format_xid(oldest.xid),
            oldest_open_scn=None if oldest is None else oldest.begin_scn,
            oldest_open_seconds=0.0 if began is None else max(0.0, self._clock() - began),
        )

    def read_up_to(self, log: ArchivedLog) -> None:
        """Record that a log was read up to its known end."""
        threads = tuple(
            replace(one, decoded_sequence=log.header.sequence, decoded_scn=log.next_scn)
            if one.thread == log.header.thread
            else one
            for one in self.source.threads
        )
        self.source = replace(self.source, threads=threads)

    def decoded(self, logs: Sequence[ArchivedLog], merger: Merger) -> None:
        """Record that consecutive logs of a redo thread were read to their end."""
        self.read_up_to(logs[-1])
        self.accounting = account = merger.accounting()
        self.source = replace(
            self.source,
            logs=self.source.logs + len(logs),
            losses=sum(map(abs, account.missing)),
            not_interpreted=account.not_interpreted,
        )

    def report(self, logs: Sequence[ArchivedLog], merger: Merger) -> None:
        """Log that logs were decoded to their end. Log a warning if the run has found more
        incomplete redo since the last report.

        Args:
            logs: consecutive logs of a redo thread; one line reports all of them.
        """
        account, last = merger.account, logs[-1]
        several = {} if len(logs) == 1 else {"first_sequence": logs[0].header.sequence}
        _log.info(
            "log decoded",
            thread=last.header.thread,
            **several,
            sequence=last.header.sequence,
            next_scn=last.next_scn,
            transactions_so_far=account.committed,
            rows_so_far=account.rows,
            waiting=merger.waiting,
        )
        found = account.unmatched, account.lost
        if found != self._not_whole and any(found):
            _log.warning(
                "the redo is incomplete",
                undo_without_change=found[0],
                transactions_without_end=found[1],
            )
        self._not_whole = found


def _file_time(log: ArchivedLog, now: float) -> float:
    """Return the time at which a log's file was written.

    If the clock of this host was changed, it is unknown whether the file's time is from before or
    after the change. Of the two possible times, the later one that is not in the future is used.
    """
    try:
        written = Path(log.path).stat().st_mtime
    except OSError:  # it was deleted; decoding reports this
        return now
    found = (written, written - clock_shift())
    return max((one for one in found if one <= now), default=now)


_GOES_ON: Final = (CapturePhase.DECODING, CapturePhase.SPILLING, CapturePhase.CAUGHT_UP)


def enter_phase(
    monitors: Sequence[CaptureMonitor], phase: CapturePhase, reason: OlrPgError | None = None
) -> bool:
    """Set the phase of the targets. If missing redo has arrived, log its arrival.

    Returns:
        Whether the phase of a target has changed.
    """
    before = [monitor.state for monitor in monitors]
    news = [monitor.enter(phase, reason) for monitor in monitors]
    waited = [one.since for one in before if one.phase is CapturePhase.WAITING_FOR_REDO]
    if waited and phase in _GOES_ON:
        seconds = round(steady_time() - min(waited), 1)
        _log.info("the missing redo has arrived", waited_seconds=seconds)
    return any(news)


def tell_end_ahead(read_up_to: int, until: int) -> None:
    """Log that a run with an end SCN waits for more redo."""
    _log.info(
        "waiting for more redo: the end of the run is not reached",
        read_up_to_scn=read_up_to or "none yet",
        until_scn="not known yet" if until == MAX_SCN else until,
    )


def tell_waiting(phase: CapturePhase, reason: OlrPgError) -> None:
    """Log that decoding waits, with the reason and a helpful action, in the words of the status
    page.
    """
    words = STATE_WORDS[phase].lower()
    _log.warning(words, state=phase.value, reason=str(reason), action=reason.action)
