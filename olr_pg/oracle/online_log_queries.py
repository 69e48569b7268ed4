"""Queries that find the online redo logs of a live database.

V$LOG has a row for each group of online logs, V$STANDBY_LOG a row for each group of standby redo
logs, and V$LOGFILE a row for each member (file) of either kind of group (Oracle Database
Reference).
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from sqlalchemy import Connection

LOGS: Final = (
    "SELECT group#, thread#, sequence#, bytes, blocksize, members, archived, status,"
    " first_change#, first_time, next_change# FROM v$log"
)
LOG_MEMBERS: Final = "SELECT group#, status, type, member FROM v$logfile"
STANDBY_LOGS: Final = (
    "SELECT group#, thread#, sequence#, bytes, blocksize, archived, status,"
    " first_change#, first_time, next_change# FROM v$standby_log"
)

NO_NEXT_SCN: Final = 0xFFFFFFFFFFFF
"""NEXT_CHANGE# of a log that is still being written is at least this value, which is the highest
48-bit SCN. Since 12.2 it is a higher, 64-bit value. For a standby log in use it is NULL.
"""


class OnlineLog(NamedTuple):
    """A group of online or standby redo logs, from V$LOG or V$STANDBY_LOG.

    Attributes:
        thread: redo thread; 0 for a standby log that is not assigned to a thread.
        sequence: sequence number of the log in the group's files; 0 if the group was never used.
        size: bytes of each member.
        members: number of members; 0 if unknown (V$STANDBY_LOG does not contain the number).
        archived: whether the log is archived, or does not need to be archived.
        status: CURRENT, ACTIVE, INACTIVE, UNUSED, CLEARING, CLEARING_CURRENT; for a standby log
            ACTIVE or UNASSIGNED.
        first_time: time of the first SCN, in the time zone of the database's host.
        next_scn: the SCN at which the log ends, exclusive; None while the log is being written.
    """

    group: int
    thread: int
    sequence: int
    size: int
    block_size: int
    members: int
    archived: bool
    status: str
    first_scn: int
    first_time: datetime | None
    next_scn: int | None


class LogMember(NamedTuple):
    """A file of a group, from V$LOGFILE.

    Attributes:
        status: INVALID (inaccessible), STALE (incomplete) or DELETED (not in use); None for a file
            in use.
        kind: ONLINE or STANDBY.
        name: name of the file in Oracle.
    """

    group: int
    status: str | None
    kind: str
    name: str


def read_online_logs(connection: Connection) -> list[OnlineLog]:
    """Read the groups of online logs of every thread, in the order of group numbers."""
    rows = connection.exec_driver_sql(LOGS)
    return sorted(_log(*row) for row in rows)


def read_standby_logs(connection: Connection) -> list[OnlineLog]:
    """Read the groups of standby redo logs, in the order of group numbers."""
    rows = connection.exec_driver_sql(STANDBY_LOGS)
    return sorted(_log(*row[:5], 0, *row[5:]) for row in rows)


def read_log_members(connection: Connection) -> list[LogMember]:
    """Read the files of all groups, ordered by group and name."""
    rows = [LogMember(*row) for row in connection.exec_driver_sql(LOG_MEMBERS)]
    return sorted(rows, key=lambda member: (member.group, member.name))


def _log(*row: Any) -> OnlineLog:
    group, thread, sequence, size, block_size, members, archived, status, first_scn, *rest = row
    first_time, next_scn = rest
    return OnlineLog(
        group=group,
        thread=thread,
        sequence=sequence,
        size=size,
        block_size=block_size,
        members=members,
        archived=archived == "YES",
        status=status,
        first_scn=first_scn or 0,
        first_time=first_time,
        next_scn=None if next_scn is None or next_scn >= NO_NEXT_SCN else next_scn,
    )
