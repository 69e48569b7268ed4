"""How far decoding has come: written by the decoder's thread, read by whoever shows it."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from olr_pg.monitor.lag import Milestones
from olr_pg.monitor.status_values import SourceStatus, ThreadStatus
from olr_pg.scalars import format_xid

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.capture.archived_log import ArchivedLog, LogPosition
    from olr_pg.capture.continuity import LogStream
    from olr_pg.decoding.split import Split
    from olr_pg.ordering.accounting import Accounting
    from olr_pg.ordering.merger import Merger

_log = structlog.get_logger(__name__)


class DecodeProgress:
    """The progress of one decoder, over its runs.

    Args:
        clock: seconds of Unix time.

    Attributes:
        archived: up to which SCN there are logs, by when these were written.
        queued: up to which SCN every transaction is in the ready queue.
        source: the whole of it; replaced, never changed.
        accounting: of the run, up to the last whole log; None before it.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._written: dict[LogPosition, tuple[int, float]] = {}
        self.archived = Milestones()
        self.queued = Milestones()
        self.source = SourceStatus()
        self.accounting: Accounting | None = None

    def begin(self) -> None:
        """Note that a run begins, perhaps further back; what was counted stays."""
        self._written = {}
        self.archived = Milestones()
        self.queued = Milestones()
        self.source = replace(
            self.source, decoded_scn=0, threads=(), gaps=(), waiting_transactions=0,
            open_transactions=0, oldest_open_xid=None, oldest_open_scn=0, oldest_open_seconds=0.0,
        )  # fmt: skip

    def scanned(self, stream: LogStream) -> None:
        """Note that the logs were looked at."""
        readable = sorted(stream.readable, key=lambda log: log.next_scn)
        last: dict[int, ArchivedLog] = {}
        known_times, self._written = self._written, {}
        for log in readable:
            written = known_times.get(log.position)
            if written is None or written[0] != log.next_scn:
                # What is new of a log that grows was written just now.
                at = self._clock() if log.grows else _written_at(log, self._clock())
                written = log.next_scn, at
                self.archived.add(*written)
            self._written[log.position] = written
            last[log.header.thread] = log
        known = {one.thread: one for one in self.source.threads}
        threads = tuple(
            ThreadStatus(
                thread,
                log.header.sequence,
                log.next_scn,
                self._written[log.position][1],
                known[thread].decoded_sequence if thread in known else 0,
                known[thread].decoded_scn if thread in known else 0,
            )
            for thread, log in sorted(last.items())
        )
        gaps = tuple(str(gap.as_error()) for gap in stream.gaps)
        self.source = replace(self.source, threads=threads, gaps=gaps)

    def merged(self, split: Split, block_bytes: int, merger: Merger) -> None:
        """Note that a split was decoded and merged, and that what it finished is queued."""
        opened = [t for t in merger.open_transactions if t.begin_scn is not None]
        oldest = min(opened, key=lambda t: t.begin_scn or 0, default=None)
        began = None if oldest is None else self.archived.passed(oldest.begin_scn or 0)
        account = merger.account
        self.source = replace(
            self.source,
            decoded_scn=merger.watermark,
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
            oldest_open_scn=0 if oldest is None else oldest.begin_scn or 0,
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

    def decoded(self, log: ArchivedLog, merger: Merger) -> None:
        """Note that a log was read to its end."""
        self.read_up_to(log)
        self.accounting = account = merger.accounting()
        self.source = replace(
            self.source,
            logs=self.source.logs + 1,
            losses=abs(account.vectors_missing) + abs(account.changes_missing),
            not_interpreted=account.not_interpreted,
        )


def _written_at(log: ArchivedLog, otherwise: float) -> float:
    try:
        return Path(log.path).stat().st_mtime
    except OSError:  # it was removed meanwhile; decoding will say so
        return otherwise


def report_log(log: ArchivedLog, merger: Merger) -> None:
    """Log that a log was decoded to its end, and what of the run's redo is not whole."""
    account = merger.account
    _log.info(
        "log decoded",
        thread=log.header.thread,
        sequence=log.header.sequence,
        next_scn=log.next_scn,
        transactions=account.committed,
        rows=account.rows,
        waiting=merger.waiting,
    )
    if account.unmatched or account.lost:
        _log.warning(
            "the redo is not whole",
            undo_without_change=account.unmatched,
            transactions_without_end=account.lost,
        )
