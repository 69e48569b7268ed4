"""The progress of decoding: written by the decoder's thread, read by whoever shows it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import structlog

from olr_pg.capture.capture_state import CapturePhase
from olr_pg.monitor.lag import Milestones
from olr_pg.monitor.status_values import STATE_WORDS, SourceStatus, ThreadStatus
from olr_pg.observability.steady_time import clock_shift, steady_time
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
    """The progress of one decoder, over its runs.

    Args:
        clock: seconds of Unix time (`steady_time`).

    Attributes:
        archived: up to which SCN there are logs, by when these were written.
        read: up to which SCN there are logs, by when they were found here.
        queued: up to which SCN every transaction is in the ready queue.
        looked_at: when the source was asked last and answered; None before the first time.
        source: the whole of it; replaced, never changed.
        accounting: of the run, up to the last whole log; None before it.
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
        """Note that a run begins, perhaps further back; what was counted stays.

        Args:
            scn: where it begins: what commits below it was delivered before.
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
        """Note that the logs were looked at.

        Args:
            unseen_since: when online logs were looked at before: what is new of them was written
                after that. None: nobody knows.
            answered_at: when the source was asked last and answered.
        """
        self.looked_at = answered_at
        now = self._clock()
        since = now if unseen_since is None else min(unseen_since, now)
        # Also those behind a gap: they are archived, and are shown.
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
        """Return when a log was written, as of the first time that it was seen."""
        if log.grows:
            return self._grown_at(log, since)
        at = self._written.get(log.position)
        return _file_time(log, self._clock()) if at is None else at

    def _grown_at(self, log: ArchivedLog, since: float) -> float:
        """Return since when the newest of a log that grows may have been there."""
        known = self._grown.get(log.position)
        if known is None or known[0] != log.next_scn:
            known = self._grown[log.position] = log.next_scn, since
        return known[1]

    def _missing_since(self, gap: Gap) -> float:
        """Return since when redo is missing: it was written behind the last log before the gap.

        Where that log is not here any more, the next one tells: the redo is older than it. Where
        there is none either, it is missing since it was noticed.
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
        """Note that a split was decoded and merged, and that what it finished is queued."""
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
        """Note that a log was read as far as it is known."""
        threads = tuple(
            replace(one, decoded_sequence=log.header.sequence, decoded_scn=log.next_scn)
            if one.thread == log.header.thread
            else one
            for one in self.source.threads
        )
        self.source = replace(self.source, threads=threads)

    def decoded(self, logs: Sequence[ArchivedLog], merger: Merger) -> None:
        """Note that logs of a redo thread were read to their end."""
        self.read_up_to(logs[-1])
        self.accounting = account = merger.accounting()
        self.source = replace(
            self.source,
            logs=self.source.logs + len(logs),
            losses=sum(map(abs, account.missing)),
            not_interpreted=account.not_interpreted,
        )

    def report(self, logs: Sequence[ArchivedLog], merger: Merger) -> None:
        """Log that logs were decoded to their end, and what more of the run's redo is not whole.

        Args:
            logs: of a redo thread, in order; one line is of all of them.
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
                "the redo is not whole",
                undo_without_change=found[0],
                transactions_without_end=found[1],
            )
        self._not_whole = found


def _file_time(log: ArchivedLog, now: float) -> float:
    """Return when a log was written.

    Where our clock was moved, nobody knows whether its file has the time of before or of after
    that. A clock that is wrong makes a log an hour old, hardly ever one that is so.
    """
    try:
        written = Path(log.path).stat().st_mtime
    except OSError:  # it was removed meanwhile; decoding will say so
        return now
    found = (written, written - clock_shift())
    return max((one for one in found if one <= now), default=now)


_GOES_ON: Final = (CapturePhase.DECODING, CapturePhase.SPILLING, CapturePhase.CAUGHT_UP)


def enter_phase(
    monitors: Sequence[CaptureMonitor], phase: CapturePhase, reason: OlrPgError | None = None
) -> bool:
    """Tell the targets what is done, and the log that redo is waited for no more.

    Returns:
        Whether that is new for any target.
    """
    before = [monitor.state for monitor in monitors]
    news = [monitor.enter(phase, reason) for monitor in monitors]
    waited = [one.since for one in before if one.phase is CapturePhase.WAITING_FOR_REDO]
    if waited and phase in _GOES_ON:
        seconds = round(steady_time() - min(waited), 1)
        _log.info("the redo that was waited for is there", waited_seconds=seconds)
    return any(news)


def tell_end_ahead(read_up_to: int, until: int) -> None:
    """Log that a run waits for redo, since it has not come to its end."""
    _log.info(
        "waiting for redo: the end is not reached",
        read_up_to_scn=read_up_to or "none yet",
        until_scn="not known yet" if until == MAX_SCN else until,
    )


def tell_waiting(phase: CapturePhase, reason: OlrPgError) -> None:
    """Log what decoding waits for, in the words of the status page, and what to do about it."""
    words = STATE_WORDS[phase].lower()
    _log.warning(words, state=phase.value, reason=str(reason), action=reason.action)
