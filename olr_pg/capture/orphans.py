"""Finds redo that an ``OPEN RESETLOGS`` has orphaned, by the logs' headers alone.

A log's header contains its incarnation and the SCN at which that began. It is not known which
incarnation is the parent of which, so incarnations are assumed to descend from each other in order.
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
"""A RESETLOGS SCN can be this much after the end of the recovered redo: a log that begins there
contained nothing needed, and may never have been written.
"""


def incarnations_of(logs: Iterable[ArchivedLog]) -> set[tuple[int, int]]:
    """Return resetlogs id and SCN of the incarnations of the logs."""
    return {(log.header.resetlogs_id, log.header.resetlogs_scn) for log in logs}


def ends_of(incarnations: Collection[tuple[int, int]]) -> dict[int, int]:
    """Return, by id, the SCN from which each incarnation's redo is orphaned; the last incarnation
    has none.

    Each ends at the lowest start SCN of a later one.

    Args:
        incarnations: resetlogs id and SCN of each.
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
    """Return the scan without orphaned redo; a log that `lost_ends` reports is added as absent.

    Args:
        incarnations: resetlogs id and SCN of each.
        scn: redo that ends at or before it is not needed.
        earlier: logs found before, whose files may be deleted.
    """
    ends = ends_of(incarnations)
    lost = lost_ends([*earlier, *scan.logs], ends, scn)
    return replace(scan, logs=tuple(without_orphans(scan.logs, ends)), absent=(*scan.absent, *lost))


def extent(log: ArchivedLog) -> tuple[int, bool, int]:
    """Return the sort key of a thread's logs by how far they reach; a whole log is last."""
    return log.header.sequence, not log.grows, log.blocks


def lost_ends(
    logs: Iterable[ArchivedLog], ends: Mapping[int, int], scn: int = 0
) -> list[AbsentLog]:
    """Return what is missing after a thread's last log, if its incarnation continues after that
    log.

    If a log was still growing when its file was cleared or copied, its own rest is missing.

    The logs do not show whether the thread was closed, so it is assumed to be open.

    Args:
        logs: orphaned logs do not count.
        scn: redo that ends at or before it is not needed.
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
        # More redo may follow at each SCN after the last one read from a growing log.
        quiet, following = (0, 0) if log.grows else (_QUIET_SCNS, 1)
        if log.next_scn + quiet < end:
            position = log.position._replace(sequence=log.header.sequence + following)
            lost.append(AbsentLog(position, log.next_scn, end))
    return lost
