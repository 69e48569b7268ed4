"""Finds redo that an ``OPEN RESETLOGS`` has orphaned, by the headers of the logs.

A log's header contains its incarnation and the SCN at which the incarnation began, but not the
parent. So each incarnation is assumed to be the child of the one before it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from olr_pg.capture.archived_log import AbsentLog

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from olr_pg.capture.archived_log import ArchivedLog
    from olr_pg.capture.logs import LogScan

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
