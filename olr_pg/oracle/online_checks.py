"""Checks for `olr-pg doctor` whether the online logs of a live source, or the redo of its standby,
can be read.
"""

from __future__ import annotations

import grp
import os
import stat
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from sqlalchemy import Connection, select

from olr_pg.capture.online_file import OnlineFile
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.findings import Finding, coded, error, warning
from olr_pg.observability.wording import counted
from olr_pg.oracle import tables
from olr_pg.oracle.allowed_queries import unreadable
from olr_pg.oracle.archive import list_positions, open_threads
from olr_pg.oracle.driver.bounded_calls import PRIVILEGE
from olr_pg.oracle.facts import read_incarnations, read_standby_logs, receives_redo
from olr_pg.oracle.redo_source import RedoSource, expected_logs, online_groups, unreadable_group
from olr_pg.oracle.tables import DATABASE
from olr_pg.oracle.transport.log_transport import open_ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from olr_pg.config.source_section import LogTransportSection, OracleSource
    from olr_pg.oracle.transport.online_ranges import OnlineRanges

CHECK: Final = "oracle.online-logs"


def check_online(connection: Connection, source: OracleSource) -> list[Finding]:
    """Return findings: the account lacks a privilege, there are no groups of online logs, or this
    host cannot read a file.

    Args:
        connection: a connection to the database whose redo is read.
    """
    user = (source.standby or source).user.upper()
    needed = [tables.LOGFILE]
    is_standby = receives_redo(connection)
    if is_standby:
        needed.append(tables.STANDBY_LOG)
    missing = unreadable(connection, needed)
    if missing:
        return [
            error(
                "oracle.privileges",
                f"{user} is not allowed to read {view.name}",
                f"GRANT SELECT ON SYS.{view.name.replace('V$', 'V_$')} TO {user};",
            )
            for view in missing
        ]
    try:
        groups = online_groups(connection, source)
    except OlrPgError as problem:
        return [] if problem.code == PRIVILEGE else [coded(CHECK, problem)]
    if not groups and is_standby:
        return [_no_standby_logs(connection)]
    if not groups:
        none = OlrPgError(
            Code.ONLINE_LOG_UNREADABLE, "V$LOG and V$LOGFILE show no online log in use"
        )
        return [coded(CHECK, none)]
    if source.transport is None:
        return list(check_groups(groups))
    return list(check_far_groups(groups, source.transport, source))


def _no_standby_logs(connection: Connection) -> Finding:
    """Return the finding for a standby that does not receive redo in standby redo logs."""
    create = (
        "ALTER DATABASE ADD STANDBY LOGFILE THREAD n SIZE s; on the standby: one group more than"
        " the thread has online logs, each of the same size"
    )
    send = (
        "set LOG_ARCHIVE_DEST_n of the primary to SYNC or ASYNC, so that it sends the redo while it"
        " writes it"
    )
    what = "the standby has no standby redo logs, so it receives only archived logs"
    if not read_standby_logs(connection):
        return error(CHECK, what, create, send)
    what = "no standby redo log is in use, so the primary does not send redo while it writes it"
    return error(CHECK, what, send, "V$ARCHIVE_DEST.ERROR of the primary shows why sending fails")


def check_far_groups(
    groups: Sequence[tuple[str, ...]], section: LogTransportSection, source: OracleSource
) -> Iterator[Finding]:
    """Yield a finding for each member that the transport cannot read.

    The finding is an error if no other member of the group can be read.
    """
    ranges = open_ranges(section, source)
    try:
        for paths in groups:
            problems = [_far_problem(ranges, path) for path in paths]
            for path, problem in zip(paths, problems, strict=True):
                if problem is None:
                    continue
                what = f"{path}: {problem.detail}"
                is_lost = all(problems)
                found = OlrPgError(Code.ONLINE_LOG_UNREADABLE, what, action=problem.action)
                if is_lost:
                    yield coded(CHECK, found)
                else:
                    yield warning(
                        CHECK,
                        f"a member of a group of online logs cannot be read: {what};"
                        " another member of its group can be read",
                        problem.action,
                    )
    finally:
        ranges.close()


def _far_problem(ranges: OnlineRanges, path: str) -> OlrPgError | None:
    """Try to read the header of a member; return the error if that fails."""
    try:
        ranges.open(path).read_header()
    except OlrPgError as problem:
        # A corrupt header proves that the file exists: Oracle was writing the header when it was
        # read.
        return None if problem.code == Code.BLOCK_CORRUPT else problem
    return None


