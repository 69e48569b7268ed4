"""Logs that an ``OPEN RESETLOGS`` has orphaned, told by the logs' headers alone.

A log names its incarnation and the SCN at which that began. Where nobody tells which incarnation is
whose child, those that there are logs of are taken for ancestors of one another.
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
"""A RESETLOGS SCN lies up to so far behind the end of the redo that was recovered: of the log that
begins there nothing was wanted, and it may never have been written."""


def incarnations_of(logs: Iterable[ArchivedLog]) -> set[tuple[int, int]]:
    """Return resetlogs id and SCN of each incarnation that there are logs of."""
    return {(log.header.resetlogs_id, log.header.resetlogs_scn) for log in logs}


def ends_of(incarnations: Collection[tuple[int, int]]) -> dict[int, int]:
    """Return the SCN from which each incarnation's redo but the last's is orphaned, by its id.

    Each ends where the first of the later ones begins.

    Args:
        incarnations: resetlogs id and SCN of each.
    """
    return {
        one: min(later)
        for one, _ in incarnations
        if (later := [scn for other, scn in incarnations if other > one])
    }


def without_orphans(logs: Iterable[ArchivedLog], ends: Mapping[int, int]) -> list[ArchivedLog]:
    """Return the logs, but for what a RESETLOGS has orphaned of them."""
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
    """Return what was found, without orphans; a log that `lost_ends` misses is absent.

    Args:
        incarnations: resetlogs id and SCN of each.
        scn: what ends by then is not wanted.
        earlier: logs that were found before, whose files may be gone.
    """
    ends = ends_of(incarnations)
    lost = lost_ends([*earlier, *scan.logs], ends, scn)
    return replace(scan, logs=tuple(without_orphans(scan.logs, ends)), absent=(*scan.absent, *lost))


def lost_ends(
    logs: Iterable[ArchivedLog], ends: Mapping[int, int], scn: int = 0
) -> list[AbsentLog]:
    """Find what is missing behind a thread's last log, where its incarnation goes on behind that.

    The logs do not tell whether a thread was closed by then, so each is taken for open.

    Args:
        logs: orphans among them do not count.
        scn: what ends by then is not wanted.
    """
    last: dict[tuple[int, int], ArchivedLog] = {}
    for log in logs:
        end = ends.get(log.header.resetlogs_id)
        if end is not None and scn < end and log.header.first_scn < end:
            key = log.header.resetlogs_id, log.header.thread
            last[key] = max(last.get(key, log), log, key=lambda one: one.header.sequence)
    lost = []
    for (resetlogs_id, _), log in sorted(last.items()):
        end = ends[resetlogs_id]
        if log.next_scn + _QUIET_SCNS < end:
            position = log.position._replace(sequence=log.header.sequence + 1)
            lost.append(AbsentLog(position, log.next_scn, end))
    return lost
