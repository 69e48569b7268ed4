"""Finds the archived logs of a live database in V$ARCHIVED_LOG and opens their files.

The facts are documented in dictionary §5.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import Connection, func, not_, select

from olr_pg.capture.logs import open_log
from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.tables import ARCHIVED_LOG, LOG, THREAD, among, bound
from olr_pg.scalars import MAX_SCN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from olr_pg.capture.archived_log import ArchivedLog
    from olr_pg.config.source_section import OracleSource


class ListedLog(NamedTuple):
    """A row of V$ARCHIVED_LOG.

    Attributes:
        path: path of the file on this host, mapped from Oracle's name.
        name: name of the file in Oracle.
    """

    resetlogs_id: int
    thread: int
    sequence: int
    first_scn: int
    next_scn: int
    destination: int
    name: str
    path: str

    @property
    def stream_position(self) -> tuple[int, int, int]:
        """(incarnation, thread, sequence)."""
        return self.resetlogs_id, self.thread, self.sequence


class ListedLogs(NamedTuple):
    """Oracle's list of archived logs, by (incarnation, thread, sequence).

    Attributes:
        extents: first and next SCN of every log, including logs whose copies are on other hosts or
            deleted.
        copies: the copies of each log that can be read.
    """

    extents: dict[tuple[int, int, int], tuple[int, int]]
    copies: dict[tuple[int, int, int], list[ListedLog]]


def list_logs(
    connection: Connection, source: OracleSource, incarnations: Sequence[int], scn: int
) -> ListedLogs:
    """List the logs that contain redo from `scn` on.

    The logs and their copies are read by one query, because it reads all records of the control
    file each time.

    Args:
        incarnations: resetlogs ids of the incarnations to list; logs of other incarnations are
            orphans.
    """
    columns = ARCHIVED_LOG.c
    names = (
        *("RESETLOGS_ID", "THREAD#", "SEQUENCE#", "FIRST_CHANGE#", "NEXT_CHANGE#"),
        *("DEST_ID", "NAME", "DELETED", "STATUS"),
    )
    query = (
        select(*(columns[name] for name in names))
        .where(
            columns["NEXT_CHANGE#"] > bound(scn),
            columns["RESETLOGS_ID"].in_(among(incarnations)),
            columns["ARCHIVED"] == bound("YES"),
            columns["STANDBY_DEST"] == bound("NO"),
        )
        .order_by(*(columns[name] for name in (*names[:3], "DEST_ID")))
    )
    extents: dict[tuple[int, int, int], tuple[int, int]] = {}
    copies: dict[tuple[int, int, int], list[ListedLog]] = defaultdict(list)
    for row in connection.execute(query):
        resetlogs, thread, sequence, first_scn, next_scn, destination, name, deleted, status = row
        position = resetlogs, thread, sequence
        extents[position] = first_scn, next_scn
        if name is None or (deleted, status) != ("NO", "A"):
            continue
        if source.archive_destination not in (None, destination):
            continue
        path = map_path(name, source.path_mapping)
        # A log that RMAN has restored or catalogued can have no destination.
        copy = ListedLog(*position, first_scn, next_scn, destination or 0, name, path)
        copies[position].append(copy)
    return ListedLogs(extents, dict(copies))


def list_positions(
    connection: Connection, incarnations: Sequence[int], scn: int
) -> dict[tuple[int, int, int], tuple[int, int]]:
    """Return the first and next SCN of every log that contains redo from `scn` on, by position.

    Logs whose copies are on other hosts or deleted are included.

    Args:
        incarnations: resetlogs ids of the incarnations to list; logs of other incarnations are
            orphans.
    """
    columns = ARCHIVED_LOG.c
    query = (
        select(
            columns["RESETLOGS_ID"],
            columns["THREAD#"],
            columns["SEQUENCE#"],
            columns["FIRST_CHANGE#"],
            columns["NEXT_CHANGE#"],
        )
        .where(
            columns["NEXT_CHANGE#"] > bound(scn),
            columns["RESETLOGS_ID"].in_(among(incarnations)),
            columns["ARCHIVED"] == bound("YES"),
            columns["STANDBY_DEST"] == bound("NO"),
        )
        .distinct()
    )
    rows = connection.execute(query)
    return {(row[0], row[1], row[2]): (row[3], row[4]) for row in rows}


def list_ends(
    connection: Connection, incarnations: Sequence[int], scn: int
) -> dict[tuple[int, int, int], int]:
    """Return the next SCN of the last log of each thread that ends at `scn` or before it.

    Logs whose copies are deleted are included.

    Args:
        incarnations: resetlogs ids of the incarnations to list.

    Returns:
        By the position of the following log, which does not exist yet if the thread has ended.
    """
    columns = ARCHIVED_LOG.c
    place = columns["RESETLOGS_ID"], columns["THREAD#"]
    query = (
        select(*place, func.max(columns["SEQUENCE#"]), func.max(columns["NEXT_CHANGE#"]))
        .where(
            columns["NEXT_CHANGE#"] <= bound(scn),
            columns["RESETLOGS_ID"].in_(among(incarnations)),
            columns["ARCHIVED"] == bound("YES"),
            columns["STANDBY_DEST"] == bound("NO"),
        )
        .group_by(*place)
    )
    return {
        (int(resetlogs), int(thread), int(sequence) + 1): int(end)
        for resetlogs, thread, sequence, end in connection.execute(query)
    }


def open_threads(connection: Connection, scn: int = MAX_SCN) -> frozenset[int]:
    """Return the redo threads that will produce more archived logs.

    An instance that is shut down closes its thread. Another instance archives the last redo of the
    closed thread later. A thread can be disabled before that: ALTER DATABASE DISABLE THREAD only
    requires that no instance uses it. The redo of a disabled thread ends at DISABLE_CHANGE#
    (Database Reference, V$THREAD).

    Args:
        scn: redo with a lower SCN is not needed. So a thread that was disabled before this SCN is
            left out, even if its last log is never archived.
    """
    closed, disabled = bound("CLOSED") == THREAD.c.STATUS, bound("DISABLED") == THREAD.c.ENABLED
    unarchived = select(LOG.c["THREAD#"]).where(
        bound("NO") == LOG.c.ARCHIVED, bound("UNUSED") != LOG.c.STATUS
    )
    is_needed = not_(disabled) | (THREAD.c["DISABLE_CHANGE#"] > bound(scn))
    query = select(THREAD.c["THREAD#"]).where(
        (not_(closed) & not_(disabled)) | (is_needed & THREAD.c["THREAD#"].in_(unarchived))
    )
    return frozenset(int(thread) for (thread,) in connection.execute(query))


def map_path(name: str, mapping: Iterable[tuple[str, str]]) -> str:
    """Map a file name in Oracle to a path on this host, by replacing the first prefix in `mapping`
    that matches.

    A prefix matches only at the end of a directory's name, unless the prefix itself ends with a
    separator. Both kinds of separator are supported, because the database can run on Windows.
    """
    for there, here in mapping:
        rest = name[len(there) :]
        whole = not rest or there.endswith(("/", "\\")) or rest.startswith(("/", "\\"))
        if name.startswith(there) and whole:
            return here + (rest.replace("\\", "/") if "\\" in there else rest)
    return name


def open_listed(
    copies: Sequence[ListedLog], use: Callable[[ArchivedLog], None] = lambda _: None
) -> ArchivedLog:
    """Open the log from the first copy that exists on this host and is complete.

    Args:
        use: called with the log; if it raises an `OlrPgError`, the next copy is opened.

    Raises:
        OlrPgError: 2004 or 2008 the file is still being copied, 7010 the file contains another log,
            7011 no copy can be read; or an error of `use`.
    """
    problems: list[OlrPgError] = []
    for listed in copies:
        try:
            log = open_log(listed.path)
            check_listed(log, listed)
            use(log)
        except OlrPgError as error:
            problems.append(error)
            continue
        return log
    unreadable = [error for error in problems if error.code == Code.LOG_UNREADABLE]
    if len(unreadable) < len(problems):
        raise next(error for error in problems if error.code != Code.LOG_UNREADABLE)
    first = copies[0]
    places = ", ".join(f"{listed.path} ({listed.name} in Oracle)" for listed in copies)
    raise OlrPgError(
        Code.ARCHIVED_LOG_UNREADABLE,
        f"looked at {places}: {unreadable[0].detail}",
        thread=first.thread,
        sequence=first.sequence,
        resetlogs=first.resetlogs_id,
    )


def not_brought(listed: ListedLog, reason: str) -> OlrPgError:
    """Return the error for a log that cannot be read."""
    return OlrPgError(
        Code.LOG_NOT_BROUGHT,
        reason,
        name=listed.name,
        thread=listed.thread,
        sequence=listed.sequence,
    )


def check_listed(log: ArchivedLog, listed: ListedLog) -> None:
    """Check that an open log is the log that Oracle lists.

    Raises:
        OlrPgError: 7010, the file contains another log.
    """
    header = log.header
    pairs = (
        ("resetlogs id", header.resetlogs_id, listed.resetlogs_id),
        ("thread", header.thread, listed.thread),
        ("sequence", header.sequence, listed.sequence),
        ("first SCN", header.first_scn, listed.first_scn),
        ("next SCN", log.next_scn, listed.next_scn),
    )
    for what, found, expected in pairs:
        if found != expected:
            raise OlrPgError(
                Code.NOT_THE_LISTED_LOG,
                f"the {what} of the file is {found}, but V$ARCHIVED_LOG says {expected}",
                file=log.path,
                thread=listed.thread,
                sequence=listed.sequence,
            )