def closed_to_us(path: str, may: Callable[[Path, int], bool] = os.access) -> str | None:
    """Return who can read a file that this user cannot read; None if this user can read it, or if
    it does not exist.

    Args:
        may: returns whether this user has an access mode (`os.R_OK`, `os.X_OK`) for a path.
    """
    file = Path(path)
    for place in (*reversed(file.parents), file):
        try:
            found = place.stat()
        except OSError:
            return None
        if not may(place, os.R_OK if place == file else os.X_OK):
            return (
                f"{place} has mode {stat.filemode(found.st_mode)} and belongs to group"
                f" {_group_name(found.st_gid)}; add the user of olr-pg to this group, or"
                " export the directory read-only for this user"
            )
    return None


def _group_name(number: int) -> str:
    try:
        return f"{grp.getgrgid(number).gr_name} ({number})"
    except KeyError:
        return str(number)


def check_groups(groups: Sequence[tuple[str, ...]]) -> Iterator[Finding]:
    """Yield a finding for each group without a readable member, and a finding if reading is
    slow.
    """
    cached = []
    for paths in groups:
        problem: OlrPgError | None = None
        for path in paths:
            try:
                with OnlineFile(path) as file:
                    file.read_header()
            except OlrPgError as failure:
                # A corrupt header proves that the file exists: Oracle was writing the header when
                # it was read.
                problem = failure if failure.code != Code.BLOCK_CORRUPT else None
            else:
                problem = None
                if not file.direct:
                    cached.append(path)
            if problem is None:
                break
        if problem is not None:
            found = coded(CHECK, unreadable_group(paths, problem))
            yield replace(found, mend=(*found.mend, *filter(None, map(closed_to_us, paths))))
    if cached:
        yield warning(
            CHECK,
            "the file system does not support direct I/O, so its cache may return old"
            f" blocks: {cached[0]}",
            "mount the file system with direct I/O, or at least without caching (NFS: noac)",
            "set `source.verify-ms` if the mount can show blocks before they are"
            " completely written",
        )


STANDBY_CHECK: Final = "oracle.standby-redo"

Position = tuple[int, int, int]
"""(incarnation, thread, sequence) of a log."""


class _Redo(NamedTuple):
    """The state of the standby, and the archived logs of both databases.

    Attributes:
        role, mode: DATABASE_ROLE and OPEN_MODE of the standby.
        is_standby: whether the standby receives the redo of another database.
        expected: the logs that the source has archived and the standby should have.
        received: the logs that the standby has.
    """

    role: str
    mode: str
    is_standby: bool
    expected: frozenset[Position]
    received: frozenset[Position]


def check_standby(redo: RedoSource, saved_scn: int | None) -> list[Finding]:
    """Return findings: the standby cannot be read or belongs to another database, it is no standby
    now, or it lacks logs.

    Args:
        saved_scn: the SCN from which redo is still needed; None before the first run.
    """
    try:
        shown = redo.read(
            "comparing the redo of the source",
            lambda primary, standby: _shown(primary, standby, saved_scn or 0),
        )
    except OlrPgError as problem:
        return [coded(STANDBY_CHECK, problem)]
    if not shown.is_standby:
        return [
            warning(
                STANDBY_CHECK,
                f"the database in `source.standby` has the role {shown.role} and is {shown.mode}",
                "after a switchover or failover, the redo is read from the new primary. To take"
                " this load off the new primary, name the new standby in `source.standby`",
            )
        ]
    return list(_lags(shown))


def _shown(primary: Connection, standby: Connection, scn: int) -> _Redo:
    incarnations = [one.resetlogs_id for one in read_incarnations(primary)]
    expected = frozenset(expected_logs(primary, incarnations, scn, open_threads(primary, scn)))
    received = frozenset(list_positions(standby, incarnations, scn))
    columns = DATABASE.c.DATABASE_ROLE, DATABASE.c.OPEN_MODE
    role, mode = standby.execute(select(*columns)).one()
    return _Redo(str(role), str(mode), receives_redo(standby), expected, received)


def _lags(shown: _Redo) -> Iterator[Finding]:
    """Yield a finding for each redo thread of which the standby lacks logs.

    A standby never gets logs that are older than its first one.
    """
    first = {position[1]: position for position in sorted(shown.received, reverse=True)}
    lacking = defaultdict[int, list[Position]](list)
    for position in sorted(shown.expected - shown.received):
        if position > first.get(position[1], (0, 0, 0)):
            lacking[position[1]].append(position)
    for thread, missing in lacking.items():
        yield warning(
            STANDBY_CHECK,
            f"the standby lacks {counted(len(missing), 'log')} of thread {thread} that the source"
            f" has archived: sequence {missing[0][2]} to {missing[-1][2]}",
            "SELECT DEST_NAME, STATUS, ERROR FROM V$ARCHIVE_DEST; in the primary shows why it"
            " does not send them",
            "in the standby, FAL_SERVER must name the primary. Replication waits for the logs",
        )
