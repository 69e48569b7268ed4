"""Selects the logs that a run of decoding reads, and finds the logs that are missing.

`without_orphans` removes redo that an ``OPEN RESETLOGS`` has orphaned. The headers of the logs show
which redo is orphaned. A log's header contains its incarnation and the SCN at which the incarnation
began, but not the parent. So each incarnation is assumed to be the child of the one before it.

`DecodedLogs` records which logs a run has decoded. The record needs little memory, even if a run
lasts for years.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from olr_pg.capture.archived_log import AbsentLog
from olr_pg.capture.continuity import Gap, LogStream, join_logs
from olr_pg.errors import Code, OlrPgError
from olr_pg.redo.format.file_fields import FIRST_DATA_BLOCK
from olr_pg.scalars import MAX_SCN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from olr_pg.capture.archived_log import ArchivedLog, LogPosition, Reached
    from olr_pg.capture.logs import LogScan
    from olr_pg.dictionary.model import Database


_QUIET_SCNS: Final = 2
"""A RESETLOGS SCN can be this much higher than the SCN at which the recovered redo ends. A log
between the two SCNs has no redo that is needed, and may never have been written.
"""


def incarnations_of(logs: Iterable[ArchivedLog]) -> set[tuple[int, int]]:
    """Return the resetlogs id and the RESETLOGS SCN of each incarnation that the logs belong to."""
    return {(log.header.resetlogs_id, log.header.resetlogs_scn) for log in logs}


def ends_of(incarnations: Collection[tuple[int, int]]) -> dict[int, int]:
    """Return the SCN from which each incarnation's redo is orphaned, by resetlogs id, without the
    last incarnation.

    An incarnation ends at the lowest SCN at which a later incarnation begins.

    Args:
        incarnations: resetlogs id and RESETLOGS SCN of each incarnation.
    """
    return {
        one: min(later)
        for one, _ in incarnations
        if (later := [scn for other, scn in incarnations if other > one])
    }


def without_orphans(logs: Iterable[ArchivedLog], ends: Mapping[int, int]) -> list[ArchivedLog]:
    """Return the logs without the redo that a RESETLOGS has orphaned."""
    kept = []
    for log in logs:
        end = ends.get(log.header.resetlogs_id)
        if end is None or log.next_scn <= end:
            kept.append(log)
        elif log.header.first_scn < end:
            kept.append(replace(log, end_scn=end))
    return kept


def follow_resetlogs(
    scan: LogScan,
    incarnations: Collection[tuple[int, int]],
    scn: int,
    earlier: Iterable[ArchivedLog] = (),
) -> LogScan:
    """Return the scan without orphaned redo, and with the logs that `lost_ends` finds missing as
    absent.

    Args:
        incarnations: resetlogs id and RESETLOGS SCN of each incarnation.
        scn: logs that end at this SCN or before it are not needed.
        earlier: logs that earlier scans found; their files may be deleted by now.
    """
    ends = ends_of(incarnations)
    lost = lost_ends([*earlier, *scan.logs], ends, scn)
    return replace(scan, logs=tuple(without_orphans(scan.logs, ends)), absent=(*scan.absent, *lost))


def extent(log: ArchivedLog) -> tuple[int, bool, int]:
    """Return a key that sorts a thread's logs by how far they reach; a complete log sorts after a
    growing one.
    """
    return log.header.sequence, not log.grows, log.blocks


def lost_ends(
    logs: Iterable[ArchivedLog], ends: Mapping[int, int], scn: int = 0
) -> list[AbsentLog]:
    """Return the logs that are missing at the end of each thread, because its incarnation continues
    after the last log.

    If the last log was still growing when its file was cleared or copied, the rest of this log is
    missing.

    The logs do not show whether the thread was closed; the thread is assumed to be open.

    Args:
        logs: all logs; orphaned logs are ignored.
        scn: logs that end at this SCN or before it are not needed.
    """
    last: dict[tuple[int, int], ArchivedLog] = {}
    for log in logs:
        end = ends.get(log.header.resetlogs_id)
        if end is not None and scn < end and log.header.first_scn < end:
            key = log.header.resetlogs_id, log.header.thread
            last[key] = max(last.get(key, log), log, key=extent)
    lost = []
    for (resetlogs_id, _), log in sorted(last.items()):
        end = ends[resetlogs_id]
        # A growing log may continue at the very next SCN.
        quiet, following = (0, 0) if log.grows else (_QUIET_SCNS, 1)
        if log.next_scn + quiet < end:
            position = log.position._replace(sequence=log.header.sequence + following)
            lost.append(AbsentLog(position, log.next_scn, end))
    return lost


def check_beginning(
    logs: Sequence[ArchivedLog],
    scn: int,
    reached: Mapping[int, Reached] | None = None,
    *,
    known_scn: int = 0,
) -> None:
    """Check that the oldest log of every redo thread begins at the start SCN or before it.

    If the position of the thread is in the recovery image, the sequences show whether logs after
    this position are missing. For such a thread, this function reports no error: `wanted_stream`
    reports a gap, because the logs may still arrive.

    Args:
        scn: the start SCN; 0 to start at the oldest log. If the start SCN is 0, the logs must not
            begin after `known_scn`. Otherwise DDL and rows in the redo between them would be lost
            without an error. Perhaps a log was not copied yet, or was deleted.
        reached: the position of each thread in the recovery image.
        known_scn: the SCN up to which the dictionary is known; 0 if unknown.

    Raises:
        OlrPgError: 2010, the oldest log of a thread begins later.
    """
    oldest: dict[int, ArchivedLog] = {}
    for log in unread_logs(logs, scn, reached) if reached else logs:
        oldest.setdefault(log.header.thread, log)
    for thread, log in oldest.items():
        mark = reached.get(thread) if reached else None
        if mark is not None and (
            log.header.resetlogs_id == mark.log.resetlogs_id
            or _gaps_behind({thread: mark.log}, [log])
        ):
            continue
        start = scn or known_scn if mark is None else mark.scn
        if begins_later(log, start):
            raise _missing_before(log, start, is_known_only=scn == 0 and mark is None)


def _missing_before(log: ArchivedLog, scn: int, *, is_known_only: bool) -> OlrPgError:
    first_scn = log.header.first_scn
    detail = f"the oldest log begins at SCN {first_scn}, but decoding must start at SCN {scn}"
    action = None
    if is_known_only:
        detail = (
            f"the oldest log begins at SCN {first_scn}, but the dictionary is known only up to SCN"
            f" {scn}"
        )
        action = (
            "restore the archived logs from that SCN on into the directory of the other logs. If"
            f" you do not want their changes, take a dictionary snapshot of SCN {first_scn} or"
            f" later. If they contain no DDL, you can set `apply.start-scn` to {first_scn}"
            " instead"
        )
    return OlrPgError(
        Code.LOG_MISSING,
        detail,
        action=action,
        thread=log.header.thread,
        sequence=log.header.sequence,
        scn=scn,
    )


def begins_later(log: ArchivedLog, scn: int) -> bool:
    """Return whether the redo between `scn` and the oldest log of a redo thread is missing.

    No redo is missing if the previous log ends at `scn` or before it.

    Args:
        log: the oldest log of its thread.
        scn: 0 if unknown.
    """
    begin = log.header.first_scn if log.previous_end is None else log.previous_end
    return 0 < scn < begin and not _is_first_of_new_thread(log)


def _is_first_of_new_thread(log: ArchivedLog) -> bool:
    """Return whether a redo thread was enabled after its incarnation began, so that no redo
    precedes the log.

    The first log of a thread that was already enabled when the incarnation began starts at the
    incarnation's SCN; the first log of a new thread starts later.
    """
    return log.header.sequence == 1 and log.header.first_scn > log.header.resetlogs_scn


def unread_logs(
    logs: Sequence[ArchivedLog], scn: int, reached: Mapping[int, Reached]
) -> list[ArchivedLog]:
    """Return the logs that contain redo from `scn` on, and that are not part of the recovery
    image.
    """
    return [
        log
        for log in logs
        if log.next_scn > scn
        and ((mark := reached.get(log.header.thread)) is None or log.position > mark.log)
    ]


def wanted_stream(
    scan: LogScan,
    database: Database,
    scn: int,
    reached: Mapping[int, Reached],
    decoded: DecodedLogs,
) -> LogStream:
    """Return the scanned logs as one stream; its gaps are the needed logs that are missing.

    Args:
        scn, reached: the SCN, and the position of each thread, at which the run began.
        decoded: the logs that the run has decoded since.

    Raises:
        OlrPgError: 2009, 2020, see `join_logs`.
    """
    stream = join_logs(scan.logs, database)
    read = {thread: mark.log for thread, mark in reached.items()}
    threads = {log.header.thread for log in stream.logs}
    read.update((t, last) for t in threads if (last := decoded.newest(t)) is not None)
    ahead = [gap for gap in stream.gaps if not _is_passed(gap, stream.logs, scn, read)]
    return LogStream(stream.logs, tuple(ahead)).with_gaps(
        [
            *_gaps_behind(read, stream.logs),
            *absent_gaps(scan, scn, reached, decoded),
            *_unfinished(stream.logs, scn, read),
        ]
    )


def _unfinished(
    logs: Sequence[ArchivedLog], scn: int, read: Mapping[int, LogPosition]
) -> list[Gap]:
    """Return gaps for growing logs that were not read up to the RESETLOGS of their incarnation.

    A RESETLOGS clears the files of these logs, so the rest of their redo must come from archived
    copies.

    Args:
        scn: logs that end at this SCN or before it are not needed.
        read: the last log of each thread that was read to its end.
    """
    ends = ends_of(incarnations_of(logs))
    gaps = []
    for log in logs:
        at, end = log.position, ends.get(log.header.resetlogs_id)
        if not log.grows or end is None or end <= scn or log.next_scn >= end:
            continue
        if at.thread not in read or at > read[at.thread]:
            gaps.append(Gap(at.resetlogs_id, at.thread, at.sequence, at.sequence, log.next_scn))
    return gaps


def _is_passed(
    gap: Gap, logs: Sequence[ArchivedLog], scn: int, read: Mapping[int, LogPosition]
) -> bool:
    """Return whether a gap lies before the position at which the run began to read, or before the
    position that it has reached. Such a gap does not matter. (It can be found because older logs
    may still exist.) If the source says where the last missing log ends (`previous_end`), no
    missing log is needed.
    """
    end = gap.resetlogs_id, gap.thread, gap.last_sequence
    behind = (log for log in logs if log.position[:2] == end[:2] and log.position[:3] > end)
    following = next(behind)
    if following.previous_end is not None:
        return True
    last = read.get(gap.thread)
    if last is not None:
        return (gap.resetlogs_id, gap.first_sequence) <= (last.resetlogs_id, last.sequence)
    return following.header.first_scn <= scn


def _gaps_behind(read: Mapping[int, LogPosition], logs: Sequence[ArchivedLog]) -> list[Gap]:
    """Return the gaps between the last decoded log of each thread and the next available log.

    The file of the last decoded log may be deleted, so the available logs alone do not show the
    gap. If the source says where the log before the next available one ends (`previous_end`), the
    logs between are not needed: a log without redo ends where it begins.
    """
    gaps = []
    for thread, last in read.items():
        following = (log for log in logs if log.header.thread == thread and log.position > last)
        log = next(following, None)
        if log is None or log.previous_end is not None:
            continue
        position = log.position
        first = last.sequence + 1 if position.resetlogs_id == last.resetlogs_id else 1
        if first < position.sequence:
            gaps.append(Gap(position.resetlogs_id, thread, first, position.sequence - 1, None))
    return gaps


def absent_gaps(
    scan: LogScan, scn: int, reached: Mapping[int, Reached], decoded: DecodedLogs
) -> list[Gap]:
    """Return gaps for needed logs that are known to exist, but were not found in any place.

    A log before the oldest log of its thread is no gap; `check_beginning` decides whether it is
    needed. If no log of a thread was found, its absent logs are gaps, except logs that end before
    decoding starts. Decoding starts at `scn`, or if that is 0, at the lowest SCN of all logs. A log
    with a listed copy (`AbsentLog.problem` is set) is a gap even if it is the oldest log. The copy
    may still arrive, and decoding may have to start with it.
    """
    oldest: dict[int, LogPosition] = {}
    for log in scan.logs:
        oldest.setdefault(log.header.thread, log.position)
    start = scn or min((log.header.first_scn for log in scan.logs), default=MAX_SCN)
    gaps = []
    for position, first_scn, next_scn, problem in scan.absent:
        thread = position.thread
        mark = reached.get(thread)
        read = decoded.newest(thread) or (None if mark is None else mark.log)
        behind = read or (None if problem else oldest.get(thread))
        if next_scn > (scn if problem else start) if behind is None else position > behind:
            sequence = position.sequence
            gaps.append(Gap(position.resetlogs_id, thread, sequence, sequence, first_scn))
    return gaps


def orphaning_log(
    logs: Sequence[ArchivedLog], reached: Mapping[int, Reached]
) -> ArchivedLog | None:
    """Return a log that begins before the end of the redo in the recovery image, because a
    RESETLOGS orphaned redo of the image; None if there is none.
    """
    for log in logs:
        mark = reached.get(log.header.thread)
        if mark is not None and log.header.first_scn < mark.scn:
            return log
    return None


def check_order(logs: Sequence[ArchivedLog], decoded: DecodedLogs) -> None:
    """Check that no log precedes the last decoded log of its thread, because it could no longer be
    decoded in order.

    Raises:
        OlrPgError: 2014, there is such a log.
    """
    for log in logs:
        newest = decoded.newest(log.header.thread)
        if newest is not None and log.position < newest:
            raise OlrPgError(
                Code.REDO_TOO_LATE,
                f"sequence {newest.sequence} was already read without this log",
                file=log.path,
                thread=log.header.thread,
                sequence=log.header.sequence,
            )


class DecodedLogs:
    """The positions of decoded logs, stored as ranges (runs) of consecutive sequence numbers.

    A thread's logs are decoded in order and without gaps, so each thread has one run per
    incarnation. The log after the run can be partly decoded: it was decoded up to a block while
    Oracle was still writing it.
    """

    def __init__(self) -> None:
        self._runs: list[tuple[LogPosition, LogPosition]] = []
        self._begun: dict[int, tuple[LogPosition, int]] = {}

    def __contains__(self, position: LogPosition) -> bool:
        return any(
            first._replace(sequence=position.sequence) == position
            and first.sequence <= position.sequence <= last.sequence
            for first, last in self._runs
        )

    def __len__(self) -> int:
        """Return the number of runs."""
        return len(self._runs)

    def has_all(self, log: ArchivedLog) -> bool:
        """Return whether the log, or the part of it that is present, has been decoded to its
        end.
        """
        if log.position in self:
            return True
        return log.grows and self.next_block(log.position) >= log.blocks

    def next_block(self, position: LogPosition) -> int:
        """Return the block of a log up to which it was decoded."""
        begun = self._begun.get(position.thread)
        return begun[1] if begun is not None and begun[0] == position else FIRST_DATA_BLOCK

    def read_up_to(self, position: LogPosition, block: int) -> None:
        """Record that a growing log has been decoded up to a block at which an LWN group begins."""
        self._turn_to(position)
        self._begun[position.thread] = position, block

    def _turn_to(self, position: LogPosition) -> None:
        """Record a partly decoded log as decoded if its thread continues in a new incarnation.

        By then, the log was decoded up to the RESETLOGS: before that, `wanted_stream` reports a
        gap, and no redo of the new incarnation is decoded.
        """
        begun, _ = self._begun.get(position.thread, (position, 0))
        if begun.resetlogs_id < position.resetlogs_id:
            self.add(begun)

    def expect(self, logs: Iterable[ArchivedLog]) -> None:
        """Record which log of each thread is decoded first, unless that is already known.

        If Oracle reuses that log's file before any of its redo is decoded, the log counts as
        missing.
        """
        for position in sorted(log.position for log in logs):
            if position.thread not in self._begun and self.newest(position.thread) is None:
                self._begun[position.thread] = position, FIRST_DATA_BLOCK

    def goes_on_at(self, log: ArchivedLog) -> int:
        """Return the block of a log at which decoding continues: the first block of an LWN group,
        or the log's end.

        Raises:
            OlrPgError: 2251, more blocks were read while the log was written than it contains now.
        """
        block = self.next_block(log.position)
        if block > log.blocks:
            raise OlrPgError(
                Code.LOG_SHORTER_THAN_READ,
                f"the archived log has {log.blocks} blocks, but {block} blocks were read while"
                " Oracle was writing the log",
                file=log.path,
                thread=log.header.thread,
                sequence=log.header.sequence,
            )
        return block

    def begin_at(self, marks: Iterable[Reached]) -> None:
        """Continue partly read logs at the blocks that an earlier run reached."""
        for mark in marks:
            if mark.block:
                behind = mark.log._replace(sequence=mark.log.sequence + 1)
                self.read_up_to(behind, mark.block)

    def add(self, position: LogPosition) -> None:
        """Record that a log has been decoded."""
        self._turn_to(position)
        if position == self._begun.get(position.thread, (None, 0))[0]:
            del self._begun[position.thread]
        before = position._replace(sequence=position.sequence - 1)
        for at, (first, last) in enumerate(self._runs):
            if last == before:
                self._runs[at] = first, position
                return
        if position not in self:
            self._runs.append((position, position))

    def newest(self, thread: int) -> LogPosition | None:
        """Return the last decoded log of a redo thread; None if none was decoded.

        If the thread's first log is only partly decoded, return the position before that log.
        """
        ends = [last for _, last in self._runs if last.thread == thread]
        if thread in self._begun:
            begun = self._begun[thread][0]
            ends.append(begun._replace(sequence=begun.sequence - 1))
        return max(ends, default=None)
